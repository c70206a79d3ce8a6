"""Locks of refs that a killed git left: of real gits, killed while they have them and nothing has moved."""

import os
import signal
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from test_workspaces import _own_git_settings as own_git_settings  # noqa: F401 - a fixture
from test_workspaces import add, committed, git, make_repo

from rondel.engine.look import DiskReader
from rondel.errors import GitError
from rondel.repo import reflocks
from rondel.repo.edits import Commit
from rondel.repo.git import Git, Result
from rondel.repo.workspaces import Workspaces
from rondel.testing.faults import in_child


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    monkeypatch.setattr(reflocks, "WAIT_S", 0.2)
    monkeypatch.setattr(reflocks, "EMPTY_S", 0.4)


@pytest.fixture
def repo(tmp_path):
    return make_repo(tmp_path / "repo")


def killed(repo: Path, *moves: str) -> list[Path]:
    """A git that is killed when it has its locks and nothing has moved; the locks."""
    child = subprocess.Popen(
        ["git", "update-ref", "--stdin"], cwd=repo, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdin
    assert child.stdout
    child.stdin.write("".join(f"{line}\n" for line in ("start", *moves, "prepare")))
    child.stdin.flush()
    assert [child.stdout.readline() for _ in range(2)] == ["start: ok\n", "prepare: ok\n"]
    child.kill()
    child.communicate()
    locks = locked(repo)
    assert locks
    return locks


def locked(repo: Path) -> list[Path]:
    return [p for p in (repo / ".git").rglob("*.lock") if not p.name.startswith("rondel-")]


def test_an_edit_goes_on_top_where_the_last_git_died_on_its_way_to_another_commit(
    repo, tmp_path, monkeypatch
):
    spaces = Workspaces(repo, tmp_path / "spaces")
    git(repo, "checkout", "--quiet", "-b", "elsewhere")
    path, _ = committed(spaces, "a.md", {"b.txt": "b\n"})
    git(repo, "branch", "--force", "main", add(repo, {"c.txt": "c\n"}, "by the person"))
    run = Git.run

    def dies(self: Git, *args: str, stdin: str = "", timeout_s: float = 60) -> Result:
        if args[0] != "update-ref":
            return run(self, *args, stdin=stdin, timeout_s=timeout_s)
        killed(repo, *stdin.splitlines())
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError

    monkeypatch.setattr(Git, "run", dies)
    assert in_child(lambda: spaces.integrate(path, "main")) == -signal.SIGKILL
    monkeypatch.setattr(Git, "run", run)
    assert len(locked(repo)) == 2
    time.sleep(1.1)  # git counts in seconds: the same edit is another commit now
    assert isinstance(spaces.integrate(path, "main"), Commit)
    assert git(repo, "show", "main:b.txt") == "b"
    assert locked(repo) == []


@pytest.mark.parametrize(
    "way",
    [
        ["branch", "--no-track", "new", "COMMIT"],
        ["update-ref", "refs/heads/new", "COMMIT"],
        ["worktree", "add", "--quiet", "-b", "new", "../beside", "COMMIT"],
    ],
)
@pytest.mark.parametrize("by", ["git", "look"])
def test_a_ref_is_written_where_the_last_git_died_on_the_same_way(repo, way, by):
    commit = git(repo, "rev-parse", "HEAD")
    killed(repo, f"create refs/heads/new {commit}")
    words = [commit if word == "COMMIT" else word for word in way]
    call = Git(repo) if by == "git" else DiskReader(repo, lambda: datetime.now(UTC)).git
    call(*words)
    assert git(repo, "rev-parse", "new") == commit
    assert locked(repo) == []


def test_a_ref_is_deleted_where_the_last_git_died_while_it_deleted_it(repo):
    git(repo, "branch", "old")
    git(repo, "pack-refs", "--all")
    tip = git(repo, "rev-parse", "old")
    assert {p.name for p in killed(repo, f"delete refs/heads/old {tip}")} == {"old.lock", "packed-refs.lock"}
    Git(repo)("update-ref", "-d", "refs/heads/old", tip)
    assert git(repo, "branch", "--list", "old") == ""
    assert locked(repo) == []


def test_a_lock_on_the_way_to_somebodys_own_commit_stays_and_is_named(repo):
    commit = git(repo, "rev-parse", "HEAD")
    theirs = add(repo, {"c.txt": "c\n"}, "by the person")
    (lock,) = killed(repo, f"create refs/heads/new {theirs}")
    with pytest.raises(GitError, match=r"new\.lock"):
        Git(repo)("branch", "--no-track", "new", commit)
    assert lock.read_text().strip() == theirs


def test_a_lock_that_is_let_go_of_is_not_taken_for_a_dead_ones(repo):
    commit = git(repo, "rev-parse", "HEAD")
    (lock,) = killed(repo, f"create refs/heads/new {commit}")
    seen = []

    def call() -> str:
        seen.append(lock.exists())
        if len(seen) == 1:
            lock.unlink()
            lock.write_text(f"{'1' * 40}\n")  # another git has it now
        return f"Unable to create '{lock}': File exists."

    reflocks.try_again(call, str, repo, commit)
    assert seen == [True]
    assert lock.exists()


def test_only_locks_of_refs_are_looked_at(repo):
    commit = git(repo, "rev-parse", "HEAD")
    for name in ("index.lock", "HEAD.lock", "config.lock"):
        lock = repo / ".git" / name
        lock.write_text(f"{commit}\n")
        reflocks.try_again(lambda lock=lock: f"Unable to create '{lock}': File exists.", str, repo, commit)
        assert lock.exists(), name


def test_an_edit_goes_on_top_once_where_a_dead_git_left_the_lock_of_all_refs(repo, tmp_path):
    """git has made the commit, and moved to it, when it meets the lock: the same again would be a second."""
    spaces = Workspaces(repo, tmp_path / "spaces")
    paths = {}
    for name in ("one", "two"):
        paths[name] = spaces.write("s", name, "main")
        (paths[name] / f"{name}.txt").write_text(name)
        assert isinstance(spaces.commit(paths[name], "s", name, name), Commit)
    git(repo, "branch", "work", "main")
    assert isinstance(spaces.integrate(paths["one"], "work"), Commit)
    (repo / ".git/packed-refs.lock").touch()
    assert isinstance(spaces.integrate(paths["two"], "work"), Commit)
    assert git(repo, "log", "--format=%s", "main..work").split() == ["two", "one"]
