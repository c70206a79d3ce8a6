"""Leftovers: what a dead driver's child may have left running, found and ended.

A reaper ends its child when its driver dies, so usually there is only to wait for it. Where
the reaper itself was killed, its descendants are known by the mark in their environment,
a random word per child: a stranger never has it, whatever its process number.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rondel import paths
from rondel.errors import RondelError
from rondel.model import jsons
from rondel.processes import reaper

KILL_S = 10.0  # from the first SIGKILL; what is there after it cannot be ended by us
_STEP_S = 0.02


def end_leftovers(folder: Path, wait_s: float = 10) -> int:
    """After this returns, no child whose spool is `folder`, or lies below it, runs any more.

    Waits up to `wait_s` for their reapers, then kills; RondelError names what does not even
    end then. Returns how many processes had to be waited for or killed. A spool whose
    `exit.json` is there is settled and costs one look.
    """
    marks = [mark for spool in _spools(folder) if (mark := _mark(spool)) is not None]
    deadline = time.monotonic() + wait_s
    waited = sum(_wait(pid, start, deadline) for pid, start, _ in marks)
    return waited + _kill_marked({token for _, _, token in marks}, max(deadline, time.monotonic()) + KILL_S)


def _spools(folder: Path) -> Iterator[Path]:
    """The spools with a reaper and without an end."""
    try:
        with paths.folder(folder) as top:
            for here, below, names, _ in os.fwalk(".", dir_fd=top):
                if "reaper.json" in names:
                    below.clear()
                    if "exit.json" not in names:
                        yield folder / here
    except OSError:  # there is no such folder, or a link is on the way to it
        return


def _mark(spool: Path) -> tuple[int, str, str] | None:
    """Who the reaper was: number, start and token; None when that was before this boot."""
    try:
        known = jsons.load(paths.read(spool / "reaper.json", reaper.ROOM))
        if known["boot"] != reaper.boot():
            return None
        return int(known["pid"]), str(known["start"]), str(known["token"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _wait(pid: int, start: str, deadline: float) -> bool:
    """Wait until this process is gone, and kill it at the deadline; whether it was there at all."""
    if not start or reaper.start_time(pid) != start:
        return False
    while reaper.start_time(pid) == start:
        if time.monotonic() >= deadline:
            reaper.send(pid, start, signal.SIGKILL)
        if time.monotonic() >= deadline + KILL_S:
            raise _immortal([pid])
        time.sleep(_STEP_S)
    return True


def _immortal(pids: list[int]) -> RondelError:
    names = ", ".join(map(str, pids))
    return RondelError(
        f"what an earlier run started still runs and cannot be ended by us: process {names}; "
        "end it as the user it belongs to, then go on"
    )


def _kill_marked(tokens: set[str], deadline: float) -> int:
    """Kill whatever carries one of the tokens, until there is nothing."""
    killed: set[tuple[int, str]] = set()
    while tokens and (found := marked(tokens)):
        if time.monotonic() >= deadline:
            raise _immortal([pid for pid, _ in found])
        for pid, start in found:
            reaper.send(pid, start, signal.SIGKILL)
        killed.update(found)
        time.sleep(_STEP_S)
    return len(killed)


def marked(tokens: set[str]) -> list[tuple[int, str]]:
    """The living processes that carry one of the tokens, with their start times. Linux only."""
    if not reaper.LINUX:
        return []
    wanted = {f"{reaper.MARK}={token}".encode() for token in tokens}
    found = []
    for entry in Path("/proc").iterdir():
        start = reaper.start_time(int(entry.name)) if entry.name.isdigit() else ""
        if start and not wanted.isdisjoint(_environ(entry).split(b"\0")):
            found.append((int(entry.name), start))
    return found


def _environ(entry: Path) -> bytes:
    """The environment of a process; where its first thread has ended, another one shows it."""
    for place in (entry, *entry.glob("task/*")):
        with suppress(OSError):
            if environ := (place / "environ").read_bytes():
                return environ
    return b""
