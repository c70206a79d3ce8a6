"""Changes: which files to leave, in order; the last one is the commit.

Paths are relative to the session folder. Every change is idempotent: after a crash
in the middle all of them are carried out again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from rondel.model.jsons import pretty

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
Document = dict[str, Json]


@dataclass(frozen=True)
class Write:
    """Leave a whole file.

    Nothing that somebody else wrote there is lost. What was there when the action began is
    put aside first: the workflow knew of it. What was written there while the action ran
    stays, and ours is put aside. With `view` theirs is put aside then, too: the file only
    shows what other files hold, and is right again.
    """

    path: str
    data: bytes
    view: bool = False


@dataclass(frozen=True)
class Append:
    """Add one line to a log. A line that is already the log's last one is not added again."""

    path: str
    line: str


@dataclass(frozen=True)
class Edit:
    """Change a JSON document under its lock; fields nobody here knows stay, in their order.

    `change` gets the document as it is at that moment ({} when there is none) and returns
    the new one. With `log`, the new document is first added to that file as one line (see
    `rondel.model.doclog`): the log then always ends with what the document shows or is about
    to show.
    """

    path: str
    change: Callable[[Document], Document]
    log: str | None = None


@dataclass(frozen=True)
class Aside:
    """Move a file out of the way, to `to`. Nothing is deleted to start again.

    Something that is at `to` already is never replaced: it means that this was done before.
    """

    path: str
    to: str


@dataclass(frozen=True)
class Keep:
    """Give what is there a second name, so that it lasts when something else takes its place.

    Something that is at `to` already is never replaced.
    """

    path: str
    to: str


Change = Write | Append | Edit | Aside | Keep


def touched_by(changes: Iterable[Change]) -> Iterator[str]:
    """Every file that changes touch."""
    for change in changes:
        yield change.path
        if isinstance(change, Aside):
            yield change.to
        if isinstance(change, Edit) and change.log:
            yield change.log


def text(path: str, content: str, *, view: bool = False) -> Write:
    """A text file, ending in a newline. Half characters, which JSON can bring, become question marks."""
    whole = content if content.endswith("\n") else content + "\n"
    return Write(path, whole.encode(errors="replace"), view)


def json_file(path: str, value: object) -> Write:
    """A JSON file as a person reads it. Half characters stay what JSON says of them."""
    return Write(path, f"{pretty(value)}\n".encode(errors="backslashreplace"))


def foresee(files: dict[str, bytes], changes: Iterable[Change]) -> None:
    """Carry changes out on files that are only thought of, to see what they lead to."""
    for change in changes:
        match change:
            case Write(path, data):
                files[path] = data
            case Append(path, line):
                files[path] = files.get(path, b"") + line.encode() + b"\n"
            case Edit(path, edit):
                files[path] = json.dumps(edit(json.loads(files.get(path) or b"{}"))).encode()
            case Aside(path, to):
                if path in files:
                    files[to] = files.pop(path)
            case Keep(path, to):
                files.setdefault(to, files.get(path, b""))
