"""Documents: TODO_LIST.md and IMPL_PLAN.md, drawn from the task files and never read back."""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from rondel.workflows.task import ids, layout
from rondel.workflows.task.graph import Graph, build
from rondel.workflows.task.schema import Task, TaskStatus
from rondel.workflows.task.variables import clean

_LEGEND = """\
## Status Legend
- `▸` = Container task (has subtasks)
- `- [ ]` = Pending leaf task{blanks}
- `- [x]` = Completed leaf task
- Maximum 2 levels: Main tasks and subtasks only
""".format(blanks="  ")


def of_nothing(topic: str, complexity: str) -> dict[str, str]:
    """The documents of a session that has no tasks yet."""
    nothing = build({})
    return {
        layout.TODO: todo_list(topic, {}, nothing, frozenset()),
        layout.PLAN: plan(topic, complexity, {}, nothing),
    }


def todo_list(topic: str, tasks: Mapping[str, Task], graph: Graph, summaries: AbstractSet[str]) -> str:
    """The list of all tasks with their links, in the form of the document's template."""
    blocks: list[str] = []
    after_group = False
    for task_id in graph.order:
        if task_id in graph.parent:
            continue
        under = graph.children.get(task_id, ())
        group = bool(under) or tasks[task_id].status is TaskStatus.CONTAINER
        if blocks and (group or after_group):
            blocks.append("  " if after_group else "")
        after_group = group
        blocks.append(_group(tasks[task_id]) if group else _leaf(tasks[task_id], summaries))
        blocks += [f"  {_leaf(tasks[t], summaries)}" for t in under]
    stuck = [t for t in tasks.values() if t.status is TaskStatus.BLOCKED]
    notes = [f"- {t.id} is blocked: {_line(t.error or 'no reason is recorded')}" for t in stuck]
    progress = "\n".join(["## Task Progress", *(blocks or ["No tasks yet."])])
    return clean(
        f"# Tasks: {_line(topic)}\n\n{progress}\n\n{_LEGEND}\n## Notes\n{chr(10).join(notes) or 'None.'}\n"
    )


def _group(task: Task) -> str:
    return f"▸ **{task.id}**: {_line(task.title)} → [📋](./{task.file})"


def _leaf(task: Task, summaries: AbstractSet[str]) -> str:
    done = task.status is TaskStatus.COMPLETED
    line = f"- [{'x' if done else ' '}] **{task.id}**: {_line(task.title)} → [📋](./{task.file})"
    name = next((n for n in layout.summary_names(task.id) if n in summaries), None) if done else None
    return f"{line} | [✅](./{layout.SUMMARIES}/{name})" if name else line


def _line(text: str) -> str:
    return " ".join(text.split())[:300]


def plan(topic: str, complexity: str, tasks: Mapping[str, Task], graph: Graph) -> str:
    """The plan: what it is about, what is required, and which task waits for which."""
    leaves, groups = len(graph.leaves), len(graph.children)
    size = f"{leaves} tasks to run" + (f" in {groups} groups" if groups else "")
    overview = (
        f"{_line(topic)}\n\nComplexity: {complexity}. {size}."
        if tasks
        else f"{_line(topic)}\n\nNo tasks yet."
    )
    parts = ["# Implementation Plan", f"## Overview\n\n{overview}"]
    if tasks:
        parts.append("## Requirements\n\n" + _requirements(tasks, graph))
        parts.append("## Task Structure\n\n" + _mermaid(tasks, graph))
    return clean("\n\n".join(parts) + "\n")


def _requirements(tasks: Mapping[str, Task], graph: Graph) -> str:
    parts = []
    for task_id in graph.order:
        task = tasks[task_id]
        lines = [f"### {task.id}: {_line(task.title)}", ""]
        lines += [f"- {_line(r)}" for r in task.requirements] or ["- (none written)"]
        if task.acceptance:
            lines += ["", "Accepted when:", "", *(f"- {_line(a)}" for a in task.acceptance)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _mermaid(tasks: Mapping[str, Task], graph: Graph) -> str:
    """The tasks as a graph; an arrow leads from a task to what waits for it."""
    lines = ["```mermaid", "graph TD"]
    for task_id in graph.order:
        under = graph.children.get(task_id, ())
        if under:
            lines.append(f'  subgraph {_node(task_id)}["{_label(tasks[task_id])}"]')
            lines += [f'    {_node(t)}["{_label(tasks[t])}"]' for t in under]
            lines.append("  end")
        elif task_id not in graph.parent:
            lines.append(f'  {_node(task_id)}["{_label(tasks[task_id])}"]')
    by_numbers = ids.index(graph.order)
    for task_id in graph.order:
        wanted = [ids.resolve(d, tasks, by_numbers) for d in tasks[task_id].depends_on]
        lines += [f"  {_node(d)} --> {_node(task_id)}" for d in wanted if d is not None]
    return "\n".join([*lines, "```"])


def _node(task_id: str) -> str:
    return re.sub(r"\W", "_", task_id)


def _label(task: Task) -> str:
    text = f"{task.id}: {_line(task.title)[:80]}"
    return re.sub(r"[\"<>\[\]{}()|`\\#&;]", lambda m: f"#{ord(m[0])};", text)
