"""Marks of worktrees that a newer Rondel left, or that the machine cannot open now: left alone."""

from __future__ import annotations

import json
import os
import resource
import subprocess
from pathlib import Path

import pytest

from rondel.errors import MachineTrouble, NewerFile
from rondel.repo.workspaces import Workspaces
from rondel.testing.faults import in_child


@pytest.fixture
def spaces(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    repo = tmp_path / "repo"
    who = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    for args in (
        ["init", "-q", "-b", "main", str(repo)],
        ["-C", str(repo), "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", *who, *args], check=True)
    return Workspaces(repo, tmp_path / "spaces")


def mark_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def test_a_worktree_of_a_newer_rondel_is_neither_used_nor_removed(spaces):
    path = spaces.write("task:x", "a.md", "main")
    (path / "theirs.txt").write_text("work under way\n")
    mark = json.loads(mark_of(path).read_text())
    assert mark["schema_version"] == 1
    newer = json.dumps({**mark, "schema_version": 2, "lease": {"of": "a later day"}})
    mark_of(path).write_text(newer)
    os.utime(mark_of(path), (0, 0))
    with pytest.raises(NewerFile, match="upgrade Rondel"):
        spaces.write("task:x", "a.md", "main")
    spaces.sweep(lambda _session, _key: True)
    assert (path / "theirs.txt").read_text() == "work under way\n"
    assert mark_of(path).read_text() == newer


def test_a_mark_without_a_version_is_read_as_before(spaces):
    path = spaces.write("task:x", "a.md", "main")
    (path / "mine.txt").write_text("x\n")
    mark = json.loads(mark_of(path).read_text())
    mark.pop("schema_version")
    mark_of(path).write_text(json.dumps(mark))
    assert spaces.write("task:x", "a.md", "main", keep=True) == path
    assert (path / "mine.txt").exists()


def test_a_mark_that_cannot_be_opened_now_is_not_missing(spaces):
    path = spaces.write("task:x", "a.md", "main")

    def work() -> int:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 100))
        try:
            spaces.has("task:x", "a.md")
        except MachineTrouble:
            return 0
        return 1

    assert path.is_dir()
    assert in_child(work) == 0
