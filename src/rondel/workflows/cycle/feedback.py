"""Feedback: who has seen which entry of the log. It only grows, so a count says it all."""

from __future__ import annotations

from rondel.model.snapshot import Snapshot
from rondel.workflows.cycle import layout
from rondel.workflows.cycle.models import AGENTS, FeedbackEntry
from rondel.workflows.cycle.state import State, Turn

EVERYONE = "all"


def due_for(state: State, turn: Turn, agent: str) -> list[FeedbackEntry]:
    """What an agent is told when it is asked: everything since it was asked in the iteration before."""
    log = state.cycle.coordination.feedback_log if state.cycle else []
    known = min(_seen(state.files, turn.number - 1, agent), default=0) if turn.number > 1 else 0
    return [entry for entry in log[known:] if entry.target in (agent, EVERYONE)]


def unread(state: State, turn: Turn) -> list[FeedbackEntry]:
    """What the user said to an agent after it was last asked: nobody has acted on it yet."""
    log = state.cycle.coordination.feedback_log if state.cycle else []
    last = {name: max(_seen(state.files, turn.number, name), default=len(log)) for name in AGENTS}
    return [
        entry
        for i, entry in enumerate(log)
        if entry.source == "user"
        and i >= last.get(entry.target, len(log) if entry.target != EVERYONE else min(last.values()))
    ]


def _seen(files: Snapshot, iteration: int, agent: str) -> list[int]:
    folder = layout.seen(iteration, agent)
    found = []
    for name in files.names(folder):
        body = files.json(f"{folder}/{name}")
        count = body.get("feedback") if isinstance(body, dict) else None
        if isinstance(count, int):
            found.append(count)
    return found
