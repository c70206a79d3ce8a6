"""Consents: what a person said yes to in a repository, kept in their own state folder.

A repository is known by a random id in its git folder, which no clone brings and a moved
folder keeps. Consents only accumulate, so that a state once known never asks again;
`revoke` takes all of them back.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import platformdirs

from rondel.errors import RondelError, UsageError
from rondel.model.changes import Document
from rondel.model.consent import Everything
from rondel.model.digests import digest
from rondel.model.times import stamp
from rondel.store import documents, files
from rondel.store.locks import locked
from rondel.trust.parts import Found, Part

VARIABLE = (
    "RONDEL_TRUST"  # the person's word for one process: `yes` to settings, `all` to commands of tasks too
)
SAID = ("yes", "all")
FILE_MAX = 50_000_000
_ID = re.compile(r"[0-9a-f]{32}")
COMMAND = "task command"


@dataclass(frozen=True)
class Consents:
    """What the person said yes to here: to parts of the settings, and to commands of tasks."""

    parts: Container[str] = frozenset()
    commands: Container[str] = frozenset()
    before: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # how each part was shown last


def read(root: Path, said: str | None) -> Consents:
    """What counts in a repository; `said` is what the person's environment says of this process."""
    if said and said not in (*SAID, "no"):
        raise UsageError(f"{VARIABLE}={said} is not known; allowed: {', '.join((*SAID, 'no'))}")
    entries = _entries(root)
    commands = frozenset(d for d, e in entries.items() if e["what"] == COMMAND)
    before = {str(e["what"]): _lines(e) for e in entries.values()}  # the newest is the last
    parts: Container[str] = frozenset(entries) - commands
    if said in SAID:
        return Consents(Everything(), Everything() if said == "all" else commands, before)
    return Consents(parts, commands, before)


def give(root: Path, parts: Iterable[Part], at: datetime) -> int:
    """Record that the person said yes to these; how many are new."""
    return _add(root, {p.digest: {"what": p.name, "shown": list(p.shown)} for p in parts}, at)


def allow(root: Path, commands: Mapping[str, str], at: datetime) -> int:
    """Record that the person allowed commands of tasks, each by its digest; how many are new."""
    return _add(root, {d: {"what": COMMAND, "shown": [text]} for d, text in commands.items()}, at)


def revoke(root: Path) -> int:
    """Take back everything that was said in this repository; how much it was."""
    count = len(_entries(root))
    if count:
        documents.edit(_place(root, make=False), lambda body: {**body, "consents": {}})
    return count


def state_folder(root: Path, *, make: bool = False) -> Path | None:
    """Where the person keeps what concerns this repository; None while it has no id."""
    found = repository_id(root, make=make)
    return Path(platformdirs.user_state_dir("rondel")) / "repos" / found if found else None


def repository_id(root: Path, *, make: bool = False) -> str | None:
    """The random id of a repository, the same in all its worktrees; None while it has none."""
    common = git_folder(root)
    if common is None:
        return None
    found = _read_id(common)
    if found is None and make:
        files.make_folder(common / "rondel")
        with locked(common / "rondel"):
            found = _read_id(common)
            if found is None:
                found = secrets.token_hex(16)
                files.write(common / "rondel/id", f"{found}\n".encode())
    return found


def git_folder(root: Path) -> Path | None:
    """The git folder that all worktrees of a repository share; None where there is none. Git is not asked."""
    own = root / ".git"
    try:
        if own.is_file():
            word, _, path = own.read_text(encoding="utf-8").partition(":")
            if word != "gitdir":
                return None
            own = root / path.strip()
        if not (own / "HEAD").is_file():
            return None
        shared = own / "commondir"
        return (own / shared.read_text(encoding="utf-8").strip()).resolve() if shared.is_file() else own
    except (OSError, ValueError):
        return None


def lookup(root: Path, path: str) -> Found | None:
    """What is at a path of the repository; a file that cannot be read has no digest.

    None for a path that leads out of it, however it is written.
    """
    place = Path(os.path.normpath(root / path))
    if not place.is_relative_to(os.path.normpath(root)) or place == root:
        return None
    try:
        mode = place.stat().st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(mode):
        return Found(is_folder=True, inner=lambda: _below(root, path))
    try:
        real = place.resolve()
        if not real.is_relative_to(root.resolve()):
            return Found(
                digest(f"a link to {real}")
            )  # not the repository's: a system's own changes by itself
        data = files.read(place, FILE_MAX)
    except (OSError, RondelError):
        return Found()
    return Found(digest(data)) if data is not None else None


def _below(root: Path, folder: str) -> Iterable[tuple[str, str]]:
    """The files below a folder that are more than text: path and digest."""
    for here, folders, names in os.walk(root / folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(names):
            path = Path(here, name).relative_to(root).as_posix()
            found = None if name.endswith(".md") else lookup(root, path)
            if found is not None and not found.is_folder:
                yield path, found.digest


def _read_id(common: Path) -> str | None:
    try:
        text = (files.read(common / "rondel/id", 100) or b"").decode(errors="replace").strip()
    except (OSError, RondelError):
        return None
    return text if _ID.fullmatch(text) else None


def _place(root: Path, *, make: bool) -> Path:
    folder = state_folder(root, make=make)
    if folder is None:
        raise RondelError(
            f"{root} has no git folder of its own; consent is kept per repository: `git init` first"
        )
    return folder / "consents"


def _entries(root: Path) -> dict[str, Document]:
    """What is on record; what cannot be read, or was writable for others, says yes to nothing."""
    folder = state_folder(root)
    if folder is None:
        return {}
    try:
        found = (folder / "consents").stat()
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
            return {}
        body = documents.load(folder / "consents").get("consents")
    except (OSError, RondelError):
        return {}
    entries = body if isinstance(body, dict) else {}
    return {d: e for d, e in entries.items() if isinstance(e, dict) and isinstance(e.get("what"), str)}


def _lines(entry: Document) -> tuple[str, ...]:
    shown = entry.get("shown")
    return tuple(map(str, shown)) if isinstance(shown, list) else ()


def _add(root: Path, new: Mapping[str, Document], at: datetime) -> int:
    place, added = _place(root, make=True), 0

    def change(body: Document) -> Document:
        nonlocal added
        known = body.get("consents")
        here = dict(known) if isinstance(known, dict) else {}
        added = len(set(new) - set(here))
        for key, entry in new.items():
            here.pop(key, None)  # said again it is the newest
            here[key] = {**entry, "at": stamp(at)}
        return {"schema_version": 1, "repository": str(root), **body, "consents": here}

    files.make_folder(place.parent)
    place.parent.chmod(0o700)  # before anything is in it
    documents.edit(place, change)
    place.chmod(0o600)
    return added
