"""From the state of a round to its result: weights, what became of old findings, the verdict."""

from __future__ import annotations

from rondel.workflows.review.aggregate import Item, checked, findings_in
from rondel.workflows.review.carry import Known, Settled, link, settle
from rondel.workflows.review.evidence import quotable
from rondel.workflows.review.findings import Finding, parse_reviewer_json
from rondel.workflows.review.read import ReviewState
from rondel.workflows.review.report import About
from rondel.workflows.review.result import Result, result_of
from rondel.workflows.review.target import Pins
from rondel.workflows.review.weigh import Weighed, weigh


def about(state: ReviewState) -> About:
    """What the round is about, and what a reader should know of how it went."""
    pins = state.pins or Pins("", "", state.branch or state.ref.id, "the change")
    return About(state.at.number, pins, state.change, state.request.quick, tuple(_notes(state)))


def _notes(state: ReviewState) -> list[str]:
    notes = list(state.change.notes)
    for name, text in state.reviews.items():
        found, wrong = parse_reviewer_json(text, name)
        if found and wrong:
            notes.append(f"{name}: part of the answer could not be read ({wrong})")
    moved = state.part("moved.json")
    if isinstance(moved, dict) and moved.get("moved"):
        notes.append(
            f"the change has moved on since the round opened, and is not mixed in: {moved.get('words')}"
        )
    for part in ("guidance", "synthesis"):
        said = state.part(f"{part}.json")
        if isinstance(said, dict) and said.get("missing"):
            notes.append(f"the lead's {part} is missing: {said['missing']}")
    return notes


def quotes(state: ReviewState) -> frozenset[str]:
    """Every quotation that decides something and is really there."""
    change = quotable(state.change.diff)
    said = [r.evidence for r in state.refutations.values()] + [a.evidence for a in state.answers]
    return state.true_quotes | {q for q in said if q and change.has("".join(q.split()))}


def linked(state: ReviewState) -> tuple[tuple[Item, ...], dict[str, str]]:
    """The findings under the names they had in earlier rounds."""
    return link(state.carried, state.items)


def weighed(state: ReviewState) -> tuple[Weighed, ...]:
    """The findings with their weights."""
    return weigh(linked(state)[0], state.responses, state.refutations, quotes(state))


def settled(state: ReviewState) -> tuple[Settled, ...]:
    """What became of the old findings."""
    checkers = frozenset(name for name in state.attendance.answered if state.is_mechanical(name))
    known = Known(state.accepted, quotes(state), checkers)
    return settle(state.carried, linked(state)[1], state.answers, state.since, known)


def result(state: ReviewState) -> Result:
    """What the round came to."""
    checkers = state.attendance.mechanical
    return result_of(weighed(state), settled(state), state.accepted, state.before, state.reviews, checkers)


def findings(state: ReviewState) -> dict[str, list[Finding]]:
    """What each reviewer reported, checked."""
    return {name: checked(findings_in(text, name), state.change) for name, text in state.reviews.items()}
