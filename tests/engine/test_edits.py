"""Edits: an agent works in a worktree of its own, and what it did becomes one commit on its target."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from harness import REF, ScriptedAgent, die_at, git, hall, in_child, repository, start

from rondel.agents.base import Request
from rondel.engine.report import Stopped
from rondel.store import disk


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return repository(tmp_path / "repo")


def edit(request: Request) -> str:
    """Writes a file of its own in the workspace."""
    if "notes" in request.action:
        name = request.action.replace("/", "-")
        (request.cwd / f"{name}.txt").write_text(f"by {request.action}\n")
    return "I wrote a file.\n"


def edited(root: Path) -> list[str]:
    return sorted(n for n in git(root, "ls-tree", "-r", "--name-only", "work").split() if n.endswith(".txt"))


def test_parallel_edits_become_one_linear_history(root):
    git(root, "branch", "work")
    start(root, auto=True, width=3, edits=True, branch="work")
    assert hall(root, ScriptedAgent(edit)).drive(REF).exit_code == 0
    assert len(edited(root)) == 3
    assert git(root, "rev-list", "--merges", "work") == ""
    assert git(root, "log", "--format=%(trailers:key=Rondel-Action)", "work").count("Rondel-Action") == 3
    assert git(root, "worktree", "list").count("\n") == 1, "a merged workspace is removed"


def test_an_edit_that_is_on_its_target_is_not_asked_for_again(root):
    git(root, "branch", "work")
    start(root, auto=True, width=2, edits=True, branch="work")
    hall(root, ScriptedAgent(edit)).drive(REF)
    (root / REF.folder / "final.md").unlink()
    for name in ("notes/1.md", "sum.json"):
        (root / REF.folder / "round-1" / name).unlink()
    agent = ScriptedAgent(edit)
    assert hall(root, agent).drive(REF).exit_code == 0
    assert [r.action for r in agent.seen] == ["final.md"]


def test_edits_that_do_not_merge_are_a_conflict_and_nothing_of_either_is_lost(root):
    git(root, "branch", "work")
    base = git(root, "rev-parse", "HEAD").strip()
    start(root, auto=True, width=2, edits=True, branch="work", base=base)

    def clash(request: Request) -> str:
        (request.cwd / "README.md").write_text(f"by {request.action}\n")
        return "Mine.\n"

    report = hall(root, ScriptedAgent(clash, seconds=0.2)).drive(REF)
    assert report.stopped is Stopped.FAILED
    assert "README.md" in report.message
    both = git(root, "log", "--all", "--format=%B%n", "-p", "--", "README.md")
    assert "+by round-1/notes/1.md" in both
    assert "+by round-1/notes/2.md" in both


def test_without_a_pinned_base_an_edit_that_did_not_merge_is_done_anew_on_top_of_the_other(root):
    git(root, "branch", "work")
    start(root, auto=True, width=2, edits=True, branch="work")

    def clash(request: Request) -> str:
        (request.cwd / "README.md").write_text(f"by {request.action}\n")
        return "Mine.\n"

    agent = ScriptedAgent(clash, seconds=0.2)
    assert hall(root, agent).drive(REF).exit_code == 0
    notes = [r.action for r in agent.seen if "notes" in r.action]
    assert len(notes) == 3
    assert git(root, "rev-list", "--count", "main..work").strip() == "2"


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_a_death_anywhere_in_an_edit_loses_nothing_and_pays_nothing_twice(part, root, tmp_path):
    """Every fault point of a session with edits; git is sane afterwards and no worktree is left."""
    for point in range(part + 1, 400, 4):
        here = repository(tmp_path / f"{point}" / "repo")
        git(here, "branch", "work")
        start(here, auto=True, width=2, edits=True, branch="work")
        calls = tmp_path / f"{point}" / "calls"

        def work(die: int | None, here=here, calls=calls) -> int:
            if die:
                disk.point = die_at(die)
            return hall(here, ScriptedAgent(edit, calls=calls)).drive(REF).exit_code

        died = in_child(lambda point=point, work=work: work(point))
        assert in_child(lambda work=work: work(None)) == 0
        assert edited(here) == ["round-1-notes-1.md.txt", "round-1-notes-2.md.txt"]
        assert max(Counter(calls.read_text().split()).values()) == 1
        assert git(here, "worktree", "list").count("\n") == 1
        assert "rebase" not in git(here, "status")
        if died == 0:
            assert point > 20
            return
    pytest.fail("the run never came to its end")


def test_an_edit_that_git_would_not_take_is_kept_and_taken_later_without_asking_again(root):
    """The target is checked out, and the person's own uncommitted change is in the way."""
    git(root, "checkout", "-qb", "work")
    (root / "data.txt").write_text("theirs\n")
    start(root, auto=True, width=1, edits=True, branch="work")

    def write(request: Request) -> str:
        if "notes" in request.action:
            (request.cwd / "data.txt").write_text("ours\n")
        return "Done.\n"

    agent = ScriptedAgent(write)
    report = hall(root, agent).drive(REF)
    assert report.stopped is Stopped.FAILED
    assert "data.txt" in report.message
    assert (root / "data.txt").read_text() == "theirs\n"
    assert len(agent.seen) == 1
    (root / "data.txt").unlink()
    again = ScriptedAgent(write)
    assert hall(root, again).drive(REF).exit_code == 0
    assert [r.action for r in again.seen] == ["final.md"]
    assert (root / "data.txt").read_text() == "ours\n"
