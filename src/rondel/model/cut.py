"""Cutting a text that is too long: its beginning says what it is of, its end what came of it."""

from __future__ import annotations

from collections.abc import Sequence

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
