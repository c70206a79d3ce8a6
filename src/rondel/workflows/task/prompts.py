"""Prompts: what a planner and the agent of a task are asked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources

from rondel.workflows.task import flow, ids, layout
from rondel.workflows.task.assignment import Agent
from rondel.workflows.task.schema import Task, TaskType
from rondel.workflows.task.state import NO_WORK, State
from rondel.workflows.task.variables import Variables, as_text

SUMMARY_MAX = 8_000
SUMMARIES_MAX = 60_000
OUTPUT_MAX = 20_000
_FIELD = re.compile(r"\{\{(\w+)\}\}")


def work_prompt(state: State, task: Task) -> str:
    """What the agent of a leaf is asked: its execution context, and what came before."""
    work = state.work.get(task.id, NO_WORK)
    values = flow.variables(state, task)
    context = {"task": task.document, "workflow": {"session": state.ref.id, "phase": str(state.phase)}}
    return _fill(
        "work",
        {
            "id": task.id,
            "title": task.title,
            "context": json.dumps(context, indent=2, ensure_ascii=False),
            "approach": _approach(task, values) or "None is written; decide for yourself.",
            "acceptance": _list(values.fill(a) for a in task.acceptance) or "- The requirements are met.",
            "steps": _steps(task, values) or "There were none.",
            "changed": _list(f"`{p}`" for p in work.changed)
            or "Look with `git status`: they may have changed files.",
            "before": _summaries(state, task) or "There are none.",
            "again": f"\n## The round before\n\n{work.conflict}\n" if work.conflict else "",
        },
    )


def _approach(task: Task, values: Variables) -> str:
    """The texts of the implementation approach, their references filled in."""
    given = task.properties.get("flow_control")
    approach = given.get("implementation_approach") if isinstance(given, Mapping) else None
    entries = approach if isinstance(approach, list) else [approach]
    parts = []
    for number, entry in enumerate(entries, start=1):
        if isinstance(entry, Mapping):
            lines = [f"### {number}. {entry.get('title', 'Approach')}"] if len(entries) > 1 else []
            for name, value in entry.items():
                if value and name not in ("step", "title", "depends_on", "command"):
                    lines.append(f"{str(name).replace('_', ' ').capitalize()}:\n{_items(value, values)}")
            parts.append("\n\n".join(lines))
    return "\n\n".join(parts)


def _items(value: object, values: Variables) -> str:
    if isinstance(value, list):
        return "\n".join(f"- {values.fill(as_text(v))}" for v in value)
    return values.fill(as_text(value))


def _steps(task: Task, values: Variables) -> str:
    parts = []
    for number, step in enumerate(task.steps, start=1):
        shown = values.outputs.get(step.output_to or "", "")
        body = f"\n\n[{step.output_to}]:\n\n{_quoted(_cut(shown, OUTPUT_MAX))}" if step.output_to else ""
        parts.append(f"{number}. {step.action}{body}")
    return "\n\n".join(parts)


def _summaries(state: State, task: Task) -> str:
    """The summaries of what this task depends on, as far as there is room."""
    before = sorted(state.graph.needs.get(task.id, ()), key=ids.order)
    parts, size = [], 0
    for other in before:
        name = next((n for n in layout.summary_names(other) if n in state.summaries), None)
        found = state.files.text(f"{layout.SUMMARIES}/{name}") if name else None
        if found is None:
            continue
        short = _cut(found, SUMMARY_MAX)
        size += len(short)
        if size > SUMMARIES_MAX:
            parts.append(f"More is in {layout.HOME}/{state.ref.id}/{layout.SUMMARIES}.")
            break
        parts.append(_quoted(short))
    return "\n\n".join(parts)


def proposal_prompt(state: State) -> str:
    """What the planner is asked."""
    request = state.request
    task = state.tasks.get(request.task_id)
    tasks = [{"id": t.id, "title": t.title, "depends_on": list(t.depends_on)} for t in state.tasks.values()]
    return _fill(
        request.kind,
        {
            "project": state.session.project,
            "text": request.text,
            "id": request.task_id,
            "task": json.dumps(task.document if task else {}, indent=2, ensure_ascii=False),
            "tasks": json.dumps(tasks, indent=2, ensure_ascii=False),
            "free": ids.next_main(state.names),
            "types": ", ".join(TaskType),
            "agents": ", ".join(Agent),
            "schema": _load("schema"),
        },
    )


def _fill(name: str, values: Mapping[str, str]) -> str:
    """A prompt with its fields filled in, in one pass: what a value holds is never a field."""
    return _FIELD.sub(lambda found: values.get(found[1], found[0]), _load(name))


@cache
def _load(name: str) -> str:
    return (resources.files("rondel.workflows.task") / "prompts" / f"{name}.md").read_text(encoding="utf-8")


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())


def _cut(text: str, length_max: int) -> str:
    return text if len(text) <= length_max else f"{text[:length_max]}\n… ({len(text)} characters in all)"
