"""Focus: whether two tasks would work in the same places at once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from rondel.errors import UnsafePath
from rondel.model.names import inside


class Occupied:
    """The places that are taken. A folder takes everything below it, and `.` takes all."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._above: set[str] = set()

    def take(self, paths: Iterable[str]) -> None:
        """Take the places of a task."""
        for path in _plain(paths):
            self._taken.add(path)
            self._above.update(_folders(path))

    def overlaps(self, paths: Iterable[str]) -> bool:
        """Whether one of these places is taken, or has one that is taken inside."""
        return any(
            path in self._taken or path in self._above or any(f in self._taken for f in _folders(path))
            for path in _plain(paths)
        )


def _plain(paths: Iterable[str]) -> Iterable[str]:
    """The paths in one spelling; what is no path of the project takes nothing."""
    return (plain for path in paths if (plain := _spelled(path)) is not None)


@lru_cache(maxsize=10_000)
def _spelled(path: str) -> str | None:
    """A path in one spelling; None for what is no path of the project."""
    short = path.removeprefix("./").rstrip("/")
    if short in ("", "."):
        return ""
    try:
        return inside(short)
    except UnsafePath:
        return None


def _folders(path: str) -> Iterable[str]:
    """The folders around a path, up to the whole project."""
    while path:
        path = path.rpartition("/")[0]
        yield path
