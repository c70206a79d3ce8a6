"""What code takes from an agent's Markdown: sections, list items, ids of requirements."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rondel.model.emphasis import item as plain_item

ITEMS_MAX = 500
_HEADING = re.compile(r"^(#{1,6})\s+(.*)$")
_ITEM = re.compile(r"^(\s*)(?:[-*+]|\d{1,4}[.)])\s+(\S.*)$")
_NUMBERED = r"[A-Z][A-Z0-9]{0,7}-?\d{1,5}"
_ID = re.compile(  # `REQ-1 …`, `**AC-1** …`, `[US-3] …`, `F2: …`; not `UTF-8 …`
    rf"^\W*(?:REQ|N?FR|R)-?\d{{1,5}}\b|^[*_`(\[]+{_NUMBERED}[*_`)\]]+|^\W*{_NUMBERED}\s*(?:[:.)\u2013\u2014]|-\s)"
)
_FENCE = re.compile(r"^\s*(```|~~~)")


def items_under(text: str, *words: str) -> list[str]:
    """The list items below the headings that contain one of these words."""
    found = []
    inside = False
    for kind, line in _lines(text):
        if kind == "heading":
            inside = any(w in line.casefold() for w in words)
        elif kind == "item" and inside:
            item = _ITEM.match(line)
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
    inside = fenced = False
    for i, line in enumerate(lines):
        fenced ^= bool(_FENCE.match(line))
        heading = _HEADING.match(line)
        if heading and not fenced:
            inside = "requirement" in heading[2].casefold()
        item = _ITEM.match(line)
        if fenced or not inside or not item or item[1] or _ID.match(item[2]):
            continue
        number = max(taken, default=0) + 1
        taken.add(number)
        lines[i] = line[: item.start(2)] + f"REQ-{number:03d}: " + item[2]
    return "\n".join(lines)


def _lines(text: str) -> Iterator[tuple[str, str]]:
    fenced = False
    for line in text.replace("\r\n", "\n").split("\n"):
        if _FENCE.match(line):
            fenced = not fenced
            continue
        heading = None if fenced else _HEADING.match(line)
        if heading:
            yield "heading", heading[2].rstrip().rstrip("#").rstrip()
        else:
            yield "item" if not fenced and _ITEM.match(line) else "text", line
