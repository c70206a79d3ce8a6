"""The reaper stands between the driver and a child, and sees that nothing of the child outlives it.

It runs as a program of its own, `python -I -S reaper.py SPOOL FD`, one per child, and imports
nothing of Rondel but what a confined child does first (`rondel.sandbox.enter`) and, at the end,
what removes its temporary folder (`rondel.paths`). FD is the
spool's folder, open: it needs no path, so no link can lead it elsewhere. On its standard
input the driver sends one line of JSON (what to start) and later at most a word (why to end
it); when that pipe closes, the driver has died. On its standard output it sends a dot
whenever the spool grew, so that the driver can follow without polling. What the child prints
goes to `out` and `err` in the spool, never more than `output_max` bytes. When every
descendant is gone, `exit.json` says how it ended. Where some cannot be ended there is no such
file, and our exit status is LEFT: what they do from now on is seen by nobody.

Its reason is what really happened: a child that had ended before our signal reached it ended
by itself, whatever we were about to do. What the machine refused us (no room, no more open
files, no process) is in `exit.json` as `trouble`, by its errno; where not even that file could
be reserved, the errno is our exit status.

On Linux it is a subreaper: a descendant that left its session and its parent comes back as
its child. Elsewhere it ends the children that `ps` still shows below it, and their group.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

UNCONFINED = "it cannot be confined"
MARK = "RONDEL_CHILD"  # the variable by which a descendant is known even without its reaper
LINUX = sys.platform == "linux"
CHUNK = 1 << 16
LINGER_S = 0.3  # what the child leaves behind, or a child nobody waits for, may end by itself this long ...
SWEEP_S = 1.0  # ... then it is asked to, this long ...
GIVE_UP_S = 10.0  # ... then it is killed; what survives that cannot be ended by us
LEFT = 255  # our exit status where some could not be ended; no errno
LOST_GRACE_S = 2.0  # nobody waits for the answer any more
KILL_S = 0.5  # for one round of kills
STOP_S = 0.2  # within this a stopped child shows that it is stopped, unless the kernel is busy for it
ROOM = 8192  # kept free in the spool for `exit.json`, so that a full disk cannot hide how a child ended
_ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def start_time(pid: int) -> str:
    """What tells this process from a later one with the same number; empty when it is gone."""
    if not LINUX:
        return " ".join(_ps(f"-o lstart= -p {pid}").split())
    fields = _stat(pid)
    return "" if fields is None or _is_over(fields) else fields[19]


def boot() -> str:
    """What tells this start of the machine from another; process numbers mean nothing beyond it."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:  # noqa: PTH123
        return f.read().strip()
    return ""


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the name, which may hold anything."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:  # noqa: PTH123 - starts faster
            return f.read().rpartition(")")[2].split()
    except OSError:
        return None


def _is_over(fields: list[str]) -> bool:
    """Whether a process only waits to be collected: one whose first thread has ended may have others."""
    return fields[0] == "Z" and int(fields[17]) <= 1


def _ps(words: str) -> str:
    with os.popen(f"LC_ALL=C ps {words}") as out:  # noqa: S605 - fixed words and numbers
        return out.read()


def send(pid: int, start: str, number: int) -> bool:
    """Send a signal to the process that had this number and this start; never to a later one."""
    try:
        if not LINUX:
            if start_time(pid) != start:
                return False
            os.kill(pid, number)
            return True
        handle = os.pidfd_open(pid)
        try:
            if start_time(pid) != start:
                return False
            signal.pidfd_send_signal(handle, number)
        finally:
            os.close(handle)
    except OSError:
        return False
    return True


def _processes() -> list[tuple[int, int, int, str]]:
    """Every living process: its number, parent, group and start time."""
    if LINUX:
        return [
            (int(name), int(fields[1]), int(fields[2]), fields[19])
            for name in os.listdir("/proc")  # noqa: PTH208 - starts faster
            if name.isdigit() and (fields := _stat(int(name))) and not _is_over(fields)
        ]
    found = []
    for line in _ps("-A -o pid=,ppid=,pgid=,stat=,lstart=").splitlines():
        pid, parent, group, state, *start = line.split()
        if not state.startswith("Z"):
            found.append((int(pid), int(parent), int(group), " ".join(start)))
    return [entry for entry in found if _is_there(entry[0])]  # `ps` itself is not any more


