"""What the files of a cycle show: the state of its workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from rondel.model.changes import Document, Edit
from rondel.model.identity import Identity
from rondel.model.jsons import mappings, strings
from rondel.model.refs import branch_or_none, commit_or_none
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem
from rondel.workflows.cycle.documents import Transition, at_time, edit
from rondel.workflows.cycle.measure import FRESH
from rondel.workflows.cycle.models import Blocker, CycleState, Decision, PlanTask
from rondel.workflows.cycle.plans import Proposal
from rondel.workflows.cycle.requests import Extension, Request


class Found(StrEnum):
    """Where the state document was found."""

    FILE = "file"
    REST = "rest"  # the file, less the sections that cannot be read
    LOG = "log"  # the file is damaged; the log's last state counts
    REFUSED = "refused"  # the file claims an end that the engine did not write; what was committed counts
    FILES = "files"  # file and log are damaged; put together from what the agents left
    REQUEST = "request"  # there is none yet
    NOWHERE = "nowhere"


class Stage(StrEnum):
    """Where a plan task stands."""

    WAITS = "waits"  # for a task it depends on
    DUE = "due"
    UNCOUNTED = "uncounted"  # its work is there; what it did to each file is not yet known
    DONE = "done"
    CONFLICT = "conflict"  # its edit does not go on top of the others', and a person must see to it
    FAILED = "failed"
    UNREACHABLE = "unreachable"  # a task it depends on cannot be completed

    @property
    def settled(self) -> bool:
        """Whether nothing more happens to it by itself."""
        return self in (Stage.DONE, Stage.CONFLICT, Stage.FAILED, Stage.UNREACHABLE)


@dataclass(frozen=True)
class TaskView:
    """One plan task and what came of it so far."""

    task: PlanTask
    stage: Stage
    number: int = 1  # of the try that is due, or of the last one
    base: str | None = None  # the commit it starts from
    result: Mapping[str, Any] = field(default_factory=dict)  # of the last try
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def files(self) -> list[dict[str, Any]]:
        """What its commit did to each file: `file` and `action`."""
        return mappings(self.changes, "files")


@dataclass(frozen=True)
class Iteration:
    """The iteration under way, as far as it has come."""

    number: int
    begin: Mapping[str, Any] = field(default_factory=dict)  # empty: it has not begun
    has_requirements: bool = False
    has_exploration: bool = False
    plan: Proposal | None = None
    tasks: tuple[TaskView, ...] = ()
    tip: Mapping[str, Any] | None = None
    tests: Mapping[str, Any] | None = None
    has_validation: bool = False

    @property
    def adopted(self) -> frozenset[str]:
        """The phases that were done when Rondel took the cycle over."""
        return frozenset(strings(self.begin, "adopted"))

    @property
    def base(self) -> str | None:
        """The commit the iteration started from."""
        return commit_or_none(self.begin.get("commit"))

    @property
    def built(self) -> str | None:
        """The commit that holds what was built; where nothing did, where it started."""
        return commit_or_none((self.tip or {}).get("commit")) or self.base

    @property
    def done(self) -> int:
        """How many tasks are completed."""
        return sum(view.stage is Stage.DONE for view in self.tasks)

    @property
    def changed(self) -> list[str]:
        """The files that were changed in this iteration."""
        return sorted({str(f.get("file")) for view in self.tasks for f in view.files})

    def same_try(self, view: TaskView) -> TaskView | None:
        """The same try at the same task as it is now; None when another one counts by now."""
        return next((v for v in self.tasks if (v.task.id, v.number) == (view.task.id, view.number)), None)

    def version(self, section: str) -> str | None:
        """The version a section had before this iteration."""
        known = self.begin.get("versions")
        found = known.get(section) if isinstance(known, dict) else None
        return found if isinstance(found, str) else None


@dataclass(frozen=True)
class State:
    """A cycle."""

    id: str
    files: Snapshot
    request: Request
    document: Document
    cycle: CycleState | None  # None: there is no state that can be used
    found: Found
    logged: bool  # whether the log ends with this document
    iteration: Iteration | None = None  # the one under way
    extensions: tuple[Extension, ...] = ()  # said, and not yet taken into an iteration
    problems: tuple[Problem, ...] = ()
    identity: Identity | None = None

    @property
    def open_blockers(self) -> list[Blocker]:
        """What keeps it from going on."""
        return [b for b in self.cycle.coordination.blockers if b.status == "open"] if self.cycle else []

    @property
    def pending_decisions(self) -> list[Decision]:
        """What waits for a person's choice."""
        found = self.cycle.coordination.pending_decisions if self.cycle else []
        return [d for d in found if d.status == "pending"]

    @property
    def target(self) -> str:
        """The branch the work lands on."""
        chosen = self.identity.onto if self.identity else None
        return chosen or branch_or_none(self.request.branch) or f"rondel/cycle/{self.id}"

    @property
    def test_command(self) -> str:
        """What tests the iteration under way: what the settings say now, else what was found in it."""
        if self.request.test.strip():
            return FRESH + self.request.test
        found = (self.iteration.tip or {}).get("command") if self.iteration else None
        return found if isinstance(found, str) else ""

    def time(self, at: datetime | None) -> str:
        """A time as the document writes it."""
        return at_time(at, self.request.zone) if at else ""

    def edit(self, at: datetime | None, *transitions: Transition) -> Edit:
        """A change of the state document."""
        return edit(self.id, at, self.request.zone, *transitions)
