"""Texts that somebody else wrote, for people to read: made harmless for a terminal or a forge, and cut.

Both read more than letters: a terminal takes orders from control characters and turns text
round, a forge calls people, closes issues and loads images. Between them and any text of a repository
or an agent stand `visible` and `for_forge`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

_MARKS_MAX = 8  # on one letter; no language has more, and more are drawn over the lines around
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f"
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0d\uffa0\U000e0100-\U000e01ef]"
    "|(?<=[\ufe0e\ufe0f])[\ufe0e\ufe0f]"  # one of these says whether a sign is drawn as a picture
)
_KEPT = "\n\t\u200c\u200d"
_APART = "\u200b"  # a space without a width: nothing is seen, and a word is no order any more
_FORGE = (
    (re.compile(r"&(?!(?:lt|gt|amp|quot);)(?=#|[A-Za-z][A-Za-z0-9]*+;)"), rf"&{_APART}"),
    (re.compile(r"(?<![`~])(`{3,}+|~{3,}+)([ \t]*+)suggestion", re.IGNORECASE), r"\1\2text"),
    (re.compile(r"@(?=[\w-])"), rf"@{_APART}"),
    (re.compile(r"<(?=[A-Za-z/!?])"), rf"<{_APART}"),
    (re.compile(r"!(?=\[)"), rf"!{_APART}"),
    (re.compile(r"#(?=\d)"), rf"#{_APART}"),
    (re.compile(r"\b(GH)-(?=\d)", re.IGNORECASE), rf"\1-{_APART}"),
    (re.compile(r"^([ \t>]*+)/(?=[A-Za-z])", re.MULTILINE), rf"\1/{_APART}"),  # orders to a forge or a bot
    (
        re.compile(r"^([ \t>]*+)([bhlr])(ors|omu|gtm|)(?=[+ ]|$)", re.MULTILINE | re.IGNORECASE),
        rf"\1\2{_APART}\3",
    ),
    (
        re.compile(
            r"\b(clos|fix|resolv)(e?[sd]?)(?=(?:\s*+:)?\s++(?:https?:|[\w.-]++/[\w.-]++#))", re.IGNORECASE
        ),
        rf"\1{_APART}\2",
    ),
)


def visible(text: str) -> str:
    """A text in which nothing hides and nothing gives orders: what is no letter is written out.

    It is written as JSON writes it, so JSON stays what it is.
    """
    found = _HIDDEN.sub(_written_out, text.replace("\r\n", "\n")) if _HIDDEN.search(text) else text
    return found if found.isascii() else "".join(_with_few_marks(found))


def _with_few_marks(text: str) -> Iterator[str]:
    """A text in which no letter has so many marks that they are drawn over other lines."""
    marks = 0
    for char in text:
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        yield char if marks <= _MARKS_MAX else _code(char)


def _written_out(found: re.Match[str]) -> str:
    return _code(found[0])


def _code(char: str) -> str:
    raw = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{raw[n]:02x}{raw[n + 1]:02x}" for n in range(0, len(raw), 2))


def for_forge(text: str) -> str:
    """Markdown of somebody else's that calls nobody, closes nothing, loads nothing and holds no HTML.

    Nor does it offer a change to be applied. It looks the same, also in code: the signs are only kept
    apart by a space without a width.
    """
    kept = "".join(c for c in text if c in _KEPT or unicodedata.category(c) not in ("Cc", "Cf", "Cs"))
    for pattern, apart in _FORGE:
        kept = pattern.sub(apart, kept)
    return kept


HEAD = 200


def cut(text: str, size_max: int) -> str:
    """The text, or its first characters, an ellipsis and its end, together no longer than that."""
    if len(text) <= size_max:
        return text
    head = min(HEAD, size_max // 4)
    return f"{text[:head]} … {text[head + 3 - size_max :]}"


def one_line(text: str, length_max: int = 200) -> str:
    """Text from a file as one line of bounded length that can end no quotation."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split()).replace('"', "'")
    return line if len(line) <= length_max else line[: length_max - 1] + "…"


def first_few(words: Sequence[str], count_max: int, between: str = ", ") -> str:
    """As many of the words as a person reads, and how many more there are."""
    more = f" and {len(words) - count_max} more" if len(words) > count_max else ""
    return between.join(words[:count_max]) + more
