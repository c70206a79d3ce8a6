"""Dialects: what a `final.md` or a reviewer's file says, whoever wrote it.

Reads our own files and those of the tool people use today: the verdict under its heading, in
the heading or after a bold word; sections of blockers, fixes and suggestions whose items are
numbered, marked with an emoji or bullets; reviewers' findings with their fields. A verdict
that is unclear or stated in two ways is no verdict.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from rondel.model.changes import Document
from rondel.model.markdown import Line, Section, outline, plain, whole
from rondel.workflows.review.findings import (
    CATEGORY_FROM,
    SEVERITY_FROM,
    TEXT_MAX,
    TITLE_MAX,
    Category,
    Finding,
    Severity,
    category_of,
    clean,
    one_line,
    parse_reviewer_json,
    place,
    severity_of,
)

REVIEW_MAX = 2_000_000
VERDICTS = ("APPROVE", "REQUEST CHANGES", "NEEDS DISCUSSION")


@dataclass(frozen=True)
class ParsedReview:
    """What a file says: its verdict, or None; how many findings of each kind; and which."""

    verdict: str | None = None
    counts: Mapping[str, int] = field(
        default_factory=lambda: {"blockers": 0, "should_fix": 0, "suggestions": 0}
    )
    findings: tuple[Finding, ...] = ()

    def document(self) -> Document:
        """As JSON."""
        return {
            "verdict": self.verdict,
            "counts": dict(self.counts),
            "findings": [finding.document() for finding in self.findings],
        }


def parse_review(text: str) -> ParsedReview:
    """What a final review or a reviewer's file says. Never raises."""
    text = text.removeprefix("\ufeff")
    sections = outline(text[:REVIEW_MAX])
    kinds = {kind[0] for section in sections if (kind := _kind_of(section))}
    listed = tuple(_listed(sections))
    stated = any(_statements(sections))
    if Category.BLOCKER in kinds or (kinds and stated):
        findings = listed
    else:
        reported = _reported(sections, graded=stated)
        findings = parse_reviewer_json(text[:REVIEW_MAX])[0] or (*reported, *listed)
    return ParsedReview(_verdict(sections), _counts(findings, sections), findings)


# --- the verdict

_LABEL = re.compile(r"(?:(?:final|overall|our) )?verdict\s*(?:[:|\u2013\u2014-]|is\b)\s*(.*)", re.IGNORECASE)
_SPELLED = {
    "APPROVE": r"APPROVED?|APPROVAL|LGTM|ACCEPT(?:ED)?",
    "REQUEST CHANGES": r"REQUEST(?:ED|ING|S)? CHANGES|CHANGES (?:REQUESTED|REQUIRED|NEEDED)"
    r"|REJECT(?:ED)?|BLOCK(?:ED)?",
    "NEEDS DISCUSSION": r"NEEDS? (?:MORE |FURTHER )?(?:DISCUSSION|CLARIFICATION)"
    r"|DISCUSSION (?:NEEDED|REQUIRED)",
}
_CONDITION = re.compile(
    r"\W*(?:ONLY|IF|ONCE|AFTER|PENDING|UNLESS|PROVIDED|CONDITIONAL\w*|SUBJECT|WHEN"
    r"|WITH (?:REQUIRED |MINOR )?CHANGES)\b"
)
_UNCLEAR = "unclear"


def _verdict(sections: Sequence[Section]) -> str | None:
    """The one verdict that all statements of it agree on."""
    stated = {_canonical(statement) for statement in _statements(sections)} - {None}
    return stated.pop() if len(stated) == 1 and stated <= set(VERDICTS) else None


def _statements(sections: Sequence[Section]) -> Iterator[str]:
    """Every text that states the verdict."""
    for section in sections:
        title = _bare(section.title)
        if re.fullmatch(r"(?:(?:final|overall|our) )?verdict\W*", title, re.IGNORECASE):
            yield from _under_heading(section.lines)
        elif match := _LABEL.fullmatch(title):
            yield match[1]
        for line in section.lines:
            if not line.code and (match := _LABEL.fullmatch(_bare(plain(line.text)))):
                yield match[1]


def _under_heading(lines: Iterable[Line]) -> Iterator[str]:
    """The first line that is a verdict, and every other that is nothing else."""
    shown = [plain(line.text) for line in lines if not line.code]
    found = [line for line in shown if _canonical(line) is not None]
    spelled = "|".join(_SPELLED.values())
    yield from found[:1]
    yield from (line for line in found[1:] if re.fullmatch(rf"\W*(?:{spelled})\W*", line.upper()))


