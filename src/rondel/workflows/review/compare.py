"""Two rounds side by side: what is new, fixed, reopened, persisting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rondel.errors import UsageError
from rondel.model.changes import Document, Json
from rondel.workflows.review.read import ReviewState, entries_of
from rondel.workflows.review.report import place_of
from rondel.workflows.review.result import Entry, State

GROUPS = ("new", "reopened", "persisting", "fixed", "refuted", "accepted")


@dataclass(frozen=True)
class Comparison:
    """What changed between two rounds, by group."""

    first: int
    second: int
    groups: Mapping[str, tuple[Entry, ...]]

    def document(self) -> Document:
        """As JSON."""
        groups: Document = {name: [_row(e) for e in self.groups[name]] for name in GROUPS}
        return {"rounds": [self.first, self.second], **groups}


def _row(entry: Entry) -> Json:
    f = entry.finding
    return {
        "id": entry.item.id,
        "fingerprint": entry.item.fingerprint,
        "title": f.title,
        "category": f.category.value,
        "severity": f.severity.value,
        "file": f.file,
        "line": f.line,
        "place": place_of(f),
        "reason": entry.reason,
    }


def compare(
    first: Sequence[Entry], second: Sequence[Entry], earlier: Iterable[Entry] = ()
) -> dict[str, tuple[Entry, ...]]:
    """The findings of two rounds in groups. `earlier` are the findings of every round before the second."""
    open_before = [e for e in first if e.state.is_open]
    open_now = [e for e in second if e.state.is_open]
    names_before = _names(open_before)
    names_ever = _names(earlier) | _names(first)
    names_now = _names(open_now)
    groups: dict[str, list[Entry]] = {name: [] for name in GROUPS}
    for entry in open_now:
        mine = _names([entry])
        if mine & names_before:
            groups["persisting"].append(entry)
        elif mine & names_ever or entry.state is State.REOPENED:
            groups["reopened"].append(entry)
        else:
            groups["new"].append(entry)
    for entry in open_before:
        if not _names([entry]) & names_now:
            found = next((e for e in second if _names([e]) & _names([entry])), None)
            state = found.state if found else State.FIXED
            groups[state.value].append(found or entry)
    return {name: tuple(entries) for name, entries in groups.items()}


def _names(entries: Iterable[Entry]) -> set[str]:
    return {name for e in entries for name in e.item.names}


def compare_rounds(state: ReviewState, first: int | None, second: int | None) -> Comparison:
    """Two complete rounds of a session; without numbers the last two."""
    done = {r.number: r.files for r in state.rounds if r.complete}
    numbers = sorted(done)
    if second is None:
        second = numbers[-1] if numbers else None
    if first is None:
        first = max((n for n in numbers if second is not None and n < second), default=None)
    for number in (first, second):
        if number not in done:
            there = ", ".join(map(str, numbers)) or "none"
            which = number or "to compare with"
            raise UsageError(f"{state.ref.name} has no complete round {which}; complete rounds: {there}")
    if first is None or second is None:
        raise UsageError(f"{state.ref.name} has no two complete rounds to compare")
    earlier = [e for n in numbers if n < second for e in entries_of(state.files, done[n])]
    groups = compare(entries_of(state.files, done[first]), entries_of(state.files, done[second]), earlier)
    return Comparison(first, second, groups)
