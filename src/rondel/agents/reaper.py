"""The reaper stands between the driver and a child, and sees that nothing of the child outlives it.

It runs as a program of its own, `python -I -S reaper.py SPOOL`, one per child, and imports
nothing of Rondel. On its standard input the driver sends one line of JSON (what to start)
and later at most a word (why to end it); when that pipe closes, the driver has died. On
its standard output it sends a dot whenever the spool grew, so that the driver can follow
without polling. What the child prints goes to `out` and `err` in the spool, never more than
`output_max` bytes. When every descendant is gone, `exit.json` says how it ended.

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
from contextlib import suppress
from typing import Any

MARK = "RONDEL_CHILD"  # the variable by which a descendant is known even without its reaper
LINUX = sys.platform == "linux"
CHUNK = 1 << 16
LINGER_S = 0.3  # what the child leaves behind may end by itself this long ...
SWEEP_S = 1.0  # ... then it is asked to, this long ...
GIVE_UP_S = 10.0  # ... then it is killed; what survives that cannot be ended by us
LOST_GRACE_S = 2.0  # nobody waits for the answer any more
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def start_time(pid: int) -> str:
    """What tells this process from a later one with the same number; empty when it is gone."""
    if not LINUX:
        return " ".join(_ps(f"-o lstart= -p {pid}").split())
    fields = _stat(pid)
    return "" if fields is None or fields[0] == "Z" else fields[19]


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
            if name.isdigit() and (fields := _stat(int(name))) and fields[0] != "Z"
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


class Reaper:
    """One child, from its start to the end of its last descendant."""

    def __init__(self, spool: str, setup: dict[str, Any]) -> None:
        self.spool = spool
        self.argv: list[str] = setup["argv"]
        self.env: dict[str, str] = setup["env"]
        self.cwd: str = setup["cwd"]
        self.room: int = setup["output_max"]
        self.grace_s: float = setup["grace_s"]
        self.began = time.monotonic()
        self.seconds = 0.0
        self.pumps: dict[int, int] = {}  # a pipe of the child -> the file it goes to
        self.main = 0
        self.status: int | None = None  # as waitpid gives it
        self.reason = ""
        self.error = ""
        self.control = True
        self.term_at = self.kill_at = float("inf")
        self.left: list[int] = []
        self.seen: set[tuple[int, str]] = set()

    def start(self) -> None:
        """Start the child in a session of its own, with its output in our hands."""
        out, err = os.pipe(), os.pipe()
        stdin = os.open(os.path.join(self.spool, "in"), os.O_RDONLY)  # noqa: PTH118 - starts faster
        us = os.getpid()
        self.main = os.fork()
        if self.main == 0:
            self._become(us, stdin, out[1], err[1])
        for (source, child_end), name in ((out, "out"), (err, "err")):
            os.close(child_end)
            path = os.path.join(self.spool, name)  # noqa: PTH118 - starts faster
            self.pumps[source] = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.close(stdin)

    def _become(self, parent: int, stdin: int, out: int, err: int) -> None:
        """In the forked process: become the child. Does not return."""
        try:
            os.setsid()
            for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them; its children should not
                signal.signal(number, signal.SIG_DFL)
            signal.set_wakeup_fd(-1)
            if LINUX:
                _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
                if os.getppid() != parent:
                    os._exit(127)
            for target, fd in enumerate((stdin, out, err)):
                os.dup2(fd, target)
            os.chdir(self.cwd)
            os.execvpe(self.argv[0], self.argv, self.env)  # noqa: S606 - a shell would read the words again
        except (OSError, ValueError) as e:
            why = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
            words = f"cannot start {self.argv[0]!r} in {self.cwd!r}: {why}; is it installed, and on the PATH?"
            os.write(2, f"{words}\n".encode(errors="replace"))
        finally:
            os._exit(127)

    def end(self, reason: str) -> None:
        """Ask the child's group to end; what is still there after the grace is killed."""
        if self.reason or self.status is not None:
            return
        self.reason = reason
        grace_s = min(self.grace_s, LOST_GRACE_S) if reason == "lost" else self.grace_s
        self.kill_at = time.monotonic() + grace_s
        if not LINUX:
            self.others()
        with suppress(OSError):
            os.killpg(self.main, signal.SIGTERM)

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
        if now >= self.kill_at:
            self._all(signal.SIGKILL)
            return 0.02
        if now >= self.term_at:
            self._all(signal.SIGTERM)
            self.term_at = float("inf")
        return min(self.term_at, self.kill_at) - now

    def others(self) -> list[tuple[int, str]]:
        """Who is left of the child's. A subreaper has them all below it; else whoever was seen counts."""
        found = descendants(os.getpid(), 0 if LINUX else self.main)
        if LINUX:
            return found
        self.seen = {*found, *(entry for entry in self.seen if start_time(entry[0]) == entry[1])}
        return list(self.seen)

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
            self.end("output")
        self.room -= len(kept)
        try:
            while kept:
                kept = kept[os.write(self.pumps[source], kept) :]
        except OSError as e:
            self.room = 0
            self.error = f"cannot keep its output in {self.spool}: {e.strerror}"
            self.end("output")
        with suppress(OSError):  # a full pipe wakes the driver as well; a closed one has nobody
            os.write(1, b".")

    def listen(self) -> None:
        """A word from the driver, or its death."""
        word = os.read(0, CHUNK)
        self.control = bool(word)
        self.end(word.split()[0].decode(errors="replace") if word.split() else "lost")

    def watch(self, wake: int) -> None:
        """Until nobody is left, or those who are cannot be ended."""
        while self.reap():
            pause = self.press()
            if time.monotonic() > self.kill_at + GIVE_UP_S:
                self.left = [pid for pid, _ in self.others()]
                break
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

    def record(self) -> None:
        """Leave `exit.json`, after the output it speaks of is on the disk."""
        for name in ("out", "err"):
            _sync(os.path.join(self.spool, name))  # noqa: PTH118 - starts faster
        code = os.waitstatus_to_exitcode(self.status) if self.status is not None else None
        write_json(
            self.spool,
            "exit.json",
            {
                "code": code if code is not None and code >= 0 else None,
                "signal": -code if code is not None and code < 0 else None,
                "reason": self.reason or "exited",
                "seconds": round(self.seconds or time.monotonic() - self.began, 3),
                "error": self.error,
                "left": self.left,
            },
            lasting=True,
        )


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_json(folder: str, name: str, value: object, *, lasting: bool) -> None:
    """A whole file or none; a lasting one is there also after the power went."""
    path = os.path.join(folder, name)  # noqa: PTH118 - starts faster
    with open(path + ".tmp", "w", encoding="utf-8") as f:  # noqa: PTH123 - starts faster
        json.dump(value, f)
        f.flush()
        if lasting:
            os.fsync(f.fileno())
    os.replace(path + ".tmp", path)  # noqa: PTH105 - starts faster
    if lasting:
        _sync(folder)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _setup() -> dict[str, Any] | None:
    """The driver's first line; None when it died before it could send one."""
    line = b""
    while not line.endswith(b"\n"):
        data = os.read(0, CHUNK)
        if not data:
            return None
        line += data
    setup: dict[str, Any] = json.loads(line)
    return setup


def main(spool: str) -> int:
    """Be the reaper of one child."""
    setup = _setup()
    if setup is None:
        return 1
    if LINUX:
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    reaper = Reaper(spool, setup)
    wake, wake_end = os.pipe()
    for fd in (wake_end, 1):
        os.set_blocking(fd, False)
    signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    us = {"pid": os.getpid(), "start": start_time(os.getpid()), "boot": boot(), "token": setup["token"]}
    write_json(spool, "reaper.json", us, lasting=False)  # of no use after the power went
    reaper.start()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: reaper.end("cancelled"))
    reaper.watch(wake)
    reaper.record()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
