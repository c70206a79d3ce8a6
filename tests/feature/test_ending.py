"""The end of a feature in the person's own tree: merged or untouched, whatever happens in the middle."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from scratch import environment, git, meta, repository, rondel

from rondel.repo.checkout import MOVES, Checkout
from rondel.repo.worktrees import Worktrees

FILES = 6
FILTER = """\
if [ -e {folder}/armed ] && [ "$(pwd -P)" = {root} ]; then
  echo x >> {folder}/armed
  if [ "$(wc -l < {folder}/armed)" -gt 3 ]; then
    {what}
  fi
fi
exec cat
"""
KILL = """p=$PPID
    while read -r name < /proc/$p/comm && [ "$name" != git ]; do
      read -r _ _ _ p _ < /proc/$p/stat
    done
    rm {folder}/armed
    kill -9 $p"""


KILL_BOTH = KILL.replace(
    "kill -9 $p",
    "read -r _ _ _ script _ < /proc/$p/stat; read -r _ _ _ driver _ < /proc/$script/stat\n"
    "    kill -9 $driver $script $p",
)


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """A feature that is ready to be merged: its branch changes, adds and removes files."""
    folder = tmp_path_factory.mktemp("ending")
    root = repository(folder)
    for kind in ("old", "kept"):
        (root / kind).mkdir()
        for n in range(FILES):
            (root / kind / f"{n}.txt").write_text(f"{kind} {n}\n")
    (root / ".gitattributes").write_text("*.txt filter=cut\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "files")
    assert rondel(root, "feature", "start", "Add").returncode == 0
    git(root, "switch", "-qc", "feature/001-add")
    shutil.rmtree(root / "old")
    (root / "added").mkdir()
    for n in range(FILES):
        (root / f"kept/{n}.txt").write_text(f"new {n}\n")
        (root / f"added/{n}.txt").write_text(f"{n}\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "the feature")
    git(root, "switch", "-q", "main")
    git(root, "commit", "-q", "--allow-empty", "-m", "meanwhile")
    return folder


@pytest.fixture
def root(template, tmp_path) -> Path:
    for name in ("repo", "home"):
        shutil.copytree(template / name, tmp_path / name)
    return tmp_path / "repo"


def arm(root: Path, what: str) -> None:
    """What happens at the third file that git writes in the person's own tree."""
    folder = root.parent
    words = FILTER.format(
        folder=folder, root=shlex.quote(str(root.resolve())), what=what.format(folder=folder)
    )
    (folder / "filter.sh").write_text(words)
    (folder / "armed").write_text("")
    settings = folder / "home/.config/git/config"  # a filter counts that is the person's own
    settings.parent.mkdir(parents=True, exist_ok=True)
    git(root, "config", "--file", str(settings), "filter.cut.smudge", f"sh {folder}/filter.sh")


def finish(root: Path) -> subprocess.CompletedProcess[str]:
    return rondel(root, "feature", "finish", "001-add", "--merge", "--force")


def assert_merged(root: Path) -> None:
    assert git(root, "status", "--porcelain") == ""
    assert not (root / ".git/index.lock").exists()
    assert git(root, "diff", "HEAD", "feature/001-add", "--", "kept", "added", "old") == ""
    assert len(git(root, "rev-list", "--parents", "-1", "HEAD").split()) == 3
    assert meta(root)["status"] == "completed"


def test_a_git_that_is_killed_while_it_merges_changes_nothing_and_the_same_command_goes_on(root):
    before = git(root, "rev-parse", "HEAD")
    arm(root, KILL)
    refused = finish(root)
    assert refused.returncode == 1
    assert "was not merged into main" in refused.stderr
    assert "next: rondel feature finish 001-add --merge --force\n" in refused.stderr
    assert (git(root, "rev-parse", "HEAD"), git(root, "status", "--porcelain")) == (before, "")
    assert finish(root).returncode == 0
    assert_merged(root)


