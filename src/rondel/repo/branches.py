"""The branch of a session holds what the session did: a deleted one is made again, and what it lost is named.

The one place that answers whether a branch holds what a session did. What that is, the session's own files
say; so a clone can tell, too. An edit is there while a commit of the branch names it and was not reverted.

Where the last edit of a session was put is kept in a ref of its own, which moves in the same step as the
branch. So its commits are there for good, whatever becomes of the branch. Which edits a branch holds is found
by the trailers of its commits (`Found`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from shlex import quote

from rondel.errors import GitError
from rondel.model.names import digest, slug
from rondel.model.refs import END, branch_in, is_commit
from rondel.model.workflow import Edited
from rondel.repo.edits import TRAILER, Commit, changed, newest, value_of
from rondel.repo.worktrees import Worktrees

SEEN = "rondel-seen"  # in git's folder: for each session, where its branch was when it held everything


@dataclass(frozen=True)
class Expected:
    """What a branch must hold: the edits of a session, made since `base`."""

    session: str
    branch: str
    base: str | None
    edits: tuple[Edited, ...]


@dataclass(frozen=True)
class Lost:
    """An edit of a session that its branch does not hold any more; by which commits it was reverted."""

    edit: Edited
    reverted_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class Back:
    """The command that has lost edits back; empty where none does."""

    command: str
    is_elsewhere: bool = False  # somebody else has them: they were not taken away here


def done_ref(session: str) -> str:
    """The ref that keeps what a session did."""
    return f"refs/rondel/done/{slug(session, fallback='session')}"


class Branches:
    """Looks at the branches of sessions, with git only where something moved since the last look."""

    def __init__(self, trees: Worktrees) -> None:
        self._trees = trees
        self._found = Found(trees)

    def lost(self, expected: Expected) -> tuple[Lost, ...]:
        """The edits that a branch does not hold.

        None where there is no such branch: it is made again, or was merged and deleted. Nor where a shallow
        clone cuts its history off: nobody can tell.
        """
        edits = [edit for edit in expected.edits if is_commit(edit.commit)]
        tip = self._trees.tip(f"refs/heads/{expected.branch}") if edits else None
        if tip is None:
            return ()
        # Looking takes a git; where neither the branch nor what it must hold has changed, the note is enough.
        seen, file = digest(repr((expected, tip))), self._trees.common / SEEN / slug(expected.session)
        with suppress(OSError, ValueError):
            if file.read_text(encoding="ascii") == seen:
                return ()
        if (self._trees.common / "shallow").exists():
            return ()
        held = self._found.held(tip, expected.base)
        lost = tuple(gone for edit in edits if (gone := self._gone(held, expected.session, edit)) is not None)
        if not lost:
            with suppress(OSError):  # it is looked at again, and that is all
                file.parent.mkdir(exist_ok=True)
                file.write_text(seen, encoding="ascii")
        return lost

    def _gone(self, held: Held, session: str, edit: Edited) -> Lost | None:
        """That an edit is not there; None where it is, were it rebased, merged, squashed or reworded."""
        commits = {*held.named.get(value_of(session, edit.action), ()), edit.commit}
        if any(commit not in held.undone and commit in held.commits for commit in commits):
            return None
        by = held.reverted_by(commits)
        is_there = self._trees.git.run("merge-base", "--is-ancestor", END, edit.commit, held.tip).ok
        return None if not by and (is_there or self._is_reworded(held, edit)) else Lost(edit, by)

    def _is_reworded(self, held: Held, edit: Edited) -> bool:
        """Whether another commit of the branch makes the same change."""
        same = self._trees.git.run("cherry", END, held.tip, edit.commit, f"{edit.commit}^")
        return same.ok and same.out.startswith("- ")

    def back(self, branch: str, lost: Sequence[Lost]) -> Back:
        """What has these edits back on their branch; nothing where nobody has them."""
        away = [gone.edit.commit for gone in lost if not gone.reverted_by]
        heads = self._trees.git.run("merge-base", "--independent", END, *away) if away else None
        if heads is not None and not heads.ok:
            remotes = self._trees.git("remote").split()
            return Back("git fetch --all", is_elsewhere=True) if remotes else Back("")
        commits = heads.out.split() if heads is not None else []
        merged = ["git merge " + " ".join(c[:12] for c in commits)] if commits else []
        here = branch_in(self._trees.git.run("symbolic-ref", "--quiet", "HEAD").out) == branch
        words = " && ".join(
            [*([] if here else [f"git switch {quote(branch)}"]), *merged, *self._reverts(lost)]
        )
        return Back(words, is_elsewhere=self._are_remote(commits))

    def _are_remote(self, commits: Sequence[str]) -> bool:
        """Whether a branch of a remote has each of these."""
        return bool(commits) and all(
            self._trees.git.run("for-each-ref", "--count=1", f"--contains={c}", "refs/remotes").out
            for c in commits
        )

    def _reverts(self, lost: Sequence[Lost]) -> list[str]:
        reverts = dict.fromkeys(commit for gone in lost for commit in gone.reverted_by)
        if not reverts:
            return []
        order = self._trees.git.run("rev-list", "--no-walk=sorted", "--topo-order", END, *reverts).out.split()
        return ["git revert --no-edit " + " ".join(c[:12] for c in order)]

    def accept(self, session: str, branch: str) -> None:
        """From now on the branch is where a session's work goes, and goes on from."""
        self._trees.git("update-ref", END, done_ref(session), self._trees.commit_of(f"refs/heads/{branch}"))


