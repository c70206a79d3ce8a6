"""Dying at a chosen fault point of the store, in a child process that really dies."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable

from rondel.store import disk, files

CRASHED = 97  # the child met an exception: a bug, not a death


def in_child(work: Callable[[], object]) -> int:
    """Carry out `work` in a forked child. The number it gives, or minus the signal that ended it."""
    return in_children([work])[0]


def in_children(works: Iterable[Callable[[], object]]) -> list[int]:
    """Carry out each in a forked child, all at once."""
    pids = [_begin(work) for work in works]
    return [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]


def _begin(work: Callable[[], object]) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        status = CRASHED
        files._swept.clear()  # a process of its own has looked nowhere yet
        try:
            given = work()
            status = given if type(given) is int else 0
        except BaseException:  # noqa: BLE001 - the child must not come back into pytest
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid


def die_at(
    number: int,
    *,
    before: Callable[[], object] | None = None,
    counts: Callable[[str, str], bool] = lambda _operation, _path: True,
) -> None:
    """From now on this process dies by SIGKILL at the N-th point that counts, after calling `before`."""
    passed = 0

    def count(operation: str, path: str) -> None:
        nonlocal passed
        passed += counts(operation, path)
        if passed == number:
            if before is not None:
                before()
            os.kill(os.getpid(), signal.SIGKILL)

    disk.point = count


def die_after(seconds: float) -> None:
    """This process dies by SIGKILL after a while, wherever it is then."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True
    timer.start()


def killed_at(number: int, work: Callable[[], object]) -> bool:
    """Carry out `work` in a child that dies at its N-th fault point; False when it has fewer."""

    def doomed() -> None:
        die_at(number)
        work()

    status = in_child(doomed)
    assert status in (0, -signal.SIGKILL), f"the child ended with {status} at point {number}"
    return status != 0


def points_of(work: Callable[[], object]) -> list[str]:
    """The names of the fault points that `work` passes, carried out here."""
    names: list[str] = []
    before = disk.point
    disk.point = lambda operation, _path: names.append(operation)
    try:
        work()
    finally:
        disk.point = before
    return names
