"""A worktree that is being removed is never worked in, committed from or recovered."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from test_workspaces import SESSION, add, edit, git, make_repo
from test_workspaces import _own_git_settings as own_git_settings  # noqa: F401 - a fixture

from rondel.repo.workspaces import UNUSED_S, Commit, Workspaces
from rondel.repo.worktrees import GOING
from rondel.testing.faults import die_anywhere_at, in_child
from support.kills import points

pytestmark = pytest.mark.sweep
FILES = {f"{n % 3}/{n % 2}/{n}.txt": f"{n}\n" for n in range(15)}


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "repo", FILES)


def unchanged(spaces: Workspaces) -> Path:
    return spaces.write(SESSION, "x.md", "main")


def half_done(spaces: Workspaces) -> Path:
    return edit(spaces, "x.md", {"0/0/0.txt": "by the agent\n"})


def reader(spaces: Workspaces) -> Path:
    return spaces.read("main")


def shared(spaces: Workspaces) -> Path:
    path = spaces.write(SESSION, "x.md", "main", shared=True)
    (path / "0/0/0.txt").write_text("by the agent\n")
    return path


def remove(spaces: Workspaces, path: Path) -> None:
    spaces.remove(path)


def start_again(spaces: Workspaces, path: Path) -> None:
    spaces.write(SESSION, "x.md", "main")


def sweep_old(spaces: Workspaces, path: Path) -> None:
    old = time.time() - UNUSED_S - 10
    os.utime(f"{path}.json", (old, old))
    spaces.sweep()


def sweep_over(spaces: Workspaces, path: Path) -> None:
    spaces.sweep(lambda _session, _key: True)


CASES = {
    "no edit": (unchanged, remove),
    "starts again": (half_done, start_again),
    "nobody used it": (unchanged, sweep_old),
    "of readers": (reader, sweep_old),
    "of a task that is over": (shared, sweep_over),
}


@pytest.mark.parametrize("case", CASES)
def test_killed_anywhere_in_a_removal_a_worktree_is_whole_or_none(case, repo, tmp_path):
    make, end = CASES[case]
    for point in points(9):
        root = tmp_path / f"spaces-{point}"
        spaces = Workspaces(repo, root)
        path = make(spaces)
        if not killed_at(point, lambda: end(Workspaces(repo, root), path)):  # noqa: B023 - called at once
            break
        check_whole_or_none(Workspaces(repo, root), repo, path, make)
    assert point > 20


def killed_at(point: int, work: Callable[[], object]) -> bool:
    def doomed() -> None:
        die_anywhere_at(point)
        work()

    return in_child(doomed) != 0


def check_whole_or_none(spaces: Workspaces, repo: Path, path: Path, make: Callable[..., Path]) -> None:
    """Nothing is missing in what may be worked in; afterwards nothing is left behind."""
    if spaces.has(SESSION, "x.md"):
        assert {str(p.relative_to(path)) for p in path.rglob("*.txt")} == set(FILES)
        commit = spaces.commit(path, SESSION, "x.md", "An edit")
        assert commit is None or (isinstance(commit, Commit) and commit.changed == ("0/0/0.txt",))
    if make is reader:
        assert {str(p.relative_to(path)) for p in spaces.read("main").rglob("*.txt")} == set(FILES)
    else:
        assert git(spaces.write(SESSION, "x.md", "main"), "status", "--porcelain") == ""
    spaces.remove(path)
    spaces.sweep()
    assert list(path.parent.iterdir()) == []
    assert len(git(repo, "worktree", "list").splitlines()) == 1
    for kept in git(repo, "for-each-ref", "--format=%(objectname)", "refs/rondel").split():
        assert set(git(repo, "ls-tree", "-r", "--name-only", kept).split()) == set(FILES)


@pytest.mark.parametrize("keep", [False, True])
def test_killed_anywhere_while_a_worktree_is_made_it_is_whole_or_none(repo, tmp_path, keep):
    for point in points(9):
        root = tmp_path / f"spaces-{point}"

        def make(root: Path = root) -> Path:
            return Workspaces(repo, root).write(SESSION, "x.md", "main", setup="rm -rf 0; touch made")

        died = killed_at(point, make)
        spaces = Workspaces(repo, root)
        path = spaces.write(SESSION, "x.md", "main", setup="rm -rf 0; touch made", keep=keep)
        assert {str(p.relative_to(path)) for p in path.rglob("*.txt")} == set(FILES)
        assert spaces.commit(path, SESSION, "x.md", "m") is None
        spaces.remove(path)
        assert git(repo, "for-each-ref", "refs/rondel") == "", "nobody has worked in it: nothing is kept"
        if not died:
            break
    assert point > 10


def test_a_worktree_is_not_swept_while_somebody_begins_to_work_in_it_again(repo, tmp_path):
    spaces = Workspaces(repo, tmp_path / "spaces")
    path = spaces.write(SESSION, "x.md", "main")
    old = time.time() - UNUSED_S - 10
    os.utime(f"{path}.json", (old, old))
    assert spaces.write(SESSION, "x.md", "main") == path
    assert spaces.sweep() == 0
    assert path.is_dir()


def test_what_cannot_be_removed_now_is_no_worktree_all_the_same(repo, tmp_path):
    """A program that does not end keeps making files while its folder is removed."""
    spaces = Workspaces(repo, tmp_path / "spaces")
    path = spaces.write(SESSION, "x.md", "main")
    going = path.with_name(f"{path.name}{GOING}12345678")
    path.rename(going)
    assert not spaces.has(SESSION, "x.md")
    spaces.sweep()
    assert list(path.parent.iterdir()) == []
    assert len(git(repo, "worktree", "list").splitlines()) == 1


def test_an_edit_in_the_middle_of_its_integration_is_kept_as_it_was_committed(repo, tmp_path):
    """Killed while its worktree is at the target: another try keeps the edit, not what is there then."""
    spaces = Workspaces(repo, tmp_path / "spaces")
    path = half_done(spaces)
    commit = spaces.commit(path, SESSION, "x.md", "m")
    assert isinstance(commit, Commit)
    add(repo, {"c.txt": "c"}, "by the person")
    for point in points(9):
        if not killed_at(
            point, lambda: Workspaces(repo, tmp_path / "spaces").integrate(path, "main", "false")
        ):
            break
        again = Workspaces(repo, tmp_path / "spaces")
        assert again.write(SESSION, "x.md", "main", keep=True) == path
        found = again.commit(path, SESSION, "x.md", "m")
        assert isinstance(found, Commit)
        assert found.changed == ("0/0/0.txt",)
    assert point > 10
