"""What the code developer leaves: a report per task, a line per changed file, a blocker per conflict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rondel.model.changes import Append, Change, text
from rondel.model.cut import cut
from rondel.model.outcomes import Ended, Outcome
from rondel.workflows.cycle import layout, transitions
from rondel.workflows.cycle.documents import Doc, Step
from rondel.workflows.cycle.leave import edit_plan, json_file, notes, publish
from rondel.workflows.cycle.questions import raised
from rondel.workflows.cycle.results import (
    ResultStatus,
    Value,
    parse_phase_result,
    status_of,
    texts,
    without_phase_result,
)
from rondel.workflows.cycle.state import Stage, State, TaskView, Turn
from rondel.workflows.cycle.values import mapping
from rondel.workflows.cycle.versions import of_iteration
from rondel.workflows.cycle.words import ChangeAction

ERROR_MAX = 1000


def worked(state: State, turn: Turn, view: TaskView, outcome: Outcome) -> Sequence[Change]:
    """A task was worked on: its result, what it means for the plan, its report."""
    task_id, number = view.task.id, turn.number
    result = _result(turn, view, outcome, state)
    blocked: list[Step] = []
    steps: list[Step] = []
    if result["ended"] != "done":
        blocked = [transitions.set_task(task_id, status="blocked", assigned_to="cd")]
        steps.append(transitions.note_error("cd", f"{task_id}: {result['error']}", result["finished_at"]))
    if "blocker" in result:
        steps.append(transitions.add_blocker(str(result["blocker"]), _conflict(state, view, outcome), "cd"))
    if result["ended"] != "failed":
        steps += _said(turn, view, parse_phase_result(outcome.text) or {}, result)
    return [
        json_file(layout.task_result(number, task_id, view.number), result),
        *edit_plan(state, *blocked),
        state.edit(outcome.finished_at, *blocked, *steps),
        text(layout.task(number, task_id, view.number), outcome.text.strip() or _no_report(outcome)),
    ]


def _said(turn: Turn, view: TaskView, found: Mapping[str, Value], result: Doc) -> list[Step]:
    """What a report asks of a person, and the remarks on work that is done: those hold nothing up."""
    again = f".{view.number}" if view.number > 1 else ""
    steps = raised(found, "cd", turn.number, view.task.id.replace("-", "_") + again)
    if result["status"] == ResultStatus.SUCCESS:
        steps.append(transitions.add_feedback(notes(result["issues"], "cd", "vas", result["finished_at"])))
    return steps


def _result(turn: Turn, view: TaskView, outcome: Outcome, state: State) -> Doc:
    """What came of one try, for everything that follows."""
    found = parse_phase_result(outcome.text) or {}
    status = status_of(found)
    edited = outcome.ok and status is None and bool(outcome.commit)  # its report was lost with its driver
    result: Doc = {
        "task": view.task.id,
        "ended": "done" if outcome.ok and (status or edited) else "failed",
        "status": "success" if edited else str(status or "failed"),
        "summary": str(found.get("summary", ""))[:ERROR_MAX] or view.task.description.split("\n")[0],
        "issues": texts(found, "issues", "critical_issues"),
        "commit": outcome.commit,
        "changed": list(outcome.changed),
        "agent": outcome.agent,
        "started_at": state.time(outcome.started_at),
        "finished_at": state.time(outcome.finished_at),
    }
    if outcome.ended is Ended.CONFLICT:
        again = f"-{view.number}" if view.number > 1 else ""
        result |= {
            "ended": "conflict",
            "conflicts": list(outcome.conflicts),
            "blocker": f"B-{turn.number}-{view.task.id}{again}",
        }
    if result["ended"] != "done":
        files = ", ".join(outcome.conflicts)
        why = outcome.error or (f"its edit conflicts in {files}" if files else "it gave no usable answer")
        result["error"] = cut(" ".join(why.split()), ERROR_MAX)
    return result


def _conflict(state: State, view: TaskView, outcome: Outcome) -> str:
    """What a person needs to know of a conflict: the files, and where the edit is kept."""
    files = ", ".join(outcome.conflicts) or "unknown files"
    return (
        f"merge conflict: the edit of {view.task.id} does not go on top of {state.target} in {files}; "
        f"it is kept as commit {outcome.commit}"
    )


def _no_report(outcome: Outcome) -> str:
    if outcome.commit:
        return f"(The edit was found as commit {outcome.commit}; its report is lost.)"
    return f"(No report. {outcome.error})"


def counted(state: State, turn: Turn, view: TaskView, outcome: Outcome) -> Sequence[Change]:
    """What a task's commit did to each file is known: the log, the plan and the state get it."""
    found = mapping(outcome.data)
    entries = _entries(turn, view, found)
    there = set(layout.lines(state.files, layout.CHANGES))
    lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    failed = view.result.get("status") == "failed"
    task = transitions.set_task(view.task.id, status="blocked" if failed else "completed", assigned_to="cd")
    return [
        *(Append(layout.CHANGES, line) for line in lines if line not in there),
        *edit_plan(state, task),
        state.edit(outcome.finished_at, task, transitions.add_changes(entries, turn.number)),
        json_file(layout.task_changes(turn.number, view.task.id, view.number), dict(found)),
    ]


