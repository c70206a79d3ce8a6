"""A whole review with six reviewers, ended at any point: it goes on, and asks nobody twice."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from review_support import APP, commit, content, feature_branch, finding, look, panel, project_of, review

from rondel.errors import NothingToDo
from rondel.testing.kills import Trial, killed_and_resumed, timeless, undisturbed
from rondel.testing.scripted import run_of
from rondel.workflows.review import files
from rondel.workflows.review.request import ResolvedOptions
from support.kills import swept

TEAM = "principal:2,quality:2,security:2"
FIXED = APP + "\n\ndef half(n):\n    return n / 0\n"
WRONG = finding("The sum is a difference", category="blocker")
ZERO = finding("Every call divides by zero", line=6, evidence="return n / 0")


def answers(request):
    if "principal" in request.action:
        return review(ZERO)
    return review(WRONG) if "security-1" in request.action and "round-1" in request.action else review()


def run_review(root: Path) -> int:
    """What `rondel review` does: the number of the round that it completed."""
    opened = files.open_round(root, look(root), ResolvedOptions(team=TEAM, kind_of=lambda _: "fake"))
    assert project_of(root, panel(answers)).run(opened.ref, agents_max=6).exit_code == 0
    state = files.state_of(root, opened.ref)
    assert state.is_complete
    return state.at.number


class SecondRound(Trial):
    """A round after a first one and its fix."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.root = folder / "repo"
        shutil.copytree(source, self.root, symlinks=True)
        (self.session,) = (self.root / ".ocr/sessions").iterdir()
        # A copy may get the inode of one that was removed: what is on record of that trial is not this one's.
        shutil.rmtree(run_of(self.session).parent, ignore_errors=True)
        self.first_round = {path: d for path, d in content(self.root).items() if "round-1/" in path}

    def drive(self) -> int:
        try:
            assert run_review(self.root) == 2
        except NothingToDo:  # it was complete, and died while it noted that
            return 0
        return 0

    def shown(self) -> dict[str, bytes]:
        """Every file but what a person's asking left."""
        left = timeless(content(self.root))
        return {p: d for p, d in left.items() if "/request-" not in p and ".set-aside-" not in p}

    def check_ended(self) -> None:
        assert self.first_round.items() <= content(self.root).items(), "an earlier round changed"


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    """Gives a session after a first round and its fix."""
    os.environ["HOME"] = str(tmp_path_factory.mktemp("home"))
    root = feature_branch(tmp_path_factory.mktemp("before") / "repo")
    assert run_review(root) == 1
    commit(root, {"app.py": FIXED})
    return partial(SecondRound, root)


@pytest.fixture(scope="module")
def calm(make, tmp_path_factory):
    return undisturbed(make(tmp_path_factory.mktemp("undisturbed")))


@swept(parts=2, stride=10)
def test_a_death_at_every_single_point_changes_nothing(share, tmp_path, make, calm):
    share.sweep(make, tmp_path, calm, least=100, apart=8)


@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
@given(points=st.lists(st.integers(min_value=1, max_value=540), min_size=1, max_size=3))
def test_deaths_at_random_points_one_after_the_other_change_nothing(points, tmp_path_factory, make, calm):
    killed_and_resumed(make(tmp_path_factory.mktemp("random")), points, calm)
