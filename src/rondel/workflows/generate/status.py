"""The status of a session: the text for a person, to the letter of the document; and the summary."""

from __future__ import annotations

from collections.abc import Sequence

from rondel.model.actions import Decide
from rondel.model.commands import answering, command_line
from rondel.model.summary import Status, Summary
from rondel.model.times import parse_time
from rondel.workflows.generate.models import FINAL, CycleState, WorkflowState, WorkflowStatus
from rondel.workflows.generate.plan import plan
from rondel.workflows.generate.read import State

MARKS = {
    WorkflowStatus.COMPLETED: "✓",
    WorkflowStatus.IN_PROGRESS: "→",
    WorkflowStatus.ERROR: "✗",
    WorkflowStatus.CANCELLED: "-",
    WorkflowStatus.SKIPPED: "-",
}


def status_text(session: WorkflowState) -> str:
    """Where a session stands, cycle by cycle."""
    lines = [
        f"Session: {session.session_id}",
        f"Cycle: {session.current_index + 1}/{len(session.cycles)} ({session.current.type})",
        f"Phase: {position(session.current)}",
        f"Status: {session.status.name}",
        "",
        "Cycles:",
        *(f"  {cycle_line(cycle)}" for cycle in session.cycles),
    ]
    return "\n".join(lines) + "\n"


def cycle_line(cycle: CycleState) -> str:
    """One cycle: its mark, its type, how it stands; stale stands beside that."""
    mark = " " if cycle.pending else MARKS[cycle.status]
    word = "pending" if cycle.pending else cycle.status.value.replace("_", " ")
    return f"[{mark}] {cycle.type} ({word}{', stale' if cycle.stale else ''})"


def position(cycle: CycleState) -> str:
    """Phase and stage in one word: `GENERATE[RESPONSE]`."""
    return f"{cycle.phase.name}[{cycle.stage.name}]"


def summary(state: State) -> Summary:
    """The session in short."""
    session = state.session
    if session is None:
        return Summary(state.ref.id, Status.DAMAGED, problems=state.problems, state=dict(state.raw))
    open_ = [a for a in plan(state) if isinstance(a, Decide)]
    question = open_[0].question if open_ else None
    failed = next((c for c in session.cycles if c.status is WorkflowStatus.ERROR), None)
    if failed is not None and not state.due:
        question = f"{failed.type}: {failed.last_error}"
    context = session.context
    title = " ".join(str(context[k]) for k in ("entity", "scope") if context.get(k)) or state.ref.id
    return Summary(
        f"{session.profile_name}: {title}",
        _status(state, session, question),
        phase="complete" if session.status is WorkflowStatus.COMPLETED else position(session.current),
        done=sum(c.status in FINAL for c in session.cycles),
        total=len(session.cycles),
        waiting_for=question,
        updated_at=parse_time(session.updated_at),
        problems=state.problems,
        next=_next(state, session, open_),
        state=dict(state.raw) if state.flat else _shown(session),
        foreign=state.foreign,
    )


def _status(state: State, session: WorkflowState, question: str | None) -> Status:
    if session.status is WorkflowStatus.COMPLETED:
        return Status.COMPLETED
    if session.status in (WorkflowStatus.CANCELLED, WorkflowStatus.SKIPPED):
        return Status.CANCELLED
    if session.status is WorkflowStatus.ERROR and not state.due:
        return Status.FAILED
    return Status.WAITING if question else Status.ACTIVE


def _next(state: State, session: WorkflowState, open_: Sequence[Decide]) -> str:
    match session.status:
        case WorkflowStatus.COMPLETED:
            return command_line("generate", "apply", state.ref.id) if state.code else ""
        case WorkflowStatus.CANCELLED | WorkflowStatus.SKIPPED:
            return ""
        case WorkflowStatus.ERROR if not state.due:
            return command_line("generate", "retry", state.ref.id)
        case _ if open_:
            return answering(("generate",), state.ref.id, open_)
        case _:
            return command_line("generate", "run", state.ref.id)


def _shown(session: WorkflowState) -> dict[str, object]:
    """The document, and what follows from it: the session's status, phase and stage."""
    current = session.current
    return {
        **session.model_dump(mode="json"),
        "status": session.status.value,
        "phase": current.phase.value,
        "stage": current.stage.value,
        "pending": [c.type for c in session.cycles if c.pending],
        "stale": [c.type for c in session.cycles if c.stale],
    }
