"""The branch of a session holds what the session did: a deleted one is made again, and what it lost is named.

Where the last edit of a session was put is kept in a ref of its own, which moves in the same step as the
branch. So its commits are there for good, whatever becomes of the branch.
"""

from __future__ import annotations

from dataclasses import dataclass

from rondel.agents.edits import TRAILER, newest
from rondel.agents.worktrees import Worktrees
from rondel.errors import GitError
from rondel.model.names import slug


@dataclass(frozen=True)
class Lost:
    """An edit of a session that its branch does not hold any more."""

    commit: str
    action: str
    title: str


@dataclass(frozen=True)
class Standing:
    """How it stands with a session's branch: made again at a commit, or without some edits."""

    made_at: str = ""
    lost: tuple[Lost, ...] = ()


def done_ref(session: str) -> str:
    """The ref that keeps what a session did."""
    return f"refs/rondel/done/{slug(session, fallback='session')}"


class Branches:
    """Looks at the branches of sessions, and only where something moved since the last look."""

    def __init__(self, trees: Worktrees) -> None:
        self._trees = trees
        self._fine: dict[tuple[str, str], tuple[str | None, str]] = {}

    def look(self, session: str, branch: str, base: str | None) -> Standing:
        """See that a branch holds the edits of a session; makes it where it is gone."""
        done = self._trees.tip(done_ref(session))  # first: an edit moves both, the branch before this
        tip = self._trees.tip(f"refs/heads/{branch}")
        if tip is None:
            return Standing(make_again(self._trees, session, branch) or "")
        if done is None or self._fine.get((session, branch)) == (done, tip):
            return Standing()
        lost: tuple[Lost, ...] = ()
        if not self._trees.git.run("merge-base", "--is-ancestor", done, tip).ok:
            there = self._said(session, tip)
            edits = self._edits(session, f"{base}..{done}" if base else done)
            lost = tuple(edit for edit in edits if f"{TRAILER}: {session}/{edit.action}" not in there)
        if not lost:
            self._fine[session, branch] = (done, tip)
        return Standing("", lost)

    def accept(self, session: str, branch: str) -> None:
        """From now on what a branch holds is all that it must hold."""
        self._trees.git("update-ref", done_ref(session), self._trees.commit_of(f"refs/heads/{branch}"))

    def _said(self, session: str, tip: str) -> set[str]:
        """The lines that name edits of a session: of a squashed commit several, of a rebased one its own."""
        out = self._trees.git("log", "--format=%B", "--fixed-strings", f"--grep={TRAILER}: {session}/", tip)
        return {line.strip() for line in out.splitlines()}

    def _edits(self, session: str, span: str) -> list[Lost]:
        """The edits of a session, oldest first."""
        value = f"%(trailers:key={TRAILER},valueonly,unfold)"
        log = ("log", "--reverse", "--topo-order", "-z", f"--format=%H%x01%s%x01{value}", "--fixed-strings")
        found = []
        for entry in self._trees.git(*log, f"--grep={TRAILER}: {session}/", span).split("\0"):
            commit, _, rest = entry.partition("\x01")
            title, _, values = rest.partition("\x01")
            for line in values.splitlines():
                owner, _, action = line.strip().partition("/")
                if owner == session and action:
                    found.append(Lost(commit, action, title))
        return found


def make_again(trees: Worktrees, session: str, branch: str, otherwise: str | None = None) -> str | None:
    """A branch that is gone, at what the session did last; the commit. None where it did nothing yet.

    What was rebased or merged before the branch was deleted is on another branch, and that is taken.
    """
    done, other = trees.tip(done_ref(session)), newest(trees, session)
    at = other if other and (done is None or _names(trees, other) == _names(trees, done)) else done
    at = at or otherwise
    if at is not None:
        made = trees.git.run("branch", "--no-track", branch, at)
        if trees.tip(f"refs/heads/{branch}") is None:
            raise GitError(f"there is no branch {branch!r} in {trees.repo}, nor can it be: {made.words}")
    return at


def _names(trees: Worktrees, commit: str) -> str:
    return trees.git.run("show", "--no-patch", f"--format=%(trailers:key={TRAILER},valueonly)", commit).out
