"""What the files of a feature show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

from rondel.model.codec import decode, only, request_file, requests_in
from rondel.model.identity import IDENTITY, Identity, identity_of
from rondel.model.jsons import mapping
from rondel.model.marks import signature, unsigned
from rondel.model.refs import branch_or_none
from rondel.model.snapshot import Snapshot
from rondel.model.workflow import NOTHING_GIVEN, Given, SessionRef
from rondel.workflows.feature import layout
from rondel.workflows.feature.lint import Anomaly, lint, lint_meta
from rondel.workflows.feature.meta import (
    completed_phases,
    current_phase,
    due_phase,
    partial_phases,
    records,
    stamped,
    word,
)
from rondel.workflows.feature.phases import (
    ABANDONED,
    ARTIFACTS,
    COMPLETED,
    CREATE_PLAN,
    CREATE_TASKS,
    DESIGN,
    FINISH,
    HOTFIX,
    IMPLEMENT,
    PHASES,
    REVIEWED,
    SPECIFY,
    limit_of,
)
from rondel.workflows.feature.transitions import Transition, blocked, validate_transition
from rondel.workflows.feature.work import Work, read_work

HOW = ("continue", "fresh", "review")


@dataclass(frozen=True)
class Request:
    """What a person asked for last."""

    number: int = 0
    command: Annotated[str, only(("phase", "run").__contains__)] = ""
    phase: Annotated[str, only(REVIEWED.__contains__)] = ""  # one phase; empty for all
    until: Annotated[str, only(PHASES.__contains__)] = ""  # the last phase to do, of all
    auto: bool = False  # go on past a reviewer's concerns
    how: Annotated[str, only(HOW.__contains__)] = ""  # what to do with a phase that is under way
    proceed: bool = False  # a warning was seen
    before: frozenset[str] | None = None  # of all phases: those that were complete when it was asked for


@dataclass(frozen=True)
class State:
    """A feature."""

    ref: SessionRef
    files: Snapshot
    meta: Mapping[str, object]
    anomalies: tuple[Anomaly, ...]
    request: Request | None
    description: str
    checks: str = ""  # the project's tests, where the settings name them

    @property
    def damaged(self) -> bool:
        """Whether there is a `.meta.json` that nobody can read."""
        return any(a.rule == "invalid-json" for a in self.anomalies)

    @property
    def ended(self) -> bool:
        """Whether the whole feature is completed or abandoned."""
        return self.meta.get("status") in (COMPLETED, ABANDONED)

    @property
    def limit(self) -> int:
        """How many iterations a phase may have."""
        return limit_of(self.meta.get("mode"))

    @property
    def branch(self) -> str:
        """The branch the code goes to."""
        chosen = self.identity.onto if self.identity else None
        return chosen or branch_or_none(word(self.meta, "branch")) or f"feature/{self.ref.id}"

    @cached_property
    def identity(self) -> Identity | None:
        """Whose work it is, and where it was begun."""
        return identity_of(self.files.json(IDENTITY))

    @cached_property
    def current(self) -> str | None:
        """The phase completed last."""
        return current_phase(self.meta)

    @cached_property
    def due(self) -> str | None:
        """The phase that is due next."""
        return due_phase(self.meta)

    @property
    def suggested(self) -> str:
        """The phase that a person would do next: of a hotfix, which has its specification, its code."""
        due = self.due or FINISH
        early = PHASES.index(due) < PHASES.index(IMPLEMENT) and due not in self.partial
        hotfix = word(self.meta, "mode").strip().lower() == HOTFIX
        return IMPLEMENT if early and hotfix and self.files.exists(ARTIFACTS[SPECIFY]) else due

    @property
    def completed(self) -> frozenset[str]:
        """The phases completed."""
        return frozenset(completed_phases(self.meta))

    @property
    def partial(self) -> frozenset[str]:
        """The phases started and not completed."""
        return frozenset(partial_phases(self.meta))

    @cached_property
    def foreign(self) -> tuple[str, ...]:
        """The phases that are completed and that Rondel did not complete.

        They count, as the document says; an approval they are not.
        """
        over = self.completed | ({FINISH} if self.ended else frozenset())
        return tuple(p for p in PHASES if p in over and not self._made(p))

    def _made(self, phase: str) -> bool:
        folder = read_work(self.files, phase).folder
        found, mark = self.files.json(layout.signed(folder)), signature(self.files, "feature", phase, folder)
        if isinstance(found, Mapping) and mark is not None and found.get("mark") == mark:
            return True
        if not unsigned(self.files, stamped(records(self.meta).get(phase, {}), "completed")):
            return False
        if phase == FINISH:  # of the version before, which signed nothing: it was here at all
            return bool(self.files.names(".rondel"))
        return self.files.exists(layout.complete(folder))

    @cached_property
    def work(self) -> Work | None:
        """The phase that the request asks to work on now; None when there is none."""
        phase = _target(self)
        return replace(read_work(self.files, phase), configured=self.checks) if phase else None

    def reaches(self, phase: str) -> bool:
        """Whether the run that is asked for comes to this phase or goes past it."""
        if self.request is None:
            return False
        last = self.request.phase or self.request.until or PHASES[-1]
        return PHASES.index(last) >= PHASES.index(phase)

    def answer(self, path: str) -> str:
        """How a question was answered; empty while it was not."""
        value = self.files.json(path)
        return str(value.get("answer", "")) if isinstance(value, Mapping) else ""

    def transition(self, phase: str) -> Transition:
        """Whether a phase may start; a feature that ended has none that may."""
        if self.ended:
            status = word(self.meta, "status")
            return blocked(f"{self.ref.name} is {status}; start another feature")
        return validate_transition(self.current, phase, self.artifacts)

    @property
    def artifacts(self) -> dict[str, bool]:
        """Which documents are there."""
        made = {"spec": SPECIFY, "design": DESIGN, "plan": CREATE_PLAN, "tasks": CREATE_TASKS}
        return {name: self.files.exists(ARTIFACTS[phase]) for name, phase in made.items()}


def read(files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> State:
    """What the files show. Total."""
    value = files.json(layout.META)
    meta = value if isinstance(value, Mapping) else {}
    numbers = requests_in(files)
    first = mapping(files.json(request_file(numbers[0]))) if numbers else {}
    return State(
        ref,
        files,
        meta,
        lint_meta(value) if value is not None else lint(files.data(layout.META) or b""),
        _request(numbers[-1], files.json(request_file(numbers[-1]))) if numbers else None,
        word(first, "description"),
        given.checks,
    )


def _request(number: int, body: object) -> Request | None:
    """A request; None for one that asks for no work, like the start of a feature."""
    found = decode(Request, body) or Request()
    if not found.command or (found.command == "phase" and not found.phase):
        return None
    return replace(found, number=number, phase=found.phase if found.command == "phase" else "")


def _target(state: State) -> str | None:
    request = state.request
    if request is None or state.ended or state.damaged:
        return None
    if request.phase:
        return request.phase
    due = state.due
    if due not in REVIEWED or (request.until and PHASES.index(due) > PHASES.index(request.until)):
        return None
    return due
