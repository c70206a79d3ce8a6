"""Places on the PATH that lie in the repository: what it brings, and what the person made there."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from rondel.errors import GitError
from rondel.repo.git import Git


def without_brought(places: Sequence[str], inside: Collection[str], root: str) -> list[str]:
    """The places on the PATH without those of `inside` that hold something of the repository's.

    A virtual environment that the person made, and no clone brings, is theirs. From here on not even git
    is taken from one of the others.
    """
    os.environ["PATH"] = os.pathsep.join(place for place in places if place not in inside) or os.defpath
    top = Path(root)
    git = Git(top)
    return [place for place in places if place not in inside or not _is_brought(Path(place), top, git)]


def _is_brought(place: Path, root: Path, git: Git) -> bool:
    """Whether git has something there, or a link that leads there. Where it cannot say, it may be so."""
    try:
        return any(
            _is_nested(path, root) or _is_tracked(path, root, git) for path in _on_the_way(place, root)
        )
    except GitError:
        return True


def _on_the_way(place: Path, root: Path) -> Iterator[Path]:
    """Where a place is in the repository, and the links there that lead to it."""
    links = (Path(os.path.realpath(p.parent), p.name) for p in (place, *place.parents) if p.is_symlink())
    ends = (*links, Path(os.path.realpath(place)))
    yield from (path for path in ends if path.is_relative_to(root))


def _is_tracked(path: Path, root: Path, git: Git) -> bool:
    name = path.relative_to(root)
    return bool(git("ls-files", "-z", "--", f":(top,literal){name}"))


def _is_nested(path: Path, root: Path) -> bool:
    """Whether it is in a repository inside, such as a submodule: git says nothing of what is in there."""
    above = (folder for folder in (path, *path.parents) if folder.is_relative_to(root) and folder != root)
    return any(os.path.lexists(folder / ".git") for folder in above)
