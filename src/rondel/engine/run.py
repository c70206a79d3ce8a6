"""A run: from the lease to the report, however often it has to wait for a vendor in between."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rondel.config import Limits
from rondel.engine import control
from rondel.engine.driver import Driver, View
from rondel.engine.explain import refresh
from rondel.engine.limits import uncounted
from rondel.engine.perform import Tools
from rondel.engine.report import REPORT, Report, Stopped
from rondel.engine.session import Session
from rondel.errors import NewerFile
from rondel.model.trouble import machine
from rondel.model.versions import VERSION, message
from rondel.store import ours
from rondel.store.lease import Lease


@dataclass(frozen=True)
class RunOptions:
    """What a person wants of a run, besides that it goes on."""

    wait: bool = False  # for a vendor's usage limit to pass
    redo: bool = False  # what is stale
    retry: bool = False  # what failed or was cut off, with all its attempts
    unpark: bool = False  # what is parked, before its time
    say: Callable[[str], None] = lambda _: None  # where words for the person go


def run(
    session: Session[Any],
    tools: Callable[[], Tools],
    limits: Limits,
    wish: RunOptions,
    lease: Lease,
    view: View | None = None,
) -> Report:
    """Go on with a session, whose lease we have, until nothing more can be done now."""
    with machine("run", session.ref.name):
        return _run(session, tools, limits, wish, lease, view)


def _run(
    session: Session[Any],
    tools: Callable[[], Tools],
    limits: Limits,
    wish: RunOptions,
    lease: Lease,
    view: View | None,
) -> Report:
    session.check_version()
    if session.ledger.newer is not None:
        raise NewerFile(f"{session.ref.name}: {message('its journal', session.ledger.newer, VERSION)}")
    control.clear(session.folder)
    ours.remove(session.run / REPORT)  # it was about the run before
    session.begin(tools().look, lease)
    now = tools().clock
    word = "retry" if wish.retry else "resume"
    session.apply_changes(session.workflow.control(session.state, word, now()), {}, lease)
    _grant(session, wish)
    if wish.redo:
        changes, words = refresh(session, tools().config)
        session.apply_changes(changes, {}, lease)
        for line in words:
            wish.say(line)
    while True:
        driver = Driver(session, tools(), lease, limits=limits, view=view)
        report = asyncio.run(_interruptible(driver))
        for line in uncounted(limits, session.ledger):
            wish.say(line)
        if not (wish.wait and report.stopped is Stopped.PARKED and report.until):
            return report
        if not asyncio.run(_sleep_until(report.until, now, session.folder)):
            return report


def _grant(session: Session[Any], wish: RunOptions) -> None:
    """Give actions their attempts back, once and before the run: a person asked for it."""
    for path, record in list(session.ledger.records.items()):
        spent = wish.retry and bool(record.failures or record.cutoffs)
        parked = wish.unpark and record.parked_until is not None
        if spent or parked:
            session.note("retry", {"action": path, "parked": parked})


async def _interruptible(driver: Driver[Any]) -> Report:
    """Drive; SIGINT and SIGTERM end what is under way and are part of the report."""
    loop = asyncio.get_running_loop()
    # Only the main thread hears signals. A program that drives a session in another one ends it by `stop`.
    is_main = threading.current_thread() is threading.main_thread()
    for number in (signal.SIGINT, signal.SIGTERM) if is_main else ():
        loop.add_signal_handler(number, driver.interrupt)
    return await driver.drive()


async def _sleep_until(until: datetime, now: Callable[[], datetime], folder: Path) -> bool:
    """Wait for a vendor's limit to pass; False when a person says pause or stop meanwhile."""
    while now() < until:
        if control.read(folder) is not None:
            return False
        await asyncio.sleep(min(1.0, max(0.0, (until - now()).total_seconds())))
    return True
