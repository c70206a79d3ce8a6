"""Attributes: how files are converted is said by the commit that a change is based on, not by the change.

Not every git can be told of which commit the attributes are: it takes those of the working tree. So it works
in a folder that holds the attributes' files of that commit and nothing else.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

from rondel import paths
from rondel.errors import GitError
from rondel.model.refs import END
from rondel.model.trouble import machine
from rondel.repo.git import Git

NAME = ".gitattributes"
FILE_MAX = 1_000_000_000
_CONVERTING = ("text", "eol", "crlf", "working-tree-encoding", "ident")
_FILTER = "filter"
_FILES = (b"100644", b"100755")


def as_at(commit: str, git_dir: Path, folder: Path, *, by_agents: bool = False) -> Git:
    """Git with the attributes and an index of that commit, working in an empty folder."""
    tree = folder / "tree"
    with machine("write", tree):
        paths.make_folders(tree)
    git = Git(tree, git_dir, folder / "index", by_agents=by_agents)
    git("read-tree", END, commit)
    names = git.raw("ls-files", "-z", "--", f":(glob)**/{NAME}")
    git.raw("checkout-index", "-z", "--stdin", stdin=names)
    return git


def is_among(names: Iterable[str]) -> bool:
    """Whether one of these files says how others are converted."""
    return any(posixpath.basename(name) == NAME for name in names)


def stage_as_at(commit: str, git: Git, git_dir: Path) -> None:
    """Convert what is in a worktree's index as that commit says, where the worktree says something else.

    A file with a filter is left as it is: whether that runs does not follow from attributes alone.
    """
    entries = _entries(git.raw("ls-files", "-z", "--stage"))
    with TemporaryDirectory(prefix="rondel-attributes-") as folder:
        there = as_at(commit, git_dir, Path(folder).resolve(), by_agents=git.by_agents)
        now, then = _attributes(git, entries), _attributes(there, entries)
        names = [n for n in entries if now[n] != then[n] and _FILTER not in {*now[n], *then[n]}]
        theirs = (name for name in names if posixpath.basename(name) != NAME.encode())
        names = [name for name in theirs if _copy(git, there, name)]
        if not names:
            return
        there.raw("update-index", "--add", "--replace", "-z", "--stdin", stdin=_joined(names))
        converted = _entries(there.raw("ls-files", "-z", "--stage"))
        lines = (entries[name][0] + b" " + converted[name][1] + b"\t" + name for name in names)
        git.raw("update-index", "-z", "--index-info", stdin=_joined(lines))


def _copy(git: Git, there: Git, name: bytes) -> bool:
    """Copy a file; whether it is there. Its name may have been that of a folder."""
    place = there.folder / os.fsdecode(name)
    try:
        data = paths.read(git.folder / os.fsdecode(name), FILE_MAX)
    except FileNotFoundError:
        return False
    except OSError as e:
        raise GitError(f"{os.fsdecode(name)!r} cannot be read: {e.strerror}") from e
    with machine("write", place):
        if paths.is_folder(place):
            paths.remove_tree(place)
        paths.make_folders(place.parent)
        paths.write(place, data)
    return True


def _joined(words: Iterable[bytes]) -> bytes:
    return b"".join(word + b"\0" for word in words)


def _entries(listed: bytes) -> dict[bytes, tuple[bytes, bytes]]:
    """Of each file in an index its mode and its content."""
    found = (entry.partition(b"\t")[::2] for entry in listed.split(b"\0") if entry)
    fields = ((head.split(b" "), name) for head, name in found)
    return {name: (words[0], words[1]) for words, name in fields if words[0] in _FILES}


def _attributes(git: Git, names: Iterable[bytes]) -> dict[bytes, dict[str, bytes]]:
    """The attributes that each of these files has, of those that convert it."""
    out = git.raw("check-attr", "-z", "--stdin", *_CONVERTING, _FILTER, stdin=_joined(names)).split(b"\0")
    found: dict[bytes, dict[str, bytes]] = {name: {} for name in names}
    for name, attribute, value in zip(out[::3], out[1::3], out[2::3], strict=False):
        if value != b"unspecified" and (attribute.decode(), value) != (_FILTER, b"unset"):
            found[name][attribute.decode()] = value
    return found
