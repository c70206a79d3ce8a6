"""Values: what is known of a value in a command, and of the words that may hold one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class How(IntEnum):
    """What became of a value on its way: it is whole, only split into words, or changed in any way."""

    WHOLE = 0
    WORDS = 1
    CHANGED = 2


class Held(NamedTuple):
    """A value that may be somewhere."""

    name: str
    how: How


Taint = frozenset[Held]
NONE: Taint = frozenset()


def changed(taint: Iterable[Held], how: How = How.CHANGED) -> Taint:
    """The same values, no less changed than that."""
    return frozenset(Held(held.name, max(held.how, how)) for held in taint)


@dataclass(frozen=True)
class Word:
    """A word of a command."""

    text: str | None  # what it is; None where the shell puts something in its place
    head: str  # what is known of its beginning
    many: bool = False  # it may become none or several
    taint: Taint = NONE  # the values in it
    first: Taint = NONE  # the values that it may begin with


class Input(NamedTuple):
    """What a command may read besides its words."""

    fed: Taint  # on its standard input
    written: frozenset[str]  # files of plain text that hold a value
    any_file: bool  # any file may hold one
