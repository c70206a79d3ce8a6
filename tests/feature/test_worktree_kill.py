"""Killed anywhere while a feature's worktree is removed: it is whole or none, and the rest goes later."""

from __future__ import annotations

from pathlib import Path

import pytest
from scratch import git

from rondel.engine.look import DiskReader
from rondel.errors import GitError
from rondel.project.repository import now
from rondel.testing.faults import die_anywhere_at, in_child
from rondel.workflows.feature import worktrees
from support.kills import points


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "repo"
    root.mkdir()
    git(root, "init", "-q")
    for n in range(12):
        (root / f"{n % 3}").mkdir(exist_ok=True)
        (root / f"{n % 3}/{n}.py").write_text(f"{n}\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    return root


@pytest.mark.sweep
def test_a_worktree_that_is_being_removed_is_whole_or_none(root):
    look = DiskReader(root, now)
    for point in points(3):
        path = Path(f"{root}-f{point}")
        worktrees.add(look, f"f{point}", f"feature/f{point}")

        def doomed(path: Path = path, point: int = point) -> None:
            die_anywhere_at(point)
            worktrees.remove(DiskReader(root, now), str(path))

        died = in_child(doomed) != 0
        if path.exists():
            assert git(path, "status", "--porcelain") == ""
        worktrees.remove(look, str(path))
        assert [p.name for p in root.parent.iterdir() if p.name.startswith(path.name)] == []
        assert len(git(root, "worktree", "list").splitlines()) == 1
        assert len(git(root, "ls-tree", "-r", f"feature/f{point}").splitlines()) == 12
        if not died:
            break
    assert point > 15


def test_a_worktree_with_work_in_it_stays_where_it_is(root):
    look = DiskReader(root, now)
    worktrees.add(look, "f", "feature/f")
    path = Path(f"{root}-f")
    (path / "mine.txt").write_text("mine\n")
    with pytest.raises(GitError, match=r"mine\.txt"):
        worktrees.remove(look, str(path))
    assert (path / "mine.txt").exists()


def test_a_worktree_that_a_person_locked_stays_where_it_is(root):
    look = DiskReader(root, now)
    worktrees.add(look, "f", "feature/f")
    git(root, "worktree", "lock", f"{root}-f")
    with pytest.raises(GitError, match="lock"):
        worktrees.remove(look, f"{root}-f")
    assert len(git(Path(f"{root}-f"), "ls-files").splitlines()) == 12
