"""Words of somebody else under the name of a document of `generate`, at any moment."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from generate_java import FILES
from generate_scene import FAIL, FULL, PASS, Scene, begin, engineer, place, project, repo

from rondel.agents.base import Request
from rondel.testing.scripted import Scripted
from rondel.workflows.generate import WorkflowPhase, transitions
from rondel.workflows.generate.layout import Paths
from support.words import SWEPT, Moment, Story, tell, told

pytestmark = pytest.mark.sweep

PATHS = Paths("domain/")
DOMAIN = {**FULL, "scope": "domain"}
WORKED = (WorkflowPhase.PLAN, WorkflowPhase.GENERATE, WorkflowPhase.REVIEW)
ENDS = (0, 1, 3)  # done; a cycle stopped by a text that cannot be used; or waiting for a person


def answer(request: Request) -> str:
    return PASS if place(request)[2] == "review" else str(engineer(request))


class Retried(Story):
    """One cycle to its end; then planned anew."""

    names = (
        PATHS.standards,
        PATHS.plan,
        *(PATHS.prompt(1, phase) for phase in WORKED),
        *(PATHS.response(1, phase) for phase in WORKED),
        *(f"{PATHS.code(1)}/{name}" for name in FILES["domain"]),
    )

    def __init__(self, folder: Path) -> None:
        self.root = repo(folder / "repo")
        self.ref = begin(self.root, context=DOMAIN, with_tests=False)
        self.session = self.root / self.ref.folder
        self.agent = Scripted(answer)
        self.project = project(self.root, self.agent)

    def drive(self) -> None:
        assert self.project.run(self.ref).exit_code in ENDS

    def more(self) -> None:
        state = self.project.state(self.ref)
        if state.views[0].cycle.current_iteration == 1:
            changes = transitions.retry(state, "domain", WorkflowPhase.PLAN, "again", datetime.now(UTC))
            self.project.change(self.ref, changes)
        assert self.project.run(self.ref, retry=True).exit_code in ENDS


class Rejected(Retried):
    """A cycle whose first iteration the reviewer rejects; then planned anew."""

    names = (
        *Retried.names,
        *(PATHS.prompt(2, phase) for phase in WORKED if phase is not WorkflowPhase.PLAN),
        *(PATHS.response(2, phase) for phase in WORKED if phase is not WorkflowPhase.PLAN),
        *(f"{PATHS.code(2)}/{name}" for name in FILES["domain"]),
    )

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.agent = Scripted(rejecting)
        self.project = project(self.root, self.agent)


def rejecting(request: Request) -> str:
    _, iteration, phase = place(request)
    return FAIL if (phase, iteration) == ("review", 1) else answer(request)


@SWEPT
@pytest.mark.parametrize("story", [Retried, Rejected])
def test_words_of_somebody_else_are_found_again(story, tmp_path_factory):
    tell(story, tmp_path_factory.mktemp, examples=6)


def test_the_first_iteration_of_that_story_is_rejected(tmp_path):
    story = Rejected(tmp_path)
    story.drive()
    assert PATHS.response(2, WorkflowPhase.REVIEW) in [request.action for request in story.agent.seen]


@pytest.mark.parametrize("name", Rejected.names)
def test_words_in_each_place_of_a_session_whose_iteration_was_rejected_are_found_again(name, tmp_path):
    number = Rejected.names.index(name)
    told(Rejected(tmp_path), Moment(10**6, number))


def test_standards_that_a_person_wrote_before_the_cycle_are_those_of_its_prompts(tmp_path):
    scene = Scene(tmp_path / "repo", context=DOMAIN, with_tests=False)
    (scene.folder / "domain").mkdir()
    (scene.folder / PATHS.standards).write_text("# Mine\n\nNo setters.\n")
    assert scene.drive().exit_code == 0
    assert scene.text(PATHS.standards) == "# Mine\n\nNo setters.\n"
    assert "No setters." in scene.prompt_of(PATHS.response(1, WorkflowPhase.PLAN))


def test_a_plan_that_a_person_wrote_before_the_cycle_is_the_response_and_is_approved_first(tmp_path):
    scene = Scene(tmp_path / "repo", context=DOMAIN, with_tests=False, request={"gate": "manual"})
    (scene.folder / "domain").mkdir()
    (scene.folder / PATHS.plan).write_text("# My plan\n\nOne entity.\n")
    assert scene.drive().exit_code == 3
    assert scene.decide("approve") == 3, "the prompt; then the plan itself"
    assert scene.text(PATHS.response(1, WorkflowPhase.PLAN)) == "# My plan\n\nOne entity.\n"
    assert scene.cycle("domain")["plan_approved"] is False
    assert scene.decide("approve") == 3
    assert scene.cycle("domain")["plan_approved"] is True
    assert scene.asked == []
    assert "One entity." in scene.text(PATHS.prompt(1, WorkflowPhase.GENERATE))
    assert scene.text(PATHS.plan) == "# My plan\n\nOne entity.\n"


def test_a_plan_of_a_person_that_is_rejected_is_kept_and_made_by_the_agent(tmp_path):
    scene = Scene(tmp_path / "repo", context=DOMAIN, with_tests=False, request={"gate": "manual"})
    (scene.folder / "domain").mkdir()
    (scene.folder / PATHS.plan).write_text("# My plan\n")
    scene.drive()
    scene.decide("approve")
    scene.decide("reject", "say more")
    assert scene.asked == [PATHS.response(1, WorkflowPhase.PLAN)]
    scene.decide("approve")
    assert "# Plan of domain" in scene.text(PATHS.plan)
    assert (scene.folder / ".rondel/aside/domain__plan.md.replaced-1").read_text() == "# My plan\n"
