"""Files and lines that are made durable together: each promise holds for each of them."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rondel.store import disk, files
from rondel.store.journal import Journal
from rondel.store.snapshot import DiskSnapshot
from rondel.testing.faults import points_of
from support.power import PowerDisk


class PowerCut(BaseException):
    """The instant in which the power goes."""


@contextmanager
def power_disk(root: Path) -> Iterator[PowerDisk]:
    before_disk, before_point = disk.current, disk.point
    disk.current = mine = PowerDisk(root)
    try:
        yield mine
    finally:
        disk.current, disk.point = before_disk, before_point


TEXTS = {"a": b"first\n", "deep/b": b"second\n", "c": b"third\n"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root/deep").mkdir(parents=True)
    return tmp_path / "root"


def named(root: Path) -> dict[str, bytes]:
    return {str(root / name): data for name, data in TEXTS.items()}


def there(root: Path) -> dict[str, bytes]:
    found = {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}
    return {name: data for name, data in found.items() if files.TEMP not in name}


def test_all_of_them_survive_the_power_once_it_returned(root: Path, tmp_path: Path):
    with power_disk(root) as mine:
        assert files.write_new(named(root)) == []
        mine.crash(tmp_path / "left")
    assert there(tmp_path / "left") == TEXTS == there(root)


@pytest.mark.parametrize("everything", [False, True])
def test_whenever_the_power_goes_each_is_whole_or_not_there(root: Path, tmp_path: Path, everything: bool):
    """Also where the disk has kept every name that it was not asked to keep."""

    def names_only(what: str) -> bool:
        return everything and what.startswith("names")

    for number in range(1, 60):
        left = tmp_path / f"left-{number}"
        here = tmp_path / f"root-{number}"
        (here / "deep").mkdir(parents=True)
        passed = itertools.count(1)
        with power_disk(here) as mine:

            def point(_operation: str, _path: str, *, mine=mine, left=left, number=number, passed=passed):
                if next(passed) == number:
                    mine.crash(left, names_only)
                    raise PowerCut

            disk.point = point
            try:
                files.write_new(named(here))
            except PowerCut:
                assert there(left).items() <= TEXTS.items(), number
                continue
        assert number > 12
        return
    pytest.fail("it never came to its end")


def test_what_somebody_else_put_there_meanwhile_stays(root: Path):
    left = files.write_new(named(root), last=lambda: (root / "a").write_bytes(b"mine") and None)
    assert left == [str(root / "a")]
    assert there(root) == {**TEXTS, "a": b"mine"}
    assert not list(root.rglob(f"{files.TEMP}*"))


def test_refused_in_the_last_moment_none_has_its_name_and_nothing_is_left(root: Path):
    def refuse() -> None:
        raise PermissionError

    with pytest.raises(PermissionError):
        files.write_new(named(root), last=refuse)
    assert not [p for p in root.rglob("*") if p.is_file()]


def test_a_link_on_the_way_is_not_followed(root: Path, tmp_path: Path):
    (tmp_path / "outside").mkdir()
    (root / "deep").rmdir()
    (root / "deep").symlink_to(tmp_path / "outside")
    with pytest.raises(Exception, match="deep"):
        files.write_new(named(root))
    assert list((tmp_path / "outside").iterdir()) == []
    assert there(root) == {}


def test_events_that_wait_are_durable_with_one_sync_and_in_order(root: Path, tmp_path: Path):
    journal = Journal(root / "j")
    journal.add("first")
    with power_disk(root) as mine:
        journal.add("second", waits=True)
        journal.add("third", waits=True)
        assert len((root / "j").read_bytes().splitlines()) == 1
        assert points_of(journal.flush).count("sync") == 1
        mine.crash(tmp_path / "left")
    lines = map(json.loads, (tmp_path / "left/j").read_text().splitlines())
    assert [line["kind"] for line in lines] == ["first", "second", "third"]
    assert not journal.is_waiting


def test_an_event_that_does_not_wait_takes_those_that_do_with_it(root: Path):
    journal = Journal(root / "j")
    journal.add("first", waits=True)
    journal.add("second")
    assert [event["kind"] for event in Journal(root / "j").news()] == ["first", "second"]


def held(root: Path) -> Journal:
    """A driver's journal, which holds its file open."""
    journal = Journal(root / ".rondel/j")
    journal.news()
    journal.keep()
    journal.add("first")
    journal.add("second")
    return journal


def test_whatever_becomes_of_a_log_that_is_held_open_the_next_line_is_at_its_place(
    root: Path, tmp_path: Path
):
    path = root / ".rondel/j"

    def gone() -> None:
        path.unlink()

    def replaced() -> None:
        path.rename(tmp_path / "old")
        path.write_text("mine\n")

    def cut() -> None:
        os.truncate(path, 10)

    def linked() -> None:
        path.rename(tmp_path / "away")
        path.symlink_to(tmp_path / "away")

    def folder_linked() -> None:
        path.parent.rename(tmp_path / "elsewhere")
        path.parent.symlink_to(tmp_path / "elsewhere")

    journal = held(root)
    for number, harm in enumerate((gone, replaced, cut, linked, folder_linked)):
        harm()
        journal.add(f"after-{number}")
        assert not path.is_symlink()
        assert not path.parent.is_symlink()
        kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
        assert kinds[:2] == ["first", "second"]
        assert kinds[-1] == f"after-{number}"
    journal.close()
    journal.add("last")
    assert json.loads(path.read_text().splitlines()[-1])["kind"] == "last"


def test_what_others_add_to_a_log_that_is_held_open_is_heard(root: Path):
    journal = held(root)
    Journal(root / ".rondel/j").add("theirs")
    assert [event["kind"] for event in journal.news()] == ["theirs"]
    journal.add("ours")
    assert journal.news() == []
    journal.close()


def test_a_file_that_is_about_to_be_written_is_shown_until_it_is_forgotten(root: Path):
    shown = DiskSnapshot(root)
    assert not shown.expect("new.md", b"text"), "nothing is known of the folder yet"
    shown.names()
    assert shown.expect("new.md", b"text")
    assert (shown.text("new.md"), "new.md" in shown.names()) == ("text", True)
    assert not shown.expect("new.md", b"again"), "it is there"
    shown.forget("new.md")
    assert (shown.text("new.md"), "new.md" in shown.names()) == (None, False)
