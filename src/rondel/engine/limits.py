"""Limits: whether one more ask may start. An ask reserves what its agent has cost on average before.

An agent of which nothing is known yet is asked once before it is asked several times at
once. So many agents together do not pass a limit that each of them is below; a single ask that
costs more than those before it still can, by that much.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from rondel.config import Limits
from rondel.engine.ledger import Ledger
from rondel.engine.report import Stopped


class UnderWay(NamedTuple):
    """An ask under way: its agent, and the tokens it is known to have used so far."""

    agent: str
    tokens: int


def hold(
    limits: Limits, ledger: Ledger, agent: str, under_way: Sequence[UnderWay]
) -> tuple[Stopped, str] | None:
    """Why this agent may not be asked now, in words where a limit is reached; None when it may."""
    known = ledger.costs.get(agent)
    if limits.seconds_max is not None and ledger.seconds >= limits.seconds_max:
        return _reached(f"seconds_max = {limits.seconds_max}", f"{ledger.seconds:.0f} s used")
    if limits.tokens_max is not None:
        used = ledger.usage.tokens
        reserved = sum(max(ask.tokens, _tokens(ledger, ask.agent)) for ask in under_way)
        if used >= limits.tokens_max or used + reserved + _tokens(ledger, agent) > limits.tokens_max:
            words = f"{used} used, one more of {agent} takes about {_tokens(ledger, agent):.0f}"
            return _reached(f"tokens_max = {limits.tokens_max}", words)
    if limits.usd_max is not None:
        spent = ledger.usage.usd or 0.0
        reserved_usd = sum(_usd(ledger, ask.agent) for ask in under_way)
        if spent >= limits.usd_max or spent + reserved_usd + _usd(ledger, agent) > limits.usd_max:
            least = "at least " if ledger.usage.at_least else ""
            words = f"{least}{spent:.2f} spent, one more of {agent} takes about {_usd(ledger, agent):.2f}"
            return _reached(f"usd_max = {limits.usd_max}", words)
    counted = limits.tokens_max is not None or limits.usd_max is not None
    if counted and known is None and any(ask.agent == agent for ask in under_way):
        return Stopped.IDLE, ""
    return None


def uncounted(limits: Limits, ledger: Ledger) -> list[str]:
    """What a person should know of limits that do not hold: an agent names no price, or not what it used."""
    if limits.usd_max is None and limits.tokens_max is None:
        return []
    found = ledger.costs.items()
    silent = [name for name, cost in found if cost.usage.uncounted]
    unpriced = [name for name, cost in found if cost.usage.tokens and cost.usage.usd is None]
    return [
        f"{name} does not say what it uses: limits.usd_max and tokens_max do not count it" for name in silent
    ] + [
        f"{name} names no price: limits.usd_max does not count it, limits.tokens_max does"
        for name in unpriced
        if limits.usd_max is not None and name not in silent
    ]


def _reached(limit: str, words: str) -> tuple[Stopped, str]:
    return Stopped.LIMIT, f"limits.{limit} is reached ({words})"


def _tokens(ledger: Ledger, agent: str) -> float:
    cost = ledger.costs.get(agent)
    return cost.usage.tokens / cost.asks if cost else 0.0


def _usd(ledger: Ledger, agent: str) -> float:
    cost = ledger.costs.get(agent)
    return (cost.usage.usd or 0.0) / cost.asks if cost else 0.0


# -- room on the disks ---------------------------------------------------------------------------


MB = 1_000_000
FREE_MB = 100.0
FREE_SHARE = 0.05  # of a disk that is so small that it never has FREE_MB
FILES_MIN = 100
FULL_MB = 1.0  # with less, or with FULL_SHARE of a small disk, it is full whatever a person asks for
FULL_SHARE = 0.01


class Disk(NamedTuple):
    """What is left of a disk."""

    free: int  # bytes
    size: int
    files: int | None  # how many more it can hold; None: it does not count them


def shortage(places: Iterable[Path], free_mb_min: float | None) -> str | None:
    """What is short on the disk of one of these folders, and what to do; None when there is enough."""
    return _first(places, lambda disk: short(disk, free_mb_min))


def fullness(places: Iterable[Path], free_mb_min: float | None) -> str | None:
    """The same after a failure, which a full disk explains also where no room was asked for."""
    return _first(places, lambda disk: short(disk, free_mb_min) or full(disk))


def _first(places: Iterable[Path], wrong: Callable[[Disk], str | None]) -> str | None:
    for place in places:
        disk = _look(place)
        why = None if disk is None else wrong(disk)
        if why is not None:
            return f"{why} on the disk of {str(place)!r}; free some space and run it again"
    return None


def full(disk: Disk) -> str | None:
    """That a disk takes nothing more, or next to nothing."""
    if disk.free < min(FULL_MB * MB, FULL_SHARE * disk.size) or disk.files == 0:
        return f"only {disk.free / MB:.1f} MB are free"
    return None


def short(disk: Disk, free_mb_min: float | None) -> str | None:
    """What a disk has too little of. Without a bound of the person's, a small disk needs a share only."""
    least = free_mb_min * MB if free_mb_min is not None else min(FREE_MB * MB, FREE_SHARE * disk.size)
    if disk.free < least:
        return f"only {disk.free / MB:.1f} MB are free (limits.free_mb_min asks for {least / MB:.1f})"
    if disk.files is not None and disk.files < FILES_MIN and least > 0:
        return f"only {disk.files} more files fit"
    return None


def _look(place: Path) -> Disk | None:
    """A folder's disk; of one that is not there yet, the disk it will be on."""
    for folder in (place, *place.parents):
        try:
            found = os.statvfs(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return None
        files = found.f_favail if found.f_files else None
        return Disk(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize, files)
    return None
