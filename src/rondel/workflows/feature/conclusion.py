"""What the phases that were asked for came to: their messages, and what the reviewer holds against them."""

from __future__ import annotations

from rondel.model.conclusion import Conclusion
from rondel.workflows.feature import layout
from rondel.workflows.feature.meta import notes, records
from rondel.workflows.feature.phases import REVIEWED
from rondel.workflows.feature.read import Request, State
from rondel.workflows.feature.work import read_work


def conclusion(state: State) -> Conclusion:
    """What became of the phases of the last request; concerns and what others did are no approval."""
    if state.request is None:
        return Conclusion()
    done = [p for p in REVIEWED if p in state.completed and _asked_for(state, state.request, p)]
    concerns = {p: found for p in done if (found := notes(records(state.meta)[p]))}
    foreign = [p for p in done if p in state.foreign]
    return Conclusion(
        approved=not concerns and not foreign if done else None,
        lines=tuple(_line(state, p) for p in done),
        fields={
            "completed": done,
            "not_made_by_rondel": foreign,
            "concerns": {p: list(found) for p, found in concerns.items()},
        },
    )


def _asked_for(state: State, request: Request, phase: str) -> bool:
    """Whether a completed phase is what the request came to."""
    if request.phase:
        return phase == request.phase
    if request.before is not None:
        return phase not in request.before
    take = read_work(state.files, phase).take  # a request of the version before does not say
    return take is not None and take.request == request.number


def _line(state: State, phase: str) -> str:
    message = state.files.text(layout.complete(read_work(state.files, phase).folder)) or "Phase complete"
    return f"{phase}: {message.strip()}{made_by(state, phase)}"


def made_by(state: State, phase: str) -> str:
    """Who did a completed phase, where that was not Rondel."""
    return ", not made by Rondel" if phase in state.foreign else ""
