"""The executor: where an action runs. A boundary of its own.

A job is named by `session/action/try`; running it twice is running it once: what is
complete in its spool is found again, whoever started it. Here jobs are local processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Protocol

from typing_extensions import override

from rondel import paths
from rondel.agents.base import Agent, Beat, Reply, Request, reply_json, reply_of, starts_programs
from rondel.errors import MachineTrouble
from rondel.model import jsons
from rondel.model.outcomes import Ended
from rondel.model.times import parse_time
from rondel.model.trouble import machine, trouble
from rondel.store import ours
from rondel.store.disk import explained

REPLY = "reply.json"
REPAIR = "repair"  # the spool of a second answer, in that of the first
PROMPT = "prompt.md"


@dataclass(frozen=True)
class Answer:
    """A reply and when it came."""

    reply: Reply
    started_at: datetime
    finished_at: datetime


class Executor(Protocol):
    """Where jobs run."""

    async def submit(self, agent: Agent, request: Request, beat: Callable[[Beat], None]) -> Answer:
        """The answer to a job: found when it is there already, asked for otherwise."""
        ...

    def find(self, agent: Agent, request: Request) -> Answer | None:
        """The answer of a job that ended, even if the driver that started it is dead."""
        ...


class LocalExecutor(Executor):
    """Jobs as processes of this machine; their spools are folders."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock

    @override
    async def submit(self, agent: Agent, request: Request, beat: Callable[[Beat], None]) -> Answer:
        found = self.find(agent, request)
        if found is not None:
            return found
        started = self._clock()
        has_folder = starts_programs(agent)  # what has no output of its own has no folder for it either
        with explained("keep an answer in", request.spool):
            if has_folder:
                ours.own(request.spool, is_folder=True)
                prompt = request.prompt.encode(errors="replace")  # as the agent gets it
                ours.write_view(request.spool / PROMPT, prompt)
                paths.touch(request.spool / PROMPT, started.timestamp())
            else:
                ours.own(in_one(request.spool).parent, is_folder=True)
                if paths.is_there(request.spool.parent):  # in the way, or of an earlier try
                    ours.own(request.spool, is_folder=True)
            reply = await agent.run(request, beat)
        answer = Answer(reply, started, self._clock())
        if reply.ended not in (Ended.CANCELLED, Ended.WAITING):
            with explained("keep an answer in", request.spool):
                if has_folder:
                    _keep(request.spool, answer)
                else:
                    _keep_in_one(request, answer)
        return answer

    @override
    def find(self, agent: Agent, request: Request) -> Answer | None:
        kept = _noted(in_one(request.spool))
        if kept is not None or not paths.is_folder(request.spool):
            return kept
        kept = _noted(request.spool / REPLY)
        if kept is not None:
            return kept
        reply = agent.recover(request)
        if reply is None:
            return None
        answer = Answer(reply, _started(request.spool) or self._clock(), self._clock())
        with suppress(MachineTrouble):  # it is in the spool all the same
            _keep(request.spool, answer)
        return answer


def _keep(spool: Path, answer: Answer) -> None:
    """Note the answer beside its output, so that applying it again gives the same files."""
    ours.write_view(spool / REPLY, _dump(_record(answer)))


def _keep_in_one(request: Request, answer: Answer) -> None:
    """The same where there is no output: prompt and answer are one file; what is torn does not parse."""
    place, data = in_one(request.spool), _dump({"prompt": request.prompt, **_record(answer)})
    try:
        paths.create(place, data)
    except OSError as error:
        if trouble(error):
            raise
        paths.write(ours.own(place), data)  # somebody was here before, or moved the folder meanwhile


@lru_cache(maxsize=1024)
def in_one(spool: Path) -> Path:
    """The one file of a try that has no folder: beside the folders of the actions."""
    *_, name, number = spool.parts if spool.name != REPAIR else spool.parent.parts
    again = f".{REPAIR}" if spool.name == REPAIR else ""
    return spool.parents[2 if again else 1] / f"{name}.{number}{again}.json"


def _dump(record: Mapping[str, object]) -> bytes:
    return json.dumps(record).encode(errors="surrogateescape")


def _record(answer: Answer) -> dict[str, object]:
    times = {"started_at": answer.started_at.isoformat(), "finished_at": answer.finished_at.isoformat()}
    return reply_json(answer.reply) | times


def kept_answer(spool: Path) -> Answer | None:
    """The answer noted in a spool, or in the one file instead of it."""
    return _noted(in_one(spool)) or _noted(spool / REPLY)


def _noted(place: Path) -> Answer | None:
    try:
        with machine("read", place):  # one that cannot be opened now is not missing
            text = paths.read(place).decode(errors="surrogateescape")
        record = jsons.load(text)
        reply = reply_of(record)
        started, finished = parse_time(record["started_at"]), parse_time(record["finished_at"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Answer(reply, started, finished) if started and finished else None


def _started(spool: Path) -> datetime | None:
    """When a job was started: its prompt is as old."""
    try:
        return datetime.fromtimestamp(paths.look(spool / PROMPT).st_mtime, UTC)
    except OSError:
        return None
