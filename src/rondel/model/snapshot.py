"""A snapshot: the files of a folder as a workflow may see them. Reading only, and total.

Whatever is not there, is not text or is not JSON gives None, never an exception. Paths are
relative, with `/`; `names` lists one folder; nothing is read before it is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from typing_extensions import override

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
        data = self.data(path)
        return None if data is None else data.decode(errors="replace")

    def json(self, path: str) -> object:
        """The file as JSON; None when there is none or it does not parse. Not to be changed."""
        return parse_json(self.data(path))

    def digest(self, path: str) -> str | None:
        """The SHA-256 of the file in hex."""
        data = self.data(path)
        return None if data is None else digest(data)

    def mtime(self, path: str) -> float | None:
        """When the file or folder last changed, in seconds since the epoch."""
        ...

    def exists(self, path: str) -> bool:
        """Whether there is a regular file."""
        return self.data(path) is not None


class FrozenSnapshot(Snapshot):
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

    @override
    def data(self, path: str) -> bytes | None:
        return self._files.get(path)

    @override
    def mtime(self, path: str) -> float | None:
        return 0.0 if path in self._files or self.names(path) else None
