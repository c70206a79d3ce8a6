"""Seals: which decisions in a session's folder are believed, by the person's key.

A seal does not say that it is the newest: whoever puts an earlier answer back, or removes the last one, has
valid seals. So the last seal of each question is noted beside the session's record, before the file is
written. Each worktree has its notes, and looks at those of the others too: a branch brings a session
there, with or without what was answered.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from typing_extensions import override

from rondel import paths
from rondel.model.changes import Document
from rondel.model.decisions import DECISIONS, SEAL, doubt, is_decision, outdated, seal_of, sealed
from rondel.model.identity import IDENTITY, identity_of
from rondel.model.jsons import parse_json
from rondel.model.names import digest
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem, command_line
from rondel.store import documents, files
from rondel.store.locks import locked
from rondel.trust.consents import make_private
from rondel.trust.doubts import Doubts
from rondel.trust.sessions import KnownSession, own_bytes, read_own, write_own

KEY = "key"
KEY_BYTES = 32
LEVELS_MAX = 5  # how deep decisions lie in folders
# The rules of problems.
UNSEALED, OUTDATED, REMOVED = "decision-unsealed", "decision-outdated", "decision-removed"


class Noted(NamedTuple):
    """The last seal of each decision of a session: of this worktree, and of all others."""

    own: Mapping[str, str] = {}  # empty where the person went on without what another worktree has
    others: Mapping[str, frozenset[str]] = {}

    def is_last(self, path: str, seal: str) -> bool:
        """Whether no newer one is known; what was answered here counts before what was elsewhere."""
        own = self.own.get(path)
        last = frozenset((own,)) if own else self.others.get(path)
        return not last or seal in last

    @property
    def expected(self) -> list[str]:
        """The decisions that were made, and that nobody went on without."""
        return sorted(path for path in {*self.own, *self.others} if self.own.get(path) != "")


class Seals:
    """The person's seal for the decisions of one session. What it once found it keeps."""

    def __init__(self, known: KnownSession) -> None:
        self._known = known
        self._id = ""
        self._kept: bytes | None = None
        self._last: Noted | None = None
        self._read: dict[Path, tuple[object, Mapping[str, str]]] = {}  # notes, and of which file they are

    def sealed(self, path: str, data: bytes, shown: Snapshot) -> bytes:
        """A decision that is to be written, with its seal; what is no JSON object gets none."""
        body = parse_json(data)
        if not isinstance(body, dict):
            return data
        done = sealed(self._make_key(), self._subject(shown), path, body)
        self._note(shown, lambda last: {**last.own, path: str(done[SEAL])})
        return documents.dump(done)

    def take_as_they_are(self, shown: Snapshot) -> None:
        """What is not there any more is not missed: the person saw it."""
        if any(not shown.exists(path) for path in self._noted(shown, anew=True).expected):
            self._note(
                shown,
                lambda last: {
                    **{path: seal for path, seal in last.own.items() if shown.exists(path)},
                    **{path: "" for path in last.others if not shown.exists(path)},
                },
            )

    def counts(self, path: str, shown: Snapshot) -> bool:
        """Whether a decision of the session with these files is the person's, on what is there now."""
        return not self._doubt(path, shown) and not outdated(shown.json(path), shown.digest)

    def problems(self, shown: Snapshot) -> Iterator[Problem]:
        """The decisions that are nobody's, each with what to do."""
        adopts = command_line("adopt", self._known.ref.name)
        for path in decisions_in(shown):
            if why := self._doubt(path, shown):
                then = f"`{adopts}` takes over what a colleague decided; else answer again, or remove it"
                yield Problem(UNSEALED, path, f"does not count: {why}", then, loud=True)
        noted = self._noted(shown, anew=True)
        for path in noted.expected:
            if not shown.exists(path):
                why = "you answered this, and the answer is gone: somebody removed it, or a checkout did"
                if path not in noted.own:
                    why = "you answered this in another worktree, and the answer is not here"
                then = f"put it back, answer again where you are asked, or `{adopts}` to go on without it"
                yield Problem(REMOVED, path, why, then, loud=True)

    def outdated(self, shown: Snapshot) -> Iterator[Problem]:
        """The decisions about something that has changed since: a problem where they are asked for again."""
        for path in decisions_in(shown):
            name = outdated(shown.json(path), shown.digest)
            if name and not self._doubt(path, shown):
                why = f"does not count any more: {name} has changed since it was decided"
                yield Problem(OUTDATED, path, why, "look at it, and answer again")

    def _doubt(self, path: str, shown: Snapshot) -> str:
        key, session, body = self._key(), self._subject(shown), shown.json(path)
        if (why := doubt(key, session, path, body)) or not key or not isinstance(body, dict):
            return why
        own = seal_of(key, session, path, body)
        # Another process may have sealed a newer one since.
        before, now = self._noted(shown), self._noted(shown, anew=True)
        if before.is_last(path, own) or now.is_last(path, own):
            return ""
        return "it is an earlier answer of yours, and a newer one was there"

    def _noted(self, shown: Snapshot, *, anew: bool = False) -> Noted:
        """What is noted of the session with this id, at its place in each worktree."""
        if self._last is None or anew:
            place, name = self._known.sessions.place(self._known.ref), self._notes(shown)
            others: dict[str, frozenset[str]] = {}
            for other in set(paths.names(place.parent)) - {place.name}:
                for path, seal in self._notes_at(place.parent / other / name).items():
                    if seal:
                        others[path] = others.get(path, frozenset()) | {seal}
            self._last = Noted(self._notes_at(place / name), others)
        return self._last

    def _note(self, shown: Snapshot, change: Callable[[Noted], dict[str, str]]) -> None:
        """Change what is noted of this worktree, durably, one process at a time."""
        place = self._known.sessions.place(self._known.ref, make=True)
        make_private(place)
        with locked(place):
            before = self._noted(shown, anew=True)
            own = change(before)
            body: Document = {"schema_version": 1, "seals": {**own}}
            write_own(place / self._notes(shown), documents.dump(body))
            self._last = Noted(own, before.others)

    def _notes_at(self, path: Path) -> Mapping[str, str]:
        """What a file of notes says. It is replaced as a whole, and read again when it was."""
        which = _which(path)
        if path not in self._read or self._read[path][0] != which:
            last = (read_own(path) or {}).get("seals")
            found = last if isinstance(last, dict) else {}
            self._read[path] = which, {p: s for p, s in found.items() if isinstance(s, str)}
        return self._read[path][1]

    def _notes(self, shown: Snapshot) -> str:
        """The file of the notes: another session at the same place has another one."""
        return f"decisions-{digest(self._session(shown))[:16]}.json"

    def _subject(self, shown: Snapshot) -> str:
        """What decisions are bound to: the session's id and its place, since a copy has the same id."""
        return f"{self._session(shown)} {self._known.ref.workflow}:{self._known.ref.folder}"

    def _session(self, shown: Snapshot) -> str:
        """The session's id: the one on record, which no file of the repository changes."""
        if not self._id:
            found, there = self._known.read(shown), identity_of(shown.json(IDENTITY))
            own = found.identity if found else there
            if own is None or there is None or own.id != there.id:  # another one may be adopted here yet
                return own.id if own else ""
            self._id = own.id
        return self._id

    def _place(self, *, make: bool = False) -> Path:
        return self._known.sessions.home(make=make) / KEY

    def _key(self) -> bytes | None:
        if self._kept is None:
            found = own_bytes(self._place())
            self._kept = found if found is not None and len(found) == KEY_BYTES else None
        return self._kept

    def _make_key(self) -> bytes:
        place = self._place(make=True)
        with locked(place.parent):
            found = self._key()
            if found is None:
                if os.path.lexists(place):  # nobody can say any more what it sealed
                    files.aside(place, place.with_name(f"{KEY}.unusable-{secrets.token_hex(4)}"))
                found = secrets.token_bytes(KEY_BYTES)
                write_own(place, found)
        return found


