"""The power goes: what was promised is there, and nothing is there in part."""

from __future__ import annotations

import itertools
import json
import os
import pickle
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.model import doclog
from rondel.model.changes import Append, Aside, Change, Edit, Write
from rondel.store import disk, documents, files, logs
from rondel.store.changes import write_changes
from rondel.store.journal import Journal
from rondel.store.lease import Lease
from rondel.testing import faults
from support.lines import read_lines
from support.power import PowerDisk


class PowerCut(BaseException):
    """The instant in which the power goes."""


@contextmanager
def power_disk(root: Path, mine: PowerDisk | None = None) -> Iterator[PowerDisk]:
    before_disk, before_point = disk.current, disk.point
    disk.current = mine = mine or PowerDisk(root)
    try:
        yield mine
    finally:
        disk.current, disk.point = before_disk, before_point


def cut_at(number: int, crash: Callable[[], object]) -> Callable[[str, str], None]:
    """A fault point at which the power goes: what `crash` notes down is all that is left."""
    passed = 0

    def point(_operation: str, _path: str) -> None:
        nonlocal passed
        passed += 1
        if passed == number:
            crash()
            raise PowerCut

    return point


def after_power_loss(root: Path, into: Path, work: Callable[[], object]) -> Path:
    """What is left of `root` when the power goes the moment after `work` has returned."""
    with power_disk(root) as mine:
        work()
        mine.crash(into)
    return into


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


def test_what_write_has_returned_from_survives(root: Path, tmp_path: Path):
    left = after_power_loss(root, tmp_path / "left", lambda: files.write(root / "a", b"data"))
    assert {p.name: p.read_bytes() for p in left.iterdir()} == {"a": b"data"}


def _without_sync_of_the_folder(path: Path, data: bytes) -> None:
    temp = f"{path}.tmp"
    fd = disk.current.create(temp)
    disk.current.write(fd, temp, data)
    disk.current.sync(fd, temp)
    disk.current.rename(temp, str(path))
    os.close(fd)


def _without_sync_of_the_file(path: Path, data: bytes) -> None:
    temp = f"{path}.tmp"
    fd = disk.current.create(temp)
    disk.current.write(fd, temp, data)
    disk.current.rename(temp, str(path))
    disk.current.sync_folder(str(path.parent))
    os.close(fd)


def test_the_test_disk_loses_a_rename_whose_folder_was_not_synced(root: Path, tmp_path: Path):
    (root / "a").write_bytes(b"old")
    left = after_power_loss(root, tmp_path / "left", lambda: _without_sync_of_the_folder(root / "a", b"new"))
    assert (left / "a").read_bytes() == b"old"


def test_the_test_disk_loses_bytes_that_were_not_synced_before_the_rename(root: Path, tmp_path: Path):
    (root / "a").write_bytes(b"old")
    left = after_power_loss(root, tmp_path / "left", lambda: _without_sync_of_the_file(root / "a", b"new"))
    assert (left / "a").read_bytes() == b""


def test_the_test_disk_loses_a_folder_whose_parent_was_not_synced(root: Path, tmp_path: Path):
    def work() -> None:
        disk.current.mkdir(str(root / "deep"))
        files.write(root / "deep" / "a", b"data")

    assert list(after_power_loss(root, tmp_path / "left", work).iterdir()) == []


def test_a_new_folder_and_what_is_in_it_survive(root: Path, tmp_path: Path):
    def work() -> None:
        files.make_folder(root / "deep" / "er")
        files.write(root / "deep" / "er" / "a", b"data")

    left = after_power_loss(root, tmp_path / "left", work)
    assert (left / "deep" / "er" / "a").read_bytes() == b"data"


def test_a_claimed_folder_survives(root: Path, tmp_path: Path):
    left = after_power_loss(root, tmp_path / "left", lambda: files.claim_folder(root / "s", ["x"]))
    assert (left / "s" / "x").is_dir()


def test_an_added_line_survives_also_as_the_first_one(root: Path, tmp_path: Path):
    left = after_power_loss(root, tmp_path / "left", lambda: logs.append_line(root / "log", "one"))
    assert read_lines(left / "log") == ["one"]


def test_a_torn_line_that_was_set_aside_survives(root: Path, tmp_path: Path):
    (root / "log").write_bytes(b"one\ntw")
    left = after_power_loss(root, tmp_path / "left", lambda: logs.append_line(root / "log", "two"))
    assert read_lines(left / "log") == ["one", "two"]
    assert (left / "log.torn-1").read_bytes() == b"tw"


