"""Schema: what a task file says, whatever shape it was written in.

The document's shape is read as it is; the shapes that tools of this family have used are
read too, and what departs from the document is noted, never rewritten.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from rondel.model.changes import Document, Json
from rondel.model.jsons import mapping
from rondel.workflows.task.preanalysis import AnalysisStep, steps_from

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
COMPLETION = "completion"  # in `meta`: who completed the task, and the mark of that
FIELDS = ("id", "title", "status", "meta", "context", "flow_control")
NOTHING: Mapping[str, object] = MappingProxyType({})


class TaskStatus(StrEnum):
    """The status of a task."""

    PENDING = "pending"
    ACTIVE = "active"
    COMPLETED = "completed"
    BLOCKED = "blocked"
    CONTAINER = "container"


OPEN = (TaskStatus.PENDING, TaskStatus.ACTIVE)  # what may still be worked on


class TaskType(StrEnum):
    """The types of task that the document knows."""

    FEATURE = "feature"
    BUGFIX = "bugfix"
    REFACTOR = "refactor"
    TEST = "test"
    DOCS = "docs"


class Agent(StrEnum):
    """The agents that tasks are assigned to; each is a role of `rondel.toml`, as `task.<agent>`."""

    PLANNING = "planning-agent"
    CODE = "code-developer"
    TEST = "code-review-test-agent"
    REVIEW = "review-agent"


_BY_TYPE = {"test": Agent.TEST}
_BY_WORD = (
    (Agent.REVIEW, re.compile(r"\b(review|audit|inspect)", re.IGNORECASE)),
    (Agent.PLANNING, re.compile(r"\b(plan|design|architect|research|investigat|analy[sz]e)", re.IGNORECASE)),
    (Agent.TEST, re.compile(r"\b(tests?|testing|coverage|e2e|qa)\b", re.IGNORECASE)),
)
_OTHER_STATUS = {
    **dict.fromkeys(("in_progress", "in-progress", "running", "doing", "started"), TaskStatus.ACTIVE),
    **dict.fromkeys(("done", "complete", "finished"), TaskStatus.COMPLETED),
    **dict.fromkeys(("todo", "open", "planned", "not_started", "ready"), TaskStatus.PENDING),
    **dict.fromkeys(("failed", "error", "skipped", "cancelled", "canceled"), TaskStatus.BLOCKED),
}


@dataclass(frozen=True)
class Note:
    """How a file departs from the document, under the integrity rule it touches, if any."""

    rule: str
    message: str


@dataclass(frozen=True)
class Task:
    """One task, as its file says it."""

    file: str
    id: str
    title: str
    status: TaskStatus
    type: str
    agent: str
    requirements: tuple[str, ...]
    focus_paths: tuple[str, ...]
    acceptance: tuple[str, ...]
    parent: str | None
    depends_on: tuple[str, ...]
    steps: tuple[AnalysisStep, ...]
    target_files: tuple[str, ...]
    error: str
    document: Mapping[str, object]  # as the file has it
    inner: tuple[str, ...]  # where in the document the task is: ("task",) in a wrapper
    notes: tuple[Note, ...] = ()

    @property
    def body(self) -> Mapping[str, object]:
        """The task in its document."""
        return _inner(self.document, self.inner)

    @property
    def stated(self) -> TaskStatus:
        """The status that its file says; `status` is the one that counts."""
        return _status(self.body.get("status"))[0]

    @property
    def mark(self) -> object:
        """The engine's mark of its completion; None when there is none."""
        return self._completion.get("mark")

    @property
    def completed_by(self) -> object:
        """Who completed it: `rondel`, or `person` where one declared it done; None when that is not known."""
        return self._completion.get("by")

    @property
    def commit(self) -> str:
        """The commit that it was completed with; empty where nothing was changed, or none is on record."""
        found = self._completion.get("commit")
        return found if isinstance(found, str) and _COMMIT.fullmatch(found) else ""

    @property
    def _completion(self) -> Mapping[str, object]:
        return mapping(mapping(self.body.get("meta")).get(COMPLETION))

    @property
    def properties(self) -> Mapping[str, object]:
        """What a reference in its texts may name: its fields, those of its context and of its meta."""
        body = self.body
        named: dict[str, object] = {
            "id": self.id,
            "title": self.title,
            "status": str(self.status),
            "type": self.type,
            "agent": self.agent,
            "parent": self.parent or "",
            "depends_on": list(self.depends_on),
            "focus_paths": list(self.focus_paths),
            "target_files": list(self.target_files),
        }
        return {**body, **mapping(body.get("meta")), **mapping(body.get("context")), **named}


