"""Applying changes: from what a workflow says to what is on the disk, and nothing of anybody else's is lost.

What somebody else wrote under the name of one of our files is never destroyed. Which texts are ours is on
record (see `rondel.model.marks`); every other text is kept, whenever it came there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rondel import paths
from rondel.errors import RondelError
from rondel.model.changes import Append, Aside, Change, Edit, Keep, Write
from rondel.model.identity import was_cut_off
from rondel.model.marks import WRITTEN, line, marks_in
from rondel.model.names import digest
from rondel.model.versions import VERSION
from rondel.model.workflow import SessionRef
from rondel.store import disk, documents, files, logs, ours
from rondel.store.journal import KnownLog
from rondel.store.ours import digest_of, free_spot
from rondel.store.snapshot import DiskSnapshot

After = Callable[[str, bytes | None], None]
Settle = Callable[[Change], Sequence[Change]]
TRIES = 20  # how often somebody else may write a file in the moment it is replaced


@dataclass(frozen=True)
class Replace(Write):
    """A Write that is done only over the text with this digest, None for no text at all."""

    old: str | None = None


def write_changes(
    folder: Path,
    changes: Sequence[Change],
    *,
    beside: frozenset[str] = frozenset(),
    guard: Callable[[], None] | None = None,
    after: After | None = None,
    settle: Settle = lambda change: (change,),
    known: Container[str] = (),
    version: int = VERSION,
) -> list[Change]:
    """All changes, in order, each durable before the next begins; carried out again they do no harm.

    `guard` is called before each one and may raise: the lease's check. `after` is called
    with each path that was touched and what it holds now, None where it must be looked at.
    `settle` says what is done instead of a change, and again where that does not hold any more
    in the moment it is done. `known` are documents that are there: one that is gone is not begun
    anew, but DamagedFile. `version` is the highest of a document that may be changed. Returns what
    was done.
    """
    there = _lines_there(folder, changes, beside)
    done: list[Change] = []

    def do(change: Change) -> None:
        if guard is not None:
            guard()
        edit = partial(_edit, known=known, version=version)
        for path, data in _write_one(folder, change, beside, there, edit):
            if after is not None:
                after(path, data)

    for wanted in changes:
        for _ in range(TRIES):
            settled = settle(wanted)
            try:
                for change in settled:
                    do(change)
            except files.Changed:
                continue
            done += settled
            break
        else:
            raise RondelError(f"{wanted.path} cannot be written: somebody else keeps writing it")
    return done


def write_together(
    changes: Sequence[Write],
    free: Mapping[str, str],
    *,
    guard: Callable[[], None] | None,
    after: After | None,
) -> tuple[list[Write], list[Write]]:
    """Write files that do not depend on each other at their `free` places; returns those done, and the rest.

    The rest is where something is already, or came meanwhile: that is carried out one by one.
    """
    new = {free[change.path]: change for change in changes if change.path in free}
    left = files.write_new({name: change.data for name, change in new.items()}, guard or (lambda: None))
    done = [change for name, change in new.items() if name not in left]
    if after is not None:
        for change in done:
            after(change.path, change.data)
    return done, [change for change in changes if change not in done]


def _expect(place: Path, old: str | None) -> None:
    if digest_of(place) != old:
        raise files.Changed(place)


def _lines_there(folder: Path, changes: Sequence[Change], beside: frozenset[str]) -> dict[str, int]:
    """Of each log that gets several lines: how many of them a time that was cut short has left there."""
    lines: dict[str, list[str]] = {}
    for change in changes:
        if isinstance(change, Append):
            lines.setdefault(change.path, []).append(change.line)
    return {
        path: logs.ends_with(ours.document(folder, path, beside), added)
        for path, added in lines.items()
        if len(added) > 1
    }


def _write_one(
    folder: Path, change: Change, beside: frozenset[str], there: dict[str, int], edit: Callable[..., bytes]
) -> list[tuple[str, bytes | None]]:
    """The paths a change touched, and what they hold now."""

    def place(relative: str, *, as_it_is: bool = False) -> Path:
        return ours.document(folder, relative, beside, as_it_is=as_it_is)

    match change:
        case Replace(path, data, old=old):
            files.write(spot := place(path), data, last=lambda: _expect(spot, old))
            return [(path, data)]
        case Write(path, data):
            files.write(place(path), data)
            return [(path, data)]
        case Append(path) if there.get(path, 0) > 0:
            there[path] -= 1
            return []
        case Append(path, line):
            logs.append_line(place(path), line, again=path in there)
            return [(path, None)]
        case Edit(path, _, None):
            return [(path, edit(change, place(path), None))]
        case Edit(path, _, str(log)):
            return [(path, edit(change, place(path), place(log))), (log, None)]
        case Aside(path, to):
            files.aside(place(path, as_it_is=True), place(to, as_it_is=True), again=False)
            return [(path, None), (to, None)]
        case Keep(path, to):
            files.keep(place(path, as_it_is=True), place(to, as_it_is=True))
            return [(to, None)]
        case _:
            raise TypeError(change)


def _edit(edit: Edit, path: Path, log: Path | None, *, known: Container[str], version: int) -> bytes:
    is_there = edit.path in known
    return documents.edit_bytes(path, edit.change, log, is_there=is_there, version=version).data


# -- without loss --------------------------------------------------------------------------------


class Written:
    """The record of one session folder. Other processes may add to it at any time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._log = KnownLog(folder / WRITTEN)
        self._known: dict[str, frozenset[str]] = {}
        self._last: frozenset[str] = frozenset()  # the files of the newest line

    def keep(self) -> None:
        """What somebody takes from the record from now on is put back. For a driver."""
        self._log.keep = True
        self._read()

    def close(self) -> None:
        """The driver is at its end."""
        self._log.close()

    def ours(self, path: str) -> frozenset[str]:
        """The digests that a file has where nobody else wrote it."""
        self._read()
        return self._known.get(path, frozenset())

    def went_on(self, path: str) -> bool:
        """Whether anything was written after the last text of this file."""
        self._read()
        return path in self._known and path not in self._last

    def _read(self) -> None:
        if news := list(self._log.news()):
            self._known |= marks_in(news)
            self._last = frozenset(marks_in(news[-1:]))

    def note(self, marks: Mapping[str, Sequence[str]]) -> None:
        """Say which texts are ours, durably; called before they are written."""
        if all(self._known.get(path) == frozenset(digests) for path, digests in marks.items()):
            return
        ours.keep_out_of_git(ours.own(self._folder / WRITTEN).parent)
        self._log.add(line(marks))
        self._known |= {path: frozenset(digests) for path, digests in marks.items()}
        self._last = frozenset(marks)


