"""What is due in a review: the eight phases as actions, each named by the file it leaves."""

from __future__ import annotations

import json
from collections.abc import Iterator

from rondel.model.actions import Access, Action, Ask, Derive, Probe, Workspace
from rondel.model.refs import commit_or_none
from rondel.workflows.review import layout
from rondel.workflows.review.aggregate import Item
from rondel.workflows.review.evidence import quotable
from rondel.workflows.review.layout import Phase
from rondel.workflows.review.read import ReviewState, phase_due
from rondel.workflows.review.request import LEAD, REFUTER


def plan(state: ReviewState) -> Iterator[Action]:
    """Everything that is due now. A phase begins when `state.json` says so."""
    if state.is_flat or state.is_closed:
        return
    phase = phase_due(state)
    if not is_noted(state, phase):
        yield Derive(layout.STATE, title=f"note phase {phase.value}")
        return
    match phase:
        case Phase.CONTEXT | Phase.CHANGE_CONTEXT:
            yield from _look(state)
        case Phase.ANALYSIS:
            yield from _analysis(state)
        case Phase.REVIEWS:
            yield from _reviews(state)
        case Phase.AGGREGATION:
            reviews = tuple(state.at.review(name) for name in state.reviewed)
            yield Derive(state.at.part("aggregation.json"), inputs=(*reviews, *_change_parts(state)))
        case Phase.DISCOURSE:
            yield from _discourse(state)
        case Phase.SYNTHESIS:
            yield from _synthesis(state)


def is_noted(state: ReviewState, phase: Phase) -> bool:
    """Whether `state.json` says what the files show."""
    said = state.document
    return said is not None and (
        said.get("current_phase") == phase.value
        and said.get("phase_number") == phase.number
        and said.get("current_round") == state.at.number
    )


def _look(state: ReviewState) -> Iterator[Action]:
    """Phases 1 and 2: the change is pinned; then its standards and itself, at the same time."""
    at, pins = state.at, state.pins
    if pins is None:
        asked = json.dumps(state.request.target.document())
        yield Probe(at.part("target.json"), "target", (asked,), title="pin the change")
        return
    if not (state.has_part("standards.json") and state.files.exists(layout.STANDARDS)):
        base = "" if state.is_given else pins.base
        yield Probe(at.part("standards.json"), "standards", (state.request.context, base), title="standards")
    if not state.has_part("change.json"):
        if state.is_given:
            yield Derive(at.part("change.json"), inputs=(at.part("given.diff"),), title="the change")
        else:
            yield Probe(
                at.part("change.json"),
                "change",
                (pins.base, pins.head),
                (at.part("target.json"),),
                "the change",
            )
    if state.carried and not state.has_part("since.json"):
        asked = json.dumps(
            [[c.finding.fingerprint, c.finding.file or "", c.finding.evidence] for c in state.carried]
        )
        before = commit_or_none(state.request.since.get("head")) or _head_before(state)
        yield Probe(at.part("since.json"), "since", (before, pins.head, asked), title="what changed since")


def _head_before(state: ReviewState) -> str:
    """The commit that the last complete round reviewed."""
    done = [r for r in state.rounds if r.complete and r.number < state.at.number]
    target = state.files.json(done[-1].files.part("target.json")) if done else None
    return (commit_or_none(target.get("head")) or "") if isinstance(target, dict) else ""


def _analysis(state: ReviewState) -> Iterator[Action]:
    """Phase 3: the lead's guidance, then context.md."""
    at = state.at
    if not state.has_part("guidance.md"):
        path, inputs = at.part("guidance.md"), _inputs(state)
        if state.lead_is_code:
            yield Derive(path, inputs=inputs, title="guidance")
        else:
            yield Ask(path, LEAD, inputs, _checkout(state), title="guidance of the lead")
        return
    yield Derive(
        at.part("context.json"),
        inputs=(at.part("guidance.md"), at.part("change.json")),
        outputs=(layout.CONTEXT,),
        title="context.md",
    )


def _reviews(state: ReviewState) -> Iterator[Action]:
    """Phase 4: every reviewer who has not answered, all at once."""
    asked = set(state.asked)
    inputs = (layout.CONTEXT, *_inputs(state))
    for reviewer in state.request.team:
        if reviewer.name in asked:
            path = state.at.review(reviewer.name)
            yield Ask(path, reviewer.role, inputs, _checkout(state), title=reviewer.name)