def task_from(file: str, value: object) -> Task | None:
    """The task that a file holds; None when it holds nothing like a task."""
    if not isinstance(value, Mapping):
        return None
    inner = ("task",) if isinstance(value.get("task"), Mapping) and "id" not in value else ()
    body = _inner(value, inner)
    notes = [Note("shape", "the task is inside 'task'")] if inner else []
    meta, context, flow = (mapping(body.get(k)) for k in ("meta", "context", "flow_control"))
    task_id = _first(body, ("id", "task_id"))
    task_id = (
        task_id if isinstance(task_id, str) and task_id else file.rpartition("/")[2].removesuffix(".json")
    )
    notes += _missing(body)
    status, status_notes = _status(body.get("status"))
    steps, step_notes = steps_from(flow.get("pre_analysis"))
    title = body.get("title")
    title = title if isinstance(title, str) else _plain(_first(body, ("name", "description"))) or task_id
    kind = _plain(_first(meta, ("type",)) or body.get("type"))
    agent = _plain(_first(meta, ("agent",)) or body.get("agent")).lstrip("@")
    depends_on, depends_notes = _depends_on(body, context)
    relations = mapping(body.get("relations"))
    return Task(
        file=file,
        id=task_id,
        title=" ".join(title.split()),
        status=status,
        type=kind or TaskType.FEATURE,
        agent=agent or assign(kind, title),
        requirements=_texts(context.get("requirements")),
        focus_paths=_texts(context.get("focus_paths", _split(body.get("paths")))),
        acceptance=_texts(context.get("acceptance")),
        parent=_plain(context.get("parent") or body.get("parent_id") or relations.get("parent")) or None,
        depends_on=depends_on,
        steps=steps,
        target_files=_texts(flow.get("target_files")),
        error=_plain(meta.get("error")),
        document=value,
        inner=inner,
        notes=(*notes, *status_notes, *depends_notes, *_kinds(kind, agent), *_flow(flow, step_notes)),
    )


def _status(value: object) -> tuple[TaskStatus, list[Note]]:
    words = f"status is {value!r}, not one of {', '.join(TaskStatus)}"
    if not isinstance(value, str):
        return TaskStatus.PENDING if value is None else TaskStatus.BLOCKED, (
            [] if value is None else [Note("status", words)]
        )
    if value in set(TaskStatus):
        return TaskStatus(value), []
    known = _OTHER_STATUS.get(value.strip().lower())
    if known is None:
        return TaskStatus.BLOCKED, [Note("status", f"{words}; the task does not run until it is")]
    return known, [Note("status", f"{words}; read as {known}")]


def _missing(body: Mapping[str, object]) -> Iterable[Note]:
    """The core fields that are not there, or not what they must be."""
    for name in FIELDS:
        wants = str if name in FIELDS[:3] else Mapping
        if name not in body:
            instead = " ('task_id' is read instead)" if name == "id" and "task_id" in body else ""
            yield Note("required-fields", f"{name} is missing{instead}")
        elif not isinstance(body[name], wants):
            kind = "a text" if wants is str else "an object"
            yield Note("required-fields", f"{name} must be {kind}")


def _depends_on(
    body: Mapping[str, object], context: Mapping[str, object]
) -> tuple[tuple[str, ...], list[Note]]:
    places: list[tuple[str, object]] = [
        ("context.depends_on", context.get("depends_on")),
        ("depends_on", body.get("depends_on")),
        ("context.dependencies", context.get("dependencies")),
        ("dependencies", body.get("dependencies")),
        ("relations.dependencies", mapping(body.get("relations")).get("dependencies")),
    ]
    for name, value in places:
        if isinstance(value, Mapping):
            value = value.get("upstream") or value.get("depends_on")  # noqa: PLW2901 - one level deeper
        found = _texts(value)
        if isinstance(value, list):  # what is no text is no id of any task, and stops this one
            found = tuple(v if isinstance(v, str) else json.dumps(v) for v in value)
        if found:
            other = (
                []
                if name == "context.depends_on"
                else [Note("shape", f"{name} is read as context.depends_on")]
            )
            return tuple(dict.fromkeys(found)), other
    return (), []


