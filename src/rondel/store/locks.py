"""Locks that the kernel releases when their process dies, whatever way it dies.

They hold between processes and between threads, leave no file behind, and are never
inherited: a child that is started or forked does not keep its parent's lock alive.
"""

from __future__ import annotations

import fcntl
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rondel import paths
from rondel.errors import RondelError
from rondel.store import disk

WAIT_S = 60.0

_held_fds: set[int] = set()


def try_lock(fd: int) -> bool:
    """Lock an open file for this descriptor alone; False when somebody else has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    _held_fds.add(fd)
    return True


def release(fd: int) -> None:
    """Release the lock, whoever else has a copy of the descriptor. The file stays open."""
    if fd in _held_fds:
        _held_fds.discard(fd)
        fcntl.flock(fd, fcntl.LOCK_UN)


def unlock(fd: int) -> None:
    """Release the lock and close the file. In a forked child it is closed already."""
    if fd in _held_fds:
        try:
            release(fd)
        finally:
            os.close(fd)


def wait_lock(fd: int, path: str, wait_s: float = WAIT_S) -> None:
    """Lock an open file; RondelError when somebody keeps it for longer than `wait_s`."""
    if try_lock(fd):
        return
    end = time.monotonic() + wait_s
    pause_s = 0.0005
    while not try_lock(fd):
        if time.monotonic() > end:
            raise RondelError(
                f"{path!r} has been locked by another process for {wait_s:.0f} s; "
                "end or continue that process (`fuser -v` on the path names it)"
            )
        time.sleep(pause_s * (0.5 + random.random()))  # noqa: S311 - jitter, not a secret
        pause_s = min(pause_s * 1.5, 0.02)


class _Mine(threading.local):
    """The folders this thread has locked: a thread may lock what it has locked already."""

    def __init__(self) -> None:
        self.folders: set[tuple[int, int]] = set()


_mine = _Mine()


@contextmanager
def locked(folder: Path, wait_s: float = WAIT_S) -> Iterator[None]:
    """One at a time in `folder`, between processes and threads. Never held while waiting for something.

    The lock is on the folder itself, so there is no lock file to leave behind.
    """
    name = os.fspath(folder)
    with disk.explained("lock", name):
        fd = paths.open_path(name, os.O_RDONLY | os.O_DIRECTORY)
        found = os.fstat(fd)
    key = (found.st_dev, found.st_ino)
    if key in _mine.folders:
        os.close(fd)
        yield
        return
    try:
        with disk.explained("lock", name):
            wait_lock(fd, name, wait_s)
    except BaseException:
        os.close(fd)
        raise
    _mine.folders.add(key)
    try:
        yield
    finally:
        _mine.folders.discard(key)
        unlock(fd)


def _forked() -> None:
    """A forked child closes its copies; the parent's locks stay the parent's."""
    for fd in tuple(_held_fds):
        os.close(fd)
    _held_fds.clear()
    _mine.folders.clear()


os.register_at_fork(after_in_child=_forked)
