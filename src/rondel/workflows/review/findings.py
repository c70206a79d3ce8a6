"""Findings: what a reviewer reports, as a value. Whatever a reviewer sends is untrusted.

A reviewer answers in Markdown with one fenced `json` block. `parse_reviewer_json` reads that
block: enumerations in any case and with the usual synonyms, texts cut to a bound, paths kept
only when they stay in the repository. What cannot be read is said in words that the reviewer
can act on, and never becomes "no findings".
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum

from rondel.errors import UnsafePath
from rondel.model import jsons
from rondel.model.changes import Document
from rondel.model.names import inside

ANSWER_MAX = 2_000_000
FINDINGS_MAX = 200
TITLE_MAX = 200
TEXT_MAX = 4_000
LINE_MAX = 10_000_000


class Category(StrEnum):
    """What a finding asks for, the most urgent first."""

    BLOCKER = "blocker"
    SHOULD_FIX = "should_fix"
    SUGGESTION = "suggestion"
    STYLE = "style"


class Severity(StrEnum):
    """How bad it is if the finding is right, the worst first."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"


@dataclass(frozen=True)
class Finding:
    """One thing one reviewer says about the change.

    `rule` is the name of the rule it breaks, where an analyser found it. `verified` says that
    the quotation in `evidence` is in the change; `fingerprint` is the finding's name across
    rounds. These two are given by code, never taken from a reviewer.
    """

    title: str
    category: Category
    severity: Severity
    file: str | None = None
    line: int | None = None
    line_end: int | None = None
    problem: str = ""
    suggestion: str = ""
    evidence: str = ""
    reviewer: str = ""
    verified: bool = False
    fingerprint: str = ""
    rule: str = ""

    @property
    def text(self) -> str:
        """What it says, in one text: for comparing it with another."""
        return "\n".join(part for part in (self.title, self.problem) if part)

    def document(self) -> Document:
        """As JSON; `finding_of` reads it back."""
        return asdict(self)


_CATEGORIES: Mapping[str, Category] = {
    word: category
    for category, words in {
        Category.BLOCKER: "blocker blockers blocking must_fix must critical_issue showstopper",
        Category.SHOULD_FIX: "should_fix shouldfix should fix important major issue bug defect warning",
        Category.SUGGESTION: "suggestion suggestions suggest consider optional improvement minor could",
        Category.STYLE: "style nit nitpick nits cosmetic formatting readability trivial",
    }.items()
    for word in words.split()
}
_SEVERITIES: Mapping[str, Severity] = {
    word: severity
    for severity, words in {
        Severity.CRITICAL: "critical blocker fatal severe highest p0 s0",
        Severity.HIGH: "high major error important p1 s1",
        Severity.MEDIUM: "medium moderate med normal warning warn p2 s2",
        Severity.LOW: "low minor small p3 s3",
        Severity.INFO: "info informational information note none trivial nit negligible p4 s4",
    }.items()
    for word in words.split()
}
# What a finding has that gives only the one of the two.
SEVERITY_FROM: Mapping[Category, Severity] = {
    Category.BLOCKER: Severity.CRITICAL,
    Category.SHOULD_FIX: Severity.MEDIUM,
    Category.SUGGESTION: Severity.LOW,
    Category.STYLE: Severity.INFO,
}
CATEGORY_FROM: Mapping[Severity, Category] = {
    Severity.CRITICAL: Category.BLOCKER,
    Severity.HIGH: Category.SHOULD_FIX,
    Severity.MEDIUM: Category.SHOULD_FIX,
    Severity.LOW: Category.SUGGESTION,
    Severity.INFO: Category.STYLE,
}


_RULE = re.compile(r"[A-Za-z][\w.-]{0,59}")
_FENCE = re.compile(
    r"^[ \t]*+(?:```++|~~~++)[ \t]*+(?:jsonc?5?[ \t]*+)?\r?\n\s*+(?=[{\[])", re.MULTILINE | re.IGNORECASE
)
_CLOSING = re.compile(r"^[ \t]*(?:```|~~~)", re.MULTILINE)


def category_of(text: object) -> Category | None:
    """The category a word means: `Must-Fix` is a blocker."""
    return _CATEGORIES.get(_word(text))


