"""What is due in a review: the eight phases, each step named by the file it leaves.

The phases that look at the change and lead to context.md are here; those of the reviewers, the
discourse and the final review are in `reviewing`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from rondel.model.actions import Ask, Derive, Probe
from rondel.model.changes import Aside, Change, Document, Edit, Write, json_file, text
from rondel.model.marks import is_theirs
from rondel.model.names import digest
from rondel.model.outcomes import Outcome
from rondel.model.refs import commit_or_none
from rondel.model.times import stamp
from rondel.model.workflow import Step
from rondel.workflows.review import judge, layout, prompting
from rondel.workflows.review.change import Change as TheChange
from rondel.workflows.review.layout import Phase, RoundFiles
from rondel.workflows.review.probes import (
    Source,
    given_change,
    look_at_change,
    look_at_standards,
    look_since,
    render_standards,
)
from rondel.workflows.review.read import ReviewState, noted, phase_due
from rondel.workflows.review.report import guidance_by_code, render_context
from rondel.workflows.review.request import LEAD
from rondel.workflows.review.reviewing import (
    aggregation,
    change_inputs,
    checkout,
    discourse,
    lead,
    reviews,
    synthesis,
)
from rondel.workflows.review.target import Pins, pin

Steps = Iterator[Step[ReviewState]]


def steps(state: ReviewState) -> Steps:
    """Everything that is due now. A phase begins when `state.json` says so."""
    if state.is_flat or state.is_closed:
        return
    phase = phase_due(state)
    if not is_noted(state, phase):
        yield Step(Derive(layout.STATE, title=f"note phase {phase.value}"), _note)
        return
    match phase:
        case Phase.CONTEXT | Phase.CHANGE_CONTEXT:
            yield from _look(state)
        case Phase.ANALYSIS:
            yield _context(state) if state.has_part("guidance.md") else _guidance(state)
        case Phase.REVIEWS:
            yield from reviews(state)
        case Phase.AGGREGATION:
            yield aggregation(state)
        case Phase.DISCOURSE:
            yield from discourse(state)
        case Phase.SYNTHESIS:
            yield synthesis(state)


# -- state.json --------------------------------------------------------------------------


def is_noted(state: ReviewState, phase: Phase) -> bool:
    """Whether `state.json` says what the files show."""
    said = state.document
    return said is not None and (
        said.get("current_phase") == phase.value
        and said.get("phase_number") == phase.number
        and said.get("current_round") == state.at.number
    )


def _note(state: ReviewState, outcome: Outcome) -> Sequence[Change]:
    """`state.json` says the phase now due. A damaged one is put aside first."""
    due = phase_due(state), state.at.number
    now = stamp(outcome.finished_at) if outcome.finished_at else ""
    branch = state.branch or (state.pins.branch if state.pins else "")

    def change(document: Document) -> Document:
        new = noted(document, state.ref.id, due, now, began=state.request.opened_at)
        return {**new, "branch": branch} if branch else new

    damaged = state.document is None and state.files.exists(layout.STATE)
    taken = state.files.names(".rondel/aside")
    spot = next(n for n in range(1, len(taken) + 2) if f"state.json.damaged-{n}" not in taken)
    first = [Aside(layout.STATE, f".rondel/aside/state.json.damaged-{spot}")] if damaged else []
    return [*first, Edit(layout.STATE, change)]


# -- phases 1 and 2: the change, and what it is judged by ----------------------------------


def _look(state: ReviewState) -> Steps:
    """The change is pinned; then its standards and itself, at the same time."""
    pins = state.pins
    if pins is None:
        yield _pin(state)
        return
    if not (state.has_part("standards.json") and state.files.exists(layout.STANDARDS)):
        yield _standards(state, pins)
    if not state.has_part("change.json"):
        yield _change(state, pins)
    if state.carried and not state.has_part("since.json"):
        yield _since(state, pins)


def _pin(state: ReviewState) -> Step[ReviewState]:
    at = state.at

    def write(_state: ReviewState, outcome: Outcome) -> Sequence[Change]:
        pins = outcome.data
        if not outcome.ok or not isinstance(pins, Pins):
            return ()
        given = [text(at.part("given.diff"), pins.given)] if pins.given else []
        return [*given, json_file(at.part("target.json"), pins.document())]

    action = Probe(at.part("target.json"), "target", title="pin the change")
    return Step(action, write, look=partial(pin, state.request.target))


def _standards(state: ReviewState, pins: Pins) -> Step[ReviewState]:
    at, base = state.at, "" if state.is_given else pins.base

    def write(state: ReviewState, outcome: Outcome) -> Sequence[Change]:
        if not outcome.ok or not isinstance(outcome.data, tuple):
            return ()
        sources = tuple(s for s in outcome.data if isinstance(s, Source))
        listed = [{"path": s.path, "scope": s.scope, "digest": digest(s.text)} for s in sources]
        new = render_standards(sources)
        return _root_file(state, at, layout.STANDARDS, new, "standards.json", {"sources": listed})

    action = Probe(at.part("standards.json"), "standards", title="standards")
    return Step(action, write, look=partial(look_at_standards, state.request.context, base))


def _change(state: ReviewState, pins: Pins) -> Step[ReviewState]:
    """The change between the pinned commits, or the diff that was given."""
    at = state.at

    def write(state: ReviewState, outcome: Outcome) -> Sequence[Change]:
        if not outcome.ok:
            return ()
        found = outcome.data
        if not isinstance(found, TheChange):
            found = given_change(state.files.text(at.part("given.diff")) or "")
        diff = Write(at.part("change.diff"), found.diff.encode("utf-8", "replace"))
        return [diff, json_file(at.part("change.json"), found.document())]

    path, title = at.part("change.json"), "the change"
    if state.is_given:
        return Step(Derive(path, inputs=(at.part("given.diff"),), title=title), write)
    action = Probe(path, "change", inputs=(at.part("target.json"),), title=title)
    return Step(action, write, look=partial(look_at_change, pins.base, pins.head))


def _since(state: ReviewState, pins: Pins) -> Step[ReviewState]:
    """What happened to the code of old findings since the round they come from."""
    path = state.at.part("since.json")
    old = [(c.finding.fingerprint, c.finding.file or "", c.finding.evidence) for c in state.carried]
    before = commit_or_none(state.request.since.get("head")) or _head_before(state)

    def write(_state: ReviewState, outcome: Outcome) -> Sequence[Change]:
        return [json_file(path, outcome.data)] if outcome.ok and isinstance(outcome.data, dict) else ()

    action = Probe(path, "since", title="what changed since")
    return Step(action, write, look=partial(look_since, before, pins.head, old))


def _head_before(state: ReviewState) -> str:
    """The commit that the last complete round reviewed."""
    last = state.last_complete(state.at.number)
    target = state.files.json(last.files.part("target.json")) if last else None
    return (commit_or_none(target.get("head")) or "") if isinstance(target, dict) else ""


# -- phase 3: context.md -------------------------------------------------------------------


def _guidance(state: ReviewState) -> Step[ReviewState]:
    path, title = state.at.part("guidance.md"), "guidance of the lead"
    ask = Ask(path, LEAD, change_inputs(state), checkout(state), title=title)
    return lead(state, ask, _ask_for_guidance, lambda state: guidance_by_code(state.change), "guidance")


def _ask_for_guidance(state: ReviewState) -> str:
    return prompting.prompt("guidance", prompting.about_change(state), state.change, state.request.prompt_max)


def _context(state: ReviewState) -> Step[ReviewState]:
    at = state.at

    def write(state: ReviewState, _outcome: Outcome) -> Sequence[Change]:
        guidance = state.files.text(at.part("guidance.md")) or ""
        new = render_context(judge.about(state), state.carried, guidance, state.has_requirements)
        return _root_file(state, at, layout.CONTEXT, new, "context.json", {})

    action = Derive(
        at.part("context.json"),
        inputs=(at.part("guidance.md"), at.part("change.json")),
        outputs=(layout.CONTEXT,),
        title="context.md",
    )
    return Step(action, write)


# -- files at the root of the session ------------------------------------------------------


def _root_file(
    state: ReviewState, at: RoundFiles, name: str, new: str, part: str, more: Mapping[str, object]
) -> Sequence[Change]:
    """A file at the root, made anew for this round; the old one is kept among the parts of its round.

    One that a person wrote or edited is theirs: where its inputs are unchanged it stays as it is,
    and where they changed it stays too and the new one is put beside it, among the parts. What
    another tool left with its rounds is of those rounds, and is made anew.
    """
    fresh = text(name, new)
    stamp_part = json_file(at.part(part), {"generated": digest(fresh.data), **more})
    old = state.files.data(name)
    if old is None or old == fresh.data:
        return [fresh, stamp_part]
    number, made = _last_stamp(state, at, part)
    if made == digest(fresh.data):
        return [stamp_part]
    theirs = made != digest(old) and is_theirs(state.files, name)
    if theirs and (made is not None or at.number == 1):
        return [Write(at.part(name), fresh.data), stamp_part]
    return [Write(layout.round_files(number).part(name), old), fresh, stamp_part]


def _last_stamp(state: ReviewState, at: RoundFiles, part: str) -> tuple[int, str | None]:
    """The last earlier round that made a file at the root, and the digest of what it made."""
    for number in range(at.number - 1, 0, -1):
        found = state.files.json(layout.round_files(number).part(part))
        if isinstance(found, dict) and isinstance(found.get("generated"), str):
            return number, found["generated"]
    return max(0, at.number - 1), None
