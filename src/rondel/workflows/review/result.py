"""The result of a round as a value: what is open, what is settled, the verdict. Rendered elsewhere."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from rondel.model.changes import Document, Json
from rondel.workflows.review.aggregate import Item, item_of
from rondel.workflows.review.carry import Settled
from rondel.workflows.review.findings import Category, Finding
from rondel.workflows.review.markdown import bullets, section
from rondel.workflows.review.responses import Answer
from rondel.workflows.review.weigh import Standing, Verdict, Weighed, verdict

FAILED = "Could not be checked: "  # how a question of checks begins where an analyser failed
NO_PRAISE = "Analysers do not praise."
_REQUIREMENT = re.compile(
    r"\b(requirements?|spec(s|ification)?|acceptance|user stor(y|ies)|ticket)\b", re.IGNORECASE
)
_CODE = re.compile(r"`[^`]*`|(?<![^\s`])[^\s`]*?\w\.\w\S*")  # a name in code, a file
_NO_QUESTION = re.compile(
    r"\W*(?:none|nothing|n/a|no (?:[\w-]+ ){0,2}(?:questions?|clarifications?))\b[^?]*", re.IGNORECASE
)


class State(StrEnum):
    """What a finding is after a round."""

    OPEN = "open"
    REOPENED = "reopened"
    FIXED = "fixed"
    REFUTED = "refuted"
    ACCEPTED = "accepted"

    @property
    def is_open(self) -> bool:
        """Whether the next round must answer it."""
        return self in (State.OPEN, State.REOPENED)


@dataclass(frozen=True)
class Entry:
    """A finding with what it is after the round."""

    item: Item
    state: State
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
        State(state) if state in set(State) else State.OPEN,
        weight if isinstance(weight, int) else 1,
        str(document.get("reason") or ""),
        carried_from=str(document.get("carried_from") or ""),
    )


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
        """See `weigh.verdict`."""
        return verdict(self.counts["blockers"], sum(q.is_open for q in self.questions))


def result_of(
    weighed: Sequence[Weighed],
    settled: Sequence[Settled],
    accepted: Mapping[str, str],
    before: Iterable[Entry],
    reviews: Mapping[str, str],
    checkers: Container[str] = (),
) -> Result:
    """The result of a round. `before` are the entries of all earlier rounds, oldest first.

    `checkers` are the reviewers that are no models: only of them it is known what a failure is.
    """
    last = {name: e.state for e in before for name in e.item.names}
    entries = [_of_weighed(w, accepted, last) for w in weighed]
    entries += [_of_settled(s) for s in settled if not s.same_as]
    order = list(Category)
    entries.sort(key=lambda e: (order.index(e.finding.category), -e.weight, not e.item.kept))
    return Result(
        tuple(entries),
        tuple(settled),
        tuple(
            Question(name, text, name in checkers)
            for name in sorted(reviews)
            for text in _list(reviews[name], "question")
            if not _NO_QUESTION.fullmatch(text)
        ),
        tuple(
            Question(name, text)
            for name in sorted(reviews)
            for text in _list(reviews[name], "what work")
            if text != NO_PRAISE
        ),
    )


def _list(review: str, heading: str) -> list[str]:
    return [text[:500] for text in bullets(section(review, heading), items_max=10)]


def _of_weighed(weighed: Weighed, accepted: Mapping[str, str], last: Mapping[str, State]) -> Entry:
    item = weighed.item
    if item.fingerprint in accepted:
        return Entry(item, State.ACCEPTED, weighed.weight, accepted[item.fingerprint], weighed)
    if weighed.standing is not Standing.SUPPORTED:
        reason = weighed.refutation.reason if weighed.refutation else "challenged, and nobody defended it"
        return Entry(item, State.REFUTED, weighed.weight, reason, weighed)
    again = last.get(item.fingerprint) in (State.FIXED, State.REFUTED)
    return Entry(item, State.REOPENED if again else State.OPEN, weighed.weight, weighed=weighed)


_STATES = {
    Answer.FIXED: State.FIXED,
    Answer.REFUTED: State.REFUTED,
    Answer.ACCEPTED: State.ACCEPTED,
    Answer.STILL_OPEN: State.OPEN,
}


def _of_settled(settled: Settled) -> Entry:
    old = settled.carried
    origin = f"{old.session} round {old.round}".strip()
    return Entry(old.item, _STATES[settled.answer], 1, settled.reason, carried_from=origin)


def entries_in(meta: object) -> tuple[Entry, ...]:
    """The entries of a `round-meta.json`."""
    listed = meta.get("findings") if isinstance(meta, dict) else None
    read = (entry_of(item) for item in (listed if isinstance(listed, list) else ()))
    return tuple(e for e in read if e is not None)


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
