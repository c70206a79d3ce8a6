"""A driver that is killed anywhere while it takes an edit over: afterwards it is taken over once."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_workspaces import _own_git_settings as own_git_settings  # noqa: F401 - a fixture
from test_workspaces import add, git, make_repo

WHERE = ["checked-out", "moved"]


def prepare(folder: Path, where: str) -> Path:
    """A person's repository: with main checked out and work not committed, or elsewhere and main moved."""
    repo = make_repo(folder / "repo")
    git(repo, "branch", "start")
    if where == "moved":
        add(repo, {"c.txt": "c\n"}, "by the person")
        git(repo, "checkout", "--quiet", "-b", "elsewhere")
    (repo / "a.txt").write_text("mine, not committed\n")
    return repo


def start(folder: Path, step: int) -> subprocess.Popen[str]:
    words = [str(folder / "repo"), str(folder / "spaces"), str(folder / "answered"), str(step)]
    argv = [sys.executable, str(Path(__file__).with_name("take_over.py")), *words]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(folder: Path) -> str:
    child = start(folder, 0)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    return out


def check(repo: Path, where: str) -> None:
    """The edit is on main once, the person's work is untouched, and the repository is sane."""
    log = git(repo, "log", "--format=%s|%(trailers:key=Rondel-Action,valueonly,separator=%x2C)", "main")
    before = ["by the person|"] if where == "moved" else []
    assert log.splitlines() == ["An edit|cycle:c/x.md", *before, "start|"]
    assert git(repo, "show", "main:b.txt") == "by the agent"
    assert git(repo, "status", "--porcelain") == "M a.txt"
    assert (repo / "a.txt").read_text() == "mine, not committed\n"
    assert len(git(repo, "worktree", "list").splitlines()) == 1
    assert git(repo, "for-each-ref", "--format=%(refname)", "refs/heads/rondel") == ""
    assert [p for p in (repo / ".git").rglob("*.lock") if not p.name.startswith("rondel-")] == []
    git(repo, "fsck", "--strict")


def survive(folder: Path, where: str, step: int) -> bool:
    """Die at a step, go on, and look; whether it got as far as that step."""
    repo = prepare(folder, where)
    child = start(folder, step)
    child.communicate(timeout=60)
    finish(folder)
    check(repo, where)
    return child.returncode == -signal.SIGKILL


@pytest.mark.parametrize("where", WHERE)
def test_undisturbed_it_is_taken_over(tmp_path, where):
    prepare(tmp_path, where)
    steps, _, *changed = finish(tmp_path).split()
    assert int(steps) > 45
    assert changed == ["b.txt"]
    check(tmp_path / "repo", where)


@pytest.mark.parametrize("where", WHERE)
@pytest.mark.parametrize("step", [5, 11, 17, 23, 29, 35, 41, 47, 53])
def test_killed_at_some_steps_it_is_taken_over_once(tmp_path, where, step):
    assert survive(tmp_path, where, step)


@pytest.mark.slow
@pytest.mark.parametrize("where", WHERE)
def test_killed_at_every_step_it_is_taken_over_once(tmp_path, where):
    step = 1
    while survive(tmp_path / str(step), where, step):
        step += 2  # dying after one call is dying before the next
    assert step > 45


@pytest.mark.parametrize("where", WHERE)
def test_killed_again_and_again_at_any_moment_it_is_taken_over_once(tmp_path, where):
    repo = prepare(tmp_path, where)
    chance = random.Random(4)
    for _ in range(6):
        child = start(tmp_path, 0)
        time.sleep(chance.uniform(0.1, 0.5))
        os.kill(child.pid, signal.SIGKILL)
        child.communicate()
    finish(tmp_path)
    check(repo, where)
