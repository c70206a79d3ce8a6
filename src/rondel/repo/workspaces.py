"""Workspaces: where agents work in a repository, without ever touching the person's own tree.

Readers of one commit share a checkout. An editing action has a worktree of its own, whose
changes become one commit with the trailer `Rondel-Action: <session id>/<action>`; `find` looks
for it before anything is asked twice. What an earlier try left is kept under
`refs/rondel/kept/` before a worktree starts again.
"""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rondel.errors import GitError, RondelError
from rondel.model.names import digest, slug
from rondel.model.refs import END, is_branch
from rondel.model.texts import first_few
from rondel.model.trouble import NOT_RUN, no_command
from rondel.processes.leftovers import end_leftovers
from rondel.processes.shell import Ran, Shell
from rondel.repo import clone, edits, tampering
from rondel.repo.branches import Branches, Found, make_again
from rondel.repo.clone import disarm
from rondel.repo.edits import SHOWN_MAX
from rondel.repo.edits import Commit as Commit
from rondel.repo.edits import Unusable as Unusable
from rondel.repo.git import GitStopped
from rondel.repo.integrate import ChecksFailed as ChecksFailed
from rondel.repo.integrate import Conflict as Conflict
from rondel.repo.integrate import integrate, merge
from rondel.repo.moves import Restored, restore
from rondel.repo.sizes import EditMax
from rondel.repo.worktrees import ASIDE, Mark, Worktrees, read_only, writable
from rondel.sandbox.box import Box

KEPT = "refs/rondel/kept"
UNUSED_S = 86_400.0


