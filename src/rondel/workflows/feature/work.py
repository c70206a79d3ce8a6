"""One pass through one phase, as its parts show it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from rondel.model.marks import is_theirs
from rondel.model.refs import branch_or_none, is_commit
from rondel.model.snapshot import Snapshot
from rondel.model.workflow import Edited
from rondel.workflows.feature import layout
from rondel.workflows.feature.phases import ARTIFACTS, IMPLEMENT, SPECIFY
from rondel.workflows.feature.review import Review, review_of
from rondel.workflows.feature.tasks import Task, parse_tasks

_TAKE = re.compile(r"take-([1-9]\d{0,5})\.json")


@dataclass(frozen=True)
class Attempt:
    """Somebody took a phase up: for which request, how, and what the artifact was then."""

    number: int
    request: int
    how: str  # new, again, fresh, continue, review
    pass_number: int  # which pass's parts it works on
    base: str | None = None  # the digest of the artifact when the pass began, where it was ours
    adopt: int | None = None  # the iteration whose draft is the artifact as it stands


@dataclass(frozen=True)
class Verdict:
    """A review that was given: of which text or commit, and when."""

    review: Review
    of: str
    at: str


@dataclass(frozen=True)
class Round:
    """One iteration: something drafted, then reviewed, then entered in the history."""

    number: int
    draft: str | None  # the digest of the document, or the commit
    verdict: Verdict | None
    entered: bool


@dataclass(frozen=True)
class Base:
    """Where implementation or verification begins."""

    commit: str
    branch: str
    checks: str


@dataclass(frozen=True)
class Work:
    """A phase and its latest pass."""

    phase: str
    files: Snapshot
    take: Attempt | None
    configured: str = ""  # the project's tests, where the settings name them

    @property
    def checks(self) -> str:
        """The command that runs the project's tests: what the settings say now, else what was found."""
        return self.configured or (self.base.checks if self.base else "")

    @property
    def folder(self) -> str:
        """Where the parts of this pass lie."""
        return layout.folder(self.phase, self.take.pass_number if self.take else 1)

    @property
    def artifact(self) -> str | None:
        """The file the phase leaves; None for code."""
        return ARTIFACTS.get(self.phase)

    @cached_property
    def published(self) -> str | None:
        """The digest of the artifact as it stands."""
        return self.files.digest(self.artifact) if self.artifact else None

    @property
    def digest_now(self) -> str | None:
        """The same now, not when the state was read."""
        return self.files.digest(self.artifact) if self.artifact else None

    @property
    def is_foreign(self) -> bool:
        """Whether the artifact is a text that Rondel neither wrote nor has had as a draft before."""
        if self.artifact is None or not is_theirs(self.files, self.artifact):
            return False
        return self.files.digest(self.artifact) not in _drafts(self.files, f"{layout.PARTS}/{self.phase}")

    @cached_property
    def rounds(self) -> tuple[Round, ...]:
        """The iterations that have begun, in order."""
        found: list[Round] = []
        while True:
            round_ = self._round(len(found) + 1)
            if round_.draft is None and round_.verdict is None:
                return tuple(found)
            found.append(round_)

    @property
    def settled(self) -> Round | None:
        """The last iteration that was reviewed."""
        return next((r for r in reversed(self.rounds) if r.verdict), None)

    @property
    def number(self) -> int:
        """The iteration under way, or the next."""
        return self.settled.number + 1 if self.settled else 1

    def draft(self, number: int) -> str | None:
        """What was drafted in an iteration."""
        return self.files.text(layout.draft(self.folder, number)) if number > 0 else None

    def _round(self, number: int) -> Round:
        drafted = (
            self._commit(number)
            if self.phase == IMPLEMENT
            else self.files.digest(layout.draft(self.folder, number))
        )
        return Round(
            number,
            drafted,
            self._verdict(number),
            self.files.exists(layout.entry(self.folder, number)),
        )

    def _verdict(self, number: int) -> Verdict | None:
        """A review on disk. One that a person spoilt is no approval; it is asked for again."""
        value = self.files.json(layout.review(self.folder, number))
        parsed = review_of(value)
        if parsed.review is None or not isinstance(value, Mapping):
            return None
        return Verdict(parsed.review, str(value.get("artifact", "")), str(value.get("at", "")))

    # -- code ---------------------------------------------------------------------------

    @cached_property
    def base(self) -> Base | None:
        """Where the code begins, once somebody looked."""
        value = self.files.json(layout.base(self.folder))
        if not isinstance(value, Mapping) or not is_commit(value.get("commit")):
            return None
        branch = branch_or_none(value.get("branch")) or ""
        return Base(str(value["commit"]), branch, str(value.get("checks") or ""))

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """What is to be done, in order; without a task list, the specification."""
        found = parse_tasks(self.files.text(layout.TASKS) or "")
        if found:
            return found
        spec = self.files.text(ARTIFACTS[SPECIFY]) or ""
        return (Task("1", "implement the specification", spec.strip()),)

    def done(self, task: Task) -> Mapping[str, object] | None:
        """What came of a task; None while it is to be done."""
        value = self.files.json(layout.task(self.folder, task.key))
        return value if isinstance(value, Mapping) else None

    @property
    def open_tasks(self) -> tuple[Task, ...]:
        """The tasks still to be done, in order."""
        return tuple(t for t in self.tasks if self.done(t) is None)

    @cached_property
    def edits(self) -> tuple[Mapping[str, object], ...]:
        """Everything that was carried out, in order."""
        return tuple(self._records.values())

    @property
    def edited(self) -> tuple[Edited, ...]:
        """Those of them that are commits."""
        return tuple(
            Edited(path, str(edit["commit"]), str(edit.get("title") or ""))
            for path, edit in self._records.items()
            if is_commit(edit.get("commit"))
        )

    @cached_property
    def _records(self) -> dict[str, Mapping[str, object]]:
        """What was carried out, by the file that says so."""
        found: dict[str, Mapping[str, object]] = {}
        for task in self.tasks:
            if (done := self.done(task)) is not None:
                found[layout.task(self.folder, task.key)] = done
        number = 2
        while isinstance(fix := self.files.json(layout.fix(self.folder, number)), Mapping):
            found[layout.fix(self.folder, number)] = fix
            number += 1
        return found

    @property
    def tip(self) -> str | None:
        """The commit the code is at."""
        for edit in reversed(self.edits):
            if is_commit(edit.get("commit")):
                return str(edit["commit"])
        return self.base.commit if self.base else None

    @property
    def changed(self) -> tuple[str, ...]:
        """The files touched so far."""
        names: dict[str, None] = {}
        for edit in self.edits:
            listed = edit.get("changed")
            names |= dict.fromkeys(str(n) for n in listed) if isinstance(listed, list) else {}
        return tuple(names)

    def _commit(self, number: int) -> str | None:
        """What an iteration of the implementation came to, once all of it is done."""
        if self.base is None:
            return None
        if number == 1:
            return self.tip if not self.open_tasks else None
        return self.tip if self.files.exists(layout.fix(self.folder, number)) else None


def read_work(files: Snapshot, phase: str) -> Work:
    """The latest pass through a phase."""
    numbers = [int(m.group(1)) for n in files.names(f"{layout.PARTS}/{phase}") if (m := _TAKE.fullmatch(n))]
    return Work(phase, files, _take(files, phase, max(numbers)) if numbers else None)


def _take(files: Snapshot, phase: str, number: int) -> Attempt:
    value = files.json(layout.take(phase, number))
    found = value if isinstance(value, Mapping) else {}
    base = found.get("base")
    return Attempt(
        number,
        _count(found.get("request")) or 0,
        str(found.get("how", "continue")),
        _count(found.get("pass")) or number,
        base if isinstance(base, str) else None,
        _count(found.get("adopt")),
    )


def _drafts(files: Snapshot, folder: str) -> set[str | None]:
    """The digests of all drafts of a phase, in all its passes."""
    found: set[str | None] = set()
    for name in files.names(folder):
        if name.startswith("iteration-"):
            found.add(files.digest(f"{folder}/{name}draft.md"))
        elif name.startswith("pass-"):
            found |= _drafts(files, f"{folder}/{name[:-1]}")
    return found


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None
