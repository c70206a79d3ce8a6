"""The view of a review under way: its phases, its reviewers, its time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from rondel.model.changes import Document, Json
from rondel.model.times import parse_time
from rondel.workflows.review.dialects import parse_review
from rondel.workflows.review.layout import Phase
from rondel.workflows.review.read import ReviewState, phase_due

_MARKS = {"done": "x", "due": ">", "open": " "}


@dataclass(frozen=True)
class Progress:
    """Where the last round is. `seconds` is the time of this round, until now or until it was complete."""

    session: str
    round: int
    complete: bool
    phase: Phase
    phases: tuple[tuple[Phase, str], ...]  # done, due, open
    reviewers: tuple[tuple[str, str], ...]  # answered, missing, asked
    seconds: float | None
    verdict: str | None

    def lines(self) -> tuple[str, ...]:
        """For a person: the round and its time, the phases, the reviewers."""
        taken = "" if self.seconds is None else f", {self.seconds:.0f} s"
        phases = (f"[{_MARKS[state]}] {phase.number} {phase.value}" for phase, state in self.phases)
        reviewers = (f"    {name}: {state}" for name, state in self.reviewers)
        verdict = (f"verdict: {self.verdict}",) if self.verdict else ()
        return (f"round {self.round}{taken}", *phases, *reviewers, *verdict)

    def document(self) -> Document:
        """As JSON."""
        phases: list[Json] = [{"number": p.number, "name": p.value, "state": s} for p, s in self.phases]
        reviewers: list[Json] = [{"name": n, "state": s} for n, s in self.reviewers]
        return {
            "session": self.session,
            "round": self.round,
            "complete": self.complete,
            "phase": self.phase.value,
            "phase_number": self.phase.number,
            "phases": phases,
            "reviewers": reviewers,
            "seconds": self.seconds,
            "verdict": self.verdict,
        }


def progress_of(state: ReviewState, now: datetime) -> Progress:
    """The view of the last round, from its files alone."""
    due = phase_due(state)
    phases = tuple((p, _state(p, due)) for p in Phase)
    reviewers = tuple((name, _answer(state, name)) for name in state.attendance.team)
    if state.is_complete:
        reviewers = tuple((n, s) for n, s in reviewers if s != "asked")
    verdict = state.meta.get("verdict")
    if state.is_complete and not state.meta:  # another tool's round: what its final.md says
        verdict = parse_review(state.files.text(state.at.final) or "").verdict
    return Progress(
        state.ref.name,
        state.at.number,
        state.is_complete,
        due,
        phases,
        reviewers,
        _seconds(state, now),
        verdict if isinstance(verdict, str) else None,
    )


def _state(phase: Phase, due: Phase) -> str:
    if phase.number < due.number or due is Phase.COMPLETE:
        return "done"
    return "due" if phase is due else "open"


def _answer(state: ReviewState, name: str) -> str:
    if name in state.reviewed:
        return "answered"
    return "missing" if name in state.missing else "asked"


def _seconds(state: ReviewState, now: datetime) -> float | None:
    """From the round's opening, not the session's."""
    meta = state.meta
    begun = parse_time(meta.get("started_at")) or parse_time(state.request.opened_at)
    if begun is None and len(state.rounds) <= 1:
        begun = parse_time((state.document or {}).get("started_at"))
    ended = parse_time(meta.get("completed_at")) if state.is_complete else now
    return None if begun is None or ended is None else max(0.0, (ended - begun).total_seconds())
