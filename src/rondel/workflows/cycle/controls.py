"""Control: what pause, stop and resume change in the files of a cycle."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from rondel.model.changes import Aside, Change
from rondel.model.commands import command_line
from rondel.workflows.cycle import layout, transitions
from rondel.workflows.cycle.leave import restore
from rondel.workflows.cycle.state import Stage, State, TaskView, Turn

SIGNALS = {"paused": (False, "pause"), "failed": (False, "stop"), "running": (True, "continue")}


def signals(status: str | None) -> dict[str, object]:
    """What an agent must do before its next action."""
    goes_on, action = SIGNALS.get(status or "", (False, "unknown"))
    return {"continue": goes_on, "action": action}


def control(state: State, word: str, at: datetime) -> Sequence[Change]:
    """What a person's word leaves in the files."""
    if state.cycle is None:
        return ()
    if word in ("resume", "retry"):
        return _resume(state, at, retry=word == "retry")
    verb = "stopped" if word == "stop" else "paused"
    step = transitions.pause(
        f"{verb} by a person at {state.time(at)}; `{command_line('cycle', 'resume', state.id)}` goes on"
    )
    return [*restore(state), state.edit(at, step)]


def _resume(state: State, at: datetime, *, retry: bool) -> Sequence[Change]:
    """What rests goes on; with `retry` also what failed because an agent gave no answer."""
    status = state.cycle.status if state.cycle else None
    if status == "paused":
        return [*restore(state), state.edit(at, transitions.resume(retry=False))]
    if status == "failed" and retry and state.turn is not None:
        again = _ask_again(state, state.turn)
        return [*restore(state), *again, state.edit(at, transitions.resume(retry=True))]
    return ()


def _ask_again(state: State, turn: Turn) -> list[Change]:
    """Tasks that got no answer are due again; what they left is put aside."""
    changes: list[Change] = []
    for view in turn.tasks:
        if view.stage is Stage.FAILED and view.result.get("ended") == "failed":
            changes += _put_aside(state, turn, view)
    return changes


def _put_aside(state: State, turn: Turn, view: TaskView) -> list[Change]:
    folder = layout.part(turn.number, "cd/failed")
    taken = state.files.names(folder)
    number = next(n for n in range(1, len(taken) + 2) if f"{view.task.id}.{n}.md" not in taken)
    paths = (
        layout.task(turn.number, view.task.id, view.number),
        layout.task_result(turn.number, view.task.id, view.number),
    )
    return [Aside(path, f"{folder}/{view.task.id}.{number}.{path.rpartition('.')[2]}") for path in paths]
