"""Changes to a `.meta.json`, each a function from the document to the document.

Order and limits hold here: nothing is completed that was not started, no iteration is past
the limit, no time runs backwards. What would break a rule raises UsageError and changes
nothing. Fields nobody here knows stay, and another spelling of a field is kept in step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from rondel.errors import UsageError
from rondel.model.changes import Document, Json
from rondel.model.times import parse_time, stamp
from rondel.workflows.feature.meta import NAMES, comparable, completed_phases, current_phase, latest, stamped
from rondel.workflows.feature.phases import FINISH, PHASES, limit_of

KNOWN = ("started", "completed", "verified", "iterations", "reviewerNotes")


def merge_phase(meta: Document, phase: str, updates: Mapping[str, object]) -> Document:
    """`updates` put into the phase's record; a completion moves `currentPhase`."""
    if phase not in PHASES:
        raise UsageError(f"no phase {phase!r}; there are: {', '.join(PHASES)}")
    unknown = sorted(set(updates) - set(KNOWN))
    if unknown:
        raise UsageError(f"a phase has no field {unknown[0]!r}; there are: {', '.join(KNOWN)}")
    before = _record(meta, phase)
    after = dict(before)
    for name in KNOWN:
        if name in updates:
            _put(after, name, _checked(meta, phase, name, updates[name]))
    _ordered(phase, before, after)
    if "completed" not in updates:
        return _with(meta, phase, after)
    _status(after, "completed")
    return _named(_with(meta, phase, after), phase)


def phase_opened(meta: Document, phase: str, at: datetime) -> Document:
    """The phase is under way, for the first time or again.

    What an earlier pass left in the record goes: it says nothing about this one.
    """
    record = _record(meta, phase)
    if stamped(record, "completed"):
        gone = {"verified", "iterations", "reviewerNotes", *NAMES["completed"]}
        record = {k: v for k, v in record.items() if k not in gone}
        _put(record, "started", stamp(at))
    elif not stamped(record, "started"):
        _put(record, "started", stamp(at))
    _status(record, "in_progress")
    meta = _with(meta, phase, record)
    if meta.get("currentPhase") == phase or meta.get("lastCompletedPhase") == phase:
        meta = _named(meta, None)
    return meta


def phase_closed(  # the five values of one completion
    meta: Document,
    phase: str,
    at: datetime,
    *,
    rounds: int,
    verified: bool,
    concerns: Sequence[str] = (),
) -> Document:
    """The phase is completed after `rounds`; `concerns` are what the reviewer still held against it.

    A clock that was set back does not make a phase end before it began.
    """
    record = _record(meta, phase)
    end = stamp(_not_before(record, at))
    updates: dict[str, object] = {
        "started": None if stamped(record, "started") else end,
        "completed": end,
        "iterations": rounds,
        "verified": verified,
        "reviewerNotes": list(concerns) if concerns else None,
    }
    return merge_phase(meta, phase, {k: v for k, v in updates.items() if v is not None})


def feature_ended(meta: Document, status: str, at: datetime, reason: str = "") -> Document:
    """The whole feature is completed or abandoned."""
    record = _record(meta, FINISH)
    end = stamp(_not_before(record, at))
    if not stamped(record, "started"):
        _put(record, "started", end)
    _put(record, "completed", end)
    after: Document = {**_with(meta, FINISH, record), "status": status, "completed": end}
    if reason:
        after["abandoned_reason"] = reason
    return _named(after, FINISH)


def _not_before(record: Document, at: datetime) -> datetime:
    begun = comparable(stamped(record, "started"))
    return at if begun is None or begun <= at else begun


def _record(meta: Document, phase: str) -> Document:
    phases = meta.get("phases")
    record = phases.get(phase) if isinstance(phases, dict) else None
    return dict(record) if isinstance(record, dict) else {}


def _with(meta: Document, phase: str, record: Document) -> Document:
    phases = meta.get("phases")
    return {**meta, "phases": {**(phases if isinstance(phases, dict) else {}), phase: record}}


def _put(record: Document, name: str, value: Json) -> None:
    """Set a field, and the other spelling of it where the file uses that."""
    for spelling in NAMES.get(name, (name,))[1:]:
        if spelling in record:
            record[spelling] = value
    record[name] = value


def _status(record: Document, word: str) -> None:
    """Some files say the status of a phase as well; it follows."""
    if "status" in record:
        record["status"] = word


def _named(meta: Document, phase: str | None) -> Document:
    """`currentPhase` is the phase completed latest; by the clock where the clocks can be compared."""
    done = [p for p in completed_phases(meta) if p in PHASES]
    last = (latest(meta, done) or phase) if done else None
    if last is None and done:
        last = current_phase(
            {k: v for k, v in meta.items() if k not in ("currentPhase", "lastCompletedPhase")}
        )
    after: Document = {**meta, "currentPhase": last}
    if "lastCompletedPhase" in meta:
        after["lastCompletedPhase"] = last
    return after


def _checked(meta: Document, phase: str, name: str, value: object) -> Json:
    if name in NAMES:
        return _time(phase, name, value)
    if name == "verified" and isinstance(value, bool):
        return value
    if name == "iterations" and isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        most = limit_of(meta.get("mode"))
        if value > most:
            raise UsageError(f"{phase}: {value} iterations; mode {meta.get('mode')!r} allows {most}")
        return value
    if name == "reviewerNotes" and isinstance(value, Sequence) and not isinstance(value, str):
        return [str(note) for note in value]
    raise UsageError(f"{phase}.{name} cannot be {value!r}")


def _time(phase: str, name: str, value: object) -> str:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise UsageError(f"{phase}.{name} needs a time with its offset; {value.isoformat()} has none")
        return stamp(value)
    if isinstance(value, str) and parse_time(value):
        return value
    raise UsageError(f"{phase}.{name} needs an ISO-8601 time; {value!r} is none")


def _ordered(phase: str, before: Document, after: Document) -> None:
    started, completed = stamped(after, "started"), stamped(after, "completed")
    if completed and not started:
        raise UsageError(f"{phase} cannot be completed: it was not started")
    begun, done = comparable(started), comparable(completed)
    if begun and done and done < begun:
        raise UsageError(f"{phase} cannot be completed at {completed}: it was started at {started}")
    for name in NAMES:
        was, now = comparable(stamped(before, name)), comparable(stamped(after, name))
        if was and now and now < was:
            raise UsageError(f"{phase}.{name} cannot go back from {stamped(before, name)}")
