"""The branch of a session: it holds what counts as done, or every command says so with the same words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rondel.engine.session import Session
from rondel.errors import GitError
from rondel.model.commands import command_line
from rondel.model.identity import Identity
from rondel.model.summary import EDITS_LOST, Problem
from rondel.model.workflow import SessionRef, Workflow
from rondel.repo.branches import Back, Branches, Expected, Lost
from rondel.repo.workspaces import Workspaces

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
        names = ", ".join(_name(gone) for gone in self.lost[:SHOWN_MAX])
        more = f" and {len(self.lost) - SHOWN_MAX} more" if len(self.lost) > SHOWN_MAX else ""
        return Problem(
            EDITS_LOST,
            f"branch {self.branch}",
            f"{self._says()}: {names}{more}",
            "; ".join(f"{what}: `{command}`" for what, command in self._ways()),
        )

    @property
    def words(self) -> str:
        """Which edits are gone, and each way to go on, as it is typed."""
        shown = [f"  {_name(gone)}" for gone in self.lost[:SHOWN_MAX]]
        more = [f"  and {len(self.lost) - SHOWN_MAX} more"] if len(self.lost) > SHOWN_MAX else []
        ways = [f"{what[0].upper()}{what[1:]}: {command}" for what, command in self._ways()]
        return "\n".join([f"{self._says(f' in {self.session}')}:", *shown, *more, *ways])

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
