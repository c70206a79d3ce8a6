"""Words of somebody else under the name of a review's document, at any moment."""

from __future__ import annotations

from pathlib import Path

import pytest
from review_support import (
    APP,
    commit,
    feature_branch,
    finding,
    open_review,
    panel,
    project_of,
    review,
    run_review,
)

from rondel.errors import NothingToDo
from rondel.workflows.review.layout import CONTEXT, REQUIREMENTS, STANDARDS, round_files
from support.words import SWEPT, Story, tell

pytestmark = pytest.mark.sweep

WRONG = finding("The sum is a difference", category="blocker", severity="high")
FIXED = {"app.py": APP + "\n\n# checked\n", "AGENTS.md": "Be kind.\n"}
AT = round_files(1)
ROUND = (AT.review("quality-1"), AT.discourse, AT.meta, AT.final)


MODEL = '[agents.model]\nkind = "command"\ncommand = ["true"]\n\n[roles]\ndefault = "model"\n'


def repository(folder: Path) -> Path:
    """A change to review, and settings that have a model for every role."""
    root = feature_branch(folder)
    (root / "rondel.toml").write_text(MODEL)
    return root


class Rounds(Story):
    """A round; then another one, about another change, with other requirements."""

    names = (STANDARDS, CONTEXT, REQUIREMENTS, *ROUND)

    def __init__(self, folder: Path) -> None:
        self.root = repository(folder / "repo")
        self.agent = panel(lambda _: review(WRONG))
        self.ref = open_review(self.root, team="quality:2").ref
        self.session = self.root / self.ref.folder
        self.project = project_of(self.root, self.agent)

    def drive(self) -> None:
        assert self.project.run(self.ref).exit_code == 0

    def more(self) -> None:
        if not (self.root / "AGENTS.md").exists():
            commit(self.root, FIXED)
        try:
            opened = open_review(self.root, team="quality:2", requirements="It adds.\n")
        except NothingToDo:
            return
        assert self.project.run(opened.ref).exit_code == 0


@SWEPT
def test_words_of_somebody_else_are_found_again(tmp_path_factory):
    tell(Rounds, tmp_path_factory.mktemp, examples=6)


@pytest.mark.parametrize("name", [STANDARDS, CONTEXT])
def test_standards_and_context_that_a_person_wrote_before_the_round_count(tmp_path, name):
    root = repository(tmp_path / "repo")
    session = root / open_review(root, team="quality:2").ref.folder
    (session / name).write_text("Every name is a word.\n")
    agent = panel(lambda _: review(WRONG))
    _, state = run_review(root, agent, team="quality:2")
    assert state.is_complete
    assert (session / name).read_text() == "Every name is a word.\n"
    assert (session / AT.part(name)).is_file(), "what was to be there is among the parts"
    asked = [r.prompt for r in agent.seen if "/reviews/" in r.action or "guidance" in r.action]
    assert len(asked) == 3
    assert all("Every name is a word." in prompt for prompt in asked)


def test_requirements_that_are_replaced_twice_in_one_round_are_both_kept(tmp_path):
    root = repository(tmp_path / "repo")
    ref = open_review(root, requirements="One.\n").ref
    for text in ("Two.\n", "Three.\n"):
        open_review(root, requirements=text)
    parts = root / ref.folder / ".rondel/parts/round-1"
    assert {p.read_text() for p in parts.glob("requirements.md*")} == {"One.\n", "Two.\n"}
