"""What code takes from an agent's reply: the block it ends with, the sections and ids of its Markdown.

    PHASE_RESULT:
    - phase: cd
    - status: success
    - files_written: [a.py, b.py]
    - coverage: 85%
    - tests_passing: 17/20
    - issues: []

The block is read by type and without trust: nothing in a text makes this raise. What is not a
block with a phase and a status is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum

from rondel.model import jsons
from rondel.model.markdown import ANYWHERE, lines_of
from rondel.model.markdown import item as plain_item
from rondel.workflows.cycle.documents import Doc

Value = str | int | float | list[str] | tuple[int, int]

LISTS = frozenset({"files_written", "issues", "blockers", "failed_tests", "critical_issues"})
NAMES = frozenset(
    {"files_written", "failed_tests"}
)  # lists of names: a comma separates them without brackets
NOTHING = frozenset({"", "none", "n/a", "na", "null", "nil", "-", "--", "\u2013", "\u2014", "nothing", "no"})
TEXT_MAX = 2_000_000
HEAD_MAX = 90

_HEAD = re.compile(r"^[\s>#*_`-]*+PHASE_RESULT[\s*_`]*+(?::[\s*_`]*+)?$")
_ITEM = re.compile(r"^(\s*+)[-*+•][ \t]++(.*)$")
_KEY = re.compile(r"^[*_`\"']*([A-Za-z][A-Za-z0-9 _-]{0,40}?)[*_`\"']*\s*:[*_]*\s*(.*)$")
_PERCENT = re.compile(r"^(\d{1,3}(?:\.\d{1,6})?)\s*%$")
_PAIR = re.compile(r"^(\d{1,9})\s*/\s*(\d{1,9})$")
_OPEN, _CLOSE = "([{", ")]}"


class ResultStatus(StrEnum):
    """What an agent may say of its own work."""

    SUCCESS = "success"
    FAILED = "failed"
    PARTIAL = "partial"


def parse_phase_result(text: str) -> dict[str, Value] | None:
    """The last block with a phase and a status; None when there is none.

    Plain values are strings. The fields of `LISTS` are always lists, and so is every value
    in brackets; `85%` is a number from 0 to 100; `17/20` is a pair.
    """
    if not isinstance(text, str):
        return None
    lines = text[-TEXT_MAX:].replace("\r\n", "\n").replace("\r", "\n").split("\n")
    end = len(lines)
    for head in reversed(_heads(lines)):
        found = {key: _value(key, raw, items) for key, raw, items in _fields(lines[head + 1 : end])}
        end = head
        if found.get("phase") and found.get("status"):
            return found
    return None


def without_phase_result(text: str) -> str:
    """A reply less its last block: what becomes a file for people."""
    lines = text.replace("\r\n", "\n").split("\n")
    heads = _heads(lines)
    if not heads or parse_phase_result(text) is None:
        return text.strip() + "\n"
    head = heads[-1]
    end = head + 1 + _length(lines[head + 1 :])
    before = lines[:head]
    if before and before[-1].lstrip().startswith(("```", "~~~")) and end < len(lines):
        before, end = before[:-1], end + lines[end].lstrip().startswith(("```", "~~~"))
    return "\n".join([*before, *lines[end:]]).strip() + "\n"


def is_nothing(word: str) -> bool:
    """Whether an agent wrote a word for `there is none`."""
    return word.strip().strip(".*_`\"'").casefold() in NOTHING


def status_of(result: Mapping[str, Value]) -> ResultStatus | None:
    """The status a block claims; None when it is not one of the three."""
    try:
        return ResultStatus(str(result.get("status", "")).casefold())
    except ValueError:
        return None


def texts(result: Mapping[str, Value], *keys: str) -> list[str]:
    """The items of some list fields, each once."""
    found = [item for key in keys if isinstance(value := result.get(key), list) for item in value]
    return list(dict.fromkeys(found))


def _heads(lines: list[str]) -> list[int]:
    return [i for i, line in enumerate(lines) if len(line) <= HEAD_MAX and _HEAD.match(line)]


def _length(lines: list[str]) -> int:
    """How many lines belong to the block."""
    count = 0
    for i, line in enumerate(lines):
        if line.strip() and not _ITEM.match(line) and not (line[:1].isspace() and count):
            break
        if line.strip():
            count = i + 1
    return count


def _fields(lines: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Key, value and nested items of each field of a block."""
    key, raw, items, depth = "", "", list[str](), 0
    for line in lines[: _length(lines)]:
        item = _ITEM.match(line)
        named = _KEY.match(item[2]) if item else None
        if item and named and (not key or len(item[1]) <= depth):
            if key:
                yield key, raw, items
            key, raw, items = re.sub(r"[ -]+", "_", named[1].strip().lower()), (named[2] or "").strip(), []
            depth = len(item[1])
        elif item and key:
            items.append(item[2].strip())
        elif key and line.strip():
            if items:  # a line that goes on with what came before
                items[-1] += f" {line.strip()}"
            else:
                raw = f"{raw} {line.strip()}".strip()
    if key:
        yield key, raw, items


