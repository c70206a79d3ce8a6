"""Markdown of ours: texts of others in it cannot end a fence, hide what follows, or pose as our headings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rondel.model.markdown import lines_of

HEADING_MAX = 6
LISTED_MAX = 200
_NUMBER = re.compile(r"(?:\W*\d*[.)]?\s*)?")


def closed(text: str) -> str:
    """Markdown whose last fence is closed and which opens no comment that swallows what follows."""
    fence = [line.fence for line in lines_of(text)][-1]
    text = f"{text}\n{fence}" if fence else text
    return text if text.rfind("<!--") <= text.rfind("-->") else text.replace("<!--", "&lt;!--")


def demoted(text: str, levels: int = 2) -> str:
    """Markdown with its headings `levels` lower, so that it fits below another; fences stay as they are."""
    rows = []
    for line in lines_of(closed(text)):
        depth = len(line.text) - len(line.text.lstrip("#"))
        if not line.code and 0 < depth <= HEADING_MAX and line.text[depth : depth + 1].isspace():
            rows.append("#" * min(HEADING_MAX, levels + depth) + line.text[depth:])
        else:
            rows.append(line.text)
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
    for line in lines_of(closed("\n".join(text.strip().splitlines()))):
        bare = line.text.lstrip()
        poses = not line.code and (bare.startswith(("#", "<!--")) or re.fullmatch(r"[=*_-]{2,}\s*", bare))
        claims = not line.code and _CLAIM.match(re.sub(r"^[\W\d_]+", "", line.text))
        rows.append(f"\\{bare}" if poses else f"Re: {bare}" if claims else line.text)
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
    for line in lines_of(text.replace("\r\n", "\n")):
        level, title = line.heading or (0, "")
        if level and depth and level <= depth:
            break
        if depth:
            rows.append(line.text)
        elif level and _NUMBER.sub("", title, count=1).strip("*_: ").lower().startswith(name.lower()):
            depth = level
    return "\n".join(rows).strip()


def bullets(text: str, items_max: int = 20) -> list[str]:
    """The items of a list, each on one line; of a text without a list its lines. Fenced blocks are none."""
    items: list[str] = []
    for line in (line.text for line in lines_of(text) if not line.code):
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