def test_an_edited_document_and_its_log_survive(root: Path, tmp_path: Path):
    left = after_power_loss(
        root,
        tmp_path / "left",
        lambda: documents.edit(root / "d" / "s.json", lambda d: {**d, "x": 1}, log=root / "l" / "s.ndjson"),
    )
    assert json.loads((left / "d" / "s.json").read_text()) == {"x": 1}
    assert doclog.read((left / "l" / "s.ndjson").read_bytes()).document == {"x": 1}


def test_a_file_moved_aside_survives_under_its_new_name_alone(root: Path, tmp_path: Path):
    (root / "a").write_bytes(b"draft")
    left = after_power_loss(root, tmp_path / "left", lambda: write_changes(root, [Aside("a", "old/a")]))
    assert not (left / "a").exists()
    assert (left / "old" / "a").read_bytes() == b"draft"


def test_every_event_survives(root: Path, tmp_path: Path):
    def work() -> None:
        journal = Journal(root / "run" / "journal.jsonl")
        journal.add("one")
        journal.add("two")

    left = after_power_loss(root, tmp_path / "left", work)
    events = Journal(left / "run" / "journal.jsonl").news()
    assert [event["kind"] for event in events] == ["one", "two"]


def test_the_epoch_of_a_lease_survives(root: Path, tmp_path: Path):
    def work() -> None:
        Lease.take(root / ".rondel" / "run", "review:x").release()
        Lease.take(root / ".rondel" / "run", "review:x").release()

    left = after_power_loss(root, tmp_path / "left", work)
    with Lease.take(left / ".rondel" / "run", "review:x") as lease:
        assert lease.epoch == 3


CHANGES: list[Change] = [
    Aside("draft.md", "draft.rejected-1.md"),
    Write("draft.md", b"second"),
    Append("changes.log", "one"),
    Append("changes.log", "two"),
    Write(".rondel/parts/x/y.json", b"{}"),
    Edit("state.json", lambda d: {**d, "phase": 2}, log="coordination/state.ndjson"),
]
BEFORE = {"draft.md": b"first", "state.json": b'{"phase": 1}'}


def _session(folder: Path) -> Path:
    folder.mkdir()
    for name, data in BEFORE.items():
        (folder / name).write_bytes(data)
    return folder


def _tree(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.integers(1, 90), data=st.data())
def test_changes_cut_short_anywhere_are_whole_and_going_on_ends_where_no_loss_would(
    number: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
):
    """Whatever of the things that were not yet durable came through, in whatever order."""
    base = tmp_path_factory.mktemp("power")
    root, left, goal = _session(base / "root"), base / "left", _session(base / "goal")
    write_changes(goal, CHANGES)
    with power_disk(root) as mine:
        crash = lambda: mine.crash(left, lambda what: data.draw(st.booleans(), label=what))  # noqa: E731
        disk.point = cut_at(number, crash)
        try:
            write_changes(root, CHANGES)
            crash()
        except PowerCut:
            pass
    _assert_whole(_tree(left), _tree(goal))
    files._swept.clear()  # another process goes on
    write_changes(left, CHANGES)
    assert {p: d for p, d in _tree(left).items() if ".torn-" not in p} == _tree(goal)


def test_what_a_killed_driver_left_lasts_once_another_one_relies_on_it(tmp_path: Path):
    goal = _session(tmp_path / "goal")
    write_changes(goal, CHANGES)
    noted, left = tmp_path / "model", tmp_path / "left"
    for number in itertools.count(1):
        root = _session(tmp_path / f"root-{number}")

        def first(root: Path = root, number: int = number) -> None:
            mine = disk.current = PowerDisk(root)
            note = lambda: noted.write_bytes(pickle.dumps(mine))  # noqa: E731
            faults.die_at(number, before=note)
            write_changes(root, CHANGES, guard=Lease.take(root / ".rondel" / "run", "review:x").check)
            note()

        status = faults.in_child(first)
        assert status in (0, -signal.SIGKILL)
        with power_disk(root, pickle.loads(noted.read_bytes())) as mine:
            with Lease.take(root / ".rondel" / "run", "review:x") as lease:
                write_changes(root, CHANGES, guard=lease.check)
            mine.crash(left)
        found = {
            p: d for p, d in _tree(left).items() if not p.startswith(".rondel/run/") and ".torn-" not in p
        }
        assert found == _tree(goal), f"point {number}"
        shutil.rmtree(left)
        if status == 0:
            break


def _assert_whole(found: dict[str, bytes], goal: dict[str, bytes]) -> None:
    for path, data in found.items():
        if path in ("changes.log", "coordination/state.ndjson"):
            assert goal[path].startswith(data)
        elif files.TEMP not in path:
            assert data in (BEFORE.get(path), goal.get(path)), path
    if b'"phase": 2' in found["state.json"]:  # the commit is there: so is everything before it
        assert found == goal
