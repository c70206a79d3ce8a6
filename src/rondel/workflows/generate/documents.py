"""`session.json` as it is read and changed, in its own format.

The v2 tool wrote no `cycles`, and its files lie flat at the session's top. Such a session stays what
it is: reading makes one cycle of it; a change goes back into the same fields, in the same spelling,
and adds none.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from pydantic import ValidationError

from rondel.errors import UsageError
from rondel.model.changes import Document, Edit
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem
from rondel.model.times import stamp
from rondel.workflows.generate.layout import SESSION, Paths
from rondel.workflows.generate.models import (
    COUNT_MAX,
    FINAL,
    CycleConfig,
    CycleState,
    IterationState,
    WorkflowPhase,
    WorkflowStage,
    WorkflowState,
    WorkflowStatus,
    dependants,
    validate_cycles,
)

FLAT = Paths("", flat=True)  # where the files of a v2 session are
DAMAGED = "mend it by hand; nothing in it was changed"
V2_STATUSES = {
    WorkflowStatus.IN_PROGRESS: "in_progress",
    WorkflowStatus.COMPLETED: "success",
    WorkflowStatus.ERROR: "error",
    WorkflowStatus.CANCELLED: "cancelled",
    WorkflowStatus.SKIPPED: "cancelled",
}
_V2_READ = {word: status for status, word in V2_STATUSES.items() if status is not WorkflowStatus.SKIPPED}
_V2_SAME = (
    "standards_hash",
    "plan_approved",
    "plan_hash",
    "review_approved",
    "review_hash",
    "last_error",
    "approval_feedback",
    "retry_count",
)
_V2_ORDER = (WorkflowPhase.REVIEW, WorkflowPhase.REVISE, WorkflowPhase.GENERATE, WorkflowPhase.PLAN)


def is_v2(document: Document) -> bool:
    """Whether a document is a v2 session's."""
    return "cycles" not in document and "phase" in document


def parse(document: Document, files: Snapshot) -> tuple[WorkflowState | None, Problem | None]:
    """The session a document describes, or what is wrong with it."""
    try:
        if is_v2(document):
            return _parse_v2(document, files), None
        session = WorkflowState.model_validate(document)
        validate_cycles([CycleConfig(c.type, c.scope, c.depends_on) for c in session.cycles])
    except ValidationError as e:
        first = e.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return None, Problem("session-invalid", SESSION, f"{where or 'it'}: {first['msg']}", DAMAGED)
    except UsageError as e:  # cycles that no profile may declare
        return None, Problem("cycle-invalid", SESSION, str(e), DAMAGED)
    return session, None


def edit_cycle(
    files: Snapshot, index: int, position: object, change: Callable[[CycleState], None], at: datetime
) -> Edit:
    """Change one cycle where it still stands at `position`; else leave the document as it is."""

    def edit(document: Document) -> Document:
        session, _ = parse(document, files)
        if session is None or index >= len(session.cycles) or session.cycles[index].position != position:
            return document
        cycle = session.cycles[index]
        before = cycle.outputs_hash
        change(cycle)
        if cycle.status is WorkflowStatus.COMPLETED and before not in (None, cycle.outputs_hash):
            _mark_stale(session, cycle.type)
        return _dump(document, session, at)

    return Edit(SESSION, edit)


def edit_session(files: Snapshot, change: Callable[[WorkflowState], None], at: datetime) -> Edit:
    """Change the session as a person asked."""

    def edit(document: Document) -> Document:
        session, _ = parse(document, files)
        if session is None:
            return document
        change(session)
        return _dump(document, session, at)

    return Edit(SESSION, edit)


def _dump(document: Document, session: WorkflowState, at: datetime) -> Document:
    """The document with the session in it: which cycle is due follows from the cycles."""
    if is_v2(document):
        return _dump_v2(document, session.cycles[0], at)
    open_ = [n for n, c in enumerate(session.cycles) if c.status not in FINAL]
    session.current_cycle_index = open_[0] if open_ else len(session.cycles) - 1
    session.updated_at = stamp(at)
    return {**document, **session.model_dump(mode="json")}


