"""The reviewers at work: their reviews, what they say of each other's findings, and the final review.

A question that nobody could answer is recorded, and the review goes on without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from rondel.model.actions import Access, Ask, Derive, Probe, Workspace
from rondel.model.changes import Aside, Change, Document, json_file, text
from rondel.model.outcomes import Ended, Outcome
from rondel.model.times import stamp
from rondel.model.workflow import Step
from rondel.workflows.review import judge, layout, prompting
from rondel.workflows.review.aggregate import Item, aggregate, aggregation_document, quotable
from rondel.workflows.review.findings import one_line, parse_reviewer_json
from rondel.workflows.review.layout import RoundFiles
from rondel.workflows.review.markdown import cut, fenced
from rondel.workflows.review.probes import look_for_quotes, look_moved
from rondel.workflows.review.prompting import marked
from rondel.workflows.review.read import ReviewState
from rondel.workflows.review.report import prose_by_code, render_discourse, render_final
from rondel.workflows.review.request import LEAD, REFUTER, Reviewer, persona_of
from rondel.workflows.review.responses import (
    Refutation,
    Ruling,
    parse_refutation,
    parse_responses,
    responses_document,
)
from rondel.workflows.review.result import meta_document, signed
from rondel.workflows.review.target import Pins

REASON_MAX = 500

Steps = Iterator[Step[ReviewState]]


def checkout(state: ReviewState) -> Workspace:
    """The repository as it is after the change, to read."""
    return Workspace(Access.READ, base=state.pins.head if state.pins else None)


def change_inputs(state: ReviewState) -> tuple[str, ...]:
    """What every question about the change is made from."""
    given = (layout.REQUIREMENTS,) if state.has_requirements else ()
    since = (state.at.part("since.json"),) if state.carried else ()
    return (layout.STANDARDS, *given, *_change_parts(state), *since)


def _change_parts(state: ReviewState) -> tuple[str, ...]:
    return state.at.part("change.json"), state.at.part("change.diff")


def lead(
    state: ReviewState,
    ask: Ask,
    prompt: Callable[[ReviewState], str],
    instead: Callable[[ReviewState], str],
    title: str,
) -> Step[ReviewState]:
    """The lead's words; where the lead is code, or could not answer, the words that code finds."""
    by_code = state.lead_is_code

    def write(state: ReviewState, outcome: Outcome) -> Sequence[Change]:
        if outcome.ok:
            return [text(ask.path, instead(state) if by_code else outcome.text)]
        missing = json_file(f"{ask.path.removesuffix('.md')}.json", {"missing": _why(outcome)})
        return [missing, text(ask.path, instead(state))]

    if by_code:
        return Step(Derive(ask.path, inputs=ask.inputs, title=title), write)
    return Step(ask, write, prompt, _check_words)


def _check_words(_state: ReviewState, answer: str) -> str | None:
    return None if answer.strip() else "the answer is empty"


def _why(outcome: Outcome) -> str:
    """Why there is no answer."""
    words = {
        Ended.TIMED_OUT: "timed out",
        Ended.REJECTED: "the answer cannot be used",
        Ended.FAILED: "failed",
    }.get(outcome.ended, outcome.ended.value)
    return f"{words}: {one_line(outcome.error, REASON_MAX) or 'no reason given'}"


# -- phase 4: the reviews ------------------------------------------------------------------


def reviews(state: ReviewState) -> Steps:
    """Every reviewer who has not answered, all at once."""
    at, asked = state.at, set(state.asked)
    inputs = (layout.CONTEXT, *change_inputs(state))
    for reviewer in state.request.team:
        if reviewer.name in asked:
            path = at.review(reviewer.name)
            yield Step(
                Ask(path, reviewer.role, inputs, checkout(state), title=reviewer.name),
                partial(_reviewed, at, reviewer.name),
                partial(_ask_for_review, reviewer),
                partial(_check_review, reviewer.name),
            )


