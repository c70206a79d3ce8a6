"""Lost ids: a session whose id is gone with its runtime gets it back from its own commits.

A commit names the session that made it; a mark in the session's documents fits one id and no other. An id
that fits is this session's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rondel.model.identity import Identity
from rondel.model.marks import mark
from rondel.model.refs import END
from rondel.model.summary import Problem
from rondel.model.times import stamp
from rondel.model.workflow import Mark, RepoReader
from rondel.repo.edits import TRAILER

COMMITS_MAX = 10_000  # of all branches, the newest
RULE = "identity-lost"
_SHOWN = "--format=%(HEAD)%(refname:short)"


def identity_in_commits(
    look: RepoReader, workflow: str, marks: Collection[Mark], taken: Collection[str] = ()
) -> Identity | None:
    """The identity of the session with these marks; None where no commit is of it.

    One that is `taken` belongs to another session, of which this is a copy.
    """
    if not marks:
        return None
    commits: dict[str, list[str]] = {}
    for commit, session in _trailers(look):
        if session.startswith(f"{workflow}-") and session not in taken:
            commits.setdefault(session, []).append(commit)
    for session, made in commits.items():
        if any(mark(session, *what) == found for found, what in marks):
            base = look.git("rev-parse", "--verify", "--quiet", END, f"{made[-1]}^", check=False).strip()
            return Identity(session, _branch_of(look, made[0]), base or None, stamp(look.at))
    return None


def _trailers(look: RepoReader) -> Iterator[tuple[str, str]]:
    """Each commit of a session, newest first, with the session's id."""
    values = f"%H %(trailers:key={TRAILER},valueonly,unfold,separator=%x20)"
    said = look.git(
        "log",
        "--branches",
        f"--max-count={COMMITS_MAX}",
        f"--grep=^{TRAILER}: ",
        f"--format={values}",
        check=False,
    )
    for line in said.splitlines():
        commit, _, value = line.partition(" ")
        session, slash, _ = value.partition("/")
        if slash:
            yield commit, session


def _branch_of(look: RepoReader, commit: str) -> str | None:
    """The branch that a session's last commit is on: the one that is checked out, if it is one of several."""
    said = look.git("for-each-ref", _SHOWN, f"--contains={commit}", "refs/heads", check=False)
    names = sorted(said.splitlines(), key=lambda name: not name.startswith("*"))
    return next((name[1:] for name in names), None)


def lost(identity: Identity | None) -> tuple[Problem, ...]:
    """What is to be said of a session whose id was lost, with everything that could tell it."""
    if identity is None or not identity.lost:
        return ()
    return (
        Problem(
            RULE,
            ".rondel/session.json",
            f"the id was lost before {identity.begun_at}, and no commit tells it: what the documents "
            "say was completed until then counts, and is not known to be made by Rondel",
            "look at what is completed, or put the lost .rondel/session.json back",
        ),
    )
