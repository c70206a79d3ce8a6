"""Submodules in a worktree: what a commit of the repository around them would not hold, and why."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from rondel.model.refs import END
from rondel.repo.git import Git

POINTER = "160000"  # the mode of an entry that only names a commit of another repository


@dataclass(frozen=True)
class Entry:
    """A file that differs."""

    before: str  # its mode
    after: str
    id: str  # of what it is after
    name: str


def differing(git: Git, *words: str) -> list[Entry]:
    """What a command such as `diff-index` finds to differ."""
    out = git(words[0], "--raw", "-z", "--no-renames", "--no-abbrev", *words[1:]).split("\0")
    pairs = zip(out[::2], out[1::2], strict=False)
    heads = ((head.removeprefix(":").split(" "), name) for head, name in pairs)  # ":100644 160000 id id M"
    return [Entry(fields[0], fields[1], fields[3], name) for fields, name in heads]


def pointers(git: Git) -> tuple[str, ...]:
    """The paths that only name a commit of another repository: submodules, and what an agent made one."""
    entries = git.raw("ls-files", "-z", "--stage").split(b"\0")
    found = (entry.partition(b"\t")[2] for entry in entries if entry.startswith(POINTER.encode()))
    return tuple(os.fsdecode(name) for name in found)


def uncommitted(path: Path, git: Git) -> str | None:
    """What is in a submodule of a worktree and in no commit there; `git add` passes over it."""
    if not (path / ".gitmodules").exists():
        return None
    for name in pointers(git):
        place = path / name
        if place.is_symlink() or not place.is_dir():
            continue
        if not (place / ".git").exists() and any(place.iterdir()):
            return (
                f"{name!r} is a submodule without its repository, and no commit holds the files in it; move "
                "them elsewhere, or commit them in the submodule: git submodule update --init"
            )
        if (place / ".git").exists() and _has_changes(place):
            return (
                f"files in the submodule {name!r} are changed or new, and a commit of this repository does "
                f"not hold them; commit them there: cd {shlex.quote(str(place))}"
            )
    return None


def _has_changes(place: Path) -> bool:
    """Whether something is not committed there. A git of its own looks: it has a configuration of its own."""
    git = Git(place, by_agents=True)
    status = git.run("status", "--porcelain", "-z", "--untracked-files=normal")
    return not status.ok or bool(status.out) or uncommitted(place, git) is not None


def unkept(repo: Path, path: Path, entry: Entry) -> str | None:
    """Why a submodule must not be moved to a commit: nothing but this worktree has it."""
    own, place = repo / entry.name, path / entry.name
    has_own = (own / ".git").exists()
    if has_own and Git(own).run("cat-file", "-e", END, f"{entry.id}^{{commit}}").ok:
        return None
    if not (place / ".git").exists():  # it was not made here
        return None
    if Git(place, by_agents=True).run("branch", "--remotes", f"--contains={entry.id}").out.strip():
        return None
    root, name, here = (shlex.quote(str(part)) for part in (repo, entry.name, place))
    first = "" if has_own else f"git -C {root} submodule update --init -- {name} && "
    ref = f"HEAD:refs/heads/rondel-{entry.id[:12]}"
    return (
        f"the submodule {entry.name!r} is moved to a commit that only this working copy has; push it from "
        f"there, or take it into your own: {first}git -C {shlex.quote(str(own))} fetch {here} {ref}"
    )
