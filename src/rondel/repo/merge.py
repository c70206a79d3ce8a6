"""Merging a branch into one that is checked out: in a worktree of ours first, then all of it at once."""

from __future__ import annotations

from pathlib import Path

from rondel.errors import GitError
from rondel.model.refs import END
from rondel.repo.integrate import TRIES_MAX, Conflict, advance
from rondel.repo.worktrees import Worktrees


def merge(trees: Worktrees, path: Path, branch: str, into: str, message: str) -> str | Conflict:
    """`into` holds what `branch` holds, as a merge commit; its id. The worktree at `path` is for this alone.

    Whatever comes of it but a commit, nothing has changed.
    """
    ref, target = f"refs/heads/{branch}", f"refs/heads/{into}"
    for _ in range(TRIES_MAX):
        tip = trees.commit_of(target)
        if trees.git.run("merge-base", "--is-ancestor", END, ref, tip).ok:
            return tip
        merged = _merged(trees, path, ref, tip, message)
        if isinstance(merged, Conflict) or advance(trees, into, tip, merged):
            return merged
    raise GitError(f"{into!r} moved again and again while {branch} was merged into it; try again later")


def _merged(trees: Worktrees, path: Path, ref: str, tip: str, message: str) -> str | Conflict:
    with trees.tree_locked(path):
        mark = trees.add(path, "", "merge", tip)
        try:
            git = trees.in_tree(path, mark)
            done = git.run("merge", "--no-ff", "--no-edit", "-m", message, END, ref)
            files = git.names("diff", "--name-only", "--diff-filter=U", "-z") if not done.ok else ()
            if not done.ok and not files:
                raise GitError(f"git merge failed: {done.words}")
            return Conflict(files) if files else trees.head(mark)
        finally:
            trees.drop(path)
