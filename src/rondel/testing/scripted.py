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

import platformdirs

from rondel.agents.base import Beat, Reply, Request
from rondel.model import jsons
from rondel.model.outcomes import Ended, Usage
from rondel.store import disk
from rondel.trust.consents import checkout, repository_id

Answer = Callable[[Request], Reply | str]
USAGE = Usage(100, 10, 0, 0.01)


def plain(request: Request) -> str:
    """An answer that names what it answers."""
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
        """What it was asked for, in turn."""
        return [request.action for request in self.seen]

    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        """See `Agent`."""
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
        """See `Agent`."""
        answer = request.spool / "answer"
        return Reply(Ended.DONE, answer.read_text(), usage=USAGE) if answer.exists() else None

    def version(self) -> str | None:
        """See `Agent`."""
        return "1"


def asked(session: Path) -> Counter[str]:
    """How often each action of a session was asked for, answered or not."""
    return Counter(path.read_text() for path in _spools(session).rglob("asked"))


def paid(session: Path) -> Counter[str]:
    """How many answers there were to each action of a session."""
    return Counter(path.with_name("asked").read_text() for path in _spools(session).rglob("answer"))


def _spools(session: Path) -> Path:
    return run_of(session) / "spool"


def state_of(session: Path) -> Path:
    """The state folder that belongs to a session: of the home beside its repository, or of this process."""
    own = next((p / "home" for p in session.parents if (p / "home").is_dir()), None)
    if own is not None and (own / ".local/state/rondel").is_dir():
        return own / ".local/state"
    return Path(os.environ.get("XDG_STATE_HOME") or platformdirs.user_state_path())


def run_of(session: Path, state: Path | None = None) -> Path:
    """The runtime of the session in this folder; a path where nothing is while it has none."""
    root = next((p for p in session.parents if (p / ".git").exists()), session)
    home = (state or state_of(session)) / "rondel/repos"
    for record in home.glob(f"{repository_id(root) or '-'}/sessions/*/{checkout(root)}/session.json"):
        if root / jsons.load(record.read_bytes())["folder"] == session:
            return record.parent / ".rondel"
    return home / "no such session/.rondel"
