"""Workers: programs that answer questions while a run goes on, each confined and under a reaper.

A worker is started with its first question and stays until the run ends. Questions and answers go over two
pipes that only its own process has; what it prints goes to its spool and is read by nobody but a person.
One that hangs, dies, or answers with something that is no answer is ended, and that is the error; the next
question starts another one.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import select
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rondel import paths
from rondel.agents.checks import MEMORY_MAX, OURS, limited
from rondel.errors import RondelError
from rondel.model import jsons
from rondel.model.names import digest
from rondel.model.trouble import machine
from rondel.model.workers import Program, Read, nothing_to_read
from rondel.processes.leftovers import end_leftovers
from rondel.processes.runner import HARD_S, Child, clean_env, finished, prepare, printable, start, tail, tell
from rondel.sandbox.box import Box, Confined, Kind

ANSWER_S = 30.0  # for one question, with what is read for it
ANSWER_MAX = jsons.BYTES_MAX
WANTED_MAX = 1000  # bytes of one name of something to read
WANTS_MAX = 10_000  # different ones for one question
KNOWN_MAX = 64_000_000  # bytes of answers that are kept
CPU_S = 600.0  # of one process, over all its questions
OUTPUT_MAX = 10_000_000  # of what it prints
GRACE_S = 1.0
SPOOLS_MAX = 100  # runs at once that ask the same program
_SAID_MAX = 500


@dataclass(frozen=True)
class _Known:
    """An answer, and the digest of each text that was read for it."""

    answer: object
    read: tuple[tuple[object, str], ...]
    size: int


class Workers:
    """The workers of one repository's runs. See `rondel.model.workers.AskProgram`."""

    def __init__(self, place: Callable[[], tuple[Path, Box | None]]) -> None:
        """`place` says where spools are, and what workers may reach; it is asked when one is started."""
        self._place = place
        self._running: dict[str, _Worker] = {}
        self._known: dict[str, _Known] = {}
        self._lock = threading.Lock()
        weakref.finalize(self, _end_all, self._running)  # also when this process ends

    def __call__(
        self, program: Program, what: str, question: object, read: Read = nothing_to_read, /
    ) -> object:
        """See `AskProgram`."""
        key = digest(json.dumps([program.name, program.version, question], sort_keys=True))
        with self._lock:
            known = self._known.get(key)
            if known is None or any(_mark(read(wanted)) != mark for wanted, mark in known.read):
                self._known.pop(key, None)
                known = self._known[key] = self._ask(program, what, question, read)
                self._forget()
        return known.answer

    def _forget(self) -> None:
        """What was asked longest ago is asked again, before the driver grows with what it was told."""
        size = sum(known.size for known in self._known.values())
        while size > KNOWN_MAX:
            size -= self._known.pop(next(iter(self._known))).size

    def close(self) -> None:
        """End every worker, and forget what they said."""
        with self._lock:
            _end_all(self._running)
            self._known.clear()

    def _ask(self, program: Program, what: str, question: object, read: Read) -> _Known:
        """What the program answers. A worker that gives no answer is ended."""
        running = self._running.get(program.name)
        if running is None or running.program != program or running.is_gone:
            running = self._started(program)
        try:
            return running.ask(what, question, read)
        except BaseException as e:
            if not isinstance(e, _Refused):
                self._running.pop(program.name).end()
            raise

    def _started(self, program: Program) -> _Worker:
        if program.name in self._running:
            self._running.pop(program.name).end()
        folder, box = self._place()
        with machine("start", program.name):
            made = self._running[program.name] = _Worker(program, folder, box)
        return made


class _Refused(RondelError):
    """What the program itself said was wrong: it goes on."""


def _end_all(running: dict[str, _Worker]) -> None:
    while running:
        running.popitem()[1].end()


def _mark(text: object) -> str:
    return digest(json.dumps(text))