def _bare(text: str) -> str:
    """A line without what stands before its first letter: a number, a bullet, an emoji."""
    return re.sub(r"^[\W\d_]+", "", text)


def _canonical(statement: str) -> str | None:
    """The verdict a text begins with; `unclear` when it names several or sets a condition."""
    upper = re.sub(r"[_\-\s]+", " ", _bare(statement)).strip(" *|").upper()
    for verdict, spelled in _SPELLED.items():
        match = re.match(rf"(?:{spelled})\b", upper)
        if match:
            rest = upper[match.end() :]
            others = "|".join(other for name, other in _SPELLED.items() if name != verdict)
            several = re.match(rf"\W*(?:OR\b\W*)?(?:{others})\b", rest)
            unclear = several or (verdict == "APPROVE" and _CONDITION.match(rest))
            return _UNCLEAR if unclear else verdict
    return None


# --- sections of findings

_SECTIONS = (
    (Category.BLOCKER, r"(?:blockers?|blocking(?: issues?| findings?)?|must[\s-]?fix|critical issues?)"),
    (Category.SHOULD_FIX, r"should[\s-]?fix(?:es)?"),
    (Category.SUGGESTION, r"(?:suggestions?|nice to have|recommendations?|nits?|nitpicks?|style)"),
)
_TAIL = r"(?: (?:items?|issues?|findings?|before merg(?:e|ing)|for improvements?|to consider))?"
_NOTHING = re.compile(
    r"\W*(?:none\b(?! of\b)|n/a\b|nothing(?: to\b| found\b| identified\b|\W*$)|0\W*$"
    r"|no (?:[\w-]+ ){0,2}(?:blockers?|issues?|findings?|suggestions?|problems?|concerns?|items?|changes?)\b"
    r")",
    re.IGNORECASE,
)
_RESOLVED = re.compile(
    r"\b(?:RESOLVED|FIXED|ADDRESSED|WITHDRAWN)\b|[\u2705\u2714]"
    r"|[:\u2013\u2014(\[-]\s*(?:resolved|fixed|addressed)\W*$"
)
_UNRESOLVED = re.compile(r"\b(?:not|un|partially|never)[\s-]?(?:resolved|fixed|addressed)", re.IGNORECASE)
_NUMBERED = re.compile(
    r"#?\d{1,3}\s*[.):\u2013\u2014-]\s*|\d\ufe0f?\u20e3\s*"
    r"|[A-Z]{1,2}-?\d{1,3}\s*[.):\u2013\u2014-]\s*|\[\w{1,4}\]\s*"
)
_NAMED = re.compile(
    r"(?:blocker|issue|finding|suggestion|should[\s-]?fix)\s*+#?\d*+\s*+[:.\u2013\u2014-]\s*+", re.IGNORECASE
)
_EMOJI = re.compile(r"[^\w\s\"'`(\[<{@#&/.\u201c\u2018*-]+\s*")


def _kind_of(section: Section) -> tuple[Category, str] | None:
    """The kind of findings a heading opens, and what stands behind its name: `Blockers (0)`."""
    bare = _bare(section.title)
    for category, name in _SECTIONS:
        match = re.fullmatch(rf"{name}{_TAIL}\W*?((?:\(|:|\u2013|\u2014|-).*)?", bare, re.IGNORECASE)
        if match and section.level:
            return category, match[1] or ""
    return None


def _listed(sections: Sequence[Section]) -> Iterator[Finding]:
    """The findings in the sections of a final review."""
    level, category, empty = 0, Category.BLOCKER, False
    number = 0
    while number < len(sections):
        section = sections[number]
        number += 1
        inside = 0 < level < section.level
        kind = _kind_of(section)
        if kind and not (inside and kind[0] is category):
            level, category = section.level, kind[0]
            empty = bool(_NOTHING.match(kind[1].strip(" (:\u2013\u2014-)"))) or _opens_with_nothing(
                section.lines
            )
            yield from () if empty else _items(section.lines, category)
        elif inside:
            lines, end = whole(sections, number - 1)
            title, marked = _unmarked(section.title)
            if _is_resolved(section.title):
                number = end
            elif marked or not _is_topic(section, end > number):
                yield from [_finding(title, lines, category)] if marked or not empty else []
                number = end
            elif not empty:
                yield from _items(section.lines, category)
        elif section.level:
            level = 0


def _opens_with_nothing(lines: Iterable[Line]) -> bool:
    first = next((line for line in lines if line.text.strip()), None)
    return first is not None and not first.bullet and bool(_NOTHING.match(plain(first.text)))


