"""An agent whose answers a test gives, and the count of what was asked of it and paid for.

Both counts are files in the spools: no death of ours can lose one. An answer is there, and
paid for, the moment it has its name; a spool that already has one takes no second.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rondel.agents.base import Beat, Reply, Request
from rondel.model.outcomes import Ended, Usage
from rondel.store import disk
from support.runtime import run_of

Answer = Callable[[Request], Reply | str]
USAGE = Usage(100, 10, 0, 0.01)


def plain(request: Request) -> str:
    return f"An answer to {request.action}.\n"


@dataclass
class Scripted:
    """Answers by a function, and remembers what it was asked."""

    answer: Answer = plain
    seconds: float = 0.0
    name: str = "fake"
    kind: str = "fake"
    model: str = ""
    seen: list[Request] = field(default_factory=list)
    in_process: bool = True

    @property
    def actions(self) -> list[str]:
        return [request.action for request in self.seen]

    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        disk.point("agent", request.action)
        self.seen.append(request)
        request.spool.mkdir(parents=True, exist_ok=True)
        (request.spool / "asked").write_text(request.action)
        if self.seconds:
            await asyncio.sleep(self.seconds)
        answer = self.answer(request)
        reply = answer if isinstance(answer, Reply) else Reply(Ended.DONE, answer, usage=USAGE)
        if reply.ended is Ended.DONE:
            (request.spool / "answer.tmp").write_text(reply.text)
            os.link(request.spool / "answer.tmp", request.spool / "answer")
        disk.point("answered", request.action)
        return reply

    def recover(self, request: Request) -> Reply | None:
        answer = request.spool / "answer"
        return Reply(Ended.DONE, answer.read_text(), usage=USAGE) if answer.exists() else None

    def version(self) -> str | None:
        return "1"


def asked(session: Path) -> Counter[str]:
    """How often each action of a session was asked for, answered or not."""
    return Counter(path.read_text() for path in _spools(session).rglob("asked"))


def paid(session: Path) -> Counter[str]:
    """How many answers there were to each action of a session."""
    return Counter(path.with_name("asked").read_text() for path in _spools(session).rglob("answer"))


def _spools(session: Path) -> Path:
    return run_of(session) / "spool"
