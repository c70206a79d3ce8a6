"""Kill it anywhere through specify and design; start it again: nothing is lost or paid for twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scratch import git
from turning import APPROVED, BLOCKED

from rondel.agents.base import Request
from rondel.api import Hall
from rondel.workflows.feature import start_feature
from rondel.workflows.feature.lint import lint_meta
from rondel.workflows.feature.workflow import Feature
from support.kills import Trial, killed_and_resumed, sweep, swept, undisturbed
from support.scripted import Scripted

POINTS_MAX = 600


def answer(request: Request) -> str:
    """Drafts, and a reviewer that wants one revision of each."""
    if request.action.endswith("review.json"):
        return BLOCKED if "iteration-1" in request.action else APPROVED
    return f"# {request.action}\n\n=== CHANGES ===\nWrote it.\n"


class Phases(Trial):
    """Specify and design, two iterations of each."""

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
        hall = Hall(self.root, workflows={"feature": Feature()}, build=lambda _: Scripted(answer))
        return hall.drive(self.ref).exit_code

    def check_killed(self) -> None:
        half = json.loads((self.session / ".meta.json").read_text())
        assert lint_meta(half) == (), "what a kill leaves is sound as it stands"


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


@swept(parts=8)
def test_a_kill_at_every_point_changes_nothing(points, tmp_path, calm):
    sweep(Phases, tmp_path, points, calm, least=300)