def make_again(trees: Worktrees, session: str, branch: str, otherwise: str | None = None) -> str | None:
    """A branch that is gone, at what the session did last; the commit. None where it did nothing yet.

    What was rebased or merged before the branch was deleted is on another branch, and that is taken.
    """
    done, other = trees.tip(done_ref(session)), newest(trees, session)
    at = other if other and (done is None or _names(trees, other) == _names(trees, done)) else done
    at = at or otherwise
    if at is not None:
        made = trees.git.run("branch", "--no-track", END, branch, at)
        if trees.tip(f"refs/heads/{branch}") is None:
            raise GitError(f"there is no branch {branch!r} in {trees.repo}, nor can it be: {made.message}")
    return at


def _names(trees: Worktrees, commit: str) -> str:
    return trees.git.run(
        "show", "--no-patch", f"--format=%(trailers:key={TRAILER},valueonly)", END, commit
    ).out


# -- which edits a branch holds ------------------------------------------------------------------


_FORMAT = f"%m%x01%H%x01%P%x01%(trailers:key={TRAILER},valueonly,unfold)%x01%B"
_NAMES = re.compile(rf"^[^\S\n]*+{TRAILER}: (.*\S)", re.MULTILINE)
_REVERTS = re.compile(
    r"This reverts commit ([0-9a-f]{40,64})(?:,\s+reversing\s+changes\s+made\s+to\s+([0-9a-f]{40,64}))?"
)


@dataclass(frozen=True)
class Held:
    """What a branch held when it was looked at last, as far back as that went."""

    tip: str
    commits: frozenset[str] = frozenset()  # those that are edits of any session
    named: dict[str, list[str]] = field(default_factory=dict)  # by trailer, also one that a squash took over
    edits: dict[str, list[tuple[str, str]]] = field(default_factory=dict)  # by trailer: commit, parent
    reverts: list[tuple[str, frozenset[str]]] = field(default_factory=list)  # newest first: commit, of which
    undone: frozenset[str] = frozenset()

    def reverted_by(self, commits: Collection[str]) -> tuple[str, ...]:
        """The commits that reverted these and were not reverted themselves, newest first."""
        wanted = set(commits)
        return tuple(c for c, targets in self.reverts if c not in self.undone and targets & wanted)


class Found:
    """The edits that branches hold; only what is new on a branch is looked at."""

    def __init__(self, trees: Worktrees) -> None:
        self._trees = trees
        self._lock = threading.Lock()
        self._branches: dict[str, Held] = {}
        self._since: dict[tuple[str, str | None], Held] = {}

    def find(self, value: str, branch: str, base: str | None = None) -> Commit | None:
        """The newest commit with this trailer that a branch holds and nobody reverted.

        With `base`, only one that came after it.
        """
        tip = self._trees.tip(f"refs/heads/{branch}")
        if tip is None:
            return None
        with self._lock:
            held = self._branches.get(branch)
            if held is None or held.tip != tip:
                held = self._branches[branch] = self._look(tip, held)
        git = self._trees.git
        for commit, parent in reversed(held.edits.get(value, [])):
            if commit in held.undone or (
                base and git.run("merge-base", "--is-ancestor", END, commit, base).ok
            ):
                continue
            return Commit(commit, changed(git, parent, commit) if parent else (), branch)
        return None

    def held(self, tip: str, base: str | None) -> Held:
        """What came to a branch since `base`; all of it where git does not know that commit."""
        if (tip, base) not in self._since:
            entries = self._log(f"{base}..{tip}") if base else None
            entries = self._log(tip) or [] if entries is None else entries
            self._since[tip, base] = self._with(Held(tip), tip, entries)
        return self._since[tip, base]

    def _look(self, tip: str, known: Held | None) -> Held:
        """What a branch holds at `tip`. Where it only grew, what was known is added to."""
        entries = self._log(f"{known.tip}...{tip}") if known else None
        if known is None or entries is None or any(entry[0] == "<" for entry in entries):
            known, entries = Held(tip), self._log(tip) or []
        return self._with(known, tip, entries)

    def _with(self, known: Held, tip: str, entries: list[list[str]]) -> Held:
        """What was known, and these commits on top."""
        edits = {value: list(commits) for value, commits in known.edits.items()}
        named = {value: list(commits) for value, commits in known.named.items()}
        reverts = list(known.reverts)
        for _, commit, parents, values, message in reversed(entries):
            for value in values.splitlines():
                edits.setdefault(value, []).append((commit, parents.partition(" ")[0]))
            for value in _NAMES.findall(message):
                named.setdefault(value, []).append(commit)
            if targets := self._targets(message):
                reverts.insert(0, (commit, targets))
        commits = known.commits.union(*named.values())
        return Held(tip, commits, named, edits, reverts, _undone(reverts))

    def _log(self, span: str) -> list[list[str]] | None:
        """The commits that are edits or reverts, children first; None where git has no such span."""
        patterns = (f"--grep={TRAILER}:", "--grep=This reverts commit")
        log = ("log", "-z", f"--format={_FORMAT}", "--topo-order", "--left-right", "--fixed-strings")
        result = self._trees.git.run(*log, *patterns, END, span)
        if not result.ok:
            return None
        return [entry.split("\x01", 4) for entry in result.out.split("\0") if entry.count("\x01") >= 4]  # noqa: PLR2004

    def _targets(self, message: str) -> frozenset[str]:
        """The commits that a commit undoes, as git's own words in its message say."""
        found: set[str] = set()
        for commit, onto in _REVERTS.findall(message):
            found.add(commit)
            if onto:  # a merge: everything that it brought
                found.update(self._trees.git.run("rev-list", END, f"{onto}..{commit}").out.split())
        return frozenset(found)


def _undone(reverts: list[tuple[str, frozenset[str]]]) -> frozenset[str]:
    """What is not there any more. Newest first, so that a revert that was itself undone undoes nothing."""
    gone: set[str] = set()
    for commit, targets in reverts:
        if commit not in gone:
            gone |= targets
    return frozenset(gone)
