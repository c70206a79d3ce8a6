"""Kill it anywhere through specify and design; start it again: nothing is lost or paid for twice."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scratch import TASKS, git
from turning import APPROVED, BLOCKED

from rondel.agents.base import Reply, Request
from rondel.model.outcomes import Ended
from rondel.project import Project
from rondel.testing.kills import Trial, killed_and_resumed, undisturbed
from rondel.testing.scripted import Scripted
from rondel.workflows.feature import start_feature, update_phase_state
from rondel.workflows.feature.lint import lint_meta
from rondel.workflows.feature.phases import ARTIFACTS
from rondel.workflows.feature.workflow import Feature
from support.kills import swept

POINTS_MAX = 400
NOON = "2026-11-15T12:00:00+00:00"
COMMIT = re.compile(rb"\b[0-9a-f]{12}(?:[0-9a-f]{28})?\b")


def answer(request: Request) -> str:
    """Drafts, and a reviewer that wants one revision of each."""
    if request.action.endswith("review.json"):
        return BLOCKED if "iteration-1" in request.action else APPROVED
    return f"# {request.action}\n\n=== CHANGES ===\nWrote it.\n"


class Phases(Trial):
    """Specify and design, two iterations of each."""

    answer = staticmethod(answer)

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repo"
        self.root.mkdir(parents=True)
        git(self.root, "init", "-q")
        git(self.root, "commit", "-q", "--allow-empty", "-m", "start")
        (self.root / "rondel.toml").write_text(f'[workspaces]\nroot = "{folder / "trees"}"\n')
        self.ref = start_feature(self.root, "Add", brainstorm="# Ideas\n")
        self.session = self.root / self.ref.folder
        (self.session / ".rondel/request-2.json").write_text('{"command": "run", "until": "design"}')

    def drive(self) -> int:
        project = Project(self.root, workflows={"feature": Feature()}, build=lambda _: Scripted(self.answer))
        return project.run(self.ref).exit_code

    def check_killed(self) -> None:
        half = json.loads((self.session / ".meta.json").read_text())
        assert lint_meta(half) == (), "what a kill leaves is sound as it stands"


def build(request: Request) -> str | Reply:
    """Two tasks: one edits, one has nothing to do, the fix fails at first; the reviewer wants a fix."""
    if request.action.endswith("review.json"):
        return BLOCKED if "iteration-1" in request.action else APPROVED
    if request.action.endswith("task-1.json"):
        (request.cwd / "calc.py").write_text("def add(a, b):\n    return a + b\n")
    if request.action.endswith("fix.json"):
        (request.cwd / "calc.py").write_text("def add(a, b):\n    return b + a\n")
        if request.attempt == 1:
            (request.cwd / "0/0.py").unlink()
            return Reply(Ended.FAILED, error="out of words")
    return "Done.\n"


class Implementing(Phases):
    """The phase implement, in a repository with some files."""

    answer = staticmethod(build)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for n in range(12):
            (self.root / f"{n % 3}").mkdir(exist_ok=True)
            (self.root / f"{n % 3}/{n}.py").write_text(f"{n}\n")
        (self.root / ".gitignore").write_text("docs/features/\nrondel.toml\n")
        git(self.root, "add", "-A")
        git(self.root, "commit", "-q", "-m", "files")
        for phase in ("specify", "design", "create-plan", "create-tasks"):
            text = TASKS if phase == "create-tasks" else "# Text\n"
            (self.session / ARTIFACTS[phase]).write_text(text)
            assert update_phase_state(self.session, phase, {"started": NOON, "completed": NOON})
        request = {"command": "phase", "phase": "implement", "how": None, "proceed": True, "checks": "true"}
        (self.session / ".rondel/request-2.json").write_text(json.dumps(request))

    def shown(self) -> dict[str, object]:
        return {path: COMMIT.sub(b"COMMIT", data) for path, data in super().shown().items()}

    def check_ended(self) -> None:
        branch = json.loads((self.session / ".meta.json").read_text())["branch"]
        files = git(self.root, "ls-tree", "-r", "--name-only", branch).split()
        assert len(files) == 14
        assert git(self.root, "show", f"{branch}:calc.py").endswith("return b + a\n")


@pytest.fixture(scope="module")
def calm_code(tmp_path_factory):
    return undisturbed(Implementing(tmp_path_factory.mktemp("undisturbed")))


@swept(parts=2, stride=16)
def test_a_kill_at_points_all_through_an_implementation_changes_nothing(share, tmp_path, calm_code):
    share.sweep(Implementing, tmp_path, calm_code, least=200, apart=8)


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    return undisturbed(Phases(tmp_path_factory.mktemp("undisturbed")))


def test_undisturbed_it_takes_two_iterations_of_each_phase(calm):
    assert sum(calm.paid.values()) == 8
    meta = json.loads(calm.shown[".meta.json"])
    assert [meta["phases"][p]["iterations"] for p in ("specify", "design")] == [2, 2]
    assert calm.shown[".review-history.md"].count(b"### Iteration") == 4


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(point=st.integers(1, POINTS_MAX))
def test_a_kill_at_a_point_changes_nothing(tmp_path_factory, calm, point):
    killed_and_resumed(Phases(tmp_path_factory.mktemp("killed")), [point], calm)


@swept(parts=2, stride=16)
def test_a_kill_at_every_point_changes_nothing(share, tmp_path, calm):
    share.sweep(Phases, tmp_path, calm, least=300, apart=8)
