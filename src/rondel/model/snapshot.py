"""A snapshot: the files of a folder as a workflow may see them. Reading only, and total.

Whatever is not there, is not text or is not JSON gives None, never an exception. Paths are
relative, with `/`; `names` lists one folder; nothing is read before it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from rondel.model.jsons import parse_json
from rondel.model.names import digest


class Snapshot(Protocol):
    """The files below one folder."""

    @property
    def place(self) -> str:
        """Where the folder is, absolute; empty when it is on no disk."""
        ...

    def names(self, folder: str = "") -> frozenset[str]:
        """The names in a folder; a folder's own name ends in `/`. Empty when there is none."""
        ...

    def data(self, path: str) -> bytes | None:
        """The bytes of a regular file."""
        ...

    def text(self, path: str) -> str | None:
        """The file as UTF-8, with what is not UTF-8 replaced."""
        ...

    def json(self, path: str) -> object:
        """The file as JSON; None when there is none or it does not parse. Not to be changed."""
        ...

    def digest(self, path: str) -> str | None:
        """The SHA-256 of the file in hex."""
        ...

    def mtime(self, path: str) -> float | None:
        """When the file or folder last changed, in seconds since the epoch."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a regular file."""
        ...


class FrozenSnapshot:
    """A snapshot of a mapping: for decisions that need no disk."""

    place = ""

    def __init__(self, files: Mapping[str, bytes | str]) -> None:
        self._files = {p: d.encode() if isinstance(d, str) else d for p, d in files.items()}

    def names(self, folder: str = "") -> frozenset[str]:
        """See `Snapshot`."""
        prefix = f"{folder.rstrip('/')}/" if folder else ""
        found = set()
        for path in self._files:
            if path.startswith(prefix):
                head, slash, _ = path[len(prefix) :].partition("/")
                if head:
                    found.add(head + slash)
        return frozenset(found)

    def data(self, path: str) -> bytes | None:
        """See `Snapshot`."""
        return self._files.get(path)

    def text(self, path: str) -> str | None:
        """See `Snapshot`."""
        data = self.data(path)
        return None if data is None else data.decode(errors="replace")

    def json(self, path: str) -> object:
        """See `Snapshot`."""
        return parse_json(self.data(path))

    def digest(self, path: str) -> str | None:
        """See `Snapshot`."""
        data = self.data(path)
        return None if data is None else digest(data)

    def mtime(self, path: str) -> float | None:
        """See `Snapshot`."""
        return 0.0 if path in self._files or self.names(path) else None

    def exists(self, path: str) -> bool:
        """See `Snapshot`."""
        return path in self._files
