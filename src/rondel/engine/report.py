"""Reports: how a run ended, and what to do now."""

from __future__ import annotations

import json
import posixpath
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from rondel.errors import MachineTrouble, RondelError
from rondel.model.jsons import parse_json
from rondel.model.summary import Problem, Status, Summary
from rondel.model.times import parse_time, stamp
from rondel.store import ours


class Stopped(StrEnum):
    """Why a run ended."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"  # a person gave the session up
    IDLE = "idle"  # nothing is due, and the session is not at its end
    WAITING = "waiting"
    PAUSED = "paused"
    PARKED = "parked"
    LIMIT = "limit"
    MACHINE = "machine"  # a full disk, too many open files: nobody's failure; it goes on when the machine can
    FAILED = "failed"
    INTERRUPTED = "interrupted"


EXIT_CODES = {
    Stopped.COMPLETED: 0,
    Stopped.CANCELLED: 5,
    Stopped.IDLE: 0,
    Stopped.WAITING: 3,
    Stopped.PAUSED: 3,
    Stopped.PARKED: 6,
    Stopped.LIMIT: 6,
    Stopped.MACHINE: 6,
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


def of_summary(summary: Summary, folder: str, failures: tuple[str, ...] = ()) -> Report:
    """The end that a session's own status says, where nothing of the run says another.

    `folder` is the session's; `failures` name what came to nothing in this run.
    """
    match summary.status:
        case Status.FAILED:
            why = summary.waiting_for or f"{summary.title}: failed in {summary.phase}"
            return Report(Stopped.FAILED, why, (why, *failures))
        case Status.DAMAGED:
            wrong = tuple(_damage(p, folder) for p in summary.problems)
            return Report(Stopped.FAILED, "; ".join(wrong) or f"{summary.title} is damaged", wrong)
        case Status.WAITING:
            return Report(Stopped.WAITING, summary.waiting_for or summary.next)
        case Status.COMPLETED:
            return Report(Stopped.COMPLETED, summary.title)
        case Status.PAUSED:
            return Report(Stopped.PAUSED, "paused")
        case _:
            return Report(Stopped.IDLE, summary.next)


def _damage(problem: Problem, folder: str) -> str:
    where = posixpath.normpath(f"{folder}/{problem.file}")
    return f"{where}: {problem.message}" + (f"; {problem.repair}" if problem.repair else "")


REPORT = "report.json"


def leave(run: Path, report: Report) -> None:
    """Leave how a run ended, for whoever looks at the session later. Runtime only: it may be lost."""
    until = stamp(report.until) if report.until else None
    body = {
        "stopped": report.stopped,
        "message": report.message,
        "details": list(report.details),
        "until": until,
    }
    with suppress(RondelError, MachineTrouble):
        ours.write_view(run / REPORT, json.dumps(body).encode())


def last_report(run: Path) -> Report | None:
    """How the last run of the session with this runtime ended, as far as anybody knows."""
    body = parse_json(ours.view(run / REPORT))
    if not isinstance(body, dict):
        return None
    details = body.get("details")
    try:
        return Report(
            Stopped(body["stopped"]),
            str(body["message"]),
            tuple(map(str, details)) if isinstance(details, list) else (),
            parse_time(body["until"]),
        )
    except (ValueError, KeyError):
        return None
