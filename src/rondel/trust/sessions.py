"""Sessions that this person began or adopted here: what is on record of each in their own state folder.

A repository can bring a session folder, with any id in it. So a session is known by what no
repository can write: a record in the person's state folder that names its workflow, its folder
and its id. Every other session is foreign.

Beside its record is the session's runtime: lease, journal, spools. No clone or pull brings it, and
the sandbox opens nothing of it to a program but the scratch folder that it is given to work in. Both
are kept by the session's place in the repository and by the worktree, so that no two sessions share
one; a runtime is of the session with the id on record, and goes when the place becomes another's.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import platformdirs

from rondel import paths
from rondel.errors import RondelError
from rondel.model.changes import Document
from rondel.model.identity import IDENTITY, Identity, identity_of
from rondel.model.jsons import parse_json
from rondel.model.names import digest
from rondel.model.snapshot import Snapshot
from rondel.model.times import stamp
from rondel.model.workflow import SessionRef
from rondel.store import disk, documents, files, ours
from rondel.store.lease import NAME as LEASE
from rondel.store.lease import Lease, holder, refuse_driven
from rondel.trust.consents import checkout, checkouts, make_private, state_folder

BEGUN, ADOPTED = "begun", "adopted"
ADOPTING = "adopting"  # under way: its decisions are not all sealed yet, and it is foreign until they are
RECORD = "session.json"
SPOOL = "spool"
LEFT_DAYS = 30  # a branch that was switched away from brings its sessions back
DAY_S = 86_400
SIZE_MAX = 10_000_000  # of a file of the state folder: some fifty thousand answers in one session
LOOK_S = 0.2


class Record(NamedTuple):
    """What is on record of a session. One that is `open` has not written its own id yet."""

    identity: Identity
    how: str
    open: bool


class Left(NamedTuple):
    """The runtime of a session whose folder is gone."""

    run: Path
    session: str
    days: int

    def remove(self) -> None:
        """Remove it, unless somebody has begun to use it: then it is Held."""
        with Lease.take(self.run, self.session):
            clear_runtime(self.run)


class Sessions:
    """The sessions of one repository that are known here."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._found: Path | None = None  # once there is an id, it stays
        self._looked_at = float("-inf")  # while there is none, another process may give it one

    def of(self, ref: SessionRef) -> KnownSession:
        """What is on record of one session, and how more is recorded."""
        return KnownSession(self, ref)

    def place(self, ref: SessionRef, *, make: bool = False) -> Path:
        """The folder of a session in the person's state folder; with `make` the repository gets its id."""
        name = digest(f"{ref.workflow}\n{ref.folder}")[:16]
        return self.home(make=make) / "sessions" / name / self._checkout

    def left(self, at: datetime) -> Iterator[Left]:
        """The runtimes of sessions that are gone for long, in all checkouts of the repository.

        One that git has on its list and that is not found is somewhere: moved, or on a disk that is not here.
        """
        top, known = self.home() / "sessions", checkouts(self.root)
        for place in (top / key / name for key in paths.names(top) for name in paths.names(top / key)):
            body, run = read_own(place / RECORD) or {}, place / ours.HOME
            folder, root = body.get("folder"), body.get("root")
            if not isinstance(folder, str) or not isinstance(root, str) or not ours.names(run) - {LEASE}:
                continue
            maybe = {known.get(place.name) or Path(root), Path(root)}
            homes = [home for home in maybe if home.is_dir() and checkout(home) == place.name]
            is_there = any((h / folder).is_dir() for h in homes) if homes else place.name in known
            days = int((at.timestamp() - max(paths.look(run / n).st_mtime for n in ours.names(run))) // DAY_S)
            if not is_there and days >= LEFT_DAYS and holder(run) is None:
                yield Left(run, f"{body.get('workflow')}:{folder}", days)

    @cached_property
    def _checkout(self) -> str:
        return checkout(self.root)

    def home(self, *, make: bool = False) -> Path:
        """Where the person keeps what concerns this repository."""
        if make or "_made" in self.__dict__:
            return self._made
        if self._found is None and time.monotonic() > self._looked_at + LOOK_S:
            self._found, self._looked_at = state_folder(self.root), time.monotonic()
        return self._found or self._by_path

    @cached_property
    def _made(self) -> Path:
        found = state_folder(self.root, make=True) or self._by_path
        make_private(found)
        return found

    @cached_property
    def _by_path(self) -> Path:
        """Where no git folder can hold an id, a folder is known by where it is."""
        name = f"path-{digest(os.fspath(self.root.resolve()))[:32]}"
        return Path(platformdirs.user_state_dir("rondel")).resolve() / "repos" / name


@dataclass(frozen=True)
class KnownSession:
    """The record of one session."""

    sessions: Sessions
    ref: SessionRef

    def knows(self, shown: Snapshot) -> bool:
        """Whether the session with these files is the one on record.

        One whose id cannot be read is not, unless it has just been begun: who forges one need
        not know its id then.
        """
        found = self.read(shown)
        if found is None or found.how == ADOPTING:
            return False
        own = identity_of(shown.json(IDENTITY))
        if own is None:
            return found.open and not shown.exists(IDENTITY)
        return own.id == found.identity.id

    @property
    def runtime(self) -> Path:
        """Where the session's lease, journal and spools are: in the state folder, for this worktree alone."""
        return self.sessions.place(self.ref) / ours.HOME

    def read(self, shown: Snapshot) -> Record | None:
        """What is on record of the session with these files, or else of the one that was there last.

        A branch brings a session to another worktree of the repository: it is known there by its id.
        """
        own = self._read(place := self.sessions.place(self.ref))
        identity = identity_of(shown.json(IDENTITY))
        if identity is None or (own is not None and own.identity.id == identity.id):
            return own
        others = (self._read(place.parent / name) for name in paths.names(place.parent) if name != place.name)
        return next((r for r in others if r and r.identity.id == identity.id and r.how != ADOPTING), own)

    @property
    def is_recorded_here(self) -> bool:
        """Whether there is a record of this worktree's own."""
        return self._read(self.sessions.place(self.ref)) is not None

    def _read(self, place: Path) -> Record | None:
        """What a record says; None where there is none, or where others could have written it."""
        body = read_own(place / RECORD)
        if body is None or (body.get("workflow"), body.get("folder")) != (self.ref.workflow, self.ref.folder):
            return None
        identity = identity_of(body.get("identity"))
        return Record(identity, str(body.get("how")), body.get("open") is True) if identity else None

    def record(self, identity: Identity, how: str, at: datetime, *, is_open: bool = False) -> None:
        """Record the session, durably: called before its own file shows the id.

        What is there of the runtime of another session goes before.
        """
        place = self.sessions.place(self.ref, make=True)
        before = self._read(place)
        if before is None or before.identity.id != identity.id:
            clear_runtime(self.runtime)
        body: Document = {
            "schema_version": 1,
            "workflow": self.ref.workflow,
            "folder": self.ref.folder,
            "root": os.fspath(self.sessions.root),
            "how": how,
            "at": stamp(at),
            "open": is_open,
            "identity": identity.document(),
        }
        write_own(place / RECORD, documents.dump(body))

    def refuse_driven(self) -> None:
        """Held where somebody drives the session that is, or was, at this place."""
        refuse_driven(self.runtime, self.ref.name, self.sessions.root / self.ref.folder)


def clear_runtime(run: Path) -> None:
    """Remove all but the lease, durably; the spools first, since the journal says which of them count."""
    names = sorted(ours.names(run), key=lambda name: name != SPOOL)
    for name in names:
        if paths.is_folder(run / name):
            paths.remove_folder(run / name)
        elif name != LEASE:
            paths.remove(run / name)
    if names:
        disk.current.sync_folder(os.fspath(run))


def read_own(path: Path) -> Mapping[str, object] | None:
    """A document of the state folder; None for what is no document, or what others could have written."""
    data = own_bytes(path)
    body = parse_json(data)
    return body if isinstance(body, dict) else None


def own_bytes(path: Path) -> bytes | None:
    """The bytes of a file of the state folder; None where there is none, or others could have written it.

    One that is too large is refused: whoever took it for none would forget what it says.
    """
    try:
        found, folder = path.lstat(), path.parent.stat()
        is_closed = not folder.st_mode & 0o011 or not found.st_mode & 0o022
        is_own = found.st_uid == folder.st_uid == os.geteuid()
        if not (is_own and is_closed and stat.S_ISREG(found.st_mode)):
            return None
        if found.st_size <= SIZE_MAX:
            return files.read(path, SIZE_MAX)
    except (OSError, RondelError):
        return None
    raise RondelError(f"{path} has more than {SIZE_MAX} bytes, and nothing that Rondel wrote has: remove it")


def write_own(path: Path, data: bytes) -> None:
    """Write a file of the state folder, for the person alone; never more than is read again."""
    if len(data) > SIZE_MAX:
        raise RondelError(
            f"{path} would have more than {SIZE_MAX} bytes, which is all that is kept of one session: "
            "begin another session for the rest"
        )
    make_private(path.parent)
    files.write(path, data)
    paths.chmod(path, 0o600)
