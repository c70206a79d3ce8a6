"""What an action leaves: the agents' files, then the state, then the part that says it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from rondel.model.actions import Action, Ask, Derive, Probe
from rondel.model.changes import Change, text
from rondel.model.outcomes import Ended, Outcome
from rondel.workflows.cycle import coding, layout, plans, transitions, validating
from rondel.workflows.cycle.adopting import given, plan_section
from rondel.workflows.cycle.aggregate import aggregate
from rondel.workflows.cycle.answers import answered
from rondel.workflows.cycle.leave import agent_failed, edit_plan, json_file, notes, publish, refused, restore
from rondel.workflows.cycle.markdown import number_requirements
from rondel.workflows.cycle.models import SECTIONS
from rondel.workflows.cycle.questions import raised
from rondel.workflows.cycle.rebuild import exploration_section, requirements_section
from rondel.workflows.cycle.results import (
    ResultStatus,
    parse_phase_result,
    status_of,
    texts,
    without_phase_result,
)
from rondel.workflows.cycle.state import State, Turn
from rondel.workflows.cycle.transitions import record_of
from rondel.workflows.cycle.values import mapping
from rondel.workflows.cycle.versions import bump


def apply(state: State, action: Action, outcome: Outcome) -> Sequence[Change]:
    """The files an outcome leaves. A damaged state file is restored before anything else is written."""
    return (*restore(state), *_apply(state, action, outcome))


def _apply(state: State, action: Action, outcome: Outcome) -> Sequence[Change]:
    if action.path.startswith(f"{layout.PARTS}/answers/"):
        return answered(state, action.path, outcome)
    if isinstance(action, Probe) and not outcome.ok:
        return ()
    turn = state.turn
    if isinstance(action, Probe) and action.name == "begin":
        return _begun(state, action, outcome)
    if turn is None:
        return ()
    number = turn.number
    by_path = {
        layout.requirements(number): _requirements,
        layout.exploration(number): _exploration,
        layout.plan(number): _plan,
        layout.built(number): coding.built,
        layout.tests(number): validating.tested,
        layout.validation(number): validating.validated,
        layout.aggregate(number): aggregate,
        layout.PLAN: _plan_again,
    }
    documents = {
        layout.requirements(number): layout.REQUIREMENTS,
        layout.exploration(number): layout.EXPLORATION,
        layout.plan(number): layout.PLAN,
    }
    if isinstance(action, Derive) and action.path in documents:
        return given(state, turn, documents[action.path], outcome)
    if action.path in by_path:
        return by_path[action.path](state, turn, outcome)
    for view in turn.tasks:
        if action.path == layout.task(number, view.task.id, view.number):
            return coding.worked(state, turn, view, outcome)
        if action.path == layout.task_changes(number, view.task.id, view.number):
            return coding.counted(state, turn, view, outcome)
    return ()


def begin(state: State, action: Action, at: datetime) -> Sequence[Change]:
    """The files that say who is at work; and how much of the feedback they have before them."""
    turn = state.turn
    if turn is None or isinstance(action, Derive | Probe):
        return ()
    time = state.time(at)
    changes: list[Change] = [*restore(state)]
    if not isinstance(action, Ask):
        return [*changes, state.edit(at, transitions.start_agent("vas", "vas", time))]
    agent = action.role.rpartition(".")[2]
    name = action.path.rpartition("/")[2]
    path = layout.seen(turn.number, agent, name)
    if state.cycle is not None and not state.files.exists(path):
        changes.append(json_file(path, {"feedback": len(state.cycle.coordination.feedback_log)}))
    steps = [transitions.start_agent(agent, _phase(state, agent), time)]
    for view in turn.tasks:
        if action.path == layout.task(turn.number, view.task.id, view.number):
            steps.append(transitions.set_task(view.task.id, status="in_progress", assigned_to="cd"))
            changes += edit_plan(state, steps[-1])
    return [*changes, state.edit(at, *steps)]


def _phase(state: State, agent: str) -> str:
    """While the analyst and the planner's exploration run together, the phase is the analyst's."""
    done = state.cycle.completed_phases if state.cycle else []
    return "ra" if agent == "ep" and "ra" not in done else agent


# -- the beginning ----------------------------------------------------------------------------


def _begun(state: State, probe: Probe, outcome: Outcome) -> Sequence[Change]:
    """An iteration opens. What is noted here stays as it is while the iteration runs."""
    cycle = state.cycle
    if cycle is None:
        return ()
    number = next(
        (n for n in (cycle.current_iteration, cycle.current_iteration + 1) if layout.begun(n) == probe.path),
        0,
    )
    if not number:
        return ()
    at = state.time(outcome.finished_at)
    record = record_of(state.document, number)
    extensions = state.extensions
    if cycle.current_iteration >= number:  # opened by a driver that died, or by another tool
        said = str((record or {}).get("extension", ""))
        extensions = tuple(e for e in extensions if e.text in said)
    limits = [e.max_iterations for e in extensions if e.max_iterations]
    note = {
        **mapping(outcome.data),
        "iteration": number,
        "at": str((record or {}).get("started_at") or at),
        "versions": {s: getattr(getattr(cycle, s), "version", None) for s in SECTIONS if s != "changes"},
        "adopted": _adopted(state, number),
        "taken": [e.name for e in extensions],
        "texts": [e.text for e in extensions],
    }
    steps = [transitions.open_iteration(number, at, [e.text for e in extensions])]
    if limits:
        steps.insert(0, transitions.raise_limit(max(limits)))
    return [state.edit(outcome.finished_at, *steps), json_file(layout.begun(number), note)]


def _adopted(state: State, number: int) -> list[str]:
    """The phases another tool had completed in the iteration it left under way."""
    cycle = state.cycle
    if cycle is None or cycle.current_iteration != number:
        return []
    done = [p for p in ("ra", "ep", "cd") if p in cycle.completed_phases]
    files = {"ra": layout.REQUIREMENTS, "ep": layout.PLAN, "cd": layout.CHANGES}
    found: list[str] = []
    for phase in done:
        usable = state.files.exists(files[phase])
        if phase == "ep":
            usable = not plans.check(state.files.json(layout.PLAN)).error
        if not usable:
            break
        found.append(phase)
    return found


# -- requirements, exploration, plan ------------------------------------------------------------


def _requirements(state: State, turn: Turn, outcome: Outcome) -> Sequence[Change]:
    if refused(outcome):
        return agent_failed(state, turn, "ra", outcome)
    result = parse_phase_result(outcome.text) or {}
    content = number_requirements(without_phase_result(outcome.text))
    former = turn.version("requirements")
    at = state.time(outcome.finished_at)
    section = requirements_section(content, bump(former), at)
    return [
        *publish(state, text(layout.REQUIREMENTS, content), former),
        state.edit(
            outcome.finished_at,
            transitions.section("requirements", section),
            transitions.finish_agent(
                "ra",
                turn.number,
                at,
                outputs=[layout.REQUIREMENTS],
                message=str(result.get("summary", "")),
                status=_result_word(outcome),
                files=1,
            ),
            transitions.add_feedback(notes(texts(result, "issues", "critical_issues"), "ra", "ep", at)),
            *raised(result, "ra", turn.number),
        ),
        text(layout.requirements(turn.number), outcome.text),
    ]


def _exploration(state: State, turn: Turn, outcome: Outcome) -> Sequence[Change]:
    if refused(outcome):
        return agent_failed(state, turn, "ep", outcome)
    result = parse_phase_result(outcome.text) or {}
    content = without_phase_result(outcome.text)
    former = turn.version("exploration")
    at = state.time(outcome.finished_at)
    return [
        *publish(state, text(layout.EXPLORATION, content), former),
        state.edit(
            outcome.finished_at,
            transitions.section("exploration", exploration_section(content, bump(former), at)),
            transitions.rest_agent(
                "ep", str(result.get("summary", "")) or "explored; waits for the requirements"
            ),
            transitions.add_feedback(notes(texts(result, "issues", "critical_issues"), "ep", "cd", at)),
            *raised(result, "ep", turn.number, "x"),
        ),
        text(layout.exploration(turn.number), outcome.text),
    ]


def _plan(state: State, turn: Turn, outcome: Outcome) -> Sequence[Change]:
    proposal = plans.parse(outcome.text)
    if not refused(outcome) and proposal.error:
        outcome = replace(outcome, ended=Ended.REJECTED, error=proposal.error)
    if refused(outcome):
        return agent_failed(state, turn, "ep", outcome)
    result = parse_phase_result(outcome.text) or {}
    former = turn.version("plan")
    at = state.time(outcome.finished_at)
    plan = plan_section(proposal, bump(former), at)
    return [
        *publish(state, json_file(layout.PLAN, plan), former),
        state.edit(
            outcome.finished_at,
            transitions.section("plan", plan),
            transitions.finish_agent(
                "ep",
                turn.number,
                at,
                outputs=[layout.EXPLORATION, layout.PLAN],
                message=str(result.get("summary", "")),
                status=_result_word(outcome),
                files=2,
            ),
            transitions.add_feedback(notes(texts(result, "issues", "critical_issues"), "ep", "cd", at)),
            *raised(result, "ep", turn.number),
        ),
        json_file(layout.plan(turn.number), plan),
    ]


def _plan_again(state: State, turn: Turn, _: Outcome) -> Sequence[Change]:
    """The plan's own file as the state has it, with what became of its tasks; else as it was accepted."""
    kept = (state.document.get("plan"), state.files.json(layout.plan(turn.number)))
    found = next((p for p in kept if isinstance(p, dict) and not plans.check(p).error), None)
    return [json_file(layout.PLAN, found)] if found is not None else []


def _result_word(outcome: Outcome) -> str:
    status = status_of(parse_phase_result(outcome.text) or {})
    return "partial" if status is ResultStatus.PARTIAL else "completed"