def _which(path: Path) -> tuple[int, ...]:
    """Tells a file from the one that replaced it, and from one whose rights were changed."""
    try:
        found = paths.look(path)
    except OSError:
        return ()
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def decisions_in(shown: Snapshot, folder: str = DECISIONS, levels: int = LEVELS_MAX) -> Iterator[str]:
    """The files of decisions, in the order of their paths."""
    for name in sorted(shown.names(folder)):
        if not name.endswith("/"):
            yield f"{folder}/{name}"
        elif levels:
            yield from decisions_in(shown, f"{folder}/{name[:-1]}", levels - 1)


class Believed(Snapshot):
    """A session's files without decisions and texts that count for nothing: what a workflow reads."""

    def __init__(self, shown: Snapshot, seals: Seals, doubts: Doubts) -> None:
        self._shown = shown
        self._seals = seals
        self._doubts = doubts

    @property
    @override
    def place(self) -> str:
        return self._shown.place

    def names(self, folder: str = "") -> frozenset[str]:
        """See `Snapshot`."""
        found = self._shown.names(folder)
        above = folder.rstrip("/")
        if not is_decision(f"{above}/") and self._doubts.is_idle:
            return found
        prefix = f"{above}/" if above else ""
        return frozenset(n for n in found if n.endswith("/") or self._counts(f"{prefix}{n}"))

    @override
    def data(self, path: str) -> bytes | None:
        return self._shown.data(path) if self._counts(path) else None

    @override
    def json(self, path: str) -> object:
        return self._shown.json(path) if self._counts(path) else None

    @override
    def digest(self, path: str) -> str | None:
        return self._shown.digest(path) if self._counts(path) else None

    @override
    def mtime(self, path: str) -> float | None:
        return self._shown.mtime(path) if self._counts(path) else None

    @override
    def exists(self, path: str) -> bool:
        return self._shown.exists(path) and self._counts(path)

    def _counts(self, path: str) -> bool:
        if not is_decision(path):
            return not self._doubts.hides(path, self._shown)
        if path.rstrip("/") == DECISIONS or not self._shown.exists(path):
            return True
        return self._seals.counts(path, self._shown)
