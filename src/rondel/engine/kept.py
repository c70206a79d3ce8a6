"""Kept: a session's documents as its last run left them, for one that is damaged while nothing runs.

Runtime only: they may be lost at any time, and count for nothing but a repair that a person asks for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rondel.errors import MachineTrouble, RondelError
from rondel.model.jsons import parse_json
from rondel.model.summary import Problem, command_line
from rondel.store import ours
from rondel.store.documents import Committed

DOCUMENTS = "documents.json"
KEPT_MAX = 4_000_000  # bytes of all of them; of a session with more none is kept


def leave(run: Path, good: Committed) -> None:
    """Leave the documents that a driver knows to be good."""
    texts = good.texts()
    if sum(map(len, texts.values())) <= KEPT_MAX:
        with suppress(RondelError, MachineTrouble):
            ours.write_view(run / DOCUMENTS, json.dumps(texts).encode())


def last_good(run: Path, folder: Path, beside: frozenset[str]) -> Committed:
    """The documents as the last run of the session with this runtime left them."""
    good = Committed(folder, beside)
    body = parse_json(ours.view(run / DOCUMENTS))
    for path, text in body.items() if isinstance(body, dict) else ():
        if isinstance(text, str):
            good.remember(path, text.encode())
    return good


def damaged(good: Committed, *, repair: bool) -> Iterator[Problem]:
    """The documents that cannot be read now; with `repair` they are put back, and what was there is kept."""
    for path in good.texts():
        why = good.fault_now(path)
        if why is None:
            continue
        kept = good.restore(path, why).aside if repair else ""
        words = f"{why}; it is as the last run left it, what was there is {kept}" if repair else why
        then = f"`{command_line('doctor', '--repair')}` writes it as the last run left it"
        yield Problem("document-damaged", path, words, then, repaired=repair)
