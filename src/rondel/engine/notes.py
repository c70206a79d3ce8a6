"""Notes: what the journal and the heartbeat say of an action under way or at its end."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from rondel.agents.base import Beat, Reply
from rondel.engine.ledger import ERROR_MAX, Ledger
from rondel.engine.perform import Job
from rondel.errors import MachineTrouble, RondelError
from rondel.model.actions import Ask, Derive, Run
from rondel.model.names import digest
from rondel.model.outcomes import Outcome, usage_json
from rondel.model.texts import cut
from rondel.model.times import stamp
from rondel.store import ours

HEARTBEAT = "heartbeat.json"
S = TypeVar("S")


@dataclass
class RunningAction(Generic[S]):
    """An action under way."""

    job: Job[S]
    task: asyncio.Task[tuple[Outcome, Reply | None]]
    seen: dict[str, str | None]  # what the files it rewrites were when it began
    inputs: dict[str, str]
    since: float
    last_at: float
    beat: Beat = field(default_factory=Beat)


def started_fields(job: Job[Any], inputs: dict[str, str]) -> dict[str, object]:
    """What is noted before anything is asked."""
    action = job.action
    fields: dict[str, object] = {"action": action.path, "try": job.number}
    if action.title:
        fields["title"] = action.title
    if job.agent is not None and isinstance(action, Ask):
        fields |= {"role": action.role, "agent": job.agent.name, "model": job.agent.model}
    if isinstance(action, Ask | Run) and action.workspace.base:
        fields["base"] = action.workspace.base
    if inputs:
        fields["inputs"] = inputs
    return fields


def finished_fields(
    flight: RunningAction[Any], outcome: Outcome, reply: Reply | None, wrote: dict[str, str]
) -> dict[str, object]:
    """What is noted when an action has ended and its files are there."""
    fields: dict[str, object] = {
        "action": flight.job.action.path,
        "try": flight.job.number,
        "ended": outcome.ended,
        "seconds": round(time.monotonic() - flight.since, 3),
    }
    if not outcome.taken:
        fields["taken"] = False
    if reply is not None and not flight.job.paid:
        fields |= {"usage": usage_json(outcome.usage), "agent": outcome.agent, "model": outcome.model}
    maybe: dict[str, object] = {
        "files": wrote,
        "inputs": flight.inputs if isinstance(flight.job.action, Derive) else None,
        "error": cut(outcome.error, ERROR_MAX),
        "prompt": outcome.prompt,
        "result": digest(outcome.text) if outcome.text else None,
        "until": stamp(outcome.until) if outcome.until else None,
        "commit": outcome.commit,
        "raw_usage": dict(reply.raw_usage) if reply else None,
        "session": reply.vendor_session if reply else None,
    }
    return fields | {key: value for key, value in maybe.items() if value}


def leave_heartbeat(
    run: Path, flights: Mapping[str, RunningAction[Any]], ledger: Ledger, at: datetime
) -> None:
    """A sign of life for other terminals: who works, and what it all cost so far."""
    now = time.monotonic()
    rows = [_row(path, flight, now) for path, flight in flights.items()]
    total = {"seconds": round(ledger.seconds), "usage": usage_json(ledger.usage)}
    body = json.dumps({"at": stamp(at), "actions": rows, **total})
    with suppress(RondelError, MachineTrouble):  # a view of the run is not worth ending it
        ours.write_view(run / HEARTBEAT, body.encode())


def _row(path: str, flight: RunningAction[Any], now: float) -> dict[str, object]:
    """An action under way, for other terminals."""
    return {
        "action": path,
        "agent": flight.job.agent.name if flight.job.agent else "",
        "elapsed_s": round(now - flight.since, 1),
        "last_output_s": round(now - flight.last_at, 1),
        "last": flight.beat.text[:200],
        "tokens": flight.beat.tokens,
    }
