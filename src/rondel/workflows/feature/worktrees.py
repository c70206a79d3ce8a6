"""A feature's worktree: made on request, removed at the end, never with work in it."""

from __future__ import annotations

from pathlib import Path

from rondel.errors import RondelError
from rondel.model.workflow import Look
from rondel.workflows.feature import place


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
    """The worktree is gone; its branch stays. One that is gone already will do."""
    if Path(path).is_dir():
        look.git("worktree", "remove", path)
    else:
        look.git("worktree", "prune")
