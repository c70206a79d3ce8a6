"""Endings: what it means for an agent's reply that its process is no more."""

from __future__ import annotations

import signal
from pathlib import Path

from rondel.agents.base import Clocks, Reply
from rondel.model.outcomes import Ended
from rondel.processes.runner import Exit, Reason, plain, tail


def cut_short(ended: Exit, clocks: Clocks, spool: Path) -> Reply | None:
    """The reply of a process that did not end by itself, or not by exiting; None for one that did."""
    if ended.reason is Reason.EXITED:
        if ended.signal is None:
            return None
        return Reply(Ended.FAILED, error=f"it died by {signal_name(ended.signal)}{_words(spool)}")
    how, error = {
        Reason.WALL: (Ended.TIMED_OUT, f"not done after {clocks.wall_s:g} s (timeout_s); ended"),
        Reason.IDLE: (Ended.TIMED_OUT, f"no output for {clocks.idle_s:g} s (idle_s); ended"),
        Reason.TURNS: (Ended.TIMED_OUT, f"not done after {clocks.turns_max} turns (turns_max); ended"),
        Reason.OUTPUT: (Ended.FAILED, ended.error or "it printed more than may be kept; ended"),
        Reason.CANCELLED: (Ended.CANCELLED, "ended by us"),
        Reason.LOST: (Ended.FAILED, ended.error or "it was ended because its driver died"),
    }[ended.reason]
    return Reply(how, error=error)


def with_refused(error: str, ended: Exit) -> str:
    """An error, with the hosts that could not be reached: they may be why."""
    if not error or not ended.refused or ended.refused in error:
        return error
    return f"{error}; {ended.refused}"


def signal_name(number: int) -> str:
    """SIGSEGV for 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def failed_status(code: int, spool: Path) -> str:
    """The error for a status other than 0, with the process's own last words."""
    return f"it exited with status {code}{_words(spool)}"


def _words(spool: Path) -> str:
    words = plain(tail(spool, "err")) or plain(tail(spool, "out"))
    return f": {words}" if words else ""
