"""Markdown that others wrote, read in one way: code and text apart, headings, fenced blocks, emphasis.

What stands in a fence or a comment is no heading, whatever it looks like. Untrusted, bounded, total.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from rondel.model import jsons

REPLY_MAX = 2_000_000
LINE_MAX = 4_000
NESTED = 2  # from this indentation on, an item belongs to the one above
INDENT_MAX = 3  # of a fence, as Markdown has it
ANYWHERE = 1_000  # for who takes a fence in a list as well
_FENCE = re.compile(r"([ \t]*+)(`{3,}+|~{3,}+)(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_BULLET = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(\S.*)")


@dataclass(frozen=True)
class Line:
    """A line, and whether it is code."""

    text: str
    code: bool = False  # in a fence, the lines that open and close it included
    fence: str = ""  # the fence that is open after it
    info: str | None = None  # of the line that opens a fence: what stands behind its mark

    @property
    def is_mark(self) -> bool:
        """Whether it opens or closes a fence."""
        return self.info is not None or (self.code and not self.fence)

    @property
    def bullet(self) -> str | None:
        """The text of a list item that is not nested."""
        match = None if self.code else _BULLET.match(self.text)
        nested = match and len(match[1].expandtabs()) >= NESTED
        return match[2] if match and not nested and not _is_rule(self.text) else None

    @property
    def heading(self) -> tuple[int, str] | None:
        """The level and the title of a heading."""
        match = None if self.code else _HEADING.match(self.text)
        return (len(match[1]), match[2].rstrip().rstrip("#").rstrip()) if match else None


def lines_of(text: str, indent_max: int = INDENT_MAX, *, comments: bool = True) -> Iterator[Line]:
    """The lines of a text; without what stands in comments where those are not wanted."""
    fence, hidden = "", False
    for line in text.split("\n"):
        shown, hidden = (line, False) if fence or comments else _seen(line, hidden)
        found = _FENCE.match(shown)
        mark = found[2] if found and len(found[1].expandtabs()) <= indent_max else ""
        if fence:
            fence = "" if mark.startswith(fence) and not shown.strip().strip(fence[0]) else fence
            yield Line(shown, code=True, fence=fence)
        elif found and mark and (mark[0] == "~" or "`" not in found[3]):
            fence = mark
            yield Line(shown, code=True, fence=fence, info=found[3].strip())
        else:
            yield Line(shown)


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


# -- headings and what is under them ----------------------------------------------------------------


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
    for line in lines_of("\n".join(text.splitlines()), comments=False):
        if heading := line.heading:
            sections.append(Section(heading[0], plain(heading[1][:LINE_MAX]).rstrip("# ")))
        else:
            sections[-1].lines.append(replace(line, text=line.text[:LINE_MAX]))
    return sections


# -- a value in a reply ------------------------------------------------------------------------------

_WORD_BEFORE = re.compile(r"[\w+-]+")


@dataclass(frozen=True)
class Fenced:
    """The JSON value of a reply, or what is wrong with it in words its author can act on."""

    value: object = None
    error: str = ""


def fenced_json(text: str) -> Fenced:
    """The last fenced `json` block of a reply; a reply that is JSON and nothing else will do too.

    Where the last one does not parse, an earlier one is not taken for it: it may be what the
    author has just taken back.
    """
    if len(text) > REPLY_MAX:
        return Fenced(error=f"the answer has {len(text)} characters; at most {REPLY_MAX} are read")
    text = text.replace("\r\n", "\n")
    blocks = [(language, body) for language, body in _blocks(text) if language in ("json", "")]
    error = ""
    for language, body in blocks[::-1] or [("", text)]:
        try:
            return Fenced(jsons.load(body, finite=True))
        except ValueError as e:
            error = error or f"the JSON does not parse: {e}"
        if language or body.lstrip().startswith("{"):
            return Fenced(error=error)
    return Fenced(error=error if blocks else "there is no fenced ```json block in the answer")


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """The fenced blocks, each with its language. One that is never closed goes to the end."""
    language, body = "", list[str]()
    last = Line("")
    for last in lines_of(text, ANYWHERE):
        if last.info is not None:
            word = _WORD_BEFORE.match(last.info)
            language, body = word[0].lower() if word else "", []
        elif last.fence:
            body.append(last.text)
        elif last.code:
            yield language, "\n".join(body)
    if last.fence:
        yield language, "\n".join(body)


# -- emphasis: taken away only where it cannot be anything else ----------------------------------------
#
# Agents write `__init__.py`, `**kwargs`, `src/**/*.py` and `_private` in plain text, and by the letter of
# Markdown some of that is emphasis. Emphasis that stays costs nothing; a name that lost its stars or
# underscores is another name.

_CODE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_ENDS = r"(?![\w*/])(?!\.\w)"
_BOLD = re.compile(rf"(?<![\w*/\\])(\*\*)(?=[^\s*/])[^*\n]*?(?<![\s*/\\,(\[{{])(\*\*){_ENDS}")
_ITALIC = re.compile(rf"(?<![^\s(\"'])(\*)(?=\w)[\w ,.'\u2019-]+?(?<=\w)(\*){_ENDS}")  # of several words
_WORD = re.compile(r"(?<![^\s(\"'*])([*_])[^\W\d_]+(?:[ _-][^\W\d_]+)*(\1)(?![\w*/])(?!\.\w)")


def without_emphasis(text: str, *, words: bool = False) -> str:
    """The text without its emphasis; code between backticks stays as it is, with them.

    With `words`, for who looks for a word and not for a name, `_APPROVE_` and `*APPROVE*` lose
    their marks too.
    """
    for pattern in (_BOLD, _ITALIC, *((_WORD,) if words else ())):
        masked = _CODE.sub(lambda code: "x" * len(code[0]), text)
        found = [f for f in pattern.finditer(masked) if pattern is not _ITALIC or " " in f[0]]
        marks = [emphasis.span(group) for emphasis in found for group in (1, 2)]
        ends = [0, *(end for _, end in marks)]
        starts = [*(start for start, _ in marks), len(text)]
        text = "".join(text[end:start] for end, start in zip(ends, starts, strict=True))
    return text


def without_code_marks(text: str) -> str:
    """The text without the backticks around its code."""
    return _CODE.sub(lambda code: code[2].strip() or code[2], text)


def item(text: str) -> str:
    """A list item as a value: without emphasis, and without the backticks where all of it is code."""
    bare = without_emphasis(text).strip()
    whole = _CODE.fullmatch(bare)
    return whole[2].strip() if whole and whole[2].strip() else bare


def plain(text: str) -> str:
    """A text of one line without emphasis, quotes of code and links."""
    bare = re.sub(r"!?\[([^\[\]]*)\]\([^()]*\)", r"\1", text)
    return " ".join(without_code_marks(without_emphasis(bare, words=True)).split())
