"""Reports: how a run ended, and what to do now."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from rondel.model.snapshot import Snapshot
from rondel.model.times import parse_time, stamp


class Stopped(StrEnum):
    """Why a run ended."""

    COMPLETED = "completed"
    IDLE = "idle"  # nothing is due, and the session is not at its end
    WAITING = "waiting"
    PAUSED = "paused"
    PARKED = "parked"
    LIMIT = "limit"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


EXIT_CODES = {
    Stopped.COMPLETED: 0,
    Stopped.IDLE: 0,
    Stopped.WAITING: 3,
    Stopped.PAUSED: 3,
    Stopped.PARKED: 6,
    Stopped.LIMIT: 6,
    Stopped.FAILED: 1,
    Stopped.INTERRUPTED: 130,
}


@dataclass(frozen=True)
class Report:
    """How a run ended, and what to do now."""

    stopped: Stopped
    message: str
    details: tuple[str, ...] = ()
    until: datetime | None = None

    @property
    def exit_code(self) -> int:
        """The exit code that says it."""
        return EXIT_CODES[self.stopped]


REPORT = "report.json"


def leave(run: Path, report: Report) -> None:
    """Leave how a run ended, for whoever looks at the session later. Runtime only: it may be lost."""
    until = stamp(report.until) if report.until else None
    body = {"stopped": report.stopped, "message": report.message, "until": until}
    with suppress(OSError):
        (run / REPORT).write_text(json.dumps(body), encoding="utf-8")


def last_report(files: Snapshot) -> Report | None:
    """How the last run of the session with these files ended, as far as anybody knows."""
    body = files.json(f".rondel/run/{REPORT}")
    if not isinstance(body, dict):
        return None
    try:
        return Report(Stopped(body["stopped"]), str(body["message"]), until=parse_time(body["until"]))
    except (ValueError, KeyError):
        return None
