"""A session, its cycles and their iterations; which cycles a profile may declare, and what follows from them.

`session.json` is a `WorkflowState`. Fields nobody here knows stay where they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from rondel.errors import UsageError
from rondel.model.names import digest, is_safe_name

SCHEMA_VERSION = 3
COUNT_MAX = 10_000  # a document that counts further is damaged
CYCLES_MAX = 50
RESERVED = frozenset({"code", "gate", "inputs", "plan", "prompts", "responses", "session", "sources"})
_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
_ITERATION = re.compile(r"iteration-\d+", re.IGNORECASE)


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
    retry_count: int = Field(default=0, ge=0, le=COUNT_MAX)  # versions of the stage's file that were given up
    started_at: str | None = None
    completed_at: str | None = None

    @property
    def pending(self) -> bool:
        """Whether it has not begun."""
        return self.status is WorkflowStatus.IN_PROGRESS and not self.iterations

    @property
    def stage_name(self) -> str:
        """Phase and stage in one word: `GENERATE[RESPONSE]`."""
        return f"{self.phase.name}[{self.stage.name}]"

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


# -- what a profile may declare ------------------------------------------------------------------


def validate_cycles(cycles: object) -> list[CycleConfig]:
    """The cycles themselves; UsageError names the first that cannot be one, and why."""
    if not isinstance(cycles, list) or not cycles:
        raise UsageError("the profile declares no cycles; get_cycles must return at least one CycleConfig")
    if len(cycles) > CYCLES_MAX:
        raise UsageError(f"the profile declares {len(cycles)} cycles; at most {CYCLES_MAX} are allowed")
    seen: dict[str, str] = {}
    for cycle in cycles:
        if not isinstance(cycle, CycleConfig):
            raise UsageError(f"get_cycles gave {cycle!r}; it must give CycleConfig values")
        _check(cycle, seen)
        seen[cycle.type.casefold()] = cycle.type
    return cycles


def _check(cycle: CycleConfig, seen: dict[str, str]) -> None:
    name = cycle.type
    if not isinstance(name, str) or not _TYPE.fullmatch(name) or not is_safe_name(name):
        raise UsageError(f"the cycle type {name!r} cannot be a folder name; use letters, digits, '-' and '_'")
    if name.casefold() in RESERVED or _ITERATION.fullmatch(name):
        raise UsageError(f"the cycle type {name!r} is reserved; choose another name")
    if name.casefold() in seen:
        raise UsageError(f"the cycle type {name!r} is declared twice; each type is one folder")
    if not isinstance(cycle.scope, str) or not cycle.scope.strip():
        raise UsageError(f"the cycle {name!r} has no scope")
    for needed in cycle.depends_on:
        if needed not in seen.values():
            there = ", ".join(seen.values()) or "none"
            raise UsageError(f"the cycle {name!r} depends on {needed!r}, which is no earlier cycle: {there}")


# -- what follows from dependencies, and from what was generated ----------------------------------


def needed(state: WorkflowState, cycle: CycleState) -> list[CycleState]:
    """The cycles whose outputs a cycle gets: its `depends_on`; for a skipped one, what that depends on."""
    by_type = {c.type: c for c in state.cycles}
    found: dict[str, CycleState] = {}
    todo = list(cycle.depends_on)
    while todo:
        other = by_type.get(todo.pop(0))
        if other is None or other.type in found:
            continue
        if other.status is WorkflowStatus.SKIPPED:
            todo = [*other.depends_on, *todo]
        else:
            found[other.type] = other
    return list(found.values())


def ready(state: WorkflowState, cycle: CycleState) -> bool:
    """Whether everything a cycle depends on is there."""
    by_type = {c.type: c for c in state.cycles}
    return all(by_type[t].status in FINAL for t in cycle.depends_on if t in by_type)


def dependants(cycles: Sequence[CycleState], name: str) -> list[str]:
    """The cycles that rest on a cycle, directly or not."""
    found = {name}
    for cycle in cycles:
        if found & set(cycle.depends_on):
            found.add(cycle.type)
    return [c.type for c in cycles if c.type in found - {name}]


def newest(artifacts: Iterable[Artifact]) -> dict[str, Artifact]:
    """The newest version of each generated file, by its path in `code/`.

    Where the code was generated anew, what was there before does not count any more; a
    revision replaces only the files it gives.
    """
    found = list(artifacts)
    begins = max((a.iteration for a in found if a.phase == WorkflowPhase.GENERATE), default=0)
    out: dict[str, Artifact] = {}
    for artifact in sorted(found, key=lambda a: a.iteration):
        if artifact.iteration >= begins:
            out[artifact.path.partition("/code/")[2] or artifact.path.removeprefix("code/")] = artifact
    return dict(sorted(out.items()))


def outputs_hash(artifacts: Iterable[Artifact]) -> str:
    """One digest of everything a cycle gives to others."""
    return digest("\n".join(f"{a.sha256} {name}" for name, a in newest(artifacts).items()))
