"""A cycle in short."""

from __future__ import annotations

import shlex

from rondel.model.actions import Decide
from rondel.model.commands import OWN_WORDS, command_line
from rondel.model.summary import Status, Summary
from rondel.model.times import parse_time
from rondel.workflows.cycle.models import CycleState
from rondel.workflows.cycle.plan import plan
from rondel.workflows.cycle.state import State, Turn

STATUS = {
    "created": Status.ACTIVE,
    "running": Status.ACTIVE,
    "paused": Status.PAUSED,
    "completed": Status.COMPLETED,
    "failed": Status.FAILED,
}


def summary(state: State) -> Summary:
    """What `rondel status` shows of a cycle."""
    cycle = state.cycle
    if cycle is None:
        return Summary(state.id, Status.DAMAGED, problems=state.problems)
    due = list(plan(state))
    questions = [a.question for a in due if isinstance(a, Decide)]
    status = STATUS[cycle.status]
    waiting = None
    if questions and len(questions) == len(due):
        status, waiting = Status.WAITING, "; ".join(questions)
    elif cycle.status == "failed":
        waiting = cycle.failure_reason
    done, total = _progress(cycle, state.turn)
    follows = _next(state, cycle, waits=bool(waiting))
    return Summary(
        title=cycle.title,
        status=status,
        phase=cycle.current_phase.value,
        done=done,
        total=total,
        waiting_for=waiting,
        updated_at=parse_time(cycle.updated_at),
        problems=state.problems,
        next=follows,
        state={**state.document, "branch": state.target, "next": follows},
    )


def _progress(cycle: CycleState, turn: Turn | None) -> tuple[int, int]:
    """Steps of the iteration under way: two analyses, the plan, its tasks, tests, validation."""
    if turn is None:
        return len(set(cycle.completed_phases)), 4
    done = (turn.has_requirements, turn.has_exploration, turn.plan is not None, turn.tests is not None)
    return sum(done) + turn.done + turn.has_validation, 5 + len(turn.tasks)


def _next(state: State, cycle: CycleState, *, waits: bool) -> str:
    """The command a person would type now."""
    name = state.id
    if state.pending_decisions and waits:
        return command_line("cycle", "decide", name, state.pending_decisions[0].id, "--option", "1")
    if state.open_blockers and waits:
        return command_line("cycle", "unblock", name, state.open_blockers[0].id)
    if cycle.status == "completed" and not state.extensions:
        return f"git merge {shlex.quote(state.target)}"
    if cycle.status == "failed" and state.turn is None and not state.extensions:
        return command_line("cycle", "extend", name, OWN_WORDS)
    return command_line("cycle", "resume", name)
