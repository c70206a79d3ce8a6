"""The process runner: one child at a time under its reaper, on clocks that we own.

The child's output goes to its spool (`in`, `out`, `err`, then `exit.json`), so that what was
complete when a driver died is found again. The driver follows it line by line, decides when
the child has had its time, and never returns before every descendant is gone.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from rondel import paths
from rondel.errors import MachineTrouble, RondelError
from rondel.model import jsons
from rondel.model.trouble import TROUBLES, machine, trouble_of
from rondel.processes import reaper
from rondel.processes.environment import clean_env as clean_env
from rondel.processes.leftovers import end_leftovers as end_leftovers
from rondel.sandbox import box, landlock
from rondel.sandbox.box import Confined
from rondel.sandbox.proxy import Proxy

LINE_MAX = 10_000_000
EXIT_MAX = 100_000  # bytes of `exit.json`
READ_MAX = 1 << 20  # read at a time, so that one loud child does not hold up the others
RESULT_GRACE_S = 2.0
HARD_S = 15.0  # beyond the grace: then the reaper itself is stuck
_OUTRUN = (
    "some of what {} started could not be ended: the kernel holds it, or it makes new processes faster than "
    "they are killed. Nothing that it left is used. End it, then run again"
)


_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -~])?"  # a sequence
    r"|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]"  # any other but a tab and a line end
)


class Reason(StrEnum):
    """Why a child is no more."""

    EXITED = "exited"  # by itself, or because it would not leave after its result
    WALL = "wall"
    IDLE = "idle"
    OUTPUT = "output"  # it printed more than it may, or the disk is full
    TURNS = "turns"
    CANCELLED = "cancelled"
    LOST = "lost"  # its driver died


class LineSignal(StrEnum):
    """What a line of output means for the clocks. Any other line (None) is progress."""

    RESULT = "result"  # the answer is there; a child that stays is ended after a grace
    RETRYING = "retrying"  # a sign of life, not progress
    TURNS = "turns"  # it has had its turns


@dataclass(frozen=True)
class Child:
    """A program to run. `env` is its whole environment."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    spool: Path
    stdin: bytes = b""
    wall_s: float = 1800
    idle_s: float = 600
    output_max: int = 50_000_000
    grace_s: float = 5.0  # from SIGTERM to SIGKILL
    err_counts: bool = True  # whether standard error is progress
    confined: Confined | None = None  # what it may reach; whatever we can, without
    passed: tuple[int, ...] = ()  # open files of ours that it gets, by the same numbers


@dataclass(frozen=True)
class Exit:
    """How a child ended. One that stayed after its result counts as exited with 0: `lingered`.

    `reason` is what happened: EXITED is only who ended before our signal reached it. `trouble` is
    the errno of what the machine refused meanwhile: then nothing can be said about the child.
    """

    code: int | None
    signal: int | None
    reason: Reason
    seconds: float = 0.0
    lingered: bool = False
    error: str = ""
    trouble: int = 0
    refused: str = ""  # which hosts the sandbox did not let it reach, in words

    @property
    def ok(self) -> bool:
        """Whether it ended by itself, with a status of 0. An exit status is not yet a success."""
        return self.reason is Reason.EXITED and self.code == 0


OnLine = Callable[[bytes], LineSignal | None]


async def run(
    child: Child, *, on_line: OnLine | None = None, on_err: Callable[[bytes], object] | None = None
) -> Exit:
    """Run a child to its end. When this returns or raises, no descendant of it is left.

    `on_line` gets each complete line of standard output, without its end, `on_err` of
    standard error. Being cancelled ends the child first.
    """
    async with _way_out(child) as proxy:
        with machine("start", child.argv[0]):
            await asyncio.to_thread(prepare, child)
            watch = _watched(child, on_line, on_err, proxy)
        try:
            await watch.to_the_end()
        finally:
            watch.close()
            ended = finished(child.spool)
            if ended is None:
                _end_others(child)
    if watch.status == reaper.LEFT:
        raise MachineTrouble(_OUTRUN.format(child.argv[0]))
    number = ended.trouble if ended else watch.status
    if number in TROUBLES:
        doing = f"keep what {child.argv[0]} says in" if ended else f"watch over {child.argv[0]} from"
        raise MachineTrouble(f"cannot {doing} {str(child.spool)!r}: {trouble_of(number)}")
    if ended is None and watch.reason is None:
        raise MachineTrouble(
            f"the process that watches over {child.argv[0]} was ended from outside; run it again"
        )
    known = ended or Exit(None, None, watch.reason or Reason.LOST, error="its reaper was killed")
    return replace(known, refused=box.refusals(proxy.refused) if proxy else "")


