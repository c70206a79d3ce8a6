"""Reading a cycle: what its files show. Total; what is wrong becomes a problem."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from graphlib import TopologicalSorter
from typing import Any

from rondel.model.identity import IDENTITY, identity_of
from rondel.model.jsons import mapping, strings
from rondel.model.marks import FOREIGN
from rondel.model.refs import commit_or_none
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem
from rondel.model.workflow import NOTHING_GIVEN, Given
from rondel.workflows.cycle import layout, plans
from rondel.workflows.cycle.models import CycleState
from rondel.workflows.cycle.plans import Proposal
from rondel.workflows.cycle.rebuild import locate, usable
from rondel.workflows.cycle.requests import Extension, read_extensions, read_request, with_settings
from rondel.workflows.cycle.state import Iteration, Stage, State, TaskView
from rondel.workflows.cycle.transitions import record_of


def read(files: Snapshot, cycle_id: str, given: Given = NOTHING_GIVEN) -> State:
    """The state of a cycle."""
    request = with_settings(read_request(files), given)
    located = locate(files, cycle_id, request)
    document = located.document or {}
    cycle = usable(document) if located.document is not None else None
    iteration, more = _iteration(files, document, cycle) if cycle else (None, ())
    return State(
        cycle_id,
        files,
        request,
        document,
        cycle,
        located.found,
        located.logged,
        iteration,
        tuple(_pending(files)),
        (*located.problems, *_kept(files, cycle_id), *more),
        identity_of(files.json(IDENTITY)),
    )


def _kept(files: Snapshot, cycle_id: str) -> list[Problem]:
    """State files that were put aside: damaged ones, and those that claimed an end."""
    kinds = {
        f"{cycle_id}.json.damaged-": (
            "state-rebuilt",
            "the state file was damaged and has been rebuilt; this is what it was",
        ),
        f"{cycle_id}.json.refused-": (
            FOREIGN,
            "the state file said that the cycle was over, and Rondel had not ended it; this is what it was",
        ),
    }
    return [
        Problem(rule, f"{layout.DAMAGED}/{name}", words, "delete it when you have looked at it")
        for name in sorted(files.names(layout.DAMAGED))
        for start, (rule, words) in kinds.items()
        if name.startswith(start)
    ]


def _pending(files: Snapshot) -> list[Extension]:
    """What was added to the task and has not been taken into an iteration."""
    said = read_extensions(files)
    if not said:
        return []
    taken = {
        name
        for n in layout.iterations(files)
        for name in strings(mapping(files.json(layout.begun(n))), "taken")
    }
    return [e for e in said if e.name not in taken]


def _iteration(
    files: Snapshot, document: Mapping[str, Any], cycle: CycleState
) -> tuple[Iteration | None, list[Problem]]:
    """The iteration under way; None when none is open."""
    number = cycle.current_iteration
    record = record_of(document, number)
    at_work = cycle.status in ("running", "paused")
    if number == 0 or (record.get("completed_at") if record else not at_work):
        return None, []
    begin = mapping(files.json(layout.begun(number)))
    begun = Iteration(number, begin)
    if not begin:
        return begun, []
    planned = "ep" in begun.adopted or files.exists(layout.reply(number, layout.PLAN))
    plan, problems = _plan(files, number, document.get("plan")) if planned else (None, [])
    tests = files.json(layout.tests(number))
    tip = files.json(layout.built(number))
    blockers = {b.id: b.status.value for b in cycle.coordination.blockers}
    tasks = _tasks(files, begun, plan, blockers) if plan and "cd" not in begun.adopted else ()
    return (
        Iteration(
            number,
            begin,
            "ra" in begun.adopted or files.exists(layout.reply(number, layout.REQUIREMENTS)),
            "ep" in begun.adopted or files.exists(layout.reply(number, layout.EXPLORATION)),
            plan,
            tasks,
            tip if isinstance(tip, dict) else None,
            tests if isinstance(tests, dict) else None,
            files.exists(layout.reply(number, layout.VALIDATION)),
        ),
        problems,
    )


def _plan(files: Snapshot, number: int, stated: object) -> tuple[Proposal | None, list[Problem]]:
    """The plan as it stands in its file; where that is broken, as it was accepted.

    A file that is no JSON any more is written again; a plan that a person made unusable is
    theirs to correct. None where nothing usable is left: it is asked for again.
    """
    given = files.json(layout.PLAN)
    plan = plans.check(given)
    if not plan.error:
        return plan, []
    known = (plans.check(found) for found in (files.json(layout.reply(number, layout.PLAN)), stated))
    accepted = next((found for found in known if not found.error), None)
    if accepted is None:
        words, repair = "it cannot be read, and no other copy of it", "the next run asks for it again"
    elif isinstance(given, dict):
        words, repair = plan.error, "correct it; until then the plan as it was accepted counts"
    else:
        words, repair = "it cannot be read", "the next run writes it again, as it was accepted"
    return accepted, [Problem("plan-invalid", layout.PLAN, words, repair, loud=True)]


def _tasks(
    files: Snapshot, iteration: Iteration, plan: Proposal, blockers: Mapping[str, str]
) -> tuple[TaskView, ...]:
    """The plan's tasks in order, and what came of each."""
    tries = _tries(files, iteration.number)
    views: dict[str, TaskView] = {}
    for task in plan.tasks:
        last = max(tries.get(task.id, ()), default=0)
        result = mapping(files.json(layout.task_result(iteration.number, task.id, last))) if last else {}
        changes = mapping(files.json(layout.task_changes(iteration.number, task.id, last))) if last else {}
        stage = _stage(result, changes, blockers)
        number = last + 1 if stage is Stage.DUE else last
        views[task.id] = TaskView(task, stage, number, None, result, changes)
    _settle_dependants(views)
    newest = _highest(views.values()) or iteration.base  # holds what every task that is due depends on
    return tuple(replace(view, base=newest) for view in views.values())


