"""The documents of `generate`: a session, its cycles, their iterations.

`session.json` is a `WorkflowState`. Fields nobody here knows stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

SCHEMA_VERSION = 3
COUNT_MAX = 10_000  # a document that counts further is damaged


class WorkflowPhase(StrEnum):
    """What a cycle works on; every phase has a prompt and a response."""

    PLAN = "plan"
    GENERATE = "generate"
    REVIEW = "review"
    REVISE = "revise"


class WorkflowStage(StrEnum):
    """Which of the two files of a phase is due."""

    PROMPT = "prompt"
    RESPONSE = "response"


class WorkflowStatus(StrEnum):
    """How a cycle stands. One that has no iteration yet is pending, whatever this says."""

    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    ERROR = "error"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


FINAL = (WorkflowStatus.COMPLETED, WorkflowStatus.SKIPPED)


@dataclass
class CycleConfig:
    """A cycle as a profile declares it."""

    type: str
    scope: str
    depends_on: list[str] = field(default_factory=list)


class _Document(BaseModel):
    model_config = ConfigDict(extra="allow")


class Artifact(_Document):
    """A file of generated code: its newest version, relative to the session folder."""

    path: str
    phase: str
    iteration: int
    sha256: str
    created_at: str


class Approval(_Document):
    """Who let a prompt or a response pass, and the digest it had then."""

    phase: WorkflowPhase
    stage: WorkflowStage
    iteration: int
    by: str
    at: str
    sha256: str


class IterationState(_Document):
    """One round of a cycle: the first begins with PLAN, a revision with REVISE."""

    number: int
    first_phase: WorkflowPhase = WorkflowPhase.PLAN
    started_at: str | None = None
    completed_at: str | None = None
    verdict: str | None = None


class CycleState(_Document):
    """One cycle: where it stands, and everything that belongs to it alone."""

    type: str
    scope: str
    depends_on: list[str] = Field(default_factory=list)
    phase: WorkflowPhase = WorkflowPhase.PLAN
    stage: WorkflowStage = WorkflowStage.PROMPT
    status: WorkflowStatus = WorkflowStatus.IN_PROGRESS
    iterations: list[IterationState] = Field(default_factory=list)
    current_iteration: int = Field(default=1, ge=1, le=COUNT_MAX)
    iterations_before: int = 0  # how many a person's retry has set aside from the limit
    stale: bool = False
    standards_hash: str | None = None
    plan_approved: bool = False
    plan_hash: str | None = None
    prompt_hashes: dict[str, str] = Field(default_factory=dict)
    review_approved: bool = False
    review_hash: str | None = None
    approvals: list[Approval] = Field(default_factory=list)
    artifacts: list[Artifact] = Field(default_factory=list)
    outputs_hash: str | None = None  # of the artifacts, when it was last completed
    approval_feedback: str | None = None
    last_error: str | None = None
    retry_count: int = Field(
        default=0, ge=0, le=COUNT_MAX
    )  # how many versions of the stage's file were given up
    started_at: str | None = None
    completed_at: str | None = None

    @property
    def pending(self) -> bool:
        """Whether it has not begun."""
        return self.status is WorkflowStatus.IN_PROGRESS and not self.iterations

    @property
    def position(self) -> tuple[object, ...]:
        """What an edit rests on: it is carried out only where the document still stands there."""
        return (self.phase, self.stage, self.status, self.current_iteration, len(self.iterations))


class WorkflowState(_Document):
    """A session of several cycles."""

    schema_version: int = SCHEMA_VERSION
    session_id: str
    profile_name: str
    context: dict[str, Any] = Field(default_factory=dict)
    cycles: list[CycleState] = Field(min_length=1)
    current_cycle_index: int = Field(default=0, ge=0)
    metadata: dict[str, Any] = Field(default_factory=dict)
    created_at: str | None = None
    updated_at: str | None = None

    @property
    def current_index(self) -> int:
        """Which cycle is due, or the last one."""
        return min(self.current_cycle_index, len(self.cycles) - 1)

    @property
    def current(self) -> CycleState:
        """The cycle that is due, or the last one."""
        return self.cycles[self.current_index]

    @property
    def status(self) -> WorkflowStatus:
        """How the session stands: it follows from its cycles."""
        found = {c.status for c in self.cycles}
        for status in (WorkflowStatus.CANCELLED, WorkflowStatus.ERROR, WorkflowStatus.IN_PROGRESS):
            if status in found:
                return status
        return WorkflowStatus.COMPLETED if WorkflowStatus.COMPLETED in found else WorkflowStatus.SKIPPED
