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

_ROUND = re.compile(r"round-([0-9]+)")


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


def rounds_of(folders: Iterable[str], is_complete: Callable[[str], bool]) -> tuple[Round, ...]:
    """The rounds among these folder names, in order of their numbers.

    Of `round-8` and `round-08` the complete one counts, else the unpadded one.
    """
    best: dict[int, Round] = {}
    for name in sorted(folders, key=len):
        match = _ROUND.fullmatch(name)
        if match is None or int(match[1]) == 0:
            continue
        number = int(match[1])
        found = Round(round_files(number, name), is_complete(name))
        if number not in best or (found.complete and not best[number].complete):
            best[number] = found
    return tuple(best[number] for number in sorted(best))


def resolve(rounds: tuple[Round, ...]) -> Resolution:
    """Where the next run works: an unfinished last round is resumed, after a complete one comes the next."""
    complete = tuple(r.number for r in rounds if r.complete)
    if not rounds:
        return Resolution(1, new_round=True, complete_rounds=complete)
    last = rounds[-1]
    if last.complete:
        return Resolution(last.number + 1, new_round=True, complete_rounds=complete)
    return Resolution(last.number, new_round=False, complete_rounds=complete)


def rounds_in(files: Snapshot) -> tuple[Round, ...]:
    """The rounds a session's folder shows."""
    folders = [name.rstrip("/") for name in files.names(ROUNDS) if name.endswith("/")]
    return rounds_of(folders, lambda name: files.exists(round_files(0, name).final))


def junk_in(files: Snapshot, rounds: tuple[Round, ...]) -> tuple[str, ...]:
    """Names in `rounds/` that look like rounds and are none, or one twice: for a person to look at."""
    found = {name.rstrip("/") for name in files.names(ROUNDS)} - {r.files.name for r in rounds}
    return tuple(sorted(n for n in found if n.startswith("round") and ".set-aside-" not in n))
