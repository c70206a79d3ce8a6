"""Edits: an agent works in a worktree of its own, and what it did becomes one commit on its target."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest
from harness import REF, git, project, repository, start, when

from rondel.agents.base import Reply, Request
from rondel.engine.report import Stopped
from rondel.model.outcomes import Ended
from rondel.testing.faults import die_at, listen
from rondel.testing.kills import Trial, killed_and_resumed, undisturbed
from rondel.testing.scripted import Scripted
from support.kills import swept


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
    assert project(root, Scripted(edit)).run(REF).exit_code == 0
    assert len(edited(root)) == 3
    assert git(root, "rev-list", "--merges", "work") == ""
    assert git(root, "log", "--format=%(trailers:key=Rondel-Action)", "work").count("Rondel-Action") == 3
    assert git(root, "worktree", "list").count("\n") == 1, "a merged workspace is removed"


def test_the_locks_of_a_git_that_was_killed_while_it_deleted_a_ref_end_no_run(root):
    git(root, "branch", "work")
    start(root, auto=True, width=1, edits=True, branch="work")

    def leaves_a_lock(request: Request) -> str:
        if "notes" in request.action:
            (root / ".git/packed-refs.lock").touch()
        return edit(request)

    assert project(root, Scripted(leaves_a_lock)).run(REF).exit_code == 0
    assert git(root, "for-each-ref", "refs/heads/rondel") == ""
    assert not (root / ".git/packed-refs.lock").exists()


def test_an_edit_that_is_on_its_target_is_not_asked_for_again(root):
    git(root, "branch", "work")
    start(root, auto=True, width=2, edits=True, branch="work")
    project(root, Scripted(edit)).run(REF)
    (root / REF.folder / "final.md").unlink()
    for name in ("notes/1.md", "sum.json"):
        (root / REF.folder / "round-1" / name).unlink()
    agent = Scripted(edit)
    assert project(root, agent).run(REF).exit_code == 0
    assert [r.action for r in agent.seen] == ["final.md"]


def test_edits_that_do_not_merge_are_a_conflict_and_nothing_of_either_is_lost(root):
    git(root, "branch", "work")
    base = git(root, "rev-parse", "HEAD").strip()
    start(root, auto=True, width=2, edits=True, branch="work", base=base)

    def clash(request: Request) -> str:
        (request.cwd / "README.md").write_text(f"by {request.action}\n")
        return "Mine.\n"

    report = project(root, Scripted(clash, seconds=0.2)).run(REF)
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
    assert project(root, agent).run(REF).exit_code == 0
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
        return project(self.root, Scripted(edit)).run(REF).exit_code

    def check_ended(self) -> None:
        assert edited(self.root) == ["round-1-notes-1.md.txt", "round-1-notes-2.md.txt"]
        assert git(self.root, "worktree", "list").count("\n") == 1
        assert "rebase" not in git(self.root, "status")


class Some(Edits):
    """In a repository of some more files: one agent edits, one changes nothing, one fails at first."""

    def __init__(self, folder: Path) -> None:
        self.root = repository(folder / "repo", {f"{n % 3}/{n}.py": f"{n}\n" for n in range(12)})
        self.session = self.root / REF.folder
        git(self.root, "branch", "work")
        start(self.root, auto=True, width=3, edits=True, branch="work")

    def drive(self) -> int:
        return project(self.root, Scripted(some_edit)).run(REF).exit_code

    def check_ended(self) -> None:
        assert edited(self.root) == ["round-1-notes-1.md.txt", "round-1-notes-3.md.txt"]
        assert self.repository()["worktrees"] == 1


def some_edit(request: Request) -> str | Reply:
    """The second changes nothing; the third fails once, after it has changed something."""
    if request.action.endswith("/2.md"):
        return "There was nothing to do.\n"
    if request.action.endswith("/3.md") and request.attempt == 1:
        (request.cwd / "0/0.py").unlink()
        return Reply(Ended.FAILED, error="out of words")
    return edit(request)


@swept(parts=2, stride=12)
def test_a_death_anywhere_with_agents_that_edit_or_do_not_or_fail_loses_nothing(share, root, tmp_path):
    calm = undisturbed(Some(tmp_path / "undisturbed"))
    share.sweep(Some, tmp_path, calm, least=100, apart=8)


@swept(parts=2, stride=10)
def test_a_death_anywhere_in_an_edit_loses_nothing_and_pays_nothing_twice(share, root, tmp_path):
    """Every fault point of a session with edits; git is sane afterwards and no worktree is left."""
    calm = undisturbed(Edits(tmp_path / "undisturbed"))
    assert calm.paid == {"round-1/notes/1.md": 1, "round-1/notes/2.md": 1, "final.md": 1}
    share.sweep(Edits, tmp_path, calm, least=20, apart=8)


class CheckedOut(Edits):
    """Both to the branch that is checked out, each with many files: git is killed among the person's own."""

    def __init__(self, folder: Path) -> None:
        self.root = repository(folder / "repo", {f"{n % 3}/{n}.txt": f"{n}\n" for n in range(MANY)})
        self.session = self.root / REF.folder
        start(self.root, auto=True, width=2, edits=True, branch="main")

    def drive(self) -> int:
        return project(self.root, Scripted(large_edit)).run(REF).exit_code

    def check_ended(self) -> None:
        whole = [f"{n}\n" for n in range(MANY)]
        assert [(self.root / f"{n % 3}/{n}.txt").read_text() for n in range(0, MANY, 3)] == ["new\n"] * (
            MANY // 3
        )
        assert [(self.root / f"1-{n}.txt").read_text() for n in range(MANY)] == whole
        assert git(self.root, "ls-files", "--modified", "--deleted") == ""