def _entries(turn: Turn, view: TaskView, found: Mapping[str, Any]) -> list[Doc]:
    """The lines of `changes.log`. Their times are the task's: made again, they are the same."""
    return [
        {
            "timestamp": str(view.result.get("finished_at", "")),
            "file": str(item.get("file", "")),
            "action": ChangeAction(item.get("action", "modify")).value,
            "iteration": turn.number,
            "agent": "cd",
            "description": f"{view.task.id}: {view.result.get('summary', '')}",
        }
        for item in TaskView(view.task, view.stage, changes=found).files
    ]


def built(state: State, turn: Turn, outcome: Outcome) -> Sequence[Change]:
    """Every task is settled: the code developer's turn is over."""
    at = state.time(outcome.finished_at)
    if turn.tasks and all(
        v.result.get("ended") == "failed" for v in turn.tasks if v.stage is not Stage.UNREACHABLE
    ):
        return _nothing_built(state, turn, outcome)
    blocked = [
        transitions.set_task(v.task.id, status="blocked") for v in turn.tasks if v.stage is Stage.UNREACHABLE
    ]
    partial = any(v.result.get("status") == "partial" for v in turn.tasks)
    whole = turn.done == len(turn.tasks) and not partial
    message = f"{turn.done} of {len(turn.tasks)} tasks completed"
    if "cd" in turn.adopted:
        whole, message = True, "taken over"
    return [
        *publish(
            state,
            text(layout.IMPLEMENTATION, _report(state, turn), view=True),
            of_iteration(turn.number - 1),
        ),
        *edit_plan(state, *blocked),
        state.edit(
            outcome.finished_at,
            *blocked,
            transitions.implement_decisions,
            transitions.finish_agent(
                "cd",
                turn.number,
                at,
                outputs=[layout.CHANGES, layout.IMPLEMENTATION],
                message=message,
                status="completed" if whole else "partial",
                files=len(turn.changed),
            ),
        ),
        json_file(layout.built(turn.number), dict(mapping(outcome.data))),
    ]


def _nothing_built(state: State, turn: Turn, outcome: Outcome) -> Sequence[Change]:
    """No task got an answer: that is the agent's failure, not the code's. A resume asks again."""
    errors = [f"{v.task.id}: {v.result.get('error', '')}" for v in turn.tasks if v.result]
    words = cut("; ".join(errors), ERROR_MAX)
    return [
        state.edit(
            outcome.finished_at,
            transitions.fail_agent("cd", turn.number, state.time(outcome.finished_at), words),
            transitions.fail(f"cd failed in iteration {turn.number}: {words}"),
        )
    ]


def _report(state: State, turn: Turn) -> str:
    """`cd/implementation.md`: what was done, task by task."""
    lines = [f"# Implementation, iteration {turn.number}", ""]
    for view in turn.tasks:
        lines += [f"## {view.task.id}: {view.task.description.strip().split(chr(10))[0]}", ""]
        commit = view.changes.get("commit")
        lines.append(f"Status: {view.stage.value}" + (f", commit {commit}" if commit else ""))
        if view.result.get("error"):
            lines.append(f"Error: {view.result['error']}")
        lines += [f"- {f.get('action')} {f.get('file')}" for f in view.files]
        report = state.files.text(layout.task(turn.number, view.task.id, view.number))
        if report:
            lines += ["", without_phase_result(report).strip()]
        lines.append("")
    return "\n".join(lines)
