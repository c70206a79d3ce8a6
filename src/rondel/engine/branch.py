"""The branch of a session, before anybody works with it: it holds what counts as done, or the run says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from rondel.agents.branches import Lost
from rondel.agents.workspaces import Workspaces
from rondel.engine.session import Session
from rondel.errors import GitError
from rondel.model.commands import command_line

SHOWN_MAX = 10
Say = Callable[[str, dict[str, object]], None]


async def see_branch(session: Session[Any], workspaces: Workspaces, say: Say) -> None:
    """Make the branch again where it is gone; GitError where it does not hold what counts as done."""
    target = session.workflow.target(session.state)
    if not target:
        return
    identity = session.identity
    standing = await asyncio.to_thread(workspaces.standing, identity.id, target, identity.base)
    if standing.made_at:
        where = f"the branch {target} was deleted; it is made again at {standing.made_at[:12]}"
        say("put-right", {"message": where})
    lost = [edit for edit in standing.lost if _counts(session, edit.action)]
    if lost:
        raise GitError(_words(session, target, lost))


def _counts(session: Session[Any], action: str) -> bool:
    return session.files.exists(action) and session.workflow.counts(session.state, action)


def _words(session: Session[Any], target: str, lost: list[Lost]) -> str:
    """Which edits are gone, and each way to go on, as it is typed."""
    shown = [f"  {edit.commit[:12]} {edit.title}" for edit in lost[:SHOWN_MAX]]
    more = [f"  and {len(lost) - SHOWN_MAX} more"] if len(lost) > SHOWN_MAX else []
    again = session.workflow.redo(session.state, tuple(edit.action for edit in lost))
    count, them = (f"{len(lost)} edits count", "them") if len(lost) > 1 else ("an edit counts", "it")
    return "\n".join(
        [
            f"{count} as done in {session.ref.name}, and {target} does not hold {them} any more:",
            *shown,
            *more,
            f"To have {them} back, on {target}: git merge {lost[-1].commit[:12]}",
            *(f"To do it again: {command}" for command in again[:SHOWN_MAX]),
            f"To go on without: {command_line('run', session.ref.name, '--onto', target)}",
        ]
    )
