"""Adoption: a session that somebody else began becomes the person's own, after they saw what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

from rondel.engine.session import Session
from rondel.model.decisions import DECISIONS
from rondel.model.identity import IDENTITY, identity_of
from rondel.model.snapshot import Snapshot
from rondel.model.workflow import Look, SessionRef, Workflow
from rondel.store import ours
from rondel.store.lease import refuse_driven
from rondel.store.ours import HOME, OLD_RUN, RECORD, Restored
from rondel.trust.sessions import ADOPTED, ADOPTING

S = TypeVar("S")

SHOWN_MAX = 40  # of each kind
WORDS_MAX = 200


def claims(
    ref: SessionRef, workflow: Workflow[S], state: S, files: Snapshot, paths: Sequence[str]
) -> list[str]:
    """A line for each thing that counts once the session is adopted."""
    found = workflow.summary(state)
    progress = f", {found.done} of {found.total} done" if found.total else ""
    lines = [f"{ref.name}: {found.title}: {found.status.value}, {found.phase}{progress}"]
    lines += _some("completed: ", (f"{e.action} ({e.commit[:12]}) {e.title}" for e in workflow.edits(state)))
    documents = (p for p in paths if not p.startswith(f"{HOME}/"))
    lines += _some("file: ", documents)
    decisions = (p for p in paths if p.startswith(f"{DECISIONS}/"))
    lines += _some("decision: ", (_decision(files, path) for path in decisions))
    lines += [f"does not count, and is left where it is: {OLD_RUN}"] if files.names(OLD_RUN) else []
    return [" ".join(line.split()) for line in lines]


def adopt(session: Session[Any], look: Look, at: datetime) -> list[Restored]:
    """Put a session on record as the person's, with its decisions sealed anew; gives what was put back.

    Its runtime is the one in the person's own state folder, which is empty unless the session was theirs
    before: what was under way elsewhere is asked for again. Whoever dies half-way has left a foreign session.
    """
    if session.known.knows(session.files):  # it is theirs, with decisions of others in it
        session.seal_anew(at)
        session.adopt_texts()
        return []
    session.known.refuse_driven()
    refuse_driven(session.folder / OLD_RUN, session.ref.name)  # by a version that had its lease there
    if shown := identity_of(session.files.json(IDENTITY)):
        session.known.record(shown, ADOPTING, at)
    identity = session.begin(look)
    session.seal_anew(at)
    session.known.record(identity, ADOPTED, at)
    return ours.restored_in(ours.read(session.folder / RECORD))


def _some(what: str, items: Iterator[str]) -> list[str]:
    there = [f"{what}{item.strip()}" for item in items]
    more = len(there) - SHOWN_MAX
    return there if more <= 0 else [*there[:SHOWN_MAX], f"{what}and {more} more"]


def _decision(files: Snapshot, path: str) -> str:
    """A decision with its giver, as its file says."""
    name, body = path.removeprefix(f"{DECISIONS}/"), files.json(path)
    said = body if isinstance(body, dict) else {}
    words = f": {said['comment']}" if said.get("comment") else ""
    given = f"{said.get('answer', 'no answer')} by {said.get('by', 'nobody')} at {said.get('at', 'no time')}"
    return f"{name}: {given}{words}"[:WORDS_MAX]