class Workspaces:
    """The workspaces of one repository, below `root`. Its functions wait; call them in threads."""

    def __init__(
        self,
        repo: Path,
        root: Path,
        shell: Callable[[str, Path], Ran] | None = None,
        box: Box | None = None,
        most: EditMax | None = None,
        unedited: tuple[str, ...] = (),
    ) -> None:
        self._trees = Worktrees(repo, root, most, unedited)
        self._found = Found(self._trees)
        self.branches = Branches(self._trees)
        self._root = root
        self._own_shell = Shell(root / "shell", box)
        self._shell = shell or self._own_shell
        self._is_confined = box is not None

    def read(self, base: str) -> Path:
        """A checkout of `base` that everybody shares and nobody writes in; put right if somebody did."""
        commit = self._trees.commit_of(base)
        path = self._root / "read" / commit
        with self._trees.tree_locked(path):
            mark = self._trees.mark(path)
            if mark is None or not mark.ready:
                mark = self._trees.add(path, "", "", commit)
                clone.make(self._trees, path, mark)
                read_only(path)
                self._trees.save(path, replace(mark, ready=True))
                return path
            os.utime(self._trees.mark_file(path))
            git = self._trees.in_tree(path, mark)
            if not self._trees.is_at(git, mark, commit) or not clone.is_as_made(self._trees, path, mark):
                writable(path)
                self._trees.go_to(git, mark, commit)
                clone.make(self._trees, path, mark)
                read_only(path)
        return path

    def write(
        self,
        session: str,
        key: str,
        base: str,
        *,
        setup: str = "",
        keep: bool = False,
        hide: str = "",
        shared: bool = False,
    ) -> Path:
        """The worktree of an action, at `base`, set up.

        One that is there is used again when it belongs to the same action and is as it was
        at the start; with `keep` also as a cut-off try left it, for one that goes on in it.
        Nothing below `hide` (a path in it) is part of the edit. One that several
        actions share is not over when one of them is: see `sweep`.
        """
        commit = self._trees.commit_of(base)
        path = self._path(session, key)
        end_leftovers(self._own_shell.spool(path))  # a dead driver's set-up may still write in there
        with self._trees.tree_locked(path):
            mark = self._trees.mark(path)
            if mark is not None and mark.ready:
                if self._usable(path, mark, commit, keep=keep):
                    os.utime(self._trees.mark_file(path))
                    return path
                if not self._keep(path, mark):
                    # Git cannot hold it all (a repository inside, say): it may be the only copy, so it stays
                    # beside its place, for a person, whose own git is not to run what an agent wrote there.
                    disarm(self._trees, path, mark)
                    path.rename(path.with_name(f"{path.name}{ASIDE}{uuid.uuid4().hex[:8]}"))
            mark = replace(self._trees.add(path, session, key, commit), shared=shared, hidden=hide)
        if hide:
            self._trees.exclude(mark, [hide])
        clone.make(self._trees, path, mark)
        if setup:
            ran = self._shell(setup, path)
            if not ran.ok:
                raise RondelError(f"the set-up command {setup!r} failed in {path}:\n{ran.output}")
            # What the set-up made (a virtual environment, say) is no part of the edit.
            self._trees.exclude_what_is_new(self._trees.in_tree(path, mark), mark)
            clone.follow(self._trees, path, mark)
        self._trees.save(path, replace(mark, ready=True))
        return path

    def has(self, session: str, key: str) -> bool:
        """Whether the worktree of an action is there, with whatever a try has done in it."""
        mark = self._trees.mark(self._path(session, key))
        return mark is not None and mark.ready

    def place(self, session: str, key: str) -> Path | None:
        """The worktree of an action, if it is there."""
        path = self._path(session, key)
        return path if path.is_dir() else None

    def _path(self, session: str, key: str) -> Path:
        return self._root / "write" / f"{slug(key, length_max=40)}-{digest(f'{session}/{key}')[:12]}"

    def _usable(self, path: Path, mark: Mark, commit: str, *, keep: bool) -> bool:
        git = self._trees.in_tree(path, mark)
        if not keep:
            if mark.base != commit or not self._is_untouched(path, mark):
                return False
            clone.make(self._trees, path, mark)
            return True
        if mark.integrating and mark.commit is not None:
            self._trees.go_to(git, mark, mark.commit)
            self._trees.save(path, replace(mark, integrating=False))
            clone.follow(self._trees, path, mark)
        elif not clone.is_there(path):
            clone.make(self._trees, path, mark)
        return True

    def _is_untouched(self, path: Path, mark: Mark) -> bool:
        """Whether a worktree is as it was at its start, also in the folders of its submodules."""
        git = self._trees.in_tree(path, mark)
        return edits.unfit(self._trees, path, mark) is None and self._trees.is_at(git, mark, mark.base)

    def _keep(self, path: Path, mark: Mark) -> bool:
        """Before a worktree goes: a ref to whatever differs from its base. False: git cannot hold it all.

        In the middle of an integration its files are not what somebody made of them; its commit is.
        """
        kept = {mark.commit} if mark.commit else set()
        whole = True
        if not mark.integrating:
            try:
                kept.add(self._snapshot(path, mark))
            except GitStopped:  # which says nothing about what is there
                raise
            except GitError:
                whole = False
        for commit in kept - {mark.base}:
            self._trees.git("update-ref", END, f"{KEPT}/{path.name}/{commit[:12]}", commit)
        return whole

    def _snapshot(self, path: Path, mark: Mark) -> str:
        """A commit that holds everything in a worktree."""
        git = self._trees.in_tree(path, mark)
        if (why := edits.unfit(self._trees, path, mark)) is not None:
            raise GitError(why)
        staged = edits.stage(self._trees, path, mark)
        if isinstance(staged, Unusable):
            raise GitError(staged.problem)
        tree, head = git("write-tree"), git("rev-parse", "HEAD")
        if tree == git("rev-parse", "--verify", END, f"{head}^{{tree}}"):
            return head
        return git("commit-tree", "-p", head, "-m", f"kept: {mark.session}/{mark.key}", END, tree)

    def commit(self, path: Path, session: str, action: str, message: str) -> Commit | Unusable | None:
        """What changed in a worktree, as one commit on a branch of its own; None when nothing did."""
        mark = self._need(path)
        with self._trees.tree_locked(path):
            made = edits.commit_all(self._trees, path, mark, session, action, message)
            if not isinstance(made, Unusable):
                return made
            aside = disarm(self._trees, path, mark)  # its words name the worktree to the person
            return Unusable(f"{_put_aside(path, aside)}{made.problem}")

    def find(
        self, session: str, action: str, target: str | None = None, base: str | None = None
    ) -> Commit | None:
        """The commit of an action that `target` holds; without a target, on its own branch.

        With `base`, only what came after it is looked at.
        """
        branch = target or edits.branch_of(session, action)
        return self._found.find(edits.value_of(session, action), branch, base)

    def has_branch(self, branch: str) -> bool:
        """Whether there is such a branch."""
        return self._trees.tip(f"refs/heads/{branch}") is not None

    def make_again(self, session: str, branch: str) -> str | None:
        """Make a branch that was deleted again, where a session did something on it; the commit."""
        return make_again(self._trees, session, branch) if not self.has_branch(branch) else None

    def accept(self, session: str, branch: str) -> None:
        """Let a session go on with what a branch holds, whatever it did besides."""
        self.branches.accept(session, branch)

    def merge(self, branch: str, into: str, message: str) -> str | Conflict:
        """Merge a branch into one that is checked out, or change nothing; the commit."""
        _require_branches(branch, into)
        path = self._path("", f"merge {branch} into {into}")
        with self._trees.locked("integrate"):
            return merge(self._trees, path, branch, into, message)

    def integrate(
        self, path: Path, target: str, checks: str | None = None
    ) -> Commit | Conflict | ChecksFailed:
        """Put the commit of a worktree on top of `target`, see that `checks` pass there, move it forward.

        One at a time per repository. Whatever comes of it but a Commit, the worktree is as it
        was, with its commit, and nothing has moved.
        """
        _require_branches(target)
        mark = self._need(path)
        if mark.commit is None:
            raise GitError(f"nothing is committed in {path}; there is nothing to put on {target!r}")

        def complaint() -> str | None:
            ran = self._shell(checks, path) if checks else Ran(ok=True, output="")
            if ran.status in NOT_RUN:
                raise no_command("[project] checks (or test)", checks or "", ran.output)
            return None if ran.ok else ran.output

        with self._trees.locked("integrate"):
            # A driver that died after the target had moved comes here again: the edit goes there once.
            there = self._found.find(mark.trailer, target, mark.base)
            if there is not None:
                self._trees.save(path, replace(mark, target=target, commit=there.id, integrating=False))
                return there
            return integrate(self._trees, path, mark, mark.commit, target, complaint)

    def restore(self) -> list[Restored]:
        """Put the checkouts of the person's own right in which git was killed while it moved a branch."""
        return restore(self._trees)

    def remove(self, path: Path) -> None:
        """Remove a worktree, and its branch where another branch holds what it holds."""
        if path.absolute().parent.parent != self._root.absolute():
            raise GitError(f"{path} is not a workspace of ours")
        with self._trees.tree_locked(path):
            self._remove(path)

    def discard(self, session: str, key: str) -> None:
        """Remove the worktree of an action, where there is one."""
        path = self._path(session, key)
        if path.exists() or self._trees.noted(path) is not None:
            self.remove(path)

    def _remove(self, path: Path) -> None:
        mark = self._trees.noted(path)
        if mark is not None and self._is_taken_over(mark):
            self._forget_branch(mark.branch)
        self._trees.drop(path)

    def _is_taken_over(self, mark: Mark) -> bool:
        return mark.target is not None and (
            self._found.find(mark.trailer, mark.target, mark.base) is not None
        )

    def _forget_branch(self, branch: str) -> None:
        ref = f"refs/heads/{branch}"
        tip = self._trees.tip(ref)
        if tip:
            self._trees.git("update-ref", "-d", END, ref, tip)

    def sweep(self, is_over: Callable[[str, str], bool] = lambda _session, _key: False) -> int:
        """Remove the worktrees whose edits their targets hold, and those nobody used for a day.

        Of the latter only what holds nothing: readers' checkouts, and untouched worktrees.
        A shared one also when `is_over` says so of its session and key; what it holds is kept
        under a ref; where git cannot hold it, it stays. Whatever a removal that was cut short
        has left goes, too. While an edit is being taken over, nothing is done.
        """
        if not self._root.is_dir():
            return 0
        with suppress(GitError), self._trees.locked("integrate", wait_s=0):
            gone = 0
            for path, mark in (*self._trees.marks("write"), *self._trees.marks("read")):
                if self._ending(path, mark, is_over) is not None:
                    gone += self._end(path, is_over)
            for path in self._trees.unmarked():
                gone += self._end(path, is_over)
            self._trees.tidy()
            return gone
        return 0

    def _end(self, path: Path, is_over: Callable[[str, str], bool]) -> bool:
        """Remove a worktree that is over, if nobody has begun to use it before we had its lock."""
        end_leftovers(self._own_shell.spool(path))
        with self._trees.tree_locked(path):
            mark = self._trees.noted(path)
            end = self._ending(path, mark, is_over) if mark is not None else self._remove
            if end is not None:
                end(path)
        return end is not None

    def _ending(
        self, path: Path, mark: Mark, is_over: Callable[[str, str], bool]
    ) -> Callable[[Path], None] | None:
        """How a worktree that is over is ended; None for one that is not."""
        if not path.is_dir() or self._is_taken_over(mark):
            return self._remove
        if mark.shared and is_over(mark.session, mark.key):
            return self._put_aside
        if not self._is_old(path):
            return None
        is_reader = path.parent.name == "read"
        holds_nothing = is_reader or not mark.ready or self._is_untouched(path, mark)
        return self._remove if holds_nothing else None

    def _put_aside(self, path: Path) -> None:
        """Remove a worktree and its branch; a ref holds what it held."""
        mark = self._trees.mark(path)
        if mark is not None and mark.ready and not self._keep(path, mark):
            return
        noted = mark or self._trees.noted(path)
        if noted is not None and noted.branch:
            self._forget_branch(noted.branch)
        self._trees.drop(path)

    def _is_old(self, path: Path) -> bool:
        try:
            return self._trees.mark_file(path).stat().st_mtime < time.time() - UNUSED_S
        except OSError:  # another driver has just removed it
            return False

    def state(self) -> tampering.State:
        """How the repository's configuration and hooks are now, and its refs where nothing is confined."""
        return tampering.state_of(self._trees.common, self._root, refs=not self._is_confined)

    def differences(self, before: tampering.State, after: tampering.State) -> str:
        """What of that was changed by somebody who should not, in words."""

        def goes_on(old: str, new: str) -> bool:
            return self._trees.git.run("merge-base", "--is-ancestor", END, old, new).ok

        return tampering.differences(before, after, goes_on)

    def close(self) -> None:
        """End what runs in other threads: their calls raise instead of going on."""
        self._trees.close()
        self._own_shell.close()

    def _need(self, path: Path) -> Mark:
        end_leftovers(self._own_shell.spool(path))
        mark = self._trees.mark(path)
        if mark is None:
            raise GitError(f"{path} is not a workspace any more")
        return mark


def _put_aside(path: Path, names: Sequence[str]) -> str:
    """What is said of an agent's settings for git that do not count any more."""
    if not names:
        return ""
    listed = first_few([*map(repr, names)], SHOWN_MAX)
    return f"git settings in {path} that an agent can have written are put aside ({listed}); "


def _require_branches(*names: str) -> None:
    """GitError for a name that no branch can have: it would stand in a transaction, line by line."""
    for name in names:
        if not is_branch(name):
            raise GitError(f"there is no branch {name!r}, nor can there be: git allows no such name")
