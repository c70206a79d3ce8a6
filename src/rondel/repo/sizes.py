"""Sizes: how much an edit holds, told by the file system before git reads any of it.

Git reads whatever it adds, and a file takes an agent one call to make, of any size.
"""

from __future__ import annotations

import os
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rondel import paths
from rondel.model.texts import first_few
from rondel.repo.git import Git

SHOWN_MAX = 10
MB = 1_000_000
_DEBUG = re.compile(r"  ctime: .*?\n  size: (\d+)\t[^\n]*\n", re.DOTALL)


@dataclass(frozen=True)
class EditMax:
    """The most that an edit may be: bytes of new and changed files, and new files."""

    bytes: int = 100 * MB
    files: int = 50_000


def excess(path: Path, git: Git, excludes: Sequence[str], added: Iterable[str], most: EditMax) -> str:
    """What is too much in a worktree, in words; empty where it is an edit.

    `added` are files that the agent added itself, also where git ignores them.
    """
    # Git lists what it has, and what is new, without a look at the files. `status` and the like read a file
    # whose size and time do not tell whether it changed, and git knows sizes up to 4 GB only.
    listed = git.paths(*excludes, "ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard")
    new = {entry[2:] for entry in listed if entry.startswith("?")} | set(added)
    if len(new) > most.files:
        return _too_many(path, new, most)
    sizes = _sizes(path, new.union(entry[2:] for entry in listed))
    if sum(sizes.values()) <= most.bytes:
        return ""
    before = _sizes_before(git)
    sizes = {name: size for name, size in sizes.items() if before.get(name) != size}
    return _too_large(path, sizes, most) if sum(sizes.values()) > most.bytes else ""


def _sizes(path: Path, names: Iterable[str]) -> dict[str, int]:
    """The files of these that are there, with their sizes. No folder on the way is a link."""
    folders = defaultdict[str, list[str]](list)
    for name in names:
        folders[name.rpartition("/")[0]].append(name)
    top, found = paths.settled(path), dict[str, int]()
    for folder, inside in folders.items():
        with suppress(OSError), paths.folder(f"{top}/{folder}") as fd:
            for name in inside:
                with suppress(OSError):
                    last = name.rpartition("/")[2]
                    found[name] = os.stat(last, dir_fd=fd, follow_symlinks=False).st_size
    return found


def _sizes_before(git: Git) -> dict[str, int]:
    """The sizes that the files of the index had when they were put there; those that are known."""
    found, smudged, name = dict[str, int](), list[str](), ""
    for piece in git.paths(
        "ls-files", "-z", "--cached", "--debug"
    ):  # what is said of a file follows its name
        said = _DEBUG.match(piece)
        if said and (size := int(said[1])):
            found[name] = size
        elif said and "\n" not in name:
            smudged.append(name)  # git forgets the size of what changed in the second of its index
        name = piece[said.end() :] if said else piece
    lines = "".join(f":{name}\n" for name in smudged)
    sizes = git("cat-file", "--batch-check=%(objectsize)", stdin=lines).splitlines() if lines else []
    return found | {n: int(size) for n, size in zip(smudged, sizes, strict=False) if size.isdigit()}


def _too_large(path: Path, sizes: Mapping[str, int], most: EditMax) -> str:
    largest = sorted(sizes, key=lambda name: -sizes[name])
    shown = [f"{name!r} ({sizes[name] / MB:,.0f} MB)" for name in largest if sizes[name] > most.bytes / 20]
    return (
        f"the new and changed files are {sum(sizes.values()) / MB:,.0f} MB, and {most.bytes / MB:,g} MB are "
        f"committed at the most: {first_few(shown or [repr(largest[0])], SHOWN_MAX)}. "
        f"{_advice(path, largest[0], 'rm', 'edit_mb_max')}"
    )


def _too_many(path: Path, names: Collection[str], most: EditMax) -> str:
    parts = Counter(f"{name.partition('/')[0]}/" if "/" in name else "." for name in names)
    (place, inside), *_ = parts.most_common(1)
    return (
        f"there are {len(names):,} new files, and {most.files:,} are committed at the most: "
        f"{inside:,} are in {place!r}. {_advice(path, place, 'rm -r', 'edit_files_max')}"
    )


def _advice(path: Path, name: str, remove: str, setting: str) -> str:
    away = "" if name == "." else f" (`{remove} {shlex.quote(str(path / name))}`)"
    return (
        f"Remove what is no part of the edit{away} or have git ignore it; "
        f"if it is to be committed, raise [limits] {setting}"
    )
