"""Ids: `IMPL-N` for a main task, `IMPL-N.M` for its subtask, and no deeper.

`IMPL-001` is the same task as `IMPL-1` to whoever refers to it; a file keeps its spelling.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_FORM = re.compile(r"^IMPL-(\d{1,9})((?:\.\d{1,9})*)$", re.IGNORECASE)
LEVELS_MAX = 2

Numbers = tuple[int, ...]
Find = Callable[[str], str | None]  # the id of the task that is meant; None when there is no such task


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


def finder(task_ids: Iterable[str]) -> Find:
    """Finds the task that is meant by an id, in whatever spelling; of two with the same numbers the first."""
    exact: set[str] = set()
    by_numbers: dict[Numbers, str] = {}
    for task_id in task_ids:
        exact.add(task_id)
        if parts := numbers(task_id):
            by_numbers.setdefault(parts, task_id)
    return lambda meant: meant if meant in exact else by_numbers.get(numbers(meant) or ())


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
