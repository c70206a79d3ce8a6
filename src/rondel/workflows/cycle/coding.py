"""The code developer's phase: a commit and a report per task, a line per changed file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from rondel.model.actions import Access, Ask, Probe, Workspace
from rondel.model.changes import Append, Change, json_file, text
from rondel.model.jsons import mapping, mappings
from rondel.model.outcomes import Ended, Outcome
from rondel.model.refs import END, commit_or_none
from rondel.model.texts import cut
from rondel.model.workflow import RepoReader, Step
from rondel.workflows.cycle import asking, layout, results, transitions
from rondel.workflows.cycle.documents import Doc, Transition
from rondel.workflows.cycle.layout import of_iteration
from rondel.workflows.cycle.measure import look_for_tip
from rondel.workflows.cycle.models import ChangeAction
from rondel.workflows.cycle.questions import held, raised
from rondel.workflows.cycle.routing import notes
from rondel.workflows.cycle.state import Iteration, Stage, State, TaskView
from rondel.workflows.cycle.validating import tests_section

_ACTIONS = {"A": "create", "D": "delete", "C": "create"}


def coding(state: State, iteration: Iteration) -> Iterator[Step[State]]:
    """Plan tasks whose dependencies are done, all at once; then the commit that holds them."""
    yield from (_count(iteration, view) for view in iteration.tasks if view.stage is Stage.UNCOUNTED)
    if all(view.stage.settled for view in iteration.tasks):
        yield from held(state, "vas") or [_tip(state, iteration)]
    else:
        due = (_task(state, iteration, view) for view in iteration.tasks if view.stage is Stage.DUE)
        yield from held(state, "cd") or due


def _on_try(
    view: TaskView, write: Callable[[State, Iteration, TaskView, Outcome], Sequence[Change]]
) -> asking.Writing:
    """What a step leaves that is about one try at a task; nothing when another try counts by now."""

    def write_now(state: State, iteration: Iteration, outcome: Outcome) -> Sequence[Change]:
        now = iteration.same_try(view)
        return write(state, iteration, now, outcome) if now else ()

    return write_now


def _task(state: State, iteration: Iteration, view: TaskView) -> Step[State]:
    number, task = iteration.number, view.task
    ask = Ask(
        layout.task(number, task.id, view.number),
        "cycle.cd",
        inputs=(layout.reply(number, layout.PLAN),),
        workspace=Workspace(Access.WRITE, base=view.base, target=state.target),
        title=f"{task.id}: {task.headline[:100]}",
    )
    return asking.step(
        iteration,
        "cd",
        ask,
        "code",
        material=partial(_material, view),
        write=_on_try(view, _worked),
        started=[transitions.set_task(task.id, status="in_progress", assigned_to="cd")],
    )


def _material(view: TaskView, state: State, iteration: Iteration) -> Mapping[str, str]:
    task = view.task
    lines = [task.description.strip(), "", f"Effort: {task.effort.value}."]
    if task.files:
        lines.append(f"Files: {', '.join(task.files)}.")
    if task.depends_on:
        lines.append(f"It builds on {', '.join(task.depends_on)}, whose work is in your copy.")
    return {
        **asking.file_section(state, "requirements", layout.REQUIREMENTS),
        **asking.file_section(state, "exploration", layout.EXPLORATION),
        **tests_section(state),
        **asking.plan_section(iteration),
        "conflict": _first_try(state, iteration, view) if view.number > 1 else "",
        "task_id": task.id,
        "task": asking.bounded("\n".join(lines)),
    }


def _first_try(state: State, iteration: Iteration, view: TaskView) -> str:
    """What a task that is worked on again must know of its first try."""
    body = mapping(state.files.json(layout.task_result(iteration.number, view.task.id, view.number - 1)))
    blockers = state.cycle.coordination.blockers if state.cycle else []
    blocker = next((b for b in blockers if b.id == str(body.get("blocker"))), None)
    lines = [
        f"The first edit is commit {body.get('commit')} (see it with `git show`).",
        blocker.description if blocker else "",
        f"How to resolve it: {blocker.resolution}" if blocker and blocker.resolution else "",
        "Your copy holds what the others did. Do the task on top of it; lose nothing of theirs.",
    ]
    return asking.section("This task was worked on before", "\n\n".join(line for line in lines if line))


def _worked(state: State, iteration: Iteration, view: TaskView, outcome: Outcome) -> Sequence[Change]:
    """A task was worked on: its result, what it means for the plan, its report."""
    task_id, number = view.task.id, iteration.number
    result = _result(iteration, view, outcome, state)
    blocked: list[Transition] = []
    more: list[Transition] = []
    if result["ended"] != "done":
        blocked = [transitions.set_task(task_id, status="blocked", assigned_to="cd")]
        more.append(transitions.note_error("cd", f"{task_id}: {result['error']}", result["finished_at"]))
    if "blocker" in result:
        more.append(transitions.add_blocker(str(result["blocker"]), _conflict(state, view, outcome), "cd"))
    if result["ended"] != "failed":
        more += _said(iteration, view, results.parse_phase_result(outcome.text) or {}, result)
    return [
        json_file(layout.task_result(number, task_id, view.number), result),
        *asking.edit_plan(state, *blocked),
        state.edit(outcome.finished_at, *blocked, *more),
        text(layout.task(number, task_id, view.number), outcome.text.strip() or _no_report(outcome)),
    ]


def _said(
    iteration: Iteration, view: TaskView, found: Mapping[str, results.Value], result: Doc
) -> list[Transition]:
    """What a report asks of a person, and the remarks on work that is done: those hold nothing up."""
    again = f".{view.number}" if view.number > 1 else ""
    more = raised(found, "cd", iteration.number, view.task.id.replace("-", "_") + again)
    if result["status"] == results.ResultStatus.SUCCESS:
        more.append(transitions.add_feedback(notes(result["issues"], "cd", "vas", result["finished_at"])))
    return more


def _result(iteration: Iteration, view: TaskView, outcome: Outcome, state: State) -> Doc:
    """What came of one try, for everything that follows."""
    found = results.parse_phase_result(outcome.text) or {}
    status = results.status_of(found)
    edited = outcome.ok and status is None and bool(outcome.commit)  # its report was lost with its driver
    result: Doc = {
        "task": view.task.id,
        "ended": "done" if outcome.ok and (status or edited) else "failed",
        "status": "success" if edited else str(status or "failed"),
        "summary": str(found.get("summary", ""))[: asking.ERROR_MAX] or view.task.headline,
        "issues": results.texts(found, "issues", "critical_issues"),
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
            "blocker": f"B-{iteration.number}-{view.task.id}{again}",
        }
    if result["ended"] != "done":
        files = ", ".join(outcome.conflicts)
        why = outcome.error or (f"its edit conflicts in {files}" if files else "it gave no usable answer")
        result["error"] = cut(" ".join(why.split()), asking.ERROR_MAX)
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


def _count(iteration: Iteration, view: TaskView) -> Step[State]:
    commit = commit_or_none(view.result.get("commit")) or ""
    path = layout.task_changes(iteration.number, view.task.id, view.number)
    probe = Probe(path, "changes", (commit,), title=f"changes of {view.task.id}")
    write = asking.during(iteration, _on_try(view, _counted))
    return Step(probe, write, look=lambda look: _look_for_changes(look, commit))


def _look_for_changes(look: RepoReader, commit: str) -> dict[str, object]:
    """What a commit did to each file, and how many commits lead to it."""
    if not commit:
        return {"commit": "", "height": 0, "files": []}
    listing = look.git(
        "diff-tree", "-r", "--no-commit-id", "--name-status", "--no-renames", "-z", "--root", END, commit
    )
    words = listing.split("\0")
    files = [
        {"file": name, "action": _ACTIONS.get(letter[:1], "modify")}
        for letter, name in zip(words[::2], words[1::2], strict=False)
        if name
    ]
    return {"commit": commit, "height": int(look.git("rev-list", "--count", END, commit)), "files": files}


def _counted(state: State, iteration: Iteration, view: TaskView, outcome: Outcome) -> Sequence[Change]:
    """What a task's commit did to each file is known: the log, the plan and the state get it."""
    if not outcome.ok:
        return ()
    found = mapping(outcome.data)
    entries = _entries(iteration, view, found)
    there = set(layout.lines(state.files, layout.CHANGES))
    lines = [json.dumps(entry, ensure_ascii=False) for entry in entries]
    status = "blocked" if view.result.get("status") == "failed" else "completed"
    task = transitions.set_task(view.task.id, status=status, assigned_to="cd")
    return [
        *(Append(layout.CHANGES, line) for line in lines if line not in there),
        *asking.edit_plan(state, task),
        state.edit(outcome.finished_at, task, transitions.add_changes(entries)),
        json_file(layout.task_changes(iteration.number, view.task.id, view.number), dict(found)),
    ]