def _kinds(kind: str, agent: str) -> Iterable[Note]:
    if kind and kind not in set(TaskType):
        yield Note("shape", f"meta.type is {kind!r}, not one of {', '.join(TaskType)}")
    if agent and agent not in set(Agent):
        yield Note("shape", f"meta.agent is {agent!r}, not one of {', '.join(Agent)}")


def _flow(flow: Mapping[str, object], step_problems: Iterable[str]) -> Iterable[Note]:
    for words in step_problems:
        yield Note("flow-control", words)
    approach = flow.get("implementation_approach")
    if isinstance(approach, list):
        yield Note("shape", "implementation_approach is a list; its steps are given to the agent in order")
    elif approach is not None and not isinstance(approach, Mapping):
        yield Note("flow-control", "implementation_approach must be an object")


def _inner(value: Mapping[str, object], inner: tuple[str, ...]) -> Mapping[str, object]:
    for name in inner:
        value = mapping(value.get(name))
    return value


def _first(body: Mapping[str, object], names: tuple[str, ...]) -> object:
    return next((body[n] for n in names if body.get(n) is not None), None)


def _plain(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def texts(value: object) -> tuple[str, ...]:
    """The texts of a JSON list; nothing where it is none."""
    return tuple(v for v in value if isinstance(v, str)) if isinstance(value, list) else ()


def _texts(value: object) -> tuple[str, ...]:
    """The same, where one text stands for a list of one."""
    return ((value,) if value.strip() else ()) if isinstance(value, str) else texts(value)


def _split(value: object) -> object:
    return [part.strip() for part in value.split(";")] if isinstance(value, str) and value else None


def new_task(
    task_id: str,
    title: str,
    *,
    kind: str = TaskType.FEATURE,
    agent: str | None = None,
    requirements: Iterable[str] = (),
    focus_paths: Iterable[str] = (),
    acceptance: Iterable[str] = (),
    depends_on: Iterable[str] = (),
) -> Document:
    """A task as the document writes it."""
    return {
        "id": task_id,
        "title": title,
        "status": str(TaskStatus.PENDING),
        "meta": {"type": str(kind), "agent": agent or assign(kind, title)},
        "context": {
            "requirements": list(requirements),
            "focus_paths": list(focus_paths),
            "acceptance": list(acceptance),
            "depends_on": list(depends_on),
        },
        "flow_control": {
            "pre_analysis": [],
            "implementation_approach": {
                "task_description": title,
                "modification_points": [],
                "logic_flow": [],
            },
            "target_files": [],
        },
    }


def with_status(
    document: Document,
    inner: tuple[str, ...],
    status: TaskStatus,
    error: str = "",
    completion: Mapping[str, Json] = MappingProxyType({}),
) -> Document:
    """A task's file with another status, and everything else as it was."""
    body = document
    for name in inner:
        deeper = body.get(name)
        body = deeper if isinstance(deeper, dict) else body
    body["status"] = str(status)
    for name, value in (("error", error), (COMPLETION, dict(completion))):
        meta = body.get("meta")
        if value:
            if not isinstance(meta, dict):
                meta = body["meta"] = {}
            meta[name] = value
        elif isinstance(meta, dict):
            meta.pop(name, None)
    return document


def assign(kind: str, title: str) -> Agent:
    """The agent for a task: by its type where that says it, then by its title, else the developer.

    A title counts by its first word that says what to do: "Implement the review page" is
    implementation.
    """
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    first = re.match(
        r"\s*(implement|build|add|create|fix|write|update|refactor|remove|migrate)\b", title, re.IGNORECASE
    )
    words = title[first.end() :] if first else title
    for agent, pattern in _BY_WORD:
        if pattern.match(title.lstrip()) or (not first and pattern.search(words)):
            return agent
    if first and _BY_WORD[2][1].search(words) and first[1].lower() in ("write", "add", "create", "update"):
        return Agent.TEST
    return Agent.CODE
