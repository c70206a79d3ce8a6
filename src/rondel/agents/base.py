"""The contract of an agent: `run(request) -> Reply`.

An agent gets a prompt and a folder and returns a text. It never raises for what the
other side did: a crash, a refusal, a limit are replies too.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from rondel.model.actions import Access
from rondel.model.outcomes import NO_USAGE, Ended, Usage, usage_json, usage_of
from rondel.model.times import parse_time
from rondel.processes.runner import Child, Exit, Reason, printable, tail
from rondel.sandbox.box import Box, Confined, Kind
from rondel.sandbox.hosts import Target


@dataclass(frozen=True)
class Clocks:
    """The three clocks that end an agent, whatever it says itself."""

    wall_s: float = 1800
    idle_s: float = 600
    turns_max: int = 200


@dataclass(frozen=True)
class Request:
    """One question to an agent."""

    prompt: str
    role: str  # review.reviewer.principal-1
    session: str  # review:2026-11-15-main
    action: str  # rounds/round-1/reviews/principal-1.md
    attempt: int  # from 1
    cwd: Path  # the workspace
    spool: Path  # a folder of this attempt's own, where output goes as it comes; it may have to be made
    home: Path  # a folder kept for the whole session: vendors' own session files
    access: Access = Access.NONE
    clocks: Clocks = field(default_factory=Clocks)
    resume: str | None = None  # a vendor session to go on with
    counted: Mapping[str, object] = field(default_factory=dict)  # that session's last raw usage
    env: Mapping[str, str] = field(default_factory=dict)
    box: Box | None = None  # what whatever it starts may reach; None confines nothing
    scripts: tuple[str, ...] = ()  # of the person's tree, that its program runs and may read
    prompt_file: Path | None = None  # of one that is a person: where they find the prompt
    reply_file: Path | None = None  # and where they leave the answer

    def confined(
        self, own: tuple[str, ...] = (), shown: tuple[str, ...] = (), hosts: tuple[Target, ...] = ()
    ) -> Confined | None:
        """What a program for this request may reach.

        `own` is state of its own that it uses in place, `shown` what it is given to read: nothing
        else of the spool, which is in the person's state folder, is opened to it.
        """
        if self.box is None:
            return None
        edits = self.access is Access.WRITE
        kind = Kind.EDITOR if edits else Kind.READER
        return Confined(self.box, edits, own, shown, self.scripts, hosts=hosts, kind=kind)

    def child(self, argv: tuple[str, ...], env: dict[str, str], confined: Confined | None) -> Child:
        """The process that answers this request: the prompt is its standard input."""
        stdin, clocks = self.prompt.encode(errors="replace"), self.clocks
        return Child(
            argv,
            self.cwd,
            env,
            self.spool,
            stdin,
            wall_s=clocks.wall_s,
            idle_s=clocks.idle_s,
            confined=confined,
        )

    @property
    def variables(self) -> dict[str, str]:
        """What the environment of such a process says of the request, over whatever else is set."""
        return {
            **self.env,
            "RONDEL_ROLE": self.role,
            "RONDEL_SESSION": self.session,
            "RONDEL_ACTION": self.action,
            "RONDEL_ATTEMPT": str(self.attempt),
        }


@dataclass(frozen=True)
class Beat:
    """A sign of life: what the live view shows."""

    tokens: int = 0
    text: str = ""  # the last thing it said or did, one line
    vendor_session: str | None = None  # known as soon as the vendor names it
    retrying: bool = False  # waiting for the model's server; not progress


@dataclass(frozen=True)
class Reply:
    """What came back. `raw_usage` is the vendor's own object, kept so that deltas can be taken."""

    ended: Ended  # DONE, FAILED, TIMED_OUT, PARKED, WAITING, CANCELLED
    text: str = ""
    error: str = ""
    usage: Usage = NO_USAGE
    raw_usage: Mapping[str, object] = field(default_factory=dict)
    vendor_session: str | None = None
    model: str = ""
    exit_code: int | None = None
    until: datetime | None = None
    refused: str = ""  # which hosts the sandbox did not let it reach, in words
    tampered: str = ""  # what it changed that is the person's, in words: nothing counts before they know