def _entries(iteration: Iteration, view: TaskView, found: Mapping[str, Any]) -> list[Doc]:
    """The lines of `changes.log`. Their times are the task's: made again, they are the same."""
    return [
        {
            "timestamp": str(view.result.get("finished_at", "")),
            "file": str(item.get("file", "")),
            "action": ChangeAction(item.get("action", "modify")).value,
            "iteration": iteration.number,
            "agent": "cd",
            "description": f"{view.task.id}: {view.result.get('summary', '')}",
        }
        for item in mappings(found, "files")
    ]


def _tip(state: State, iteration: Iteration) -> Step[State]:
    """Every task is settled: which commit holds them, and how it is tested."""
    args = (state.target, iteration.base or "", state.request.test)
    path, outputs = layout.built(iteration.number), (layout.IMPLEMENTATION,)
    probe = Probe(path, "tip", args, title="what was built", outputs=outputs)
    return Step(probe, asking.during(iteration, _built), look=lambda look: look_for_tip(look, *args))


def _built(state: State, iteration: Iteration, outcome: Outcome) -> Sequence[Change]:
    """Every task is settled: the code developer's turn is over."""
    if not outcome.ok:
        return ()
    at = state.time(outcome.finished_at)
    reached = [v for v in iteration.tasks if v.stage is not Stage.UNREACHABLE]
    if iteration.tasks and all(v.result.get("ended") == "failed" for v in reached):
        return _nothing_built(state, iteration, outcome)
    unreached = [v.task.id for v in iteration.tasks if v.stage is Stage.UNREACHABLE]
    blocked = [transitions.set_task(name, status="blocked") for name in unreached]
    in_part = any(v.result.get("status") == "partial" for v in iteration.tasks)
    whole = iteration.done == len(iteration.tasks) and not in_part
    message = f"{iteration.done} of {len(iteration.tasks)} tasks completed"
    if "cd" in iteration.adopted:
        whole, message = True, "taken over"
    report = text(layout.IMPLEMENTATION, _report(state, iteration), view=True)
    return [
        *asking.publish(state, report, of_iteration(iteration.number - 1)),
        *asking.edit_plan(state, *blocked),
        state.edit(
            outcome.finished_at,
            *blocked,
            transitions.implement_decisions(),
            transitions.finish_agent(
                "cd",
                iteration.number,
                at,
                outputs=[layout.CHANGES, layout.IMPLEMENTATION],
                message=message,
                status="completed" if whole else "partial",
                files=len(iteration.changed),
            ),
        ),
        json_file(layout.built(iteration.number), dict(mapping(outcome.data))),
    ]


def _nothing_built(state: State, iteration: Iteration, outcome: Outcome) -> Sequence[Change]:
    """No task got an answer: that is the agent's failure, not the code's. A resume asks again."""
    errors = [f"{v.task.id}: {v.result.get('error', '')}" for v in iteration.tasks if v.result]
    return asking.failed(state, iteration, "cd", outcome, cut("; ".join(errors), asking.ERROR_MAX))


def _report(state: State, iteration: Iteration) -> str:
    """`cd/implementation.md`: what was done, task by task."""
    lines = [f"# Implementation, iteration {iteration.number}", ""]
    for view in iteration.tasks:
        lines += [f"## {view.task.id}: {view.task.headline}", ""]
        commit = view.changes.get("commit")
        lines.append(f"Status: {view.stage.value}" + (f", commit {commit}" if commit else ""))
        if view.result.get("error"):
            lines.append(f"Error: {view.result['error']}")
        lines += [f"- {f.get('action')} {f.get('file')}" for f in view.files]
        report = state.files.text(layout.task(iteration.number, view.task.id, view.number))
        if report:
            lines += ["", results.without_phase_result(report).strip()]
        lines.append("")
    return "\n".join(lines)
