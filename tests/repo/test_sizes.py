"""How much an edit may hold: it is told before git reads any of it."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from rondel.repo.sizes import EditMax
from rondel.repo.workspaces import Commit, Unusable, Workspaces
from support.repos import printed_by_git, repository

HUGE = 60 << 30
SOON_S = 20.0


@pytest.fixture(autouse=True)
def _own_git_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)


@pytest.fixture
def repo(tmp_path):
    root = repository(tmp_path / "repo")
    (root / "empty.py").touch()
    (root / ".gitignore").write_text("*.log\n")
    printed_by_git(root, "add", "--all")
    printed_by_git(root, "commit", "-qm", "an empty file")
    return root


@pytest.fixture
def spaces(repo, tmp_path):
    return Workspaces(repo, tmp_path / "spaces", most=EditMax(bytes=1_000_000, files=50))


@pytest.fixture(autouse=True)
def _soon():
    began = time.monotonic()
    yield
    assert time.monotonic() - began < SOON_S, "git has read what was too large"


def sparse(file: Path, size: int = HUGE) -> None:
    with file.open("ab") as f:
        f.truncate(size)


def refused(spaces: Workspaces, path: Path) -> str:
    made = spaces.commit(path, "s", "k", "m")
    assert isinstance(made, Unusable)
    return made.problem


def taken(spaces: Workspaces, path: Path) -> tuple[str, ...]:
    made = spaces.commit(path, "s", "k", "m")
    assert isinstance(made, Commit)
    return made.changed


@pytest.mark.parametrize("name", ["new.bin", "empty.py", "a/b/deep ü\n.bin"])
def test_a_file_that_is_too_large_is_named_and_not_committed(repo, spaces, name):
    path = spaces.write("s", "k", "main")
    (path / name).parent.mkdir(parents=True, exist_ok=True)
    sparse(path / name)
    (path / "small.txt").write_text("mine\n")
    problem = refused(spaces, path)
    assert repr(name) in problem
    assert "64,425 MB" in problem
    assert "edit_mb_max" in problem
    assert "small.txt" not in problem
    assert printed_by_git(repo, "branch", "--list", "rondel/*") == ""
    (path / name).unlink()
    assert "small.txt" in taken(spaces, path)


def test_what_is_said_leads_on(spaces):
    path = spaces.write("s", "k", "main")
    sparse(path / "it's big.bin")
    (path / "small.txt").write_text("mine\n")
    advice = next(part for part in refused(spaces, path).split("`") if part.startswith("rm "))
    subprocess.run(advice, shell=True, check=True, cwd=path)
    assert taken(spaces, path) == ("small.txt",)


def test_many_files_that_are_too_large_together_are_named_the_largest_first(spaces):
    path = spaces.write("s", "k", "main")
    for number in range(10):
        (path / f"{number}.bin").write_bytes(os.urandom(150_000 + number))
    problem = refused(spaces, path)
    assert problem.index("'9.bin'") < problem.index("'8.bin'")


def test_more_files_than_an_edit_may_have_are_named_by_their_folder(repo, spaces):
    path = spaces.write("s", "k", "main")
    (path / "made").mkdir()
    for number in range(60):
        (path / f"made/{number}").touch()
    problem = refused(spaces, path)
    assert "60 new files" in problem
    assert "'made/'" in problem
    assert "edit_files_max" in problem
    assert printed_by_git(repo, "branch", "--list", "rondel/*") == ""


def test_what_git_ignores_counts_only_where_the_agent_added_it(spaces):
    path = spaces.write("s", "k", "main")
    sparse(path / "huge.log")
    (path / "small.txt").write_text("mine\n")
    assert taken(spaces, path) == ("small.txt",)
    sparse(path / "added.log", 2_000_000)
    printed_by_git(path, "add", "--force", "added.log")
    assert "'added.log'" in refused(spaces, path)


def test_a_large_file_that_was_there_before_may_be_touched_and_stay(repo, tmp_path, spaces):
    (repo / "large.bin").write_bytes(os.urandom(2_000_000))
    printed_by_git(repo, "add", "--all")
    printed_by_git(repo, "commit", "-qm", "a large file")
    path = spaces.write("s", "k", "main")
    os.utime(path / "large.bin", (1, 1))
    (path / "small.txt").write_text("mine\n")
    assert taken(spaces, path) == ("small.txt",)


def test_a_worktree_that_holds_too_much_stays_beside_its_place(repo, spaces, tmp_path):
    path = spaces.write("s", "k", "main")
    sparse(path / "empty.py")
    assert spaces.write("s", "k", "main") == path
    assert (path / "empty.py").stat().st_size == 0
    assert [f.stat().st_size for f in tmp_path.glob("spaces/write/*.kept-*/empty.py")] == [HUGE]
