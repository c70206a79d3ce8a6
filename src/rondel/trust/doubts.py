"""Doubts: texts that came into a session's folder while a program was at work that nothing confined.

Such a program can write whatever the person can: the answers of other agents, a summary, a draft. So
while one is at work (a watch), and until somebody has looked where a driver died meanwhile, a text
counts that Rondel wrote, or that was there before. Any other is doubted: it is shown, no workflow
sees it, and it counts once the person has adopted it. The state documents have rules of their own,
and so have decisions (see `rondel.trust.seals`).

Where the sandbox holds there is no watch, and what a person writes counts at once.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from rondel.errors import DamagedFile
from rondel.model.changes import Document
from rondel.model.jsons import parse_json
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem, command_line
from rondel.store import documents, ours
from rondel.store.files import TEMP

NAME = "doubts.json"  # in a session's runtime
WRITTEN_MEANWHILE = "written-meanwhile"  # the rule of a Problem
PARTS = f"{ours.HOME}/parts/"
MANUAL = f"{ours.HOME}/manual/"
REPLY = ".response.md"
TORN = ".torn-"  # in the name of the last line of a log that a death cut
_JUNK = re.compile(
    r"(^|/)(\.DS_Store|Thumbs\.db|desktop\.ini|\.[^/]*\.sw[a-z]|\.#[^/]*|#[^/]*#|[^/]*~)$"
)  # of editors

Digests = Mapping[str, str]  # of files, by path


class Doubts:
    """The doubted texts of one session. `wrote` gives the digests of what Rondel wrote under a name."""

    def __init__(self, run: Path, session: str, wrote: Callable[[str], frozenset[str]]) -> None:
        self._file = run / NAME
        self._session = session
        self._wrote = wrote
        self._before: Digests | None = None  # not by Rondel, and there when the watch began; None: no watch
        self._exempt: frozenset[str] = frozenset()
        self._doubted: dict[str, str] = {}
        self._noticed: set[str] = set()  # what was asked for and hidden
        self.read()

    def read(self) -> None:
        """What is on record now; another process may have adopted something."""
        body = parse_json(ours.view(self._file))
        self._take(body if isinstance(body, dict) else {})

    def _take(self, body: Document) -> None:
        before, exempt = body.get("before"), body.get("exempt")
        self._before = _digests(before) if before is not None else None
        self._exempt = frozenset(map(str, exempt)) if isinstance(exempt, list) else frozenset()
        self._doubted = _digests(body.get("doubted"))

    @property
    def is_watching(self) -> bool:
        """Whether a program is at work that could write here, or was when its driver died."""
        return self._before is not None

    @property
    def noticed(self) -> frozenset[str]:
        """What was hidden since the record was last changed; it counts once it is on record."""
        return frozenset(self._noticed)

    @property
    def is_idle(self) -> bool:
        """Whether every text counts."""
        return self._before is None and not self._doubted

    def hides(self, path: str, shown: Snapshot) -> bool:
        """Whether the text at a path counts for nothing before the person has adopted it."""
        if self.is_idle or not _is_answer(path):
            return False
        found = shown.digest(path)
        if found is None:
            return False
        if self._doubted.get(path) == found:
            return True
        if self._before is None or path in self._exempt or found == self._before.get(path):
            return False
        if found in self._wrote(path):
            return False
        self._noticed.add(path)
        return True

    def found(self, shown: Snapshot, paths: Iterable[str] = ()) -> dict[str, str]:
        """The doubted texts by digest: those that were met before, and those among these files."""
        maybe = {*self._doubted, *self._noticed, *paths}
        return {path: shown.digest(path) or "" for path in sorted(maybe) if self.hides(path, shown)}

    def problems(self, shown: Snapshot, paths: Iterable[str] = ()) -> Iterator[Problem]:
        """Each of them, with what to do."""
        why = (
            "does not count: it was written while a program was at work that nothing confines, and may be its"
        )
        then = f"`{command_line('adopt', self._session)}` where it is yours; else remove it"
        return (Problem(WRITTEN_MEANWHILE, path, why, then, loud=True) for path in self.found(shown, paths))

    # -- changes: durable, one process at a time --------------------------------------------

    def begin(self, shown: Snapshot, paths: Iterable[str], state: Iterable[str]) -> None:
        """Watch from now on; before the program is started.

        Of the state documents those are spared that are edited in place, so that no text of theirs is
        on record; what was written as a whole, such as the findings of a round, is watched like the rest.
        """
        exempt = [path for path in state if shown.digest(path) not in self._wrote(path)]
        there = {path: shown.digest(path) or "" for path in paths if _is_answer(path)}
        before = {p: d for p, d in there.items() if d not in self._wrote(p) and not self.hides(p, shown)}
        self._change(lambda: {"before": {**before}, "exempt": [*sorted(exempt)]})

    def spare(self, paths: Iterable[str]) -> None:
        """Rondel itself changes these now, in ways that leave no record of a text: edits, moves."""
        new = {path for path in paths if _is_answer(path)} - self._exempt
        if self.is_watching and new:
            self._change(lambda: {"exempt": [*sorted({*self._exempt, *new})]})

    def end(self, shown: Snapshot, paths: Iterable[str]) -> None:
        """Nothing is at work any more: what is doubted now stays so, what comes later counts."""
        there = list(paths)
        self._change(lambda: {"before": None, "exempt": None, "doubted": {**self.found(shown, there)}})

    def adopt(self, shown: Snapshot, paths: Iterable[str]) -> list[str]:
        """The person's word: these texts count, as they are now. Gives which they are."""
        found = self.found(shown, paths)

        def counts() -> Document:
            return {"before": None if self._before is None else {**self._before, **found}, "doubted": None}

        if found:
            self._change(counts)
        return sorted(found)

    def _change(self, fields: Callable[[], Document]) -> None:
        """Change what is on record; the fields are worked out from what it says at that moment."""

        def edit(body: Document) -> Document:
            self._take(body)
            now: Document = {"schema_version": 1, **body, **fields()}
            return {key: value for key, value in now.items() if value is not None}

        place = ours.own(self._file)
        try:
            self._take(documents.edit(place, edit))
        except DamagedFile:
            ours.note(ours.session_of(place)[0], [ours.moved(place)])
            self._take(documents.edit(place, edit))
        self._noticed.clear()


def _is_answer(path: str) -> bool:
    """Whether a file of a session can be what an action leaves, or what a person answers one with."""
    name = posixpath.basename(path)
    if _JUNK.search(path) or name.startswith(TEMP) or TORN in name:
        return False
    if path.startswith(MANUAL):
        return path.endswith(REPLY)
    return not path.startswith(f"{ours.HOME}/") or path.startswith(PARTS)


def _digests(value: object) -> dict[str, str]:
    return {k: v for k, v in value.items() if isinstance(v, str)} if isinstance(value, dict) else {}
