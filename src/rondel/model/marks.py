"""Marks: how Rondel knows its own in a session's folder: what it completed, and what it wrote.

A document can be written by anybody; a status in it is a claim. A mark is made from the
session's own random id and from what was completed, so one that is copied from another place,
or written down in the shape of one, fits nothing.

`.rondel/written.jsonl` says what Rondel wrote last under each name, by digest; any other text there is
theirs. It is state: runtime may be deleted, and a person's document is still known as theirs. A line is noted
before its files are written, so it names for each path both texts that a death in between may leave there:
ours from before, and ours from now.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from rondel.model import jsons
from rondel.model.identity import IDENTITY, identity_of
from rondel.model.names import digest
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


WRITTEN = ".rondel/written.jsonl"


def line(marks: Mapping[str, Sequence[str]]) -> str:
    """The digests that files may have from now on, as a line of the log."""
    return json.dumps({path: list(digests) for path, digests in marks.items()}, ensure_ascii=False)


def marks_in(lines: Iterable[bytes | str]) -> dict[str, frozenset[str]]:
    """What the lines say of each path; the last one counts. A line that says nothing is skipped."""
    found: dict[str, frozenset[str]] = {}
    for one in lines:
        try:
            marks = jsons.load(one)
        except ValueError:
            continue
        for path, digests in marks.items() if isinstance(marks, dict) else ():
            if isinstance(digests, list):
                found[path] = frozenset(d for d in digests if isinstance(d, str))
    return found


def is_theirs(files: Snapshot, path: str) -> bool:
    """Whether a file is there, with a text in it that Rondel did not write."""
    if not (files.text(path) or "").strip():
        return False
    ours = marks_in((files.data(WRITTEN) or b"").split(b"\n")).get(path, frozenset())
    return files.digest(path) not in ours