def debaters(state: ReviewState) -> tuple[str, ...]:
    """Who is asked about the others' findings: reviewers that are models and have others to answer to."""
    if state.request.quick or len(state.reviewed) < 2:  # noqa: PLR2004 - one alone has nobody to answer to
        return ()
    seats = {r.name for r in state.request.team}
    return tuple(
        name
        for name in state.reviewed
        if name in seats
        and not state.is_mechanical(name)
        and any(set(item.supporters) - {name} for item in state.items)
    )


def doubted(state: ReviewState) -> tuple[Item, ...]:
    """The findings that go to a refuter: made by one reviewer only; the gravest, up to a limit."""
    if state.request.quick:
        return ()
    alone = [item for item in state.items if len(item.supporters) == 1]
    return tuple(alone[: state.request.refuters_max])


def unseen_quotes(state: ReviewState) -> tuple[tuple[str, str], ...]:
    """Quotations that decide something and are not in the change: where they are said to be, and the text."""
    change = quotable(state.change.diff)
    said = [(r.file or "", r.evidence) for r in state.refutations.values()]
    said += [(_place(state, a.finding), a.evidence) for a in state.answers]
    return tuple(
        dict.fromkeys(
            (file, quote) for file, quote in said if quote and not change.has("".join(quote.split()))
        )
    )


def _place(state: ReviewState, carried: str) -> str:
    return next((c.finding.file or "" for c in state.carried if c.id == carried), "")


def _discourse(state: ReviewState) -> Iterator[Action]:
    """Phase 6: discourse and refuters at the same time, then discourse.md."""
    at = state.at
    said_on = (at.part("aggregation.json"),)
    waiting = False
    for name in debaters(state):
        if not state.has_part(f"discourse/{name}.json"):
            waiting = True
            role = f"review.reviewer.{name}"
            path = at.part(f"discourse/{name}.json")
            yield Ask(path, role, said_on, _checkout(state), title=f"discourse of {name}")
    for item in doubted(state):
        if not state.has_part(f"refute/{item.id}.json"):
            waiting = True
            path = at.part(f"refute/{item.id}.json")
            if state.refuter_is_code:
                yield Derive(path, inputs=said_on, title=f"check {item.id}")
            else:
                yield Ask(path, REFUTER, said_on, _checkout(state), title=f"refute {item.id}")
    if waiting:
        return
    quotes = unseen_quotes(state)
    if quotes and not state.has_part("quotes.json"):
        head = state.pins.head if state.pins else "HEAD"
        yield Probe(at.part("quotes.json"), "quotes", (head, json.dumps(quotes)), title="check quotations")
        return
    yield Derive(at.discourse, inputs=said_on, title="discourse.md")


def _synthesis(state: ReviewState) -> Iterator[Action]:
    """Phase 7: the lead's words, then round-meta.json and, last, final.md."""
    at = state.at
    inputs = (at.part("aggregation.json"), at.discourse)
    if not state.has_part("synthesis.md"):
        if state.lead_is_code:
            yield Derive(at.part("synthesis.md"), inputs=inputs, title="words around the findings")
        else:
            yield Ask(at.part("synthesis.md"), LEAD, inputs, title="synthesis of the lead")
        return
    if state.pins and not state.has_part("moved.json"):
        asked = json.dumps(state.request.target.document())
        yield Probe(at.part("moved.json"), "moved", (asked, state.pins.base, state.pins.head))
        return
    yield Derive(
        at.final, inputs=(*inputs, at.part("synthesis.md")), outputs=(at.meta,), title="final review"
    )


def _checkout(state: ReviewState) -> Workspace:
    """The repository as it is after the change, to read."""
    return Workspace(Access.READ, base=state.pins.head if state.pins else None)


def _change_parts(state: ReviewState) -> tuple[str, ...]:
    return state.at.part("change.json"), state.at.part("change.diff")


def _inputs(state: ReviewState) -> tuple[str, ...]:
    """What every question about the change is made from."""
    given = (layout.REQUIREMENTS,) if state.has_requirements else ()
    since = (state.at.part("since.json"),) if state.carried else ()
    return (layout.STANDARDS, *given, *_change_parts(state), *since)
