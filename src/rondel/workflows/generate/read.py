"""What the files of a session show."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from rondel.errors import ConfigError
from rondel.model.changes import Document
from rondel.model.codec import decode, only, request_file, requests_in
from rondel.model.consent import Admits, admits_nothing
from rondel.model.jsons import mapping
from rondel.model.marks import is_theirs, signature, unsigned
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem
from rondel.model.workers import AskProgram, ask_nobody
from rondel.model.workflow import NOTHING_GIVEN, Given, SessionRef
from rondel.workflows.generate import documents, layout
from rondel.workflows.generate.layout import Paths
from rondel.workflows.generate.models import (
    FINAL,
    CycleState,
    WorkflowPhase,
    WorkflowStage,
    WorkflowState,
    WorkflowStatus,
    newest,
    ready,
)
from rondel.workflows.generate.responses import unusable

GATES = ("skip", "manual", "agent")
CHARS_MAX = 200_000
ITERATIONS_MAX = 3


@dataclass(frozen=True)
class Request:
    """What a person asked for, with the settings that held then."""

    auto: bool = False
    parallel: bool = False
    gate: Annotated[str, only(GATES.__contains__)] = "manual"
    gates: Mapping[str, str] = field(default_factory=dict)
    iterations_max: Annotated[int, Field(gt=0)] = ITERATIONS_MAX
    context_chars_max: Annotated[int, Field(gt=0)] = CHARS_MAX
    cycles: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def gate_of(self, kind: str, phase: WorkflowPhase, stage: WorkflowStage) -> str:
        """Who lets a stage pass: the most exact setting counts; `--auto` lets all pass."""
        if self.auto:
            return "skip"
        keys = (f"{kind}.{phase}.{stage}", f"{kind}.{phase}", kind, f"{phase}.{stage}", phase, stage)
        return next((self.gates[k] for k in keys if self.gates.get(k) in GATES), self.gate)

    def limit_of(self, kind: str, name: str, default: int) -> int:
        """A bound: the cycle's own, or the one for all."""
        return _count(self.cycles.get(kind, {}).get(name), default)


@dataclass(frozen=True)
class Answer:
    """What was said of a prompt or a response."""

    approved: bool
    by: str
    comment: str = ""


