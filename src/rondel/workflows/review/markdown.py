"""Markdown, ours and that of others.

Texts of others in ours cannot end a fence, hide what follows, or pose as our headings. Any text can be
read as headings with the lines under them: what stands in a fence or a comment is no heading, whatever
it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rondel.model.emphasis import without_code_marks, without_emphasis

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
HEADING_MAX = 6
LISTED_MAX = 200


def closed(text: str) -> str:
    """Markdown whose last fence is closed and which opens no comment that swallows what follows."""
    fence = ""
    for _, fence in _fenced(text):  # noqa: B007 - the last one is what counts
        pass
    text = f"{text}\n{fence}" if fence else text
    return text if text.rfind("<!--") <= text.rfind("-->") else text.replace("<!--", "&lt;!--")


def demoted(text: str, levels: int = 2) -> str:
    """Markdown with its headings `levels` lower, so that it fits below another; fences stay as they are."""
    rows = []
    for line, fence in _fenced(closed(text)):
        depth = len(line) - len(line.lstrip("#"))
        if not fence and 0 < depth <= HEADING_MAX and line[depth : depth + 1].isspace():
            rows.append("#" * min(HEADING_MAX, levels + depth) + line[depth:])
        else:
            rows.append(line)
    return "\n".join(rows)


_CLAIM = re.compile(
    r"(?:(?:final|overall|our) )?verdict\b|(?:blockers?|should[\s_-]?fix(?:es)?|suggestions?)\W*:",
    re.IGNORECASE,
)


def quoted(text: str) -> str:
    """A text of an agent as a paragraph of ours: no heading, rule, verdict or count, nothing left open.

    Whoever reads the review, a person or a program, cannot take an agent's words for the result.
    """
    rows = []
    for line, fence in _fenced(closed("\n".join(text.strip().splitlines()))):
        bare = line.lstrip()
        poses = not fence and (bare.startswith(("#", "<!--")) or re.fullmatch(r"[=*_-]{2,}\s*", bare))
        claims = not fence and _CLAIM.match(re.sub(r"^[\W\d_]+", "", line))
        rows.append(f"\\{bare}" if poses else f"Re: {bare}" if claims else line)
    return "\n".join(rows)


_SECTION = re.compile(
    r"(?:block(?:ers?|ing)|must[\s-]?fix|critical issues?|should[\s-]?fix(?:es)?|suggestions?|nice to have"
    r"|recommendations?|nits?|nitpicks?|style)(?:\W|\s(?:issues?|findings?)\W|$)",
    re.IGNORECASE,
)
_SETTLED = re.compile(r"[:\u2013\u2014(\[-]\s*(?:resolved|fixed|addressed)\W*$", re.IGNORECASE)


def inline(text: str, length_max: int = 200) -> str:
    """A text of an agent on one line of ours: a title, an item. It opens nothing and claims nothing."""
    flat = cell(text, length_max).replace("<!--", "&lt;!--")
    flat = re.sub(r"`{3,}|~{3,}", lambda m: m[0][0], flat)
    flat = re.sub(r"\b(?:RESOLVED|FIXED|ADDRESSED|WITHDRAWN)\b", lambda m: m[0].lower(), flat)
    flat = re.sub("[\u2705\u2714]\ufe0f?", "", flat).strip() or "(no words)"
    bare = re.sub(r"^[\W\d_]+", "", flat)
    if _CLAIM.match(bare) or _SECTION.match(bare):
        flat = f"Re: {flat}"
    return f"{flat} (so it says)" if _SETTLED.search(flat) else flat


def fenced(text: str, language: str = "") -> str:
    """A text as a block of its own; the fence is longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    mark = "`" * (longest + 1)
    return f"{mark}{language}\n{text.rstrip(chr(10))}\n{mark}"


def cell(text: str, length_max: int = 120) -> str:
    """A text as one cell of a table."""
    flat = " ".join(text.split()).replace("|", "\\|")
    return flat if len(flat) <= length_max else flat[: length_max - 1] + "…"


def listed(lines: Sequence[str], lines_max: int = LISTED_MAX) -> str:
    """Lines as a Markdown list of bounded length."""
    rows = [f"- {line}" for line in lines[:lines_max]]
    if len(lines) > lines_max:
        rows.append(f"- … and {len(lines) - lines_max} more")
    return "\n".join(rows)


def first_of(names: Sequence[str], names_max: int) -> str:
    """Names in a sentence, up to a number: `a, b and 3 more`."""
    more = f" and {len(names) - names_max} more" if len(names) > names_max else ""
    return ", ".join(names[:names_max]) + more


def counted(number: int, thing: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {thing}{'s' * (number != 1)}"


def section(text: str, name: str) -> str:
    """The text below the heading that begins with `name`, to the next heading of its level or above."""
    rows: list[str] = []
    depth = 0
    for line, fence in _fenced(text.replace("\r\n", "\n")):
        match = None if fence else re.match(r"(#{1,6})\s+(?:\W*\d*[.)]?\s*)?(.*)", line)
        if match and depth and len(match[1]) <= depth:
            break
        if depth:
            rows.append(line)
        elif match and match[2].strip("*_: ").lower().startswith(name.lower()):
            depth = len(match[1])
    return "\n".join(rows).strip()


def bullets(text: str, items_max: int = 20) -> list[str]:
    """The items of a list, each on one line; of a text without a list its lines. Fenced blocks are none."""
    items: list[str] = []
    for line, fence in _fenced(text):
        if fence or _FENCE.match(line):
            continue
        match = re.match(r"\s*(?:[-*+]|\d+[.)])\s+(.*)", line)
        if match:
            items.append(match[1].strip())
        elif line.strip() and items and line[:1].isspace():
            items[-1] += " " + line.strip()
        elif line.strip():
            items.append(line.strip())
    return [i for i in items if not re.fullmatch(r"[*_]*(none|n/a|nothing|no questions?)[*_.!]*", i.lower())][
        :items_max
    ]


def cut(text: str, size_max: int, what: str) -> str:
    """The text, or its beginning and a note of how much is left out."""
    if len(text) <= size_max:
        return text
    kept = max(0, size_max - 120)
    return f"{closed(text[:kept])}\n\n[{len(text) - kept} more characters of {what} are left out]"


def _fenced(text: str) -> Iterator[tuple[str, str]]:
    """Each line with the fence that is open after it; a fence's own lines count as inside."""
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
            yield line, fence
        elif mark and mark[1].startswith(fence) and not line.strip().strip("`~"):
            yield line, ""
            fence = ""
        else:
            yield line, fence


# -- reading: a text as headings with the lines under them -----------------------------------

_OPENING = re.compile(r"\s{0,3}(`{3,}|~{3,})")
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
    for line in text.splitlines():
        seen, hidden = (line, False) if fence else _seen(line, hidden)
        raw = seen[:LINE_MAX]
        match = _OPENING.match(raw)
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
