"""Replies: taking values out of what an agent wrote. Untrusted, bounded, total."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

REPLY_MAX = 2_000_000
_OPENING = re.compile(r"[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)")


@dataclass(frozen=True)
class Fenced:
    """The JSON value of a reply, or what is wrong with it in words its author can act on."""

    value: object = None
    error: str = ""


def fenced_json(text: str) -> Fenced:
    """The last fenced `json` block of a reply; a reply that is JSON and nothing else will do too."""
    if len(text) > REPLY_MAX:
        return Fenced(error=f"the answer has {len(text)} characters; at most {REPLY_MAX} are read")
    text = text.replace("\r\n", "\n")
    blocks = [body for language, body in _blocks(text) if language in ("json", "")]
    candidates = blocks[::-1] or [text]
    first = ""
    for body in candidates:
        try:
            return Fenced(json.loads(body, parse_constant=_refuse))
        except RecursionError:
            first = first or "the JSON is nested too deeply"
        except ValueError as e:
            first = first or f"the JSON does not parse: {e}"
    if not blocks:
        return Fenced(error="there is no fenced ```json block in the answer")
    return Fenced(error=first)


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


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
