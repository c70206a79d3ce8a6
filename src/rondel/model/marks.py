"""Marks: how the engine signs what it completed, in a session that was begun here.

A document can be written by anybody; a status in it is a claim. A mark is made from the
session's own random id and from what was completed, so one that is copied from another place,
or written down in the shape of one, fits nothing.
"""

from __future__ import annotations

from rondel.model.digests import digest
from rondel.model.identity import IDENTITY, identity_of
from rondel.model.snapshot import Snapshot
from rondel.model.times import parse_time

FOREIGN = "completed-elsewhere"  # the rule: a document says completed, and the engine did not
LENGTH = 32


def begun_here(files: Snapshot) -> str | None:
    """The id of a session that was begun here; None for one of another tool, or that was taken over."""
    found = identity_of(files.json(IDENTITY))
    return None if found is None or found.adopted else found.id


def signature(files: Snapshot, *what: str) -> str | None:
    """The mark of what is completed in the session with these files; None for one without an id."""
    found = identity_of(files.json(IDENTITY))
    return None if found is None else mark(found.id, *what)


def unsigned(files: Snapshot, at: object) -> bool:
    """Whether what ended `at` that time ended before anybody signed: the session had no id yet."""
    found = identity_of(files.json(IDENTITY))
    if found is None:
        return True
    ended, begun = parse_time(at), parse_time(found.begun_at)
    return found.adopted and ended is not None and begun is not None and ended < begun


def mark(session: str, *what: str) -> str:
    """The mark of what was completed in a session."""
    return digest("\n".join((session, *what)))[:LENGTH]