def _ask_for_review(reviewer: Reviewer, state: ReviewState) -> str:
    change = state.change
    if state.is_mechanical(reviewer.name):
        # Analysers read the whole change; what is too long for a model is not too long for them.
        unshown = prompting.unshown_block(change.unshown)
        return prompting.fill("checks", {"change": fenced(change.diff, "diff"), "unshown": unshown})
    slots = prompting.about_change(state) | {
        "persona": persona_of(reviewer),
        "guidance": marked("guidance", state.part_text("guidance.md") or ""),
        "carried_form": prompting.carried_form(state.carried),
        "since": marked("since", fenced(state.since.diff, "diff") if state.since.diff else ""),
    }
    return prompting.prompt("reviewer", slots, change, state.request.prompt_max)


def _check_review(name: str, _state: ReviewState, answer: str) -> str | None:
    return parse_reviewer_json(answer, name)[1]


def _reviewed(at: RoundFiles, name: str, _state: ReviewState, outcome: Outcome) -> Sequence[Change]:
    """An answer, or the record that there is none. Half an answer that can be read is one."""
    usable = outcome.ended is Ended.REJECTED and parse_reviewer_json(outcome.text, name)[0]
    if outcome.ok or usable:
        return [text(at.review(name), outcome.text)]
    when = stamp(outcome.finished_at) if outcome.finished_at else ""
    said = [text(at.part(f"missing/{name}.md"), outcome.text)] if outcome.text.strip() else []
    record = {"reviewer": name, "ended": outcome.ended.value, "reason": _why(outcome), "at": when}
    return [*said, json_file(at.part(f"missing/{name}.json"), record)]


def ask_again(state: ReviewState) -> Sequence[Change]:
    """What makes those who did not answer due again, when too few reviewers did: them, and the lead."""
    if not state.lacks_quorum or state.is_complete:
        return ()
    names = state.files.names(state.at.part("missing"))
    number = 1 + sum(".tried-" in name for name in names)
    paths = [state.at.part(f"missing/{name}.json") for name in state.attendance.missing]
    old = [Aside(path, f"{path}.tried-{number}") for path in paths]
    return [*_lead_again(state, number), *old]


def _lead_again(state: ReviewState, number: int) -> Iterator[Aside]:
    """What makes the guidance of a lead who did not answer due again, and the context that shows it."""
    if not state.has_part("guidance.json"):  # it says why there is none
        return
    made = state.files.json(state.at.part("context.json"))
    if isinstance(made, dict) and made.get("generated") == state.files.digest(layout.CONTEXT):
        yield Aside(layout.CONTEXT, f"{state.at.part(layout.CONTEXT)}.tried-{number}")
    for name in ("context.json", "guidance.md", "guidance.json"):
        yield Aside(state.at.part(name), f"{state.at.part(name)}.tried-{number}")


# -- phase 5: one list of findings ---------------------------------------------------------


def aggregation(state: ReviewState) -> Step[ReviewState]:
    """The findings of all reviewers as one list."""
    path = state.at.part("aggregation.json")
    made_from = tuple(state.at.review(name) for name in state.reviewed)

    def write(state: ReviewState, _outcome: Outcome) -> Sequence[Change]:
        return [json_file(path, aggregation_document(aggregate(state.reviews, state.change)))]

    return Step(Derive(path, inputs=(*made_from, *_change_parts(state))), write)


# -- phase 6: discourse --------------------------------------------------------------------


def discourse(state: ReviewState) -> Steps:
    """Discourse and refuters at the same time, then discourse.md."""
    waiting = False
    for reviewer in _debaters(state):
        if not state.has_part(f"discourse/{reviewer.name}.json"):
            waiting = True
            yield _responses(state, reviewer)
    for item in _doubted(state):
        if not state.has_part(f"refute/{item.id}.json"):
            waiting = True
            yield _refutation(state, item)
    if waiting:
        return
    quotes = _unseen_quotes(state)
    if quotes and not state.has_part("quotes.json"):
        yield _check_quotes(state, quotes)
        return
    path = state.at.discourse
    action = Derive(path, inputs=(state.at.part("aggregation.json"),), title="discourse.md")
    yield Step(action, lambda state, _outcome: [text(path, _discussed(state))])


