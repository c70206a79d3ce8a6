"""Spools: what agents and commands said, kept for whoever wants to look, within a bound."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rondel.engine.ledger import Ledger
from rondel.engine.perform import slot

SPOOLS_MAX = 256 * 1024 * 1024


class _Try(NamedTuple):
    ended: float
    bytes: int
    path: str


def tidy(folder: Path, ledger: Ledger) -> None:
    """Keep a session's spools within their bound; of an action that may still go on, all stay."""
    open_ = (p for p, r in ledger.records.items() if r.open_try is not None or r.vendor_session)
    prune(folder, frozenset(map(slot, open_)), SPOOLS_MAX)


def prune(folder: Path, needed: frozenset[str], bytes_max: int) -> int:
    """Remove the oldest tries until what is in `folder` is no more than `bytes_max`; how many went.

    The tries in the folders that `needed` names stay, whatever they take.
    """
    tries = [found for slot in _folders(folder) for found in map(_measured, _folders(slot.path))]
    total = sum(found.bytes for found in tries)
    gone = 0
    for found in sorted(tries):
        if total <= bytes_max:
            break
        if Path(found.path).parent.name not in needed:
            shutil.rmtree(found.path, ignore_errors=True)
            total -= found.bytes
            gone += 1
    return gone


def _folders(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return


def _measured(entry: os.DirEntry[str]) -> _Try:
    return _Try(entry.stat(follow_symlinks=False).st_mtime, _bytes(entry.path), entry.path)


def _bytes(folder: str) -> int:
    """What the files in a folder take; what goes away meanwhile takes nothing."""
    total = 0
    for here, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(f"{here}/{name}").st_size
            except OSError:
                continue
    return total
