"""The state document of a cycle: every field, type and enumeration.

The models say what a whole document is. Shapes that earlier tools left, and the fragments
their documentation shows, are completed before they are checked: what is missing and has
an obvious value gets it, a list of changes becomes the object it is now. Fields nobody
here knows are kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import Annotated, Any, ClassVar, get_origin

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)
from typing_extensions import override

from rondel.model.changes import Document

TITLE_MAX = 100
ITERATIONS_MAX = 5

Percent = Annotated[float, Field(ge=0, le=100)]
Count = Annotated[int, Field(ge=0)]
Missing = Mapping[str, Any]


class CycleStatus(StrEnum):
    """Where a cycle stands. A stopped one is paused, with the reason in an agent's last message."""

    CREATED = "created"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"


class Phase(StrEnum):
    """What a cycle is doing."""

    INIT = "init"
    RA = "ra"
    EP = "ep"
    CD = "cd"
    VAS = "vas"
    AGGREGATION = "aggregation"
    COMPLETE = "complete"


class AgentStatus(StrEnum):
    """What one of the four agents is doing."""

    IDLE = "idle"
    RUNNING = "running"
    WAITING = "waiting"
    COMPLETED = "completed"
    FAILED = "failed"


class Effort(StrEnum):
    """How much work a plan task is."""

    SMALL = "small"
    MEDIUM = "medium"
    LARGE = "large"


class TaskStatus(StrEnum):
    """Where a plan task stands."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    COMPLETED = "completed"
    BLOCKED = "blocked"


class ChangeAction(StrEnum):
    """What happened to a file."""

    CREATE = "create"
    MODIFY = "modify"
    DELETE = "delete"


class FeedbackType(StrEnum):
    """What a piece of feedback is."""

    REQUIREMENT_UPDATE = "requirement_update"
    BUG_REPORT = "bug_report"
    ISSUE_FIX = "issue_fix"
    CLARIFICATION = "clarification"


class DecisionStatus(StrEnum):
    """Where a decision stands."""

    PENDING = "pending"
    MADE = "made"
    IMPLEMENTED = "implemented"


class BlockerStatus(StrEnum):
    """Where a blocker stands."""

    OPEN = "open"
    RESOLVED = "resolved"
    WORKAROUND = "workaround"


class Shape(BaseModel):
    """A part of the document.

    An older or partial one gets what is `missing`; a list or an object that it lacks is empty.
    """

    model_config = ConfigDict(extra="allow", validate_assignment=True, populate_by_name=True)

    missing: ClassVar[Missing] = {}

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return data
        given = cls.upgraded(dict(data))
        absent = {k: v for k, v in cls.missing.items() if k not in given}
        empty = {k: make() for k, make in _collections(cls) if k not in given}
        return {**given, **absent, **empty}

    @classmethod
    def upgraded(cls, data: dict[str, Any]) -> dict[str, Any]:
        """An older shape as it is written now."""
        return data

    @model_serializer(mode="wrap")
    def _as_it_was_set(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """What nobody set is absent, not null."""
        found: dict[str, Any] = dump(self)
        return {k: v for k, v in found.items() if v is not None or k in self.model_fields_set}

    def document(self) -> Document:
        """As it stands in its file."""
        return self.model_dump(mode="json")


@cache
def _collections(shape: type[Shape]) -> list[tuple[str, type]]:
    """The required fields of a shape that hold a list or an object, and what makes an empty one."""
    required = [(name, field.annotation) for name, field in shape.model_fields.items() if field.is_required()]
    kinds: list[tuple[str, Any]] = [
        (name, get_origin(annotation) or annotation) for name, annotation in required
    ]
    return [(n, list if kind is list else dict) for n, kind in kinds if issubclass(kind, list | dict | Shape)]


class AgentState(Shape):
    """One of the four agents."""

    status: AgentStatus
    started_at: str | None = None
    completed_at: str | None = None
    output_files: list[str]
    last_message: str | None = None
    error: str | None = None
    iterations_completed: Count

    missing: ClassVar[Missing] = {"status": "idle", "iterations_completed": 0}


class Agents(Shape):
    """The four."""

    ra: AgentState
    ep: AgentState
    cd: AgentState
    vas: AgentState


class PhaseError(Shape):
    """What went wrong in a phase."""

    phase: str
    error: str
    timestamp: str

    missing: ClassVar[Missing] = {"timestamp": ""}


class Requirements(Shape):
    """What the requirements analyst found; the specification is `ra/requirements.md`."""

    version: str
    specification: str
    edge_cases: list[str]
    last_updated: str

    missing: ClassVar[Missing] = {"specification": "", "last_updated": ""}


class Exploration(Shape):
    """What the exploration planner saw in the code."""

    version: str
    architecture_summary: str
    integration_points: list[str]
    identified_risks: list[str]
    last_updated: str

    missing: ClassVar[Missing] = {"architecture_summary": "", "last_updated": ""}


class PlanTask(Shape):
    """One piece of the plan."""

    id: str
    description: str
    effort: Effort
    depends_on: list[str]
    status: TaskStatus
    assigned_to: str | None = None
    files: list[str]

    missing: ClassVar[Missing] = {"effort": "medium", "status": "pending"}

    @property
    def headline(self) -> str:
        """The first line of its description."""
        return self.description.strip().split("\n")[0]


class Plan(Shape):
    """The plan of an iteration; `ep/plan.json` holds the same."""

    version: str
    tasks: list[PlanTask]
    total_estimated_effort: str
    critical_path: list[str]
    last_updated: str

    missing: ClassVar[Missing] = {"total_estimated_effort": "", "last_updated": ""}


class ChangeLog(Shape):
    """A change of one file: a line of `cd/changes.log`."""

    timestamp: str
    file: str
    action: ChangeAction
    iteration: Count
    agent: str
    description: str

    missing: ClassVar[Missing] = {"agent": "cd", "description": ""}


class Changes(Shape):
    """Everything that was changed so far."""

    total_files: Count
    changes: list[ChangeLog]
    iteration_markers: dict[int, str]

    @classmethod
    @override
    def upgraded(cls, data: dict[str, Any]) -> dict[str, Any]:
        if "total_files" in data:
            return data
        entries = data.get("changes")
        files = (
            {e.get("file") for e in entries if isinstance(e, Mapping)} if isinstance(entries, list) else ()
        )
        return {"total_files": len(files), **data}


class TestResults(Shape):
    """What the project's own tests said; `vas/test-results.json` holds the same."""

    __test__: ClassVar[bool] = False  # pytest: not a test

    version: str
    pass_rate: Percent
    coverage: Percent
    failed_tests: list[str]
    total_tests: Count
    last_run: str

    missing: ClassVar[Missing] = {"pass_rate": 0, "coverage": 0, "total_tests": 0, "last_run": ""}


