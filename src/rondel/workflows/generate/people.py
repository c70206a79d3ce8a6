"""What a person may ask of a session besides an answer: retry, skip, cancel."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rondel.errors import UsageError
from rondel.model.changes import Change
from rondel.workflows.generate import documents
from rondel.workflows.generate.apply import edit, open_iteration
from rondel.workflows.generate.models import (
    FINAL,
    CycleState,
    WorkflowPhase,
    WorkflowState,
    WorkflowStatus,
)
from rondel.workflows.generate.read import State, Track

STOPPED = (WorkflowStatus.ERROR, WorkflowStatus.CANCELLED)


def retry(
    state: State, name: str | None, phase: WorkflowPhase | None, feedback: str, at: datetime
) -> Sequence[Change]:
    """Go on with a cycle that stopped; or open its next iteration, at a phase, from the start without one.

    What was finished before stays: another iteration has another folder.
    """
    track = _track(state, name)
    if track.cycle.pending:
        raise UsageError(f"the cycle {track.cycle.type} has not begun; `rondel generate run` begins it")
    if track.cycle.status is WorkflowStatus.SKIPPED and not track.cycle.iterations:
        return [edit(state, track, _unskip, at)]

    def change(cycle: CycleState) -> None:
        cycle.retry_count += 1
        cycle.last_error = None
        if feedback.strip():
            cycle.approval_feedback = feedback
        again = cycle.status in STOPPED and phase is None
        if again and not _ended(cycle):
            cycle.status = WorkflowStatus.IN_PROGRESS
            return
        cycle.iterations_before = cycle.current_iteration
        begin = phase or (WorkflowPhase.REVISE if again else WorkflowPhase.PLAN)
        if begin is not WorkflowPhase.REVIEW:
            cycle.stale = False
        open_iteration(cycle, begin, at)

    if phase in (WorkflowPhase.REVIEW, WorkflowPhase.REVISE) and not track.cycle.artifacts:
        raise UsageError(f"the cycle {track.cycle.type} has no code yet; retry it from plan or generate")
    if phase is WorkflowPhase.GENERATE and not track.cycle.plan_approved:
        raise UsageError(f"the cycle {track.cycle.type} has no approved plan yet; retry it from plan")
    revived = [
        edit(state, t, _revive, at)
        for t in state.tracks
        if t.index != track.index and t.cycle.status is WorkflowStatus.CANCELLED
    ]
    return [*revived, edit(state, track, change, at)]


def _ended(cycle: CycleState) -> bool:
    """Whether its last iteration is complete, so that going on means another one."""
    return bool(cycle.iterations) and cycle.iterations[-1].verdict is not None


def _unskip(cycle: CycleState) -> None:
    cycle.status = WorkflowStatus.IN_PROGRESS


def _revive(cycle: CycleState) -> None:
    cycle.status = WorkflowStatus.IN_PROGRESS


def retry_failed(state: State, at: datetime) -> Sequence[Change]:
    """Go on with every cycle that ended for want of a usable answer.

    One that a person halted, or whose iterations are used up, goes on when they name it: `retry`.
    """
    failed = [t for t in state.tracks if t.cycle.status is WorkflowStatus.ERROR]
    again = [t for t in failed if not t.halted and not _ended(t.cycle)]
    return [change for t in again for change in retry(state, t.cycle.type, None, "", at)]


def _track(state: State, name: str | None) -> Track:
    """The cycle a person means: the one they name, else the one that is due."""
    if state.session is None:
        raise UsageError(f"{state.ref.name} cannot be read; see `rondel doctor`")
    if name is None:
        stopped = [t for t in state.tracks if t.cycle.status in STOPPED]
        if not stopped and state.session.status is WorkflowStatus.COMPLETED and len(state.tracks) > 1:
            there = ", ".join(t.cycle.type for t in state.tracks)
            raise UsageError(f"{state.ref.name} is complete; name the cycle to redo with --cycle: {there}")
        return stopped[0] if stopped else state.tracks[state.session.current_index]
    for track in state.tracks:
        if track.cycle.type == name:
            return track
    there = ", ".join(t.cycle.type for t in state.tracks)
    raise UsageError(f"{state.ref.name} has no cycle {name!r}; there are: {there}")


def skip(state: State, name: str, at: datetime) -> Sequence[Change]:
    """Leave a cycle out. One that is complete stays."""
    track = _track(state, name)
    if state.flat:
        raise UsageError(f"{state.ref.name} is a v2 session: it has one cycle, which cannot be skipped")
    if track.cycle.status is WorkflowStatus.COMPLETED:
        raise UsageError(f"the cycle {name} is complete; there is nothing to skip")

    def change(cycle: CycleState) -> None:
        cycle.status = WorkflowStatus.SKIPPED
        cycle.last_error = None

    return [edit(state, track, change, at)]


def cancel(state: State, at: datetime) -> Sequence[Change]:
    """Give a session up: what is complete stays, nothing more is done. A retry takes it up again."""
    if state.session is None:
        raise UsageError(f"{state.ref.name} cannot be read; see `rondel doctor`")
    if state.session.status is WorkflowStatus.COMPLETED:
        raise UsageError(f"{state.ref.name} is complete; there is nothing to cancel")
    if state.flat:
        return [edit(state, state.tracks[0], _cancelled, at)]

    def change(session: WorkflowState) -> None:
        for cycle in session.cycles:
            if cycle.status not in FINAL:
                _cancelled(cycle)

    return [documents.edit_session(change, at)]


def _cancelled(cycle: CycleState) -> None:
    cycle.status = WorkflowStatus.CANCELLED
