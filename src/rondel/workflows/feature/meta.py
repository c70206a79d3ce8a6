"""What a `.meta.json` says, in every shape there is of it. Reading only, and total.

The document's own names come first; `startedAt`, `completedAt`, `lastCompletedPhase`, `slug`
and reviewer notes as text or mapping are read too. Whatever is missing or of another type
reads as absent. Light enough for a hook: no model is built, the functions look into the
parsed JSON as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from rondel.model import jsons
from rondel.model.times import has_offset, parse_time
from rondel.workflows.feature.phases import PHASES, next_after

FILE = ".meta.json"
NAMES = {"started": ("started", "startedAt"), "completed": ("completed", "completedAt")}
DEPTH_MAX = 3
NONE: Mapping[str, object] = {}


def records(meta: Mapping[str, object]) -> dict[str, Mapping[str, object]]:
    """The phases on record, in the order of the file; one that is no object reads as empty."""
    phases = meta.get("phases")
    if not isinstance(phases, Mapping):
        return {}
    return {str(name): r if isinstance(r, Mapping) else NONE for name, r in phases.items()}


def stamped(record: Mapping[str, object], what: str) -> str | None:
    """When a phase was `started` or `completed`, as the file writes it."""
    for name in NAMES[what]:
        value = record.get(name)
        if value:
            return str(value)
    return None


def comparable(text: str | None) -> datetime | None:
    """A time that says its offset, so that it may be compared; None for any other."""
    return parse_time(text) if text is not None and has_offset(text) else None


def iterations(record: Mapping[str, object]) -> int | None:
    """How often the phase was drafted and reviewed."""
    count = record.get("iterations")
    return count if isinstance(count, int) and not isinstance(count, bool) else None


def notes(record: Mapping[str, object]) -> tuple[str, ...]:
    """The reviewer's notes: a list, a string, a mapping, or one of these as JSON in a string."""
    return tuple(_notes(record.get("reviewerNotes"), 0))


def _notes(value: object, depth: int) -> list[str]:
    if value is None or value == "" or depth > DEPTH_MAX:
        return []
    if isinstance(value, str):
        inner = _decoded(value)
        return [value] if inner is None else _notes(inner, depth + 1)
    if isinstance(value, list):
        return [note for item in value for note in _notes(item, depth + 1)]
    if isinstance(value, Mapping):
        for key in ("description", "summary", "message", "note"):
            if isinstance(value.get(key), str):
                who = value.get("severity") or value.get("reviewer")
                return [f"[{who}] {value[key]}" if who else str(value[key])]
        return [f"{key}: {item}" for key, item in value.items()]
    return [str(value)]


def _decoded(text: str) -> list[object] | dict[str, object] | None:
    if not text.lstrip().startswith(("[", "{")):
        return None
    try:
        value = jsons.load(text)
    except ValueError:
        return None
    return value if isinstance(value, (list, dict)) else None


def word(meta: Mapping[str, object], *names: str) -> str:
    """The first of these fields that is a text with something in it."""
    for name in names:
        value = meta.get(name)
        if isinstance(value, str) and value.strip():
            return value
    return ""


def title(meta: Mapping[str, object], fallback: str = "") -> str:
    """What a person calls the feature."""
    return word(meta, "name", "slug") or fallback


def completed_phases(meta: Mapping[str, object]) -> tuple[str, ...]:
    """The phases with a time of completion, in the order of the file."""
    return tuple(name for name, r in records(meta).items() if stamped(r, "completed"))


def partial_phases(meta: Mapping[str, object]) -> tuple[str, ...]:
    """The phases started and not completed, in the order of the file."""
    return tuple(
        name for name, r in records(meta).items() if stamped(r, "started") and not stamped(r, "completed")
    )


def current_phase(meta: Mapping[str, object]) -> str | None:
    """The phase completed last.

    What the file names counts where it is a phase and was completed, or where the file
    keeps no phases; otherwise the latest by time, or the furthest where times say nothing.
    """
    done = [p for p in completed_phases(meta) if p in PHASES]
    named = word(meta, "currentPhase", "lastCompletedPhase")
    if named in PHASES and (named in done or not isinstance(meta.get("phases"), Mapping)):
        return named
    if not done:
        return None
    return latest(meta, done) or max(done, key=PHASES.index)


def latest(meta: Mapping[str, object], among: list[str]) -> str | None:
    """Which of these was completed latest; None when a time among them cannot be compared."""
    times = {p: comparable(stamped(records(meta)[p], "completed")) for p in among}
    known = {p: t for p, t in times.items() if t is not None}
    if len(known) < len(among):
        return None
    return max(known, key=lambda p: (known[p], PHASES.index(p) if p in PHASES else -1))


def due_phase(meta: Mapping[str, object]) -> str | None:
    """What is due next: a phase under way, else the one after the phase completed last.

    A phase left open long ago, with later ones completed since, is not under way.
    """
    current = current_phase(meta)
    at = -1 if current is None else PHASES.index(current)
    found = records(meta)
    since = comparable(stamped(found.get(current or "", NONE), "completed"))
    open_ = []
    for name in partial_phases(meta):
        if name in PHASES:
            begun = comparable(stamped(found[name], "started"))
            if PHASES.index(name) > at or (begun and since and begun > since):
                open_.append(name)
    return open_[-1] if open_ else next_after(current)
