"""Integration: an edit goes on top of its target, or nothing has happened.

The replay and the checks happen in the action's own worktree. Only then does the target
move, in one step, and only if it is still where it was. A target that is checked out in the
person's own tree is moved there by a fast-forward, which git refuses rather than touch
uncommitted work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rondel.agents.edits import Commit, changed, newest
from rondel.agents.git import Git, Result
from rondel.agents.worktrees import Mark, Worktrees
from rondel.errors import GitError

TRIES_MAX = 5
BUSY_S = 5.0


@dataclass(frozen=True)
class Conflict:
    """The edit does not go on top of its target: the files that do not merge."""

    files: tuple[str, ...]


@dataclass(frozen=True)
class ChecksFailed:
    """The edit goes on top, and the checks fail there: what they said."""

    output: str


def integrate(
    trees: Worktrees, path: Path, mark: Mark, commit: str, target: str, complaint: Callable[[], str | None]
) -> Commit | Conflict | ChecksFailed:
    """Put a worktree's `commit` on top of `target`; `complaint` runs the checks there.

    The caller holds the lock. Whatever comes of it but a Commit, or an error: the worktree
    is back at its commit, and nothing has moved. Until it is back, its mark says that what is
    in it is not the agent's.
    """
    mark = trees.save(path, replace(mark, target=target, integrating=True))
    try:
        result = _place(trees, path, mark, commit, target, complaint)
    except BaseException:
        _go_back(trees, path, mark, commit)
        raise
    if isinstance(result, Commit):
        trees.save(path, replace(mark, commit=result.id, integrating=False))
    else:
        _go_back(trees, path, mark, commit)
    return result


def _go_back(trees: Worktrees, path: Path, mark: Mark, commit: str) -> None:
    """The worktree holds the edit again, and then its mark says so."""
    with trees.tree_locked(path):
        trees.go_to(trees.in_tree(path, mark), mark, commit)
    trees.save(path, replace(mark, integrating=False))


def _place(
    trees: Worktrees, path: Path, mark: Mark, commit: str, target: str, complaint: Callable[[], str | None]
) -> Commit | Conflict | ChecksFailed:
    """Replay, check and advance, again when the target moved meanwhile."""
    git = trees.in_tree(path, mark)
    for _ in range(TRIES_MAX):
        tip = _tip(trees, target, mark)
        with trees.tree_locked(path):
            placed = _replay(trees, git, mark, commit, tip)
        if isinstance(placed, Conflict):
            return placed
        said = complaint()
        if said is not None:
            return ChecksFailed(said)
        if _advance(trees, mark, target, tip, placed):
            return Commit(placed, changed(trees.git, tip, placed), target)
    raise GitError(f"{target!r} moved again and again while the edit was put on top; try again later")


def _tip(trees: Worktrees, target: str, mark: Mark) -> str:
    """Where the target is. One that was deleted is made again: at what the session last did, wherever it is.

    Dependent work needs what was done before it; where that is on no branch, where the edit began.
    """
    ref = f"refs/heads/{target}"
    found = trees.tip(ref)
    if found is None:
        made = trees.git.run("branch", "--no-track", target, newest(trees, mark.session) or mark.base)
        found = trees.tip(ref)
        if found is None:
            raise GitError(f"there is no branch {target!r} in {trees.repo}, nor can it be: {made.words}")
    return found


def _replay(trees: Worktrees, git: Git, mark: Mark, commit: str, tip: str) -> str | Conflict:
    """The commit on top of `tip`, in the worktree."""
    if git("rev-parse", f"{commit}^") == tip:
        trees.go_to(git, mark, commit)
        return commit
    trees.go_to(git, mark, tip)
    picked = git.run("cherry-pick", "--allow-empty", "--keep-redundant-commits", commit)
    if picked.ok:
        return trees.head(mark)
    files = git.names("diff", "--name-only", "--diff-filter=U", "-z")
    if not files:
        raise GitError(f"the edit cannot be put on top of {tip[:12]}: {picked.words}")
    return Conflict(files)


def _advance(trees: Worktrees, mark: Mark, target: str, tip: str, new: str) -> bool:
    """Move `target` from `tip` to `new`; False when it is not at `tip` any more."""
    git, ref = trees.git, f"refs/heads/{target}"
    where = git("for-each-ref", "--format=%(worktreepath)", ref)
    if not where or not Path(where).exists():
        moved = git.run("update-ref", "-m", "rondel", ref, new, tip)
    else:
        moved = _fast_forward(Git(Path(where)), ref, new)
    now = _tip(trees, target, mark)
    if now == new or now != tip:
        return now == new
    if not where:
        raise GitError(f"{target!r} cannot be moved forward: {moved.words}")
    raise GitError(
        f"{target!r} is checked out in {where} and cannot be moved forward there: {moved.words}\n"
        "Commit your changes or put them aside (git stash), then go on."
    )


def _fast_forward(git: Git, ref: str, new: str) -> Result:
    """In the person's own tree; waits a little while they use git themselves."""
    deadline = time.monotonic() + BUSY_S
    while True:
        head = git.run("symbolic-ref", "--quiet", "HEAD")
        if head.out.strip() != ref:
            return replace(head, status=1, err="git is in the middle of something there (git status)")
        moved = git.run("merge", "--ff-only", "--quiet", new)
        if moved.ok or "index.lock" not in moved.err or time.monotonic() > deadline:
            return moved
        time.sleep(0.1)
