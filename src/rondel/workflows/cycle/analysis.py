"""What comes before any code: requirements, exploration and the plan made from both.

A document that somebody else wrote before its agent was ever asked is that agent's answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rondel.model.actions import Access, Ask, Derive, Workspace
from rondel.model.changes import Change, Write, json_file, text
from rondel.model.marks import is_theirs
from rondel.model.outcomes import Ended, Outcome
from rondel.model.workflow import Step
from rondel.workflows.cycle import asking, layout, plans, results, transitions
from rondel.workflows.cycle.documents import Doc, Transition
from rondel.workflows.cycle.layout import FIRST, bump
from rondel.workflows.cycle.questions import raised
from rondel.workflows.cycle.routing import notes
from rondel.workflows.cycle.state import Iteration, State
from rondel.workflows.cycle.validating import tests_section

TAKEN_OVER = "taken over as somebody else wrote it"


@dataclass(frozen=True)
class AgentDocument:
    """One of the three documents: whose it is, and where it lies."""

    name: str  # of its section in the state
    agent: str
    path: str
    reader: str  # the agent that its author's remarks are for
    outputs: tuple[str, ...] = ()  # what its author has left with it; empty where the author goes on
    prefix: str = ""  # of the questions that it raises


REQUIREMENTS = AgentDocument("requirements", "ra", layout.REQUIREMENTS, "ep", (layout.REQUIREMENTS,))
EXPLORATION = AgentDocument("exploration", "ep", layout.EXPLORATION, "cd", prefix="x")
PLAN = AgentDocument("plan", "ep", layout.PLAN, "cd", (layout.EXPLORATION, layout.PLAN))
SECTIONS = {REQUIREMENTS: results.requirements_section, EXPLORATION: results.exploration_section}


def analysing(state: State, iteration: Iteration) -> Iterator[Step[State]]:
    """Requirements and exploration start together."""
    if not iteration.has_requirements:
        yield _given(state, iteration, REQUIREMENTS) or _markdown(iteration, REQUIREMENTS, "ra")
    if not iteration.has_exploration:
        yield _given(state, iteration, EXPLORATION) or _markdown(iteration, EXPLORATION, "explore")


def planning(state: State, iteration: Iteration) -> Step[State]:
    """The plan, made from both."""
    return _given(state, iteration, PLAN) or asking.step(
        iteration,
        "ep",
        _ask(iteration, PLAN, (layout.REQUIREMENTS, layout.EXPLORATION)),
        "plan",
        material=_plan_material,
        wrong=lambda answer: plans.parse(answer).error,
        write=_planned,
    )


def plan_again(iteration: Iteration) -> Step[State]:
    """The plan's own file was broken: it is written again."""
    inputs = (layout.reply(iteration.number, layout.PLAN),)
    action = Derive(layout.PLAN, inputs=inputs, title="the plan as it was accepted")
    return Step(action, asking.during(iteration, _plan_restored))


def _ask(iteration: Iteration, document: AgentDocument, inputs: tuple[str, ...]) -> Ask:
    return Ask(
        layout.reply(iteration.number, document.path),
        f"cycle.{document.agent}",
        inputs=inputs,
        workspace=Workspace(Access.READ, base=iteration.base),
        outputs=(document.path,),
        title=document.name,
    )


def _markdown(iteration: Iteration, document: AgentDocument, template: str) -> Step[State]:
    return asking.step(
        iteration,
        document.agent,
        _ask(iteration, document, (layout.begun(iteration.number),)),
        template,
        material=lambda state, _iteration: asking.file_section(state, document.name, document.path),
        wrong=asking.no_text,
        write=partial(_written, document),
    )


def _written(
    document: AgentDocument, state: State, iteration: Iteration, outcome: Outcome
) -> Sequence[Change]:
    if asking.refused(outcome):
        return asking.agent_failed(state, iteration, document.agent, outcome)
    content = results.without_phase_result(outcome.text)
    if document is REQUIREMENTS:
        content = results.number_requirements(content)
    version = bump(iteration.version(document.name))
    section = SECTIONS[document](content, version, state.time(outcome.finished_at))
    part = text(layout.reply(iteration.number, document.path), outcome.text)
    return _left(document, state, iteration, outcome, section, text(document.path, content), part)