def _tries(files: Snapshot, number: int) -> dict[str, set[int]]:
    """Which tries at which task have a result and a report."""
    names = files.names(layout.part(number, "cd"))
    found: dict[str, set[int]] = {}
    for name in names:
        known = layout.task_of(name)
        if known and name.removesuffix(".json") + ".md" in names:
            found.setdefault(known[0], set()).add(known[1])
    return found


def _stage(result: Mapping[str, Any], changes: Mapping[str, Any], blockers: Mapping[str, str]) -> Stage:
    match result.get("ended"):
        case None:
            return Stage.DUE
        case "done":
            failed = result.get("status") == "failed"
            return Stage.UNCOUNTED if not changes else Stage.FAILED if failed else Stage.DONE
        case "conflict":
            settled = blockers.get(str(result.get("blocker")), "open")
            return {"resolved": Stage.DUE, "workaround": Stage.DONE}.get(settled, Stage.CONFLICT)
        case _:
            return Stage.FAILED


def _settle_dependants(views: dict[str, TaskView]) -> None:
    """Who waits for whom; whoever waits for what cannot be completed is out of reach."""
    stuck = (Stage.CONFLICT, Stage.FAILED, Stage.UNREACHABLE)
    for task_id in TopologicalSorter({v.task.id: v.task.depends_on for v in views.values()}).static_order():
        view = views[task_id]
        needed = [views[name].stage for name in view.task.depends_on]
        if view.stage is Stage.DUE and any(stage is not Stage.DONE for stage in needed):
            stage = Stage.UNREACHABLE if any(stage in stuck for stage in needed) else Stage.WAITS
            views[task_id] = replace(view, stage=stage)


def _highest(views: Iterable[TaskView]) -> str | None:
    """The commit that holds the work of all these tasks: they land one on top of the other."""
    best, found = -1, None
    for view in views:
        commit, height = commit_or_none(view.changes.get("commit")), view.changes.get("height")
        if commit and isinstance(height, int) and height > best:
            best, found = height, commit
    return found
