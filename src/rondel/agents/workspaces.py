"""Workspaces: where actions work, git worktrees of their own; the signatures that the engine calls."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rondel.errors import RondelError


@dataclass(frozen=True)
class Commit:
    """An edit as one commit, and the files it touches."""

    id: str
    changed: tuple[str, ...]


@dataclass(frozen=True)
class Conflict:
    """The edit does not go on top of its target; the files that do not merge."""

    files: tuple[str, ...]


@dataclass(frozen=True)
class ChecksFailed:
    """The edit goes on top of its target, but the checks fail there."""

    output: str


class Workspaces:
    """The working copies of one repository's sessions."""

    def __init__(self, repo: Path, root: Path) -> None:
        self._repo = repo
        self._root = root

    def read(self, base: str) -> Path:
        """A checkout of `base`, shared and thrown away."""
        raise RondelError(f"no checkout of {base} yet")

    def write(self, session: str, action: str, base: str, *, setup: str, keep: bool) -> Path:
        """A worktree of its own at `base`; with `keep`, the one that is there, as it is."""
        raise RondelError(f"no workspace for {session}/{action} at {base} yet ({setup=}, {keep=})")

    def commit(self, path: Path, session: str, action: str, title: str) -> Commit | None:
        """What was changed in a workspace as one commit with its trailer; None when nothing was."""
        raise RondelError(f"no commit of {path} for {session}/{action} ({title})")

    def find(self, session: str, action: str, target: str) -> Commit | None:
        """The commit of an edit that `target` already holds."""
        raise RondelError(f"no look for {session}/{action} on {target}")

    def integrate(self, path: Path, target: str, checks: str | None) -> Commit | Conflict | ChecksFailed:
        """Put a workspace's commit on top of a branch, run the checks there, move the branch forward."""
        raise RondelError(f"no integration of {path} into {target} ({checks=})")

    def remove(self, path: Path) -> None:
        """Remove a workspace whose edit was taken over."""
        raise RondelError(f"no removal of {path}")
