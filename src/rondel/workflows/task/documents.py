"""What a session's documents say: its list and its plan, and the summaries of its tasks.

TODO_LIST.md and IMPL_PLAN.md are drawn from the task files and never read back. A summary is what a
completed task tells those that come after it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

from rondel.model.changes import Change, Document, Edit, text
from rondel.model.names import digest
from rondel.model.outcomes import Outcome
from rondel.model.times import stamp
from rondel.workflows.task import layout
from rondel.workflows.task.graph import Graph, build
from rondel.workflows.task.schema import Task, TaskStatus
from rondel.workflows.task.state import Phase, State
from rondel.workflows.task.variables import clean

OFTEN = 100  # a session of more tasks draws its list once for each such part of it
DONE, DECISIONS, NOTES = "What Was Done", "Decisions", "Notes for Future Tasks"
TEXT_MAX = 20_000
_HEADING = re.compile(r"^#{1,4}[ \t]++(.+)$", re.MULTILINE)
_LEGEND = """\
## Status Legend
- `▸` = Container task (has subtasks)
- `- [ ]` = Pending leaf task{blanks}
- `- [x]` = Completed leaf task
- Maximum 2 levels: Main tasks and subtasks only
""".format(blanks="  ")


# -- when they are drawn, and how -------------------------------------------------------


def is_drawn(state: State) -> bool:
    """Whether the documents show what the task files say."""
    return state.views == tuple(map(digest, _texts(state))) and not session_differs(state)


def due_now(state: State) -> bool:
    """Whether a task that ends is the moment to draw; a large session does not draw for each one."""
    total = len(state.graph.leaves)
    every = max(1, total // OFTEN)
    return state.frontier.completed % every == 0 or total - state.frontier.completed <= OFTEN // 4


def _texts(state: State) -> tuple[str, str]:
    topic, complexity = state.session.project, state.session.complexity
    key = f"{complexity} {topic}"
    if key not in state.texts:
        state.texts[key] = plan(topic, complexity, state.tasks, state.graph)
    return todo_list(topic, state.tasks, state.graph, state.summaries), state.texts[key]


def draw(state: State) -> list[Change]:
    """The changes that make the documents show what the task files say."""
    wanted = zip((layout.TODO, layout.PLAN), _texts(state), state.views, strict=True)
    changes: list[Change] = [text(path, new, view=True) for path, new, old in wanted if digest(new) != old]
    if session_differs(state):
        changes.append(Edit(layout.SESSION, lambda body: with_progress(body, state)))
    return changes


def session_differs(state: State) -> bool:
    """Whether the session's document does not show its phase, size and current tasks."""
    info = state.session
    return info.readable and (
        info.phase != state.phase
        or info.completed_phases != completed_phases(state.phase)
        or info.current_tasks != current_tasks(state)
        or info.stored_complexity is not info.complexity
    )


def completed_phases(phase: Phase) -> tuple[str, ...]:
    """The phases before this one."""
    order = list(Phase)
    return tuple(str(p) for p in order[: order.index(phase)])


def current_tasks(state: State) -> tuple[str, ...]:
    """The tasks that are worked on."""
    return tuple(leaf for _, _, leaf in state.frontier.active)


def with_progress(body: Document, state: State) -> Document:
    """The session's document with its phase, size and progress, and everything else as it was."""
    progress = body.get("progress")
    body["type"] = str(state.session.complexity)
    body["current_phase"] = str(state.phase)
    body["progress"] = {
        **(progress if isinstance(progress, dict) else {}),
        "completed_phases": list(completed_phases(state.phase)),
        "current_tasks": list(current_tasks(state)),
    }
    return body


# -- the list and the plan --------------------------------------------------------------


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
    name = layout.summary_among(summaries, task.id) if done else None
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
    for task_id in graph.order:
        lines += [f"  {_node(d)} --> {_node(task_id)}" for d in graph.direct[task_id]]
    return "\n".join([*lines, "```"])


def _node(task_id: str) -> str:
    return re.sub(r"\W", "_", task_id)


def _label(task: Task) -> str:
    text = f"{task.id}: {_line(task.title)[:80]}"
    return re.sub(r"[\"<>\[\]{}()|`\\#&;]", lambda m: f"#{ord(m[0])};", text)


# -- summaries --------------------------------------------------------------------------


@dataclass(frozen=True)
class Said:
    """What an agent said of its work."""

    done: str = ""
    decisions: str = ""
    notes: str = ""


def said(answer: str) -> Said:
    """The parts of an agent's last words; what stands under no known heading is what was done."""
    found: dict[str, list[str]] = {DONE: [], DECISIONS: [], NOTES: []}
    at, place = 0, DONE
    answer = answer[:TEXT_MAX]
    for heading in [*_HEADING.finditer(answer), None]:
        end = heading.start() if heading else len(answer)
        found[place].append(answer[at:end].strip())
        if heading:
            place, kept = _place(heading, place)
            at = heading.start() if kept else heading.end()
    parts = {name: "\n\n".join(t for t in texts if t) for name, texts in found.items()}
    return Said(parts[DONE], parts[DECISIONS], parts[NOTES])


def _place(heading: re.Match[str], now: str) -> tuple[str, bool]:
    """Which part a heading begins, and whether it stays in the text."""
    words = heading[1].lower()
    if re.search(r"\bnotes?\b|future|follow[- ]?up", words):
        return NOTES, False
    if "decision" in words:
        return DECISIONS, False
    if re.search(r"done|summary|implement", words):
        return DONE, False
    return now, True


def summary(task: Task, outcome: Outcome, checks: str | None) -> str:
    """The summary of a completed task."""
    words = said(outcome.text)
    facts = [f"- Agent: {outcome.agent}" if outcome.agent else ""]
    facts += [f"- Completed: {stamp(outcome.finished_at)}" if outcome.finished_at else ""]
    facts += [f"- Commit: {outcome.commit}" if outcome.commit else "- Commit: none, nothing was changed"]
    files = "\n".join(f"- `{path}`" for path in outcome.changed) or "No file was changed."
    passed = f"`{_code(checks)}` passed on the target branch." if checks and outcome.commit else ""
    sections = [
        (DONE, words.done or "The agent said nothing about it."),
        ("Files", files),
        (DECISIONS, words.decisions or "None were named."),
        ("Checks", passed or "No checks are configured, or nothing was changed."),
        (NOTES, words.notes or "None."),
    ]
    head = f"# Task Summary: {task.id} {task.title}\n\n" + "\n".join(f for f in facts if f)
    return head + "\n\n" + "\n\n".join(f"## {name}\n\n{body}" for name, body in sections) + "\n"


def declared_summary(task: Task, why: str, at: datetime, before: str) -> str:
    """The summary of a task that a person declared done; `before` is what was there of one."""
    head = f"# Task Summary: {task.id} {task.title}\n\n- Declared done by a person\n- Completed: {stamp(at)}"
    done = f"A person declared this task done; Rondel did not do it. The reason given: {why}"
    kept = f"\n\n## The summary that was there\n\n{before.strip()}" if before.strip() else ""
    return f"{head}\n\n## {DONE}\n\n{done}{kept}\n"


def _code(text: str) -> str:
    return " ".join(text.split()).replace("`", "'")[:300]
