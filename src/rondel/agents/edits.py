"""Edits: what changed in a worktree, as one commit that is found again by its trailer."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from rondel.agents.git import Git
from rondel.agents.worktrees import Mark, Worktrees
from rondel.errors import GitError
from rondel.model.digests import digest
from rondel.model.names import slug

TRAILER = "Rondel-Action"
MESSAGE_MAX = 5_000
_VALUE = f"%(trailers:key={TRAILER},valueonly,unfold)"


@dataclass(frozen=True)
class Commit:
    """An edit: the commit that holds it, the files it touches, the branch it is on."""

    id: str
    changed: tuple[str, ...]
    branch: str


def value_of(session: str, action: str) -> str:
    """What the trailer says, on one line."""
    return " ".join(f"{session}/{action}".split())


def branch_of(session: str, action: str) -> str:
    """The branch of an action's own; no two actions share one."""
    mark = digest(f"{session}/{action}")[:8]
    return (
        f"rondel/{slug(session, fallback='session')}/{slug(action, length_max=40, fallback='action')}-{mark}"
    )


def commit_all(
    trees: Worktrees, path: Path, mark: Mark, session: str, action: str, message: str
) -> Commit | None:
    """Everything that differs from the base, as one commit; None when nothing does.

    The same changes give the same commit again. Commits that the agent made itself become
    part of it, and a branch that it made stays where it is.
    """
    git = trees.in_tree(path, mark)
    if trees.is_at(git, mark, mark.base, submodules=True):
        return None
    trees.settle(git, mark)
    git(*trees.excludes(mark), "add", "--all")
    names = _staged(git, mark.base)
    if mark.hidden and any(f"{name}/".startswith(f"{mark.hidden}/") for name in names):
        git("reset", "--quiet", mark.base, "--", f":(literal){mark.hidden}")
        names = _staged(git, mark.base)
    if not names:
        return None
    tree = git("write-tree")
    branch, value = branch_of(session, action), value_of(session, action)
    commit = _same(trees, branch, mark.base, tree, value)
    if commit is None:
        text = f"{_message(message)}\n\n{TRAILER}: {value}\n"
        commit = git("commit-tree", tree, "-p", mark.base, "-F", "-", stdin=text)
    moves = f"option no-deref\nupdate HEAD {commit}\nupdate refs/heads/{branch} {commit}\n"
    git("update-ref", "--stdin", stdin=moves)
    trees.save(path, replace(mark, commit=commit, branch=branch, trailer=value, integrating=False))
    return Commit(commit, names, branch)


def _same(trees: Worktrees, branch: str, base: str, tree: str, value: str) -> str | None:
    """The commit that an earlier call made of the same changes."""
    tip = trees.tip(f"refs/heads/{branch}")
    if not tip:
        return None
    made = trees.git("show", "--no-patch", f"--format=%P%n%T%n{_VALUE}", tip).strip()
    return tip if made.split("\n", 2) == [base, tree, value] else None


def _message(message: str) -> str:
    """A commit message that cannot bring a trailer of ours."""
    lines = [line.rstrip() for line in message[:MESSAGE_MAX].replace("\0", "").splitlines()]
    kept = [line for line in lines if not re.match(rf"\s*{TRAILER}\s*:", line, re.IGNORECASE)]
    return "\n".join(kept).strip() or "An edit"


def _staged(git: Git, base: str) -> tuple[str, ...]:
    """The files in which the index differs from `base`.

    A repository inside the worktree would become a bare pointer, and its files would be lost.
    """
    words = git("diff-index", "--cached", "--raw", "-z", "--no-renames", base).split("\0")
    for entry, name in zip(words[::2], words[1::2], strict=False):
        before, after = entry.split()[:2]
        if after == "160000" and before != ":160000":
            raise GitError(
                f"{name!r} is a git repository of its own; remove its .git so that its files count"
            )
    return tuple(words[1::2])


def changed(git: Git, before: str, after: str) -> tuple[str, ...]:
    """The files in which two commits differ."""
    return git.names("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after)
