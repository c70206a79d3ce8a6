"""Proposals: what a planner answers, checked before a file is written."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rondel.model.changes import Document, Json
from rondel.model.replies import fenced_json
from rondel.workflows.task import graph as graphs
from rondel.workflows.task import ids, layout
from rondel.workflows.task.assignment import assign
from rondel.workflows.task.schema import Task, TaskStatus, TaskType, new_task, task_from, with_status
from rondel.workflows.task.state import State
from rondel.workflows.task.validate import Finding, validate

TASKS_MAX = 200
TITLE_MAX = 200
NAMED_MAX = 20  # problems that are named in one answer
_CONTEXT = ("requirements", "focus_paths", "acceptance", "depends_on")


@dataclass(frozen=True)
class Proposal:
    """Tasks to write, by id, or what is wrong with the answer in words its author can act on."""

    tasks: Mapping[str, Document] = field(default_factory=dict)
    error: str = ""


def proposal(state: State, kind: str, text: str) -> Proposal:
    """The tasks that an answer to a request of this kind stands for."""
    found = fenced_json(text)
    if found.error:
        return Proposal(error=found.error)
    if kind == "replan":
        return _replan(state, found.value)
    if not isinstance(found.value, list) or not found.value:
        return Proposal(error="the answer must be one fenced json list with at least one task")
    if len(found.value) > TASKS_MAX:
        return Proposal(error=f"the list has {len(found.value)} tasks; at most {TASKS_MAX} are taken at once")
    for number, entry in enumerate(found.value, start=1):
        wrong = _entry_problem(entry)
        if wrong:
            return Proposal(error=f"task {number} of the list: {wrong}")
    entries = [e for e in found.value if isinstance(e, dict)]
    return _breakdown(state, entries) if kind == "breakdown" else _plan(state, entries)


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
    by_numbers = ids.index(taken)
    for task_id, made in new.items():
        above = ids.parent_of(task_id)
        if above and (there := ids.resolve(above, state.tasks, by_numbers)):
            words = f"{task_id} would be a subtask of {there}, which is there already"
            return Proposal(error=f"{words}; propose new main tasks: {ids.next_main(taken)} …")
        if above in new:
            _adopt(made, above, task_from(layout.task_file(above), new[above]))
            new[above]["status"] = str(TaskStatus.CONTAINER)
    return _checked(state, new)


def _breakdown(state: State, entries: list[Document]) -> Proposal:
    """Subtasks of one task, which becomes their container."""
    parent = state.tasks.get(state.request.task_id)
    if parent is None:
        return Proposal(error=f"there is no task {state.request.task_id}")
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
    passed = above.get("inherited")
    known = passed.get("context") if isinstance(passed, dict) else None
    inherited: list[Json] = [parent.title, *parent.requirements]
    inherited += [k for k in known if isinstance(k, str)] if isinstance(known, list) else []
    shared = above.get("shared_context")
    own = context.get("shared_context")
    context["parent"] = parent_id
    context["inherited"] = {"from": parent_id, "context": inherited}
    context["shared_context"] = {
        **(shared if isinstance(shared, dict) else {}),
        **(own if isinstance(own, dict) else {}),
    }


def _replan(state: State, value: object) -> Proposal:
    """Another definition of one task; its id, its place and what others put into it stay."""
    task = state.tasks.get(state.request.task_id)
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
    meta = entry.get("meta") if isinstance(entry.get("meta"), dict) else {}
    context = entry.get("context") if isinstance(entry.get("context"), dict) else {}
    flow = entry.get("flow_control")
    fields: dict[str, list[str]] = {}
    for name in _CONTEXT:
        given = context.get(name, entry.get(name)) if isinstance(context, dict) else None
        fields[name] = [v for v in given if isinstance(v, str)] if isinstance(given, list) else []
    kind = meta.get("type", entry.get("type")) if isinstance(meta, dict) else None
    agent = meta.get("agent", entry.get("agent")) if isinstance(meta, dict) else None
    title = " ".join(str(entry["title"]).split())
    kind = kind if isinstance(kind, str) and kind in set(TaskType) else TaskType.FEATURE
    made = new_task(
        task_id,
        title,
        kind=kind,
        agent=agent.lstrip("@") if isinstance(agent, str) and agent else assign(kind, title),
        requirements=fields["requirements"],
        focus_paths=fields["focus_paths"],
        acceptance=fields["acceptance"],
        depends_on=fields["depends_on"],
    )
    inner = made["context"]
    if isinstance(context, dict) and isinstance(inner, dict):
        given = {
            k: v for k, v in context.items() if k not in ("parent", "inherited")
        }  # its id names its place
        made["context"] = {**given, **inner}
    own = made["flow_control"]
    if isinstance(flow, dict) and isinstance(own, dict):
        made["flow_control"] = {**own, **flow}
    return made


def _checked(state: State, new: Mapping[str, Document], keep: str = "") -> Proposal:
    """The proposal, unless it breaks a rule together with the tasks that are there."""
    parsed = {t: task_from(layout.task_file(t), d) for t, d in new.items()}
    tasks = {**state.tasks, **{t: p for t, p in parsed.items() if p is not None}}
    files = {layout.task_file(t) for t in new}
    before = {(f.file, f.rule, f.message) for f in state.findings} if keep else set()
    found = [
        f
        for f in validate(tasks, graphs.build(tasks))
        if (f.file in files or f.rule == "depends-on-cycle") and (f.file, f.rule, f.message) not in before
    ]
    if found:
        return Proposal(error="\n".join(_sayings(found)))
    return Proposal(dict(new))


def _sayings(found: Iterable[Finding]) -> list[str]:
    lines = [f"- {f.file}: {f.rule}: {f.message}" for f in found]
    more = [f"- and {len(lines) - NAMED_MAX} more"] if len(lines) > NAMED_MAX else []
    return lines[:NAMED_MAX] + more
