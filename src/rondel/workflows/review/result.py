"""What a round comes to, as values: weights, old findings that are settled, the verdict, `round-meta.json`.

How they come about is in `judge`, how they are shown in `report`. A `final.md` makes a round complete,
whoever wrote it: so the document says. An approval is only what Rondel made: `round-meta.json` names the
digest of the final review and carries the session's mark, so that neither can be written, or changed,
by the way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property

from rondel.model.changes import Document, Json
from rondel.model.codec import Names, decode
from rondel.model.jsons import items
from rondel.model.marks import signature, unsigned
from rondel.model.names import digest
from rondel.model.snapshot import Snapshot
from rondel.workflows.review.aggregate import Item, item_of
from rondel.workflows.review.findings import Category, Finding
from rondel.workflows.review.layout import RoundFiles
from rondel.workflows.review.markdown import counted
from rondel.workflows.review.responses import Answer, Refutation

FAILED = "Could not be checked: "  # how a question of checks begins where an analyser failed
NO_PRAISE = "Analysers do not praise."
FINAL, MARK = "final_sha256", "mark"
_REQUIREMENT = re.compile(
    r"\b(requirements?|spec(s|ification)?|acceptance|user stor(y|ies)|ticket)\b", re.IGNORECASE
)
_CODE = re.compile(r"`[^`]*`|(?<![^\s`])[^\s`]*?\w\.\w\S*")  # a name in code, a file


class Verdict(StrEnum):
    """What the review says about the change."""

    APPROVE = "APPROVE"
    REQUEST_CHANGES = "REQUEST CHANGES"
    NEEDS_DISCUSSION = "NEEDS DISCUSSION"


class Standing(StrEnum):
    """What is left of a finding after the discourse."""

    SUPPORTED = "supported"
    DISPUTED = "disputed"  # challenged, nobody defended it, nothing left of its weight
    REFUTED = "refuted"  # by a quotation that is really there


@dataclass(frozen=True)
class Weighed:
    """A finding with its weight and how it came about."""

    item: Item
    weight: int
    standing: Standing
    agreed: tuple[str, ...] = ()
    challenged: tuple[str, ...] = ()
    defended: bool = False
    refutation: Refutation | None = None

    @property
    def blocks(self) -> bool:
        """Whether the change must not go in with it."""
        return self.standing is Standing.SUPPORTED and self.item.finding.category is Category.BLOCKER


@dataclass(frozen=True)
class Carried:
    """An open finding of an earlier round."""

    id: str  # C1
    item: Item
    session: str = ""
    round: int = 0  # the round it comes from

    @property
    def finding(self) -> Finding:
        """What it says."""
        return self.item.finding


def carried_of(documents: Iterable[object]) -> tuple[Carried, ...]:
    """The old findings in a request, numbered C1, C2 and so on."""
    rows = []
    for document in documents:
        item = item_of(document)
        if item is not None and isinstance(document, dict):
            number = document.get("round")
            rows.append((item, str(document.get("session", "")), number if isinstance(number, int) else 0))
    return tuple(
        Carried(f"C{n}", replace(item, id=f"C{n}"), session, number)
        for n, (item, session, number) in enumerate(rows, 1)
    )


@dataclass(frozen=True)
class Since:
    """What the repository shows about old findings, compared with the round they come from."""

    known: bool = False  # that round's commit is still there
    touched: Names = frozenset()
    present: Mapping[str, bool | None] = field(default_factory=dict)  # by fingerprint: its quotation is there
    diff: str = ""


def since_of(document: object) -> Since:
    """What a probe found, from its part."""
    return decode(Since, document) or Since()


@dataclass(frozen=True)
class Settled:
    """What became of an old finding, and who says so."""

    carried: Carried
    answer: Answer
    reason: str
    by: str
    same_as: str = ""  # the finding of this round that says the same


class FindingState(StrEnum):
    """What a finding is after a round."""

    OPEN = "open"
    REOPENED = "reopened"
    FIXED = "fixed"
    REFUTED = "refuted"
    ACCEPTED = "accepted"

    @property
    def is_open(self) -> bool:
        """Whether the next round must answer it."""
        return self in (FindingState.OPEN, FindingState.REOPENED)


@dataclass(frozen=True)
class Entry:
    """A finding with what it is after the round."""

    item: Item
    state: FindingState
    weight: int
    reason: str = ""
    weighed: Weighed | None = None
    carried_from: str = ""  # the session and round it comes from, when nobody reported it anew

    @property
    def finding(self) -> Finding:
        """What it says."""
        return self.item.finding

    def document(self) -> Document:
        """As in `round-meta.json`; `entry_of` reads it back."""
        standing = self.weighed.standing.value if self.weighed else Standing.SUPPORTED.value
        return {
            **self.item.document(),
            "state": self.state.value,
            "weight": self.weight,
            "standing": standing,
            "reason": self.reason,
            "carried_from": self.carried_from,
        }


def entry_of(document: object) -> Entry | None:
    """An entry of a `round-meta.json`; None when it is not one."""
    item = item_of(document)
    if item is None or not isinstance(document, dict):
        return None
    state, weight = document.get("state"), document.get("weight")
    return Entry(
        item,
        FindingState(state) if state in set(FindingState) else FindingState.OPEN,
        weight if isinstance(weight, int) else 1,
        str(document.get("reason") or ""),
        carried_from=str(document.get("carried_from") or ""),
    )


def entries_in(meta: object) -> tuple[Entry, ...]:
    """The entries of a `round-meta.json`."""
    return tuple(e for item in items(meta, "findings") if (e := entry_of(item)) is not None)


@dataclass(frozen=True)
class Question:
    """A question of a reviewer."""

    reviewer: str
    text: str
    by_checks: bool = False

    @property
    def is_open(self) -> bool:
        """Whether there is no approval before it is answered."""
        return self.about_requirements or self.is_failure

    @property
    def is_failure(self) -> bool:
        """Whether it says that an analyser failed on changed files."""
        return self.by_checks and self.text.startswith(FAILED)

    @property
    def about_requirements(self) -> bool:
        """Whether the change cannot be judged before it is answered."""
        return _REQUIREMENT.search(_CODE.sub("", self.text)) is not None


@dataclass(frozen=True)
class Result:
    """What a round came to."""

    entries: tuple[Entry, ...]
    settled: tuple[Settled, ...] = ()
    questions: tuple[Question, ...] = ()
    praise: tuple[Question, ...] = ()

    @property
    def open(self) -> tuple[Entry, ...]:
        """What is to be done, the gravest first."""
        return tuple(e for e in self.entries if e.state.is_open)

    def of(self, *categories: Category) -> tuple[Entry, ...]:
        """The open findings of some categories."""
        return tuple(e for e in self.open if e.finding.category in categories)

    @property
    def counts(self) -> dict[str, int]:
        """`synthesis_counts`: how many open findings of each kind; style counts as suggestion."""
        return {
            "blockers": len(self.of(Category.BLOCKER)),
            "should_fix": len(self.of(Category.SHOULD_FIX)),
            "suggestions": len(self.of(Category.SUGGESTION, Category.STYLE)),
        }

    @property
    def verdict(self) -> Verdict:
        """What follows from it."""
        return self.judgement[0]

    @property
    def why(self) -> str:
        """The verdict in one sentence."""
        return self.judgement[1]

    @cached_property
    def judgement(self) -> tuple[Verdict, str]:
        """The verdict and its reason: open blockers first, then questions that must be answered."""
        if blockers := self.counts["blockers"]:
            return Verdict.REQUEST_CHANGES, f"{counted(blockers, 'open blocker')}."
        asked = sum(q.about_requirements for q in self.questions)
        open_ = [f"{counted(asked, 'open question')} about the requirements"] if asked else []
        open_ += ["analysers failed on changed files"] if any(q.is_failure for q in self.questions) else []
        if open_:
            return Verdict.NEEDS_DISCUSSION, f"No blocker, but {' and '.join(open_)}."
        return Verdict.APPROVE, "No open blocker."


@dataclass(frozen=True)
class Attendance:
    """Who was asked in a round, and who did not answer and why."""

    team: tuple[str, ...]
    missing: Mapping[str, str]
    mechanical: frozenset[str] = frozenset()

    @property
    def answered(self) -> tuple[str, ...]:
        """Those who answered."""
        return tuple(name for name in self.team if name not in self.missing)


def enough(answered: int, team: int) -> bool:
    """Whether as many reviewers answered as a verdict needs: at least half, and at least one."""
    return answered > 0 and 2 * answered >= team


# -- round-meta.json -----------------------------------------------------------------------


def meta_document(
    result: Result, attendance: Attendance, findings: Mapping[str, Sequence[Finding]], about: Document
) -> Document:
    """`round-meta.json`."""
    reviewers: list[Json] = [
        {
            "name": name,
            "type": name.rpartition("-")[0],
            "status": "missing" if name in attendance.missing else "answered",
            "reason": attendance.missing.get(name, ""),
            "kind": "checks" if name in attendance.mechanical else "agent",
            "findings": [f.document() for f in findings.get(name, ())],
        }
        for name in attendance.team
    ]
    entries: list[Json] = [e.document() for e in result.entries]
    settled: list[Json] = [
        {
            "finding": s.carried.id,
            "fingerprint": s.carried.finding.fingerprint,
            "title": s.carried.finding.title,
            "answer": s.answer.value,
            "reason": s.reason,
            "by": s.by,
            "same_as": s.same_as,
        }
        for s in result.settled
    ]
    counts: Document = dict(result.counts)
    return {
        "schema_version": 1,
        **about,
        "verdict": result.verdict.value,
        "synthesis_counts": counts,
        "reviewers": reviewers,
        "findings": entries,
        "carried": settled,
        "questions": [{"reviewer": q.reviewer, "text": q.text} for q in result.questions],
    }


class Made(StrEnum):
    """Who made a final review."""

    HERE = "made by Rondel"
    CHANGED = "changed since Rondel made it"
    ELSEWHERE = "not made by Rondel"


def signed(files: Snapshot, at: RoundFiles, meta: Document, final: bytes) -> Document:
    """The account of a round with the digest of its final review, and the session's mark for both."""
    whole: Document = {**meta, FINAL: digest(final)}
    mark = _mark(files, at, whole)
    return {**whole, MARK: mark} if mark is not None else whole


def made(files: Snapshot, at: RoundFiles) -> Made:
    """Who made the final review of a round."""
    meta = files.json(at.meta)
    if isinstance(meta, dict) and MARK in meta:
        rest = {k: v for k, v in meta.items() if k != MARK}
        if meta[MARK] == _mark(files, at, rest):
            return Made.HERE if files.digest(at.final) == meta.get(FINAL) else Made.CHANGED
    ended = meta.get("completed_at") if isinstance(meta, dict) else None
    older = unsigned(files, ended) and files.exists(at.part("aggregation.json"))  # of the version before
    return Made.HERE if older else Made.ELSEWHERE


def _mark(files: Snapshot, at: RoundFiles, meta: Document) -> str | None:
    whole = json.dumps(meta, sort_keys=True, ensure_ascii=True)
    return signature(files, "review", str(at.number), digest(whole))