def write_ours(folder: Path, texts: Mapping[str, str]) -> None:
    """Write the first documents of a new session, noted as ours."""
    Written(folder).note({path: [digest(text)] for path, text in texts.items()})
    for path, text in texts.items():
        files.write(folder / path, text.encode())


def remove_cut_off(folder: Path) -> None:
    """Remove what a killed start left, so that its name is free again; nothing of anybody else's goes.

    For who holds the lock of the folder above, as every start does: so nobody is starting there now.
    """
    if not paths.is_folder(folder) or not was_cut_off(DiskSnapshot(folder)):
        return
    written = Written(folder)
    texts = [path for path in paths.files_below(folder, ours.HOME) if not path.startswith(files.TEMP)]
    if any(digest_of(folder / path) not in written.ours(path) for path in texts):
        return
    for path in texts:  # the record of whose they are goes last
        disk.current.unlink(os.fspath(folder / path))
    paths.remove_tree(folder)
    disk.current.sync_folder(os.fspath(folder.parent))


@dataclass(frozen=True)
class Kept:
    """Somebody else's text under the name of one of our files: where what gave way is, and why."""

    file: str
    aside: str
    why: str


@dataclass(frozen=True)
class Applied:
    """What was done, change by change, and what of somebody else's was kept."""

    changes: Sequence[Change]
    kept: Sequence[Kept]


