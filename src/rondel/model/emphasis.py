"""Emphasis in Markdown: taken away only where it cannot be anything else.

Agents write `__init__.py`, `**kwargs`, `src/**/*.py` and `_private` in plain text, and by the
letter of Markdown some of that is emphasis. Emphasis that stays costs nothing; a name that lost
its stars or underscores is another name.
"""

from __future__ import annotations

import re

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
