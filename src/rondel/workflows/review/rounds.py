"""Which rounds there are and which one is next. Pure: folder names in, numbers out.

The highest number counts, compared as a number; what is not a round's folder is not there.
A round is complete when it has its `final.md`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from rondel.model.snapshot import Snapshot
from rondel.workflows.review.layout import ROUNDS, RoundFiles, round_files

_ROUND = re.compile(r"round-0*([1-9][0-9]*)")


@dataclass(frozen=True)
class Round:
    """A round that is there."""

    files: RoundFiles
    complete: bool

    @property
    def number(self) -> int:
        """Its number, whatever its folder's padding."""
        return self.files.number


@dataclass(frozen=True)
class Resolution:
    """What the next run works on."""

    current_round: int
    new_round: bool  # the round is not there yet
    complete_rounds: tuple[int, ...]


def folders_of(names: Iterable[str], is_complete: Callable[[str], bool]) -> dict[int, str]:
    """The folder of each round among these names, in order of the numbers.

    Of `round-8` and `round-08` the complete one counts, else the unpadded one.
    """
    found: dict[int, str] = {}
    for name in sorted(names, key=len):
        match = _ROUND.fullmatch(name)
        if match is None:
            continue
        number = int(match[1])
        if number not in found or (is_complete(name) and not is_complete(found[number])):
            found[number] = name
    return dict(sorted(found.items()))


def resolve(rounds: tuple[Round, ...]) -> Resolution:
    """Where the next run works: an unfinished last round is resumed, after a complete one comes the next."""
    complete = tuple(r.number for r in rounds if r.complete)
    if not rounds:
        return Resolution(1, new_round=True, complete_rounds=complete)
    last = rounds[-1]
    if last.complete:
        return Resolution(last.number + 1, new_round=True, complete_rounds=complete)
    return Resolution(last.number, new_round=False, complete_rounds=complete)


def folders_in(files: Snapshot) -> dict[int, str]:
    """The folder of each round of a session, in order of the numbers."""
    folders = [name[:-1] for name in files.names(ROUNDS) if name.endswith("/")]
    return folders_of(folders, lambda name: files.exists(round_files(0, name).final))


def round_in(files: Snapshot, number: int, folder: str) -> Round:
    """One round of a session."""
    at = round_files(number, folder)
    return Round(at, files.exists(at.final))


def junk_in(files: Snapshot, folders: Iterable[str]) -> tuple[str, ...]:
    """Names in `rounds/` that look like rounds and are none of these, which count: for a person."""
    found = {name.rstrip("/") for name in files.names(ROUNDS)}.difference(folders)
    return tuple(sorted(n for n in found if n.startswith("round") and ".set-aside-" not in n))
