"""Streams: what a vendor's CLI says line by line, in words that all four share.

An adapter turns each JSON object of its CLI into these events; a Transcript keeps what they
add up to. Whatever a line holds, it is untrusted: a field of another shape is not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rondel.model import jsons

Raw = Mapping[str, object]

AMOUNT_MAX = 1e15  # no real one is larger
LAST_MAX = 2000  # characters; a person sees a line of it
LAST_PIECES = 50


@dataclass(frozen=True)
class Named:
    """The vendor's session has a name; a model perhaps too."""

    session: str = ""
    model: str = ""


@dataclass(frozen=True)
class Said:
    """Text of the model. `more` goes on where the last one stopped."""

    text: str
    more: bool = False


@dataclass(frozen=True)
class Did:
    """A tool was used: one line for a person."""

    what: str


@dataclass(frozen=True)
class Turn:
    """The model answered; the same `key` again is the same answer. `tokens` is what it is known to cost."""

    key: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True)
class Retrying:
    """The model's server does not answer, and the CLI tries again."""

    why: str


@dataclass(frozen=True)
class Denied:
    """The CLI refused the model a tool."""

    tool: str


@dataclass(frozen=True)
class Spent:
    """The vendor's own account of tokens and money, as it is."""

    raw: Raw


@dataclass(frozen=True)
class Limited:
    """A usage limit is reached, and the vendor says until when."""

    until: datetime


@dataclass(frozen=True)
class Finished:
    """The terminal event of a success. Without a text of its own, what was said last is the answer."""

    text: str | None = None


@dataclass(frozen=True)
class Failed:
    """An error that ends the turn. `status` is the HTTP status behind it, where known."""

    error: str
    status: int | None = None


Event = Named | Said | Did | Turn | Retrying | Denied | Spent | Limited | Finished | Failed


@dataclass
class Transcript:
    """What a stream has said so far. Of several results the last one counts."""

    session: str = ""
    model: str = ""
    said: list[str] = field(default_factory=list)  # the pieces of the text since a tool was last used
    last: str = ""  # the end of the last sign of life, for a person
    result: Finished | Failed | None = None
    denied: list[str] = field(default_factory=list)
    spent: list[Raw] = field(default_factory=list)
    turns: dict[str, Turn] = field(default_factory=dict)
    until: datetime | None = None
    retrying: str = ""  # why it is trying again right now

    def add(self, event: Event) -> None:
        """Take one event in."""
        self.retrying = ""
        match event:  # every kind of event, one line or two each
            case Named():
                self.session = event.session or self.session
                self.model = event.model or self.model
            case Said():
                self.said = self.said if event.more else []
                self.said.append(event.text)
                self.last = "".join(self.said[-LAST_PIECES:])[-LAST_MAX:]
            case Did():
                self.said = []
                self.last = event.what[-LAST_MAX:]
            case Turn():
                self.turns[event.key] = event
            case Retrying():
                self.retrying = self.last = event.why[-LAST_MAX:]
            case Denied():
                self.denied.append(event.tool)
            case Spent():
                self.spent.append(event.raw)
            case Limited():
                self.until = event.until
            case Finished() | Failed():
                self._end(event)

    def _end(self, event: Finished | Failed) -> None:
        came_before = isinstance(self.result, Failed) and isinstance(event, Failed) and not event.error
        if not came_before:
            self.result = event

    @property
    def answer(self) -> str:
        """The final text."""
        if isinstance(self.result, Finished) and self.result.text is not None:
            return self.result.text
        return "".join(self.said)

    @property
    def tokens(self) -> int:
        """What is known to have been used so far, for the live view."""
        return sum(turn.input_tokens + turn.output_tokens for turn in self.turns.values())


def decode(line: bytes) -> Raw | None:
    """The JSON object of a line; None for banners, blanks and what was cut off."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        found = jsons.load(line.decode(errors="replace"))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def at(value: object, *keys: str) -> object:
    """What is found by going down `keys`; None where the way ends."""
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def word(value: object) -> str:
    """A text, or nothing."""
    return value if isinstance(value, str) else ""


def tool_line(name: str, given: object, keys: Iterable[str]) -> str:
    """A tool and the first of these that it was given, for a person."""
    return f"{name} {next(filter(None, (word(at(given, key)) for key in keys)), '')}".rstrip()


def items(value: object) -> list[object]:
    """A list, or none."""
    return value if isinstance(value, list) else []


def table(value: object) -> Raw:
    """A mapping, or an empty one."""
    return value if isinstance(value, Mapping) else {}


def count(value: object) -> int:
    """A number of tokens; 0 for what is none."""
    return int(money(value) or 0)


def money(value: object) -> float | None:
    """An amount; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < AMOUNT_MAX else None


# -- usage limits --------------------------------------------------------------------------------


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
