"""Complexity: how large a session is. It may grow, and never shrinks."""

from __future__ import annotations

from enum import StrEnum

MEDIUM_FROM = 5
COMPLEX_FROM = 16


class Complexity(StrEnum):
    """The classes of a session, in their order."""

    SIMPLE = "simple"
    MEDIUM = "medium"
    COMPLEX = "complex"


def classify(count: int, levels: int) -> Complexity:
    """The class of so many tasks on so many levels."""
    if count >= COMPLEX_FROM:
        return Complexity.COMPLEX
    if count >= MEDIUM_FROM or levels > 1:
        return Complexity.MEDIUM
    return Complexity.SIMPLE


def upgraded(now: Complexity, count: int, levels: int) -> Complexity:
    """The class of a session that was `now`: the higher of the two."""
    order = list(Complexity)
    return max(now, classify(count, levels), key=order.index)