def _debaters(state: ReviewState) -> tuple[Reviewer, ...]:
    """Who is asked about the others' findings: reviewers that are models and have others to answer to."""
    if state.request.quick or len(state.reviewed) < 2:  # noqa: PLR2004 - one alone has nobody to answer to
        return ()
    seats = {r.name: r for r in state.request.team}
    return tuple(
        seats[name]
        for name in state.reviewed
        if name in seats
        and not state.is_mechanical(name)
        and any(set(item.supporters) - {name} for item in state.items)
    )


def _responses(state: ReviewState, reviewer: Reviewer) -> Step[ReviewState]:
    """What a reviewer says of the others' findings."""
    at, name = state.at, reviewer.name
    path = at.part(f"discourse/{name}.json")

    def prompt(state: ReviewState) -> str:
        found = prompting.findings_block(state.items, name)
        slots = {"persona": persona_of(reviewer), "findings": found}
        return prompting.prompt("discourse", slots, state.change, state.request.prompt_max)

    def check(state: ReviewState, answer: str) -> str | None:
        return parse_responses(answer, name, (item.id for item in state.items))[1]

    def write(state: ReviewState, outcome: Outcome) -> Sequence[Change]:
        said, wrong = parse_responses(outcome.text, name, (item.id for item in state.items))
        return [json_file(path, responses_document(said, "" if outcome.ok and not wrong else _why(outcome)))]

    inputs = (at.part("aggregation.json"),)
    ask = Ask(path, reviewer.role, inputs, checkout(state), title=f"discourse of {name}")
    return Step(ask, write, prompt, check)


def _doubted(state: ReviewState) -> tuple[Item, ...]:
    """The findings that go to a refuter: made by one reviewer only; the gravest, up to a limit."""
    if state.request.quick:
        return ()
    alone = [item for item in state.items if len(item.supporters) == 1]
    return tuple(alone[: state.request.refuters_max])


def _refutation(state: ReviewState, item: Item) -> Step[ReviewState]:
    """Whether a finding that only one reviewer made stands."""
    at, finding = state.at, item.finding
    path, inputs = at.part(f"refute/{item.id}.json"), (at.part("aggregation.json"),)
    if state.refuter_is_code:
        words = f"the code it quotes is {'' if finding.verified else 'not '}in the change"
        ruling = Ruling.STANDS if finding.verified else Ruling.UNCERTAIN
        checked = json_file(path, Refutation(ruling, words, by="the code").document())
        action = Derive(path, inputs=inputs, title=f"check {item.id}")
        return Step(action, lambda _state, _outcome: [checked])

    def prompt(state: ReviewState) -> str:
        only = [finding.file] if finding.file and state.change.file(finding.file) else []
        slots = {"finding": prompting.findings_block([item])}
        return prompting.prompt("refuter", slots, state.change, state.request.prompt_max, only)

    def write(_state: ReviewState, outcome: Outcome) -> Sequence[Change]:
        found, wrong = parse_refutation(outcome.text)
        if wrong or not outcome.ok or not found:
            found = Refutation(Ruling.UNCERTAIN, missing=_why(outcome))
        return [json_file(path, found.document())]

    ask = Ask(path, REFUTER, inputs, checkout(state), title=f"refute {item.id}")
    return Step(ask, write, prompt, lambda _state, answer: parse_refutation(answer)[1])


def _unseen_quotes(state: ReviewState) -> tuple[tuple[str, str], ...]:
    """Quotations that decide something and are not in the change: where they are said to be, and the text."""
    change = quotable(state.change.diff)
    places = {c.id: c.finding.file or "" for c in state.carried}
    said = [(r.file or "", r.evidence) for r in state.refutations.values()]
    said += [(places.get(a.finding, ""), a.evidence) for a in state.answers]
    unseen = (pair for pair in said if pair[1] and not change.has("".join(pair[1].split())))
    return tuple(dict.fromkeys(unseen))


def _check_quotes(state: ReviewState, quotes: Sequence[tuple[str, str]]) -> Step[ReviewState]:
    path = state.at.part("quotes.json")

    def write(_state: ReviewState, outcome: Outcome) -> Sequence[Change]:
        found = outcome.data
        return [json_file(path, {"found": found})] if outcome.ok and isinstance(found, list) else ()

    head = state.pins.head if state.pins else "HEAD"
    action = Probe(path, "quotes", title="check quotations")
    return Step(action, write, look=partial(look_for_quotes, head, quotes))


