"""What the four agents are asked, and what is wrong with an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources

from rondel.model.actions import Ask
from rondel.workflows.cycle import layout, plans
from rondel.workflows.cycle.feedback import due_for
from rondel.workflows.cycle.models import CycleState, FeedbackEntry
from rondel.workflows.cycle.results import ResultStatus, parse_phase_result, status_of, without_phase_result
from rondel.workflows.cycle.state import State, TaskView, Turn
from rondel.workflows.cycle.validating import coverage_words
from rondel.workflows.cycle.values import mappings

SECTION_MAX = 60_000
ENTRIES_MAX = 200


def prompt(state: State, ask: Ask) -> str:
    """What to ask an agent."""
    turn, cycle = state.turn, state.cycle
    if turn is None or cycle is None:
        raise ValueError(f"nothing of this cycle is under way: {ask.path}")
    values = {
        "iteration": str(turn.number),
        "max_iterations": str(cycle.max_iterations),
        "description": _bounded(cycle.description),
        "decisions": _decisions(cycle),
    }
    number = turn.number
    if ask.path == layout.requirements(number):
        return _fill(
            "ra", values | _said(state, turn, "ra") | _file(state, "requirements", layout.REQUIREMENTS)
        )
    if ask.path == layout.exploration(number):
        return _fill(
            "explore", values | _said(state, turn, "ep") | _file(state, "exploration", layout.EXPLORATION)
        )
    values |= _file(state, "requirements", layout.REQUIREMENTS) | {"tests": _tests(state, cycle)}
    if ask.path == layout.plan(number):
        values |= _file(state, "exploration", layout.EXPLORATION) | _said(state, turn, "ep")
        values |= {
            "developer_feedback": _entries("What the code developer must mend", due_for(state, turn, "cd"))
        }
        return _fill("plan", values | {"plan": _former_plan(state)})
    if ask.path == layout.validation(number):
        return _fill(
            "validate", values | _said(state, turn, "vas") | {"plan": _plan(turn), "changes": _changes(turn)}
        )
    view = next(v for v in turn.tasks if ask.path == layout.task(number, v.task.id, v.number))
    values |= _file(state, "exploration", layout.EXPLORATION) | _said(state, turn, "cd")
    return _fill(
        "code", values | {"plan": _plan(turn), "conflict": _conflict(state, turn, view)} | _task(view)
    )


def check(state: State, ask: Ask, text: str) -> str | None:
    """What is wrong with an answer, in words its author can act on."""
    phase = ask.role.rpartition(".")[2]
    result = parse_phase_result(text)
    if result is None:
        return (
            "it has no PHASE_RESULT block with a phase and a status; end it with the block you were given, "
            f"beginning with the line `PHASE_RESULT:`, then `- phase: {phase}` and `- status: …`"
        )
    if str(result["phase"]).casefold() != phase:
        return f"its PHASE_RESULT says phase {result['phase']!r}; yours is {phase!r}"
    status = status_of(result)
    if status is None:
        words = ", ".join(ResultStatus)
        return f"its PHASE_RESULT says status {result['status']!r}; choose one of: {words}"
    if status is ResultStatus.FAILED:
        return None
    if state.turn is not None and ask.path == layout.plan(state.turn.number):
        return plans.parse(text).error or None
    if phase != "cd" and not without_phase_result(text).strip():
        return "it has nothing but the PHASE_RESULT block; the text before it becomes the file"
    return None


# -- the parts of a prompt ----------------------------------------------------------------------


def _file(state: State, name: str, path: str) -> dict[str, str]:
    text = state.files.text(path)
    return {name: _section(f"{name.capitalize()} (`{path}`)", text) if text else ""}


def _said(state: State, turn: Turn, agent: str) -> dict[str, str]:
    return {"feedback": _entries("What was said to you", due_for(state, turn, agent))}


def _entries(title: str, entries: Sequence[FeedbackEntry]) -> str:
    lines = [f"- {e.type.value}, from {e.source}: {_indented(e.content)}" for e in entries[-ENTRIES_MAX:]]
    return _section(title, "\n".join(lines)) if lines else ""


def _decisions(cycle: CycleState) -> str:
    lines = [
        f"- {_indented(d.description)} → {d.chosen_option}"
        for d in cycle.coordination.pending_decisions
        if d.chosen_option
    ]
    return _section("What was decided", "\n".join(lines)) if lines else ""


def _tests(state: State, cycle: CycleState) -> str:
    """The latest test run, measured."""
    found = cycle.test_results
    if found is None:
        return ""
    coverage = coverage_words(state, found.coverage)
    lines = [f"{found.total_tests} tests, {found.pass_rate:g} % passed, {coverage}."]
    run = state.turn.tests if state.turn else None
    if run is None:
        lines += [f"- failed: {name}" for name in found.failed_tests[:ENTRIES_MAX]]
        return _section("The last test run, of the iteration before", "\n".join(lines))
    failures = mappings(run, "failures")[:ENTRIES_MAX]
    lines += [f"- failed: {f.get('name')}: {f.get('message')}" for f in failures]
    if run.get("problem"):
        lines.append(f"- {run['problem']}")
    output = str(run.get("output", ""))[-4000:]
    return _section("The test run", "\n".join([*lines, "", "````", output.replace("````", "'''"), "````"]))


def _former_plan(state: State) -> str:
    text = state.files.text(layout.PLAN)
    return _section("The plan of the iteration before", f"```json\n{text}\n```") if text else ""


def _plan(turn: Turn) -> str:
    lines = [
        f"- {v.task.id} ({v.stage.value}"
        + (f", after {', '.join(v.task.depends_on)}" if v.task.depends_on else "")
        + f"): {_indented(v.task.description)}"
        for v in turn.tasks
    ]
    return _section("The whole plan", "\n".join(lines)) if lines else ""


def _changes(turn: Turn) -> str:
    lines = [f"- {f.get('action')} {f.get('file')} ({v.task.id})" for v in turn.tasks for f in v.files]
    return _section("What was changed in this iteration", "\n".join(lines)) if lines else ""


def _task(view: TaskView) -> dict[str, str]:
    lines = [view.task.description.strip(), "", f"Effort: {view.task.effort.value}."]
    if view.task.files:
        lines.append(f"Files: {', '.join(view.task.files)}.")
    if view.task.depends_on:
        lines.append(f"It builds on {', '.join(view.task.depends_on)}, whose work is in your copy.")
    return {"task_id": view.task.id, "task": _bounded("\n".join(lines))}


def _conflict(state: State, turn: Turn, view: TaskView) -> str:
    """What a task that is worked on again must know of its first try."""
    if view.number == 1 or state.cycle is None:
        return ""
    result = state.files.json(layout.task_result(turn.number, view.task.id, view.number - 1))
    body: Mapping[str, object] = result if isinstance(result, dict) else {}
    blockers = {b.id: b for b in state.cycle.coordination.blockers}
    blocker = blockers.get(str(body.get("blocker")))
    lines = [
        f"The first edit is commit {body.get('commit')} (see it with `git show`).",
        blocker.description if blocker else "",
        f"How to resolve it: {blocker.resolution}" if blocker and blocker.resolution else "",
        "Your copy holds what the others did. Do the task on top of it; lose nothing of theirs.",
    ]
    return _section("This task was worked on before", "\n\n".join(line for line in lines if line))


def _section(title: str, text: str) -> str:
    return f"## {title}\n\n{_bounded(text.strip())}"


def _bounded(text: str) -> str:
    if len(text) <= SECTION_MAX:
        return text
    return f"{text[:SECTION_MAX]}\n\n(… {len(text) - SECTION_MAX} more characters are left out here.)"


def _indented(text: str) -> str:
    return text.strip().replace("\n", "\n  ")


def _fill(name: str, values: Mapping[str, str]) -> str:
    filled = re.sub(r"\{\{(\w+)\}\}", lambda m: values.get(m[1], ""), _template(name))
    return re.sub(r"\n{3,}", "\n\n", filled)


@cache
def _template(name: str) -> str:
    return (
        resources.files("rondel.workflows.cycle")
        .joinpath("prompts", f"{name}.md")
        .read_text(encoding="utf-8")
    )
