"""A disk that is full when a session is begun: no half of one is left, and its name is free again."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rondel.errors import MachineTrouble
from rondel.project import Project
from rondel.store import disk
from rondel.workflows.cycle import files as cycle
from rondel.workflows.feature import files as feature
from rondel.workflows.generate import files as generate
from rondel.workflows.review import files as review
from rondel.workflows.review.request import ResolvedOptions
from rondel.workflows.task import files as task
from support.repos import commit, git, repository
from support.world import FOLDERS

CONTEXT = {"package": "shop", "entity": "Product", "scope": "models"}
START: dict[str, Callable[[Project], object]] = {
    "feature": lambda p: feature.start_feature(p.root, "X", mode="hotfix", claim=p.claim),
    "cycle": lambda p: cycle.create(p.root, "Do it", title=None, settings={}, claim=p.claim),
    "task": lambda p: task.create(p.root, "T", claim=p.claim),
    "generate": lambda p: generate.create(
        p.root, generate.GenerateOptions("python-service", dict(CONTEXT)), claim=p.claim
    ),
    "review": lambda p: review.open_round(p.root, p.look, ResolvedOptions()),
}


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setattr(disk, "point", disk.point)  # as it was, afterwards
    root = repository(tmp_path / "repo", {"app.py": "x = 1\n"})
    git(root, "switch", "-qc", "change")
    commit(root, {"app.py": "x = 2\n"})
    return root


def start(root: Path, workflow: str, room: int) -> bool:
    """Start a session on a disk with room for so many operations; whether that was enough."""
    passed = 0

    def count(operation: str, path: str) -> None:
        nonlocal passed
        passed += operation != "mkdir"  # a folder needs no room
        if passed > room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    disk.point = count
    try:
        START[workflow](Project(root))
    except MachineTrouble:
        return False
    finally:
        disk.point = lambda _operation, _path: None
    return True


@pytest.mark.parametrize("workflow", START)
def test_a_start_on_a_full_disk_leaves_no_session(root, workflow):
    for room in range(1000):
        done = start(root, workflow, room)
        there = list(root.glob(FOLDERS[workflow]))
        if done or there:
            break
    assert len(there) == 1, room
    assert done or (there[0] / "workflow-session.json").exists(), "a whole one, not yet active"
    assert there[0].name in ("001-x", "WFS-t") or workflow in ("cycle", "generate", "review")
