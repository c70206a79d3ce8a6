"""Replies: taking values out of what an agent wrote. Untrusted, bounded, total."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

REPLY_MAX = 2_000_000
_FENCE = re.compile(
    r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+-]*)[^\n]*\n(.*?)^[ \t]*\1[`~]*[ \t]*$", re.MULTILINE | re.DOTALL
)


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
    blocks = [body for _, lang, body in _FENCE.findall(text + "\n") if lang.lower() in ("json", "")]
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


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