def severity_of(text: object) -> Severity | None:
    """The severity a word means: `MAJOR` is high."""
    return _SEVERITIES.get(_word(text))


def _word(text: object) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.casefold()).strip("_") if isinstance(text, str) else ""


def parse_reviewer_json(text: str, reviewer: str = "") -> tuple[tuple[Finding, ...], str | None]:
    """The findings of a reviewer's answer, and what is wrong with it, if anything.

    With an error there may still be findings: those that could be read.
    """
    if len(text) > ANSWER_MAX:
        return (), f"the answer has {len(text)} characters; at most {ANSWER_MAX} are read"
    blocks, error = _blocks(text)
    if not blocks:
        return (), error or 'there is no fenced json block {"findings": […]}; end the answer with one'
    if any(block != blocks[0] for block in blocks[1:]):
        return (), f'there are {len(blocks)} json blocks with "findings" that differ; send exactly one'
    found, wrong = _findings(blocks[0], reviewer)
    return found, error or wrong


def _blocks(text: str) -> tuple[list[dict[str, object]], str | None]:
    """Every JSON object with `findings`, in a fence or else the whole text; and what breaks one."""
    found: list[dict[str, object]] = []
    error = None
    after = 0
    for fence in _FENCE.finditer(text):
        if fence.start() < after:
            continue
        value, end, wrong = _decode(text, fence.end())
        after = max(after, end)
        if block := _with_findings(value):
            found.append(block)
        elif wrong and '"findings"' in _CLOSING.split(text[fence.end() :], maxsplit=1)[0]:
            error = wrong
    start = len(text) - len(text.lstrip())
    if not found and error is None and text[start : start + 1] in ("{", "["):
        value, _, error = _decode(text, start)
        found = [block for block in [_with_findings(value)] if block]
    return found, error


def _decode(text: str, start: int) -> tuple[object, int, str | None]:
    try:
        value, end = jsons.load_from(text, start)
    except json.JSONDecodeError as wrong:
        line = text.count("\n", start, wrong.pos) + 1
        return None, start, f"the json block does not parse: {wrong.msg} in its line {line}"
    except ValueError:
        return None, start, "the json block does not parse: it is nested too deeply or has a number too long"
    return value, end, None


def _with_findings(value: object) -> dict[str, object] | None:
    if isinstance(value, dict) and "findings" in value:
        return value
    if isinstance(value, list) and value and all(isinstance(v, dict) and "title" in v for v in value):
        return {"findings": value}
    return None


def _findings(block: Mapping[str, object], reviewer: str) -> tuple[tuple[Finding, ...], str | None]:
    items = block["findings"]
    if items is None:
        items = []
    if not isinstance(items, list):
        return (), '"findings" must be a list'
    wrong = []
    found = []
    if len(items) > FINDINGS_MAX:
        wrong.append(f"there are {len(items)} findings; send the {FINDINGS_MAX} that matter most")
    for number, item in enumerate(items[:FINDINGS_MAX], 1):
        finding, problem = _finding(item, reviewer)
        if finding is not None:
            found.append(finding)
        if problem:
            wrong.append(f"finding {number}: {problem}")
    return tuple(found), "; ".join(wrong[:10]) or None


def _finding(item: object, reviewer: str) -> tuple[Finding | None, str | None]:
    if not isinstance(item, dict):
        return None, "it is not an object"
    problem = clean(_first(item, "problem", "issue", "description", "details", "message"), TEXT_MAX)
    title = one_line(_first(item, "title", "name", "summary") or problem, TITLE_MAX)
    if not title:
        return None, 'it has no "title" and no "problem"'
    category, severity = category_of(item.get("category")), severity_of(item.get("severity"))
    if category is None and _word(item.get("category")):
        return None, f"category {item.get('category')!r:.40} is not one of {', '.join(Category)}"
    if category is None and severity is None:
        return None, f'it needs a "category", one of {", ".join(Category)}'
    category = category or CATEGORY_FROM[severity or Severity.MEDIUM]
    file, line, line_end = place(
        _first(item, "file", "path", "location"), item.get("line"), item.get("line_end")
    )
    return Finding(
        title=title,
        category=category,
        severity=severity or SEVERITY_FROM[category],
        file=file,
        line=line,
        line_end=line_end,
        problem=problem,
        suggestion=clean(_first(item, "suggestion", "fix", "recommendation"), TEXT_MAX),
        evidence=clean(_first(item, "evidence", "quote", "code"), TEXT_MAX),
        reviewer=reviewer,
        rule=rule if isinstance(rule := item.get("rule"), str) and _RULE.fullmatch(rule) else "",
    ), None