class _Worker:
    """One process, from its start to its end."""

    def __init__(self, program: Program, folder: Path, box: Box | None) -> None:
        self.program = program
        paths.make_folders(folder, 0o700)
        self._spool, self._held = _free_spool(folder, program.name)
        inner, self._to = os.pipe()
        self._from, outer = os.pipe()
        self._is_over = False
        env = clean_env() | {"MALLOC_ARENA_MAX": "2"}  # else each thread reserves memory that counts
        options = ("-I", "-B", "-u", "-m", program.module, str(inner), str(outer), *program.words)
        child = Child(
            limited((sys.executable, *options), CPU_S),
            Path(program.folder),
            env,
            self._spool,
            output_max=OUTPUT_MAX,
            grace_s=GRACE_S,
            confined=Confined(box, shown=(OURS,), private_home=True, kind=Kind.WORKER) if box else None,
            passed=(inner, outer),
        )
        self._process: subprocess.Popen[bytes] | None = None
        try:
            prepare(child)
            self._process = start(child)
        except BaseException:
            self.end()
            raise
        finally:
            os.close(inner)
            os.close(outer)
        for fd in (self._to, self._from):
            os.set_blocking(fd, False)

    @property
    def is_gone(self) -> bool:
        """Whether it has ended since its last answer: then it is not this question that it fails at."""
        eye = select.poll()
        eye.register(self._from, 0)
        return any(event & select.POLLHUP for _, event in eye.poll(0))

    def ask(self, what: str, question: object, read: Read) -> _Known:
        """Its answer, and what was read for it."""
        number, wanted = secrets.token_hex(16), dict[str, tuple[object, str]]()
        until = time.monotonic() + ANSWER_S
        self._send({"number": number, "question": question}, what, until)
        while True:
            said = self._said(number, what, until)
            if "answer" in said:
                size = len(json.dumps(said["answer"])) + sum(map(len, wanted))
                return _Known(said["answer"], tuple(wanted.values()), size)
            if "refused" in said:
                raise _Refused(printable(str(said["refused"])))
            if "raised" in said:
                raise _Refused(f"{what}: {printable(str(said['raised']))}")
            if "wanted" not in said:
                raise self._error(what, "answered with something that is no answer")
            name = json.dumps(said["wanted"], ensure_ascii=False)
            if len(name.encode()) > WANTED_MAX:
                raise self._error(
                    what, f"wants to read something whose name has more than {WANTED_MAX} bytes"
                )
            found = read(said["wanted"])
            wanted.setdefault(
                name, (said["wanted"], _mark(found))
            )  # one that changes meanwhile is asked again
            if len(wanted) > WANTS_MAX:
                raise self._error(what, f"wants to read more than {WANTS_MAX} things")
            self._send({"read": found}, what, until)

    def _send(self, message: object, what: str, until: float) -> None:
        rest = memoryview(json.dumps(message).encode() + b"\n")
        while rest:
            self._wait(what, until, write=True)
            try:
                rest = rest[os.write(self._to, rest) :]
            except BlockingIOError:  # there is room for less than it would take in one piece
                rest = rest[os.write(self._to, rest[: select.PIPE_BUF]) :]
            except BrokenPipeError:
                return  # its closed output says so, too

    def _said(self, number: str, what: str, until: float) -> dict[str, object]:
        """Its next message; what is about another question is none."""
        line = b"".join(self._line(what, until))
        try:
            said = jsons.load(line, finite=True)
            json.dumps(said, ensure_ascii=False).encode()  # half a character cannot be written
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict) or said.get("number") != number:
            raise self._error(what, "answered with something that is no answer")
        return said

    def _line(self, what: str, until: float) -> Iterator[bytes]:
        size = 0
        while True:
            self._wait(what, until, write=False)
            data = os.read(self._from, 1 << 20)
            size += len(data)
            if not data:
                raise self._error(what, f"ended without an answer{self._how()}")
            if size > ANSWER_MAX:
                raise self._error(what, f"answered with more than {ANSWER_MAX} bytes")
            yield data
            if data.endswith(b"\n"):
                return

    def _wait(self, what: str, until: float, *, write: bool) -> None:
        """Until the pipe is ready, or the time is over."""
        eye = select.poll()
        eye.register(self._to if write else self._from, select.POLLOUT if write else select.POLLIN)
        if not eye.poll(max(0.0, until - time.monotonic()) * 1000):
            raise self._error(what, f"did not answer within {ANSWER_S:g} s and was ended")

    def _error(self, what: str, words: str) -> RondelError:
        return RondelError(f"{what}: it {words}; what it printed is in {self._spool}")

    def _how(self) -> str:
        """Why it ended, in its own last words."""
        self.end()
        ended, said = finished(self._spool), printable(tail(self._spool, "err", _SAID_MAX)).strip()
        by = (
            f" by signal {ended.signal} ({MEMORY_MAX} bytes, {CPU_S:g} s at most)"
            if ended and ended.signal
            else ""
        )
        return f"{by}: {said.splitlines()[-1]}" if said else by

    def end(self) -> None:
        """End it with everything that it started; its spool stays until another one takes the place."""
        if self._is_over:
            return
        self._is_over = True
        for fd in (self._to, self._from):
            os.close(fd)
        if self._process is not None:
            _end(self._process, self._spool)
        os.close(self._held)


def _end(process: subprocess.Popen[bytes], spool: Path) -> None:
    tell(process, b"cancelled")
    try:
        process.wait(HARD_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
    if finished(spool) is None:
        end_leftovers(spool, 0)


def _free_spool(folder: Path, name: str) -> tuple[Path, int]:
    """A spool that no other run of ours uses now, and the lock that says so."""
    for number in range(1, SPOOLS_MAX + 1):
        held = paths.open_path(folder / f"{name}-{number}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            continue
        return folder / f"{name}-{number}", held
    raise RondelError(f"{SPOOLS_MAX} runs ask {name} already; wait until one has ended")
