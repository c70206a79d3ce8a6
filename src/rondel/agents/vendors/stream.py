"""Streams: what a vendor's CLI says line by line, in words that all four share.

An adapter turns each JSON object of its CLI into these events; a Transcript keeps what they
add up to. Whatever a line holds, it is untrusted: a field of another shape is not there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

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
