"""The journal: how files came about, one line per event. Losing it loses history, never progress."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from rondel.model import jsons
from rondel.store.known import KnownLog

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
