"""Plans: what the exploration planner proposes, checked before a task runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pydantic import ValidationError

from rondel.errors import UnsafePath
from rondel.model.markdown import fenced_json
from rondel.model.names import inside
from rondel.workflows.cycle.documents import Doc, first_fault
from rondel.workflows.cycle.models import Effort, PlanTask

TASKS_MAX = 500
WEIGHT = {Effort.SMALL: 1, Effort.MEDIUM: 2, Effort.LARGE: 4}
_ID = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_-]{0,39}$")


@dataclass(frozen=True)
class Proposal:
    """A plan that can be carried out, or what is wrong with it in words its author can act on."""

    tasks: tuple[PlanTask, ...] = ()
    effort: str = ""
    critical_path: tuple[str, ...] = ()
    error: str = ""

    def section(self, version: str, at: str) -> Doc:
        """The plan as the state and its file hold it."""
        return {
            "version": version,
            "tasks": [task.document() for task in self.tasks],
            "total_estimated_effort": self.effort,
            "critical_path": list(self.critical_path),
            "last_updated": at,
        }


def parse(text: str) -> Proposal:
    """The plan in a reply: its last fenced `json` block."""
    block = fenced_json(text)
    return Proposal(error=block.error) if block.error else check(block.value)


def check(value: object) -> Proposal:
    """A plan from JSON: an object with `tasks`, or the list of tasks alone."""
    given: Mapping[str, Any] = value if isinstance(value, dict) else {"tasks": value}
    raw = given.get("tasks")
    if not isinstance(raw, list) or not raw:
        return Proposal(error='the plan needs "tasks", a list with at least one task')
    if len(raw) > TASKS_MAX:
        return Proposal(error=f"the plan has {len(raw)} tasks; at most {TASKS_MAX} are allowed")
    tasks = []
    for i, item in enumerate(raw):
        task = _task(item, f"tasks[{i}]")
        if isinstance(task, str):
            return Proposal(error=task)
        tasks.append(task)
    wrong = _wrong_ids(tasks) or _wrong_order(tasks)
    if wrong:
        return Proposal(error=wrong)
    ids = {t.id for t in tasks}
    path = given.get("critical_path")
    named = isinstance(path, list) and path and all(isinstance(p, str) and p in ids for p in path)
    effort = given.get("total_estimated_effort")
    return Proposal(
        tuple(tasks),
        effort if isinstance(effort, str) and effort else total_effort(tasks),
        tuple(path) if named and isinstance(path, list) else critical_path(tasks),
    )


def _task(item: object, where: str) -> PlanTask | str:
    if not isinstance(item, dict):
        return f"{where} is not an object"
    known: dict[str, Any] = {**item, "status": "pending"}
    known.pop("assigned_to", None)
    if isinstance(known.get("effort"), str):
        known["effort"] = known["effort"].strip().lower()
    try:
        task = PlanTask.model_validate(known)
    except ValidationError as e:
        return f"{where}: {first_fault(e)}"
    if not _ID.match(task.id):
        return f"{where}: id {task.id!r} is not usable; use letters, digits, '-' and '_', like TASK-001"
    if not task.description.strip():
        return f"{where}: {task.id} has no description"
    try:
        task.files = [inside(f.removeprefix("./"), f"{task.id}: file") for f in task.files]
    except UnsafePath as e:
        return str(e)
    return task


def _wrong_ids(tasks: Sequence[PlanTask]) -> str:
    seen: dict[str, str] = {}
    for task in tasks:
        # A file system, or a question's id, may not tell them apart.
        alike = task.id.casefold().replace("-", "_")
        if alike in seen:
            return f"the id {task.id} comes twice" + (f", as {seen[alike]}" if seen[alike] != task.id else "")
        seen[alike] = task.id
    known = {t.id for t in tasks}
    for task in tasks:
        for needed in task.depends_on:
            if needed not in known:
                return f"{task.id} depends on {needed!r}, which is not in the plan"
    return ""


def _wrong_order(tasks: Sequence[PlanTask]) -> str:
    try:
        TopologicalSorter({t.id: t.depends_on for t in tasks}).prepare()
    except CycleError as e:
        return f"the tasks wait for each other: {' → '.join(e.args[1])}"
    return ""


def total_effort(tasks: Sequence[PlanTask]) -> str:
    """`2 small, 1 large`."""
    counts = {e: sum(t.effort is e for t in tasks) for e in Effort}
    return ", ".join(f"{n} {e}" for e, n in counts.items() if n)


def critical_path(tasks: Sequence[PlanTask]) -> tuple[str, ...]:
    """The chain of dependencies with the most effort."""
    by_id = {t.id: t for t in tasks}
    best: dict[str, tuple[int, tuple[str, ...]]] = {}
    for task_id in TopologicalSorter({t.id: t.depends_on for t in tasks}).static_order():
        task = by_id[task_id]
        before = max((best[d] for d in task.depends_on), default=(0, ()))
        best[task_id] = (before[0] + WEIGHT[task.effort], (*before[1], task_id))
    return max(best.values(), default=(0, ()))[1]
