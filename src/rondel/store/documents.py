"""Documents: JSON objects that several processes change, and that others than Rondel know too.

Fields nobody here knows stay, in their order. A damaged document is never overwritten.

An agent or an editor may empty, break, delete or replace a document while a driver runs. The driver remembers
the bytes of each one as it last read or wrote them (`Committed`). Damaged is what is no JSON object any more,
or a log of which something is missing; a change that reads well is a person's, and is what is remembered from
then on. What is damaged is put aside under a name that says so, never deleted.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rondel import paths
from rondel.errors import DamagedFile, NewerFile
from rondel.model import doclog, jsons
from rondel.model.changes import Document
from rondel.model.versions import VERSION, message, newer
from rondel.store import files, logs, ours
from rondel.store.locks import locked as locked
from rondel.store.ours import Restored


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
    """Like `edit`; also returns what the file holds now.

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
        "It is left as it is; fix it, or move it away, and run again"
    )


# -- what a running driver knows to be good ------------------------------------------------------


BYTES_MAX = 64 * 1024 * 1024  # of all documents together; what does not fit is not remembered
LOG = ".ndjson"


class Committed:
    """The documents of one session as they were last committed. Paths are the session's own."""

    def __init__(self, folder: Path, beside: frozenset[str] = frozenset()) -> None:
        self._folder = folder
        self._beside = beside
        self._good: dict[str, bytes] = {}
        self._bytes = 0

    def __contains__(self, path: str) -> bool:
        return path in self._good

    def among(self, changed: frozenset[str]) -> list[str]:
        """The documents that may have changed with these paths; a folder's ends in `/`."""
        folders = tuple(path for path in changed if path.endswith("/"))
        if not folders:
            return [path for path in changed if path in self._good]
        return [path for path in self._good if path in changed or path.startswith(folders)]

    def remember(self, path: str, data: bytes) -> None:
        """From now on this is what the document was last; of a log, its whole lines."""
        self.forget(path)
        if path.endswith(LOG):
            data = data[: data.rfind(b"\n") + 1]  # whoever adds the next line cuts off a torn one
        if self._bytes + len(data) <= BYTES_MAX:
            self._good[path] = data
            self._bytes += len(data)

    def last(self, path: str) -> bytes:
        """What the document was last."""
        return self._good.get(path, b"")

    def texts(self) -> dict[str, str]:
        """What the workflow's own documents were last: no logs, and nothing of ours."""
        own = ((p, d) for p, d in self._good.items() if not p.endswith(LOG) and not p.startswith(".rondel/"))
        return {path: data.decode(errors="replace") for path, data in own}

    def fault_now(self, path: str) -> str | None:
        """Why what is at its place now is no state of this document; None when it is one."""
        try:
            return self.fault(path, paths.read(self._place(path)))
        except OSError:
            return self.fault(path, None)

    def holds_something(self, path: str) -> bool:
        """Whether the document was there, with anything in it."""
        return len(self.last(path).strip()) > len(b"{}")

    def forget(self, path: str) -> None:
        """It was moved away on purpose."""
        self._bytes -= len(self._good.pop(path, b""))

    def fault(self, path: str, data: bytes | None) -> str | None:
        """Why what is there now is no state of this document; None when it is one."""
        if data is None:
            return self._absence(path)
        if path.endswith(LOG):
            return None if data.startswith(self.last(path)) else "lines of it are missing or changed"
        if not data.strip():
            return "it is empty"
        try:
            value = jsons.load(data)
        except jsons.Refused as error:
            return str(error)
        except ValueError:
            return "it does not parse as JSON"
        if not isinstance(value, dict):
            return "it is no JSON object"
        return "nothing is left in it" if not value and self.holds_something(path) else None

    def _absence(self, path: str) -> str:
        """Why there is nothing to read."""
        try:
            mode = paths.look(self._place(path)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return "it is gone"
        except OSError:
            return "it is behind a symbolic link"
        kinds = ((stat.S_ISLNK, "is a symbolic link"), (stat.S_ISDIR, "is a folder"))
        return "it " + next((word for is_it, word in kinds if is_it(mode)), "cannot be read")

    def looks_whole(self, path: str) -> bool:
        """Whether a look at it, without reading it, shows nothing wrong."""
        try:
            found = paths.look(self._place(path))
        except OSError:
            return False
        shorter = path.endswith(LOG) and found.st_size < len(self.last(path))
        return stat.S_ISREG(found.st_mode) and not shorter

    def restore(self, path: str, why: str) -> Restored:
        """Put aside what is there, and write the document as it was last."""
        place = ours.document(self._folder, path, self._beside, as_it_is=True)
        with locked(place.parent):
            kept = ours.put_aside(self._folder, place, path) if paths.is_there(place) else ""
            files.write(place, self._good[path])
        done = Restored(path, why, kept)
        ours.note(self._folder, [done])
        return done

    def _place(self, path: str) -> Path:
        """Where a document belongs: never through a link that somebody put there."""
        up = path.removeprefix("../")
        if up != path and up in self._beside:
            return Path(os.path.abspath(self._folder)).parent / up
        return self._folder / path
