"""Usage limits: whether a vendor's error means "come back later", and when.

The texts change with every release, so this reads them generously. It is only asked about
errors, never about an answer.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

DEFAULT = timedelta(minutes=15)  # when no time is named
_LEAST = timedelta(seconds=5)
_MOST = timedelta(days=31)
_TOO_MANY = 429

_LIMIT = re.compile(
    r"(?:usage|session|weekly|hourly|daily|monthly|rate|spend|request|plan|\d{1,3}-hour)[\s_-]+limit"
    r"|limit (?:reached|exceeded)|hit your [\w\s'-]{0,30}limit|quota|resource[\s_]exhausted"
    r"|too many requests|\b429\b",
    re.IGNORECASE,
)
_NO_WAITING = re.compile(
    r"billing|credit balance|context (?:window|length|limit)|prompt is too long", re.IGNORECASE
)

_EPOCH = re.compile(r"(?:\||reset\w{0,20}\D{0,12}|until\D{0,5})(\d{10}|\d{13})\b", re.IGNORECASE)
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?", re.IGNORECASE)
_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PIECE = r"\d+(?:\.\d+)?\s*(?:days?|d|hours?|hrs?|h|minutes?|mins?|milliseconds?|ms|m|seconds?|secs?|s)\b"
_SPAN = re.compile(rf"(?:\bin|after|for)\W{{0,4}}({_PIECE}(?:[\s,]*(?:and\s+)?{_PIECE})*)", re.IGNORECASE)
_GLUED = re.compile(r"(?:\bin|after|for)\W{0,4}((?:\d+(?:\.\d+)?(?:d|h|ms|m|s))+)\b", re.IGNORECASE)
_ONE = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)\s*+(d|h|ms|milli|m|s)", re.IGNORECASE)
_RETRY_AFTER = re.compile(r"retry[\s_-]*after\W{1,4}(\d+)\b(?!\s*[a-z])", re.IGNORECASE)
_CLOCK = re.compile(
    r"(?:reset\w{0,20}|again|until|available)(?:\s+(?:at|on))*\s+"
    r"(?:(?P<month>[A-Z][a-z]{2})[a-z]*\.?\s+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?:(?P<year>\d{4})\D{0,4})?"
    r"(?:at\s+)?)?"
    r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]\.?m)?\b\.?(?:\s*\((?P<zone>[\w/+-]+)\))?",
    re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def parked_until(error: str, status: int | None, now: datetime) -> datetime | None:
    """When to try again after this error; None when it is no usage limit."""
    named = _named_time(error, now)
    if status != _TOO_MANY and not _LIMIT.search(error):
        return None
    if named is None:
        return None if _NO_WAITING.search(error) else now + DEFAULT
    return min(max(named, now + _LEAST), now + _MOST)


def from_epoch(value: float) -> datetime | None:
    """A time from seconds, or milliseconds, since 1970; None for what is none."""
    try:
        return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)  # noqa: PLR2004 - ms
    except (ValueError, OverflowError, OSError):
        return None


def _named_time(text: str, now: datetime) -> datetime | None:
    """The time a text names: a date, a span from now, or an hour of the clock."""
    if found := _EPOCH.search(text):
        return from_epoch(float(found[1]))
    if found := _ISO.search(text):
        return _iso(found[0])
    if found := _SPAN.search(text) or _GLUED.search(text):
        return _later(now, sum(_seconds(n, unit) for n, unit in _ONE.findall(found[1])))
    if found := _RETRY_AFTER.search(text):
        return _later(now, float(found[1]))
    if found := _CLOCK.search(text):
        return _clock(found, now)
    return None


def _iso(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _seconds(number: str, unit: str) -> float:
    unit = unit.lower()
    return float(number) * _UNITS["ms" if unit.startswith("mil") else unit]


def _later(now: datetime, seconds: float) -> datetime:
    return now + timedelta(seconds=min(seconds, _MOST.total_seconds()))


def _clock(found: re.Match[str], now: datetime) -> datetime | None:
    """The next time the clock shows this, in the zone that is named, else in ours."""
    here = now.astimezone(_zone(found["zone"]))
    hour = int(found["hour"])
    if found["half"]:
        hour = hour % 12 + (12 if found["half"].lower().startswith("p") else 0)
    elif found["minute"] is None:
        return None  # "again 3 times" is no hour
    try:
        there = here.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
        if found["month"]:
            month = _MONTHS.index(found["month"].lower()) + 1
            year = int(found["year"] or here.year)
            there = there.replace(year=year, month=month, day=int(found["day"]))
            return there if found["year"] or there >= here else there.replace(year=year + 1)
    except ValueError:
        return None
    return there if there > here else there + timedelta(days=1)


def _zone(name: str | None) -> tzinfo | None:
    try:
        return ZoneInfo(name) if name else None
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None
