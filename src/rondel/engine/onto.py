"""Moving a session: its work goes to another branch from now on, because a person chose it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rondel.engine.branch import accepted
from rondel.engine.session import Session
from rondel.errors import UsageError
from rondel.model.refs import END, is_branch
from rondel.model.workflow import RepoReader
from rondel.repo.branches import Branches
from rondel.repo.edits import TRAILER
from rondel.store.lease import Lease

SHOWN_MAX = 10


def move_onto(
    session: Session[Any], branch: str, look: RepoReader, lease: Lease, branches: Branches
) -> list[str]:
    """Note the new branch; gives what it lacks of the session's work so far, a line each.

    Nothing is moved there: whether what was done belongs on both branches is the person's to say. What it
    lacks is accepted, and on record: it counts as done all the same.
    """
    before = session.workflow.target(session.state)
    if before is None:
        raise UsageError(f"{session.ref.name} puts nothing on a branch; --onto is for those that do")
    ref = f"refs/heads/{branch}"
    if (
        not is_branch(branch)
        or not look.git("rev-parse", "--verify", "--quiet", END, ref, check=False).strip()
    ):
        raise UsageError(f"there is no branch {branch!r} here; make it first: git branch -- {branch}")
    identity = session.begin(look, lease)
    without = accepted(session, branch, branches)
    session.identify(replace(identity, onto=branch, without=without), look, lease)
    session.note("onto", {"branch": branch, "before": before})
    return _lacking(look, identity.id, before, branch) if before and before != branch else []


def own_branch(look: RepoReader, wanted: str) -> str:
    """A name for a new session's branch: `wanted`, unless that one holds work of somebody else.

    One that is where HEAD is, or behind it, was made for this and is taken.
    """
    name, number = wanted, 1
    while look.git("rev-list", "--max-count=1", END, f"refs/heads/{name}", "^HEAD", check=False).strip():
        number += 1
        name = f"{wanted}-{number}"
    return name


def _lacking(look: RepoReader, owner: str, before: str, branch: str) -> list[str]:
    """The commits of a session that one branch has and the other has not."""
    log = ("log", "--format=%h %s", "--fixed-strings", f"--grep={TRAILER}: {owner}/")
    refs = (END, f"refs/heads/{before}", f"^refs/heads/{branch}", "--")
    commits = look.git(*log, *refs, check=False).splitlines()
    if not commits:
        return []
    words = f"{branch} lacks {len(commits)} commits of this session that are on {before}"
    more = [f"  and {len(commits) - SHOWN_MAX} more"] if len(commits) > SHOWN_MAX else []
    return [f"{words}; what they did counts as done:", *(f"  {c}" for c in commits[:SHOWN_MAX]), *more]