def test_a_move_that_was_cut_short_is_named_by_doctor_and_put_right_by_its_repair(root):
    before = git(root, "rev-parse", "HEAD")
    arm(root, KILL_BOTH)
    assert finish(root).returncode == -signal.SIGKILL
    assert (root / ".git/index.lock").exists()
    assert git(root, "status", "--porcelain") != "", "files of two commits side by side"
    sick = rondel(root, "doctor")
    assert sick.returncode == 1
    assert f"cut-move: {root}: git was cut off while it updated the files here" in sick.stdout
    assert "next: rondel doctor --repair" in sick.stderr
    trees = Worktrees(root, root.parent)
    with trees.locked(MOVES):  # somebody is at it
        assert "cut-move" not in rondel(root, "doctor", "--repair").stdout
    repaired = rondel(root, "doctor", "--repair")
    assert repaired.returncode == 0, repaired.stdout
    assert "repaired" in repaired.stdout
    assert (git(root, "rev-parse", "HEAD"), git(root, "status", "--porcelain")) == (before, "")
    assert not (root / ".git/index.lock").exists()
    assert rondel(root, "doctor").returncode == 0
    assert finish(root).returncode == 0
    assert_merged(root)


def test_a_lock_of_ours_without_a_step_is_removed_by_doctors_repair(root):
    here = Checkout.at(root)
    own, lock = (here.git_dir / name for name in here.own_lock())
    own.rename(lock)
    assert "cut-move" in rondel(root, "doctor").stdout
    assert rondel(root, "doctor", "--repair").returncode == 0
    assert not lock.exists()


def test_ctrl_c_while_git_merges_waits_for_git(root):
    arm(root, "touch {folder}/inside; while [ -e {folder}/armed ]; do sleep 0.01; done")
    child = subprocess.Popen(
        [sys.executable, "-m", "rondel", "feature", "finish", "001-add", "--merge", "--force"],
        cwd=root,
        env=environment(root.parent),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    deadline = time.monotonic() + 30
    while not (root.parent / "inside").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    for _ in range(3):
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does
        time.sleep(0.1)
    (root.parent / "armed").unlink()
    child.communicate(timeout=30)
    assert child.returncode == 130
    assert git(root, "status", "--porcelain") == ""
    assert not (root / ".git/index.lock").exists()
    assert finish(root).returncode == 0
    assert_merged(root)


def test_who_signs_commits_hears_that_the_merge_is_not_signed_and_what_signs_it(root):
    key = root.parent / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    settings = {"commit.gpgSign": "true", "gpg.format": "ssh", "user.signingKey": str(key)}
    for name, value in settings.items():
        git(root, "config", name, value)
    done = finish(root)
    assert done.returncode == 0, done.stderr
    told = re.search(r"the merge commit is not signed; to sign it: (.+)", done.stdout)
    assert told is not None, done.stdout
    subprocess.run(told[1], shell=True, cwd=root, env=environment(root.parent), check=True)
    assert "gpgsig" in git(root, "cat-file", "commit", "HEAD")
    assert_merged(root)


def test_a_worktree_that_somebody_else_made_is_never_removed(root):
    mine = root.parent / "mine"
    git(root, "worktree", "add", "-q", str(mine), "feature/001-add")
    path = root / "docs/features/001-add/.meta.json"
    path.write_text(path.read_text().replace('"worktree": null', '"worktree": "../mine"'))
    (mine / "notes.txt").write_text("not committed\n")
    done = finish(root)
    assert done.returncode == 0, done.stderr
    assert f"the worktree {mine} stays" in done.stdout
    assert (mine / "notes.txt").read_text() == "not committed\n"
    assert len(git(root, "worktree", "list").splitlines()) == 2


def test_a_new_feature_does_not_begin_on_a_branch_with_the_work_of_another(root):
    """The folder of the first one was removed; its branch is still there, and so is its name."""
    shutil.rmtree(root / "docs/features/001-add")
    started = rondel(root, "feature", "start", "Add")
    assert "the branch feature/001-add is there and holds other work" in started.stderr
    assert meta(root)["branch"] == "feature/001-add-2"


def test_a_branch_that_was_made_for_a_feature_is_taken(root):
    shutil.rmtree(root / "docs/features/001-add")
    git(root, "branch", "-f", "feature/001-add", "HEAD")
    rondel(root, "feature", "start", "Add")
    assert meta(root)["branch"] == "feature/001-add"


def test_a_feature_whose_branch_is_gone_is_merged_with_everything_that_was_done(tmp_path):
    root = repository(tmp_path)
    rondel(root, "feature", "start", "Add", "--mode", "hotfix")
    assert rondel(root, "feature", "implement", "001-add", "--yes").returncode == 0
    git(root, "branch", "-D", "feature/001-add")
    done = rondel(root, "feature", "finish", "001-add", "--merge", "--force")
    assert "the branch feature/001-add was deleted; it is made again" in done.stdout
    assert done.returncode == 0
    assert "def add" in (root / "calc.py").read_text()
