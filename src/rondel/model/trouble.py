"""Trouble of the machine: which errors mean that it has no room, files, processes or memory left.

The one place that tells them from what a file, a command or an agent does wrong.
"""

from __future__ import annotations

import errno
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rondel.errors import MachineTrouble

_ADVICE = {
    errno.ENOSPC: "the disk is full; free some space and run it again",
    errno.EDQUOT: "the disk quota is used up; free some space and run it again",
    errno.EFBIG: "the file is larger than this disk, or `ulimit -f`, allows; raise it and run it again",
    errno.EROFS: "the disk is read-only; make it writable or work elsewhere",
    errno.EMFILE: "too many open files; raise the limit (ulimit -n) and run it again",
    errno.ENFILE: "the system has too many open files; close some programs and run it again",
    errno.ENOMEM: "there is not enough memory; close some programs and run it again",
    errno.EAGAIN: "the system starts no more processes; close some programs, or raise `ulimit -u`, "
    "and run it again",
    errno.EIO: "the disk reports an error; check it before going on",
}
TROUBLES = frozenset(_ADVICE)  # the errnos that are the machine's, whoever met them
_NO_THREAD = "can't start new thread"


def trouble(error: BaseException) -> str | None:
    """What is wrong with the machine, and what to do, when that is what this error means."""
    if isinstance(error, OSError):
        return _ADVICE.get(error.errno or 0)
    if isinstance(error, MemoryError):
        return _ADVICE[errno.ENOMEM]
    return _ADVICE[errno.EAGAIN] if isinstance(error, RuntimeError) and _NO_THREAD in str(error) else None


def trouble_of(number: int) -> str:
    """What an errno of `TROUBLES` means, and what to do."""
    return _ADVICE[number]


_SAID = re.compile(
    "(" + "|".join(re.escape(os.strerror(number)) for number in sorted(_ADVICE)) + r")\W*$", re.MULTILINE
)
_MEANT = {os.strerror(number): advice for number, advice in _ADVICE.items()}


def trouble_said(words: str) -> str | None:
    """What is wrong with the machine, when a program's last words on its errors say so."""
    found = _SAID.search(words)
    return _MEANT[found[1]] if found else None


NOT_RUN = (126, 127)  # a shell's status for a command that cannot be executed, or is not there


def no_command(setting: str, command: Sequence[str], words: str) -> MachineTrouble:
    """A setting, or a file of the repository, names a command that cannot be run."""
    said = (words.strip().splitlines() or ["it cannot be executed"])[-1]
    whole = command if isinstance(command, str) else shlex.join(command)
    line = (whole.strip().splitlines() or [""])[-1]  # what comes before it makes room for its results
    where = f"{setting} of the settings names it, or where that is not set, the repository's own files do"
    return MachineTrouble(f"`{line}` cannot be run here ({said}): {where}; correct it, then go on")


@contextmanager
def machine(doing: str, what: object = "") -> Iterator[None]:
    """Trouble of the machine in here is raised as such, naming what was being done; the rest passes."""
    try:
        yield
    except (OSError, MemoryError, RuntimeError) as error:
        why = trouble(error)
        if why is None:
            raise
        named = f" {os.fspath(what)!r}" if isinstance(what, str | os.PathLike) and what else ""
        raise MachineTrouble(f"cannot {doing}{named}: {why}") from error
