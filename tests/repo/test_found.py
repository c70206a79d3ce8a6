"""Edits are found again by their trailer, while the branch really holds them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_workspaces import add, git, make_repo

from rondel.model.workflow import Edited
from rondel.repo.branches import Branches, Expected
from rondel.repo.edits import TRAILER
from rondel.repo.workspaces import Workspaces
from rondel.repo.worktrees import Worktrees

pytestmark = pytest.mark.sweep

OWNER = "task-0123456789abcdef"
EXAMPLES = 100 if os.environ.get("RONDEL_SWEEP") else 8


@pytest.fixture
def repo(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    return make_repo(tmp_path / "repo")


def edit(repo: Path, action: str) -> str:
    return add(repo, {f"{action}.txt": f"{action}\n"}, f"{action}\n\n{TRAILER}: {OWNER}/{action}")


def test_a_merge_that_was_reverted_takes_its_edits_with_it(repo, tmp_path):
    spaces = Workspaces(repo, tmp_path / "spaces")
    git(repo, "switch", "-q", "-c", "side")
    edit(repo, "a")
    edit(repo, "b")
    git(repo, "switch", "-q", "main")
    git(repo, "merge", "-q", "--no-ff", "side")
    assert spaces.find(OWNER, "a", "main")
    git(repo, "revert", "--no-edit", "-m", "1", "HEAD")
    assert spaces.find(OWNER, "a", "main") is None
    assert spaces.find(OWNER, "b", "main") is None
    git(repo, "revert", "--no-edit", "HEAD")
    assert spaces.find(OWNER, "b", "main")


def test_what_came_before_the_base_does_not_count(repo, tmp_path):
    spaces = Workspaces(repo, tmp_path / "spaces")
    base = edit(repo, "a")
    edit(repo, "b")
    assert spaces.find(OWNER, "a", "main", base) is None
    assert spaces.find(OWNER, "b", "main", base)


def revert(repo: Path, commit: str) -> None:
    """Revert a commit, where git can: what was reverted before cannot be again."""
    try:
        git(repo, "revert", "--no-edit", commit)
    except subprocess.CalledProcessError:
        git(repo, "reset", "-q", "--hard")  # a revert of nothing is over, one that conflicts is under way


# What happens to a branch: an edit, a revert of one of its commits, commits taken back, the branch seen anew.
STEPS = st.lists(
    st.tuples(st.sampled_from(("edit", "edit", "revert", "back", "other")), st.integers(0, 5)), max_size=8
)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_an_edit_is_found_exactly_while_the_branch_has_what_it_did(steps, tmp_path_factory, repo):
    folder = tmp_path_factory.mktemp("found")
    root = make_repo(folder / "repo")
    spaces = Workspaces(root, folder / "spaces")  # looks again and again: what it knows must not mislead it
    count = 0
    for word, number in steps:
        history = git(root, "rev-list", "--first-parent", "HEAD").split()
        if word == "edit":
            count += 1
            edit(root, f"e{count}")
        elif word == "other":
            add(root, {f"other-{number}-{len(history)}.txt": "x\n"}, "about something else")
        elif word == "revert" and len(history) > 1:
            revert(root, history[number % (len(history) - 1)])
        elif word == "back" and len(history) > 2:
            git(root, "reset", "-q", "--hard", f"HEAD~{1 + number % (len(history) - 1)}")
        there = set(git(root, "ls-tree", "--name-only", "HEAD").split())
        for n in range(1, count + 1):
            found = spaces.find(OWNER, f"e{n}", "main")
            assert (found is not None) == (f"e{n}.txt" in there), f"e{n} after {word} {number}"


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_an_edit_is_lost_exactly_where_it_is_not_found(steps, tmp_path_factory, repo):
    """Whoever looks again, with or without what an earlier look left, comes to the same."""
    folder = tmp_path_factory.mktemp("lost")
    root = make_repo(folder / "repo")
    base = git(root, "rev-parse", "HEAD").strip()
    made: list[Edited] = []
    for word, number in steps:
        history = git(root, "rev-list", "--first-parent", "HEAD").split()
        if word == "edit":
            action = f"action-{len(made)}"
            made.append(Edited(action, edit(root, action)))
        elif word == "revert" and number < len(history) - 1:
            revert(root, history[number])
        elif word == "back" and number < len(history):
            git(root, "reset", "-q", "--hard", history[number])
        elif word == "other":
            git(root, "commit", "-q", "--allow-empty", "-m", "other")
        fresh = Workspaces(root, folder / "spaces")
        for _ in range(2):  # the second time nothing moved
            lost = Branches(Worktrees(root, folder)).lost(Expected(OWNER, "main", base, tuple(made)))
            gone = [one.action for one in made if fresh.find(OWNER, one.action, "main", base) is None]
            assert [one.edit.action for one in lost] == gone
