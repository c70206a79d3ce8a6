"""Versions: a document that says it is of a newer Rondel is left alone."""

from __future__ import annotations

VERSION = 1  # of every document of our own that has no other


def newer(value: object, known: int = VERSION) -> int | None:
    """The version of a document, when that is higher than the one known here."""
    said = value.get("schema_version") if isinstance(value, dict) else None
    return said if isinstance(said, int) and not isinstance(said, bool) and said > known else None


def message(file: str, version: int, known: int) -> str:
    """What to tell a person about such a document."""
    return (
        f"{file} is of a newer version (schema_version {version}; this Rondel knows {known}); "
        "it is left as it is: upgrade Rondel"
    )
