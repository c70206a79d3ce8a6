"""What repairs, adds to or switches a session writes in the person's own alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli import rondel

TASK = ".workflow/WFS-theirs"


def tree(root: Path) -> dict[str, bytes]:
    """Every file that is not git's own."""
    found = (p for p in sorted(root.rglob("*")) if p.is_file())
    return {n: p.read_bytes() for p in found if not (n := str(p.relative_to(root))).startswith(".git/")}


@pytest.fixture
def theirs(repo: Path) -> Path:
    """A repository with sessions of somebody else's, each with something that can be repaired."""
    task = {"id": "IMPL-1", "title": "One", "status": "pending"}
    put = {
        f"{TASK}/workflow-session.json": "{",
        f"{TASK}/.task/IMPL-1.json": json.dumps(task),
        f"{TASK}/.task/IMPL-1.1.json": json.dumps({**task, "id": "IMPL-1.1"}),
        ".workflow/.active-WFS-theirs": "",
        "docs/features/001-x/.meta.json": json.dumps({"id": "001", "name": "x", "slug": "x"}) + "}",
    }
    for name, text in put.items():
        (repo / name).parent.mkdir(parents=True, exist_ok=True)
        (repo / name).write_text(text)
    return repo


def test_nothing_is_repaired_in_a_foreign_session_before_it_is_adopted(theirs, env):
    before = tree(theirs)
    done = rondel(theirs, env, "doctor", "--repair")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "next: rondel adopt " in done.stdout + done.stderr
    assert tree(theirs) == before
    done = rondel(theirs, {**env, "RONDEL_TRUST": "yes"}, "doctor", "--repair")
    assert "repaired" in done.stdout
    assert (theirs / TASK / "workflow-session.json").read_text() != "{"
    assert json.loads((theirs / "docs/features/001-x/.meta.json").read_text())


@pytest.mark.parametrize("words", [("task", "add", "Two"), ("task", "switch", "WFS-theirs")])
def test_nothing_is_added_or_switched_to_before_it_is_adopted(theirs, env, words):
    (theirs / TASK / "workflow-session.json").write_text(
        json.dumps({"session_id": "WFS-theirs", "status": "active"})
    )
    before = tree(theirs)
    done = rondel(theirs, env, *words)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "next: rondel adopt task:WFS-theirs" in done.stderr
    assert tree(theirs) == before


def test_a_new_session_writes_nothing_into_a_foreign_one_that_was_active(theirs, env):
    (theirs / TASK / "workflow-session.json").write_text(
        json.dumps({"session_id": "WFS-theirs", "status": "active"})
    )
    before = {name: data for name, data in tree(theirs).items() if name.startswith(TASK)}
    done = rondel(theirs, env, "task", "start", "Mine")
    assert done.returncode == 0, done.stderr
    assert (theirs / ".workflow/.active-WFS-mine").exists()
    assert {name: data for name, data in tree(theirs).items() if name.startswith(TASK)} == before
