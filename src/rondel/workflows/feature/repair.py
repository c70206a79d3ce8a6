"""Mending a `.meta.json` that one stray brace keeps from being JSON."""

from __future__ import annotations

from rondel.model import jsons
from rondel.workflows.feature.phases import PHASES

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
