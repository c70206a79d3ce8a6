"""Something that does not belong there, at a place of a session's own, and where it is found again."""

from __future__ import annotations

import ctypes
import os
import random
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rondel.testing.scripted import run_of
from support.kills import commit_number

KINDS = ("empty folder", "folder with a file", "file", "broken link", "link to an outside folder", "pipe")
TEXT = "This is mine.\n"
OURS = (
    ".rondel",
    ".rondel/.gitignore",
    ".rondel/aside",
    ".rondel/control",
    ".rondel/decisions",
    ".rondel/lock",
    ".rondel/manual",
    ".rondel/parts",
    ".rondel/request-1.json",
    ".rondel/restored.jsonl",
    ".rondel/session.json",
    ".rondel/written.jsonl",
    "RUN",  # in the runtime
    "RUN/heartbeat.json",
    "RUN/journal.jsonl",
    "RUN/lease",
    "RUN/report.json",
    "RUN/restored.jsonl",
    "RUN/spool",
)
# Where a file belongs that anybody may add to, or that may be lost: a text there is no obstacle.
LOOSE = {
    ".rondel/.gitignore",
    ".rondel/control",
    ".rondel/restored.jsonl",
    ".rondel/written.jsonl",
    "RUN/heartbeat.json",
    "RUN/journal.jsonl",
    "RUN/report.json",
    "RUN/restored.jsonl",
}
FOLDERS = {
    ".rondel",
    ".rondel/aside",
    ".rondel/decisions",
    ".rondel/manual",
    ".rondel/parts",
    "RUN",
    "RUN/spool",
}


def spot(session: Path, path: str) -> Path:
    """The place of a path of a session; one that begins with `RUN` is in its runtime."""
    return run_of(session) / path[4:] if path.startswith("RUN") else session / path


def put(place: Path, kind: str, outside: Path) -> None:
    """Instead of what is there."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    match kind:  # "gone" puts nothing there
        case "empty folder":
            place.mkdir()
        case "folder with a file":
            place.mkdir()
            (place / "mine.txt").write_text(TEXT)
        case "file":
            place.write_text(TEXT)
        case "broken link":
            place.symlink_to("nowhere")
        case "link to an outside folder":
            outside.mkdir(exist_ok=True)
            (outside / "mine.txt").write_text(TEXT)
            place.symlink_to(outside)
        case "pipe":
            os.mkfifo(place)


def is_in_the_way(path: str, kind: str, folders: Iterable[str] = ()) -> bool:
    """Whether it is not what belongs there: a folder is good for a folder's place, a text for a log's."""
    if path in FOLDERS or path in folders:
        return "folder" not in kind or "link" in kind
    return kind != "file" or path not in LOOSE


def is_found(session: Path, path: str, kind: str, outside: Path) -> bool:
    """Aside; or still where it was, where nobody needed the place; a text, in any file that is kept."""
    there = [spot(session, path)]
    for aside in (session / ".rondel/aside", run_of(session) / "aside"):
        there += aside.iterdir() if aside.is_dir() else ()
    if kind == "file":
        there = [p for top in (session, run_of(session) / "aside") for p in top.rglob("*") if p.is_file()]
    return any(_is(place, kind, outside) for place in there if os.path.lexists(place))


def _is(place: Path, kind: str, outside: Path) -> bool:
    mode = os.lstat(place).st_mode
    match kind:
        case "empty folder":
            return stat.S_ISDIR(mode) and not os.listdir(place)
        case "folder with a file":
            inside = place / "mine.txt"
            return stat.S_ISDIR(mode) and inside.is_file() and inside.read_text() == TEXT
        case "file":
            return stat.S_ISREG(mode) and TEXT in place.read_text()
        case "broken link":
            return place.is_symlink() and os.readlink(place) == "nowhere"
        case "link to an outside folder":
            return place.is_symlink() and os.readlink(place) == str(outside)
        case _:
            return stat.S_ISFIFO(mode)


def share(paths: Sequence[str], count: int) -> list[tuple[str, str]]:
    """Some places, each with something in its way: all of them with RONDEL_SWEEP, others with each commit."""
    every = [(path, kind) for path in paths for kind in KINDS]
    if os.environ.get("RONDEL_SWEEP"):
        return every
    return sorted(random.Random(commit_number()).sample(every, count))


def is_untouched(outside: Path) -> bool:
    return not outside.exists() or {p.name: p.read_text() for p in outside.iterdir()} == {"mine.txt": TEXT}


@contextmanager
def without_privileges() -> Iterator[None]:
    """The mode of a file counts for us, also where the tests run as the superuser."""
    if os.geteuid() != 0:
        yield
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # the version of the call; this thread, and those it starts
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted and inheritable, twice
    assert libc.capget(header, sets) == 0
    before = sets[0]
    sets[0] = before & ~0b110  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    assert libc.capset(header, sets) == 0
    try:
        yield
    finally:
        sets[0] = before
        assert libc.capset(header, sets) == 0
