"""Dying at a chosen fault point, in a child process that really dies.

The points of the store have their names in `rondel.store.disk`. Everything else that changes a
disk is seen by the interpreter's audit events, wherever the product does it: each file and folder
that is removed, each rename, each program that is started. So a removal that is added tomorrow is
a point to die at without anybody naming it.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable

from rondel.store import disk, files

CRASHED = 97  # the child met an exception: a bug, not a death
STEPS = {"os.remove": "remove", "os.rmdir": "remove-folder", "os.rename": "rename"}
# What a git that dies in the middle leaves half done, in our trees or the person's. The others only read.
CUT = {
    "add",
    "branch",
    "checkout",
    "checkout-index",
    "cherry-pick",
    "clean",
    "commit-tree",
    "merge",
    "read-tree",
    "reset",
    "update-index",
    "update-ref",
    "worktree",
    "write-tree",
}
GIT_S = 0.012  # about as long as a git call takes in a small repository
Point = Callable[[str, str], None]


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


def listen(point: Point) -> None:
    """From now on `point` hears of every step of this process that changes a disk, before it is done.

    Of a call of git it hears before (`git`), and what may become of it when the driver dies in the
    middle: git goes on alone (`git:left`), or dies as well (`git:cut`).
    """
    here = threading.local()

    def store(operation: str, path: str) -> None:
        point(operation, path)
        here.announced = operation in ("rename", "unlink")  # the same step is heard of once more

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event in STEPS:
            announced, here.announced = getattr(here, "announced", False), False
            if not announced:
                point(STEPS[event], os.fsdecode(args[0]))  # type: ignore[arg-type]
        elif event == "subprocess.Popen":
            words = [os.fsdecode(word) for word in args[1]]  # type: ignore[attr-defined]
            command = _command(words)
            if not command:
                point("start", " ".join(words[:3]))
                return
            point("git", command)
            point("git:left", command)
            if _is_cut(command):
                point("git:cut", command)

    disk.point = store
    sys.addaudithook(hook)


def _command(words: list[str]) -> str:
    """A git command line without the options of git itself; of a script, the command that takes long."""
    if words[:2] == ["sh", "-c"] and " read-tree " in words[2]:
        return "read-tree"
    if not words or words[0] != "git":
        return ""
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-c", "-C") else rest[1:]
    return " ".join(rest) or "git"


def die_anywhere_at(number: int) -> None:
    """Like `die_at`, and each removal, rename and start of a program counts, too."""
    passed = 0

    def count(operation: str, path: str) -> None:
        nonlocal passed
        passed += 1
        if passed != number:
            return
        print("dies at", operation, path, flush=True)
        die_during(operation, number)

    listen(count)


def die_during(operation: str, seed: int) -> None:
    """Die by SIGKILL before an operation that `listen` told of; in a call of git, soon, alone or with it."""
    if operation in ("git:left", "git:cut"):
        moment_s = random.Random(seed).uniform(0, GIT_S)
        threading.Thread(target=_die_soon, args=(moment_s, operation == "git:cut"), daemon=True).start()
    else:
        os.kill(os.getpid(), signal.SIGKILL)


def _die_soon(seconds: float, with_git: bool) -> None:
    time.sleep(seconds)
    for pid in _gits() if with_git else ():
        with contextlib.suppress(ProcessLookupError):  # it has just ended by itself
            os.kill(pid, signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def _gits() -> list[int]:
    """The git processes, or scripts of them, that this process has started and that are to die with it."""
    found: dict[int, tuple[int, str]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as stat, open(f"/proc/{name}/cmdline") as line:
                parent = int(stat.read().rsplit(")", 1)[1].split()[1])
                found[int(name)] = parent, _command(line.read().split("\0"))
        except OSError:
            continue
    ours = [pid for pid, (parent, command) in found.items() if parent == os.getpid() and _is_cut(command)]
    return ours + [pid for pid, (parent, command) in found.items() if parent in ours and _is_cut(command)]


def _is_cut(command: str) -> bool:
    return command.split(" ", maxsplit=1)[0] in CUT


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
