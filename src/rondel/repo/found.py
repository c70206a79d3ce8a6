"""Finding edits again: which of a session's edits a branch holds, by the trailers of its commits."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection
from dataclasses import dataclass, field

from rondel.model.refs import END
from rondel.repo.edits import TRAILER, Commit, changed
from rondel.repo.worktrees import Worktrees

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