def _is_topic(section: Section, has_deeper: bool) -> bool:
    """Whether a plain heading only gathers findings: items, not fields, come first."""
    first = next((line for line in section.lines if line.text.strip()), None)
    if first is None:
        return has_deeper
    return (first.bullet is not None and not _fields([first])) or _bold_title(first) is not None


def _unmarked(title: str) -> tuple[str, bool]:
    """A heading without its number, emoji or word, and whether it had one: then it is a finding."""
    rest = title
    for pattern in (_EMOJI, _NUMBERED, _NAMED, _EMOJI):
        rest = pattern.sub("", rest, count=1) if pattern.match(rest) else rest
    return rest.strip() or title, rest != title


def _is_resolved(text: str) -> bool:
    struck = text.strip(" *_.")
    if struck.startswith("~~") and struck.endswith("~~"):
        return True
    return bool(_RESOLVED.search(text)) and not _UNRESOLVED.search(text)


def _items(lines: Sequence[Line], category: Category) -> Iterator[Finding]:
    """The items under a heading, each with its lines: bold titles, or else a list, or else a table's rows."""
    named = [_bold_title(line) for line in lines]
    titles = named if any(named) else [line.bullet for line in lines]
    starts = [n for n, title in enumerate(titles) if title]
    found = [(titles[n] or "", lines[n + 1 : end]) for n, end in pairwise((*starts, len(lines)))]
    for title, under in found or [(row, ()) for row in _rows(lines)]:
        said = " ".join(title.split())
        if not _NOTHING.match(plain(said)) and not _is_resolved(said):
            yield _finding(said, under, category)


def _bold_title(line: Line) -> str | None:
    """The title in a line like `**1. The token is logged**`; None for any other line."""
    match = None if line.code or _FIELD.match(line.text) else re.match(r"\*\*(.+?)\*\*(.*)", line.text)
    if match is None or not (_NUMBERED.match(match[1]) or _NAMED.match(match[1])):
        return None
    return _unmarked(match[1])[0] + match[2]


def _rows(lines: Iterable[Line]) -> Iterator[str]:
    """What each row of a table says: its cell with the most letters; a row that is settled says so."""
    below = False
    for line in lines:
        text = line.text.strip()
        if line.code or not text.startswith("|"):
            below = False
        elif re.fullmatch(r"[|:\s]*+-[|:\s-]*+", text):
            below = True
        elif below:
            cells = [cell.strip() for cell in text.strip("|").split("|")]
            said = max(cells, key=lambda cell: len(re.findall(r"[^\W\d_]", cell)))
            yield f"{said} (resolved)" if any(map(_is_resolved, cells)) else said


# --- reviewers' files

_REPORTED = re.compile(
    r"(?:finding|issue|suggestion|blocker)(?:\s*#?\d+\s*[:.\u2013\u2014-]*|\s*[:\u2013\u2014-])\s*(\S.*)",
    re.IGNORECASE,
)


def _reported(sections: Sequence[Section], *, graded: bool) -> Iterator[Finding]:
    """The findings of a reviewer's file, by their headings; `graded`: only those that say how grave they are.

    Where a verdict is stated it may be a final review, whose lead writes of findings without grading them.
    """
    for number, section in enumerate(sections):
        match = _REPORTED.fullmatch(_bare(section.title)) if section.level else None
        if match and not _is_resolved(section.title):
            lines = whole(sections, number)[0]
            if not graded or "severity" in _fields(lines):
                yield _finding(match[1], lines, None)


# --- one finding

_FIELD = re.compile(
    r"(?:[-*+] )?\** ?(severity|category|location|files?|lines?|issue|problem|description|impact|fix"
    r"|why (?:it matters|this blocks)|suggest(?:ion|ed fix)|recommendation|evidence|flagged by|raised by"
    r"|reviewers?|type|weight|requirements impact) ?\** ?: ?\** ?(.*)",
    re.IGNORECASE,
)
_PROBLEM = ("issue", "problem", "description", "why it matters", "why this blocks", "impact")
_SUGGESTION = ("suggestion", "suggested fix", "fix", "recommendation")
_BY = re.compile(r"(?<!\s)\s++(?:\u2014|\u2013|--?)\s++(@[\w-]++(?:\s*+(?:,|and|&)\s*+@[\w-]++)*)(?s:.*)$")