def reply_json(reply: Reply) -> dict[str, object]:
    """A reply as its spool keeps it; `reply_of` reads it back."""
    return {
        "ended": reply.ended,
        "text": reply.text,
        "error": reply.error,
        "usage": usage_json(reply.usage),
        "raw_usage": dict(reply.raw_usage),
        "vendor_session": reply.vendor_session,
        "model": reply.model,
        "exit_code": reply.exit_code,
        "until": reply.until.isoformat() if reply.until else None,
        **({"tampered": reply.tampered} if reply.tampered else {}),
    }


def reply_of(record: Mapping[str, Any]) -> Reply:
    """A reply from its spool; ValueError, KeyError or TypeError where it is none."""
    return Reply(
        Ended(record["ended"]),
        text=str(record["text"]),
        error=str(record["error"]),
        usage=usage_of(record["usage"]) or NO_USAGE,
        raw_usage=record["raw_usage"],
        vendor_session=record["vendor_session"],
        model=str(record["model"]),
        exit_code=record["exit_code"],
        until=parse_time(record["until"]),
        tampered=str(record.get("tampered", "")),
    )


def starts_programs(agent: Agent) -> bool:
    """Whether an agent starts programs that may do what they like; one that does not says so itself."""
    return not getattr(agent, "in_process", False)


class Agent(Protocol):
    """One configured agent.

    One that starts no program but Rondel's own says `in_process = True`: it makes its spool where it needs
    one, and without access to a repository all such work in the same folder.
    """

    name: str  # as in rondel.toml
    kind: str
    model: str

    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        """Ask, and wait for the end. Being cancelled ends every process it started."""
        ...

    def recover(self, request: Request) -> Reply | None:
        """The reply of a request that was complete in its spool when its driver died."""
        ...

    def version(self) -> str | None:
        """What is installed, or None: for `rondel agents` and `rondel doctor`."""
        ...


@dataclass(frozen=True)
class AgentSettings:
    """One agent's settings. `options` holds what only its own kind understands."""

    name: str
    kind: str
    command: tuple[str, ...] = ()
    timeout_s: float = Clocks.wall_s
    idle_s: float = Clocks.idle_s
    turns_max: int = Clocks.turns_max
    model: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    script: str = ""
    options: Mapping[str, object] = field(default_factory=dict)
    root: Path | None = None  # the repository's folder; a relative `script` counts from it
    beside: Path | None = None  # the folder of the file that says `command`: a file there is meant first

    @property
    def clocks(self) -> Clocks:
        """The clocks of every request to this agent."""
        return Clocks(self.timeout_s, self.idle_s, self.turns_max)


# -- what it means for a reply how its process ended ---------------------------------------------


def cut_short(ended: Exit, clocks: Clocks, spool: Path) -> Reply | None:
    """The reply of a process that did not end by itself, or not by exiting; None for one that did."""
    if ended.reason is Reason.EXITED:
        if ended.signal is None:
            return None
        return Reply(Ended.FAILED, error=f"it died by {signal_name(ended.signal)}{_words(spool)}")
    how, error = {
        Reason.WALL: (Ended.TIMED_OUT, f"not done after {clocks.wall_s:g} s (timeout_s); ended"),
        Reason.IDLE: (Ended.TIMED_OUT, f"no output for {clocks.idle_s:g} s (idle_s); ended"),
        Reason.TURNS: (Ended.TIMED_OUT, f"not done after {clocks.turns_max} turns (turns_max); ended"),
        Reason.OUTPUT: (Ended.FAILED, ended.error or "it printed more than may be kept; ended"),
        Reason.CANCELLED: (Ended.CANCELLED, "ended by us"),
        Reason.LOST: (Ended.FAILED, ended.error or "it was ended because its driver died"),
    }[ended.reason]
    return Reply(how, error=error)


def with_refused(error: str, ended: Exit) -> str:
    """An error, with the hosts that could not be reached: they may be why."""
    if not error or not ended.refused or ended.refused in error:
        return error
    return f"{error}; {ended.refused}"


def signal_name(number: int) -> str:
    """SIGSEGV for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def failed_status(code: int, spool: Path) -> str:
    """The error for a status other than 0, with the process's own last words."""
    return f"it exited with status {code}{_words(spool)}"


def _words(spool: Path) -> str:
    words = printable(tail(spool, "err")) or printable(tail(spool, "out"))
    return f": {words}" if words else ""
