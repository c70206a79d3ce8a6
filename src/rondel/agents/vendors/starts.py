"""Starts: how a vendor's CLI was started, kept for the driver that comes after a dead one.

Each spool says what its run goes on from; each vendor session says where it works and which
spool was its last. So a reply found in a spool is billed as it would have been, and what a
run had used when it was cut off is billed with the one that goes on.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rondel import paths
from rondel.agents.vendors.stream import Raw, count, decode, money, table, word
from rondel.model.outcomes import NO_USAGE, Usage

_NOTE = "vendor.json"
NOTE_MAX = 1_000_000  # bytes
_BILLED = "billed"


@dataclass(frozen=True)
class Start:
    """How one process of a CLI is started."""

    cwd: Path
    session: str | None = None  # the vendor session we name, or go on with
    resumes: bool = False
    counted: Raw = field(default_factory=dict)  # what that session had cost before, as its vendor counts
    carried: Usage = NO_USAGE  # what runs that were cut off had used, and nobody was told


@dataclass(frozen=True)
class Place:
    """Where a vendor session works, and where its last run was heard."""

    cwd: Path
    spool: Path


def keep_start(spool: Path, start: Start) -> None:
    """Note in a spool how its run was started, before it is."""
    paths.make_folders(spool, 0o700)
    paths.remove(spool / _BILLED)
    _write(
        spool / _NOTE,
        {
            "cwd": str(start.cwd),
            "session": start.session,
            "resumes": start.resumes,
            "counted": dict(start.counted),
            "carried": asdict(start.carried),
        },
    )


def start_of(spool: Path) -> Start | None:
    """How the run of this spool was started; None where nobody noted it."""
    note = _read(spool / _NOTE)
    cwd = word(note.get("cwd"))
    if not cwd:
        return None
    carried = table(note.get("carried"))
    return Start(
        Path(cwd),
        word(note.get("session")) or None,
        note.get("resumes") is True,
        table(note.get("counted")),
        Usage(
            count(carried.get("input_tokens")),
            count(carried.get("output_tokens")),
            count(carried.get("cached_tokens")),
            money(carried.get("usd")),
        ),
    )


def mark_billed(spool: Path) -> None:
    """Note that the reply of this spool was handed on, its usage with it."""
    paths.write(spool / _BILLED, b"")


def is_billed(spool: Path) -> bool:
    """Whether the usage of this spool's run was handed on."""
    return paths.is_file(spool / _BILLED)


def keep_place(home: Path, kind: str, session: str, place: Place) -> None:
    """Note where a session works."""
    paths.make_folders(home, 0o700)
    _write(_place_file(home, kind, session), {"cwd": str(place.cwd), "spool": str(place.spool)})


def place_of(home: Path, kind: str, session: str) -> Place | None:
    """Where a session works; None for one we do not know."""
    note = _read(_place_file(home, kind, session))
    cwd, spool = word(note.get("cwd")), word(note.get("spool"))
    return Place(Path(cwd), Path(spool)) if cwd and spool else None


def checkout(cwd: Path) -> list[Path]:
    """The folder and those above it that belong to the same repository."""
    folders = [cwd, *cwd.parents]
    for number, place in enumerate(folders, 1):
        if (place / ".git").exists():
            return folders[:number]
    return [cwd]


def _place_file(home: Path, kind: str, session: str) -> Path:
    return home / f"{kind}-{re.sub(r'[^A-Za-z0-9_-]', '-', session)[:80]}.json"


def _write(path: Path, note: Raw) -> None:
    paths.write(path, json.dumps(note).encode(errors="surrogateescape"))


def _read(path: Path) -> Raw:
    try:
        return decode(paths.read(path, NOTE_MAX)) or {}
    except OSError:
        return {}
