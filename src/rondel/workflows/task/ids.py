"""Ids: `IMPL-N` for a main task, `IMPL-N.M` for its subtask, and no deeper.

`IMPL-001` is the same task as `IMPL-1` to whoever refers to it; a file keeps its spelling.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

_FORM = re.compile(r"^IMPL-(\d{1,9})((?:\.\d{1,9})*)$", re.IGNORECASE)
LEVELS_MAX = 2

Numbers = tuple[int, ...]


def numbers(task_id: str) -> Numbers | None:
    """The numbers of an id, of any depth; None when it has another form."""
    found = _FORM.match(task_id) if task_id.isascii() else None
    if found is None:
        return None
    return (int(found[1]), *(int(n) for n in found[2].split(".")[1:]))


def is_well_formed(task_id: str) -> bool:
    """Whether an id is `IMPL-N` or `IMPL-N.M`, in capitals."""
    parts = numbers(task_id)
    return parts is not None and len(parts) <= LEVELS_MAX and task_id.startswith("IMPL-")


def parent_of(task_id: str) -> str | None:
    """The id of the main task that a subtask's id names."""
    parts = numbers(task_id)
    if parts is None or len(parts) < LEVELS_MAX:
        return None
    return task_id.rpartition(".")[0]


def order(task_id: str) -> tuple[bool, Numbers, str]:
    """Sorts ids as a person would: by their numbers, what has another form last."""
    parts = numbers(task_id)
    return (parts is None, parts or (), task_id)


def resolve(task_id: str, among: Mapping[str, object], by_numbers: Mapping[Numbers, str]) -> str | None:
    """The id of the task that is meant; None when there is no such task."""
    if task_id in among:
        return task_id
    parts = numbers(task_id)
    return by_numbers.get(parts) if parts else None


def index(task_ids: Iterable[str]) -> dict[Numbers, str]:
    """The ids by their numbers; of two with the same numbers the first counts."""
    found: dict[Numbers, str] = {}
    for task_id in task_ids:
        parts = numbers(task_id)
        if parts:
            found.setdefault(parts, task_id)
    return found


def next_main(task_ids: Iterable[str]) -> str:
    """The next free id of a main task, padded as the others are."""
    known = list(task_ids)
    highest = max((n[0] for t in known if (n := numbers(t))), default=0)
    width = max((len(t[5:].partition(".")[0]) for t in known if re.match(r"^IMPL-0\d*", t)), default=1)
    return f"IMPL-{highest + 1:0{width}d}"


def next_sub(parent: str, task_ids: Iterable[str]) -> str:
    """The next free id of a subtask of `parent`."""
    above = numbers(parent) or ()
    under = [n for t in task_ids if (n := numbers(t)) and n[: len(above)] == above and len(n) > len(above)]
    return f"{parent}.{max((n[len(above)] for n in under), default=0) + 1}"
