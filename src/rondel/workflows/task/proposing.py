"""A proposal of tasks: what a planner is asked, and its answer, checked before a file is written."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from rondel.model.actions import Access, Ask, Workspace
from rondel.model.changes import Change, Document, Json, json_file
from rondel.model.jsons import mapping, pretty
from rondel.model.markdown import fenced_json
from rondel.model.outcomes import Outcome
from rondel.model.workflow import Step
from rondel.workflows.task import graph as graphs
from rondel.workflows.task import ids, layout
from rondel.workflows.task.schema import (
    Agent,
    Task,
    TaskStatus,
    TaskType,
    new_task,
    task_from,
    texts,
    with_status,
)
from rondel.workflows.task.state import Request, State
from rondel.workflows.task.validate import Violation, validate
from rondel.workflows.task.variables import clean
from rondel.workflows.task.working import fill, load, reopened

KINDS = ("plan", "breakdown", "replan")

TASKS_MAX = 200
TITLE_MAX = 200
NAMED_MAX = 20  # problems that are named in one answer
_CONTEXT = ("requirements", "focus_paths", "acceptance", "depends_on")


def proposing(state: State) -> Step[State] | None:
    """The proposal that was asked for last, while it is not there."""
    request = state.request
    path = layout.proposal_file(request.number, request.kind, request.task_id)
    if request.kind not in KINDS or path.rpartition("/")[2] in state.proposals:
        return None
    space = Workspace(Access.READ, base=request.base) if request.base else Workspace()
    ask = Ask(path, "task.planner", workspace=space, title=f"{request.kind} {request.task_id}".strip())

    def check(state: State, answer: str) -> str | None:
        return proposal(state, request, answer).error or None

    return Step(ask, partial(_proposed, request, path), partial(_prompt, request), check)


def _prompt(request: Request, state: State) -> str:
    task = state.tasks.get(request.task_id)
    tasks = [{"id": t.id, "title": t.title, "depends_on": list(t.depends_on)} for t in state.tasks.values()]
    return fill(
        request.kind,
        {
            "project": state.session.project,
            "text": request.text,
            "id": request.task_id,
            "task": pretty(task.document if task else {}),
            "tasks": pretty(tasks),
            "free": ids.next_main(state.names),
            "types": ", ".join(TaskType),
            "agents": ", ".join(Agent),
            "schema": load("schema"),
        },
    )


def _proposed(request: Request, path: str, state: State, outcome: Outcome) -> Sequence[Change]:
    """The tasks of a proposal, then the proposal itself: it is the commit.

    A task that is planned anew is kept aside by the engine, to the byte.
    """
    found = proposal(state, request, outcome.text) if outcome.ok else Proposal()
    if found.error or not found.tasks:
        return ()
    changes: list[Change] = []
    for task_id, body in found.tasks.items():
        old = state.tasks.get(task_id)
        if old is not None and request.kind == "replan" and outcome.finished_at:
            changes += reopened(state, task_id, outcome.finished_at, "planned anew")[:-1]
        changes.append(json_file(layout.task_file(task_id) if old is None else old.file, body))
    record = {"kind": request.kind, "tasks": list(found.tasks), "answer": clean(outcome.text)}
    return [*changes, json_file(path, record)]


# -- what an answer stands for ----------------------------------------------------------


@dataclass(frozen=True)
class Proposal:
    """Tasks to write, by id, or what is wrong with the answer in words its author can act on."""

    tasks: Mapping[str, Document] = field(default_factory=dict)
    error: str = ""


def proposal(state: State, request: Request, text: str) -> Proposal:
    """The tasks that an answer to a request stands for."""
    found = fenced_json(text)
    if found.error:
        return Proposal(error=found.error)
    if request.kind == "replan":
        return _replan(state, request, found.value)
    if not isinstance(found.value, list) or not found.value:
        return Proposal(error="the answer must be one fenced json list with at least one task")
    if len(found.value) > TASKS_MAX:
        return Proposal(error=f"the list has {len(found.value)} tasks; at most {TASKS_MAX} are taken at once")
    for number, entry in enumerate(found.value, start=1):
        wrong = _entry_problem(entry)
        if wrong:
            return Proposal(error=f"task {number} of the list: {wrong}")
    entries = [e for e in found.value if isinstance(e, dict)]
    return _breakdown(state, request, entries) if request.kind == "breakdown" else _plan(state, entries)


def _entry_problem(entry: object) -> str | None:
    if not isinstance(entry, dict):
        return "it must be an object"
    title = entry.get("title")
    if not isinstance(title, str) or not title.strip():
        return "it needs a title"
    if len(title) > TITLE_MAX:
        return f"its title has {len(title)} characters; at most {TITLE_MAX}"
    return None


def _plan(state: State, entries: list[Document]) -> Proposal:
    """New tasks beside those that are there; ids are those of the answer, or the next free ones."""
    taken = set(state.names)
    new: dict[str, Document] = {}
    for entry in entries:
        given = entry.get("id")
        task_id = given if isinstance(given, str) else ids.next_main([*taken, *new])
        if task_id in taken or task_id in new:
            return Proposal(error=f"the id {task_id} is there already; use new ids")
        new[task_id] = document(task_id, entry)
    find = ids.finder(taken)
    for task_id, made in new.items():
        above = ids.parent_of(task_id)
        if above and (there := find(above)):
            words = f"{task_id} would be a subtask of {there}, which is there already"
            return Proposal(error=f"{words}; propose new main tasks: {ids.next_main(taken)} …")
        if above in new:
            _adopt(made, above, task_from(layout.task_file(above), new[above]))
            new[above]["status"] = str(TaskStatus.CONTAINER)
    return _checked(state, new)


def _breakdown(state: State, request: Request, entries: list[Document]) -> Proposal:
    """Subtasks of one task, which becomes their container."""
    parent = state.tasks.get(request.task_id)
    if parent is None:
        return Proposal(error=f"there is no task {request.task_id}")
    new: dict[str, Document] = {}
    for entry in entries:
        given = entry.get("id")
        task_id = given if isinstance(given, str) else ids.next_sub(parent.id, [*state.names, *new])
        if ids.parent_of(task_id) != parent.id or task_id in state.tasks or task_id in new:
            return Proposal(
                error=f"{task_id!r} is no new subtask of {parent.id}; use {parent.id}.1, {parent.id}.2 …"
            )
        new[task_id] = document(task_id, entry)
        _adopt(new[task_id], parent.id, parent)
    above = copy.deepcopy(dict(parent.document))
    changed = with_status(above, parent.inner, TaskStatus.CONTAINER)  # type: ignore[arg-type] # it was JSON
    return _checked(state, {parent.id: changed, **new}, keep=parent.id)


def _adopt(child: Document, parent_id: str, parent: Task | None) -> None:
    """Give a subtask its parent, and what the parent passes on."""
    context = child["context"]
    if parent is None or not isinstance(context, dict):
        return
    above = parent.properties
    known = texts(mapping(above.get("inherited")).get("context"))
    shared = {**mapping(above.get("shared_context")), **mapping(context.get("shared_context"))}
    context["parent"] = parent_id
    context["inherited"] = {"from": parent_id, "context": [parent.title, *parent.requirements, *known]}
    context["shared_context"] = shared


def _replan(state: State, request: Request, value: object) -> Proposal:
    """Another definition of one task; its id, its place and what others put into it stay."""
    task = state.tasks.get(request.task_id)
    wrong = _entry_problem(value)
    if task is None or wrong or not isinstance(value, dict):
        return Proposal(
            error=f"the answer must be one fenced json object: {wrong or 'there is no such task'}"
        )
    if value.get("id", task.id) != task.id:
        return Proposal(error=f"the id must stay {task.id}")
    new = document(task.id, value)
    old = copy.deepcopy(dict(task.document))
    merged: Document = {**old, **new}  # type: ignore[dict-item] # it was read from JSON
    for part in ("meta", "context"):
        before, after = old.get(part), new[part]
        if isinstance(before, dict) and isinstance(after, dict):
            merged[part] = {**before, **after}
    meta = merged["meta"]
    if isinstance(meta, dict):
        meta.pop("error", None)
    return _checked(state, {task.id: merged}, keep=task.id)


def document(task_id: str, entry: Mapping[str, Json]) -> Document:
    """A proposed task as the document writes it: in its schema, or with its fields at the top."""
    meta, context = mapping(entry.get("meta")), mapping(entry.get("context"))
    kind, agent = meta.get("type", entry.get("type")), meta.get("agent", entry.get("agent"))
    title = " ".join(str(entry["title"]).split())
    kind = kind if isinstance(kind, str) and kind in set(TaskType) else TaskType.FEATURE
    made = new_task(
        task_id,
        title,
        kind=kind,
        agent=agent.lstrip("@") if isinstance(agent, str) and agent else None,
        **{name: texts(context.get(name, entry.get(name))) for name in _CONTEXT},
    )
    given = {k: v for k, v in context.items() if k not in ("parent", "inherited")}  # its id names its place
    made["context"] = {**given, **mapping(made["context"])}
    made["flow_control"] = {**mapping(made["flow_control"]), **mapping(entry.get("flow_control"))}
    return made


def _checked(state: State, new: Mapping[str, Document], keep: str = "") -> Proposal:
    """The proposal, unless it breaks a rule together with the tasks that are there."""
    parsed = {t: task_from(layout.task_file(t), d) for t, d in new.items()}
    tasks = {**state.tasks, **{t: p for t, p in parsed.items() if p is not None}}
    files = {layout.task_file(t) for t in new}
    before = {(f.file, f.rule, f.message) for f in state.violations} if keep else set()
    found = [
        f
        for f in validate(tasks, graphs.build(tasks))
        if (f.file in files or f.rule == "depends-on-cycle") and (f.file, f.rule, f.message) not in before
    ]
    if found:
        return Proposal(error="\n".join(_sayings(found)))
    return Proposal(dict(new))


def _sayings(found: Iterable[Violation]) -> list[str]:
    lines = [f"- {f.file}: {f.rule}: {f.message}" for f in found]
    more = [f"- and {len(lines) - NAMED_MAX} more"] if len(lines) > NAMED_MAX else []
    return lines[:NAMED_MAX] + more