MANY = 90


def large_edit(request: Request) -> str:
    """The first adds many files, the second changes some."""
    if request.action.endswith("notes/1.md"):
        for n in range(MANY):
            (request.cwd / f"1-{n}.txt").write_text(f"{n}\n")
    elif request.action.endswith("notes/2.md"):
        for n in range(0, MANY, 3):
            (request.cwd / f"{n % 3}/{n}.txt").write_text("new\n")
    return "I wrote files.\n"


@swept(parts=2, stride=24)
def test_a_death_anywhere_while_the_persons_own_branch_moves_loses_nothing(share, root, tmp_path):
    calm = undisturbed(CheckedOut(tmp_path / "undisturbed"))
    share.sweep(CheckedOut, tmp_path, calm, least=100, apart=8)


class Unchanged(Some):
    """An agent that changes nothing."""

    def __init__(self, folder: Path) -> None:
        self.root = repository(folder / "repo", {f"{n % 9}/{n}.py": f"{n}\n" for n in range(99)})
        self.session = self.root / REF.folder
        git(self.root, "branch", "work")
        start(self.root, auto=True, width=1, edits=True, branch="work")

    def drive(self) -> int:
        return project(self.root, Scripted(lambda _: "Nothing to do.\n")).run(REF).exit_code

    def check_ended(self) -> None:
        assert len(git(self.root, "ls-tree", "-r", "--name-only", "work").split()) == 100


def die_removing_code(number: int) -> None:
    """Before the file of that number of somebody's code is removed."""
    passed = 0

    def count(operation: str, path: str) -> None:
        nonlocal passed
        passed += operation == "remove" and path.endswith(".py")
        if passed == number:
            os.kill(os.getpid(), signal.SIGKILL)

    listen(count)


@pytest.mark.parametrize("number", [1, 50, 99])
def test_killed_while_the_workspace_of_an_agent_that_changed_nothing_is_removed(number, root, tmp_path):
    """Nothing is gone from the branch, and the agent is not asked again."""
    calm = undisturbed(Unchanged(tmp_path / "undisturbed"))
    assert killed_and_resumed(Unchanged(tmp_path / "killed"), [number], calm, die_removing_code)