def _value(key: str, raw: str, items: list[str]) -> Value:
    plain = _bare(raw)
    if key in LISTS:
        return _listed(key, raw) + [text for item in items if not is_nothing(text := _bare(item))]
    if items and not plain:
        return [_bare(item) for item in items]
    if raw.startswith("[") and raw.endswith("]"):
        return _bracketed(raw)
    percent = _PERCENT.match(plain)
    if percent and 0 <= float(percent[1]) <= 100:  # noqa: PLR2004 - a percentage
        number = float(percent[1])
        return int(number) if number.is_integer() else number
    pair = _PAIR.match(plain)
    return (int(pair[1]), int(pair[2])) if pair else plain


def _listed(key: str, raw: str) -> list[str]:
    """The items of a list field, however it was written."""
    if raw.startswith("[") and raw.endswith("]"):
        return _bracketed(raw)
    if is_nothing(raw):
        return []
    parts = _split(raw) if key in NAMES else [raw]
    return [text for part in parts if (text := _bare(part)) and not is_nothing(text)]


def _bracketed(raw: str) -> list[str]:
    """`[a, b]`: JSON where it is, else split at the commas between items."""
    try:
        value = jsons.load(raw)
    except ValueError:
        value = None
    if isinstance(value, list):
        items = [v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for v in value]
    else:
        items = [_bare(part) for part in _split(raw[1:-1])]
    return [item for item in items if item.strip() and not is_nothing(item)]


def _split(text: str) -> list[str]:
    """Split at commas that no bracket or quotation mark encloses."""
    parts, depth, quote, start, begun = list[str](), 0, "", 0, False
    for i, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in '"`' or (char == "'" and not begun):
            quote = char if text.find(char, i + 1) >= 0 else ""
        elif char == "," and depth == 0:
            parts.append(text[start:i])
            start, begun = i + 1, False
            continue
        depth = max(0, depth + (char in _OPEN) - (char in _CLOSE)) if not quote else depth
        begun = begun or not char.isspace()
    return [*parts, text[start:]]


def _bare(text: str) -> str:
    """A value without the quotation marks or emphasis around the whole of it."""
    text = text.strip()
    for mark in ("**", "`", '"', "'"):
        inner = text[len(mark) : -len(mark)]
        if len(text) > 2 * len(mark) and text.startswith(mark) and text.endswith(mark) and mark not in inner:
            text = inner.strip()
    return text


# -- Markdown -------------------------------------------------------------------------------------

ITEMS_MAX = 500
_MD_ITEM = re.compile(r"^(\s*)(?:[-*+]|\d{1,4}[.)])\s+(\S.*)$")
_NUMBERED = r"[A-Z][A-Z0-9]{0,7}-?\d{1,5}"
_ID = re.compile(  # `REQ-1 …`, `**AC-1** …`, `[US-3] …`, `F2: …`; not `UTF-8 …`
    rf"^\W*(?:REQ|N?FR|R)-?\d{{1,5}}\b|^[*_`(\[]+{_NUMBERED}[*_`)\]]+|^\W*{_NUMBERED}\s*(?:[:.)\u2013\u2014]|-\s)"
)


def requirements_section(text: str, version: str, at: str) -> Doc:
    """`requirements` as `ra/requirements.md` says it."""
    return {
        "version": version,
        "specification": text,
        "edge_cases": items_under(text, "edge case"),
        "last_updated": at,
    }


def exploration_section(text: str, version: str, at: str) -> Doc:
    """`exploration` as `ep/exploration.md` says it."""
    return {
        "version": version,
        "architecture_summary": first_paragraph(text, "architecture", "summary", "overview"),
        "integration_points": items_under(text, "integration"),
        "identified_risks": items_under(text, "risk"),
        "last_updated": at,
    }


def items_under(text: str, *words: str) -> list[str]:
    """The list items below the headings that contain one of these words."""
    found = []
    inside = False
    for kind, line in _lines(text):
        if kind == "heading":
            inside = any(w in line.casefold() for w in words)
        elif kind == "item" and inside:
            item = _MD_ITEM.match(line)
            found.append(plain_item(item[2]) if item else line)
    return list(dict.fromkeys(found))[:ITEMS_MAX]


def first_paragraph(text: str, *words: str) -> str:
    """The first paragraph of prose below a heading with one of these words; else of the whole text."""
    prose: list[str] = []
    wanted = not words
    for kind, line in _lines(text):
        if kind == "heading":
            if prose:
                break
            wanted = not words or any(w in line.casefold() for w in words)
        elif wanted and line.strip():
            prose.append(line.strip())
        elif prose:
            break
    if prose or not words:
        return " ".join(prose)[:2000]
    return first_paragraph(text)


def number_requirements(text: str) -> str:
    """The text with an id before every requirement that has none: `- REQ-003: …`.

    Ids that are there stay; a new one never repeats another.
    """
    taken = {int(n) for n in re.findall(r"\bREQ-(\d{1,5})\b", text)}
    lines = text.split("\n")
    inside = False
    for i, line in enumerate(lines_of(text, ANYWHERE)):
        if heading := line.heading:
            inside = "requirement" in heading[1].casefold()
        item = _MD_ITEM.match(line.text)
        if line.code or not inside or not item or item[1] or _ID.match(item[2]):
            continue
        number = max(taken, default=0) + 1
        taken.add(number)
        lines[i] = line.text[: item.start(2)] + f"REQ-{number:03d}: " + item[2]
    return "\n".join(lines)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    for line in lines_of(text.replace("\r\n", "\n"), ANYWHERE):
        if heading := line.heading:
            yield "heading", heading[1]
        elif not line.is_mark:
            yield "item" if not line.code and _MD_ITEM.match(line.text) else "text", line.text
