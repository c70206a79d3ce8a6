"""Marks: how the engine signs what it completed, in a session that was begun here.

A document can be written by anybody; a status in it is a claim. A mark is made from the
session's own random id and from what was completed, so one that is copied from another place,
or written down in the shape of one, fits nothing.
"""

from __future__ import annotations

from rondel.model.digests import digest
from rondel.model.snapshot import Snapshot

IDENTITY = ".rondel/session.json"
FOREIGN = "completed-elsewhere"  # the rule: a document says completed, and the engine did not
LENGTH = 32


def begun_here(files: Snapshot) -> str | None:
    """The id of a session that was begun here; None for one of another tool, or that was taken over."""
    found = files.json(IDENTITY)
    if not isinstance(found, dict) or found.get("adopted") is True:
        return None
    name = found.get("id")
    return name if isinstance(name, str) and name else None


def mark(session: str, *what: str) -> str:
    """The mark of what was completed in a session."""
    return digest("\n".join((session, *what)))[:LENGTH]
