"""Disks that are full, read-only or closed to us: a clear error, and everything as it was."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from rondel.errors import RondelError
from rondel.model.changes import Edit, Write
from rondel.store import disk, documents, files, logs
from rondel.store.changes import write_changes
from rondel.store.journal import Journal
from rondel.store.lease import Lease, holder
from rondel.store.snapshot import DiskSnapshot
from rondel.testing.faults import in_child

PRELUDE = """
import json, os, sys
from pathlib import Path
from rondel.errors import MachineTrouble, RondelError
from rondel.store import documents, files, logs
from rondel.store.journal import Journal
from rondel.store.lease import Lease
from rondel.store.snapshot import DiskSnapshot

at = Path(sys.argv[1])

def error_of(work):
    try:
        work()
    except MachineTrouble as error:
        return str(error)
    return None

def tree():
    return {str(p.relative_to(at)): p.stat().st_size for p in sorted(at.rglob("*")) if p.is_file()}
"""


def on_a_mount(mount: str, script: str, folder: Path) -> dict[str, object]:
    """Run a script that finds a mount of its own at `folder`; nobody else sees it, and it goes with it."""
    folder.mkdir()
    code = PRELUDE + textwrap.dedent(script) + "\nprint(json.dumps(found))"
    setup = f'{mount} && exec "$@"'
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", setup, "sh"]
    environment = {**os.environ, "at": str(folder)}
    if not shutil.which("unshare"):
        pytest.skip("NOT PROVEN HERE: there is no `unshare` to mount with")
    if subprocess.run([*command, "true"], capture_output=True, check=False, env=environment).returncode:
        pytest.skip(f"NOT PROVEN HERE: this machine lets nobody mount ({mount})")
    done = subprocess.run(
        [*command, sys.executable, "-c", code, str(folder)],
        capture_output=True,
        check=False,
        text=True,
        env=environment,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


TINY = 'mount -t tmpfs -o size=64k rondel-test "$at"'


def test_a_full_disk_is_an_error_that_says_so_and_leaves_the_old_file_alone(tmp_path: Path):
    found = on_a_mount(
        TINY,
        """
        files.write(at / "a", b"old")
        found = {
            "error": error_of(lambda: files.write(at / "a", b"x" * 200_000)),
            "a": (at / "a").read_text(),
            "tree": tree(),
        }
        """,
        tmp_path / "disk",
    )
    assert "disk/a'" in str(found["error"])
    assert "the disk is full; free some space" in str(found["error"])
    assert found["a"] == "old"
    assert found["tree"] == {"a": 3}


def test_a_line_that_does_not_fit_leaves_no_part_of_itself(tmp_path: Path):
    found = on_a_mount(
        TINY,
        """
        logs.append_line(at / "log", "first")
        journal = Journal(at / "journal")
        journal.add("first")
        found = {
            "errors": [
                error_of(lambda: logs.append_line(at / "log", "x" * 200_000)),
                error_of(lambda: journal.add("big", text="x" * 200_000)),
            ],
            "log": (at / "log").read_text(),
            "junk": [event["kind"] for event in journal.news()],
        }
        logs.append_line(at / "log", "second")
        journal.add("second")
        after = Journal(at / "journal").news()
        found["after"] = [(at / "log").read_text().splitlines(), [event["kind"] for event in after]]
        """,
        tmp_path / "disk",
    )
    assert all("the disk is full" in str(error) for error in found["errors"])  # type: ignore[attr-defined]
    assert found["log"] == "first\n"
    assert found["junk"] == ["first"]
    assert found["after"] == [["first", "second"], ["first", "second"]]


def test_a_document_on_a_full_disk_stays_as_it_was_and_can_be_edited_when_there_is_room(tmp_path: Path):
    found = on_a_mount(
        TINY,
        """
        path = at / "s.json"
        documents.edit(path, lambda d: {"x": 1})
        (at / "ballast").write_bytes(b"x" * 50_000)
        error = error_of(lambda: documents.edit(path, lambda d: {**d, "y": "y" * 20_000}))
        before = documents.load(path)
        (at / "ballast").unlink()
        documents.edit(path, lambda d: {**d, "y": 2})
        found = {"error": error, "before": before, "after": documents.load(path), "tree": list(tree())}
        """,
        tmp_path / "disk",
    )
    assert "the disk is full" in str(found["error"])
    assert found["before"] == {"x": 1}
    assert found["after"] == {"x": 1, "y": 2}
    assert found["tree"] == ["s.json"]


def test_a_read_only_disk_is_an_error_for_everything_but_reading(tmp_path: Path):
    found = on_a_mount(
        'mount -t tmpfs rondel-test "$at" && mkdir "$at/run" && echo run/ > "$at/.gitignore" '
        '&& echo \'{"x": 1}\' > "$at/s.json" && echo one > "$at/log" && mount -o remount,ro "$at"',
        """
        found = {
            "errors": [
                error_of(lambda: files.write(at / "s.json", b"x")),
                error_of(lambda: files.write(at / "new", b"x")),
                error_of(lambda: logs.append_line(at / "log", "x")),
                error_of(lambda: files.make_folder(at / "folder")),
                error_of(lambda: files.claim_folder(at, ["folder"])),
                error_of(lambda: files.aside(at / "log", at / "log.old")),
                error_of(lambda: documents.edit(at / "s.json", lambda d: {**d, "y": 1})),
                error_of(lambda: Lease.take(at / "run", "review:x")),
                error_of(lambda: Journal(at / "run" / "journal.jsonl").add("x")),
            ],
            "document": documents.load(at / "s.json"),
            "lines": (at / "log").read_text().splitlines(),
            "names": sorted(DiskSnapshot(at).names()),
        }
        """,
        tmp_path / "disk",
    )
    errors = found["errors"]
    assert isinstance(errors, list)
    for error in errors:
        assert "the disk is read-only; make it writable or work elsewhere" in str(error)
        assert str(tmp_path / "disk") in str(error)
    assert found["document"] == {"x": 1}
    assert found["lines"] == ["one"]
    assert found["names"] == [".gitignore", "log", "run/", "s.json"]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user can reach: pytest's own belong to one."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    subprocess.run(["chmod", "-R", "u+rwx", str(folder)], check=True)
    shutil.rmtree(folder)


def as_nobody(work: object) -> int:
    """In a child without root's rights: root may do anything anywhere."""

    def drop() -> None:
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)
        work()  # type: ignore[operator]

    return in_child(drop)


