"""Validation: the integrity rules of the document, each under its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from rondel.errors import UnsafePath
from rondel.model.names import inside, is_safe_name
from rondel.workflows.task import ids
from rondel.workflows.task.graph import Graph, cycles
from rondel.workflows.task.preanalysis import OnError
from rondel.workflows.task.schema import Task
from rondel.workflows.task.variables import Variables, prepare

DEPENDS_ON = "depends-on-exists"
RULES = (
    *("id-unique", "id-format", "parent-exists", "depth", "status", "required-fields", "focus-paths"),
    *("flow-control", DEPENDS_ON, "depends-on-cycle"),
)
_WILD = re.compile(r"[*?\[\]{}]")


@dataclass(frozen=True)
class Violation:
    """One broken rule in one file. `stops` says that the task cannot run as it is."""

    file: str
    rule: str
    message: str
    stops: bool = False


def validate(
    tasks: Mapping[str, Task],
    graph: Graph,
    doubles: Sequence[Task] = (),
    unread: Mapping[str, str] = MappingProxyType({}),
) -> list[Violation]:
    """Everything that is wrong with a session's tasks.

    `doubles` have an id that another task has; `unread` are files, by id, that cannot be read.
    """
    found = [
        Violation(t.file, "id-unique", f"{t.id} is the id of {tasks[t.id].file} too", stops=True)
        for t in doubles
        if t.id in tasks
    ]
    found += _same_numbers(tasks)
    find, find_unread = ids.finder(graph.order), ids.finder(unread)

    def why_not(task_id: str) -> str:
        """Why a task that is named is none: its file is missing, or it is there and cannot be read."""
        there = find_unread(task_id)
        return f"{unread[there]} cannot be read" if there else f"there is no {task_id}.json"

    for task in (tasks[task_id] for task_id in graph.order):
        found += [*one(task), *_relations(task, graph, find, why_not)]
    for cycle in cycles(graph):
        way = " → ".join([*cycle, cycle[0]])
        leaf = next((t for t in cycle if t in graph.needs), cycle[0])  # only leaves can be stopped
        found.append(
            Violation(tasks[leaf].file, "depends-on-cycle", f"{way} wait for each other", stops=True)
        )
    return found


def _same_numbers(tasks: Mapping[str, Task]) -> Iterable[Violation]:
    seen: dict[ids.Numbers, str] = {}
    for task_id in sorted(tasks, key=ids.order):
        parts = ids.numbers(task_id)
        if parts and seen.setdefault(parts, task_id) != task_id:
            yield Violation(tasks[task_id].file, "id-unique", f"{task_id} is the same task as {seen[parts]}")


def one(task: Task) -> list[Violation]:
    """What is wrong with a task by itself."""
    found = [Violation(task.file, n.rule, n.message) for n in task.notes if n.rule in RULES]
    found += _id(task)
    found += [Violation(task.file, "focus-paths", words) for words in _focus(task)]
    found += [Violation(task.file, "flow-control", words, stops=True) for words in flow_problems(task)]
    return found


def _id(task: Task) -> Iterable[Violation]:
    name = task.file.rpartition("/")[2].removesuffix(".json")
    parts = ids.numbers(task.id)
    if not is_safe_name(task.id):
        yield Violation(task.file, "id-format", f"{task.id!r} is not IMPL-N or IMPL-N.M", stops=True)
    elif parts and len(parts) > ids.LEVELS_MAX:
        yield Violation(
            task.file, "depth", f"{task.id} is {len(parts)} levels deep; at most 2 are", stops=True
        )
    elif not ids.is_well_formed(task.id):
        yield Violation(task.file, "id-format", f"{task.id!r} is not IMPL-N or IMPL-N.M")
    elif name != task.id:
        yield Violation(task.file, "id-format", f"the file of {task.id} must be {task.id}.json", stops=True)


def _focus(task: Task) -> Iterable[str]:
    context = task.body.get("context")
    given = context.get("focus_paths") if isinstance(context, Mapping) else None
    if given is not None and not isinstance(given, list):
        yield "context.focus_paths must be a list of paths"
    yield from filter(None, map(path_problem, given if isinstance(given, list) else ()))


def path_problem(path: object) -> str | None:
    """What is wrong with a path of the project; None when it is one."""
    if not isinstance(path, str) or not path.strip():
        return f"{path!r} is not a path"
    if path == ".":
        return None
    if _WILD.search(path):
        return f"{path!r} has wildcards; name folders and files as they are"
    if path.startswith("./"):
        return f"{path!r} must be written from the project's root, as {path[2:]!r}"
    try:
        inside(path)
    except UnsafePath:
        return f"{path!r} is not inside the project"
    return None


def flow_problems(task: Task) -> list[str]:
    """Why a task's steps cannot run: references to nothing, values in places where they would be code."""
    found = []
    outputs: dict[str, str] = {}
    properties = task.properties
    for number, step in enumerate(task.steps, start=1):
        problem = step.unusable if step.on_error is not OnError.SKIP else ""
        if not step.unusable:
            problem = prepare(step.scripts, Variables(properties, outputs)).problem
        if problem:
            found.append(f"step {number}: {problem}")
        if step.output_to:
            outputs[step.output_to] = ""
    return found


def _relations(
    task: Task, graph: Graph, find: ids.Find, why_not: Callable[[str], str]
) -> Iterable[Violation]:
    for name in dict.fromkeys([task.parent, ids.parent_of(task.id)]):
        if name and find(name) is None:
            words = f"{task.id} has the parent {name}, and {why_not(name)}"
            yield Violation(task.file, "parent-exists", words)
    above = graph.parent.get(task.id)
    if above is not None and above in graph.parent:
        words = f"{task.id} is under {above}, which is a subtask itself"
        yield Violation(task.file, "depth", words, stops=True)
    for lost in graph.missing.get(task.id, ()):
        words = f"{task.id} depends on {lost}, and {why_not(lost)}"
        yield Violation(task.file, DEPENDS_ON, words, stops=True)
