"""Adoption: a session that somebody else began becomes the person's own, after they saw what it says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, TypeVar

from rondel.engine.session import Session
from rondel.model.actions import Ask
from rondel.model.codec import request_file, requests_in
from rondel.model.decisions import DECISIONS
from rondel.model.identity import IDENTITY, identity_of
from rondel.model.jsons import mapping
from rondel.model.snapshot import Snapshot
from rondel.model.texts import first_few, one_line
from rondel.model.workflow import RepoReader, SessionRef, Workflow
from rondel.store import ours
from rondel.store.lease import refuse_driven
from rondel.store.ours import HOME, OLD_RUN, RECORD, Restored
from rondel.trust.doubts import MANUAL, PARTS, REPLY
from rondel.trust.sessions import ADOPTED, ADOPTING

S = TypeVar("S")

SHOWN_MAX = 40  # of each kind
NAMED_MAX = 12  # files of one folder
DUE_MAX = 1000  # actions that are looked through for answers that wait
WORDS_MAX = 200
VALUE_MAX = 80  # characters of one thing that was asked for


def claims(
    ref: SessionRef,
    workflow: Workflow[S],
    state: S,
    files: Snapshot,
    paths: Sequence[str],
    *,
    is_foreign: bool,
) -> list[str]:
    """A line for each thing that counts once the session is adopted, and for what is put aside then.

    Of the parts of answers, one for each folder.
    """
    again = _looked_up(workflow, state, files) if is_foreign else []
    waiting = _replies(workflow, state, files) if is_foreign else []
    found = workflow.summary(state)
    progress = f", {found.done} of {found.total} done" if found.total else ""
    lines = [f"{ref.name}: {found.title}: {found.status.value}, {found.phase}{progress}"]
    if change := workflow.judges(state):
        lines.append(f"judges the change {change[0][:12]}..{change[1][:12]}")
    lines += _asked(files) if is_foreign else []
    lines += _some("completed: ", (f"{e.action} ({e.commit[:12]}) {e.title}" for e in workflow.edits(state)))
    documents = (p for p in paths if not p.startswith(f"{HOME}/") and p not in waiting)
    lines += _some("file: ", documents)
    lines += _some("part: ", _by_folder(p for p in paths if p.startswith(PARTS) and p not in again))
    decisions = (p for p in paths if p.startswith(f"{DECISIONS}/"))
    lines += _some("decision: ", (_decision(files, path) for path in decisions))
    lines += _some("put aside, and looked up again in the repository: ", _by_folder(again))
    lines += _some("put aside, an answer that nobody took yet: ", iter(waiting))
    lines += [f"does not count, and is left where it is: {OLD_RUN}"] if files.names(OLD_RUN) else []
    return [" ".join(line.split()) for line in lines]


def adopt(session: Session[Any], look: RepoReader, at: datetime) -> list[Restored]:
    """Put a session on record as the person's, with its decisions sealed anew; returns what was put back.

    What only says what the repository says is put aside, to be looked up again, and so are answers that
    wait to be taken: whoever wrote them was not asked here.

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
    for found in (_looked_up, _replies):
        session.set_aside(found(session.workflow, session.state, session.files), "foreign")
    session.seal_anew(at)
    session.known.record(identity, ADOPTED, at)
    return ours.restored_in(ours.read(session.folder / RECORD))


def _looked_up(workflow: Workflow[S], state: S, files: Snapshot) -> list[str]:
    """What probes left of unfinished work."""
    return [path for path in dict.fromkeys(workflow.looked_up(state)) if files.exists(path)]


def _replies(workflow: Workflow[S], state: S, files: Snapshot) -> list[str]:
    """The answers that lie where a person leaves one."""
    found = [f"{MANUAL}{name}" for name in sorted(files.names(MANUAL)) if name.endswith(REPLY)]
    due = (action for action in islice(workflow.plan(state), DUE_MAX) if isinstance(action, Ask))
    return [*found, *(ask.reply_file for ask in due if ask.reply_file and files.exists(ask.reply_file))]


def _asked(files: Snapshot) -> list[str]:
    """How the session is to go on: where its work goes, what it does without, and what it was asked for."""
    identity = identity_of(files.json(IDENTITY))
    lines = [f"its work goes to the branch {identity.onto}"] if identity and identity.onto else []
    lines += _some("goes on without: ", iter(identity.without if identity else ()))
    for path in map(request_file, requests_in(files)):
        said = mapping(files.json(path))
        lines += _some(
            f"asked for ({path}): ", (f"{name}: {_value(said[name])}" for name in said if said[name])
        )
    return lines


def _value(value: object) -> str:
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), VALUE_MAX)


def _by_folder(paths: Iterable[str]) -> Iterator[str]:
    """Files by their folders: a line for each, with the names of the first and the number of the others."""
    found: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        found.setdefault(folder, []).append(name)
    for folder, names in found.items():
        yield f"{folder}/: {first_few(names, NAMED_MAX)}"


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
