"""The journal: how files came about, one line per event. Losing it loses history, never progress."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from rondel.model import jsons
from rondel.store.known import KnownLog

_LINE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


def _now() -> datetime:
    return datetime.now(UTC)


class Journal:
    """A log of events. However long it is, adding one costs the same."""

    def __init__(self, path: Path, epoch: int = 0, clock: Callable[[], datetime] = _now) -> None:
        self._log = KnownLog(path)
        self._clock = clock
        self.epoch = epoch

    def keep(self) -> None:
        """What somebody takes from the journal from now on is put back. For a driver."""
        self._log.keep = True

    def add(self, kind: str, /, **fields: object) -> dict[str, object]:
        """One event, durable, given back as it was noted."""
        at = self._clock().isoformat(timespec="milliseconds")
        event: dict[str, object] = {"at": at, "epoch": self.epoch, "kind": kind, **fields}
        self._log.add(_LINE.encode(event))
        return event

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
