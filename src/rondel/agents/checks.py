"""The `checks` agent: real analysers as a reviewer. The runner; a workflow brings the analysers.

An analyser is a callable that takes the Request and returns the reply's text. A package
brings one by an entry point in the group `rondel.analysers`, named like the first word of
the roles it serves: `review` answers for `review.reviewer.security-1`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from importlib.metadata import entry_points

from rondel.agents.base import Beat, Reply, Request
from rondel.agents.settings import AgentSettings
from rondel.errors import ConfigError, RondelError
from rondel.model.outcomes import Ended

Analyse = Callable[[Request], str | Awaitable[str]]
GROUP = "rondel.analysers"


class ChecksAgent:
    """An agent that analyses instead of asking a model."""

    kind = "checks"
    model = ""

    def __init__(self, name: str, analyse: Analyse) -> None:
        self.name = name
        self._analyse = analyse

    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        """See `Agent`. An analyser that is a plain function runs in a thread."""
        beat(Beat(text="analysing"))
        try:
            async with asyncio.timeout(request.clocks.wall_s):
                text = await _text(self._analyse, request)
        except TimeoutError:
            wall_s = f"{request.clocks.wall_s:g}"
            return Reply(Ended.TIMED_OUT, error=f"not done after {wall_s} s (timeout_s); ended")
        except RondelError as e:
            return Reply(Ended.FAILED, error=str(e))
        if not text.strip():
            return Reply(Ended.FAILED, error="the analysers said nothing")
        return Reply(Ended.DONE, text=text)

    def recover(self, request: Request) -> Reply | None:
        """See `Agent`. Analysing again costs no money."""
        return None

    def version(self) -> str | None:
        """Always there."""
        return "built in"


def build(settings: AgentSettings) -> ChecksAgent:
    """The `checks` agent with every analyser that is installed."""
    return ChecksAgent(settings.name, _installed)


async def _installed(request: Request) -> str:
    """What the analyser for this role finds."""
    first = request.role.partition(".")[0]
    found = {point.name: point for point in entry_points(group=GROUP)}
    if first not in found:
        there = ", ".join(sorted(found)) or "none"
        raise ConfigError(f"the checks agent has no analysers for {request.role!r}; there are: {there}")
    analyse: Analyse = found[first].load()
    return await _text(analyse, request)


async def _text(analyse: Analyse, request: Request) -> str:
    if inspect.iscoroutinefunction(analyse):
        found: str = await analyse(request)
        return found
    answer = await asyncio.to_thread(analyse, request)
    return await answer if inspect.isawaitable(answer) else answer
