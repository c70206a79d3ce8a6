"""Values of a file that anybody may have changed: of the wanted type, or none at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def mapping(value: object) -> Mapping[str, Any]:
    """An object; empty when it is none."""
    return value if isinstance(value, dict) else {}


def strings(body: Mapping[str, Any], key: str) -> list[str]:
    """The texts of a list in an object."""
    found = body.get(key)
    return [t for t in found if isinstance(t, str)] if isinstance(found, list) else []


def mappings(body: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects of a list in an object."""
    found = body.get(key)
    return [m for m in found if isinstance(m, dict)] if isinstance(found, list) else []