@dataclass(frozen=True)
class CycleView:
    """One cycle: its state, where its files are, and what they hold."""

    index: int
    cycle: CycleState
    session: WorkflowState
    paths: Paths
    files: Snapshot
    request: Request

    @property
    def prompt(self) -> str:
        """The prompt of the phase."""
        return self.paths.prompt(self.cycle.current_iteration, self.cycle.phase)

    @property
    def file(self) -> str:
        """The file of the stage."""
        if self.cycle.stage is WorkflowStage.PROMPT:
            return self.prompt
        return self.paths.response(self.cycle.current_iteration, self.cycle.phase)

    @property
    def attempt(self) -> int:
        """Which version of the file this is, from 1; those before were given up."""
        return self.cycle.retry_count + 1

    def version(self, attempt: int) -> str:
        """The name of a version of the file."""
        cycle = self.cycle
        return self.paths.version(cycle.current_iteration, cycle.phase, cycle.stage, attempt)

    @property
    def decision(self) -> str:
        """Where a person's answer to this version is."""
        return layout.decision(self.version(self.attempt))

    @property
    def gate_part(self) -> str:
        """Where an agent's answer is."""
        return layout.gate(self.version(self.attempt))

    @property
    def gate(self) -> str:
        """Who lets the stage pass."""
        return self.request.gate_of(self.cycle.type, self.cycle.phase, self.cycle.stage)

    @cached_property
    def content(self) -> str | None:
        """The stage's file, when something is in it; a copy of the prompt is no response."""
        text = self.files.text(self.file)
        if text is None or not text.strip():
            return None
        if self.cycle.stage is WorkflowStage.RESPONSE:
            asked = self.files.text(self.prompt)
            if asked is not None and asked.strip() == text.strip():
                return None
        return text

    @property
    def gives_plan(self) -> bool:
        """Whether the plan that is due is there already, written by somebody else: it is the response."""
        cycle = self.cycle
        return (
            (cycle.phase, cycle.stage) == (WorkflowPhase.PLAN, WorkflowStage.RESPONSE)
            and not (cycle.plan_approved or cycle.retry_count or self.paths.flat)
            and is_theirs(self.files, self.paths.plan)
        )

    @cached_property
    def complaint(self) -> str:
        """Why the stage's file cannot go on as it is; empty when it can."""
        if self.cycle.stage is WorkflowStage.PROMPT or self.content is None:
            return ""
        return unusable(self.cycle.phase, self.content)

    @cached_property
    def answer(self) -> Answer | None:
        """What was said of the stage's file as it is now."""
        said = self._decided(self.attempt)
        if said is not None:
            return said
        if self.gate == "skip":
            return Answer(approved=True, by="gate: skip")
        cycle = self.cycle
        is_review = (cycle.phase, cycle.stage) == (WorkflowPhase.REVIEW, WorkflowStage.RESPONSE)
        in_v2 = self.paths.flat and is_review and cycle.review_approved
        if in_v2 and cycle.review_hash == self.files.digest(self.file):
            return Answer(approved=True, by="person")
        return self._gated(self.attempt) if self.gate == "agent" else None

    def _decided(self, attempt: int) -> Answer | None:
        return parse_answer(self.files.json(layout.decision(self.version(attempt))))

    def _gated(self, attempt: int) -> Answer | None:
        return parse_answer(self.files.json(layout.gate(self.version(attempt))))

    @property
    def code(self) -> dict[str, str]:
        """The cycle's own code as it is now: the digest of each file, by its path in the session."""
        return {a.path: self.files.digest(a.path) or "" for a in newest(self.cycle.artifacts).values()}

    @property
    def is_outdated(self) -> bool:
        """Whether the review is known to be of other code than what is there now."""
        shown = self.files.json(self.paths.shown(self.cycle.current_iteration))
        is_review = (self.cycle.phase, self.cycle.stage) == (WorkflowPhase.REVIEW, WorkflowStage.RESPONSE)
        return is_review and isinstance(shown, dict) and shown != self.code

    @property
    def reviewed(self) -> Mapping[str, object]:
        """The code that the review was about: the digest of each file, by its path in the session.

        Sessions that do not say which code the reviewer was shown have that of the responses.
        """
        shown = self.files.json(self.paths.shown(self.cycle.current_iteration))
        artifacts = newest(self.cycle.artifacts).values()
        return shown if isinstance(shown, dict) else {a.path: a.sha256 for a in artifacts}

    @property
    def mark(self) -> str | None:
        """The mark of this iteration's completion; None in a session without an id."""
        return signature(self.files, "generate", self.cycle.type, str(self.cycle.current_iteration))

    @cached_property
    def made(self) -> bool:
        """Whether it was Rondel that completed the cycle."""
        found = self.files.json(self.paths.signed(self.cycle.current_iteration))
        if isinstance(found, dict) and self.mark is not None and found.get("mark") == self.mark:
            return True
        # The version before signed nothing; of another tool there is nothing of ours at all. v2 has one
        # time for the whole session.
        ended_at = self.cycle.completed_at or self.session.updated_at
        return unsigned(self.files, ended_at) and bool(self.files.names(".rondel"))

    @cached_property
    def feedback(self) -> tuple[str, ...]:
        """What a person wanted to be different, oldest first."""
        given = [self.cycle.approval_feedback or ""]
        for attempt in range(1, self.attempt):
            said = (self._decided(attempt), self._gated(attempt))
            given += [a.comment for a in said if a and not a.approved]
        return tuple(dict.fromkeys(words for words in given if words.strip()))

    @property
    def halted(self) -> bool:
        """Whether a person refused the last version and said nothing to make another one from."""
        said = self._decided(self.cycle.retry_count)
        return said is not None and not said.approved and not said.comment.strip()

    @property
    def iterations_left(self) -> int:
        """How many iterations may still follow this one."""
        limit = self.request.limit_of(self.cycle.type, "iterations_max", self.request.iterations_max)
        return limit - (self.cycle.current_iteration - self.cycle.iterations_before)


def parse_answer(found: object) -> Answer | None:
    """An answer file; what is not clearly one of the two words is none."""
    if not isinstance(found, dict) or found.get("answer") not in ("approve", "reject"):
        return None
    comment = found.get("comment")
    return Answer(
        found["answer"] == "approve",
        str(found.get("by") or "person"),
        comment if isinstance(comment, str) else "",
    )