def test_a_folder_that_is_closed_to_us_is_an_error_that_names_it(open_folder: Path):
    closed = open_folder / "closed"
    closed.mkdir()
    files.write(closed / "s.json", b"{}")
    closed.chmod(0o000)

    def work() -> None:
        for attempt in (
            lambda: files.write(closed / "a", b""),
            lambda: files.read(closed / "s.json"),
            lambda: documents.load(closed / "s.json"),
            lambda: documents.edit(closed / "s.json", lambda d: {**d, "x": 1}),
            lambda: logs.append_line(closed / "log", "x"),
            lambda: files.safe_join(open_folder, "closed/deep/er"),
            lambda: Lease.take(closed / "run", "review:x"),
        ):
            with pytest.raises(RondelError, match=r"closed.*permission denied; change its owner or mode"):
                attempt()
        assert DiskSnapshot(open_folder).names() == {"closed/"}
        assert DiskSnapshot(open_folder).names("closed") == frozenset()
        assert DiskSnapshot(open_folder).data("closed/s.json") is None
        assert holder(closed / "run") is None

    assert as_nobody(work) == 0


def test_a_folder_we_may_only_read_is_an_error_and_stays_as_it_was(open_folder: Path):
    folder = open_folder / "readable"
    folder.mkdir()
    files.write(folder / "s.json", b"{}")

    def work() -> None:
        with pytest.raises(RondelError, match=r"s\.json.*permission denied"):
            files.write(folder / "s.json", b"x")
        with pytest.raises(RondelError, match="permission denied"):
            write_changes(folder, [Edit("s.json", lambda d: {**d, "x": 1})])

    folder.chmod(0o555)
    assert as_nobody(work) == 0
    assert [p.read_bytes() for p in folder.iterdir()] == [b"{}"]


def test_an_unreadable_file_is_there_but_says_nothing(open_folder: Path):
    files.write(open_folder / "secret", b"x")
    (open_folder / "secret").chmod(0o000)

    def work() -> None:
        snapshot = DiskSnapshot(open_folder)
        assert snapshot.data("secret") is None
        assert snapshot.exists("secret")
        assert snapshot.names() == {"secret"}
        assert snapshot.digest("secret") is None
        with pytest.raises(RondelError, match=r"secret.*permission denied"):
            documents.load(open_folder / "secret")

    assert as_nobody(work) == 0


def test_a_folder_where_a_file_belongs_is_named(tmp_path: Path):
    (tmp_path / "a").mkdir()
    with pytest.raises(RondelError, match="it is a folder where a file belongs"):
        files.write(tmp_path / "a", b"")
    with pytest.raises(RondelError, match="a folder"):
        logs.append_line(tmp_path / "a", "x")
    with pytest.raises(RondelError, match="not a regular file"):
        documents.load(tmp_path / "a")
    assert os.listdir(tmp_path) == ["a"]


def test_a_pipe_where_a_file_belongs_is_an_error_and_not_a_hang(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RondelError, match="not a regular file"):
        documents.load(tmp_path / "pipe")
    with pytest.raises(RondelError, match="not a regular file"):
        logs.append_line(tmp_path / "pipe", "x")
    assert DiskSnapshot(tmp_path).data("pipe") is None


@pytest.mark.parametrize("name", ["x" * 300, "a\x00b", "\ud800"])
def test_a_name_the_disk_does_not_take_is_an_error_and_not_a_traceback(name: str, tmp_path: Path):
    with pytest.raises(RondelError):
        files.write(tmp_path / name, b"")
    with pytest.raises(RondelError):
        write_changes(tmp_path, [Write(name, b"")])
    assert DiskSnapshot(tmp_path).data(name) is None
    assert os.listdir(tmp_path) == []


def test_the_parent_folder_going_away_is_an_error_that_says_so(tmp_path: Path):
    with pytest.raises(RondelError, match="its folder is not there"):
        files.write(tmp_path / "gone" / "a", b"")


def test_an_interrupt_in_the_middle_of_a_write_leaves_nothing_behind(tmp_path: Path):
    files.write(tmp_path / "a", b"old")
    logs.append_line(tmp_path / "log", "one")
    for stop_at in ("write:half", "sync", "rename"):

        def point(operation: str, _path: str, stop_at: str = stop_at) -> None:
            if operation == stop_at:
                raise KeyboardInterrupt

        before, disk.point = disk.point, point
        try:
            with pytest.raises(KeyboardInterrupt):
                files.write(tmp_path / "a", b"new")
            if stop_at != "rename":
                with pytest.raises(KeyboardInterrupt):
                    logs.append_line(tmp_path / "log", "two")
        finally:
            disk.point = before
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"a": b"old", "log": b"one\n"}


def test_the_journal_of_a_closed_folder_says_so(tmp_path: Path):
    (tmp_path / "run").write_bytes(b"a file in the way")
    with pytest.raises(RondelError, match="run"):
        Journal(tmp_path / "run" / "journal.jsonl").add("x")