def _is_there(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def descendants(root: int, group: int = 0) -> list[tuple[int, str]]:
    """Every living process below `root`, or in the group, with its start time."""
    below: dict[int, list[tuple[int, str]]] = {}
    found = []
    for pid, parent, its_group, start in _processes():
        below.setdefault(parent, []).append((pid, start))
        if group and its_group == group:
            found.append((pid, start))
    queue = [root, *(pid for pid, _ in found)]
    while queue:
        children = below.get(queue.pop(), [])
        found += children
        queue += [pid for pid, _ in children]
    return found


def _children() -> list[int]:
    """Our own children, as the kernel lists them; none where it does not."""
    with suppress(OSError), open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as f:  # noqa: PTH123
        return [int(pid) for pid in f.read().split()]
    return []


class Reaper:
    """One child, from its start to the end of its last descendant."""

    def __init__(self, spool: str, setup: dict[str, Any]) -> None:
        self.spool = spool
        self.argv: list[str] = setup["argv"]
        self.env: dict[str, str] = setup["env"]
        self.cwd: str = setup["cwd"]
        self.passed: list[int] = setup["passed"]  # open files that are the child's alone
        self.room: int = setup["output_max"]
        self.grace_s: float = setup["grace_s"]
        self.rules: int = setup["rules"]  # an open Landlock ruleset; -1 for none
        self.spaces: dict[str, Any] | None = setup["spaces"]  # the namespaces it enters; None for none
        self.channel: int = setup["channel"]  # where sockets of its own network go to; -1 for nowhere
        self.tmp: str = setup["tmp"]  # the child's temporary folder, which goes with it; empty for none
        self.troubles = frozenset(setup["troubles"])  # the errnos nothing could be blamed on a child for
        self.began = time.monotonic()
        self.seconds = 0.0
        self.pumps: dict[int, int] = {}  # a pipe of the child -> the file it goes to
        self.main = 0
        self.status: int | None = None  # as waitpid gives it
        self.wish = ""  # why we mean to end it
        self.reason = ""  # why we did, while it still ran; or that its output was cut
        self.error = ""
        self.trouble = 0  # an errno
        self.words = b""  # of the driver, that came with the setup
        self.told = -1  # the pipe on which the child says that it has its session, and why it has no program
        self.control = True
        self.term_at = self.kill_at = float("inf")
        self.has_left = False  # whether some of the child's could not be ended
        self.seen: set[tuple[int, str]] = set()

    def start(self) -> None:
        """Start the child in a session of its own, with its output in our hands.

        When this returns it has that session: a signal to its group reaches it. Signals for us
        wait meanwhile, so that the forked process never answers one with our handlers.
        """
        out, err, told = os.pipe(), os.pipe(), os.pipe()
        stdin = os.open(os.path.join(self.spool, "in"), os.O_RDONLY | os.O_NOFOLLOW)  # noqa: PTH118 - starts faster
        for source, name in ((out[0], "out"), (err[0], "err")):
            path = os.path.join(self.spool, name)  # noqa: PTH118 - starts faster
            self.pumps[source] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        us, enter = os.getpid(), self._enter()
        for fd in (self.rules, self.channel):
            if fd >= 0:
                os.set_inheritable(fd, False)  # noqa: FBT003 - it takes no names
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            self.main = os.fork()
            if self.main == 0:
                self._become(us, enter, (stdin, out[1], err[1]), told[1])
            ours = (*self.passed, *([self.channel] if self.channel >= 0 else []))
            for fd in (out[1], err[1], told[1], stdin, *ours):
                os.close(fd)
            os.read(told[0], 1)
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        os.set_blocking(told[0], False)
        self.told = told[0]

    def _enter(self) -> Callable[[], None] | None:
        """What confines the forked process; None where nothing does.

        Imported before the fork: after it, each page of memory that an import touches is copied first.
        """
        if self.rules < 0:
            return None
        from rondel.sandbox import enter  # noqa: PLC0415 - only who is confined waits for it

        return lambda: enter.enter(self.rules, self.spaces, self.channel)

    def _become(
        self, parent: int, enter: Callable[[], None] | None, streams: tuple[int, int, int], told: int
    ) -> None:
        """In the forked process: become the child. Does not return."""
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            # Python ignores two of them, and whoever started us may ignore others; its children should not.
            for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD, *_ENDING):
                signal.signal(number, signal.SIG_DFL)
            if LINUX:
                _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(127)
            os.write(told, b".")
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            for target, fd in enumerate(streams):
                os.dup2(fd, target)
            os.chdir(self.cwd)
            if enter is not None:
                try:
                    enter()
                except OSError as e:
                    raise OSError(e.errno, f"{UNCONFINED}: {e.strerror}") from e
            os.execvpe(self.argv[0], self.argv, self.env)  # noqa: S606 - a shell would read the words again
        except (OSError, ValueError) as e:
            if isinstance(e, OSError) and e.errno in self.troubles:
                os.write(told, str(e.errno).encode())
            why = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
            ask = "" if UNCONFINED in why else "; is it installed, and on the PATH?"
            words = f"cannot start {self.argv[0]!r} in {self.cwd!r}: {why}{ask}"
            os.write(2, f"{words}\n".encode(errors="replace"))
        finally:
            os._exit(127)

    def end(self, reason: str) -> None:
        """Ask the child's group to end; what is still there after the grace is killed.

        Where the driver died, the child may be about to end by itself: it gets a moment.
        """
        if self.wish or self.status is not None:
            return
        self.wish = reason
        now = time.monotonic()
        lost = reason == "lost"
        self.term_at = now + (LINGER_S if lost else 0)
        self.kill_at = self.term_at + (min(self.grace_s, LOST_GRACE_S) if lost else self.grace_s)

    def _strike(self) -> None:
        """Signal the group; ended by us is only who had not ended before."""
        if not LINUX:
            self.others()
        if self._has_ended():
            return
        self.reason = self.reason or self.wish
        for number in (signal.SIGTERM, signal.SIGCONT):
            with suppress(OSError):
                os.killpg(self.main, number)

    def _has_ended(self) -> bool:
        """Whether the child has ended by itself; one that has not is stopped, so that it cannot now."""
        if not LINUX:
            self.reap()
            return self.status is not None
        with suppress(OSError):
            os.kill(self.main, signal.SIGSTOP)
            give_up_at = time.monotonic() + STOP_S
            how = os.WEXITED | os.WSTOPPED | os.WNOHANG | os.WNOWAIT
            while time.monotonic() < give_up_at:
                seen = os.waitid(os.P_PID, self.main, how)
                if seen is not None:
                    return seen.si_code in (os.CLD_EXITED, os.CLD_KILLED, os.CLD_DUMPED)
                time.sleep(0.001)
        return False

    def reap(self) -> bool:
        """Collect who has ended; whether anybody is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return not LINUX and bool(self.others())
            if pid == 0:
                return True
            if pid == self.main:
                now = time.monotonic()
                self.status, self.seconds = status, now - self.began
                self.term_at = now + (0 if self.reason else LINGER_S)
                self.kill_at = min(self.kill_at, self.term_at + SWEEP_S)

    def press(self) -> float:
        """Do what is due against those who are left; how long until the next step."""
        now = time.monotonic()
        if now >= self.term_at:
            self.term_at = float("inf")
            if self.status is None:
                self._strike()
            else:
                self._all(signal.SIGTERM)
        if now >= self.kill_at:
            self._kill()
            return 0.02
        return min(self.term_at, self.kill_at) - now

    def others(self) -> list[tuple[int, str]]:
        """Who is left of the child's. A subreaper has them all below it; else whoever was seen counts."""
        found = descendants(os.getpid(), 0 if LINUX else self.main)
        if LINUX:
            return found
        self.seen = {*found, *(entry for entry in self.seen if start_time(entry[0]) == entry[1])}
        return list(self.seen)

    def _kill(self) -> None:
        """Kill everybody, the orphans first and again and again: some are gone as fast as others are made.

        Whoever loses its parent is our child, and nobody else gets its number before we collect it.
        """
        end = time.monotonic() + KILL_S
        while (ours := _children()) and time.monotonic() < end:
            for pid in ours:
                with suppress(PermissionError):
                    os.kill(pid, signal.SIGKILL)
            self.reap()
        self._all(signal.SIGKILL)

    def _all(self, number: int) -> None:
        for pid, start in self.others():
            send(pid, start, number)

    def pump(self, source: int) -> None:
        """Move what there is from a pipe to its file, as far as there is room."""
        data = os.read(source, CHUNK)
        if not data:
            os.close(self.pumps.pop(source))
            os.close(source)
            return
        kept = data[: self.room]
        if len(kept) < len(data):
            self._cut()
        self.room -= len(kept)
        try:
            while kept:
                kept = kept[os.write(self.pumps[source], kept) :]
        except OSError as e:
            self.room = 0
            self.error = f"cannot keep its output in {self.spool}: {e.strerror}"
            self._blame(e)
            self._cut()
        with suppress(OSError):  # a full pipe wakes the driver as well; a closed one has nobody
            os.write(1, b".")

    def _blame(self, error: OSError) -> None:
        if error.errno in self.troubles:
            self.trouble = self.trouble or error.errno or 0

    def _cut(self) -> None:
        """A part of the output is missing, also when the child has ended by itself since."""
        self.reason = self.reason or "output"
        self.end("output")

    def listen(self) -> None:
        """A word from the driver, or its death."""
        word = self.words or os.read(0, CHUNK)
        self.words = b""
        self.control = bool(word)
        self.end(word.split()[0].decode(errors="replace") if word.split() else "lost")

    def watch(self, wake: int) -> None:
        """Until nobody is left, or those who are cannot be ended."""
        if self.words:
            self.listen()
        while self.reap():
            pause = self.press()
            if time.monotonic() > self.kill_at + GIVE_UP_S:
                self.has_left = True
                return
            fds = [wake, *self.pumps, *([0] if self.control else [])]
            ready = select.select(fds, [], [], None if pause == float("inf") else max(pause, 0))[0]
            for fd in ready:
                if fd == wake:
                    os.read(wake, CHUNK)
                elif fd == 0:
                    self.listen()
                else:
                    self.pump(fd)
        while self.pumps and (ready := select.select(list(self.pumps), [], [], 0)[0]):
            self.pump(ready[0])

    def reserve(self) -> None:
        """Take the room that `exit.json` will need, before there is anything to lose."""
        with open(self._record + ".tmp", "xb") as f:  # noqa: PTH123 - starts faster
            f.write(b" " * ROOM)

    @property
    def _record(self) -> str:
        return os.path.join(self.spool, "exit.json")  # noqa: PTH118 - starts faster

    def _refused(self) -> int:
        """The errno of what the machine refused the child before it was its program; 0 for nothing."""
        try:
            return int(os.read(self.told, 16) or 0)
        except OSError:
            return 0

    def record(self) -> None:
        """Leave `exit.json`, after the output it speaks of is on the disk."""
        for name in ("out", "err"):
            try:
                _sync(os.path.join(self.spool, name))  # noqa: PTH118 - starts faster
            except OSError as e:  # what was written may be lost, although each write went well
                self._blame(e)
        self.trouble = self.trouble or self._refused()
        code = os.waitstatus_to_exitcode(self.status) if self.status is not None else None
        how = {
            "code": code if code is not None and code >= 0 else None,
            "signal": -code if code is not None and code < 0 else None,
            "reason": self.reason or "exited",
            "seconds": round(self.seconds or time.monotonic() - self.began, 3),
            "error": self.error,
            "trouble": self.trouble,
        }
        # Written over the reserved room, in place: that takes nothing from a full disk.
        with open(self._record + ".tmp", "r+b", opener=_no_link) as f:
            f.write(json.dumps(how).encode())
            f.flush()
            os.fsync(f.fileno())
        os.replace(self._record + ".tmp", self._record)  # noqa: PTH105 - starts faster
        _sync(self.spool)


