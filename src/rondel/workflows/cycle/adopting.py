"""Adopting: a document that somebody else wrote before its agent was ever asked is that agent's answer."""

from __future__ import annotations

from collections.abc import Sequence

from rondel.model.changes import Change, Write
from rondel.model.outcomes import Outcome
from rondel.model.written import is_theirs
from rondel.workflows.cycle import layout, plans, transitions
from rondel.workflows.cycle.documents import Step
from rondel.workflows.cycle.rebuild import exploration_section, requirements_section
from rondel.workflows.cycle.state import State, Turn
from rondel.workflows.cycle.versions import FIRST

SECTIONS = {
    layout.REQUIREMENTS: "requirements",
    layout.EXPLORATION: "exploration",
    layout.PLAN: "plan",
}
WORDS = "taken over as somebody else wrote it"


def is_given(state: State, turn: Turn, path: str) -> bool:
    """Whether a document is somebody else's, and no version of it was made here before.

    A later one is what the agent is asked to revise, and is kept in `history/`. A plan that cannot
    be carried out is no answer.
    """
    if turn.version(SECTIONS[path]) is not None or not is_theirs(state.files, path):
        return False
    return path != layout.PLAN or not plans.check(state.files.json(path)).error


def given(state: State, turn: Turn, path: str, outcome: Outcome) -> Sequence[Change]:
    """The document stays as it is; the state shows it, and its part holds it to the byte."""
    content, data = state.files.text(path), state.files.data(path)
    if content is None or data is None:
        return ()
    at = state.time(outcome.finished_at)
    number = turn.number
    steps: list[Step]
    match path:
        case layout.REQUIREMENTS:
            part = layout.requirements(number)
            steps = [
                transitions.section("requirements", requirements_section(content, FIRST, at)),
                _finished("ra", number, at, [path]),
            ]
        case layout.EXPLORATION:
            part = layout.exploration(number)
            steps = [
                transitions.section("exploration", exploration_section(content, FIRST, at)),
                transitions.rest_agent("ep", WORDS),
            ]
        case _:
            part = layout.plan(number)
            steps = [
                transitions.section("plan", plan_section(plans.check(state.files.json(path)), FIRST, at)),
                _finished("ep", number, at, [layout.EXPLORATION, path]),
            ]
    return [state.edit(outcome.finished_at, *steps), Write(part, data)]


def _finished(agent: str, number: int, at: str, outputs: Sequence[str]) -> Step:
    return transitions.finish_agent(
        agent, number, at, outputs=outputs, message=WORDS, status="completed", files=len(outputs)
    )


def plan_section(proposal: plans.Proposal, version: str, at: str) -> dict[str, object]:
    """A plan as the state and its file hold it."""
    return {
        "version": version,
        "tasks": [task.document() for task in proposal.tasks],
        "total_estimated_effort": proposal.effort,
        "critical_path": list(proposal.critical_path),
        "last_updated": at,
    }
