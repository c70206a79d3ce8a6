"""Lines that should not have been committed, in any language: marks, leftovers, dangerous switches."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rondel.workflows.review.analysers import base
from rondel.workflows.review.findings import Category, Severity

LINE_MAX = 2_000
LARGE_LINES = 1_000
_PROSE = (".md", ".rst", ".txt", ".adoc")
_JS = (".js", ".jsx", ".mjs", ".cjs", ".ts", ".tsx", ".vue", ".svelte")
_DYNAMIC = (*_JS, ".php", ".rb")
_SERVER = (*_DYNAMIC, ".java", ".kt", ".go", ".cs", ".scala")


@dataclass(frozen=True)
class Pattern:
    """A line that speaks for itself. Without `suffixes` it counts in every file that is no prose."""

    rule: str
    regex: re.Pattern[str]
    message: str
    kind: str
    category: Category
    severity: Severity
    suffixes: tuple[str, ...] = ()


def _p(
    rule: str, regex: str, message: str, kind: str, level: tuple[Category, Severity], *suffixes: str
) -> Pattern:
    return Pattern(rule, re.compile(regex), message, kind, *level, suffixes)


_FIX = (Category.SHOULD_FIX, Severity.MEDIUM)
_GRAVE = (Category.SHOULD_FIX, Severity.HIGH)
_HINT = (Category.SUGGESTION, Severity.LOW)
_NOTE = (Category.STYLE, Severity.INFO)

_TLS = (
    r"rejectUnauthorized\s*:\s*false|InsecureSkipVerify\s*:\s*true|NODE_TLS_REJECT_UNAUTHORIZED\s*=\s*['\"]?0"
    r"|CURLOPT_SSL_VERIFYPEER\s*(?:=>|,)\s*(?:false|0)\b|\bverify_mode\s*=\s*OpenSSL::SSL::VERIFY_NONE"
)
_DEBUGGERS = (
    r"^\s*debugger;?\s*$|\bbinding\.(?:pry|irb)\b|^\s*byebug\b|\bIEx\.pry\b|\bvar_dump\s*\(|\bdbg!\s*\("
    r"|^\s*xdebug_break\s*\("
)
_TODO = r"(?:#|//|/\*|--|;|<!--|\*|%)\s*(?:TODO|FIXME|XXX|HACK)\b"
_CONSOLE = r"^\s*console\.(?:log|debug|trace)\s*\("

PATTERNS = (
    _p("debugger", _DEBUGGERS, "A debugging aid was left in.", base.QUALITY, _FIX),
    _p("console", _CONSOLE, "Debug output was left in.", base.QUALITY, _HINT, *_JS),
    _p(
        "only",
        r"\b(?:describe|it|test|context|suite)\.only\s*\(|^\s*(?:fit|fdescribe)\s*\(",
        "Only this test runs; all others of the file are silently skipped.",
        base.RELIABILITY,
        _GRAVE,
        *_JS,
    ),
    _p("todo", _TODO, "An open end was added.", base.QUALITY, _NOTE),
    _p("tls", _TLS, "The check of the other side's certificate is switched off.", base.SECURITY, _GRAVE),
    _p(
        "eval",
        r"(?<![\w.$])eval\s*\(\s*(?!['\"`][^'\"`$]*['\"`]\s*\))\S",
        "`eval` runs whatever text it is given.",
        base.SECURITY,
        _FIX,
        *_DYNAMIC,
    ),
    _p(
        "html",
        r"dangerouslySetInnerHTML|\.(?:innerHTML|outerHTML)\s*\+?=(?!=)|\bdocument\.write\s*\(|\bv-html\s*=",
        "Text becomes HTML as it is; when it comes from outside it can run scripts.",
        base.SECURITY,
        _FIX,
        *_JS,
    ),
    _p(
        "sql",
        r"(?i)[\"'`]\s*(?:select\s.{1,80}\sfrom|insert\s+into|update\s.{1,80}\sset|delete\s+from)\s[^\"'`]{0,200}"
        r"(?:[\"'`]\s*(?:\+|\.)\s*\$?\w|\$\{)",
        "An SQL statement is put together from text; values belong into parameters.",
        base.SECURITY,
        _GRAVE,
        *_SERVER,
    ),
    _p("chmod", r"\bchmod\s+(?:-R\s+)?0?777\b", "Everybody may change this file.", base.SECURITY, _FIX),
)
_OURS = re.compile(r"<<<<<<< \S")
_THEIRS = re.compile(r">>>>>>> \S")


def _wants(file: base.ChangedFile) -> bool:
    return b"\0" not in file.data[:8_000]


def find(files: Sequence[base.ChangedFile]) -> Iterator[base.Hit]:
    """What stands in the changed lines; called in a process of its own."""
    return (hit for file in files for hit in (*_conflicts(file), *_lines(file), *_large(file)))


def _conflicts(file: base.ChangedFile) -> Iterator[base.Hit]:
    """Conflict marks: both ends must be there, a heading in a text may look like one of them."""
    marks = [n for n in sorted(file.changed) if _OURS.match(file.line(n)) or _THEIRS.match(file.line(n))]
    if any(_OURS.match(line) for line in file.lines) and any(_THEIRS.match(line) for line in file.lines):
        for number in marks:
            message = "A conflict was committed with its marks."
            level = (Category.BLOCKER, Severity.CRITICAL)
            yield base.Hit("conflict", message, file.path, number, *level, frozenset({base.RELIABILITY}))


def _lines(file: base.ChangedFile) -> Iterator[base.Hit]:
    patterns = [
        p for p in PATTERNS if file.suffix in p.suffixes or (not p.suffixes and file.suffix not in _PROSE)
    ]
    for number in sorted(file.changed):
        line = file.line(number)[:LINE_MAX]
        for p in patterns:
            if p.regex.search(line):
                yield base.Hit(
                    p.rule, p.message, file.path, number, p.category, p.severity, frozenset({p.kind})
                )


def _large(file: base.ChangedFile) -> Iterator[base.Hit]:
    if len(file.changed) > LARGE_LINES and file.suffix not in _PROSE:
        message = f"{len(file.changed)} lines change in this one file; hardly anybody can review that."
        yield base.Hit("large", message, file.path, min(file.changed), *_HINT, frozenset({base.QUALITY}))


PATTERN = base.Analyser(
    "patterns", frozenset({base.QUALITY, base.SECURITY, base.RELIABILITY}), _wants, base.in_child(__name__)
)
