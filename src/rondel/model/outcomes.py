"""Outcomes: how an action ended. Values, never exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

NO_COMMIT = "the edit cannot be committed"  # how the error begins of an edit that a person may fix


class Ended(StrEnum):
    """How an action ended. Everything but DONE leaves the decision to the workflow."""

    DONE = "done"
    REJECTED = "rejected"  # an answer came, and it cannot be used even after one repair
    FAILED = "failed"  # no usable answer: an error, a crash, a refusal
    TIMED_OUT = "timed_out"  # one of our clocks ended it
    PARKED = "parked"  # a usage limit; goes on at `until`; never an attempt
    WAITING = "waiting"  # a person must do something first
    CONFLICT = "conflict"  # the edit does not go on top of its target
    CANCELLED = "cancelled"  # we ended it; never an attempt


@dataclass(frozen=True)
class Usage:
    """What one action, or several, cost. `usd` is None where nobody said."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = None
    unpriced: int = 0  # of a sum: the tokens that nobody named a price of, beside those in `usd`
    uncounted: int = 0  # answers of which nobody said what they used

    @property
    def tokens(self) -> int:
        """Everything that counts against `tokens_max`."""
        return self.input_tokens + self.output_tokens

    @property
    def unpriced_tokens(self) -> int:
        """The tokens that nobody named a price of."""
        return self.tokens if self.usd is None else self.unpriced

    @property
    def at_least(self) -> bool:
        """Whether `usd` is not all of it: an agent named no price of what it used, or not even that."""
        return self.unpriced_tokens > 0 or self.uncounted > 0

    def __add__(self, other: Usage) -> Usage:
        usd = None if self.usd is None and other.usd is None else (self.usd or 0) + (other.usd or 0)
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            usd,
            0 if usd is None else self.unpriced_tokens + other.unpriced_tokens,
            self.uncounted + other.uncounted,
        )


NO_USAGE = Usage()


def usage_of(value: object) -> Usage | None:
    """Usage from its journal form; None when there is none."""
    if not isinstance(value, dict):
        return None
    numbers = [value.get(k, 0) for k in ("input_tokens", "output_tokens", "cached_tokens")]
    counts = [n if isinstance(n, int) else 0 for n in numbers]
    usd, unpriced, uncounted = (value.get(k) for k in ("usd", "unpriced_tokens", "uncounted"))
    return Usage(
        counts[0],
        counts[1],
        counts[2],
        float(usd) if isinstance(usd, int | float) else None,
        unpriced if isinstance(unpriced, int) else 0,
        uncounted if isinstance(uncounted, int) else 0,
    )


def usage_json(usage: Usage) -> dict[str, object]:
    """Usage in its journal form."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "usd": usage.usd,
        **({"unpriced_tokens": usage.unpriced} if usage.unpriced else {}),
        **({"uncounted": usage.uncounted} if usage.uncounted else {}),
    }


@dataclass(frozen=True)
class Outcome:
    """What came of an action. `text` is the reply, or a command's standard output."""

    ended: Ended
    text: str = ""
    error: str = ""  # one or a few lines for a person, when not DONE
    data: object = None  # what a probe found, or a decision's mapping
    usage: Usage = NO_USAGE
    started_at: datetime | None = None
    finished_at: datetime | None = None
    agent: str = ""
    model: str = ""
    prompt: str = ""  # the digest of what was asked
    until: datetime | None = None  # PARKED: when to try again
    exit_code: int | None = None  # Run, and command agents
    commit: str | None = None  # WRITE workspace: the commit that holds the edit
    changed: tuple[str, ...] = ()  # WRITE workspace: the files the commit touches
    conflicts: tuple[str, ...] = ()  # CONFLICT: the files that do not merge
    taken: bool = (
        True  # False: the answer is there, but git would not take the edit; the next run tries that again
    )
    files: Mapping[str, bytes] = field(default_factory=dict)  # Run.collect
    inputs: Mapping[str, str] = field(default_factory=dict)  # by digest, as they were when it began

    @property
    def ok(self) -> bool:
        """Whether the action did what it was for."""
        return self.ended is Ended.DONE
