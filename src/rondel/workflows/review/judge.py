"""From the state of a round to its result. No model decides here.

A finding weighs one for each reviewer who made it and one for each further reviewer who
agreed. Challenged and not defended, it loses one. Refuted by code that is really there, it
is refuted. A blocker that weighs anything means REQUEST CHANGES.

What a reviewer says of an old finding is a claim: "fixed" counts when the code it was about has
changed since, "refuted" when it quotes code that is there, "accepted" for a blocker only from a
person. Without a claim the code itself answers, as far as it can. In doubt a finding stays open.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rondel.errors import UsageError
from rondel.model.changes import Document, Json
from rondel.workflows.review.aggregate import Item, checked, findings_in, quotable
from rondel.workflows.review.findings import Category, Finding, parse_reviewer_json
from rondel.workflows.review.markdown import bullets, section
from rondel.workflows.review.merge import merge_findings
from rondel.workflows.review.read import ReviewState, entries_of
from rondel.workflows.review.report import About, place_of
from rondel.workflows.review.responses import Answer, CarriedAnswer, Refutation, Response, Ruling, Verb
from rondel.workflows.review.result import (
    NO_PRAISE,
    Carried,
    Entry,
    FindingState,
    Question,
    Result,
    Settled,
    Since,
    Standing,
    Weighed,
)
from rondel.workflows.review.target import Pins

GROUPS = ("new", "reopened", "persisting", "fixed", "refuted", "accepted")
_NO_QUESTION = re.compile(
    r"\W*(?:none|nothing|n/a|no (?:[\w-]+ ){0,2}(?:questions?|clarifications?))\b[^?]*", re.IGNORECASE
)


def about(state: ReviewState) -> About:
    """What the round is about, and what a reader should know of how it went."""
    pins = state.pins or Pins("", "", state.branch or state.ref.id, "the change")
    return About(state.at.number, pins, state.change, state.request.quick, tuple(_notes(state)))


def _notes(state: ReviewState) -> list[str]:
    notes = list(state.change.notes)
    for name, text in state.reviews.items():
        found, wrong = parse_reviewer_json(text, name)
        if found and wrong:
            notes.append(f"{name}: part of the answer could not be read ({wrong})")
    moved = state.part("moved.json")
    if isinstance(moved, dict) and moved.get("moved"):
        notes.append(
            f"the change has moved on since the round opened, and is not mixed in: {moved.get('words')}"
        )
    for part in ("guidance", "synthesis"):
        said = state.part(f"{part}.json")
        if isinstance(said, dict) and said.get("missing"):
            notes.append(f"the lead's {part} is missing: {said['missing']}")
    return notes


def quotes(state: ReviewState) -> frozenset[str]:
    """Every quotation that decides something and is really there."""
    change = quotable(state.change.diff)
    said = [r.evidence for r in state.refutations.values()] + [a.evidence for a in state.answers]
    return state.true_quotes | {q for q in said if q and change.has("".join(q.split()))}


def linked(state: ReviewState) -> tuple[tuple[Item, ...], dict[str, str]]:
    """The findings under the names they had in earlier rounds."""
    return link(state.carried, state.items)


def weighed(state: ReviewState) -> tuple[Weighed, ...]:
    """The findings with their weights."""
    return weigh(linked(state)[0], state.responses, state.refutations, quotes(state))


def settled(state: ReviewState) -> tuple[Settled, ...]:
    """What became of the old findings."""
    checkers = frozenset(name for name in state.attendance.answered if state.is_mechanical(name))
    known = Known(state.accepted, quotes(state), checkers)
    return settle(state.carried, linked(state)[1], state.answers, state.since, known)


def result(state: ReviewState) -> Result:
    """What the round came to."""
    checkers = state.attendance.mechanical
    return result_of(weighed(state), settled(state), state.accepted, state.before, state.reviews, checkers)


def findings(state: ReviewState) -> dict[str, list[Finding]]:
    """What each reviewer reported, checked."""
    return {name: checked(findings_in(text, name), state.change) for name, text in state.reviews.items()}


# -- weights -------------------------------------------------------------------------------


def weigh(
    items: Iterable[Item],
    responses: Sequence[Response],
    refutations: Mapping[str, Refutation],
    true_quotes: frozenset[str],
) -> tuple[Weighed, ...]:
    """Each finding with its weight. `true_quotes` are the quotations that were found in the code."""
    return tuple(_weigh(item, responses, refutations.get(item.id), true_quotes) for item in items)


def _weigh(
    item: Item, responses: Sequence[Response], refutation: Refutation | None, true_quotes: frozenset[str]
) -> Weighed:
    about = [r for r in responses if r.finding == item.id]
    agreed = {r.reviewer for r in about if r.verb is Verb.AGREE}
    challenged = {r.reviewer for r in about if r.verb is Verb.CHALLENGE} - set(item.supporters)
    upheld = refutation is not None and refutation.ruling is Ruling.STANDS
    refuted = (
        refutation is not None
        and refutation.ruling is Ruling.REFUTED
        and refutation.evidence in true_quotes
        and not agreed - set(item.supporters)
    )
    defended = bool(agreed) or upheld
    weight = len(item.supporters) + len(agreed - set(item.supporters)) - bool(challenged and not defended)
    if refuted:
        weight = max(0, weight - 1)
    standing = Standing.SUPPORTED
    if weight <= 0:
        standing = Standing.REFUTED if refuted else Standing.DISPUTED
    return Weighed(
        item, weight, standing, tuple(sorted(agreed)), tuple(sorted(challenged)), defended, refutation
    )


# -- findings of earlier rounds ------------------------------------------------------------


def link(carried: Sequence[Carried], items: Sequence[Item]) -> tuple[tuple[Item, ...], dict[str, str]]:
    """The items under their old names, and which item says the same as which old finding."""
    same: dict[str, str] = {}
    for old in carried:
        found = next((i for i in items if not set(old.item.names).isdisjoint(i.names)), None)
        if found:
            same[old.id] = found.id
    same |= _similar([old for old in carried if old.id not in same], items)
    renamed = []
    for item in items:
        olds = [old for old in carried if same.get(old.id) == item.id]
        if not olds:
            renamed.append(item)
            continue
        name = olds[0].finding.fingerprint
        others = {item.fingerprint, *item.aliases, *(o.finding.fingerprint for o in olds)} - {name}
        renamed.append(
            replace(item, finding=replace(item.finding, fingerprint=name), aliases=tuple(sorted(others)))
        )
    return tuple(renamed), same


def _similar(carried: Sequence[Carried], items: Sequence[Item]) -> dict[str, str]:
    """Old findings whose code was reworded: the same file, and the merging takes them for one."""
    if not carried or not items:
        return {}
    rows = [*(c.finding for c in carried), *(i.finding for i in items)]
    groups = merge_findings(
        [
            {
                "reviewer": "before" if n < len(carried) else f"now-{n}",
                "text": f.text,
                "file": f.file,
                "line": None,
                "rule": f.rule,
            }
            for n, f in enumerate(rows)
        ]
    )
    same: dict[str, str] = {}
    for group in groups:
        olds = [carried[i] for i in group["members"] if i < len(carried)]
        news = [items[i - len(carried)] for i in group["members"] if i >= len(carried)]
        for old in olds:
            new = next((n for n in news if n.finding.file == old.finding.file), None)
            if new:
                same[old.id] = new.id
    return same


@dataclass(frozen=True)
class Known:
    """What else is known when old findings are settled."""

    accepted: Mapping[str, str] = field(default_factory=dict)  # a person's reasons, by fingerprint
    true_quotes: frozenset[str] = frozenset()  # quotations that were found in the code
    checkers: frozenset[str] = frozenset()  # reviewers of this round that are no model: they forget nothing


def settle(
    carried: Sequence[Carried],
    same: Mapping[str, str],
    answers: Sequence[CarriedAnswer],
    since: Since,
    known: Known,
) -> tuple[Settled, ...]:
    """What became of each old finding."""
    return tuple(
        _settle(old, same.get(old.id, ""), [a for a in answers if a.finding == old.id], since, known)
        for old in carried
    )


def _settle(
    old: Carried, same_as: str, answers: Sequence[CarriedAnswer], since: Since, known: Known
) -> Settled:
    name, file, accepted = old.finding.fingerprint, old.finding.file, known.accepted
    present = since.present.get(name)
    moved = present is False or (file is not None and file in since.touched)
    if name in accepted:
        return Settled(old, Answer.ACCEPTED, accepted[name] or "accepted by a person", "person", same_as)
    if same_as:
        return Settled(old, Answer.STILL_OPEN, f"reported again as {same_as}", "the reviewers", same_as)
    claims = {a.answer: a for a in reversed(answers)}
    if open_claim := claims.get(Answer.STILL_OPEN):
        return Settled(old, Answer.STILL_OPEN, open_claim.reason, open_claim.reviewer)
    if (fixed := claims.get(Answer.FIXED)) and moved:
        return Settled(old, Answer.FIXED, fixed.reason or "the code has changed", fixed.reviewer)
    if (refuted := claims.get(Answer.REFUTED)) and refuted.evidence in known.true_quotes:
        return Settled(old, Answer.REFUTED, refuted.reason, refuted.reviewer)
    if (taken := claims.get(Answer.ACCEPTED)) and old.finding.category is not Category.BLOCKER:
        return Settled(old, Answer.ACCEPTED, taken.reason, taken.reviewer)
    if moved and old.item.supporters and set(old.item.supporters) <= known.checkers:
        return Settled(old, Answer.FIXED, "the checks that found it no longer do", "the checks")
    if present is False:
        return Settled(
            old, Answer.FIXED, "the code it quotes is gone and nobody reports it again", "the code"
        )
    if Answer.FIXED in claims:
        return Settled(old, Answer.STILL_OPEN, "said to be fixed, but its code has not changed", "the code")
    return Settled(old, Answer.STILL_OPEN, _why_open(present), "the code")


def _why_open(present: bool | None) -> str:
    if present:
        return "the code it quotes is still there"
    return "nobody answered it, and the code does not show whether it is fixed"


# -- the result ----------------------------------------------------------------------------


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


def _of_weighed(weighed: Weighed, accepted: Mapping[str, str], last: Mapping[str, FindingState]) -> Entry:
    item = weighed.item
    if item.fingerprint in accepted:
        return Entry(item, FindingState.ACCEPTED, weighed.weight, accepted[item.fingerprint], weighed)
    if weighed.standing is not Standing.SUPPORTED:
        reason = weighed.refutation.reason if weighed.refutation else "challenged, and nobody defended it"
        return Entry(item, FindingState.REFUTED, weighed.weight, reason, weighed)
    again = last.get(item.fingerprint) in (FindingState.FIXED, FindingState.REFUTED)
    return Entry(item, FindingState.REOPENED if again else FindingState.OPEN, weighed.weight, weighed=weighed)


_STATES = {
    Answer.FIXED: FindingState.FIXED,
    Answer.REFUTED: FindingState.REFUTED,
    Answer.ACCEPTED: FindingState.ACCEPTED,
    Answer.STILL_OPEN: FindingState.OPEN,
}


def _of_settled(settled: Settled) -> Entry:
    old = settled.carried
    origin = f"{old.session} round {old.round}".strip()
    return Entry(old.item, _STATES[settled.answer], 1, settled.reason, carried_from=origin)


# -- two rounds side by side ---------------------------------------------------------------


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
        elif mine & names_ever or entry.state is FindingState.REOPENED:
            groups["reopened"].append(entry)
        else:
            groups["new"].append(entry)
    for entry in open_before:
        if not _names([entry]) & names_now:
            found = next((e for e in second if _names([e]) & _names([entry])), None)
            state = found.state if found else FindingState.FIXED
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
