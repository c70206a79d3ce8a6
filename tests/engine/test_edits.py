"""Edits: an agent works in a worktree of its own, and what it did becomes one commit on its target."""

from __future__ import annotations

from pathlib import Path

import pytest
from harness import REF, git, hall, repository, start

from rondel.agents.base import Request
from rondel.engine.report import Stopped
from support.kills import Trial, sweep, swept, undisturbed
from support.scripted import Scripted


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
    assert hall(root, Scripted(edit)).drive(REF).exit_code == 0
    assert len(edited(root)) == 3
    assert git(root, "rev-list", "--merges", "work") == ""
    assert git(root, "log", "--format=%(trailers:key=Rondel-Action)", "work").count("Rondel-Action") == 3
    assert git(root, "worktree", "list").count("\n") == 1, "a merged workspace is removed"


def test_an_edit_that_is_on_its_target_is_not_asked_for_again(root):
    git(root, "branch", "work")
    start(root, auto=True, width=2, edits=True, branch="work")
    hall(root, Scripted(edit)).drive(REF)
    (root / REF.folder / "final.md").unlink()
    for name in ("notes/1.md", "sum.json"):
        (root / REF.folder / "round-1" / name).unlink()
    agent = Scripted(edit)
    assert hall(root, agent).drive(REF).exit_code == 0
    assert [r.action for r in agent.seen] == ["final.md"]


def test_edits_that_do_not_merge_are_a_conflict_and_nothing_of_either_is_lost(root):
    git(root, "branch", "work")
    base = git(root, "rev-parse", "HEAD").strip()
    start(root, auto=True, width=2, edits=True, branch="work", base=base)

    def clash(request: Request) -> str:
        (request.cwd / "README.md").write_text(f"by {request.action}\n")
        return "Mine.\n"

    report = hall(root, Scripted(clash, seconds=0.2)).drive(REF)
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

    agent = Scripted(clash, seconds=0.2)
    assert hall(root, agent).drive(REF).exit_code == 0
    notes = [r.action for r in agent.seen if "notes" in r.action]
    assert len(notes) == 3
    assert git(root, "rev-list", "--count", "main..work").strip() == "2"


class Edits(Trial):
    """Two edits at once, both to the branch `work`."""

    def __init__(self, folder: Path) -> None:
        self.root = repository(folder / "repo")
        self.session = self.root / REF.folder
        git(self.root, "branch", "work")
        start(self.root, auto=True, width=2, edits=True, branch="work")

    def drive(self) -> int:
        return hall(self.root, Scripted(edit)).drive(REF).exit_code

    def check_ended(self) -> None:
        assert edited(self.root) == ["round-1-notes-1.md.txt", "round-1-notes-2.md.txt"]
        assert git(self.root, "worktree", "list").count("\n") == 1
        assert "rebase" not in git(self.root, "status")


@swept(parts=4)
def test_a_death_anywhere_in_an_edit_loses_nothing_and_pays_nothing_twice(points, root, tmp_path):
    """Every fault point of a session with edits; git is sane afterwards and no worktree is left."""
    calm = undisturbed(Edits(tmp_path / "undisturbed"))
    assert calm.paid == {"round-1/notes/1.md": 1, "round-1/notes/2.md": 1, "final.md": 1}
    sweep(Edits, tmp_path, points, calm, least=20)


def test_an_edit_that_git_would_not_take_is_kept_and_taken_later_without_asking_again(root):
    """The target is checked out, and the person's own uncommitted change is in the way."""
    git(root, "checkout", "-qb", "work")
    (root / "data.txt").write_text("theirs\n")
    start(root, auto=True, width=1, edits=True, branch="work")

    def write(request: Request) -> str:
        if "notes" in request.action:
            (request.cwd / "data.txt").write_text("ours\n")
        return "Done.\n"

    agent = Scripted(write)
    report = hall(root, agent).drive(REF)
    assert report.stopped is Stopped.FAILED
    assert "data.txt" in report.message
    assert (root / "data.txt").read_text() == "theirs\n"
    assert len(agent.seen) == 1
    (root / "data.txt").unlink()
    again = Scripted(write)
    assert hall(root, again).drive(REF).exit_code == 0
    assert [r.action for r in again.seen] == ["final.md"]
    assert (root / "data.txt").read_text() == "ours\n"
