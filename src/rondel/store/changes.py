"""Carrying out changes: from what a workflow says to what is on the disk."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rondel.errors import RondelError
from rondel.model.changes import Append, Aside, Change, Edit, Keep, Write
from rondel.model.versions import VERSION
from rondel.store import documents, files, logs, ours
from rondel.store.ours import digest_of

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
    anew, but DamagedFile. `version` is the highest of a document that may be changed. Gives what
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
    """Write files that do not depend on each other at their `free` places; gives what is done, and the rest.

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
