"""Outline: a Markdown text as headings with the lines under them. Total: any text has one.

What stands in a fence, a comment or a quotation is no heading, whatever it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rondel.model.emphasis import without_code_marks, without_emphasis

_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"\s{0,3}(#{1,6})\s+(.*)")
_BULLET = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(\S.*)")
NESTED = 2  # from this indentation on, an item belongs to the one above
LINE_MAX = 4_000


@dataclass(frozen=True)
class Line:
    """A line, and whether it is code."""

    text: str
    code: bool = False

    @property
    def bullet(self) -> str | None:
        """The text of a list item that is not nested."""
        match = None if self.code else _BULLET.match(self.text)
        nested = match and len(match[1].expandtabs()) >= NESTED
        return match[2] if match and not nested and not _is_rule(self.text) else None


@dataclass
class Section:
    """A heading and the lines up to the next heading of any level."""

    level: int
    title: str
    lines: list[Line] = field(default_factory=list)


def whole(sections: Sequence[Section], start: int) -> tuple[list[Line], int]:
    """The lines under a heading with those of its deeper headings, and where the next one is."""
    lines = list(sections[start].lines)
    end = start + 1
    while end < len(sections) and sections[end].level > sections[start].level:
        lines += [Line(sections[end].title), *sections[end].lines]
        end += 1
    return lines, end


def outline(text: str) -> list[Section]:
    """The sections of a text; the first, of level 0, is what stands before any heading."""
    sections = [Section(0, "")]
    for line in _lines(text):
        match = None if line.code else _HEADING.match(line.text)
        if match:
            sections.append(Section(len(match[1]), plain(match[2]).rstrip("# ")))
        else:
            sections[-1].lines.append(line)
    return sections


def _lines(text: str) -> Iterator[Line]:
    fence = ""
    hidden = False
    for whole in text.splitlines():
        seen, hidden = (whole, False) if fence else _seen(whole, hidden)
        raw = seen[:LINE_MAX]
        match = _FENCE.match(raw)
        if match and not fence:
            fence = match[1]
            yield Line(raw, code=True)
        elif match and match[1].startswith(fence) and raw.strip() == match[1]:
            fence = ""
            yield Line(raw, code=True)
        else:
            yield Line(raw, code=bool(fence))


def _seen(line: str, hidden: bool) -> tuple[str, bool]:
    """What of a line is no comment, and whether one goes on after it."""
    kept = ""
    rest = line
    while rest:
        before, mark, rest = rest.partition("-->" if hidden else "<!--")
        if not hidden:
            kept += before
        elif not mark:
            return kept, True
        hidden = bool(mark) and not hidden
    return kept, hidden


def _is_rule(text: str) -> bool:
    return bool(re.fullmatch(r"(?:-{3,}|\*{3,}|_{3,})", "".join(text.split())))


def plain(text: str) -> str:
    """A text of one line without emphasis, quotes of code and links."""
    bare = re.sub(r"!?\[([^\[\]]*)\]\([^()]*\)", r"\1", text)
    return " ".join(without_code_marks(without_emphasis(bare, words=True)).split())
