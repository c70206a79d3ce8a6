"""Documents: JSON objects that several processes change, and that others than Rondel know too.

Fields nobody here knows stay, in their order. A damaged document is never overwritten.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rondel.errors import DamagedFile, NewerFile
from rondel.model import doclog, jsons
from rondel.model.changes import Document
from rondel.model.versions import VERSION, message, newer
from rondel.store import files, logs
from rondel.store.locks import locked as locked


class Edited(NamedTuple):
    """A document after an edit, and the bytes its file holds (none: there is no file)."""

    document: Document
    data: bytes


def load(path: Path) -> Document:
    """The document; {} when there is none; DamagedFile when the file is not a JSON object.

    NewerFile when it is of a version that nobody here knows.
    """
    data = files.read(path)
    return {} if data is None else _known(path, _parse(path, data), VERSION)


def edit(path: Path, change: Callable[[Document], Document], log: Path | None = None) -> Document:
    """Change a document under its folder's lock; no other edit gets lost. The new document.

    A document that `change` leaves as it is, is not written. With `log` the new document is
    first added to that log as one line (see `rondel.model.doclog`): the log then ends with
    what the document shows, or is about to show.
    """
    return edit_bytes(path, change, log).document


def edit_bytes(
    path: Path,
    change: Callable[[Document], Document],
    log: Path | None = None,
    *,
    is_there: bool = False,
    version: int = VERSION,
) -> Edited:
    """Like `edit`; also gives what the file holds now.

    With `is_there` the caller knows the document: one that is gone or empty is damaged, not new. One of
    a higher `version` is not changed: NewerFile.
    """
    files.make_folder(path.parent)
    with locked(path.parent):
        held = files.read(path)
        if held is None and is_there:
            raise _damaged(path, "it is gone")
        old = {} if held is None else _known(path, _parse(path, held), version)
        if is_there and not old:
            raise _damaged(path, "nothing is left in it")
        before = _plain(old)
        new = change(old)
        differs = _plain(new) != before
        if log is not None and (held is not None or differs):
            _log(log, before, new)
        if not differs:
            return Edited(new, held or b"")
        data = dump(new)
        files.write(path, data)
        return Edited(new, data)


def _plain(document: Document) -> str:
    """A document as text, to compare it: `change` may give back the one it got."""
    return json.dumps(document, ensure_ascii=False)


def _log(log: Path, before: str, new: Document) -> None:
    files.make_folder(log.parent)
    logs.append_next(log, lambda last: doclog.line(last or "", json.loads(before), new))


def dump(document: Document) -> bytes:
    """A document as it stands in its file: indented, readable in any script."""
    return f"{jsons.pretty(document)}\n".encode(errors="backslashreplace")


def _parse(path: Path, data: bytes) -> Document:
    try:
        value = jsons.load(data)
    except jsons.Refused as error:
        raise _damaged(path, str(error)) from None
    except ValueError as error:
        raise _damaged(path, f"it does not parse: {error}") from error
    if not isinstance(value, dict):
        raise _damaged(path, f"it holds a {type(value).__name__}, not an object")
    return value


def _known(path: Path, document: Document, version: int) -> Document:
    found = newer(document, version)
    if found is not None:
        raise NewerFile(message(os.fspath(path), found, version))
    return document


def _damaged(path: Path, why: str) -> DamagedFile:
    return DamagedFile(
        f"{os.fspath(path)!r} is not a JSON document: {why}. "
        "It is left as it is; mend it, or move it away, and run again"
    )
