"""State: what the files of a session show."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from rondel.model.actions import Access, Workspace
from rondel.model.codec import only
from rondel.model.identity import Identity
from rondel.model.refs import is_branch, is_operand
from rondel.model.snapshot import Snapshot
from rondel.model.workflow import SessionRef, Step
from rondel.workflows.task import ids, layout
from rondel.workflows.task.graph import Frontier, Graph
from rondel.workflows.task.schema import Task
from rondel.workflows.task.validate import Violation
from rondel.workflows.task.variables import Variables

MEDIUM_FROM = 5  # tasks
COMPLEX_FROM = 16


class Complexity(StrEnum):
    """How large a session is, in this order. It may grow, and never shrinks."""

    SIMPLE = "simple"
    MEDIUM = "medium"
    COMPLEX = "complex"


def classify(count: int, levels: int) -> Complexity:
    """The class of so many tasks on so many levels."""
    if count >= COMPLEX_FROM:
        return Complexity.COMPLEX
    return Complexity.MEDIUM if count >= MEDIUM_FROM or levels > 1 else Complexity.SIMPLE


def upgraded(now: Complexity, count: int, levels: int) -> Complexity:
    """The class of a session that was `now`: the higher of the two."""
    return max(now, classify(count, levels), key=list(Complexity).index)


class Phase(StrEnum):
    """The phases of a session, in their order."""

    PLAN = "PLAN"
    IMPLEMENT = "IMPLEMENT"
    REVIEW = "REVIEW"


class SessionStatus(StrEnum):
    """The status of a session, as its document writes it."""

    ACTIVE = "active"
    PAUSED = "paused"
    COMPLETED = "completed"


@dataclass(frozen=True)
class SessionInfo:
    """What `workflow-session.json` says."""

    project: str
    complexity: Complexity  # of the tasks that are there, and never less than the document says
    stored_complexity: Complexity | None
    phase: str
    status: SessionStatus
    current_tasks: tuple[str, ...]
    completed_phases: tuple[str, ...]
    problem: str = ""  # how the file departs from the document
    foreign: bool = False  # it says completed, and nobody ended the session
    readable: bool = True


@dataclass(frozen=True)
class Request:
    """What a person asked for last."""

    number: int = 0
    kind: str = ""  # run, plan, breakdown or replan
    text: str = ""
    task_id: str = ""  # of a breakdown or replan
    tasks: tuple[str, ...] = ()  # of a run: only these; all when empty
    base: Annotated[str, only(is_operand)] | None = None  # the commit that a planner looks at
    target: Annotated[str, only(is_branch)] | None = (
        None  # the branch, as sessions of the version before recorded it
    )
    checks: str | None = None
    sandbox: str = ""
    step_timeout_s: Annotated[float, Field(gt=0)] = 600.0


class TryStatus(StrEnum):
    """What came of a try at a step."""

    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True)
class Try:
    """The last try at a step."""

    number: int
    status: TryStatus
    error: str = ""


@dataclass(frozen=True)
class Work:
    """How far the work on a task is."""

    number: int = 1  # of the round
    tries: Mapping[int, Try] = field(default_factory=dict)  # the last of each step, from 1
    changed: tuple[str, ...] = ()  # what its steps changed so far
    conflict: str = ""  # why the round before came to nothing


NO_WORK = Work()


class Claim(StrEnum):
    """What the files say of a task's completion where the engine did not say it last."""

    SUMMARY = "summary"  # it has a summary, and its file does not say completed: adopted
    FOREIGN = "foreign"  # its file says completed, and the engine did not: it counts as pending
    SET_BACK = "set back"  # it was completed, and its file says pending: it is done anew