def apply_changes(
    folder: Path,
    changes: Sequence[Change],
    *,
    written: Written | None = None,
    seen: Mapping[str, str | None] | None = None,
    beside: frozenset[str] = frozenset(),
    guard: Callable[[], None] | None = None,
    after: After | None = None,
    known: Container[str] = (),
    version: int = VERSION,
    together: bool = False,
) -> Applied:
    """Carry out the changes; nothing that somebody else wrote is lost: see `Write`.

    `seen` holds the digests that declared files had when the action began. With `together` they are
    writes that do not depend on each other. For the rest see `write_changes`.
    """
    if guard is not None:
        guard()
    record = written or Written(folder)
    free = note_ours(folder, changes, record, beside)
    writes = [change for change in changes if isinstance(change, Write)]
    settle = _Settling(folder, beside, record, writes, seen or {})
    at_once: list[Write] = []
    if together:
        at_once, changes = write_together(writes, free, guard=guard, after=after)
    done = write_changes(
        folder,
        changes,
        beside=beside,
        guard=guard,
        after=after,
        settle=settle,
        known=known,
        version=version,
    )
    return Applied([*at_once, *done], settle.kept)


def apply_in(root: Path, ref: SessionRef, changes: Sequence[Change]) -> None:
    """The same in a session of a repository, where no driver is at work."""
    apply_changes(files.safe_join(root, ref.folder), changes, beside=ref.beside)


def note_ours(
    folder: Path, changes: Sequence[Change], written: Written, beside: frozenset[str] = frozenset()
) -> dict[str, str]:
    """Note which texts are ours, before they are there; what is there now may be ours, too.

    Returns the places of those where nothing is now.
    """
    marks: dict[str, list[str]] = {}
    free: dict[str, str] = {}
    for change in changes:
        if not isinstance(change, Write):
            continue
        place = ours.document(folder, change.path, beside)
        now = digest_of(place)
        if now is None:
            free[change.path] = os.fspath(place)
        new = digest(change.data)
        is_ours = now is not None and now in written.ours(change.path)
        if is_ours or now != new:  # else somebody else wrote the very same, and it stays theirs
            before = [now] if now is not None and is_ours else []
            marks.setdefault(change.path, before).append(new)
    if marks:
        written.note(marks)
    return free


@dataclass
class _Settling:
    """What is done instead of each change, decided when its turn has come."""

    folder: Path
    beside: frozenset[str]
    written: Written
    writes: Sequence[Write]
    seen: Mapping[str, str | None]
    kept: list[Kept] = field(default_factory=list)

    def __call__(self, change: Change) -> Sequence[Change]:
        if not isinstance(change, Write):
            return (change,)
        path, place = change.path, ours.document(self.folder, change.path, self.beside)
        now = digest_of(place)
        new = Replace(path, change.data, change.view, now)
        if now is None and not paths.is_file(place):
            return (new,)
        if now is not None and self._may_go(path, place, now):
            return (new,)
        if change.view or self.seen.get(path, now) == now:
            spot = free_spot(self.folder, path, "replaced", now)
            self.kept.append(Kept(path, spot, "what somebody else wrote is kept aside"))
            return (Keep(path, spot), new)
        spot = free_spot(self.folder, path, "unused", digest(change.data))
        self.kept.append(Kept(path, spot, "somebody else wrote it meanwhile; ours is put aside"))
        return (Write(spot, change.data),)

    def _may_go(self, path: str, place: Path, now: str) -> bool:
        """Whether nothing is lost with it: it is ours, or something that we write begins with it."""
        if now in self.written.ours(path):
            return True
        there = (files.read(place) or b"").rstrip()
        return any(_begins_with(other.data, there) for other in self.writes)


def _begins_with(data: bytes, text: bytes) -> bool:
    """Whether the whole text is the beginning of the data, or all of it."""
    return not text or (data.startswith(text) and not data[len(text) : len(text) + 1].strip())
