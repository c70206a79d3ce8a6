"""Replies: taking values out of what an agent wrote. Untrusted, bounded, total."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rondel.model import jsons

REPLY_MAX = 2_000_000
_OPENING = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)")


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
    fence, language, body = "", "", list[str]()
    for line in text.split("\n"):
        if fence:
            mark = line.strip(" \t")
            if mark.startswith(fence) and not mark.strip(fence[0]):
                yield language, "\n".join(body)
                fence = ""
            else:
                body.append(line)
        elif opening := _OPENING.match(line):
            fence, language, body = opening[1], opening[2].lower(), []
    if fence:
        yield language, "\n".join(body)