class Repaired(Edits):
    """An agent whose first answer is sent back; it has edited all the same."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (self.session / ".rondel/request-1.json").unlink()
        (self.session / ".rondel").rmdir()
        start(self.root, auto=True, width=1, edits=True, branch="work")

    def drive(self) -> int:
        return project(self.root, Scripted(self.repaired)).run(REF).exit_code

    @staticmethod
    def repaired(request: Request) -> str:
        said = edit(request)
        return said if "cannot be used" in request.prompt or "notes" not in request.action else "1. wrong"

    def check_ended(self) -> None:
        assert (self.session / "round-1/notes/1.md").read_text() == "I wrote a file.\n"


def die_before_the_note(number: int) -> None:
    """When the edit is on its branch, and nothing says so yet."""
    die_at(number, counts=lambda operation, path: operation == "rename" and path.endswith("notes/1.md"))


def test_killed_after_a_repaired_edit_was_taken_over_its_second_answer_counts(root, tmp_path):
    calm = undisturbed(Repaired(tmp_path / "undisturbed"))
    assert killed_and_resumed(Repaired(tmp_path / "killed"), [1], calm, die_before_the_note)


def nests(request: Request, *, until: int) -> str:
    """Leaves a repository of its own in the edit, up to that try; the next one finds it and mends it."""
    if "notes" not in request.action:
        return "Done.\n"
    made = request.cwd / "made"
    if request.attempt > until:
        assert "'made' is a git repository of its own" in request.prompt
        shutil.rmtree(made / ".git")
    elif not made.exists():
        repository(made)
    return "I made it.\n"


def test_a_repository_inside_an_edit_is_a_failed_try_whose_words_the_agent_gets(root):
    git(root, "branch", "work")
    start(root, auto=True, width=1, edits=True, branch="work")
    agent = Scripted(partial(nests, until=1))
    assert project(root, agent).run(REF).exit_code == 0
    assert len(agent.seen) == 3
    assert git(root, "ls-tree", "-r", "--name-only", "work").split() == ["README.md", "made/README.md"]


def test_a_repository_inside_an_edit_that_stays_ends_in_a_failure_that_says_what_helps(root):
    git(root, "branch", "work")
    start(root, auto=True, width=1, edits=True, branch="work")
    agent = Scripted(partial(nests, until=9))
    report = project(root, agent).run(REF)
    assert report.stopped is Stopped.FAILED
    assert len(agent.seen) == 2
    assert "round-1/notes/1.md failed 2 times" in report.message
    advice = re.search(r"rm -rf (\S+)/made/.git", report.message)
    assert advice is not None
    assert (Path(advice[1]) / "made/README.md").is_file(), "the agent's work is where the message says"
    assert project(root, agent).run(REF).stopped is Stopped.FAILED
    assert len(agent.seen) == 2, "without a word of the person nobody is asked again"
    subprocess.run(advice[0], shell=True, check=True)
    last = Scripted(lambda _: "It is all there.\n")
    assert project(root, last).run(REF, retry=True).exit_code == 0
    assert "made/README.md" in git(root, "ls-tree", "-r", "--name-only", "work").split()
    assert [r.action for r in last.seen if "notes" in r.action] == [], "what the person fixed is taken"


def test_an_edit_that_nobody_fixed_goes_back_to_its_agent_when_a_person_goes_on(root):
    git(root, "branch", "work")
    start(root, auto=True, width=1, edits=True, branch="work")
    assert project(root, Scripted(partial(nests, until=9))).run(REF).stopped is Stopped.FAILED
    last = Scripted(partial(nests, until=2))
    assert project(root, last).run(REF, retry=True).exit_code == 0
    assert [r.attempt for r in last.seen if "notes" in r.action] == [3]


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
    report = project(root, agent).run(REF)
    assert report.stopped is Stopped.FAILED
    assert "data.txt" in report.message
    assert (root / "data.txt").read_text() == "theirs\n"
    assert len(agent.seen) == 1
    (root / "data.txt").unlink()
    again = Scripted(write)
    assert project(root, again).run(REF).exit_code == 0
    assert [r.action for r in again.seen] == ["final.md"]
    assert (root / "data.txt").read_text() == "ours\n"


def test_a_working_copy_that_cannot_be_made_is_no_attempt_of_the_agent(root):
    """The repository's own trouble: git cannot add a worktree."""
    git(root, "branch", "work")
    start(root, auto=True, width=1, edits=True, branch="work")
    (root / ".git/worktrees").write_text("in the way\n")
    agent = Scripted(edit)
    for _ in range(3):
        report = project(root, agent).run(REF)
        assert report.stopped is Stopped.FAILED
        assert "worktree" in report.message
        assert "times" not in report.message
    assert agent.seen == []
    (root / ".git/worktrees").unlink()
    assert project(root, agent).run(REF).exit_code == 0
    assert len(edited(root)) == 1


