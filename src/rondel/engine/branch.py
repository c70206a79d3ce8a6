"""The branch of a session: it holds what counts as done, or every command says so with the same words.

A person may choose another one, for what is done from then on (`move_onto`).
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from rondel.engine.session import Session
from rondel.errors import GitError, NothingToDo, UsageError
from rondel.model.identity import Identity
from rondel.model.refs import END, is_branch
from rondel.model.summary import EDITS_LOST, Problem, Status, command_line
from rondel.model.texts import first_few
from rondel.model.workflow import RepoReader, SessionRef, Workflow
from rondel.repo.branches import Back, Branches, Expected, Lost
from rondel.repo.edits import TRAILER
from rondel.repo.workspaces import Workspaces
from rondel.store.lease import Lease

SHOWN_MAX = 10
Say = Callable[[str, dict[str, object]], None]


@dataclass(frozen=True)
class Loss:
    """Edits that count as done in a session and are not on its branch any more; each way to go on."""

    session: str
    branch: str
    lost: tuple[Lost, ...]
    back: Back
    again: str  # what has them done again; empty where nothing does

    @property
    def without(self) -> str:
        """The command that accepts what the branch holds now."""
        return command_line("run", self.session, "--onto", self.branch)

    @property
    def next(self) -> str:
        """The command that leads on: to what somebody else has first, before it is done twice or given up."""
        return self.back.command if self.back.is_elsewhere else self.again or self.without

    @property
    def problem(self) -> Problem:
        """The same on one line, for whoever looks at the session."""
        return Problem(
            EDITS_LOST,
            f"branch {self.branch}",
            f"{self._says()}: {first_few([_name(gone) for gone in self.lost], SHOWN_MAX)}",
            "; ".join(f"{what}: `{command}`" for what, command in self._ways()),
        )

    @property
    def words(self) -> str:
        """Which edits are gone, and each way to go on, as it is typed."""
        ways = [f"{what[0].upper()}{what[1:]}: {command}" for what, command in self._ways()]
        return "\n".join([f"{self._says(f' in {self.session}')}:", *_shown(map(_name, self.lost)), *ways])

    def _says(self, where: str = "") -> str:
        one = len(self.lost) == 1
        count = "an edit counts" if one else f"{len(self.lost)} edits count"
        return f"{count} as done{where}, and {self.branch} does not hold {'it' if one else 'them'} any more"

    def _ways(self) -> list[tuple[str, str]]:
        it = "it" if len(self.lost) == 1 else "them"
        ways = [(f"to have {it} back, on {self.branch}", self.back.command), ("to do it again", self.again)]
        return [(what, command) for what, command in (*ways, ("to go on without", self.without)) if command]


def _name(gone: Lost) -> str:
    by = f" (reverted by {', '.join(c[:12] for c in gone.reverted_by)})" if gone.reverted_by else ""
    return f"{gone.edit.commit[:12]} {' '.join(gone.edit.title.split())[:100]}{by}"


def loss_of(
    ref: SessionRef, workflow: Workflow[Any], state: Any, identity: Identity, branches: Branches
) -> Loss | None:
    """What counts as done in a session and is not on its branch, but for what a person accepted."""
    target = workflow.target(state)
    lost = _lost_on(target, workflow, state, identity, branches) if target else ()
    if not lost or not target:
        return None
    again = workflow.redo(state, tuple(gone.edit.action for gone in lost))
    return Loss(ref.name, target, lost, branches.back(target, lost), again)


def accepted(session: Session[Any], branch: str, branches: Branches) -> tuple[str, ...]:
    """The actions whose edits a branch lacks, for a person who chooses it as it is."""
    identity = replace(session.identity, without=())
    return tuple(
        gone.edit.action for gone in _lost_on(branch, session.workflow, session.state, identity, branches)
    )


def _lost_on(
    branch: str, workflow: Workflow[Any], state: Any, identity: Identity, branches: Branches
) -> tuple[Lost, ...]:
    edits = tuple(edit for edit in workflow.edits(state) if edit.action not in identity.without)
    return branches.lost(Expected(identity.id, branch, identity.base, edits))


async def see_branch(session: Session[Any], workspaces: Workspaces, say: Say) -> None:
    """Make the branch again where it is gone; GitError where it does not hold what counts as done."""
    target = session.workflow.target(session.state)
    if not target:
        return
    made = await asyncio.to_thread(workspaces.make_again, session.identity.id, target)
    if made is not None:
        where = f"the branch {target} was deleted; it is made again at {made[:12]}"
        say("put-right", {"message": where})
    loss = await asyncio.to_thread(
        loss_of, session.ref, session.workflow, session.state, session.identity, workspaces.branches
    )
    if loss is not None:
        raise GitError(loss.words, then=loss.next)


def move_onto(
    session: Session[Any], branch: str, look: RepoReader, lease: Lease, branches: Branches
) -> list[str]:
    """Note the new branch; returns what it lacks of the session's work so far, a line each.

    Nothing is moved there: whether what was done belongs on both branches is the person's to say. What it
    lacks is accepted, and on record: it counts as done all the same. NothingToDo for a session that is over.
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
    if branch != before:
        _refuse_over(session, before, branch, look)
    identity = session.begin(look, lease)
    without = accepted(session, branch, branches)
    session.identify(replace(identity, onto=branch, without=without), look, lease)
    session.note("onto", {"branch": branch, "before": before})
    return _lacking(look, identity.id, before, branch) if before and before != branch else []


def _refuse_over(session: Session[Any], before: str, branch: str, look: RepoReader) -> None:
    """Raise NothingToDo where a session is over, and say which branch has its work."""
    status = session.workflow.summary(session.state).status
    if status not in (Status.COMPLETED, Status.CANCELLED):
        return
    words = f"{session.ref.name} is {status.value}, and puts nothing more on a branch"
    mine, other = f"refs/heads/{before}", f"refs/heads/{branch}"
    lacking = look.git("rev-list", "--max-count=1", END, mine, f"^{other}", check=False) if before else ""
    if lacking.strip():
        merges = f"git switch {shlex.quote(branch)} && git merge {shlex.quote(before)}"
        words += f"; what it did is on {before}; `{merges}` brings it to {branch}"
    raise NothingToDo(words)


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
    return [f"{words}; what they did counts as done:", *_shown(commits)]


def _shown(commits: Iterable[str]) -> list[str]:
    """As many lines as a person reads, and how many more there are."""
    lines = [f"  {commit}" for commit in commits]
    more = [f"  and {len(lines) - SHOWN_MAX} more"] if len(lines) > SHOWN_MAX else []
    return [*lines[:SHOWN_MAX], *more]
