"""JSON that anybody may have written: parsed in one place, with a bound on its size and on its depth.

A value takes up to thirty times the memory of its text, and what walks through one that is nested
without end does not come back: both are refused before anybody else has the value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn

BYTES_MAX = 16 * 1024 * 1024
LEVELS_MAX = 100


class Refused(ValueError):
    """It may be JSON; it is too large or nested too deeply to be parsed here."""


def load(text: bytes | str, *, bytes_max: int = BYTES_MAX, finite: bool = False) -> Any:
    """The value of a JSON text; ValueError when it is none, Refused when it is beyond the bounds.

    With `finite`, the words that only some programs know (NaN, Infinity) are refused, too.
    """
    if len(text) > bytes_max:
        raise Refused(f"it has more than {bytes_max} bytes")
    try:
        value = json.loads(text, parse_constant=_refuse if finite else None)
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    if _may_be_deep(text) and is_deep(value):
        raise Refused("it is nested too deeply")
    return value


def parse_json(text: bytes | str | None) -> object:
    """The value of a JSON text; None where it is none."""
    if text is None:
        return None
    try:
        return load(text)
    except ValueError:
        return None


def mapping(value: object) -> Mapping[str, Any]:
    """An object; empty when it is none."""
    return value if isinstance(value, Mapping) else {}


def pretty(value: object) -> str:
    """A JSON value as a person reads it, in any script; what JSON does not know as its text."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def items(document: object, key: str) -> list[Any]:
    """The list under a key of what may be anything; empty where there is none."""
    value = mapping(document).get(key)
    return value if isinstance(value, list) else []


def strings(document: object, key: str) -> list[str]:
    """The texts of a list in an object."""
    return [text for text in items(document, key) if isinstance(text, str)]


def mappings(document: object, key: str) -> list[dict[str, Any]]:
    """The objects of a list in an object."""
    return [one for one in items(document, key) if isinstance(one, dict)]


def load_from(text: str, start: int) -> tuple[object, int]:
    """The value that begins at a place of a text, line breaks in its strings allowed, and where it ends."""
    if len(text) - start > BYTES_MAX:
        raise Refused(f"it has more than {BYTES_MAX} bytes")
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text, start)
    except RecursionError:
        raise Refused("it is nested too deeply") from None
    if is_deep(value):
        raise Refused("it is nested too deeply")
    return value, end


def is_deep(value: object, levels: int = LEVELS_MAX) -> bool:
    """Whether a JSON value is nested deeper than any document is; what walks through it might not end."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(is_deep(v, levels - 1) for v in inner if isinstance(v, dict | list)) if levels else True


def _may_be_deep(text: bytes | str) -> bool:
    """Whether there are brackets enough: counting them is much cheaper than walking through the value."""
    opens = (
        text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    )
    return opens > LEVELS_MAX


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
