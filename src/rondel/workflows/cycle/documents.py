"""The JSON of a cycle: values read whatever is there, the state changed whole, checked and logged."""

from __future__ import annotations

import copy
from collections.abc import Callable
from datetime import datetime, tzinfo
from typing import Any

from pydantic import ValidationError

from rondel.errors import DamagedFile, RondelError
from rondel.model.changes import Document, Edit
from rondel.model.summary import command_line
from rondel.model.times import stamp
from rondel.workflows.cycle import layout
from rondel.workflows.cycle.models import REQUIRED, CycleState

Doc = dict[str, Any]
Transition = Callable[[Doc], None]  # a change of the state document in place


def edit(cycle_id: str, at: datetime | None, zone: tzinfo, *transitions: Transition) -> Edit:
    """A change of the state file: the transitions in order, on the document as it is at that moment.

    What would not be a valid document is not written. Every change is a line of the log.
    """

    def change(document: Document) -> Document:
        whole = _completed(document, cycle_id)
        before = copy.deepcopy(whole)
        for transition in transitions:
            transition(whole)
        if whole == before == document:
            return document
        if at is not None:
            whole["updated_at"] = at_time(at, zone)
        if fault := fault_of(whole, cycle_id):
            raise RondelError(f"the change of {cycle_id}.json is refused: {fault}")
        return whole

    return Edit(layout.state_file(cycle_id), change, log=layout.LOG)


def at_time(at: datetime, zone: tzinfo) -> str:
    """A time as the document writes it."""
    return stamp(at.astimezone(zone))


def _completed(document: Document, cycle_id: str) -> Doc:
    """The document with everything in its place that a whole one has; what is there stays as it is."""
    whole: Doc = copy.deepcopy(document)
    fault = fault_of(document, cycle_id)
    if fault:
        raise DamagedFile(
            f"{layout.HOME}/{cycle_id}.json is not the state of this cycle: {fault}; "
            f"`{command_line('cycle', 'rebuild', cycle_id)}` restores it"
        )
    _fill(whole, CycleState.model_validate(whole).document())
    return whole


def fault_of(value: object, cycle_id: str, known: Document | None = None) -> str:
    """Why a value is not the state of this cycle; empty when it is.

    With `known`, the last state that was logged, a document that lost a field all whole
    ones have is at fault too.
    """
    if not isinstance(value, dict):
        return "it is not an object" if value is not None else "it is not there, or not JSON"
    if value.get("cycle_id") != cycle_id:
        return f"its cycle_id is {value.get('cycle_id')!r}"
    lost = [key for key in REQUIRED if known and key in known and key not in value]
    if lost:
        return f"{', '.join(lost)} is missing"
    try:
        CycleState.model_validate(value)
    except ValidationError as e:
        return first_fault(e)
    return ""


def first_fault(error: ValidationError) -> str:
    """The first thing a document has wrong: field, and what is allowed."""
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"]) or "the document"
    return f"{field}: {first['msg'][:1].lower()}{first['msg'][1:]}"


def _fill(into: Doc, source: Doc) -> None:
    for key, value in source.items():
        there = into.get(key)
        if key not in into or type(there) is not type(value):
            into[key] = value if key not in into or isinstance(value, dict | list) else there
        elif isinstance(value, dict):
            _fill(into[key], value)
        elif isinstance(value, list) and len(value) == len(into[key]):
            for mine, theirs in zip(into[key], value, strict=True):
                if isinstance(mine, dict) and isinstance(theirs, dict):
                    _fill(mine, theirs)