@dataclass(frozen=True)
class State:
    """A session: its document, its cycles, what was asked, what is wrong."""

    ref: SessionRef
    files: Snapshot
    raw: Document
    session: WorkflowState | None
    request: Request
    flat: bool = False
    problems: tuple[Problem, ...] = ()
    admits: Admits = admits_nothing  # which profile of the repository's may run
    ask: AskProgram = ask_nobody  # runs it

    @cached_property
    def views(self) -> tuple[CycleView, ...]:
        """Every cycle."""
        session = self.session
        if session is None:
            return ()
        paths = [documents.FLAT if self.flat else Paths(f"{c.type}/") for c in session.cycles]
        rest = (self.files, self.request)
        return tuple(CycleView(n, c, session, paths[n], *rest) for n, c in enumerate(session.cycles))

    @cached_property
    def due(self) -> tuple[CycleView, ...]:
        """The cycles that may go on: the first that is not at its end, or every one that waits for none."""
        if self.session is None or self.session.status is WorkflowStatus.CANCELLED:
            return ()
        open_ = [v for v in self.views if v.cycle.status not in FINAL]
        if not self.request.parallel:
            open_ = open_[:1]
        running = [v for v in open_ if v.cycle.status is WorkflowStatus.IN_PROGRESS]
        return tuple(v for v in running if ready(self.session, v.cycle))

    @property
    def foreign(self) -> tuple[str, ...]:
        """The cycles that are completed and that Rondel did not complete."""
        done = (v for v in self.views if v.cycle.status is WorkflowStatus.COMPLETED)
        return tuple(v.cycle.type for v in done if not v.made)

    @property
    def code(self) -> dict[str, str]:
        """Where the code of each completed cycle is, by its path in the project; of v2 the last one."""
        if self.flat:
            last = max((v.cycle.current_iteration for v in self.views), default=0)
            return _last_iteration(self.files, last)
        done = (v.cycle for v in self.views if v.cycle.status is WorkflowStatus.COMPLETED)
        return {name: a.path for cycle in done for name, a in newest(cycle.artifacts).items()}

    @property
    def edited(self) -> dict[str, str]:
        """The code that is other code than its review was about, with its cycle."""
        found: dict[str, str] = {}
        for view in self.views:
            reviewed, folder = view.reviewed, f"{view.paths.folder}iteration-"
            for name, path in self.code.items() if reviewed else ():
                if path.startswith(folder) and reviewed.get(path) != self.files.digest(path):
                    found[name] = view.cycle.type
        return found

    @property
    def root(self) -> str:
        """The repository's folder; empty where the session is on no disk."""
        return self.files.place.removesuffix(self.ref.folder)


def read(files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> State:
    """What the files show. Total."""
    raw = files.json(layout.SESSION)
    request = read_request(files, given.settings)
    if not isinstance(raw, dict):
        missing = Problem(
            "session-invalid",
            layout.SESSION,
            "it is not a JSON object, or one that is too large or nested too deeply",
            "restore it, or start another session",
        )
        return State(ref, files, {}, None, request, problems=(missing,))
    session, problem = documents.parse(raw, files)
    problems = (problem,) if problem else ()
    flat = documents.is_v2(raw)
    return State(ref, files, raw, session, request, flat, problems, given.admits, given.ask)


def _last_iteration(files: Snapshot, last: int) -> dict[str, str]:
    for number in range(last, 0, -1):
        folder = f"iteration-{number}/code"
        names = list(layout.below(files, folder))
        if names:
            return {n.removeprefix(f"{folder}/"): n for n in names}
    return {}


def read_request(files: Snapshot, settings: Mapping[str, object] = MappingProxyType({})) -> Request:
    """What was asked last, with the settings as they are now, as far as it can be used."""
    last = max(requests_in(files), default=1)
    return decode(Request, {**mapping(files.json(request_file(last))), **settings}) or Request()


def _count(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else default


def check_settings(source: str, found: Mapping[str, object]) -> None:
    """Check `[generate]` of the settings; an error names the key and what is allowed."""
    gates = found["gates"]
    rows = {
        "gate": found["gate"],
        **({f"gates.{k}": v for k, v in gates.items()} if isinstance(gates, dict) else {}),
    }
    for key, value in rows.items():
        if value not in GATES:
            raise ConfigError(
                f"{source}: generate.{key} = {value!r} is not allowed: one of {', '.join(GATES)}"
            )
    _check_limits(source, "generate", found)
    cycles = found["cycles"]
    for name, table in cycles.items() if isinstance(cycles, dict) else ():
        if not isinstance(table, Mapping):
            raise ConfigError(f"{source}: generate.cycles.{name} must be a table")
        _check_limits(source, f"generate.cycles.{name}", table, only=True)


def _check_limits(source: str, where: str, table: Mapping[str, object], *, only: bool = False) -> None:
    limits = ("iterations_max", "context_chars_max")
    for key, value in table.items():
        if key in limits and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ConfigError(f"{source}: {where}.{key} = {value!r} is not allowed: a whole number from 1")
        if only and key not in limits:
            raise ConfigError(f"{source}: {where}.{key} is not a setting; allowed here: {', '.join(limits)}")
