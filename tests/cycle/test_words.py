"""Words of somebody else under the name of a cycle's document, at any moment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cycle_answers import answer
from cycle_repo import Repo
from test_running import QUICK

from rondel.project import Project
from rondel.testing.scripted import Scripted
from rondel.workflows.cycle import layout
from rondel.workflows.cycle.files import added, create
from support.words import SWEPT, Story, tell

pytestmark = pytest.mark.sweep


class Extended(Story):
    """A cycle to its end, extended, and to its end again."""

    names = (
        layout.REQUIREMENTS,
        layout.EXPLORATION,
        layout.PLAN,
        layout.CHANGES,
        layout.IMPLEMENTATION,
        layout.TEST_RESULTS,
        layout.VALIDATION,
        layout.SUMMARY,
        layout.TIMELINE,
    )

    def __init__(self, folder: Path) -> None:
        self.repo = Repo(folder)
        self.repo.configure(QUICK)
        test = json.loads(QUICK.partition("test = ")[2])
        self.ref = create(
            self.repo.root, "Add subtraction", title=None, settings={"test": test, "auto": True}
        )
        self.session = self.repo.progress
        self.agent = Scripted(answer)
        self.project = Project(self.repo.root, build=lambda _: self.agent)

    def drive(self) -> None:
        assert self.project.run(self.ref).exit_code == 0

    def prompt_of(self, action: str) -> str:
        return next(r.prompt for r in self.agent.seen if r.action == action)

    def more(self) -> None:
        if not any((self.session / ".rondel/parts/extensions").glob("[!.]*")):
            self.project.change(self.ref, [added("And more", self.project.look.at)])
        assert self.project.run(self.ref).exit_code == 0


@SWEPT
def test_words_of_somebody_else_are_found_again(tmp_path_factory):
    tell(Extended, tmp_path_factory.mktemp, examples=3)


PLAN = {"tasks": [{"id": "A", "description": "subtract, as I plan"}], "note": "mine"}
GIVEN = {
    layout.REQUIREMENTS: "# Mine\n\n- it subtracts, as I say\n",
    layout.EXPLORATION: "# Mine\n\nOne module, as I see it.\n",
    layout.PLAN: json.dumps(PLAN, indent=1) + "\n",
}


@pytest.mark.parametrize("name", GIVEN)
def test_what_somebody_wrote_before_the_agent_was_asked_is_the_answer(tmp_path, name):
    story = Extended(tmp_path)
    path = story.session / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(GIVEN[name])
    story.drive()
    part = layout.part(1, name)
    assert part not in story.agent.actions
    assert (story.session / part).read_text() == GIVEN[name], "to the byte"
    planning, coding = layout.part(1, layout.PLAN), layout.part(1, "cd/A.md")
    later = planning if name != layout.PLAN else coding
    assert "as I" in story.prompt_of(later)
    again = layout.part(2, name)
    assert again in story.agent.actions, "the next iteration revises it"
    assert "as I" in story.prompt_of(again)


def test_a_plan_that_cannot_be_carried_out_is_no_answer_and_is_kept(tmp_path):
    story = Extended(tmp_path)
    path = story.session / layout.PLAN
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"tasks": "later"}\n')
    story.drive()
    assert layout.part(1, layout.PLAN) in story.agent.actions
    kept = [p for p in story.session.rglob("*") if p.is_file() and p.read_bytes() == b'{"tasks": "later"}\n']
    assert len(kept) == 1
