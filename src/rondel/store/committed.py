"""Committed documents: what a running driver knows to be good, and puts back where it was damaged.

An agent or an editor may empty, break, delete or replace a document while a driver runs. The
driver remembers the bytes of each one as it last read or wrote them. Damaged is what is no
JSON object any more, or a log of which something is missing; a change that reads well is a
person's, and is what is remembered from then on. What is damaged is put aside under a name
that says so, never deleted.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from rondel import paths
from rondel.model import jsons
from rondel.store import files, ours
from rondel.store.locks import locked
from rondel.store.ours import Restored

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
