"""The workflow `review`: its pure functions under the names of the contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from typing_extensions import override

from rondel.model.changes import Change, Document, Json
from rondel.model.commands import command_line
from rondel.model.conclusion import Conclusion
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem, Status, Summary
from rondel.model.times import parse_time
from rondel.model.workflow import NOTHING_GIVEN, Given, SessionRef, Step, Workflow
from rondel.workflows.review import layout
from rondel.workflows.review.dialects import parse_review
from rondel.workflows.review.layout import Phase, round_in
from rondel.workflows.review.read import (
    ReviewState,
    phase_due,
    problems_in,
    quorum_words,
    reviews_are_gone,
)
from rondel.workflows.review.report import unshown_words
from rondel.workflows.review.request import SETTINGS, requests_in
from rondel.workflows.review.result import Made, made
from rondel.workflows.review.reviewing import ask_again
from rondel.workflows.review.steps import steps

ROUNDS_GUARDED = 3  # the one under way and those it carries on from
LOOKED_UP = (
    *("standards.json", "change.diff", "change.json", "since.json", "context.json"),
    *("aggregation.json", "quotes.json", "moved.json"),
)
STEPS = 7  # standards, change, context, aggregation, discourse, synthesis, final; and one per reviewer
STEPS_BEFORE = {
    Phase.CONTEXT: 0,
    Phase.CHANGE_CONTEXT: 1,
    Phase.ANALYSIS: 2,
    Phase.REVIEWS: 3,
    Phase.AGGREGATION: 3,
    Phase.DISCOURSE: 4,
    Phase.SYNTHESIS: 5,
}


class Review(Workflow[ReviewState]):
    """Several reviewers, discourse, one final review, round after round."""

    name: ClassVar[str] = "review"

    @override
    def sessions(self, repo: Snapshot) -> Iterable[SessionRef]:
        """Every folder of reviews that ever got an artifact."""
        for name in sorted(n[:-1] for n in repo.names(layout.SESSIONS) if n.endswith("/")):
            folder = f"{layout.SESSIONS}/{name}"
            if layout.day_of(name) and _has_artifact(repo, folder):
                yield SessionRef(self.name, name, folder)

    @override
    def read(self, files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> ReviewState:
        return ReviewState(ref, files, given)

    @override
    def steps(self, state: ReviewState) -> Iterable[Step[ReviewState]]:
        return steps(state)

    @override
    def control(self, state: ReviewState, word: str, at: datetime) -> Sequence[Change]:
        """To try again is to ask the reviewers who did not answer, when too few did."""
        return ask_again(state) if word == "retry" else ()

    @override
    def documents(self, state: ReviewState) -> Iterable[str]:
        """`state.json`, and what the last rounds came to: the next one carries on from it."""
        last = list(state.round_folders.items())[-ROUNDS_GUARDED:]
        return (layout.STATE, *(round_in(state.files, *found).files.meta for found in last))

    @override
    def frozen(self, state: ReviewState) -> Iterable[str]:
        """The complete rounds."""
        for found in state.rounds:
            if found.complete:
                yield found.files.folder
                yield found.files.part("").rstrip("/")

    @override
    def looked_up(self, state: ReviewState) -> Iterable[str]:
        """What was seen of the change in the round under way, and what follows from that without asking.

        Where reviews are there, the commits stay that they are of; whether the change has moved on
        since is looked up again.
        """
        if state.is_flat or state.is_complete or state.is_closed:
            return
        pinned = () if state.reviewed or state.is_given else ("target.json",)
        for name in (*pinned, *LOOKED_UP):
            yield state.at.part(name)

    @override
    def details(self, state: ReviewState, at: datetime) -> Sequence[str]:
        """The phases, the reviewers in this round and the time of this round."""
        return progress_of(state, at).lines()

    @override
    def artifact(self, state: ReviewState, number: int | None) -> str | None:
        """The final review of a round, or of the last complete one."""
        done = [r for r in state.rounds if r.complete and number in (None, r.number)]
        if done:
            return done[-1].files.final
        return "final.md" if state.is_flat and state.files.exists("final.md") else None

    @override
    def judges(self, state: ReviewState) -> tuple[str, str] | None:
        """A diff in a file has no base."""
        pins = state.pins
        return None if pins is None or state.is_given else (pins.base, pins.head)

    @override
    def settings(self) -> Mapping[str, object]:
        return SETTINGS

    @override
    def summary(self, state: ReviewState) -> Summary:
        """A session in short."""
        phase = phase_due(state)
        problems = problems_in(state)
        status, waiting_for = _status(state)
        if status is Status.FAILED and reviews_are_gone(state):
            problems = (*problems, _gone(state))
        done, total = _progress(state, phase)
        document = state.document or {}
        return Summary(
            title=state.branch or state.ref.id,
            status=status,
            phase="flat" if state.is_flat else phase.value,
            done=done,
            total=total,
            waiting_for=waiting_for,
            updated_at=_updated(document),
            problems=problems,
            next=_next(state),
            foreign=_foreign(state),
        )

    @override
    def conclusion(self, state: ReviewState) -> Conclusion:
        return conclusion(state)

    @override
    def document(self, state: ReviewState) -> dict[str, object]:
        """`state.json` after reconciliation, and what follows from the files."""
        return document_of(state, phase_due(state))


def _has_artifact(repo: Snapshot, folder: str) -> bool:
    """Whether anybody ever left anything there; a folder or a bare state.json is no session."""
    names = repo.names(folder)
    if f"{layout.ROUNDS}/" in names and repo.names(f"{folder}/{layout.ROUNDS}"):
        return True
    if any(not name.startswith(".") for name in names - {layout.STATE, f"{layout.ROUNDS}/"}):
        return True
    return any(name.startswith("request-") for name in repo.names(f"{folder}/{layout.RONDEL}"))


def _status(state: ReviewState) -> tuple[Status, str | None]:
    if state.is_flat or state.is_complete:
        return Status.COMPLETED, None
    if state.is_closed:
        return Status.CANCELLED, None
    if state.lacks_quorum and state.has_part("context.json"):
        return Status.FAILED, quorum_words(state)
    if reviews_are_gone(state):
        return Status.FAILED, "the reviews were under way, and none is there"
    return Status.ACTIVE, None


def _foreign(state: ReviewState) -> tuple[str, ...]:
    """The final review that is shown and that Rondel did not make."""
    if state.is_flat:
        return ("final.md",) if state.files.exists("final.md") else ()
    return (state.at.final,) if state.is_complete and state.made is not Made.HERE else ()


def _gone(state: ReviewState) -> Problem:
    return Problem(
        "reviews-empty",
        state.at.reviews,
        "state.json says the reviews are under way, but there is none",
        f"`{command_line('resume', state.ref.name)}` asks the reviewers again",
        when_idle=True,
    )


def _progress(state: ReviewState, phase: Phase) -> tuple[int, int]:
    if state.is_flat:
        return 0, 0
    if phase is Phase.COMPLETE:
        total = STEPS + len(state.reviewed)
        return total, total
    team = len(state.attendance.team)
    return STEPS_BEFORE[phase] + team - len(state.asked), STEPS + team


def _updated(document: Mapping[str, object]) -> datetime | None:
    return parse_time(document.get("updated_at")) or parse_time(document.get("started_at"))


def _next(state: ReviewState) -> str:
    if state.is_flat or state.is_closed:
        return command_line("review")
    if state.is_complete:
        return command_line("review", "show", "--session", state.ref.id)
    return command_line("resume", state.ref.name)


def document_of(state: ReviewState, phase: Phase) -> dict[str, object]:
    """`state.json` after reconciliation, and what follows from the files."""
    said = dict(state.document or {})
    resolution = state.resolution
    return {
        **said,
        "session_id": said.get("session_id") or state.ref.id,
        "status": "closed" if state.is_closed else "active",
        "current_phase": phase.value,
        "phase_number": phase.number,
        "current_round": state.at.number,
        "started_at": said.get("started_at"),
        "updated_at": said.get("updated_at"),
        "branch": state.branch,
        "flat": state.is_flat,
        "rounds": [
            {
                "round": r.number,
                "folder": r.files.folder,
                "complete": r.complete,
                "reviewers": reviewers_in(state.files, r.files.reviews),
                "discourse": state.files.exists(r.files.discourse),
                "made_by_rondel": made(state.files, r.files) is Made.HERE if r.complete else None,
            }
            for r in state.rounds
        ],
        "next": {"round": resolution.current_round, "new_round": resolution.new_round},
        "requests": len(requests_in(state.files)),
    }


def reviewers_in(files: Snapshot, folder: str) -> list[str]:
    """Who reviewed in a round."""
    return sorted(name.removesuffix(".md") for name in files.names(folder) if name.endswith(".md"))


# -- progress --------------------------------------------------------------------------------

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


# -- conclusion ------------------------------------------------------------------------------

NAMED_MAX = 20


def conclusion(state: ReviewState) -> Conclusion:
    """The final review of the round, once it is complete; an approval only where Rondel made it."""
    if state.is_flat:
        final = state.files.text("final.md") or ""
        return Conclusion(approved=False, document=final, notes=("final.md is not made by Rondel",))
    if not state.is_complete:
        return Conclusion(fields=_fields(state))
    here = state.made is Made.HERE
    words = f"{state.at.final} is {state.made}; it counts as the round's end and is no approval"
    return Conclusion(
        approved=here and state.meta.get("verdict") == "APPROVE",
        document=state.files.text(state.at.final) or "",
        notes=(*(() if here else (words,)), *_unshown(state)),
        fields=_fields(state),
    )


def _unshown(state: ReviewState) -> tuple[str, ...]:
    """Which files nobody was shown, in one line."""
    found = state.change.unshown
    if not found:
        return ()
    more = f" and {len(found) - NAMED_MAX} more" if len(found) > NAMED_MAX else ""
    names = ", ".join(f"{file.path} ({file.kind.value})" for file in found[:NAMED_MAX])
    return (" ".join(f"{unshown_words(state.change)}: {names}{more}".splitlines()),)


def _fields(state: ReviewState) -> dict[str, object]:
    complete = state.is_complete
    meta = state.meta if complete else {}
    return {
        "round": state.at.number,
        "complete": complete,
        "verdict": meta.get("verdict"),
        "counts": meta.get("synthesis_counts"),
        "not_looked_at": meta.get("not_looked_at") or [],
        "final": f"{state.ref.folder}/{state.at.final}" if complete else None,
        "made_by_rondel": state.made is Made.HERE if complete else None,
    }