def _end_others(child: Child) -> None:
    """End what a child left whose reaper does not watch over it any more."""
    try:
        end_leftovers(child.spool, 0)
    except RondelError as e:
        raise MachineTrouble(str(e)) from e


@asynccontextmanager
async def _way_out(child: Child) -> AsyncIterator[Proxy | None]:
    """The proxy of a child that may reach some hosts. What it refused is said after the child's errors."""
    targets = child.confined.reaches if child.confined else ()
    if not targets:
        yield None
        return
    proxy = Proxy(targets, child.env)
    try:
        yield proxy
    finally:
        await proxy.close()
        if words := box.refusals(proxy.refused):
            with machine("write", child.spool / "err"):
                paths.append(child.spool / "err", f"{box.OURS}{words}\n".encode())


def finished(spool: Path) -> Exit | None:
    """How the child of this spool ended; None when it has not, or nobody saw it end."""
    try:
        with machine("read", spool / "exit.json"):  # one that cannot be opened now is not missing
            known = jsons.load(paths.read(spool / "exit.json", EXIT_MAX))
        error, seconds, trouble = str(known["error"]), float(known["seconds"]), int(known.get("trouble", 0))
        if known["reason"] == LineSignal.RESULT:
            return Exit(0, None, Reason.EXITED, seconds, lingered=True, error=error, trouble=trouble)
        reason = Reason(known["reason"])
        return Exit(known["code"], known["signal"], reason, seconds, error=error, trouble=trouble)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def lost_sight(spool: Path) -> bool:
    """Whether a reaper was at work here and did not come to say how its child ended."""
    return paths.is_file(spool / "reaper.json") and not paths.is_file(spool / "exit.json")


def answered(spool: Path) -> Exit | None:
    """How the child of this spool ended, when it ended by itself, or on a clock of its own; else None.

    So it is for whoever comes after a dead driver: what was cut off by its end, by us or by the
    machine says nothing about an answer.
    """
    ended = finished(spool)
    cut = ended is None or ended.trouble or ended.reason in (Reason.LOST, Reason.CANCELLED)
    return None if cut else ended


def printable(text: str) -> str:
    """What a program said, without what would move or colour a person's terminal, or give it orders."""
    return _CONTROL.sub("", text)


def output(spool: Path, name: str = "out", bytes_max: int = 50_000_000) -> str:
    """What the child printed, as text; what is not UTF-8 is replaced."""
    try:
        with machine("read", spool / name):
            return paths.beginning(spool / name, bytes_max).decode(errors="replace")
    except OSError:
        return ""


def tail(spool: Path, name: str = "err", bytes_max: int = 2_000) -> str:
    """The end of what the child printed, from the beginning of a line where it is cut."""
    try:
        with machine("read", spool / name), paths.opened(spool / name) as f:
            size = f.seek(0, os.SEEK_END)
            f.seek(max(0, size - bytes_max))
            data = f.read(bytes_max)
    except OSError:
        return ""
    text = data.decode(errors="replace").strip()
    return text if size <= bytes_max else text.partition("\n")[2] or text


def prepare(child: Child) -> None:
    """A spool with this child's input and nobody's output; what an earlier one left running is ended."""
    try:
        paths.make_folders(child.spool, 0o700)
        end_leftovers(child.spool)
        for name in ("exit.json", "exit.json.tmp", "reaper.json", "reaper.json.tmp"):
            paths.remove(child.spool / name)
        for name, data in (("in", child.stdin), ("out", b""), ("err", b"")):
            paths.write(child.spool / name, data)
    except OSError as e:
        if e.errno in TROUBLES:
            raise
        raise RondelError(f"cannot write to the spool {child.spool}: {e.strerror or e}") from e


