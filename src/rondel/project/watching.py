"""Following a session: what its driver notes in the journal and in its heartbeat, as typed events.

An event has the place in the journal that it ends at. Who was cut off goes on from there, and
nothing is read twice: of a journal of any length only what is new, a bounded piece at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from rondel.engine.notes import HEARTBEAT
from rondel.engine.report import Report
from rondel.model.actions import Decide
from rondel.model.jsons import parse_json
from rondel.model.outcomes import NO_USAGE, Ended, Usage, usage_of
from rondel.model.summary import Summary
from rondel.model.times import parse_time
from rondel.store import journal, ours

POLL_S = 0.2
PIECE_MAX = 1_000_000  # bytes of the journal that are read at once; a longer line is no event


@dataclass(frozen=True)
class Event:
    """Something that happened in a session."""

    at: datetime | None = None
    position: int = 0  # `watch(session, after=position)` goes on behind it


@dataclass(frozen=True)
class ActionStarted(Event):
    """An action is under way; an agent is asked where `agent` is not empty."""

    action: str = ""
    title: str = ""
    role: str = ""
    agent: str = ""
    model: str = ""
    attempt: int = 0


@dataclass(frozen=True)
class ActionFinished(Event):
    """An action came to its end, and the files that it left are there."""

    action: str = ""
    ended: str = Ended.DONE
    error: str = ""
    seconds: float = 0.0
    agent: str = ""
    usage: Usage = NO_USAGE
    files: tuple[str, ...] = ()


@dataclass(frozen=True)
class Noted(Event):
    """Anything else in the journal: `decision`, `changed`, `problem`, `cutoff`, `put-right` and more."""

    kind: str = ""
    fields: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class UnderWay:
    """An action under way, as its driver last said."""

    action: str
    agent: str
    elapsed_s: float
    last_output_s: float  # since its agent last said something
    last: str
    tokens: int


@dataclass(frozen=True)
class Heartbeat(Event):
    """A driver's sign of life: who works, and what it all cost so far."""

    actions: tuple[UnderWay, ...] = ()
    usage: Usage = NO_USAGE


@dataclass(frozen=True)
class Waiting(Event):
    """Nobody drives the session, and it waits for a person's answer."""

    question: str = ""
    options: Sequence[str] = ()
    path: str = ""  # for `decide(…, path=…)`, where several wait


@dataclass(frozen=True)
class RunEnded(Event):
    """Nobody drives the session; the last event. `report` is how the last run ended, if it is known."""

    summary: Summary | None = None
    report: Report | None = None


@dataclass(frozen=True)
class Watched:
    """A session to follow: where its runtime is, and how to ask about it."""

    run: Callable[[], Path | None]  # None for as long as the session is not on record here
    is_driven: Callable[[], bool]
    waiting: Callable[[], Sequence[Decide]]
    end: Callable[[], tuple[Summary, Report | None]]


def follow(watched: Watched, after: int | None, idle_s: float, seconds: float | None) -> Iterator[Event]:
    """The events behind `after`, and those that come; None for those that come only."""
    tail, beat, run = _Tail(after or 0), Heartbeat(), watched.run()
    if after is None and run:
        tail.skip(run)
    begun = time.monotonic()
    while True:
        is_driven = watched.is_driven()  # asked first: a driver that is gone has noted all that it will
        is_new = False
        run = run or watched.run()
        for event in tail.news(run) if run else ():
            is_new = True
            yield event
        if is_driven and run and (found := heartbeat(run, tail.position)) != beat:
            beat = found
            yield beat
        lasted = time.monotonic() - begun
        if not (is_driven or is_new or lasted < idle_s):
            break
        if seconds is not None and lasted >= seconds:
            return
        time.sleep(POLL_S)
    summary, report = watched.end()
    for question in watched.waiting():
        yield Waiting(None, tail.position, question.question, question.options, question.path)
    yield RunEnded(summary.updated_at, tail.position, summary, report)


def heartbeat(run: Path, position: int = 0) -> Heartbeat:
    """What a driver last said; nothing where none was there."""
    found = parse_json(ours.view(run / HEARTBEAT))
    body = found if isinstance(found, dict) else {}
    rows = body.get("actions")
    listed = rows if isinstance(rows, list) else []
    actions = tuple(_under_way(row) for row in listed if isinstance(row, dict))
    return Heartbeat(parse_time(body.get("at")), position, actions, usage_of(body.get("usage")) or NO_USAGE)


def _under_way(row: Mapping[str, object]) -> UnderWay:
    action, agent, said = (str(row.get(key) or "") for key in ("action", "agent", "last"))
    elapsed, quiet = _number(row.get("elapsed_s")), _number(row.get("last_output_s"))
    return UnderWay(action, agent, elapsed, quiet, said, int(_number(row.get("tokens"))))


class _Tail:
    """The journal from a place on."""

    def __init__(self, position: int) -> None:
        self.position = position

    def skip(self, run: Path) -> None:
        """Leave out what is there."""
        found = ours.look(run / journal.NAME)
        self.position = found.st_size if found else 0

    def news(self, run: Path) -> Iterator[Event]:
        """The events nobody gave here before."""
        while piece := self._piece(run / journal.NAME):
            end = piece.rfind(b"\n") + 1
            if not end and len(piece) < PIECE_MAX:
                return  # a line that is not whole yet
            for line in piece[: end or PIECE_MAX].splitlines(keepends=True):
                self.position += len(line)
                if (event := _event(line, self.position)) is not None:
                    yield event

    def _piece(self, path: Path) -> bytes:
        fd = ours.open_own(path)
        if fd is None:
            return b""
        try:
            if os.fstat(fd).st_size < self.position:  # another journal: the session was begun anew
                self.position = 0
            return os.pread(fd, PIECE_MAX, self.position)
        finally:
            os.close(fd)


def _event(line: bytes, position: int) -> Event | None:
    """An event from its line; None where it is none."""
    body = parse_json(line)
    if not isinstance(body, dict):
        return None
    at, kind = parse_time(body.get("at")), str(body.get("kind", ""))
    texts = {key: str(body.get(key) or "") for key in ("action", "title", "role", "agent", "model", "error")}
    if kind == "started":
        del texts["error"]
        return ActionStarted(at, position, **texts, attempt=int(_number(body.get("try"))))
    if kind == "finished":
        made = body.get("files")
        return ActionFinished(
            at,
            position,
            action=texts["action"],
            ended=str(body.get("ended", "")),
            error=texts["error"],
            seconds=_number(body.get("seconds")),
            agent=texts["agent"],
            usage=usage_of(body.get("usage")) or NO_USAGE,
            files=tuple(made) if isinstance(made, dict) else (),
        )
    rest = {key: value for key, value in body.items() if key not in ("at", "kind", "epoch")}
    return Noted(at, position, kind, rest)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
