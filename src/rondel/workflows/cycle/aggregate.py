"""Aggregation: what an iteration found, whose it is, and whether the cycle is done, goes on or fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from rondel.model.actions import Derive
from rondel.model.changes import Append, Change, json_file
from rondel.model.jsons import strings
from rondel.model.marks import begun_here, mark
from rondel.model.outcomes import Outcome
from rondel.model.workflow import Step
from rondel.workflows.cycle import layout, routing, transitions
from rondel.workflows.cycle.asking import during, unread
from rondel.workflows.cycle.measure import run_of
from rondel.workflows.cycle.models import FeedbackType
from rondel.workflows.cycle.questions import USER
from rondel.workflows.cycle.rebuild import closing_parts
from rondel.workflows.cycle.results import ResultStatus, parse_phase_result, status_of, texts
from rondel.workflows.cycle.routing import Issue
from rondel.workflows.cycle.state import Iteration, Stage, State


def closing(iteration: Iteration) -> Step[State]:
    """All four agents have had their turn: the iteration is closed."""
    number = iteration.number
    inputs = (layout.tests(number), layout.reply(number, layout.VALIDATION))
    action = Derive(layout.aggregate(number), inputs=inputs, title=f"close iteration {number}")
    return Step(action, during(iteration, _closed))


def _closed(state: State, iteration: Iteration, outcome: Outcome) -> Sequence[Change]:
    """What became of the cycle. Its time is the archivist's, so that closing it again says the same."""
    cycle = state.cycle
    if cycle is None:
        return ()
    at = cycle.agents.vas.completed_at or state.time(outcome.finished_at)
    issues = routing.each_once(_issues(state, iteration))
    last = iteration.number >= cycle.max_iterations and not state.extensions
    said = [i.text for i in issues]
    entries = [
        transitions.feedback(i.source, i.target, i.text, i.type.value, at) for i in issues if i.source != USER
    ]
    status = "completed" if not issues else "failed" if last else "running"
    note: dict[str, Any] = {
        "iteration": iteration.number,
        "at": at,
        "resolved": not issues,
        "issues": said,
        "feedback": entries,
        "status": status,
    }
    if status == "failed":
        note["failure_reason"] = routing.reason(issues, iteration.number)
    begun = begun_here(state.files)
    if begun is not None:
        note["mark"] = mark(begun, *closing_parts(iteration.number, status))
    handed_on = state.open_blockers if status == "running" else []
    words = f"handed to iteration {iteration.number + 1} as feedback"
    return [
        *_timeline(state, iteration, at, said, status),
        json_file(layout.aggregate(iteration.number), note),
        state.edit(
            outcome.finished_at,
            *transitions.closed(note),
            *(
                transitions.settle_blocker(b.id, "workaround", words)
                for b in handed_on
                if b.reported_by != USER
            ),
        ),
    ]


def _issues(state: State, iteration: Iteration) -> Iterator[Issue]:
    """Everything that speaks against this iteration being the last."""
    yield from routing.of_tests(run_of(iteration.tests or {}))
    yield from _of_validation(state, iteration)
    yield from _of_tasks(iteration)
    conflicts = {view.result.get("blocker") for view in iteration.tasks}
    for blocker in state.open_blockers:
        if blocker.reported_by != USER and blocker.id not in conflicts:
            source = blocker.reported_by
            yield routing.addressed(f"{source}: blocker: {blocker.description}", source)
    for entry in unread(state, iteration):
        yield Issue(entry.content, USER, entry.target, entry.type)


def _of_validation(state: State, iteration: Iteration) -> Iterator[Issue]:
    result = (
        parse_phase_result(state.files.text(layout.reply(iteration.number, layout.VALIDATION)) or "") or {}
    )
    found = texts(result, "critical_issues", "issues")
    yield from (routing.addressed(words, "vas") for words in found)
    status = status_of(result)
    if status is not ResultStatus.SUCCESS and not found:
        words = str(result.get("summary", "")) or "no reason given"
        yield routing.addressed(f"validation {status or 'unreadable'}: {words}", "vas")


def _of_tasks(iteration: Iteration) -> Iterator[Issue]:
    to_fix = partial(Issue, source="cd", target="cd", type=FeedbackType.ISSUE_FIX)
    for view in iteration.tasks:
        name = view.task.id
        if view.stage is Stage.CONFLICT:
            files = ", ".join(strings(view.result, "conflicts"))
            kept = view.result.get("commit")
            yield to_fix(
                f"{name} is not in the code: its edit conflicts in {files}; it is kept as commit {kept}"
            )
        elif view.stage is Stage.UNREACHABLE:
            yield to_fix(f"{name} was not worked on: a task it depends on is blocked")
        elif view.stage is Stage.FAILED:
            why = view.result.get("error") or view.result.get("summary")
            yield to_fix(f"{name} failed: {why}")
        if view.result.get("status") in ("partial", "failed"):
            yield from (routing.addressed(words, "cd") for words in strings(view.result, "issues"))
        if view.result.get("status") == "partial" and not view.result.get("issues"):
            yield to_fix(f"{name} is done in part: {view.result.get('summary')}")


def _timeline(
    state: State, iteration: Iteration, at: str, issues: Sequence[str], status: str
) -> list[Change]:
    """One line of `coordination/timeline.md` for the whole iteration."""
    there = layout.lines(state.files, layout.TIMELINE)
    record = transitions.record_of(state.document, iteration.number) or {}
    run = run_of(iteration.tests or {})
    coverage = "" if run.coverage is None else f", coverage {run.coverage:g} %"
    words = [
        f"- **Iteration {iteration.number}** {record.get('started_at', '')} → {at}",
        *([f"extension: {record['extension']}"] if record.get("extension") else []),
        f"{iteration.done} of {len(iteration.tasks)} tasks, {len(iteration.changed)} files changed",
        f"tests: {run.ran - run.failed} of {run.ran} passed{coverage}",
        f"issues: {'; '.join(issues)}" if issues else "no issues",
        {"completed": "completed", "failed": "failed, no iteration left"}.get(status, "goes on"),
    ]
    line = " ".join(" · ".join(words).split())
    if any(old.startswith(words[0]) for old in there):
        return []
    head = [] if any(there) else [Append(layout.TIMELINE, "# Timeline")]
    return [*head, Append(layout.TIMELINE, line)]
