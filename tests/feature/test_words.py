"""Words of somebody else under the name of a feature's document, at any moment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scratch import git
from turning import APPROVED, BLOCKED

from rondel.agents.base import Request
from rondel.project import Project
from rondel.testing.scripted import Scripted
from rondel.workflows.feature import layout, start_feature
from rondel.workflows.feature.phases import ARTIFACTS
from rondel.workflows.feature.workflow import Feature
from support.words import SWEPT, Story, tell

pytestmark = pytest.mark.sweep

PHASES = ("specify", "design")


def answer(request: Request) -> str:
    """Drafts, and a reviewer that wants one revision of each."""
    if request.action.endswith("review.json"):
        return BLOCKED if "iteration-1" in request.action else APPROVED
    return f"# {request.action}\n\n=== CHANGES ===\nWrote it.\n"


class Phases(Story):
    """Specify and design, two iterations of each; then both once more, one of them begun afresh."""

    names = (*(ARTIFACTS[p] for p in PHASES), layout.HISTORY)

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repo"
        self.root.mkdir(parents=True)
        git(self.root, "init", "-q")
        git(self.root, "commit", "-q", "--allow-empty", "-m", "start")
        (self.root / "rondel.toml").write_text(f'[workspaces]\nroot = "{folder / "trees"}"\n')
        self.ref = start_feature(self.root, "Add", mode="full", brainstorm="# Ideas\n")
        self.session = self.root / self.ref.folder
        self.agent = Scripted(answer)
        self.project = Project(self.root, workflows={"feature": Feature()}, build=lambda _: self.agent)

    def ask(self, number: int, **request: object) -> None:
        path = self.session / f".rondel/request-{number}.json"
        if not path.exists():
            path.write_text(json.dumps(request))
        assert self.project.run(self.ref).exit_code == 0

    def drive(self) -> None:
        self.ask(2, command="run", until="design")

    def more(self) -> None:
        self.ask(3, command="phase", phase="specify", how="fresh", proceed=True)
        self.ask(4, command="phase", phase="design", proceed=True)

    def must_be_reviewed(self, name: str) -> bool:
        """Not the history, and not a specification that is then begun afresh."""
        meta = json.loads((self.session / ".meta.json").read_text())
        if name == "spec.md":
            return "specify" not in meta["phases"] or not meta["phases"]["specify"].get("completed")
        return name == "design.md"


@SWEPT
def test_words_of_somebody_else_are_reviewed_and_found_again(tmp_path_factory):
    tell(Phases, tmp_path_factory.mktemp, examples=6)
