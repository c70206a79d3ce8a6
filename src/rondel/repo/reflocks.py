"""The locks of refs that a killed git of ours left: told from those that somebody's git needs, and removed.

What such a file holds is the commit that its ref was going to; nothing yet, where git died before it wrote
that, and where a ref is deleted. git has one for milliseconds: one that names a commit of ours and is there
all the while belongs to nobody.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
WAIT_S = 2.0
EMPTY_S = 10.0  # one that names nothing: somebody's git may be packing the refs of a large repository
AGAIN_MAX = 4  # one git call has that many locks at most
PACKED = "packed-refs.lock"
_NAMED = re.compile(r"Unable to create '(.+\.lock)': File exists")


def forget(files: Iterable[Path], commits: Collection[str]) -> bool:
    """Remove those of these locks that were left on the way to one of the commits; whether any was."""
    now = time.monotonic()
    there = {file: (lock, now + _patience(lock)) for file in files if (lock := _read(file, commits))}
    found = False
    while there:
        for file, (lock, until) in list(there.items()):
            if _read(file, commits) != lock:
                del there[file]
            elif time.monotonic() >= until:
                _remove(file)
                found = True
                del there[file]
        if there:
            time.sleep(0.05)
    return found


def try_again(call: Callable[[], T], words: Callable[[T], str], folder: Path, said: str) -> T:
    """Carry out a git command; again, where a lock stopped it that a dead one had left on the same way.

    `words` is what git says of a failure, and `said` everything that the command was given.
    """
    done = call()
    for _ in range(AGAIN_MAX):
        named = _NAMED.search(words(done))
        if named is None or not forget(_of_refs(folder / named[1]), _commits(said)):
            break
        done = call()
    return done


def _of_refs(lock: Path) -> list[Path]:
    """The lock of a ref, or of all that are packed; never one of an index or of somebody's HEAD."""
    return [lock] if lock.name == PACKED or "refs" in lock.parent.parts else []


def _commits(said: str) -> set[str]:
    return set(re.findall(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b", said))


def _read(file: Path, commits: Collection[str]) -> tuple[str, int, int] | None:
    """What a lock holds and which file it is; None when it is not one of these."""
    try:
        text, info = file.read_text(encoding="utf-8", errors="replace").strip(), file.lstat()
    except OSError:
        return None
    return (text, info.st_ino, info.st_mtime_ns) if not text or text in commits else None


def _remove(lock: Path) -> None:
    if lock.name == PACKED:  # what it was held for, and what git never writes over
        lock.with_name("packed-refs.new").unlink(missing_ok=True)
    lock.unlink(missing_ok=True)


def _patience(lock: tuple[str, int, int]) -> float:
    return WAIT_S if lock[0] else EMPTY_S
