"""What starts together is noted together, what ends together is written together: nothing is given up."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import pytest
from harness import REF, project, repository, start
from small import Small, SmallWorkflow

from rondel.agents.base import Beat, Reply, Request
from rondel.engine import driver, spools
from rondel.engine.report import Stopped
from rondel.model.actions import Action
from rondel.model.changes import Change
from rondel.model.outcomes import Ended
from rondel.project import Project
from rondel.store import disk, files
from rondel.testing.faults import die_at, in_child, points_of
from rondel.testing.scripted import Scripted, run_of
from support.power import PowerDisk

WIDTH = 3


class Forgetful(Scripted):
    """Keeps no answer of its own: only the driver's copy can bring one back."""

    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        self.seen.append(request)
        return Reply(Ended.DONE, f"An answer to {request.action}.\n")

    def recover(self, request: Request) -> Reply | None:
        return None


class Unannounced(SmallWorkflow):
    """Leaves nothing that says that an action has begun."""

    def begin(self, state: Small, action: Action, at: datetime) -> Sequence[Change]:
        return ()


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "state").mkdir()
    made = repository(tmp_path / "repo")
    start(made, auto=True, width=WIDTH)
    return made


def noted(run: Path, kind: str) -> list[str]:
    lines = (run / "journal.jsonl").read_text().splitlines()
    return [e["action"] for e in map(json.loads, lines) if e["kind"] == kind and "action" in e]


def notes_in(root: Path) -> set[str]:
    return {p.name for p in (root / REF.folder / "round-1/notes").glob("*.md")}


def test_whatever_is_asked_was_on_record_before_durably(root, tmp_path):
    """The power goes while the first of several is asked: all of them are in the journal."""
    project(root).begin(REF, new=True)
    left = tmp_path / "left"

    def work() -> None:
        mine = disk.current = PowerDisk(tmp_path)

        def answer(_request: Request) -> str:
            mine.crash(left)
            os.kill(os.getpid(), signal.SIGKILL)
            return ""

        project(root, Scripted(answer)).run(REF)

    assert in_child(work) == -signal.SIGKILL
    (run,) = (left / "state").rglob("journal.jsonl")
    asked = [p.read_text() for p in run_of(root / REF.folder).rglob("asked")]
    assert asked
    assert set(noted(run.parent, "started")) >= {f"round-1/notes/{n + 1}.md" for n in range(WIDTH)}


def test_where_the_start_cannot_be_noted_nobody_is_asked(root, monkeypatch):
    project(root).begin(REF, new=True)
    agent = Scripted()
    full = [False]

    class Full(disk.Disk):
        def write(self, fd: int, path: str, data: bytes) -> None:
            if b'"kind":"started"' in data:
                full[0] = True
            super().write(fd, path, data)

        def sync(self, fd: int, path: str) -> None:
            if full[0] and path.endswith("journal.jsonl"):
                raise OSError(errno.ENOSPC, "no room", path)
            super().sync(fd, path)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "current", Full())
        assert project(root, agent).run(REF).stopped is Stopped.MACHINE
    assert agent.seen == []
    assert project(root, agent).run(REF).exit_code == 0
    assert len(agent.seen) == len(set(agent.actions)), "nothing was asked for twice"


@pytest.mark.parametrize(("at_once", "syncs"), [(1, 4), (20, 1)])
def test_one_step_more_takes_so_many_syncs(tmp_path, monkeypatch, at_once, syncs):
    """Alone: its end with the next one's start, the record of the text, the text, its name. Else the text."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def taken(width: int) -> int:
        root = repository(tmp_path / str(width))
        start(root, auto=True, width=width)
        here = Project(root, workflows={"small": Unannounced()}, build=lambda _: Forgetful())
        points = points_of(lambda: here.run(REF, agents_max=at_once))
        assert (root / REF.folder / "final.md").exists()
        return points.count("sync") + points.count("sync-folder")

    assert taken(2)  # the person's state folder is made
    assert taken(7) - taken(6) == syncs


def test_however_many_end_at_once_only_so_many_files_are_open(root, monkeypatch):
    most = [0]
    write_new = files.write_new

    def counted(items, last):
        most[0] = max(most[0], len(items))
        return write_new(items, last)

    monkeypatch.setattr(driver, "TOGETHER_MAX", 2)
    monkeypatch.setattr(files, "write_new", counted)
    assert project(root, Forgetful()).run(REF).exit_code == 0
    assert most == [2]
    assert notes_in(root) == {f"{n + 1}.md" for n in range(WIDTH)}


@pytest.mark.parametrize("number", range(1, 14))
def test_killed_while_several_are_written_each_is_there_whole_or_asked_for_nowhere(root, number):
    """From the moment the first of their temporary files is made; what was answered is not paid for again."""
    project(root).begin(REF, new=True)

    def counts(_operation: str, path: str) -> bool:
        return "round-1/notes" in path

    def doomed() -> None:
        die_at(number, counts=counts)
        project(root, Forgetful()).run(REF)

    assert in_child(doomed) == -signal.SIGKILL
    session = root / REF.folder
    answered = {json.loads(p.read_text())["prompt"] for p in (run_of(session) / "spool").glob("*.json")}
    assert len(answered) == WIDTH, "every answer was kept before the first file was begun"
    for name in notes_in(root):
        assert (session / "round-1/notes" / name).read_text() == f"An answer to round-1/notes/{name}.\n"
    again = Forgetful()
    assert project(root, again).run(REF).exit_code == 0
    assert [a for a in again.actions if "round-1/notes" in a] == []
    assert not list(session.rglob(".rondel-tmp-*"))


def test_a_person_who_writes_one_of_them_in_the_last_moment_loses_nothing(root, monkeypatch):
    project(root).begin(REF, new=True)
    theirs = root / REF.folder / "round-1/notes/2.md"

    class Busy(disk.Disk):
        def sync(self, fd: int, path: str) -> None:
            if "round-1/notes" in path and not theirs.exists():
                theirs.write_text("Mine.\n")
            super().sync(fd, path)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "current", Busy())
        assert project(root).run(REF).exit_code == 0
    aside = root / REF.folder / ".rondel/aside"
    texts = [theirs.read_text(), *(p.read_text() for p in aside.iterdir())]
    assert "Mine.\n" in texts
    assert "An answer to round-1/notes/2.md.\n" in texts


def test_a_try_without_a_program_leaves_one_file_and_no_folder(root):
    agent = Forgetful()
    assert project(root, agent).run(REF).exit_code == 0
    found = list((run_of(root / REF.folder) / "spool").iterdir())
    assert len(found) == len(agent.seen)
    assert all(p.is_file() for p in found)
    bodies = [json.loads(p.read_text()) for p in found]
    assert {b["prompt"] for b in bodies} == {r.prompt for r in agent.seen}
    assert {b["text"] for b in bodies} == {f"An answer to {a}.\n" for a in agent.actions}


def test_those_files_stay_within_the_bound_too(root, monkeypatch):
    monkeypatch.setattr(spools, "SPOOLS_MAX", 0)
    assert project(root, Forgetful()).run(REF).exit_code == 0
    assert list((run_of(root / REF.folder) / "spool").iterdir()) == []
