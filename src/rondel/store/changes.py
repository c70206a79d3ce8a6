"""Carrying out changes: from what a workflow says to what is on the disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from rondel.model.changes import Append, Aside, Change, Edit, Keep, Write
from rondel.store import documents, files, logs

After = Callable[[str, bytes | None], None]
Settle = Callable[[Change], Sequence[Change]]


def carry_out(
    folder: Path,
    changes: Sequence[Change],
    *,
    beside: frozenset[str] = frozenset(),
    guard: Callable[[], None] | None = None,
    after: After | None = None,
    settle: Settle = lambda change: (change,),
) -> None:
    """All changes, in order, each durable before the next begins; carried out again they do no harm.

    `guard` is called before each one and may raise: the lease's check. `after` is called
    with each path that was touched and what it holds now, None where it must be looked at.
    `settle` says at the last moment what is done instead of a change.
    """
    there = _lines_there(folder, changes, beside)
    for change in (settled for wanted in changes for settled in settle(wanted)):
        if guard is not None:
            guard()
        for path, data in _carry_out(folder, change, beside, there):
            if after is not None:
                after(path, data)


def _lines_there(folder: Path, changes: Sequence[Change], beside: frozenset[str]) -> dict[str, int]:
    """Of each log that gets several lines: how many of them a time that was cut short has left there."""
    lines: dict[str, list[str]] = {}
    for change in changes:
        if isinstance(change, Append):
            lines.setdefault(change.path, []).append(change.line)
    return {
        path: logs.ends_with(files.safe_join(folder, path, beside), added)
        for path, added in lines.items()
        if len(added) > 1
    }


def _carry_out(
    folder: Path, change: Change, beside: frozenset[str], there: dict[str, int]
) -> list[tuple[str, bytes | None]]:
    """The paths a change touched, and what they hold now."""

    def place(relative: str) -> Path:
        path = files.safe_join(folder, relative, beside)
        _make_room(folder, relative, path)
        return path

    match change:
        case Write(path, data):
            files.write(place(path), data)
            return [(path, data)]
        case Append(path) if there.get(path, 0) > 0:
            there[path] -= 1
            return []
        case Append(path, line):
            logs.append_line(place(path), line, again=path in there)
            return [(path, None)]
        case Edit(path, new, None):
            return [(path, documents.edit_bytes(place(path), new).data)]
        case Edit(path, new, str(log)):
            return [(path, documents.edit_bytes(place(path), new, place(log)).data), (log, None)]
        case Aside(path, to):
            files.aside(files.safe_join(folder, path, beside), place(to), again=False)
            return [(path, None), (to, None)]
        case Keep(path, to):
            files.keep(files.safe_join(folder, path, beside), place(to))
            return [(to, None)]
        case _:
            raise TypeError(change)


def _make_room(folder: Path, relative: str, path: Path) -> None:
    """The folders above a file; and runtime state kept out of git from the start."""
    files.make_folder(path.parent)
    if relative.startswith(".rondel/") and relative != ".rondel/.gitignore":
        files.ignore_runtime(folder / ".rondel")
