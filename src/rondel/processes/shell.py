"""Shell commands of the settings (set-up, checks), run from a thread and under a reaper."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from rondel import paths
from rondel.errors import RondelError
from rondel.processes.runner import Child, Exit, Reason, clean_env, printable, run, tail
from rondel.sandbox.box import Box, Confined, hint

WALL_S = 1800.0
_TAIL = 20_000


@dataclass(frozen=True)
class Ran:
    """How a shell command ended, and the end of what it said."""

    ok: bool
    output: str
    status: int | None = 0


class Shell:
    """Runs `bash -c`. Called in a thread that has no event loop of its own."""

    def __init__(self, spools: Path, box: Box | None = None) -> None:
        self._spools = spools
        self._confined = Confined(box, writes=True) if box else None
        self._closed = False
        self._running: set[tuple[asyncio.AbstractEventLoop, asyncio.Task[Exit]]] = set()

    def __call__(self, command: str, cwd: Path) -> Ran:
        """Run a command to its end; its descendants do not outlive it."""
        spool = self.spool(cwd)
        child = Child(
            ("bash", "-c", command),
            cwd,
            clean_env(),
            spool,
            wall_s=WALL_S,
            idle_s=WALL_S,
            confined=self._confined,
        )
        try:
            ended = asyncio.run(self._run(child))
            words = [printable(tail(spool, "out", _TAIL)), printable(tail(spool, "err", _TAIL))]
        except asyncio.CancelledError:
            raise RondelError(f"stopped while {command!r} ran") from None
        finally:
            paths.remove_folder(spool)
        if self._confined and not ended.ok:
            words.append(hint("\n".join(words), self._confined.box.network))
        if ended.reason is not Reason.EXITED:
            words.append(f"ended: {ended.reason} ({WALL_S:g} s at most)")
        return Ran(ended.ok, "\n".join(word for word in words if word), ended.code)

    def spool(self, cwd: Path) -> Path:
        """Where the output of a command in this folder is, while it runs."""
        return self._spools / cwd.name

    async def _run(self, child: Child) -> Exit:
        task = asyncio.ensure_future(run(child))
        entry = (asyncio.get_running_loop(), task)
        self._running.add(entry)
        if self._closed:
            task.cancel()
        try:
            return await task
        finally:
            self._running.discard(entry)

    def close(self) -> None:
        """End what runs in other threads, and whatever else would start."""
        self._closed = True
        for loop, task in tuple(self._running):
            loop.call_soon_threadsafe(task.cancel)
