"""Spools: what agents and commands said, kept for whoever wants to look, within a bound."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rondel import paths
from rondel.engine.executor import REPAIR
from rondel.engine.ledger import Ledger
from rondel.engine.perform import slot

SPOOLS_MAX = 256 * 1024 * 1024


class _Try(NamedTuple):
    ended: float
    bytes: int
    path: str
    slot: str  # of its action
    is_folder: bool = True


def tidy(folder: Path, ledger: Ledger) -> None:
    """Keep a session's spools within their bound; of an action that may still go on, all stay."""
    open_ = (p for p, r in ledger.records.items() if r.open_try is not None or r.vendor_session)
    prune(folder, frozenset(map(slot, open_)), SPOOLS_MAX)


def prune(folder: Path, needed: frozenset[str], bytes_max: int) -> int:
    """Remove the oldest tries until what is in `folder` is no more than `bytes_max`; how many went.

    The tries in the folders that `needed` names stay, whatever they take.
    """
    tries = [_measured(found) for slot in _folders(folder) for found in _folders(slot)]
    tries += _files(folder)
    total = sum(found.bytes for found in tries)
    gone = 0
    for found in sorted(tries):
        if total <= bytes_max:
            break
        if found.slot not in needed:
            (paths.remove_folder if found.is_folder else paths.remove)(found.path)
            total -= found.bytes
            gone += 1
    return gone


def _folders(folder: Path | str) -> Iterator[str]:
    try:
        with paths.listing(folder) as entries:
            yield from (f"{folder}/{e.name}" for e in entries if e.is_dir(follow_symlinks=False))
    except OSError:
        return


def _files(folder: Path) -> list[_Try]:
    """The tries that are one file each (see `executor.in_one`)."""
    names = [name for name in paths.names(folder) if name.endswith(".json")]
    places = [place for name in names if paths.is_file(place := f"{folder}/{name}")]
    return [_measured_file(place) for place in places]


def _measured_file(place: str) -> _Try:
    slot = Path(place).name.removesuffix(".json").removesuffix(f".{REPAIR}").rpartition(".")[0]
    try:
        found = paths.look(place)
    except OSError:
        return _Try(0.0, 0, place, slot, is_folder=False)
    return _Try(found.st_mtime, found.st_size, place, slot, is_folder=False)


def _measured(folder: str) -> _Try:
    slot = Path(folder).parent.name
    try:
        return _Try(paths.look(folder).st_mtime, _bytes(folder), folder, slot)
    except OSError:
        return _Try(0.0, 0, folder, slot)


def _bytes(folder: str) -> int:
    """What the files in a folder take; what goes away meanwhile takes nothing."""
    total = 0
    with paths.folder(folder) as top:
        for _, _, names, at in os.fwalk(".", dir_fd=top):
            for name in names:
                try:
                    total += os.stat(name, dir_fd=at, follow_symlinks=False).st_size
                except OSError:
                    continue
    return total
