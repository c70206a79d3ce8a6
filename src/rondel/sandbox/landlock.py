"""Landlock: the kernel holds a process, and all that it starts, to a list of paths. No root, no dependency.

A ruleset is made by the driver and passed on as an open file; the forked child enters it before it
becomes its program (`rondel.processes.reaper`). What is not on the list cannot be opened; a path on it
counts with everything below it.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from rondel.model.trouble import machine

NEEDED = 3  # the first version that also holds `truncate`
SCOPES = 6  # the first one that holds signals and abstract sockets

_CREATE, _ADD = 444, 445  # the same numbers on every architecture that Linux has had since
_VERSION = 1
_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE = 1 << 4 | 1 << 5
_MAKE = 1 << 6 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 | 1 << 12
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15
_MAKE_DEVICES = 1 << 6 | 1 << 11
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL

READ = _EXECUTE | _READ_FILE | _READ_DIR
NAMES = _READ_DIR  # what is in folders, and nothing of the files
WRITE = READ | _WRITE_FILE | _REMOVE | (_MAKE & ~_MAKE_DEVICES) | _REFER | _TRUNCATE
DEVICE = _READ_FILE | _READ_DIR | _WRITE_FILE | _IOCTL
_HANDLED = WRITE | _MAKE_DEVICES

_SCOPED = 1 << 0 | 1 << 1  # abstract sockets and signals


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


class Rule(NamedTuple):
    """What may be done with a path and what is below it. A link is never followed."""

    path: str
    access: int


@cache
def version() -> int:
    """The version of Landlock that this kernel holds us to; 0 for none."""
    if sys.platform != "linux":
        return 0
    return max(0, _call(_CREATE, None, 0, _VERSION))


def ruleset(rules: Iterable[Rule]) -> int:
    """An open ruleset that allows exactly this. Paths that are not there, or are links, are left out."""
    handled = _handled()
    asked = _Ruleset(handled, 0, _SCOPED if version() >= SCOPES else 0)
    size = ctypes.sizeof(_Ruleset) if version() >= SCOPES else ctypes.sizeof(ctypes.c_uint64)
    with machine("make", "a sandbox"):
        made = _call(_CREATE, ctypes.byref(asked), size, 0)
        if made < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        os.set_inheritable(made, False)  # noqa: FBT003 - it takes no names
        try:
            for rule in rules:
                _add(made, rule, handled)
        except BaseException:
            os.close(made)
            raise
    return made


def allowed(access: int) -> int:
    """What of an access this kernel knows: it refuses a rule that says more."""
    return access & _handled()


def _handled() -> int:
    return _HANDLED | (_IOCTL if version() >= 5 else 0)  # noqa: PLR2004 - since when it is known


def _add(made: int, rule: Rule, handled: int) -> None:
    try:
        fd = os.open(rule.path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError, ValueError):
        return
    try:
        mode = os.fstat(fd).st_mode
        if stat.S_ISLNK(mode):
            return
        allowed = rule.access & handled & (~0 if stat.S_ISDIR(mode) else _ON_FILES)
        if _call(_ADD, made, _BENEATH, ctypes.byref(_Beneath(allowed, fd)), 0) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), rule.path)
    finally:
        os.close(fd)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(number: int, *words: object) -> int:
    return int(_libc().syscall(ctypes.c_long(number), *words))
