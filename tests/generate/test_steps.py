"""What a step means travels with it, and is carried out on the state of the moment."""

from __future__ import annotations

import json

import pytest
from generate_scene import AT, FULL

from rondel.model.actions import Ask, Derive
from rondel.model.outcomes import Ended, Outcome
from rondel.model.snapshot import FrozenSnapshot
from rondel.model.workflow import SessionRef, Step
from rondel.workflows.generate.read import State
from rondel.workflows.generate.workflow import Generate

REF = SessionRef("generate", "one", ".aiwf/sessions/one")
FLOW = Generate()
PROMPT = "domain/iteration-1/prompts/planning-prompt.md"
RESPONSE = "domain/iteration-1/responses/planning-response.md"


def state(gate: str = "skip", files: dict[str, str] | None = None, **cycle: object) -> State:
    begun = {"type": "domain", "scope": "domain", "iterations": [{"number": 1}], **cycle}
    body = {"session_id": "one", "profile_name": "jpa-mt", "context": FULL, "cycles": [begun]}
    there = {"session.json": json.dumps(body), ".rondel/request-1.json": json.dumps({"gate": gate})}
    return FLOW.read(FrozenSnapshot({**there, PROMPT: "Plan.\n", **(files or {})}), REF)


def due(found: State) -> Step[State]:
    (step,) = FLOW.steps(found)
    return step


def said(text: str = "") -> Outcome:
    return Outcome(Ended.DONE, text=text, finished_at=AT)


def test_a_response_is_asked_for_with_the_prompt_as_it_is_when_the_step_starts():
    step = due(state(stage="response"))
    assert isinstance(step.action, Ask)
    assert step.prompt(state(stage="response", files={PROMPT: "Plan it my way.\n"})) == "Plan it my way.\n"


def test_a_response_that_comes_when_the_cycle_has_moved_on_leaves_nothing():
    step = due(state(stage="response"))
    assert [c.path for c in step.write(state(stage="response"), said("A plan."))] == [RESPONSE]
    for moved in ({"phase": "generate"}, {"stage": "response", "status": "cancelled"}):
        assert list(step.write(state(**moved), said("A plan."))) == []


def test_a_response_counts_for_whichever_version_is_due_by_then():
    step = due(state(stage="response"))
    changes = step.write(state(stage="response", retry_count=1), said("A plan."))
    assert [c.path for c in changes] == [RESPONSE]


@pytest.mark.parametrize(("gate", "kind"), [("agent", Ask), ("skip", Derive)])
def test_what_was_said_of_one_version_of_a_file_is_not_about_the_next(gate, kind):
    step = due(state(gate))
    assert isinstance(step.action, kind)
    answer = said('```json\n{"answer": "approve"}\n```')
    assert list(step.write(state(gate), answer))
    assert list(step.write(state(gate, retry_count=1), answer)) == []
