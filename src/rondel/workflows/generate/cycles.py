"""What a profile may declare as cycles, and what follows from their dependencies."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rondel.errors import UsageError
from rondel.model.names import is_safe_name
from rondel.workflows.generate.models import FINAL, CycleConfig, CycleState, WorkflowState, WorkflowStatus

CYCLES_MAX = 50
_TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
RESERVED = frozenset({"code", "gate", "inputs", "plan", "prompts", "responses", "session", "sources"})
_ITERATION = re.compile(r"iteration-\d+", re.IGNORECASE)


def validate_cycles(cycles: object) -> list[CycleConfig]:
    """The cycles themselves; UsageError names the first that cannot be one, and why."""
    if not isinstance(cycles, list) or not cycles:
        raise UsageError("the profile declares no cycles; get_cycles must return at least one CycleConfig")
    if len(cycles) > CYCLES_MAX:
        raise UsageError(f"the profile declares {len(cycles)} cycles; at most {CYCLES_MAX} are allowed")
    seen: dict[str, str] = {}
    for cycle in cycles:
        if not isinstance(cycle, CycleConfig):
            raise UsageError(f"get_cycles gave {cycle!r}; it must give CycleConfig values")
        _check(cycle, seen)
        seen[cycle.type.casefold()] = cycle.type
    return cycles


def _check(cycle: CycleConfig, seen: dict[str, str]) -> None:
    name = cycle.type
    if not isinstance(name, str) or not _TYPE.fullmatch(name) or not is_safe_name(name):
        raise UsageError(f"the cycle type {name!r} cannot be a folder name; use letters, digits, '-' and '_'")
    if name.casefold() in RESERVED or _ITERATION.fullmatch(name):
        raise UsageError(f"the cycle type {name!r} is reserved; choose another name")
    if name.casefold() in seen:
        raise UsageError(f"the cycle type {name!r} is declared twice; each type is one folder")
    if not isinstance(cycle.scope, str) or not cycle.scope.strip():
        raise UsageError(f"the cycle {name!r} has no scope")
    for needed in cycle.depends_on:
        if needed not in seen.values():
            there = ", ".join(seen.values()) or "none"
            raise UsageError(f"the cycle {name!r} depends on {needed!r}, which is no earlier cycle: {there}")


def needed(state: WorkflowState, cycle: CycleState) -> list[str]:
    """The cycles whose outputs a cycle gets: its `depends_on`; for a skipped one, what that depends on."""
    by_type = {c.type: c for c in state.cycles}
    found: list[str] = []
    todo = list(cycle.depends_on)
    while todo:
        other = by_type.get(todo.pop(0))
        if other is None or other.type in found:
            continue
        if other.status is WorkflowStatus.SKIPPED:
            todo = [*other.depends_on, *todo]
        else:
            found.append(other.type)
    return found


def ready(state: WorkflowState, cycle: CycleState) -> bool:
    """Whether everything a cycle depends on is there."""
    by_type = {c.type: c for c in state.cycles}
    return all(by_type[t].status in FINAL for t in cycle.depends_on if t in by_type)


def dependants(cycles: Sequence[CycleState], name: str) -> list[str]:
    """The cycles that rest on a cycle, directly or not."""
    found = {name}
    for cycle in cycles:
        if found & set(cycle.depends_on):
            found.add(cycle.type)
    return [c.type for c in cycles if c.type in found - {name}]
