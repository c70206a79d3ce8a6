"""No regular expression of the package takes the square of a text's length, whatever the text is."""

from __future__ import annotations

import re

from support.patterns import Used, slowest, used_patterns

BOUNDED = {  # patterns whose text is short when they see it
    "rondel.workflows.cycle.routing": "at most 2,000 characters",
    "rondel.workflows.task.programs": "a word of a command of at most 8,000 characters, and our own table",
}
LENGTHS = (24, 40, 500, 4_000)  # what takes more than the square is seen with the short ones
ENOUGH_S = 0.02  # in which a pattern that reads each character a few times is done ten times over


def too_slow(used: Used) -> str:
    for length in LENGTHS:
        took, text = slowest(used, length, ENOUGH_S)
        if took > ENOUGH_S and slowest(used, length, ENOUGH_S)[0] > ENOUGH_S:
            return f"{used.where} {used.method} {used.pattern.pattern[:60]!r} on {text[:40]!r}: {took:.2f} s"
    return ""


def test_every_pattern_is_found_and_none_takes_the_square_of_the_length():
    found = list(used_patterns())
    assert len({used.where for used in found}) > 250
    slow = [
        words for used in found if used.where.partition(":")[0] not in BOUNDED if (words := too_slow(used))
    ]
    assert slow == []


def test_the_texts_are_bad_enough():
    """The texts that are tried find what they are made to find."""
    for pattern, method in (
        (r"(\d+)\.(\d+)", "search"),
        (r"\s*;\s*", "split"),
        (r"(a|b|ab)*c", "match"),
        (r"^(.*?)\s*\(", "match"),
    ):
        assert too_slow(Used("here", re.compile(pattern), method)), pattern