def test_a_set_up_that_fails_is_no_attempt_of_the_agent(root):
    git(root, "branch", "work")
    start(root, auto=True, width=1, edits=True, branch="work")
    settings = root / "rondel.toml"
    before = settings.read_text() if settings.exists() else ""
    settings.write_text(before + '[project]\nsetup = "echo no network; exit 3"\n')
    agent = Scripted(edit)
    for _ in range(3):
        assert "no network" in project(root, agent).run(REF).message
    settings.write_text(before + '[project]\nsetup = "true"\n')
    assert project(root, agent).run(REF).exit_code == 0
    assert len(agent.seen) == 2


def test_ctrl_c_ends_a_git_of_ours_and_the_edit_is_taken_later_without_asking_again(
    root, tmp_path, monkeypatch
):
    own = tmp_path / "gitconfig"
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(own))
    slow = tmp_path / "slow"
    slow.write_text(f"#!/bin/sh\ntouch {tmp_path}/began\nsleep 60\n")
    slow.chmod(0o755)
    own.write_text(f'[filter "slow"]\nclean = {slow}\n')
    (root / ".gitattributes").write_text("*.txt filter=slow\n")
    git(root, "add", ".gitattributes")
    git(root, "commit", "-qm", "attributes")
    git(root, "branch", "work")
    start(root, auto=True, width=1, edits=True, branch="work")
    when((tmp_path / "began").exists, lambda: os.kill(os.getpid(), signal.SIGINT))
    agent, began = Scripted(edit), time.monotonic()
    assert project(root, agent).run(REF).stopped is Stopped.INTERRUPTED
    assert time.monotonic() - began < 20
    own.write_text('[filter "slow"]\nclean = cat\n')
    assert project(root, agent).run(REF).exit_code == 0
    assert len(edited(root)) == 1
    assert [r.action for r in agent.seen].count("round-1/notes/1.md") == 1


def test_an_edit_that_is_too_large_is_a_failed_try_whose_words_the_agent_gets(root):
    """Nothing of it is read: also where it is a file that was empty."""
    git(root, "branch", "work")
    start(root, auto=True, width=1, edits=True, branch="work")

    def grows(request: Request) -> str:
        if "notes" not in request.action:
            return "Done.\n"
        huge = request.cwd / "huge.bin"
        if request.attempt == 1:
            with huge.open("wb") as f:
                f.truncate(60 << 30)
        else:
            assert "'huge.bin' (64,425 MB)" in request.prompt
            huge.unlink()
        return edit(request)

    agent, began = Scripted(grows), time.monotonic()
    assert project(root, agent).run(REF).exit_code == 0
    assert time.monotonic() - began < 30
    assert edited(root) == ["round-1-notes-1.md.txt"]


def test_a_person_raises_the_limit_of_an_edit_and_it_is_taken(root):
    git(root, "branch", "work")
    (root / "rondel.toml").write_text("[limits]\nedit_mb_max = 0.001\nattempts_max = 1\n")
    start(root, auto=True, width=1, edits=True, branch="work")

    def large(request: Request) -> str:
        (request.cwd / "large.txt").write_text("x" * 2000)
        return "I wrote it.\n"

    report = project(root, Scripted(large)).run(REF)
    assert report.stopped is Stopped.FAILED
    assert "[limits] edit_mb_max" in report.message
    (root / "rondel.toml").unlink()
    last = Scripted(lambda _: "It is all there.\n")
    assert project(root, last).run(REF, retry=True).exit_code == 0
    assert edited(root) == ["large.txt"]
