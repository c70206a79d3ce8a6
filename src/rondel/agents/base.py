"""The contract of an agent: `run(request) -> Reply`.

An agent gets a prompt and a folder and gives a text back. It never raises for what the
other side did: a crash, a refusal, a limit are replies too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

from rondel.model.actions import Access
from rondel.model.outcomes import NO_USAGE, Ended, Usage
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
    tampered: str = (
        ""  # what it changed that is the person's, in words: nothing of it counts before they know
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
