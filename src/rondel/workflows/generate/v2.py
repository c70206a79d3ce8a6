"""Sessions of the v2 tool: `session.json` without `cycles`, files flat at the session's top.

They stay what they are. Reading makes one cycle of them; a change goes back into the same
fields, in the same spelling, and adds none.
"""

from __future__ import annotations

from datetime import UTC, datetime

from pydantic import ValidationError

from rondel.model.changes import Document, Edit
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem
from rondel.workflows.generate.documents import Change, invalid
from rondel.workflows.generate.layout import SESSION, Paths
from rondel.workflows.generate.models import (
    COUNT_MAX,
    CycleState,
    IterationState,
    WorkflowPhase,
    WorkflowStage,
    WorkflowState,
    WorkflowStatus,
)

PATHS = Paths("", flat=True)
STATUSES = {
    WorkflowStatus.IN_PROGRESS: "in_progress",
    WorkflowStatus.COMPLETED: "success",
    WorkflowStatus.ERROR: "error",
    WorkflowStatus.CANCELLED: "cancelled",
    WorkflowStatus.SKIPPED: "cancelled",
}
_READ = {word: status for status, word in STATUSES.items() if status is not WorkflowStatus.SKIPPED}
_SAME = (
    "standards_hash",
    "plan_approved",
    "plan_hash",
    "review_approved",
    "review_hash",
    "last_error",
    "approval_feedback",
    "retry_count",
)
_ORDER = (WorkflowPhase.REVIEW, WorkflowPhase.REVISE, WorkflowPhase.GENERATE, WorkflowPhase.PLAN)


def is_v2(document: object) -> bool:
    """Whether a document is a v2 session's."""
    return isinstance(document, dict) and "cycles" not in document and "phase" in document


def parse(document: Document, files: Snapshot) -> tuple[WorkflowState | None, Problem | None]:
    """The session as one cycle, or what is wrong with it."""
    raw = document.get("context")
    context = dict(raw) if isinstance(raw, dict) else {}
    scope = str(context.get("scope") or "main")
    try:
        iteration = document.get("current_iteration")
        number = iteration if isinstance(iteration, int) and iteration > 0 else 1
        phase, stage = _position(document, files, number)
        cycle = CycleState.model_validate(
            {
                **{key: document[key] for key in _SAME if document.get(key) is not None},
                "artifacts": document.get("artifacts") or [],
                "prompt_hashes": {},
                "type": scope,
                "scope": scope,
                "phase": phase,
                "stage": stage,
                "status": _status(document),
                "current_iteration": number,
                "iterations": []
                if document.get("phase") == "init"
                else [_iteration(n) for n in range(1, min(number, COUNT_MAX) + 1)],
            }
        )
        state = WorkflowState.model_validate(
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
    except ValidationError as e:
        return None, invalid(e)
    return state, None


def _status(document: Document) -> WorkflowStatus:
    if document.get("phase") == "complete":
        return WorkflowStatus.COMPLETED
    return _READ.get(str(document.get("status")), WorkflowStatus.ERROR)


def _position(document: Document, files: Snapshot, number: int) -> tuple[WorkflowPhase, WorkflowStage]:
    """Phase and stage; where the document names none of ours, the last file that is there says it."""
    word, stage = document.get("phase"), document.get("stage")
    if word in list(WorkflowPhase):
        where = WorkflowStage.RESPONSE if stage == WorkflowStage.RESPONSE else WorkflowStage.PROMPT
        return WorkflowPhase(str(word)), where
    if word == "init":
        return WorkflowPhase.PLAN, WorkflowStage.PROMPT
    if word == "complete":
        return WorkflowPhase.REVIEW, WorkflowStage.RESPONSE
    for phase in _ORDER:
        if files.exists(PATHS.response(number, phase)):
            return phase, WorkflowStage.RESPONSE
        if files.exists(PATHS.prompt(number, phase)):
            return phase, WorkflowStage.PROMPT
    return WorkflowPhase.PLAN, WorkflowStage.PROMPT


def _iteration(number: int) -> IterationState:
    first = WorkflowPhase.PLAN if number == 1 else WorkflowPhase.REVISE
    return IterationState(number=number, first_phase=first)


def edit(files: Snapshot, position: tuple[object, ...], change: Change, at: datetime) -> Edit:
    """Change the session where it still stands at `position`, in its own format."""

    def edited(document: Document) -> Document:
        state, _ = parse(document, files)
        if state is None or state.cycles[0].position != position:
            return document
        cycle = state.cycles[0].model_copy(deep=True)
        change(cycle)
        return _back(document, cycle, at)

    return Edit(SESSION, edited)


def _back(document: Document, cycle: CycleState, at: datetime) -> Document:
    done = cycle.status is WorkflowStatus.COMPLETED
    values: Document = {
        **{key: getattr(cycle, key) for key in _SAME},
        "phase": "complete" if done else cycle.phase.value,
        "stage": None if done else cycle.stage.value,
        "status": STATUSES[cycle.status],
        "current_iteration": cycle.current_iteration,
        "artifacts": [a.model_dump(mode="json") for a in cycle.artifacts],
        "pending_approval": cycle.status is WorkflowStatus.IN_PROGRESS,
        "updated_at": stamp(at),
    }
    return {**document, **{key: value for key, value in values.items() if key in document}}


def stamp(at: datetime) -> str:
    """A time as the v2 tool writes it."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
