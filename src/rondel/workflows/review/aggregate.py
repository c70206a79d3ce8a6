"""The findings of all reviewers as one list: placed, checked against the change, named, merged.

A finding's quotation must be in the change for it to be verified; its fingerprint is the name it keeps
across rounds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rondel.model.changes import Document, Json
from rondel.model.jsons import items
from rondel.model.names import digest
from rondel.workflows.review.change import Change
from rondel.workflows.review.dialects import parse_review
from rondel.workflows.review.findings import (
    Category,
    Finding,
    Severity,
    finding_of,
    locate,
    parse_reviewer_json,
)
from rondel.workflows.review.merge import merge_findings

_CATEGORIES = list(Category)
_SEVERITIES = list(Severity)


@dataclass(frozen=True)
class Item:
    """One finding of a round, however many reviewers made it."""

    id: str  # F1
    finding: Finding  # the one that says it best; the gravest category and severity of all
    supporters: tuple[str, ...]
    kept: bool = True  # it belongs into a short review
    score: float = 1.0
    aliases: tuple[str, ...] = ()  # further fingerprints it went by

    @property
    def fingerprint(self) -> str:
        """Its name across rounds."""
        return self.finding.fingerprint

    @property
    def names(self) -> tuple[str, ...]:
        """Every name it goes by; its own comes last."""
        return (*self.aliases, self.fingerprint)

    def document(self) -> Document:
        """As JSON; `item_of` reads it back."""
        return {
            "id": self.id,
            **self.finding.document(),
            "supporters": list(self.supporters),
            "kept": self.kept,
            "score": round(self.score, 4),
            "aliases": list(self.aliases),
        }


def item_of(document: object) -> Item | None:
    """An item from a part; None when it is not one."""
    finding = finding_of(document)
    if finding is None or not isinstance(document, dict):
        return None
    score = document.get("score")
    return Item(
        str(document.get("id", "")),
        finding,
        tuple(map(str, items(document, "supporters"))),
        document.get("kept") is not False,
        float(score) if isinstance(score, int | float) else 1.0,
        tuple(map(str, items(document, "aliases"))),
    )


def findings_in(text: str, reviewer: str) -> tuple[Finding, ...]:
    """The findings of a reviewer's file: from its json block, or else as other tools write them."""
    found, wrong = parse_reviewer_json(text, reviewer)
    if wrong is None or found:
        return found
    return tuple(replace(f, reviewer=reviewer) for f in parse_review(text).findings)


def checked(findings: Iterable[Finding], change: Change) -> list[Finding]:
    """The findings with their file as the change names it, their quotation checked, and their fingerprint."""
    whole = quotable(change.diff)
    rows = []
    for finding in findings:
        placed = replace(finding, file=locate(finding.file, change.paths))
        file = change.file(placed.file)
        context = file.near(placed.line) if file else ""
        rows.append(replace(placed, verified=verify(placed, whole), fingerprint=fingerprint(placed, context)))
    return rows


def aggregate(reviews: Mapping[str, str], change: Change) -> tuple[Item, ...]:
    """All findings of a round, the gravest first, numbered F1, F2 and so on."""
    findings = checked((f for name in sorted(reviews) for f in findings_in(reviews[name], name)), change)
    groups = merge_findings(
        [
            {"reviewer": f.reviewer, "text": f.text, "file": f.file, "line": f.line, "rule": f.rule}
            for f in findings
        ]
    )
    items = [
        _item(part, g["kept"], g["score"])
        for g in groups
        for part in apart([findings[i] for i in sorted(g["members"])])
    ]
    items.sort(key=lambda item: _order(item.finding))
    return _named_once(replace(item, id=f"F{n}") for n, item in enumerate(items, 1))


