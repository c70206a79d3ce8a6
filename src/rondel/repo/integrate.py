"""Integration: an edit goes on top of its target, or nothing has happened.

The replay and the checks happen in the action's own worktree. Only then does the target
move, in one step, and only if it is still where it was. A target that is checked out in the
person's own tree is moved together with its files (`rondel.repo.moves`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rondel.errors import GitError
from rondel.model.refs import END
from rondel.model.trouble import machine
from rondel.repo import clone, reflocks
from rondel.repo.branches import done_ref, make_again
from rondel.repo.checkout import Move
from rondel.repo.edits import Commit, changed
from rondel.repo.git import Git, Result
from rondel.repo.moves import move
from rondel.repo.worktrees import Mark, Worktrees

TRIES_MAX = 5
GOING_TO = "rondel-going-to"  # in git's folder: the commit that a target was last moved to, or was to be


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
    # Noted first: what a death leaves in the worktree from here on is our replay, not the agent's edit.
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
        clone.follow(trees, path, mark)
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
            clone.follow(trees, path, mark)  # the checks ask git, too
        if isinstance(placed, Conflict):
            return placed
        # The checks run before the target moves: nobody ever sees it at a commit that fails them.
        said = complaint()
        if said is not None:
            return ChecksFailed(said)
        if advance(trees, target, tip, placed, done_ref(mark.session)):
            return Commit(placed, changed(trees.git, tip, placed), target)
    raise GitError(f"{target!r} moved again and again while the edit was put on top; try again later")


def _tip(trees: Worktrees, target: str, mark: Mark) -> str:
    """Where the target is. One that was deleted is made again: at what the session last did, wherever it is.

    Dependent work needs what was done before it; where nothing was, where the edit began.
    """
    return (
        trees.tip(f"refs/heads/{target}") or make_again(trees, mark.session, target, mark.base) or mark.base
    )


def _replay(trees: Worktrees, git: Git, mark: Mark, commit: str, tip: str) -> str | Conflict:
    """The commit on top of `tip`, in the worktree."""
    if git("rev-parse", "--verify", END, f"{commit}^") == tip:
        trees.go_to(git, mark, commit)
        return commit

    def pick() -> Result:
        # Each try begins at the tip: one that failed may have left its commit there already.
        trees.go_to(git, mark, tip)
        # An edit that changes nothing there (the target has it already) is a commit all the same: by its
        # trailer the action is found to be done.
        return git.run("cherry-pick", "--allow-empty", "--keep-redundant-commits", END, commit)

    picked = reflocks.try_again(pick, lambda done: done.err, git.folder, commit)
    return _head(trees, git, mark, picked, f"the edit cannot be put on top of {tip[:12]}")


def _head(trees: Worktrees, git: Git, mark: Mark, done: Result, failed: str) -> str | Conflict:
    """The commit that git has made in a worktree, or the files that do not merge."""
    if done.ok:
        return trees.head(mark)
    files = git.names("diff", "--name-only", "--diff-filter=U", "-z")
    if not files:
        raise GitError(f"{failed}: {done.message}")
    return Conflict(files)


def advance(trees: Worktrees, target: str, tip: str, new: str, done: str = "") -> bool:
    """Move `target` from `tip` to `new`, and the ref `done` with it; False when it is elsewhere now."""
    git, ref = trees.git, f"refs/heads/{target}"
    also = f"update {done} {new}\n" if done else ""
    with machine("write", trees.common / GOING_TO):
        _forget_locks(trees, [name for name in (ref, done) if name], new)
    where = git("for-each-ref", "--format=%(worktreepath)", END, ref)
    failed: GitError | None = None
    try:
        if where and Path(where).exists():
            move(trees, Path(where), Move(ref, tip, new), also)
        else:
            git("update-ref", "-m", "rondel", "--stdin", stdin=f"update {ref} {new} {tip}\n{also}")
    except GitError as e:
        failed = e
    # Where the branch is decides, not what git said: it may have failed after the branch had moved.
    now = trees.tip(ref)
    if now == tip and failed is not None:
        raise failed
    return now == new


def _forget_locks(trees: Worktrees, refs: list[str], new: str) -> None:
    """Remove what a dead git of ours left locked on its way to `new`, or to where the last one was going.

    We have the lock of integrations, which a git of ours keeps while it lives. The same edit is another
    commit each time it is put on top of something, so the way is noted.
    """
    note = trees.common / GOING_TO
    last = note.read_text(encoding="utf-8", errors="replace").strip() if note.exists() else ""
    reflocks.forget([trees.common / f"{ref}.lock" for ref in refs], {new, last})
    note.write_text(f"{new}\n", encoding="utf-8")


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
            return _head(trees, git, mark, done, "git merge failed")
        finally:
            trees.drop(path)
