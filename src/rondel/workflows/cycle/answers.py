"""A person's answer to a decision or a blocker becomes part of the state."""

from __future__ import annotations

from collections.abc import Sequence

from rondel.model.changes import Change
from rondel.model.names import folder_name
from rondel.model.outcomes import Outcome
from rondel.workflows.cycle import layout, transitions
from rondel.workflows.cycle.documents import Step
from rondel.workflows.cycle.leave import json_file
from rondel.workflows.cycle.state import State
from rondel.workflows.cycle.values import mapping

AUTO = "auto"


def answered(state: State, path: str, outcome: Outcome) -> Sequence[Change]:
    """The answer that a file holds, or the one nobody is asked for."""
    for decision in state.pending_decisions:
        name = folder_name(decision.id)
        if path == layout.answered("decision", name):
            body = mapping(state.files.json(layout.answer("decision", name)))
            first = decision.options[0] if decision.options else "yes"
            option = str(body.get("answer") or first)
            by = str(body.get("by") or AUTO)
            return _noted(
                state, path, outcome, transitions.make_decision(decision.id, option, by), option, by
            )
    for blocker in state.open_blockers:
        name = folder_name(blocker.id)
        if path == layout.answered("blocker", name):
            body = mapping(state.files.json(layout.answer("blocker", name)))
            word = "workaround" if body.get("answer") == "workaround" else "resolved"
            by = str(body.get("by") or "person")
            words = str(body.get("comment") or "") or f"{word} by {by}"
            return _noted(state, path, outcome, transitions.settle_blocker(blocker.id, word, words), word, by)
    return ()


def _noted(state: State, path: str, outcome: Outcome, step: Step, answer: str, by: str) -> Sequence[Change]:
    note = {"answer": answer, "by": by, "at": state.time(outcome.finished_at)}
    return [json_file(path, note), state.edit(outcome.finished_at, step)]