class AgentResult(Shape):
    """What one agent did in an iteration."""

    status: str
    files_modified: Count

    missing: ClassVar[Missing] = {"files_modified": 0}


class IterationRecord(Shape):
    """One iteration; `completed_at` is absent while it runs."""

    number: Annotated[int, Field(ge=1)]
    extension: str | None = None
    started_at: str
    completed_at: str | None = None
    agent_results: dict[str, AgentResult]
    issues_found: list[str]
    resolved: bool

    missing: ClassVar[Missing] = {"started_at": "", "resolved": False}


class FeedbackEntry(Shape):
    """One message from an agent or the user to an agent."""

    timestamp: str
    source: str
    target: str
    content: str
    type: FeedbackType

    missing: ClassVar[Missing] = {"type": "clarification"}


class Decision(Shape):
    """A question with options, for a person."""

    id: str
    description: str
    options: list[str]
    made_by: str | None = None
    chosen_option: str | None = None
    status: DecisionStatus

    missing: ClassVar[Missing] = {"status": "pending"}


class Blocker(Shape):
    """Something that keeps the cycle from going on."""

    id: str
    description: str
    reported_by: str
    status: BlockerStatus
    resolution: str | None = None

    missing: ClassVar[Missing] = {"reported_by": "user", "status": "open"}


class Coordination(Shape):
    """What the agents and the user told each other."""

    feedback_log: list[FeedbackEntry]
    pending_decisions: list[Decision]
    blockers: list[Blocker]


class CycleState(Shape):
    """The whole document, `.workflow/.cycle/{cycle_id}.json`."""

    cycle_id: str
    title: str
    description: str
    task_history: list[str]

    status: CycleStatus
    created_at: str
    updated_at: str
    completed_at: str | None = None

    max_iterations: Annotated[int, Field(ge=1)]
    current_iteration: Count
    failure_reason: str | None = None

    agents: Agents

    current_phase: Phase
    completed_phases: list[str]
    phase_errors: list[PhaseError]

    requirements: Requirements | None = None
    exploration: Exploration | None = None
    plan: Plan | None = None
    changes: Changes | None = None
    test_results: TestResults | None = None

    iterations: list[IterationRecord]

    coordination: Coordination

    missing: ClassVar[Missing] = {
        "max_iterations": ITERATIONS_MAX,
        "current_iteration": 0,
        "current_phase": "init",
    }

    @classmethod
    @override
    def upgraded(cls, data: dict[str, Any]) -> dict[str, Any]:
        said = data.get("title") or data.get("description") or ""
        times = [t for t in (data.get("created_at"), data.get("updated_at")) if isinstance(t, str)]
        filled = {
            "title": str(said)[:TITLE_MAX],
            "description": said,
            "task_history": [said] if said else [],
            "created_at": times[0] if times else "",
            "updated_at": times[-1] if times else "",
        }
        data = {**data, **{k: v for k, v in filled.items() if data.get(k) is None}}
        if isinstance(data.get("changes"), list):
            data["changes"] = {"changes": data["changes"]}
        return data


SECTIONS = ("requirements", "exploration", "plan", "changes", "test_results")
AGENTS = ("ra", "ep", "cd", "vas")
REQUIRED = tuple(name for name, field in CycleState.model_fields.items() if field.is_required())


def schema() -> dict[str, Any]:
    """The JSON schema of the state document."""
    found = CycleState.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found}
