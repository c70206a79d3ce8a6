"""What is wrong with a `.meta.json`, by rule. Total: every file gives a list, none an error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rondel.model import jsons
from rondel.workflows.feature.meta import (
    comparable,
    completed_phases,
    iterations,
    partial_phases,
    records,
    stamped,
    word,
)
from rondel.workflows.feature.phases import COMPLETED, PHASES, STATUSES, VERIFY, known_limit


@dataclass(frozen=True)
class Anomaly:
    """One rule that a file breaks; `phase` where the rule is about one."""

    rule: str
    phase: str | None
    message: str

    def to_json(self) -> dict[str, str | None]:
        """As `rondel feature lint --json` prints it."""
        return {"rule": self.rule, "phase": self.phase, "message": self.message}


def lint(data: bytes) -> tuple[Anomaly, ...]:
    """Every rule these bytes break. A file that is no JSON, or keeps no phases, has only that problem."""
    try:
        meta = jsons.load(data)
    except ValueError as e:
        return (Anomaly("invalid-json", None, f"not valid JSON: {e}"),)
    return lint_meta(meta)


def lint_meta(meta: object) -> tuple[Anomaly, ...]:
    """The same of a value that was parsed already."""
    if not isinstance(meta, Mapping) or not isinstance(meta.get("phases"), Mapping):
        return (Anomaly("no-phases", None, "the file keeps no `phases`"),)
    return (*_each_phase(meta), *_whole_file(meta))


def _each_phase(meta: Mapping[str, object]) -> Iterator[Anomaly]:
    most = known_limit(meta.get("mode"))
    for phase, record in records(meta).items():
        started, completed = stamped(record, "started"), stamped(record, "completed")
        if completed and not started:
            yield Anomaly("completed-without-started", phase, f"{phase} was completed and never started")
        begun, done = comparable(started), comparable(completed)
        if begun and done and done < begun:
            yield Anomaly(
                "completed-before-started",
                phase,
                f"{phase} was completed at {completed}, before it was started at {started}",
            )
        count = iterations(record)
        if most is not None and count is not None and count > most:
            yield Anomaly(
                "over-limit", phase, f"{phase} has {count} iterations; mode {meta['mode']} allows {most}"
            )


def _whole_file(meta: Mapping[str, object]) -> Iterator[Anomaly]:
    partial = partial_phases(meta)
    if len(partial) > 1:
        yield Anomaly("several-partial", None, f"started and not completed: {', '.join(partial)}")
    missing = _gap(meta)
    if missing:
        yield Anomaly(
            "phase-gap", None, f"not completed, though phases before and after are: {', '.join(missing)}"
        )
    mismatch = _mismatch(meta)
    if mismatch:
        yield Anomaly("last-completed-mismatch", None, mismatch)
    status = meta.get("status")
    if status not in STATUSES:
        yield Anomaly("unknown-status", None, f"status {status!r}; there are: {', '.join(STATUSES)}")
    if status == COMPLETED and not meta.get("completed"):
        yield Anomaly("completed-without-time", None, "status is completed, and `completed` is not there")


def _gap(meta: Mapping[str, object]) -> list[str]:
    counted = [phase for phase in PHASES if phase != VERIFY]
    done = [counted.index(phase) for phase in completed_phases(meta) if phase in counted]
    if not done:
        return []
    return [counted[at] for at in range(min(done), max(done)) if at not in done]


def _mismatch(meta: Mapping[str, object]) -> str:
    """What is wrong with the phase the file names as completed last; empty when nothing is."""
    done = completed_phases(meta)
    for field in ("currentPhase", "lastCompletedPhase"):
        named = word(meta, field)
        if not named:
            continue
        if named not in done:
            return f"{field} is {named}, which is not completed"
        at = comparable(stamped(records(meta)[named], "completed"))
        for phase in done:
            other = comparable(stamped(records(meta)[phase], "completed"))
            if at and other and other > at:
                return f"{field} is {named}; {phase} was completed later"
    return ""


# -- a stray brace ----------------------------------------------------------------------------


SIZE_MAX = 200_000


def without_stray_brace(data: bytes) -> bytes | None:
    """The file without the one closing brace that is too many; None where that mends nothing.

    Of several braces whose loss would make it JSON the one goes that leaves most phases
    among the phases, and of those the last: a brace that closed `phases` too early is
    found as well as one at the end.
    """
    if len(data) > SIZE_MAX or _parsed(data) is not None:
        return None
    best: tuple[int, bytes] | None = None
    at = len(data)
    while (at := data.rfind(b"}", 0, at)) >= 0:
        candidate = data[:at] + data[at + 1 :]
        meta = _parsed(candidate)
        if meta is not None:
            phases = meta.get("phases")
            kept = len(set(phases) & set(PHASES)) if isinstance(phases, dict) else 0
            if best is None or kept > best[0]:
                best = (kept, candidate)
    return best[1] if best else None


def _parsed(data: bytes) -> dict[str, object] | None:
    try:
        value = jsons.load(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
