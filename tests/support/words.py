"""Somebody else's words under a document's name, at any moment of a session: they are found again afterwards.

A workflow's tests say in a `Story` how a session is made, driven to its end and taken up once more;
here somebody writes under one of its documents' names at the N-th thing that Rondel does to the disk
or asks an agent, and the text is looked for. RONDEL_SWEEP=1 takes many more moments.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.store import disk
from rondel.testing.faults import die_at, in_child
from rondel.testing.scripted import Scripted, run_of

SWEEP = bool(os.environ.get("RONDEL_SWEEP"))
SWEEP_MORE = 20
SWEPT = pytest.mark.timeout(7200 if SWEEP else 300)
ASKED = ("start", "agent", "answered")  # moments in which nothing is being written


class Story:
    """One session in a folder of its own."""

    session: Path
    names: Sequence[str]  # of the documents, relative to the session
    agent: Scripted

    def drive(self) -> None:
        """To the first end."""
        raise NotImplementedError

    def more(self) -> None:
        """The next round, the phase again, an extension: whatever writes the same documents again."""
        raise NotImplementedError

    def must_be_reviewed(self, name: str) -> bool:
        """Whether a text written under this name now has to be shown to a reviewer."""
        return False


@dataclass(frozen=True)
class Moment:
    """When somebody writes, what, how, and what happens then."""

    point: int  # the number of a thing done; 0 before the first, beyond the last between the two ends
    name: int
    in_place: bool = False  # as an editor that writes over the file, not beside it
    killed: bool = False  # the driver dies in that very moment
    forgets: bool = False  # and its runtime is deleted before it comes back


def moments(points: int) -> st.SearchStrategy[Moment]:
    """Any of them; the beginning and the end more often than each thing in between."""
    return st.builds(
        Moment,
        point=st.sampled_from([0, points]) | st.integers(0, points),
        name=st.integers(0, 10_000),
        in_place=st.booleans(),
        killed=st.booleans(),
        forgets=st.booleans(),
    )


def tell(make: Callable[[Path], Story], folder: Callable[[str], Path], examples: int) -> None:
    """Tell a story over and over, and let somebody write at another moment each time."""
    points = points_of(make(folder("undisturbed")))

    @settings(
        max_examples=examples * SWEEP_MORE if SWEEP else examples,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        derandomize=not SWEEP,
    )
    @given(moment=moments(points))
    def anywhere(moment: Moment) -> None:
        told(make(folder("told")), moment)

    anywhere()


class HastyDisk(disk.Disk):
    """The real disk without waiting for it: nobody here turns the power off."""

    def sync(self, fd: int, path: str) -> None:
        disk.point("sync", path)

    def sync_folder(self, path: str) -> None:
        disk.point("sync-folder", path)


@contextmanager
def hasty(hook: Callable[[str, str], None]):
    """No waiting for the disk, and `hook` called before everything that is done to it."""
    before = disk.current, disk.point
    disk.current, disk.point = HastyDisk(), hook
    try:
        yield
    finally:
        disk.current, disk.point = before


def told(story: Story, moment: Moment) -> None:
    """Let somebody write in that moment, go on to the very end, and look for what they wrote."""
    name = story.names[moment.name % len(story.names)]
    text = f"Words of somebody else, {moment.point} {moment.name}.\n\nThey write about {name}.\n"
    writer = _Writer(story, name, text, moment)
    if moment.point == 0:
        writer.write("start", "")
    if moment.killed and moment.point:
        assert in_child(writer.die) in (0, -signal.SIGKILL)
        writer.written = _is_there(story.session / name, text)
    if moment.forgets:
        shutil.rmtree(run_of(story.session), ignore_errors=True)
    with hasty(writer.count):
        story.drive()
        if not writer.written:
            writer.write("start", "")
        story.more()
    found = [p for p in story.session.rglob("*") if p.is_file() and _is_there(p, text)]
    assert found, f"{name}, written at {writer.when}, is lost"
    if writer.reviewed and not (moment.killed and moment.point):
        prompts = [r.prompt for r in story.agent.seen if r.action.endswith("review.json")]
        assert any(text.strip() in p for p in prompts), f"{name}, written at {writer.when}, was not reviewed"


def _is_there(path: Path, text: str) -> bool:
    return path.is_file() and text.rstrip().encode() in path.read_bytes()


class _Writer:
    """Somebody at another desk."""

    def __init__(self, story: Story, name: str, text: str, moment: Moment) -> None:
        self._story, self._moment, self._text = story, moment, text
        self._path = story.session / name
        self._name = name
        self._passed = 0
        self.written = False
        self.reviewed = False
        self.when = ("never", "")

    def count(self, operation: str, path: str) -> None:
        self._passed += 1
        if self._passed >= self._moment.point and not self.written and self._is_possible(operation, path):
            self.write(operation, path)

    def _is_possible(self, operation: str, path: str) -> bool:
        """Nobody writes between looking at a file and the rename that follows at once."""
        return not (operation == "rename" and path == os.fspath(self._path))

    def write(self, operation: str, path: str) -> None:
        self.written = True
        self.when = operation, path
        self.reviewed = operation in ASKED and self._story.must_be_reviewed(self._name)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        if self._moment.in_place:
            self._path.write_text(self._text)
        else:
            beside = self._path.with_name("somebody-s.tmp")
            beside.write_text(self._text)
            beside.replace(self._path)

    def die(self) -> None:
        """Write, and take the driver along."""
        disk.current = HastyDisk()
        die_at(
            self._moment.point,
            before=lambda: self.write("kill", ""),
            counts=self._is_possible,
        )
        self._story.drive()
        self._story.more()


def points_of(story: Story) -> int:
    """How many things a whole undisturbed story does."""
    passed = 0

    def count(*_: str) -> None:
        nonlocal passed
        passed += 1

    with hasty(count):
        story.drive()
        story.more()
    return passed
