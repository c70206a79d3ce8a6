"""Where the files of a review are, and which rounds they make. The only module that spells their names.

    .ocr/sessions/{YYYY-MM-DD}-{branch}/
    ├── state.json  discovered-standards.md  requirements.md  context.md
    └── rounds/round-N/{reviews/<type>-<k>.md, discourse.md, round-meta.json, final.md}

What the document has no place for is in `.rondel/parts/round-N/`. Of the rounds the highest number counts,
compared as a number; what is not a round's folder is not there. One is complete when it has its `final.md`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from rondel.model.decisions import DECISIONS as DECISIONS
from rondel.model.names import digest, folder_name
from rondel.model.snapshot import Snapshot

SESSIONS = ".ocr/sessions"
PERSONAS = ".ocr/reviewers"
STATE = "state.json"
STANDARDS = "discovered-standards.md"
REQUIREMENTS = "requirements.md"
CONTEXT = "context.md"
ROUNDS = "rounds"
RONDEL = ".rondel"
PARTS = ".rondel/parts"
BRANCH_MAX = 80
_REVIEWER = re.compile(r"[a-z0-9][a-z0-9-]{0,60}-[1-9][0-9]?")
_SESSION = re.compile(r"(\d{4}-\d{2}-\d{2})-.+")


class Phase(StrEnum):
    """The eight phases, in order."""

    CONTEXT = "context"
    CHANGE_CONTEXT = "change-context"
    ANALYSIS = "analysis"
    REVIEWS = "reviews"
    AGGREGATION = "aggregation"
    DISCOURSE = "discourse"
    SYNTHESIS = "synthesis"
    COMPLETE = "complete"

    @property
    def number(self) -> int:
        """1 to 8, as `phase_number` has it."""
        return list(Phase).index(self) + 1


@dataclass(frozen=True)
class RoundFiles:
    """The files of one round. `name` is its folder's, which a person may have padded: `round-08`."""

    number: int
    name: str

    @property
    def folder(self) -> str:
        """The round's folder."""
        return f"{ROUNDS}/{self.name}"

    @property
    def reviews(self) -> str:
        """The folder of the reviewers' answers."""
        return f"{self.folder}/reviews"

    def review(self, reviewer: str) -> str:
        """One reviewer's answer."""
        return f"{self.reviews}/{reviewer}.md"

    @property
    def discourse(self) -> str:
        """What the reviewers said about each other's findings."""
        return f"{self.folder}/discourse.md"

    @property
    def meta(self) -> str:
        """The round's result as JSON; written before `final`."""
        return f"{self.folder}/round-meta.json"

    @property
    def final(self) -> str:
        """The final review. Written last: it marks the round as complete."""
        return f"{self.folder}/final.md"

    def part(self, path: str) -> str:
        """An answer of this round that has no file in the document."""
        return f"{PARTS}/round-{self.number}/{path}"


def round_files(number: int, name: str | None = None) -> RoundFiles:
    """The files of round `number`; new rounds are unpadded."""
    return RoundFiles(number, name or f"round-{number}")


def session_name(day: date, branch: str, again: int = 1) -> str:
    """The folder of a branch's reviews of a day: `2026-11-15-fix-a` for `fix/a`.

    Where another branch has that folder, `again` counts on: `2026-11-15-fix-a-2`.
    """
    name = folder_name(branch)
    if len(name) > BRANCH_MAX or len(name.encode()) > 2 * BRANCH_MAX:
        while len(name) > BRANCH_MAX - 9 or len(name.encode()) > 2 * BRANCH_MAX:
            name = name[:-1]
        name = f"{name.rstrip('-.')}-{digest(branch)[:8]}"
    suffix = "" if again == 1 else f"-{again}"
    return f"{day.isoformat()}-{name}{suffix}"


def day_of(session: str) -> str | None:
    """The day in a session's name, or None when it is not one of ours."""
    match = _SESSION.fullmatch(session)
    return match[1] if match else None


def is_reviewer(name: str) -> bool:
    """Whether a name is a reviewer's: `principal-1`."""
    return _REVIEWER.fullmatch(name) is not None


# -- rounds ----------------------------------------------------------------------------------

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