def finding_of(document: object) -> Finding | None:
    """A finding from a document of ours; None when it is not one."""
    finding, _ = _finding(document, "")
    if finding is None or not isinstance(document, dict):
        return None
    given = {key: one_line(document.get(key), TITLE_MAX) for key in ("reviewer", "fingerprint")}
    return Finding(**{**vars(finding), **given, "verified": document.get("verified") is True})


def _first(item: Mapping[str, object], *keys: str) -> object:
    return next((item[key] for key in keys if item.get(key)), None)


def clean(text: object, length_max: int) -> str:
    """A text of bounded length without control characters; what is not a text is empty."""
    if isinstance(text, list) and all(isinstance(part, str) for part in text):
        text = "\n".join(text)
    if not isinstance(text, str):
        return ""
    kept = "".join(
        c for c in text[: 2 * length_max].replace("\r\n", "\n") if c in "\n\t" or _visible(c)
    ).strip("\n ")
    return kept if len(kept) <= length_max else kept[: length_max - 1].rstrip() + "…"


def one_line(text: object, length_max: int) -> str:
    """A text of bounded length on one line."""
    return " ".join(clean(text, length_max).split())


def _visible(char: str) -> bool:
    """Whether a character may stand in a file: no control character, no half of a pair, no bidi trick."""
    return unicodedata.category(char) not in {"Cc", "Cs", "Cf"} or char in "\u200c\u200d"


def place(file: object, line: object, line_end: object) -> tuple[str | None, int | None, int | None]:
    """Where a finding is: a path in the repository, a line, a last line. Each None where it is not usable.

    Reads `src/a.py:12-15`, `L12`, `"12"`; a line without a file is no place.
    """
    text = one_line(file, 1_000).strip("`'\"<> ").replace("\\", "/")
    inline = re.search(r"(?::|#|\s\(?lines? )L?(\d{1,8})(?:\s?[-\u2013:]\s?L?(\d{1,8}))?\)?$", text)
    if inline:
        text = text[: inline.start()]
    path = text.removeprefix("./").rstrip(" ,:")
    try:
        path = inside(path, "file")
    except UnsafePath:
        return None, None, None
    first, last = _number(line)
    if first is None and inline:
        first, last = _number("-".join(part for part in inline.groups() if part))
    end = _number(line_end)[0] or last
    if first is None or (end is not None and end < first):
        end = None
    return path, first, end


def _number(value: object) -> tuple[int | None, int | None]:
    """A line and, for `12-15`, the last line."""
    if isinstance(value, bool):
        return None, None
    if isinstance(value, list) and value:
        value = "-".join(str(part)[:9] for part in value[:2])
    match = re.fullmatch(
        r"\s*L?(\d{1,8})(?:\.0)?(?:\s*[-\u2013:,]\s*L?(\d{1,8}))?\s*", str(value)[:40], re.IGNORECASE
    )
    if not match:
        return None, None
    first, last = int(match[1]), int(match[2]) if match[2] else None
    return (first, last) if 0 < first <= LINE_MAX else (None, None)


def locate(file: str | None, files: Iterable[str]) -> str | None:
    """The changed file that a reviewer's path means, when exactly one fits; else the path as it is.

    Reviewers write paths from elsewhere: with `a/`, from inside a folder, or only the name.
    """
    known = list(files)
    if file is None or file in known:
        return file
    longer = [f for f in known if f.endswith(f"/{file}")]
    shorter = [f for f in known if file.endswith(f"/{f}")]
    best = max(shorter, key=len, default=None)
    if best is not None:
        return best
    return longer[0] if len(longer) == 1 else file