def start(child: Child, channel: int = -1) -> subprocess.Popen[bytes]:
    """The reaper, told what to start."""
    token = uuid.uuid4().hex
    tmp = os.path.realpath(tempfile.mkdtemp(prefix="rondel-")) if child.confined else ""
    try:
        return _start_in(child, token, tmp, channel)
    except BaseException:
        if tmp:
            paths.remove_folder(tmp)
        raise


def _start_in(child: Child, token: str, tmp: str, channel: int) -> subprocess.Popen[bytes]:
    """The reaper, with the ruleset that its child enters, and the folder that goes with the child."""
    env = box.environment(child.confined, tmp, child.env) if child.confined else child.env
    setup = {
        "argv": child.argv,
        "env": {**env, reaper.MARK: token},
        "cwd": str(child.cwd.absolute()),
        "tmp": tmp,
        "spaces": box.spaces(child.confined, str(child.cwd.absolute()), tmp) if child.confined else None,
        "channel": channel,
        "output_max": child.output_max,
        "grace_s": child.grace_s,
        "token": token,
        "troubles": sorted(TROUBLES),
        "passed": child.passed,
    }
    ours = {n: os.environ[n] for n in ("PATH", "LD_LIBRARY_PATH") if n in os.environ}
    with paths.folder(child.spool) as spool, _ruleset(child, env, tmp) as rules:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(reaper.__file__)), str(child.spool.absolute()), str(spool)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**ours, reaper.MARK: token},
            start_new_session=True,
            bufsize=0,
            pass_fds=[fd for fd in (spool, rules, channel, *child.passed) if fd >= 0],
        )
    tell(process, json.dumps({**setup, "rules": rules}).encode())
    return process


@contextmanager
def _ruleset(child: Child, env: Mapping[str, str], tmp: str) -> Iterator[int]:
    """What the child is to be held to, as an open file; -1 where it is not confined."""
    if child.confined is None:
        yield -1
        return
    for place in box.missing(child.confined):
        paths.make_folders(place, 0o700)
    rules = landlock.ruleset(box.rules(child.confined, child.argv, str(child.cwd.absolute()), env, tmp))
    try:
        yield rules
    finally:
        os.close(rules)


def tell(process: subprocess.Popen[bytes], word: bytes) -> None:
    """A line to a reaper: after what to start, why to end it."""
    assert process.stdin is not None  # noqa: S101 - for mypy: it is a pipe
    rest = word + b"\n"
    with suppress(OSError):  # it is gone, which its closed output says too
        while rest:
            rest = rest[process.stdin.write(rest) :]


def _watched(
    child: Child, on_line: OnLine | None, on_err: Callable[[bytes], object] | None, proxy: Proxy | None
) -> _Watch:
    """The child, started and under our eye; none is left running that is not."""
    process = start(child, proxy.channel.fileno() if proxy else -1)
    try:
        if proxy:
            proxy.serve()
        return _Watch(child, process, on_line, on_err)
    except BaseException:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()
        process.wait()
        raise


class _Lines:
    """The complete lines of a growing file, each cut at LINE_MAX."""

    def __init__(self, path: Path) -> None:
        self._file = paths.opened(path)
        self._rest = bytearray()
        self.more = False  # there was more than one read takes

    def new(self) -> Iterator[bytes] | None:
        """The lines that came since the last call; None when not a byte came."""
        data = self._file.read(READ_MAX)
        self.more = len(data) == READ_MAX
        return self._split(data) if data else None

    def _split(self, data: bytes) -> Iterator[bytes]:
        *whole, rest = data.split(b"\n")
        for line in whole:
            self._keep(line)
            yield bytes(self._rest)
            self._rest.clear()
        self._keep(rest)

    def _keep(self, data: bytes) -> None:
        self._rest += data[: LINE_MAX - len(self._rest)]

    def last(self) -> Iterator[bytes]:
        """The line without an end, when the child is gone."""
        if self._rest:
            yield bytes(self._rest)
            self._rest.clear()

    def close(self) -> None:
        self._file.close()


