"""Brackets: whether `[name]` is a reference or bash.

A known name is a reference everywhere but where bash wants a subscript. An unknown one is
taken for a mistake, and not for bash, unless it can only be a pattern, a subscript or a link.
"""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass
from itertools import pairwise

REFERENCE = re.compile(r"\[([A-Za-z_][\w-]*(?:\.[\w-]+)*)\]")
_PAIR_MAX = 2
_ENDS_WORD = " \t\n;&|<>()"


def references(text: str) -> list[str]:
    """Everything in a text that has the form of a reference."""
    return REFERENCE.findall(text)


@dataclass(frozen=True)
class Place:
    """Where brackets stand in a script."""

    text: str
    found: re.Match[str]
    bare: bool  # outside all quotes
    word_start: int | None  # of the bare word they stand in
    in_array: bool  # between the parentheses of an array
    in_pattern: bool  # where bash expects a pattern: [[ … ]] and case
    in_code: bool  # in ${…} or arithmetic, where a name before the brackets is an array's

    @property
    def name(self) -> str:
        """What the brackets hold."""
        return self.found[1]

    @property
    def before(self) -> str:
        """The character before the brackets."""
        return self.text[: self.found.start()][-1:]

    @property
    def after(self) -> str:
        """The character after the brackets."""
        return self.text[self.found.end() : self.found.end() + 1]


def is_reference(place: Place, known: Container[str]) -> bool:
    """Whether the brackets stand for a value."""
    if _is_escaped(place) or _is_subscript(place):
        return False
    if place.name in known:
        return True
    if "-" in place.name or is_word(place.before) or place.before in ("]", ")", "$"):
        return False
    return _could_be_bare(place) if place.bare else _could_be_quoted(place)


def _could_be_bare(place: Place) -> bool:
    """Not where a pattern is expected, and not what reads like one inside a longer word."""
    if place.in_pattern:
        return False
    ends = not place.after or place.after in _ENDS_WORD
    alone = ends and place.word_start == place.found.start()
    return alone or not _is_class(place.name)


def _could_be_quoted(place: Place) -> bool:
    """Not a link, and not a set of characters in a regular expression."""
    repeated = place.after != "" and place.after in "*+{"
    expression = _is_class(place.name) and (place.before == "^" or repeated)
    idiom = len(place.name) <= _PAIR_MAX and is_word(place.after)  # grep '[s]shd'
    return not expression and not idiom and place.after != "("


def _is_subscript(place: Place) -> bool:
    """Whether this is a subscript on the left side of an assignment, or in an array."""
    if place.in_code and is_word(place.before):
        return True
    if place.word_start is None:
        return False
    if place.in_array and place.after == "=":
        return True
    return (
        re.fullmatch(r"\w+", place.text[place.word_start : place.found.start()]) is not None
        and re.match(r"\+?=", place.text[place.found.end() :]) is not None
    )


def _is_escaped(place: Place) -> bool:
    head = place.text[: place.found.start()]
    return (len(head) - len(head.rstrip("\\"))) % 2 == 1


def _is_class(name: str) -> bool:
    """Whether a name reads like a set of characters: one or two of them, or ascending ones."""
    return len(name) <= _PAIR_MAX or all(a < b for a, b in pairwise(name))


def is_word(char: str) -> bool:
    """Whether a character may be part of a name."""
    return char.isalnum() or char == "_"
