"""Spools: what agents and commands said, kept for whoever wants to look, within a bound."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from rondel import paths
from rondel.engine.executor import REPAIR
from rondel.engine.ledger import Ledger
from rondel.errors import RondelError
from rondel.model.names import digest
from rondel.store import files, ours
from rondel.store.disk import explained

SPOOLS_MAX = 256 * 1024 * 1024


class _Try(NamedTuple):
    ended: float
    bytes: int
    path: str
    slot: str  # of its action
    is_folder: bool = True


@lru_cache(maxsize=1024)
def spool_of(run: Path, path: str, number: int) -> Path:
    """The folder of one try of an action, below a session's runtime."""
    return run / f"spool/{slot(path)}/{number}"


def slot(path: str) -> str:
    """An action's path as one folder name: readable, and never the same for two."""
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', path).strip('.-')[-80:]}-{digest(path)[:8]}"


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


# -- what goes into a command and comes out of it ------------------------------------------------


COLLECT_MAX = 20_000_000
COLLECTED = "collected"
SHOWN = "session"


def copy_documents(session: Path, copy: Path) -> None:
    """The documents of a session as they are now, without what is Rondel's own in it.

    Not second names of them: a mode that a command changes would be the document's own.
    """
    with explained("copy the session's documents to", copy):
        paths.remove_folder(copy)
        paths.make_folders(copy, 0o700)
        for name in paths.files_below(session, ours.HOME):
            data = _one(session, name)
            if data is not None:
                paths.make_folders((copy / name).parent, 0o700)
                paths.write(copy / name, data)


def is_collected(spool: Path, names: Sequence[str]) -> bool:
    """Whether everything that an ended command left for its outcome is in its spool."""
    return not names or paths.is_folder(spool / COLLECTED)


def collect(spool: Path, cwd: Path, names: Sequence[str]) -> dict[str, bytes]:
    """The files by name; taken from the workspace the first time."""
    kept = spool / COLLECTED
    if not is_collected(spool, names):
        temporary = spool / f"{COLLECTED}.tmp"
        with explained("keep files of a command in", spool):
            ours.own(temporary, is_folder=True)
            for number, name in enumerate(names):
                data = _one(cwd, name)
                if data is not None:
                    ours.write_view(temporary / str(number), data)
            paths.move(temporary, kept)
    found = {name: _one(kept, str(number)) for number, name in enumerate(names)}
    return {name: data for name, data in found.items() if data is not None}


def _one(folder: Path, name: str) -> bytes | None:
    """A file that is really in the folder."""
    try:
        return files.read(files.safe_join(folder.resolve(), name), COLLECT_MAX)
    except RondelError:
        return None
