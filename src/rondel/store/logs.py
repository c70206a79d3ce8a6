"""Logs: files that only grow, a line at a time. A torn last line is set aside, never fatal."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from rondel import paths
from rondel.errors import RondelError
from rondel.store import disk, files
from rondel.store.locks import unlock, wait_lock

BYTES_MAX = 256 * 1024 * 1024  # of a log that is read or added to


def append_line(path: Path, line: str, *, again: bool = True) -> None:
    """After this returns, `line` is the last line of `path`, even if the power goes.

    A torn last line, left by a writer that died, is set aside first. With `again=False` a
    line that is the last one already is not added a second time.
    """
    append_next(path, lambda last: line if again or last != line else None)


def append_next(path: Path, following: Callable[[str | None], str | None]) -> None:
    """Add the line that follows the log's last one (None: there is none); None adds nothing.

    Nobody else adds a line in between.
    """
    name = os.fspath(path)
    with disk.explained("append to", name):
        fd = open_log(name)
        try:
            line = following(_last_line(fd))
            if line is not None:
                add_line(fd, name, line)
        finally:
            unlock(fd)


def open_log(name: str) -> int:
    """A log, open and locked, its torn last line set aside, its name durable."""
    fd = disk.current.open_log(name)
    try:
        wait_lock(fd, name)
    except BaseException:
        os.close(fd)
        raise
    try:
        cut_torn_line(fd, name)
    except BaseException:
        unlock(fd)
        raise
    return fd


def cut_torn_line(fd: int, name: str) -> None:
    """Set aside what follows the last newline of an open, locked log."""
    size = paths.bounded(fd, name, BYTES_MAX)
    if size == 0:
        # Made durable while it is empty: whoever sees a line in it can rely on its name.
        disk.current.sync_folder(os.path.dirname(name) or ".")
    elif os.pread(fd, 1, size - 1) != b"\n":
        torn = _tail(fd, size)
        _set_aside(name, torn)
        disk.current.truncate(fd, name, size - len(torn))
        disk.current.sync(fd, name)


def _tail(fd: int, size: int, block: int = 64 * 1024) -> bytes:
    """What follows the last newline before `size`."""
    start, tail = size, b""
    while start > 0 and b"\n" not in tail:
        step = min(block, start)
        start -= step
        tail = os.pread(fd, step, start) + tail
        block *= 2
    return tail.rpartition(b"\n")[2]


def _set_aside(name: str, torn: bytes) -> None:
    """`torn` in the first free `<name>.torn-N`, or in one that holds it already."""
    for number in range(1, 10_000):
        aside_name = f"{name}.torn-{number}"
        if not paths.is_there(aside_name):
            return files.write(Path(aside_name), torn)
        if files.read(aside_name) == torn:  # we died between this and cutting it off
            return None
    raise RondelError(f"there are 10000 torn lines of {name!r}; something keeps killing its writers")


def add_line(fd: int, name: str, *lines: str) -> None:
    """Lines at the end of an open, locked, whole log; all of them or, in case of an error, none."""
    if any("\n" in line for line in lines):
        raise RondelError(f"cannot append to {name!r}: a line of a log cannot hold a line break")
    size = os.fstat(fd).st_size
    try:
        disk.current.write(fd, name, b"".join(map(line_bytes, lines)))
        disk.current.sync(fd, name)
    except BaseException:
        os.ftruncate(fd, size)
        raise


def line_bytes(line: str) -> bytes:
    """A line as it stands in a log."""
    return line.encode("utf-8", "backslashreplace") + b"\n"


def _last_line(fd: int) -> str | None:
    size = os.fstat(fd).st_size
    return _tail(fd, size - 1).decode(errors="replace") if size else None


def ends_with(path: Path, lines: Sequence[str]) -> int:
    """How many of `lines`, from the first one on, are the last complete lines of a log already."""
    blocks = [line_bytes(line) for line in lines]
    end = _end(os.fspath(path), sum(map(len, blocks)) + 1)
    for count in range(len(blocks), 0, -1):
        block = b"".join(blocks[:count])
        if end == block or end.endswith(b"\n" + block):
            return count
    return 0


def _end(name: str, size: int) -> bytes:
    """The last `size` bytes of a log's complete lines."""
    with disk.explained("read", name):
        try:
            fd = paths.open_path(name, os.O_RDONLY)
        except FileNotFoundError:
            return b""
        try:
            whole = paths.bounded(fd, name, BYTES_MAX)
            whole -= len(_tail(fd, whole))
            return os.pread(fd, min(size, whole), max(0, whole - size))
        finally:
            os.close(fd)
