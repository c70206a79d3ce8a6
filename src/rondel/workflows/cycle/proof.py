"""Proof: whether the engine closed what a state document says is over.

The engine leaves how an iteration ended in `aggregate.json`, with its mark, before the state
says so. In a cycle that was begun here a state that claims more was written by somebody else.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from rondel.model.changes import Document
from rondel.model.marks import mark
from rondel.model.snapshot import Snapshot
from rondel.workflows.cycle import layout
from rondel.workflows.cycle.documents import Doc
from rondel.workflows.cycle.transitions import record_of
from rondel.workflows.cycle.values import mapping


def closing_mark(begun: str, iteration: int, status: str) -> str:
    """The mark of an iteration that was closed, with what became of the cycle."""
    return mark(begun, "cycle", str(iteration), status)


def claims_more(files: Snapshot, document: Mapping[str, Any], begun: str) -> bool:
    """Whether a document says that the cycle, or its iteration, is over where the engine did not."""
    number = _number(document)
    done = document.get("status") == "completed"
    if not done and not (record_of(document, number) or {}).get("completed_at"):
        return False
    end = mapping(files.json(layout.aggregate(number)))
    status = str(end.get("status"))
    closed = end.get("mark") == closing_mark(begun, number, status) and number >= _latest(files)
    return not closed or (done and status != "completed")


def without_claims(files: Snapshot, document: Document) -> Document:
    """The document with the cycle going on where its parts show it to be; the rest is as it was."""
    after: Doc = copy.deepcopy(document)
    number = after["current_iteration"] = max(_number(document), _latest(files))
    if after.get("status") == "completed":
        after["status"] = "running" if number else "created"
    if after.get("current_phase") == "complete":
        after["current_phase"] = "ra" if number else "init"
    after.pop("completed_at", None)
    record = record_of(after, number)
    if record is not None:
        record.pop("completed_at", None)
        record["resolved"] = False
    return after


def _number(document: Mapping[str, Any]) -> int:
    number = document.get("current_iteration")
    return number if isinstance(number, int) else 0


def _latest(files: Snapshot) -> int:
    """The last iteration that the engine began."""
    return max(layout.iterations(files), default=0)
