"""May this phase start now? Proceed, warn or block, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from rondel.workflows.feature.phases import (
    ARTIFACTS,
    CREATE_PLAN,
    CREATE_TASKS,
    DESIGN,
    IMPLEMENT,
    PHASES,
    SPECIFY,
)

Verdict = Literal["proceed", "warning", "blocked"]

_MADE_BY = {SPECIFY: "spec", DESIGN: "design", CREATE_PLAN: "plan", CREATE_TASKS: "tasks"}
_NEEDS = {IMPLEMENT: SPECIFY, CREATE_TASKS: CREATE_PLAN}


@dataclass(frozen=True)
class Transition:
    """Whether a phase may start. `message` is None when there is nothing to say."""

    allowed: bool
    type: Verdict
    message: str | None = None


def validate_transition(
    current_phase: str | None, target_phase: str, artifacts: Mapping[str, bool]
) -> Transition:
    """Whether `target_phase` may follow `current_phase`, the phase completed last.

    `artifacts` says which of spec, design, plan and tasks are there. A block beats a
    warning, in every mode.
    """
    for phase in (target_phase, current_phase):
        if phase is not None and phase not in PHASES:
            return blocked(f"no phase {phase!r}; there are: {', '.join(PHASES)}")
    needed = _NEEDS.get(target_phase)
    if needed and not artifacts.get(_MADE_BY[needed], False):
        missing = ARTIFACTS[needed]
        return blocked(
            f"{target_phase} needs {missing}, which is not there; run `rondel feature {needed}` first"
        )
    at = -1 if current_phase is None else PHASES.index(current_phase)
    target = PHASES.index(target_phase)
    if target <= at:
        return _warning(_backwards(target_phase, artifacts, again=target == at))
    skipped = PHASES[at + 1 : target]
    if skipped:
        return _warning(f"{target_phase} skips {', '.join(skipped)}")
    return Transition(allowed=True, type="proceed")


def blocked(message: str) -> Transition:
    """It may not start."""
    return Transition(allowed=False, type="blocked", message=message)


def _warning(message: str) -> Transition:
    return Transition(allowed=True, type="warning", message=message)


def _backwards(target: str, artifacts: Mapping[str, bool], *, again: bool) -> str:
    stale = [
        ARTIFACTS[phase]
        for phase, artifact in _MADE_BY.items()
        if PHASES.index(phase) > PHASES.index(target) and artifacts.get(artifact, False)
    ]
    doing = f"{target} is completed already; doing it again" if again else f"going back to {target}"
    return f"{doing} makes stale: {', '.join(stale)}" if stale else f"{doing} makes nothing stale"
