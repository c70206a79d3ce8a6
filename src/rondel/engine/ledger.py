"""The ledger: what the journal says so far, folded as it grows.

Attempts, cut-offs, parking and cost hold across resumes because they are read from here.
Losing the journal loses these counts and the history, never progress.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from rondel.model.outcomes import NO_USAGE, Ended, Usage, usage_of
from rondel.model.times import parse_time
from rondel.model.versions import newer

ERROR_MAX = 2000  # of an error in the journal
COUNTED = (Ended.FAILED, Ended.TIMED_OUT, Ended.REJECTED, Ended.CONFLICT)


@dataclass
class Record:
    """What the journal says of one action."""

    tries: int = 0  # how often it was started; numbers its spools
    failures: int = 0  # attempts that count
    cutoffs: int = 0  # starts that a driver's death ended
    open_try: int | None = None  # started, and no end noted
    parked_until: datetime | None = None
    vendor_session: str | None = None
    vendor_agent: str = ""
    raw_usage: Mapping[str, object] = field(default_factory=dict)
    last_error: str = ""
    untaken: tuple[int, str] | None = None  # the last try whose answer is there and was not taken, and why
    agent: str = ""
    model: str = ""
    role: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)  # what it left, by digest
    done: bool = False


class Cost(NamedTuple):
    """What an agent cost so far: its asks that were answered or cost something, and their usage."""

    asks: int = 0
    usage: Usage = NO_USAGE


class Ledger:
    """All records of a session, and its totals."""

    def __init__(self, events: Iterable[Mapping[str, object]] = ()) -> None:
        self.records: dict[str, Record] = {}
        self.usage = Usage()
        self.costs: dict[str, Cost] = {}  # by agent; none of one of which nothing is known
        self.seconds = 0.0
        self.newer: int | None = None  # the version of a newer Rondel that noted something
        self._epoch: object = None  # of the driver whose events are read
        self._last: datetime | None = None  # when it noted something last
        for event in events:
            self.note(event)

    def of(self, path: str) -> Record:
        """The record of an action."""
        found = self.records.get(path)
        if found is None:
            found = self.records[path] = Record()
        return found

    def note(self, event: Mapping[str, object]) -> None:
        """Take one event in. Unknown kinds and missing fields do no harm."""
        self._clock(event)
        self.newer = newer(event) or self.newer
        path = event.get("action")
        if isinstance(path, str):
            note = _NOTES.get(str(event.get("kind")))
            if note:
                note(self, self.of(path), event)

    def _clock(self, event: Mapping[str, object]) -> None:
        """Seconds count while a driver is at work: from its first event to its latest.

        What a person notes between two runs is no driver's event: its epoch is another one.
        """
        at = parse_time(event.get("at"))
        if event.get("kind") == "driver":
            self._epoch, self._last = event.get("epoch"), at
        elif at is not None and self._last is not None and event.get("epoch") == self._epoch:
            self.seconds += max(0.0, (at - self._last).total_seconds())
            self._last = at

    def _started(self, record: Record, event: Mapping[str, object]) -> None:
        number = event.get("try")
        record.tries = number if isinstance(number, int) else record.tries + 1
        record.open_try = record.tries
        record.done = False
        record.agent, record.model = str(event.get("agent", "")), str(event.get("model", ""))
        record.role = str(event.get("role", ""))
        record.inputs = _digests(event.get("inputs"))

    def _vendor(self, record: Record, event: Mapping[str, object]) -> None:
        session = event.get("session")
        record.vendor_session = session if isinstance(session, str) else None
        record.vendor_agent = str(event.get("agent", ""))

    def _vendor_end(self, record: Record, event: Mapping[str, object]) -> None:
        """A vendor's session, and what it had counted, are for the try that goes on with it only."""
        if event.get("ended") not in (Ended.PARKED, Ended.CANCELLED):
            record.vendor_session, record.raw_usage = None, {}
            return
        session, raw = event.get("session"), event.get("raw_usage")
        record.vendor_session = session if isinstance(session, str) else record.vendor_session
        record.raw_usage = raw if isinstance(raw, dict) else record.raw_usage

    def _cutoff(self, record: Record, _: Mapping[str, object]) -> None:
        record.cutoffs += 1
        record.open_try = None

    def _dropped(self, record: Record, _: Mapping[str, object]) -> None:
        """Its driver came to its end, and could not note this one's: no death, and no attempt."""
        record.open_try = None

    def _retry(self, record: Record, event: Mapping[str, object]) -> None:
        record.failures = record.cutoffs = 0
        if event.get("parked") is not False:
            record.parked_until = None

    def _finished(self, record: Record, event: Mapping[str, object]) -> None:
        ended = event.get("ended")
        record.last_error = str(event.get("error", ""))
        if event.get("taken") is False:
            record.untaken = record.tries, record.last_error
            return
        record.open_try = None
        record.parked_until = parse_time(event.get("until")) if ended == Ended.PARKED else None
        if ended in COUNTED:
            record.failures += 1
        record.done = ended == Ended.DONE
        if record.done:  # made again later, it has all its attempts
            record.failures = record.cutoffs = 0
        self._vendor_end(record, event)
        record.files = _digests(event.get("files"))
        record.inputs = _digests(event.get("inputs")) or record.inputs
        self._bill(record.agent, event, answered=record.done)

    def _outdated(self, record: Record, event: Mapping[str, object]) -> None:
        """A dead driver's answer that is no answer any more was paid for all the same."""
        record.open_try = None
        record.vendor_session, record.raw_usage = None, {}
        self._bill(record.agent, event, answered=True)

    def _bill(self, agent: str, event: Mapping[str, object], *, answered: bool) -> None:
        usage = usage_of(event.get("usage"))
        if usage is None:
            return
        self.usage += usage
        if answered or usage.tokens or usage.usd:
            known = self.costs.get(agent, Cost())
            self.costs[agent] = Cost(known.asks + 1, known.usage + usage)


_NOTES = {
    "started": Ledger._started,  # noqa: SLF001 - the table is part of the class
    "vendor": Ledger._vendor,  # noqa: SLF001
    "cutoff": Ledger._cutoff,  # noqa: SLF001
    "dropped": Ledger._dropped,  # noqa: SLF001
    "outdated": Ledger._outdated,  # noqa: SLF001
    "retry": Ledger._retry,  # noqa: SLF001
    "finished": Ledger._finished,  # noqa: SLF001
}


def _digests(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        return {}
    return {k: v for k, v in value.items() if isinstance(k, str) and isinstance(v, str)}
