"""The journal: how files came about, one line per event. Losing it loses history, never progress."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from rondel.store import disk, files, logs
from rondel.store.locks import release, wait_lock

_LINE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


def _now() -> datetime:
    return datetime.now(UTC)


class Journal:
    """A log of events, kept open. However long it is, adding one costs the same."""

    def __init__(self, path: Path, epoch: int = 0, clock: Callable[[], datetime] = _now) -> None:
        self._name = os.fspath(path)
        self._fd: int | None = None
        self._clock = clock
        self._turn = threading.Lock()  # the lock on the file is between processes only
        self._end: int | None = None  # of what was given or added here; None: nobody asked for `news`
        self._others: list[dict[str, object]] = []  # read, and not yet given
        self.epoch = epoch

    def add(self, kind: str, /, **fields: object) -> dict[str, object]:
        """One event, durable, given back as it was noted."""
        at = self._clock().isoformat(timespec="milliseconds")
        event: dict[str, object] = {"at": at, "epoch": self.epoch, "kind": kind, **fields}
        line = _LINE.encode(event)
        with self._turn, disk.explained("append to", self._name):
            fd = self._locked()
            try:
                if self._end is not None:
                    self._others += self._unread()
                logs.add_line(fd, self._name, line)
                if self._end is not None:
                    self._end = os.fstat(fd).st_size
            finally:
                release(fd)
        return event

    def _locked(self) -> int:
        """The open journal, locked; opened anew when its file was deleted under us."""
        if self._fd is not None:
            wait_lock(self._fd, self._name)
            if os.fstat(self._fd).st_nlink:
                logs.mend_log(self._fd, self._name)
                return self._fd
            self.close()
            self._end = None if self._end is None else 0
        files.make_folder(Path(self._name).parent)
        self._fd = logs.open_log(self._name)
        return self._fd

    def news(self) -> list[dict[str, object]]:
        """The events nobody gave here before: first all there are, later what others added.

        Costs a stat where there is nothing new. A line that is no event is skipped.
        """
        with self._turn, disk.explained("read", self._name):
            found, self._others = self._others + self._unread(), []
        return found

    def _unread(self) -> list[dict[str, object]]:
        """The events in the complete lines after `_end`."""
        begin = self._end or 0
        self._end = begin
        try:
            size = os.stat(self._name).st_size
            if size == begin:
                return []
            with open(self._name, "rb") as file:
                self._end = file.seek(begin if begin < size else 0)  # shorter: it is another file
                lines = [line for line in file if line.endswith(b"\n")]
        except FileNotFoundError:
            return []
        self._end += sum(map(len, lines))
        return [event for line in lines if (event := _event(line)) is not None]

    def close(self) -> None:
        """Let go of the file; the next event opens it again."""
        if self._fd is not None:
            release(self._fd)
            os.close(self._fd)
            self._fd = None


def _event(line: bytes) -> dict[str, object] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