class _Watch:
    """The driver's eye on one child."""

    def __init__(
        self,
        child: Child,
        process: subprocess.Popen[bytes],
        on_line: OnLine | None,
        on_err: Callable[[bytes], object] | None,
    ) -> None:
        self._child = child
        self._process = process
        self._on_line = on_line
        self._on_err = on_err
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._over = False
        self._out = _Lines(child.spool / "out")
        self._err = _Lines(child.spool / "err")
        now = self._loop.time()
        self._wall_at = now + child.wall_s
        self._idle_at = now + child.idle_s
        self._result_at = self._hard_at = float("inf")
        self.reason: Reason | None = None
        self.status = 0  # of the reaper, when it is gone
        assert process.stdout is not None  # noqa: S101 - for mypy: it is a pipe
        self._dots = process.stdout.fileno()
        os.set_blocking(self._dots, False)
        self._loop.add_reader(self._dots, self._dot)

    def _dot(self) -> None:
        """The spool grew, or the reaper is gone."""
        try:
            self._over = not os.read(self._dots, 1 << 16)
        except BlockingIOError:
            return
        if self._over:
            self._loop.remove_reader(self._dots)
        self._woken.set()

    async def to_the_end(self) -> None:
        """Follow until the reaper is gone; then raise what came in between."""
        error: BaseException | None = None
        while True:
            over = self._over
            try:
                self._look()
                if over and not (self._out.more or self._err.more):
                    break
                await self._pause()
            except asyncio.CancelledError as e:
                error = e
                self._end(Reason.CANCELLED)
            except Exception as e:  # noqa: BLE001 - raised again below, when the child is gone
                error = error or e
                self._on_line = self._on_err = None
                self._end(Reason.CANCELLED)
        self.status = self._process.wait()
        if error is not None:
            raise error
        self._hear(self._out.last())
        self._hear_err(self._err.last())

    async def _pause(self) -> None:
        if self._over or self._out.more or self._err.more:
            await asyncio.sleep(0)
            return
        self._woken.clear()
        at = min(self._wall_at, self._idle_at, self._result_at, self._hard_at)
        alarm = self._loop.call_at(at, self._woken.set) if at < float("inf") else None
        try:
            await self._woken.wait()
        finally:
            if alarm is not None:
                alarm.cancel()

    def _look(self) -> None:
        """Hear what is new, and see to the clocks."""
        now = self._loop.time()
        lines, errors = self._out.new(), self._err.new()
        progress = lines is not None and self._hear(lines)
        if errors is not None:
            self._hear_err(errors)
            progress = progress or self._child.err_counts
        if progress and self.reason is None:
            self._idle_at = now + self._child.idle_s
            if self._result_at < float("inf"):
                self._result_at = now + RESULT_GRACE_S
        if now >= self._hard_at:
            self._hard_at = float("inf")
            self._process.send_signal(signal.SIGKILL)
        elif now >= self._wall_at:
            self._end(Reason.WALL)
        elif now >= self._result_at:
            self._end(LineSignal.RESULT)
        elif now >= self._idle_at:
            self._end(Reason.IDLE)

    def _hear(self, lines: Iterator[bytes]) -> bool:
        """Hand on the lines; whether they were progress."""
        verdicts = [self._on_line(line) if self._on_line else None for line in lines]
        if LineSignal.RESULT in verdicts and self.reason is None:
            self._result_at = self._loop.time() + RESULT_GRACE_S
        if LineSignal.TURNS in verdicts:
            self._end(Reason.TURNS)
        return not verdicts or any(v is not LineSignal.RETRYING for v in verdicts)

    def _hear_err(self, lines: Iterator[bytes]) -> None:
        for line in lines:
            if self._on_err is not None:
                self._on_err(line)

    def _end(self, reason: Reason | LineSignal) -> None:
        """Have the reaper end the child; once."""
        if self.reason is not None:
            return
        self.reason = Reason.EXITED if reason is LineSignal.RESULT else Reason(reason)
        self._wall_at = self._idle_at = self._result_at = float("inf")
        self._hard_at = self._loop.time() + self._child.grace_s + HARD_S
        tell(self._process, reason.encode())

    def close(self) -> None:
        """Let go of the files."""
        if not self._over:
            self._loop.remove_reader(self._dots)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._out.close()
        self._err.close()
