"""A feature's worktree: made on request, removed at the end, never with work in it."""

from __future__ import annotations

import os
from pathlib import Path

from rondel import paths
from rondel.errors import GitError, RondelError
from rondel.model.refs import END
from rondel.model.workflow import RepoReader
from rondel.workflows.feature import place

GOING = ".removed"  # the end of a worktree's name while its files are removed
MADE = "rondel-feature"  # in git's own folder for a worktree: it is one that Rondel made


def require_commit(look: RepoReader) -> str:
    """The commit that a worktree begins at."""
    commit = look.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=False).strip()
    if not commit:
        raise RondelError("the repository has no commit yet; commit something before making a worktree")
    return commit


def add(look: RepoReader, feature: str, branch: str) -> str:
    """A worktree beside the repository with a new branch at HEAD; its path as it is stored."""
    commit = require_commit(look)
    root = Path(look.root)
    path = str(root.parent / f"{root.name}-{feature}")
    look.git("worktree", "add", "--quiet", "-b", branch, END, path, commit)
    git_dir = _git_dir(look, path)
    if git_dir is not None:
        (git_dir / MADE).write_text(f"{feature}\n", encoding="utf-8")
    return place.relative(look.root, path)


def is_ours(look: RepoReader, path: str) -> bool:
    """Whether Rondel made the worktree at a path, or the rest of one; any other is somebody's own."""
    found = [_git_dir(look, spot) for spot in (path, f"{path}{GOING}")]
    return any(git_dir is not None and (git_dir / MADE).is_file() for git_dir in found)


def _git_dir(look: RepoReader, path: str) -> Path | None:
    """Git's own folder for a linked worktree, also when its files are gone."""
    common = Path(look.root, look.git("rev-parse", "--git-common-dir").strip())
    for file in common.glob("worktrees/*/gitdir"):
        known = file.read_text(encoding="utf-8", errors="replace").strip()
        if os.path.realpath(known) == os.path.realpath(f"{path}/.git"):
            return file.parent
    return None


def dirty(look: RepoReader, path: str, *, untracked: bool) -> list[str]:
    """What is changed and not committed in a checkout; features' own files do not count."""
    which = "normal" if untracked else "no"
    out = look.git_in(path, "status", "--porcelain", "-z", f"--untracked-files={which}", "--no-renames")
    names = [entry[3:] for entry in out.split("\0") if entry[3:]]
    return [n for n in names if not n.startswith(("docs/features/", ".rondel/"))]


def remove(look: RepoReader, path: str) -> None:
    """The worktree is gone; its branch stays. Of one that is half gone the rest goes.

    It is moved away, in one step, before the first of its files is removed: what a death leaves is
    no checkout in which files are missing. Only this worktree is taken from git's list: one of a
    person's own may be on a disk that is not mounted now.
    """
    going = f"{path}{GOING}"
    if not is_ours(look, path):
        if Path(path).exists():
            raise GitError(f"Rondel did not make the worktree {path}; it stays")
        return
    _clear(look, going)
    if Path(path).is_dir():
        changed = look.git_in(path, "status", "--porcelain", "--untracked-files=normal").splitlines()
        if changed:
            raise GitError(f"the worktree {path} has changes that are not committed: {changed[0][3:]}")
        look.git("worktree", "move", END, path, going)  # git refuses it where it must not go
        _clear(look, going)
    look.git("worktree", "remove", "--force", END, path, check=False)  # where somebody removed its folder


def _clear(look: RepoReader, going: str) -> None:
    """Remove what a death left half removed; a folder that git does not know is somebody's own."""
    if Path(going).exists():
        git_dir = _git_dir(look, going)
        if git_dir is None or not (git_dir / MADE).is_file():
            raise GitError(f"{going} is in the way and is no worktree of ours; move it away, then try again")
        paths.remove_tree(going, ignore_errors=True)
    look.git("worktree", "remove", "--force", END, going, check=False)
