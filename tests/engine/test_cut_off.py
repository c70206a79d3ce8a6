"""What was under way when a driver ended: complete answers are kept, cut-off commands run again."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from harness import REF, git, repository, start, when
from small import Small, SmallWorkflow

from rondel.agents.base import Request
from rondel.model.actions import Access, Action, Ask, Probe, Run
from rondel.model.changes import Change, text
from rondel.model.outcomes import Outcome
from rondel.project import Project
from rondel.testing.faults import in_child
from rondel.testing.scripted import Scripted, paid


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    made = repository(tmp_path / "repo")
    git(made, "branch", "work")
    return made


class Slow(SmallWorkflow):
    """The small workflow, whose checks and whose look wait until a file is there."""

    def __init__(self, folder: Path) -> None:
        self._wait = f"echo x >>{folder}/ran; test -e {folder}/go || sleep 600; echo done"

    def plan(self, state: Small) -> Iterable[Action]:
        for action in super().plan(state):
            match action:
                case Probe():
                    yield Run(action.path, self._wait)
                case Ask() if action.workspace.access is Access.WRITE:
                    yield replace(action, workspace=replace(action.workspace, checks=self._wait))
                case _:
                    yield action


class Leaving(SmallWorkflow):
    """The small workflow, whose look is a command that leaves what can never be read to its end."""

    def plan(self, state: Small) -> Iterable[Action]:
        for action in super().plan(state):
            if isinstance(action, Probe):
                command = "mkfifo pipe; ln -s /dev/zero zero; echo x >file; yes | head -c 60000000"
                yield Run(action.path, command, collect=("pipe", "zero", "file", "../x"))
            else:
                yield action

    def apply(self, state: Small, action: Action, outcome: Outcome) -> Sequence[Change]:
        if not isinstance(action, Run):
            return super().apply(state, action, outcome)
        return [text(action.path, f"{outcome.ended}: {outcome.error} {sorted(outcome.files)}")]


def test_a_command_that_says_too_much_is_told_so_and_only_real_files_come_back(root):
    start(root, auto=True, width=1)
    there = Project(root, workflows={"small": Leaving()}, build=lambda _: Scripted())
    assert there.run(REF).exit_code == 0
    said = (root / REF.folder / "look.json").read_text()
    assert said == "failed: it printed more than may be kept; ended ['file']\n"


def edit(request: Request) -> str:
    if "notes" in request.action:
        (request.cwd / "made.txt").write_text("made\n")
    return "I wrote a file.\n"


def drive(root: Path, folder: Path, number: signal.Signals | None = None, ran: int = 1) -> int:
    """Drive in a child; with a signal, send it that when the command has started `ran` times."""

    def work() -> int:
        if number is not None:
            log = folder / "ran"
            started = lambda: log.exists() and len(log.read_text().split()) == ran  # noqa: E731
            when(started, lambda: os.kill(os.getpid(), number))
        agent = Scripted(edit)
        made = Project(root, workflows={"small": Slow(folder)}, build=lambda _: agent)
        return made.run(REF).exit_code

    return in_child(work)


def test_a_command_that_its_driver_s_death_cut_off_runs_again_and_is_no_attempt(root, tmp_path):
    start(root, auto=True, width=1)
    assert drive(root, tmp_path, signal.SIGKILL) == -signal.SIGKILL
    (tmp_path / "go").touch()
    assert drive(root, tmp_path) == 0
    assert (root / REF.folder / "look.json").read_text() == "done\n"
    assert (tmp_path / "ran").read_text() == "x\nx\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_edit_whose_checks_were_cut_off_is_taken_over_without_asking_again(root, tmp_path, number):
    start(root, auto=True, width=1, edits=True, branch="work")
    (root / REF.folder / "look.json").write_text("{}")
    began = time.monotonic()
    assert drive(root, tmp_path, number) == (130 if number == signal.SIGINT else -number)
    assert time.monotonic() - began < 20
    (tmp_path / "go").touch()
    assert drive(root, tmp_path) == 0
    assert paid(root / REF.folder) == {"round-1/notes/1.md": 1, "final.md": 1}
    assert git(root, "show", "work:made.txt") == "made\n"
    assert git(root, "worktree", "list").count("\n") == 1


def test_an_answer_whose_edit_was_deleted_is_asked_for_again(root, tmp_path):
    start(root, auto=True, width=1, edits=True, branch="work")
    (root / REF.folder / "look.json").write_text("{}")
    drive(root, tmp_path, signal.SIGKILL)
    shutil.rmtree(tmp_path / "cache")
    (tmp_path / "go").touch()
    assert drive(root, tmp_path) == 0
    assert paid(root / REF.folder) == {"round-1/notes/1.md": 2, "final.md": 1}
    assert git(root, "show", "work:made.txt") == "made\n"