def _discussed(state: ReviewState) -> str:
    """discourse.md."""
    notes = []
    checkers = [name for name in state.reviewed if state.is_mechanical(name)]
    if checkers and not state.request.quick:
        notes.append(f"{', '.join(checkers)} are checks: they report and do not argue")
    for reviewer in _debaters(state):
        part = state.part(f"discourse/{reviewer.name}.json")
        if isinstance(part, dict) and part.get("missing"):
            notes.append(f"{reviewer.name} took no part: {part['missing']}")
    alone = sum(len(item.supporters) == 1 for item in state.items)
    if not state.request.quick and alone > len(_doubted(state)):
        notes.append(f"{alone - len(_doubted(state))} lesser findings went to no refuter (refuters_max)")
    return render_discourse(judge.about(state), judge.weighed(state), state.responses, notes)


# -- phase 7: the final review -------------------------------------------------------------


def synthesis(state: ReviewState) -> Step[ReviewState]:
    """The lead's words, then round-meta.json and, last, final.md."""
    at = state.at
    inputs = (at.part("aggregation.json"), at.discourse)
    if not state.has_part("synthesis.md"):
        ask = Ask(at.part("synthesis.md"), LEAD, inputs, title="synthesis of the lead")
        return lead(state, ask, _ask_for_synthesis, _prose, "words around the findings")
    if state.pins and not state.has_part("moved.json"):
        return _moved(state, state.pins)
    final = Derive(
        at.final, inputs=(*inputs, at.part("synthesis.md")), outputs=(at.meta,), title="final review"
    )
    return Step(final, partial(_final, at))


def _ask_for_synthesis(state: ReviewState) -> str:
    found = judge.result(state)
    rows = [f"Verdict: {found.verdict.value}"]
    rows += [
        f"- {e.item.id} [{e.finding.category.value}, weight {e.weight}] {e.finding.text}" for e in found.open
    ]
    rows += [f"- {s.carried.id} of an earlier round is {s.answer.value}: {s.reason}" for s in found.settled]
    room = state.request.prompt_max
    said = render_discourse(judge.about(state), judge.weighed(state), state.responses, ())
    slots = {
        "result": cut(marked("result", "\n".join(rows)), room // 2, "the result"),
        "discourse": cut(marked("discourse", said), room // 5, "the discourse"),
        "guidance": cut(marked("guidance", state.part_text("guidance.md") or ""), room // 8, "it"),
    }
    return prompting.fill("synthesis", slots)


def _prose(state: ReviewState) -> str:
    return prose_by_code(judge.result(state), state.attendance, judge.findings(state))


def _moved(state: ReviewState, pins: Pins) -> Step[ReviewState]:
    """Whether the change has moved on meanwhile; where that cannot be found out, it counts as not moved."""
    path = state.at.part("moved.json")

    def write(_state: ReviewState, outcome: Outcome) -> Sequence[Change]:
        known = outcome.ok and isinstance(outcome.data, dict)
        return [json_file(path, outcome.data if known else {"moved": False})]

    look = partial(look_moved, state.request.target, pins.base, pins.head)
    return Step(Probe(path, "moved"), write, look=look)


def _final(at: RoundFiles, state: ReviewState, outcome: Outcome) -> Sequence[Change]:
    """round-meta.json, and last final.md, which marks the round as complete."""
    about, found = judge.about(state), judge.result(state)
    head: Document = {
        "round": at.number,
        "session": state.ref.id,
        "branch": about.pins.branch,
        "target": {"label": about.pins.label, "base": about.pins.base, "head": about.pins.head},
        "quick": about.quick,
        "not_looked_at": [
            {"path": f.path, "status": f.status, "reason": f.kind.value} for f in about.change.unshown
        ],
        "started_at": state.request.opened_at,
        "completed_at": stamp(outcome.finished_at) if outcome.finished_at else "",
    }
    meta = meta_document(found, state.attendance, judge.findings(state), head)
    prose = state.files.text(at.part("synthesis.md")) or ""
    final = text(at.final, render_final(about, found, state.attendance, prose))
    result = json_file(at.meta, signed(state.files, at, meta, final.data))
    return [replace(result, view=True), final]