def _remove(folder: str) -> None:
    """A folder with all that is in it, whatever the child did to it, or does now: no link is followed."""
    with suppress(OSError):  # it holds something
        os.rmdir(folder)  # noqa: PTH106 - starts faster
        return
    with suppress(ImportError, OSError, MemoryError):  # how the child ended is noted in any case
        from rondel import paths  # noqa: PLC0415 - starts faster

        paths.remove_tree(folder)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_json(folder: str, name: str, value: object) -> None:
    """A whole file or none. It may be lost with the power."""
    path = os.path.join(folder, name)  # noqa: PTH118 - starts faster
    with open(path + ".tmp", "x", encoding="utf-8") as f:  # noqa: PTH123 - starts faster
        json.dump(value, f)
    os.replace(path + ".tmp", path)  # noqa: PTH105 - starts faster


def _prctl(option: int, value: int) -> int:
    return int(ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0))


def _setup() -> tuple[dict[str, Any], bytes] | None:
    """The driver's first line, and what came after it; None when it died before it could send one."""
    line = b""
    while b"\n" not in line:
        data = os.read(0, CHUNK)
        if not data:
            return None
        line += data
    first, _, rest = line.partition(b"\n")
    setup: dict[str, Any] = json.loads(first)
    return setup, rest


def main(spool: str) -> int:
    """Be the reaper of one child. The status is 0, LEFT, or the errno of what the machine refused us."""
    sent = _setup()
    if sent is None:
        return 1
    setup, words = sent
    if LINUX:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    reaper = Reaper(spool, setup)
    reaper.words = words
    for number in _ENDING:
        signal.signal(number, lambda *_: reaper.end("cancelled"))
    try:
        _reap(reaper, setup["token"])
    except OSError as e:
        if e.errno not in reaper.troubles:
            raise
        return e.errno or 1
    return LEFT if reaper.has_left else 0


def _reap(reaper: Reaper, token: str) -> None:
    reaper.reserve()
    wake, wake_end = os.pipe()
    for fd in (wake_end, 1):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    us = {"pid": os.getpid(), "start": start_time(os.getpid()), "boot": boot(), "token": token}
    write_json(reaper.spool, "reaper.json", us)  # of no use after the power went
    if reaper.wish:  # ended before there was anything to end
        reaper.reason = reaper.wish
    else:
        reaper.start()
    reaper.watch(wake)
    if reaper.has_left:  # nothing is settled, and who is left could lead us elsewhere
        return
    if reaper.tmp:
        _remove(reaper.tmp)
    reaper.record()


if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))  # noqa: PTH120 - starts faster
    os.fchdir(int(sys.argv[2]))
    os.close(int(sys.argv[2]))
    sys.exit(main("."))
