"""What goes into a command and comes out of it: a copy of the session's documents, the files it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rondel import paths
from rondel.errors import RondelError
from rondel.store import files, ours
from rondel.store.disk import explained

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