@dataclass(frozen=True)
class State:
    """A session."""

    ref: SessionRef
    files: Snapshot
    session: SessionInfo
    request: Request
    tasks: Mapping[str, Task]
    graph: Graph
    frontier: Frontier
    violations: tuple[Violation, ...]
    unusable: Mapping[str, str]  # tasks that cannot run as they are, and why
    summaries: frozenset[str]
    begun: str | None  # the session's id, where it was begun here
    claims: Mapping[str, Claim]  # tasks whose files say something else than the engine
    work: Mapping[str, Work]
    answers: Mapping[str, str]  # decisions by file name
    proposals: frozenset[str]
    views: tuple[str | None, str | None]  # the list and the plan as they are now, by digest
    allowed: Container[str]
    is_marked: bool  # the newest marker is this session's: it is the active one
    markers: int = 1  # how many sessions have one
    unread: Mapping[str, str] = field(default_factory=dict)  # task files that cannot be read, by their ids
    has_steps: bool = False  # whether any task does
    identity: Identity | None = None
    # What is costly to make and holds until a task changes in more than its status.
    prepared: dict[str, Step[State]] = field(default_factory=dict, compare=False)
    texts: dict[str, str] = field(default_factory=dict, compare=False)

    def work_on(self, task_id: str) -> Work:
        """How far the work on a task is."""
        return self.work.get(task_id, NO_WORK)

    def summary_of(self, task_id: str) -> str | None:
        """The name of a task's summary; None when it has none."""
        return layout.summary_among(self.summaries, task_id)

    def workspace_name(self, task_id: str) -> str:
        """What the working copy of a task is called; each round of work has its own."""
        number = self.work_on(task_id).number
        return task_id if number == 1 else f"{task_id}-{number}"

    def workspace(self, task: Task) -> Workspace:
        """The working copy of a task: one for its steps and its agent together."""
        name = self.workspace_name(task.id)
        return Workspace(Access.WRITE, target=self.target, checks=self.request.checks, name=name)

    def variables(self, task: Task, before: int | None = None) -> Variables:
        """What the references in a task's texts, or in its step `before`, stand for."""
        tries = self.work_on(task.id).tries
        outputs: dict[str, str] = {}
        for number, step in enumerate(task.steps[: None if before is None else before - 1], start=1):
            if step.output_to:
                last = tries.get(number)
                kept = last is not None and last.status is TryStatus.DONE
                text = self.files.text(layout.output_file(task.id, number, step.name)) if kept else None
                outputs[step.output_to] = (text or "").rstrip("\n")
        return Variables(task.properties, outputs)

    def claimed(self, claim: Claim) -> list[str]:
        """The tasks of which that is claimed, in the order of their ids."""
        return [t for t in sorted(self.claims, key=ids.order) if self.claims[t] is claim]

    @property
    def target(self) -> str | None:
        """The branch that the work goes to: where the session was begun, or what a person chose since."""
        known = self.identity
        return (known.onto if known else None) or self.request.target or (known.branch if known else None)

    @property
    def status(self) -> SessionStatus:
        """Completed when its document says so, else what the marker says."""
        if self.session.status is SessionStatus.COMPLETED:
            return SessionStatus.COMPLETED
        return SessionStatus.ACTIVE if self.is_marked else SessionStatus.PAUSED

    @property
    def phase(self) -> Phase:
        """Where the session is: from its tasks, not from what its document says."""
        if not self.tasks:
            return Phase.PLAN
        return Phase.REVIEW if self.all_completed else Phase.IMPLEMENT

    @property
    def all_completed(self) -> bool:
        """Whether every leaf is completed; of a file that cannot be read nobody knows."""
        leaves = len(self.graph.leaves)
        return leaves > 0 and self.frontier.completed == leaves and not self.unread

    @property
    def names(self) -> list[str]:
        """Every id that is taken."""
        return [*self.tasks, *self.unread]

    def selected(self, leaf: str) -> bool:
        """Whether a leaf is among those that the person asked for."""
        wanted = self.request.tasks
        return not wanted or leaf in wanted or self.graph.parent.get(leaf) in wanted
