"""The journal: how files came about, one line per event. Losing it loses history, never progress."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from rondel.store import disk, files
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
        self.epoch = epoch
        self.junk = 0  # lines that the last `events` could not read

    def add(self, kind: str, /, *, durable: bool = True, **fields: object) -> dict[str, object]:
        """One event, given back as it was noted.

        With `durable=False` it may be lost when the power goes, and costs no wait.
        """
        at = self._clock().isoformat(timespec="milliseconds")
        event: dict[str, object] = {"at": at, "epoch": self.epoch, "kind": kind, **fields}
        line = _LINE.encode(event)
        with self._turn, disk.explained("append to", self._name):
            fd = self._locked()
            try:
                files.add_line(fd, self._name, line, durable=durable)
            finally:
                release(fd)
        return event

    def _locked(self) -> int:
        """The open journal, locked; opened anew when its file was deleted under us."""
        if self._fd is not None:
            wait_lock(self._fd, self._name)
            if os.fstat(self._fd).st_nlink:
                files.mend_log(self._fd, self._name)
                return self._fd
            self.close()
        files.make_folder(Path(self._name).parent)
        self._fd = files.open_log(self._name)
        return self._fd

    def events(self) -> Iterator[dict[str, object]]:
        """The events so far, oldest first. A line that is not one is skipped and counted in `junk`."""
        self.junk = 0
        if not os.path.isfile(self._name):
            return
        with disk.explained("read", self._name), open(self._name, "rb") as file:
            for line in file:
                event = _event(line)
                if event is None:
                    self.junk += 1
                else:
                    yield event

    def close(self) -> None:
        """Let go of the file; the next event opens it again."""
        if self._fd is not None:
            release(self._fd)
            os.close(self._fd)
            self._fd = None


def _event(line: bytes) -> dict[str, object] | None:
    if not line.endswith(b"\n"):
        return None
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
