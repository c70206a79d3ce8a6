"""The `checks` agent: real analysers as a reviewer. The runner; a workflow brings the analysers.

An analyser is a callable that takes the Request and a `Run`, with which it may run programs,
and returns the reply's text. A package brings one by an entry point in the group
`rondel.analysers`, named like the first word of the roles it serves: `review` answers for
`review.reviewer.security-1`.
"""

from __future__ import annotations

import asyncio
import itertools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from rondel.agents.base import AgentSettings, Beat, Reply, Request
from rondel.errors import ConfigError, RondelError
from rondel.model.outcomes import Ended
from rondel.model.plugins import plugins
from rondel.processes.runner import Child, Exit, Reason, clean_env, output, run

GROUP = "rondel.analysers"
OUTPUT_MAX = 20_000_000
OURS = str(Path(__file__).parents[2])  # the analysers that come with Rondel are of its own modules
MEMORY_MAX = 2 * 1024 * 1024 * 1024  # of addresses, for each program


class Run:
    """Runs programs for an analyser, which works in a thread; nothing they start outlives them."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._running: set[asyncio.Task[Exit]] = set()
        self._closed = False

    def __call__(
        self, argv: Sequence[str], *, stdin: str = "", timeout_s: float = 60, shown: Sequence[str] = ()
    ) -> tuple[int, str, str]:
        """A program's status, standard output and standard error; RondelError when it had to be ended."""
        spool = self._request.spool / f"program-{next(self._numbers)}"
        env = clean_env(env={"HOME": str(self._request.home)})
        env["MALLOC_ARENA_MAX"] = "2"  # else each thread reserves memory that counts and is not used
        confined = self._request.confined()
        child = Child(
            limited(argv, timeout_s),
            self._request.cwd,
            env,
            spool,
            stdin.encode(),
            timeout_s,
            timeout_s,
            OUTPUT_MAX,
            confined=replace(confined, private_home=True, shown=(*shown, OURS)) if confined else None,
        )
        try:
            ended = asyncio.run_coroutine_threadsafe(self._run(child), self._loop).result()
        except CancelledError:
            raise RondelError("stopped") from None
        if ended.reason is not Reason.EXITED or ended.code is None:
            how = f"signal {ended.signal}" if ended.signal else str(ended.reason)
            raise RondelError(f"{argv[0]} was ended, by {how}; it has {timeout_s:g} s and {MEMORY_MAX} bytes")
        return ended.code, output(spool, "out", OUTPUT_MAX), output(spool, "err", OUTPUT_MAX)

    async def _run(self, child: Child) -> Exit:
        if self._closed:
            raise asyncio.CancelledError
        task = asyncio.ensure_future(run(child))
        self._running.add(task)
        try:
            return await task
        finally:
            self._running.discard(task)

    async def close(self) -> None:
        """End what runs, and start nothing more."""
        self._closed = True
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def limited(argv: Sequence[str], cpu_s: float) -> tuple[str, ...]:
    """A program that ends when it has used this much processor time, or wants too much memory."""
    limits = f"ulimit -t {math.ceil(cpu_s)}; ulimit -v {MEMORY_MAX // 1024} 2>/dev/null"  # not on macOS
    return ("/bin/sh", "-c", f'{limits}; exec "$@"', "sh", *argv)


Analyse = Callable[[Request, Run], str]


class ChecksAgent:
    """An agent that analyses instead of asking a model."""

    kind = "checks"
    in_process = True
    model = ""

    def __init__(self, name: str, analyse: Analyse) -> None:
        self.name = name
        self._analyse = analyse

    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        """See `Agent`. The analyser works in a thread.

        One of its own: in the shared ones, many analysers would wait for their programs and
        leave no thread in which to start these.
        """
        beat(Beat(text="analysing"))
        programs = Run(request)
        own = ThreadPoolExecutor(1)
        try:
            async with asyncio.timeout(request.clocks.wall_s):
                loop = asyncio.get_running_loop()
                text = await loop.run_in_executor(own, self._analyse, request, programs)
        except TimeoutError:
            wall_s = f"{request.clocks.wall_s:g}"
            return Reply(Ended.TIMED_OUT, error=f"not done after {wall_s} s (timeout_s); ended")
        except RondelError as e:
            return Reply(Ended.FAILED, error=str(e))
        finally:
            await programs.close()
            own.shutdown(wait=False)
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


def _installed(request: Request, programs: Run) -> str:
    """What the analyser for this role finds."""
    first = request.role.partition(".")[0]
    found = plugins(GROUP)
    if first not in found:
        there = ", ".join(sorted(found)) or "none"
        raise ConfigError(f"the checks agent has no analysers for {request.role!r}; there are: {there}")
    analyse: Analyse = found[first].load()
    return analyse(request, programs)