def _fields(lines: Iterable[Line]) -> dict[str, str]:
    """`**Severity**: high` and the like; a field goes on until the next one."""
    found: dict[str, list[str]] = {}
    last = ""
    for line in lines:
        squeezed = " ".join(line.text.split())
        for part in [line.text] if line.code else re.split(r" [·|] (?=\*\*)", squeezed):
            match = None if line.code else _FIELD.match(part)
            if match:
                last = match[1].lower()
                found.setdefault(last, []).append(match[2].strip())
            elif last:
                found[last].append(part)
    return {name: "\n".join(rows).strip() for name, rows in found.items()}


def _finding(title: str, lines: Sequence[Line], category: Category | None) -> Finding:
    fields = _fields(lines)
    by = _BY.search(title)
    name = one_line(plain(title[: by.start()] if by else title).strip(" \"'\u201c\u201d"), TITLE_MAX)
    severity = severity_of(_first_word(fields.get("severity", "")))
    said = category_of(_first_word(fields.get("category", "")))
    settled = category or said or CATEGORY_FROM[severity or Severity.MEDIUM]
    problem = "\n\n".join(fields[name] for name in _PROBLEM if fields.get(name)) or _prose(lines)
    file, line, line_end = _location(fields)
    who = by[1] if by else fields.get("flagged by", "") or fields.get("raised by", "")
    return Finding(
        title=name or "(no title)",
        category=settled,
        severity=severity or SEVERITY_FROM[settled],
        file=file,
        line=line,
        line_end=line_end,
        problem=clean(problem, TEXT_MAX),
        suggestion=clean("\n\n".join(fields[n] for n in _SUGGESTION if fields.get(n)), TEXT_MAX),
        evidence=clean(fields.get("evidence"), TEXT_MAX),
        reviewer=one_line(", ".join(re.findall(r"(?<![\w-])[\w-]+-\d+", who)), TITLE_MAX),
    )


def _first_word(text: str) -> str:
    match = re.match(r"\W*([\w-]+(?:[ _]fix)?)", text)
    return match[1] if match else ""


def _prose(lines: Iterable[Line]) -> str:
    return "\n".join(line.text for line in lines if line.code or not _FIELD.match(line.text.strip())).strip(
        "\n -"
    )


_NOWHERE = re.compile(
    r"(?:n/a|none|no|not applicable|general(?:ly)?|global(?:ly)?|various|multiple|several|throughout|unknown"
    r"|all|entire|whole)(?:$|[\s,;(])",
    re.IGNORECASE,
)


def _location(fields: Mapping[str, str]) -> tuple[str | None, int | None, int | None]:
    said = fields.get("location") or fields.get("file") or fields.get("files") or ""
    first = next(iter(said.splitlines()), "")
    if _NOWHERE.match(plain(first)):
        return None, None, None
    quoted = re.search(r"`([^`]+)`", first)
    path = quoted[1] if quoted else re.split(r"[,;]\s|(?<!\s)\s++(?:and|[\u2013\u2014])\s", first)[0]
    beside = re.search(r"\blines?\b(.*)", first, re.IGNORECASE)
    numbers = fields.get("lines") or fields.get("line") or (beside[1] if beside else "")
    lines = re.search(r"\d+(?: ?[-\u2013] ?L?\d+)?", numbers)
    return place(path, lines[0] if lines else None, None)


# --- counts

_NAMES = {"blockers": r"blockers?", "should_fix": r"should[\s_-]?fix(?:es)?", "suggestions": r"suggestions?"}
_OF = {
    Category.BLOCKER: "blockers",
    Category.SHOULD_FIX: "should_fix",
    Category.SUGGESTION: "suggestions",
    Category.STYLE: "suggestions",
}


def _counts(findings: Iterable[Finding], sections: Sequence[Section]) -> dict[str, int]:
    """How many there are: those listed, or the number a line states when that is larger."""
    counts = dict.fromkeys(_NAMES, 0)
    for finding in findings:
        counts[_OF[finding.category]] += 1
    for line in (line for section in sections for line in section.lines if not line.code):
        for name, pattern in _NAMES.items():
            number = re.compile(rf"\s*(?:[-*+]\s+)?\**{pattern}\**\s*:\**\s*(\d{{1,6}})\b", re.IGNORECASE)
            for match in filter(None, map(number.match, re.split("[|·]", line.text))):
                counts[name] = max(counts[name], int(match[1]))
    for section in sections:
        kind = _kind_of(section)
        stated = re.fullmatch(r"\W*(\d{1,6})\W*", kind[1]) if kind else None
        if kind and stated:
            counts[_OF[kind[0]]] = max(counts[_OF[kind[0]]], int(stated[1]))
    return counts
