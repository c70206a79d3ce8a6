"""The journal: how files came about, one line per event. Losing it loses history, never progress.

It is a log that a process knows (`KnownLog`): what it read there and added, it can put back.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rondel import paths
from rondel.errors import MachineTrouble, RondelError
from rondel.model import jsons
from rondel.store import disk, files, logs, ours
from rondel.store.locks import locked, release, unlock, wait_lock

NAME = "journal.jsonl"  # in a session's runtime
_LINE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


def _now() -> datetime:
    return datetime.now(UTC)


class Journal:
    """A log of events. However long it is, adding one costs the same."""

    def __init__(self, path: Path, epoch: int = 0, clock: Callable[[], datetime] = _now) -> None:
        self._log = KnownLog(path)
        self._clock = clock
        self._waiting: list[str] = []  # lines that are noted together with those to come
        self.epoch = epoch

    def keep(self) -> None:
        """What somebody takes from the journal from now on is put back. For a driver."""
        self._log.keep = True

    def close(self) -> None:
        """The driver is at its end."""
        self._log.close()

    def add(self, kind: str, /, *, waits: bool = False, **fields: object) -> dict[str, object]:
        """One event, given back as it was noted: durable, or with `waits` not before `flush`."""
        at = self._clock().isoformat(timespec="milliseconds")
        event: dict[str, object] = {"at": at, "epoch": self.epoch, "kind": kind, **fields}
        line = _LINE.encode(event)
        if waits:
            self._waiting.append(line)
        else:
            self._add(line)
        return event

    @property
    def is_waiting(self) -> bool:
        """Whether an event was added that is not durable yet."""
        return bool(self._waiting)

    def flush(self) -> None:
        """Every event that was added is durable, in order: with one sync."""
        if self._waiting:
            self._add()

    def _add(self, *lines: str) -> None:
        self._log.add(*self._waiting, *lines)
        self._waiting.clear()

    def news(self) -> list[dict[str, object]]:
        """The events nobody gave here before: first all there are, later what others added.

        A line that is no event is skipped.
        """
        return [event for line in self._log.news() if (event := _event(line)) is not None]


def _event(line: bytes) -> dict[str, object] | None:
    try:
        value = jsons.load(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


TAIL = 256  # bytes by which a log is recognised, however long it is
TRIES = 20  # how often somebody may damage a log in the moment a line is added


class KnownLog:
    """A log of JSON objects below a session's `.rondel`, one a line. Other processes may add to it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: bytearray | None = (
            None  # all whole lines as read or added; None: nobody asked for `news`
        )
        self._others: list[bytes] = []  # read, and not yet given
        self._turn = threading.Lock()  # the lock on the file is between processes only
        self._open: tuple[int, tuple[int, ...]] | None = None  # the file, and by what it is known again
        self.keep = False  # whether what is missing or changed is put back: only who has the session may

    def news(self) -> list[bytes]:
        """The lines nobody gave here before: first all there are, later what others added.

        Costs little where there is nothing new.
        """
        with self._turn:
            self._read_on()
            found, self._others = self._others, []
        return found

    def add(self, *lines: str) -> None:
        """One line or more, durable: with one sync."""
        with self._turn, disk.explained("append to", self._path):
            if self._add_to_open(lines):
                return
            for _ in range(TRIES):
                if self._known is not None:
                    self._read_on()
                if self._add(lines):
                    return
        raise RondelError(f"cannot append to {str(self._path)!r}: somebody else keeps writing it")

    def close(self) -> None:
        """Hold the file open no longer. For a driver, at its end."""
        if self._open is not None:
            (fd, _), self._open = self._open, None
            os.close(fd)

    def _add(self, lines: Sequence[str]) -> bool:
        """False when the log is not the one we know any more."""
        name = os.fspath(ours.own(self._path))
        fd = logs.open_log(name)
        try:
            if self._known is not None and not self._take_from(fd):
                return False
            self._append(fd, lines)
            if self.keep and self._known is not None:
                self.close()
                self._open = os.dup(fd), _file_of(os.fstat(fd))
            return True
        finally:
            unlock(fd)

    def _add_to_open(self, lines: Sequence[str]) -> bool:
        """The same where the file is open, and at its place is still that file as we know it."""
        if self._open is None:
            return False
        fd = self._open[0]
        wait_lock(fd, os.fspath(self._path))
        try:
            if not self._is_as_known():
                return False
            self._append(fd, lines)
            return True
        finally:
            release(fd)

    def _append(self, fd: int, lines: Sequence[str]) -> None:
        logs.add_line(fd, os.fspath(self._path), *lines)
        if self._known is not None:
            self._known += b"".join(map(logs.line_bytes, lines))

    def _is_as_known(self) -> bool:
        """Whether the file that is open is the one at the log's place, and ends as we know it."""
        if self._open is None or self._known is None:
            return False
        fd, file = self._open
        found, end = ours.look(self._path), len(self._known)
        return (
            found is not None
            and found.st_size == end
            and _file_of(found) == file
            and os.pread(fd, TAIL, max(0, end - TAIL)) == self._known[-TAIL:]
        )

    def _read_on(self) -> None:
        """Take in what others added; where the log is not the one we know, put it back or begin anew."""
        if self._is_as_known():
            return
        known = self._known
        if known is None:
            known = self._known = bytearray()
        if self.keep and known and ours.is_locked_out(self._path):
            self._put_back()
            return
        fd = ours.open_own(self._path)
        try:
            if (not known) if fd is None else self._take_from(fd):
                return
            if self.keep:
                self._put_back()
                return
            self._known = bytearray()
            if fd is not None:
                self._take_from(fd)
        finally:
            if fd is not None:
                os.close(fd)

    def _take_from(self, fd: int) -> bool:
        """Take in the whole lines after what is known; False when that is not what the file begins with."""
        known = self._known if self._known is not None else bytearray()
        end, size = len(known), os.fstat(fd).st_size
        if size > logs.BYTES_MAX:
            if self.keep:  # it goes aside, and what we know comes back
                return False
            raise RondelError(
                f"{str(self._path)!r} has {size} bytes; at most {logs.BYTES_MAX} are read; move it away"
            )
        if size < end or os.pread(fd, TAIL, max(0, end - TAIL))[: min(end, TAIL)] != bytes(known[-TAIL:]):
            return False
        new = os.pread(fd, size - end, end) if size > end else b""
        new = new[: new.rfind(b"\n") + 1]
        self._others += _lines(new)
        known += new
        return True

    def _what_is_there(self, *, is_locked_out: bool) -> tuple[bytes | None, str]:
        """What can be read at the log's place, and why it is not the log that we know."""
        if is_locked_out:
            return None, "it may not be read or written"
        try:
            data = ours.read(self._path, logs.BYTES_MAX)
        except MachineTrouble:
            raise
        except RondelError:
            return None, f"it has more than {logs.BYTES_MAX} bytes"
        return data, "it is gone" if data is None else "lines of it are missing or changed"

    def _put_back(self) -> None:
        """The log as we know it, and what others wrote into whatever is there now; that is put aside."""
        known = self._known if self._known is not None else bytearray()
        folder, relative = ours.session_of(self._path)
        is_locked_out = ours.is_locked_out(self._path)
        data, why = self._what_is_there(is_locked_out=is_locked_out)
        place = ours.own(self._path)
        with locked(place.parent):
            spot = ours.put_aside(folder, place, relative) if paths.is_there(place) else ""
            more = _objects(data or b"", bytes(known))
            self._others += more
            known += b"".join(more)
            files.write(place, bytes(known))
        ours.note(folder, [ours.Restored(relative, why, spot)])


def _file_of(found: os.stat_result) -> tuple[int, ...]:
    """Which file it is, and who may use it."""
    return found.st_dev, found.st_ino, found.st_mode, found.st_uid, found.st_gid


def _objects(data: bytes, known: bytes) -> list[bytes]:
    """The lines that are JSON objects and not known."""
    there = set(_lines(known))
    return [line for line in _lines(data) if line not in there and _is_object(line)]


def _lines(data: bytes) -> list[bytes]:
    """The whole lines; a torn one at the end is none."""
    return [line + b"\n" for line in data.split(b"\n")[:-1]]


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(jsons.load(line), dict)
    except ValueError:
        return False
