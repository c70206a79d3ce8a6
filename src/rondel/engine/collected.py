"""Collected: the files that a command leaves for its outcome, kept in its spool."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rondel.errors import RondelError
from rondel.store import files, ours
from rondel.store.disk import explained

COLLECT_MAX = 20_000_000
COLLECTED = "collected"


def is_collected(spool: Path, names: Sequence[str]) -> bool:
    """Whether everything that an ended command left for its outcome is in its spool."""
    return not names or (spool / COLLECTED).is_dir()


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
            temporary.rename(kept)
    found = {name: _one(kept, str(number)) for number, name in enumerate(names)}
    return {name: data for name, data in found.items() if data is not None}


def _one(folder: Path, name: str) -> bytes | None:
    """A file that is really in the folder."""
    try:
        return files.read(files.safe_join(folder, name), COLLECT_MAX)
    except RondelError:
        return None
