"""Room: whether the disks have enough of it left to ask anybody, and to blame anybody for a failure."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

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