def apart(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Findings that sound alike, by where they are: two places to mend are two findings."""
    parts: list[list[Finding]] = []
    for finding in findings:
        home = next((p for p in parts if not any(_elsewhere(finding, other) for other in p)), None)
        if home is None:
            parts.append([finding])
        else:
            home.append(finding)
    return parts


def _elsewhere(one: Finding, other: Finding) -> bool:
    """Whether two findings are about different code: another file, or other lines that both quote truly."""
    if one.file and other.file and one.file != other.file:
        return True
    if not (one.verified and other.verified and one.line and other.line):
        return False
    first, second = ("".join(f.evidence.split()) for f in (one, other))
    overlap = first in second or second in first
    gap = max(one.line, other.line) - min(one.line_end or one.line, other.line_end or other.line)
    return not overlap and gap > 1


def _item(members: Sequence[Finding], kept: bool, score: float) -> Item:
    best = min(members, key=lambda f: (not f.verified, f.line is None, -len(f.problem), f.reviewer, f.title))
    category = min((f.category for f in members), key=_CATEGORIES.index)
    severity = min((f.severity for f in members), key=_SEVERITIES.index)
    names = tuple(sorted({f.reviewer for f in members}))
    others = tuple(sorted({f.fingerprint for f in members} - {best.fingerprint}))
    return Item("", replace(best, category=category, severity=severity), names, kept, score, others)


def _order(finding: Finding) -> tuple[object, ...]:
    return (
        _CATEGORIES.index(finding.category),
        _SEVERITIES.index(finding.severity),
        finding.file or "~",
        finding.line or 0,
        finding.title,
        finding.reviewer,
    )


def _named_once(items: Iterable[Item]) -> tuple[Item, ...]:
    """Two findings on the same code are two: the later one's fingerprint counts on."""
    seen: dict[str, int] = {}
    rows = []
    for item in items:
        name = item.fingerprint
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            name = f"{name}-{seen[name]}"
        rows.append(replace(item, finding=replace(item.finding, fingerprint=name)))
    return tuple(rows)


def aggregation_document(items: Iterable[Item]) -> Document:
    """The part that holds a round's findings."""
    listed: list[Json] = [item.document() for item in items]
    return {"schema_version": 1, "findings": listed}


def items_of(document: object) -> tuple[Item, ...]:
    """The findings in that part."""
    return tuple(item for one in items(document, "findings") if (item := item_of(one)) is not None)


# -- evidence --------------------------------------------------------------------------------

QUOTE_MIN = 4
_GAP = "\0"


@dataclass(frozen=True)
class Quotable:
    """The text of a change, ready to look quotations up in.

    The lines before it, the lines after it, and both as the diff mixes them, all without
    white space; a quotation cannot reach from one hunk into another.
    """

    before: str
    after: str
    mixed: str

    def has(self, quotation: str) -> bool:
        """Whether the change holds the quotation, whatever its white space."""
        return any(quotation in side for side in (self.after, self.before, self.mixed))


def quotable(diff: str) -> Quotable:
    """What may be quoted from a unified diff: context, added and removed lines."""
    before: list[str] = []
    after: list[str] = []
    mixed: list[str] = []
    in_hunk = False
    for line in diff.split("\n"):  # a form feed or the like ends no line of a diff
        kind, text = line[:1], "".join(line[1:].split())
        if line.startswith(("@@", "diff --git ")):
            in_hunk = line.startswith("@@")
            for side in (before, after, mixed):
                side.append(_GAP)
            # The text after the second @@ is the enclosing function: it may be quoted too.
            mixed.append("".join(line.rpartition("@@")[2].split()) + _GAP if in_hunk else "")
        elif not in_hunk or kind == "\\":
            continue
        else:
            mixed.append(text)
            if kind != "-":
                after.append(text)
            if kind != "+":
                before.append(text)
    return Quotable("".join(before), "".join(after), "".join(mixed))


def verify(finding: Finding, diff: str | Quotable) -> bool:
    """Whether the finding quotes the change.

    White space does not count, nor do fences, diff marks and line numbers around the
    quotation; a `...` stands for what was left out, and every part must be there. A quotation
    that is almost nothing proves nothing.
    """
    change = quotable(diff) if isinstance(diff, str) else diff
    return any(_quoted(lines, change) for lines in _readings(finding.evidence))


def _readings(evidence: str) -> list[list[str]]:
    """The ways to read a quotation: as it is, without diff marks, without line numbers."""
    lines = [line for line in evidence.splitlines() if not re.match(r"\s*(```|~~~)", line)]
    joined = "\n".join(lines).strip().strip("`").strip("\"'") if len(lines) == 1 else "\n".join(lines)
    plain = joined.splitlines()
    return [
        plain,
        "\n".join(lines).splitlines(),
        [re.sub(r"^[+\- ]", "", line) for line in plain],
        [re.sub(r"^\s*+(?:[+\-]\s*+)?L?\d+\s*[:|]?\s?[+\-]?", "", line) for line in plain],
    ]


def _quoted(lines: list[str], change: Quotable) -> bool:
    parts = solid_parts("\n".join(lines))
    solid = any(re.search(r"\w", part) for part in parts)
    return solid and all(change.has(part) for part in parts)


def solid_parts(quotation: str) -> list[str]:
    """What must be found, without white space; `...` stands for what was left out. Too little is nothing."""
    parts = ["".join(part.split()) for part in re.split(r"\.\.\.|…", quotation)]
    return [part for part in parts if part] if sum(map(len, parts)) >= QUOTE_MIN else []


def fingerprint(finding: Finding, context: str = "") -> str:
    """The name a finding keeps when lines move and its wording changes a little.

    Made of the file, the rule where there is one, and the code it is about: the most telling
    line of the quotation or else of `context` (the code at its place); without code, of the
    words of its title in any order.
    """
    anchor = _anchor(finding.evidence) or _anchor(context)
    if not anchor:
        words = re.findall(r"\w{3,}", (finding.title or finding.problem).casefold())
        anchor = " ".join(sorted(set(words)))
    return digest("\n".join((finding.file or "", finding.rule, anchor)))[:16]


def _anchor(code: str) -> str:
    """The line with the most letters, without white space, marks or numbers around it."""
    lines = [re.sub(r"^\s*(?:\d+\s*[:|]\s?)?[+\-]?", "", line) for line in code.splitlines()]
    lines = ["".join(line.strip().strip("`").split()) for line in lines]
    best = max(lines, key=lambda line: len(re.findall(r"\w", line)), default="")
    return best if len(re.findall(r"\w", best)) >= QUOTE_MIN else ""
