"""A feature's worktree: made on request, removed at the end, never with work in it."""

from __future__ import annotations

import shutil
from pathlib import Path

from rondel.errors import GitError, RondelError
from rondel.model.workflow import Look
from rondel.workflows.feature import place

GOING = ".removed"  # the end of a worktree's name while its files are removed


def require_commit(look: Look) -> str:
    """The commit that a worktree begins at."""
    commit = look.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=False).strip()
    if not commit:
        raise RondelError("the repository has no commit yet; commit something before making a worktree")
    return commit


def add(look: Look, feature: str, branch: str) -> str:
    """A worktree beside the repository with a new branch at HEAD; its path as it is stored."""
    commit = require_commit(look)
    root = Path(look.root)
    path = str(root.parent / f"{root.name}-{feature}")
    look.git("worktree", "add", "--quiet", "-b", branch, path, commit)
    return place.relative(look.root, path)


def dirty(look: Look, path: str, *, untracked: bool) -> list[str]:
    """What is changed and not committed in a checkout; features' own files do not count."""
    which = "normal" if untracked else "no"
    out = look.git("-C", path, "status", "--porcelain", "-z", f"--untracked-files={which}", "--no-renames")
    names = [entry[3:] for entry in out.split("\0") if entry[3:]]
    return [n for n in names if not n.startswith(("docs/features/", ".rondel/"))]


def remove(look: Look, path: str) -> None:
    """The worktree is gone; its branch stays. Of one that is half gone the rest goes.

    It is moved away, in one step, before the first of its files is removed: what a death leaves is
    no checkout in which files are missing. Only this worktree is taken from git's list: one of a
    person's own may be on a disk that is not mounted now.
    """
    going = f"{path}{GOING}"
    _clear(look, going)
    if Path(path).is_dir():
        changed = look.git("-C", path, "status", "--porcelain", "--untracked-files=normal").splitlines()
        if changed:
            raise GitError(f"the worktree {path} has changes that are not committed: {changed[0][3:]}")
        look.git("worktree", "move", path, going)  # git refuses it where it must not go
        _clear(look, going)
    look.git("worktree", "remove", "--force", path, check=False)  # where somebody removed its folder


def _clear(look: Look, going: str) -> None:
    """Remove what a death left half removed; a folder that git does not know is somebody's own."""
    if Path(going).exists():
        if f"worktree {going}" not in look.git("worktree", "list", "--porcelain").splitlines():
            raise GitError(f"{going} is in the way and is no worktree of ours; move it away, then try again")
        shutil.rmtree(going, ignore_errors=True)
    look.git("worktree", "remove", "--force", going, check=False)
