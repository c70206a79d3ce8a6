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
from rondel.workflows.feature import layout, start_feature, update_phase_state
from rondel.workflows.feature.phases import ARTIFACTS
from rondel.workflows.feature.workflow import Feature
from support.words import SWEPT, Story, tell

pytestmark = pytest.mark.sweep

AT = "2026-11-15T12:00:00+00:00"


def answer(request: Request) -> str:
    """Drafts, and a reviewer that wants one revision of each."""
    if request.action.endswith("review.json"):
        return BLOCKED if "iteration-1" in request.action else APPROVED
    return f"# {request.action}\n\n=== CHANGES ===\nWrote it.\n"


class Phases(Story):
    """Two phases, two iterations of each; then both once more, the first of them begun afresh."""

    before: tuple[str, ...] = ()  # complete already
    first, second = "specify", "design"
    names = ("spec.md", "design.md", layout.HISTORY)

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repo"
        self.root.mkdir(parents=True)
        git(self.root, "init", "-q")
        git(self.root, "commit", "-q", "--allow-empty", "-m", "start")
        (self.root / "rondel.toml").write_text(f'[workspaces]\nroot = "{folder / "trees"}"\n')
        self.ref = start_feature(self.root, "Add", mode="full", brainstorm="# Ideas\n")
        self.session = self.root / self.ref.folder
        for phase in self.before:
            (self.session / ARTIFACTS[phase]).write_text(f"# {phase}\n")
            assert update_phase_state(self.session, phase, {"started": AT, "completed": AT})
        self.agent = Scripted(answer)
        self.project = Project(self.root, workflows={"feature": Feature()}, build=lambda _: self.agent)

    def ask(self, number: int, **request: object) -> None:
        path = self.session / f".rondel/request-{number}.json"
        if not path.exists():
            path.write_text(json.dumps(request))
        assert self.project.run(self.ref).exit_code == 0

    def drive(self) -> None:
        self.ask(2, command="run", until=self.second)

    def more(self) -> None:
        self.ask(3, command="phase", phase=self.first, how="fresh", proceed=True)
        self.ask(4, command="phase", phase=self.second, proceed=True)

    def must_be_reviewed(self, name: str) -> bool:
        """Not the history, and not a document that is then begun afresh."""
        meta = json.loads((self.session / ".meta.json").read_text())
        if name == ARTIFACTS[self.first]:
            return not meta["phases"].get(self.first, {}).get("completed")
        return name == ARTIFACTS[self.second]


class PhasesOfAPlan(Phases):
    """The same for the plan and the list of tasks."""

    before = ("specify", "design")
    first, second = "create-plan", "create-tasks"
    names = ("plan.md", "tasks.md", layout.HISTORY)


@SWEPT
@pytest.mark.parametrize("story", [Phases, PhasesOfAPlan])
def test_words_of_somebody_else_are_reviewed_and_found_again(story, tmp_path_factory):
    tell(story, tmp_path_factory.mktemp, examples=3)