def _mark_stale(session: WorkflowState, name: str) -> None:
    """Mark what was begun on a cycle's old outputs; nothing of it is redone unasked."""
    names = dependants(session.cycles, name)
    for cycle in session.cycles:
        if cycle.type in names and cycle.iterations and cycle.status is not WorkflowStatus.SKIPPED:
            cycle.stale = True


# -- the format of v2 ---------------------------------------------------------------------------


def _parse_v2(document: Document, files: Snapshot) -> WorkflowState:
    """The session as one cycle."""
    raw = document.get("context")
    context = dict(raw) if isinstance(raw, dict) else {}
    scope = str(context.get("scope") or "main")
    iteration = document.get("current_iteration")
    number = iteration if isinstance(iteration, int) and iteration > 0 else 1
    phase, stage = _v2_position(document, files, number)
    begun = 0 if document.get("phase") == "init" else min(number, COUNT_MAX)
    cycle = CycleState.model_validate(
        {
            **{key: document[key] for key in _V2_SAME if document.get(key) is not None},
            "artifacts": document.get("artifacts") or [],
            "type": scope,
            "scope": scope,
            "phase": phase,
            "stage": stage,
            "status": _v2_status(document),
            "current_iteration": number,
            "iterations": [
                IterationState(number=n, first_phase=WorkflowPhase.REVISE if n > 1 else WorkflowPhase.PLAN)
                for n in range(1, begun + 1)
            ],
        }
    )
    return WorkflowState.model_validate(
        {
            "schema_version": 2,
            "session_id": str(document.get("session_id")),
            "profile_name": str(document.get("profile") or document.get("profile_name")),
            "context": context,
            "cycles": [cycle],
            "metadata": document.get("metadata") or {},
            "created_at": document.get("created_at"),
            "updated_at": document.get("updated_at"),
        }
    )


def _v2_status(document: Document) -> WorkflowStatus:
    if document.get("phase") == "complete":
        return WorkflowStatus.COMPLETED
    return _V2_READ.get(str(document.get("status")), WorkflowStatus.ERROR)


def _v2_position(document: Document, files: Snapshot, number: int) -> tuple[WorkflowPhase, WorkflowStage]:
    """Phase and stage; where the document names none of ours, the last file that is there says it."""
    word, stage = document.get("phase"), document.get("stage")
    if word in list(WorkflowPhase):
        where = WorkflowStage.RESPONSE if stage == WorkflowStage.RESPONSE else WorkflowStage.PROMPT
        return WorkflowPhase(str(word)), where
    if word == "init":
        return WorkflowPhase.PLAN, WorkflowStage.PROMPT
    if word == "complete":
        return WorkflowPhase.REVIEW, WorkflowStage.RESPONSE
    for phase in _V2_ORDER:
        if files.exists(FLAT.response(number, phase)):
            return phase, WorkflowStage.RESPONSE
        if files.exists(FLAT.prompt(number, phase)):
            return phase, WorkflowStage.PROMPT
    return WorkflowPhase.PLAN, WorkflowStage.PROMPT


def _dump_v2(document: Document, cycle: CycleState, at: datetime) -> Document:
    done = cycle.status is WorkflowStatus.COMPLETED
    values: Document = {
        **{key: getattr(cycle, key) for key in _V2_SAME},
        "phase": "complete" if done else cycle.phase.value,
        "stage": None if done else cycle.stage.value,
        "status": V2_STATUSES[cycle.status],
        "current_iteration": cycle.current_iteration,
        "artifacts": [a.model_dump(mode="json") for a in cycle.artifacts],
        "pending_approval": cycle.status is WorkflowStatus.IN_PROGRESS,
        "updated_at": v2_stamp(at),
    }
    return {**document, **{key: value for key, value in values.items() if key in document}}


def v2_stamp(at: datetime) -> str:
    """A time as the v2 tool writes it."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
