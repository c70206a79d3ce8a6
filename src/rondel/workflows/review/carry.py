"""What becomes of open findings from round to round.

The answer of a reviewer is a claim: "fixed" counts when the code it was about has changed
since, "refuted" when it quotes code that is there, "accepted" for a blocker only from a
person. Without a claim the code itself answers, as far as it can. In doubt a finding stays open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rondel.model.changes import Document
from rondel.workflows.review.aggregate import Item, item_of
from rondel.workflows.review.findings import Category, Finding
from rondel.workflows.review.merge import merge_findings
from rondel.workflows.review.responses import Answer, CarriedAnswer


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

    def document(self) -> Document:
        """As in a request; `carried_of` reads it back."""
        return {**self.item.document(), "id": self.id, "session": self.session, "round": self.round}


@dataclass(frozen=True)
class Since:
    """What the repository shows about old findings, compared with the round they come from."""

    known: bool = False  # that round's commit is still there
    touched: frozenset[str] = frozenset()
    present: Mapping[str, bool | None] = field(default_factory=dict)  # by fingerprint: its quotation is there
    diff: str = ""


@dataclass(frozen=True)
class Known:
    """What else is known when old findings are settled."""

    accepted: Mapping[str, str] = field(default_factory=dict)  # a person's reasons, by fingerprint
    true_quotes: frozenset[str] = frozenset()  # quotations that were found in the code
    checkers: frozenset[str] = frozenset()  # reviewers of this round that are no model: they forget nothing


@dataclass(frozen=True)
class Settled:
    """What became of an old finding, and who says so."""

    carried: Carried
    answer: Answer
    reason: str
    by: str
    same_as: str = ""  # the finding of this round that says the same


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


def since_of(document: object) -> Since:
    """What a probe found, from its part."""
    if not isinstance(document, dict):
        return Since()
    touched, present = document.get("touched"), document.get("present")
    return Since(
        known=document.get("known") is True,
        touched=frozenset(str(p) for p in touched) if isinstance(touched, list) else frozenset(),
        present={str(k): v for k, v in present.items() if v is None or isinstance(v, bool)}
        if isinstance(present, dict)
        else {},
        diff=str(document.get("diff") or ""),
    )


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
