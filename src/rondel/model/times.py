"""Times as the documents write them: ISO-8601 with offset. Every format from the wild is read."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone


def stamp(at: datetime) -> str:
    """`2026-11-15T10:00:00+00:00`: seconds, with the offset the time has."""
    return at.isoformat(timespec="seconds")


def parse_time(text: object) -> datetime | None:
    """A time from a document, with an offset; None when it is not one.

    Reads `Z`, `+08:00`, fractions, a date alone. What has no offset is taken as UTC; ask
    `has_offset` where that matters.
    """
    if not isinstance(text, str):
        return None
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def has_offset(text: str) -> bool:
    """Whether a time says its offset, so that it may be compared with another."""
    try:
        return datetime.fromisoformat(text.strip()).tzinfo is not None
    except ValueError:
        return False


def offset(hours: float) -> timezone:
    """The zone that is `hours` ahead of UTC."""
    return timezone(timedelta(hours=hours))