def _plan_material(state: State, iteration: Iteration) -> Mapping[str, str]:
    former = state.files.text(layout.PLAN)
    fenced = f"```json\n{former}\n```" if former else ""
    to_correct = asking.due_for(state, iteration, "cd")
    return {
        **asking.file_section(state, "requirements", layout.REQUIREMENTS),
        **asking.file_section(state, "exploration", layout.EXPLORATION),
        **tests_section(state),
        "developer_feedback": asking.feedback_section("What the code developer must mend", to_correct),
        "plan": asking.section("The plan of the iteration before", fenced),
    }


def _planned(state: State, iteration: Iteration, outcome: Outcome) -> Sequence[Change]:
    proposal = plans.parse(outcome.text)
    if not asking.refused(outcome) and proposal.error:
        outcome = replace(outcome, ended=Ended.REJECTED, error=proposal.error)
    if asking.refused(outcome):
        return asking.agent_failed(state, iteration, "ep", outcome)
    plan = proposal.section(bump(iteration.version("plan")), state.time(outcome.finished_at))
    part = json_file(layout.reply(iteration.number, layout.PLAN), plan)
    return _left(PLAN, state, iteration, outcome, plan, json_file(layout.PLAN, plan), part)


def _plan_restored(state: State, iteration: Iteration, _outcome: Outcome) -> Sequence[Change]:
    """The plan's own file as the state has it, with what became of its tasks; else as it was accepted."""
    kept = (state.document.get("plan"), state.files.json(layout.reply(iteration.number, layout.PLAN)))
    found = next((p for p in kept if isinstance(p, dict) and not plans.check(p).error), None)
    return [json_file(layout.PLAN, found)] if found is not None else []


def _left(
    document: AgentDocument,
    state: State,
    iteration: Iteration,
    outcome: Outcome,
    section: Doc,
    file: Write,
    part: Write,
) -> Sequence[Change]:
    """The published document, the state, and the part that says it is done."""
    agent, number = document.agent, iteration.number
    result = results.parse_phase_result(outcome.text) or {}
    at = state.time(outcome.finished_at)
    message = str(result.get("summary", ""))
    in_part = results.status_of(result) is results.ResultStatus.PARTIAL
    remarks = notes(results.texts(result, "issues", "critical_issues"), agent, document.reader, at)
    return [
        *asking.publish(state, file, iteration.version(document.name)),
        state.edit(
            outcome.finished_at,
            transitions.section(document.name, section),
            _done(document, number, at, message, "partial" if in_part else "completed"),
            transitions.add_feedback(remarks),
            *raised(result, agent, number, document.prefix),
        ),
        part,
    ]


def _done(
    document: AgentDocument, number: int, at: str, message: str, status: str = "completed"
) -> Transition:
    """Its author is done in this iteration, or waits for the next document to be due."""
    if not document.outputs:
        return transitions.rest_agent(document.agent, message or "explored; waits for the requirements")
    return transitions.finish_agent(
        document.agent, number, at, outputs=document.outputs, message=message, status=status
    )


def _given(state: State, iteration: Iteration, document: AgentDocument) -> Step[State] | None:
    """A document that somebody else wrote, taken over; None where its agent has to be asked.

    Only where no version of it was made here before: a later one is what the agent is asked to revise,
    and is kept in `history/`. A plan that cannot be carried out is no answer.
    """
    path = document.path
    if iteration.version(document.name) is not None or not is_theirs(state.files, path):
        return None
    if document is PLAN and plans.check(state.files.json(path)).error:
        return None
    title = f"{document.name}: as somebody else wrote it"
    action = Derive(layout.reply(iteration.number, document.path), inputs=(path,), title=title)
    return Step(action, asking.during(iteration, partial(_taken_over, document)))


def _taken_over(
    document: AgentDocument, state: State, iteration: Iteration, outcome: Outcome
) -> Sequence[Change]:
    """The document stays as it is; the state shows it, and its part holds it to the byte."""
    content, data = state.files.text(document.path), state.files.data(document.path)
    plan = plans.check(state.files.json(layout.PLAN))
    if content is None or data is None or (document is PLAN and plan.error):
        return ()
    at = state.time(outcome.finished_at)
    section = plan.section(FIRST, at) if document is PLAN else SECTIONS[document](content, FIRST, at)
    done = _done(document, iteration.number, at, TAKEN_OVER)
    return [
        state.edit(outcome.finished_at, transitions.section(document.name, section), done),
        Write(layout.reply(iteration.number, document.path), data),
    ]
