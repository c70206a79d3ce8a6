"""Everything that is due in a session of tasks, the longest chain first.

What a planner is asked is in `proposing`, the steps of a task before its agent is asked in `analysing`, the
agent's work and how a task ends in `working`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

from rondel.errors import UnsafePath
from rondel.model.actions import Decide, Derive
from rondel.model.names import inside
from rondel.model.workflow import Step
from rondel.workflows.task import layout
from rondel.workflows.task.analysing import Waiting, next_step, waiting, waiting_in
from rondel.workflows.task.documents import draw, is_drawn
from rondel.workflows.task.proposing import proposing
from rondel.workflows.task.schema import Task
from rondel.workflows.task.state import Claim, SessionStatus, State
from rondel.workflows.task.working import adopt_summary, set_back, work

NAMED_MAX = 5  # commands that one question names
LINE_MAX = 120


def steps(state: State) -> Iterator[Step[State]]:
    """What is due. Whatever ends may be the moment to draw the documents again."""
    for step in _due_now(state):
        action = step.action
        if isinstance(action, Decide):
            yield step
        else:
            drawn = replace(action, outputs=(*action.outputs, layout.TODO, layout.PLAN))
            yield replace(step, action=drawn)


def _due_now(state: State) -> Iterator[Step[State]]:
    if state.session.status is not SessionStatus.COMPLETED:
        if (proposal := proposing(state)) is not None:
            yield proposal
        if state.request.kind == "run":
            yield from _work(state)
    if not is_drawn(state):
        yield Step(Derive(layout.TODO, title="generated documents"), lambda state, _: draw(state))


def _work(state: State) -> Iterator[Step[State]]:
    """The due steps of each leaf that may be worked on now.

    Leaves under way come first. A leaf that is ready waits while another one works in the
    same places.
    """
    yield from map(adopt_summary, state.claimed(Claim.SUMMARY))
    yield from map(set_back, filter(state.selected, state.claimed(Claim.SET_BACK)))
    busy = BusyPaths()
    for entries, waits_for_place in ((state.frontier.active, False), (state.frontier.ready, True)):
        for _, _, leaf in entries:
            task = state.tasks[leaf]
            if not state.selected(leaf) or (waits_for_place and busy.overlaps(task.focus_paths)):
                continue
            step = _due(state, task)
            if step is not None and not isinstance(step.action, Decide):
                busy.take(task.focus_paths)
                yield step
    yield from map(Step, questions(state))


def questions(state: State) -> Iterator[Decide]:
    """What only a person can say: how a failed step goes on, and which commands may run."""
    for task in _with_steps(state):
        step = _due(state, task)
        if step is not None and isinstance(step.action, Decide):
            yield step.action
    waits = commands_waiting(state)
    if waits:
        words = "; ".join(f"{w.task_id} step {w.step}: {_short(w.command)}" for w in waits[:NAMED_MAX])
        more = f" and {len(waits) - NAMED_MAX} more" if len(waits) > NAMED_MAX else ""
        yield Decide(layout.ALLOW, f"not yet allowed: {words}{more}; `rondel task allow` asks", ("allow",))


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= LINE_MAX else f"{line[: LINE_MAX - 1]}…"


def _due(state: State, task: Task) -> Step[State] | None:
    """The next step of a leaf; None when it cannot go on by itself.

    Where its files claim something, that is written down before it is known what is due.
    """
    if state.claims.get(task.id) in (Claim.SUMMARY, Claim.SET_BACK):
        return None
    if task.id in state.unusable or waiting(task, state.allowed):
        return None
    return next_step(state, task) or work(state, task)


def commands_waiting(state: State) -> list[Waiting]:
    """The commands that a person must allow before the leaves that are due can run."""
    return waiting_in([t for t in _with_steps(state) if t.id not in state.unusable], state.allowed)


def _with_steps(state: State) -> list[Task]:
    """The leaves with steps that a person asked for and that are under way or ready."""
    if not state.has_steps:
        return []
    leaves = (state.tasks[leaf] for _, _, leaf in (*state.frontier.active, *state.frontier.ready))
    return [task for task in leaves if task.steps and state.selected(task.id)]


class BusyPaths:
    """The places that tasks work in now. A folder takes everything below it, and `.` takes all."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._above: set[str] = set()

    def take(self, paths: Iterable[str]) -> None:
        """Take the places of a task."""
        for path in _plain(paths):
            self._taken.add(path)
            self._above.update(_folders(path))

    def overlaps(self, paths: Iterable[str]) -> bool:
        """Whether one of these places is taken, or has one that is taken inside."""
        return any(
            path in self._taken or path in self._above or any(f in self._taken for f in _folders(path))
            for path in _plain(paths)
        )


def _plain(paths: Iterable[str]) -> Iterable[str]:
    """The paths in one spelling; what is no path of the project takes nothing."""
    return (plain for path in paths if (plain := _spelled(path)) is not None)


@lru_cache(maxsize=10_000)
def _spelled(path: str) -> str | None:
    """A path in one spelling; None for what is no path of the project."""
    short = path.removeprefix("./").rstrip("/")
    if short in ("", "."):
        return ""
    try:
        return inside(short)
    except UnsafePath:
        return None


def _folders(path: str) -> Iterable[str]:
    """The folders around a path, up to the whole project."""
    while path:
        path = path.rpartition("/")[0]
        yield path
