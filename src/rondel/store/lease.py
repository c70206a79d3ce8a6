"""The lease: one driver per session, told from a dead one at once.

The file `lease` of a session's run folder is locked by the driver that has the session;
the kernel lets go of it when the driver dies. Each driver puts a file of its own there, with
an epoch one higher than the last. A driver whose file is no longer the one at that path has
been replaced, and must not write.

A driver that follows one that died finds files that were never made durable. It relies on
them, so it makes everything durable first.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import stat
import time
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from rondel.errors import Held, LostLease
from rondel.model.commands import command_line
from rondel.model.snapshot import parse_json
from rondel.model.times import stamp
from rondel.model.trouble import machine
from rondel.store import disk, files, ours
from rondel.store.locks import try_lock, unlock

NAME = "lease"
_PATIENCE_S = 0.25  # longer than another one needs to take it, or to look whether it is held


@dataclass(frozen=True)
class Holder:
    """Who drives a session."""

    pid: int = 0
    host: str = ""
    started_at: str = ""
    epoch: int = 0
    command: str = ""
    released: bool = False  # it came to its end, and died not
    after_death: bool = False  # a driver before it died, and none has taken up since what that cut off

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.started_at}" + (
            f" ({self.command})" if self.command else ""
        )


def holder(run_folder: Path | str) -> Holder | None:
    """Who drives the session; None when no living process does. The lock decides, not the pid."""
    name = f"{run_folder}/{NAME}"
    try:
        with machine("read", name):
            fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _parse(os.pread(fd, 65536, 0))
    except OSError:
        return None
    finally:
        os.close(fd)
    return None


class Lease:
    """The right to write to a session, until it is released or another one has it."""

    def __init__(self, path: str, fd: int, holder: Holder, session: str) -> None:
        self._path = path
        self._fd: int | None = fd
        found = os.fstat(fd)
        self._file = (found.st_dev, found.st_ino)
        self._bytes = _dump(holder)
        self._session = session
        self.holder = holder
        self._taken_up = False

    @property
    def after_death(self) -> bool:
        """Whether the last driver died: what it had under way was cut off."""
        return self.holder.after_death

    def take_up(self) -> None:
        """What a death cut off is this driver's now: the next one has no part in it."""
        self._taken_up = True

    @property
    def epoch(self) -> int:
        """Grows with each driver of the session."""
        return self.holder.epoch

    @classmethod
    def take(cls, run_folder: Path, session: str, *, command: str = "") -> Lease:
        """The lease of a session; Held, with who has it, when another process drives it."""
        path = os.path.join(run_folder, NAME)
        moved = ours.clear(Path(path))
        end = time.monotonic() + _PATIENCE_S
        with disk.explained("take the lease", path):
            while (old := _lock_old(path)) is None:
                if time.monotonic() > end:
                    raise _held(run_folder, session)
                time.sleep(0.01)
            try:
                files.sweep(os.fspath(run_folder))
                last = _parse(os.pread(old, 65536, 0))
                died = last.epoch > 0 and not last.released
                if died:
                    disk.current.sync_all()
                mine = Holder(
                    os.getpid(),
                    socket.gethostname(),
                    stamp(datetime.now().astimezone()),
                    last.epoch + 1,
                    command,
                    after_death=died or last.after_death,
                )
                if not last.epoch and os.fstat(old).st_size:
                    moved.append(ours.moved(Path(path)))
                fd = files.replace(path, _dump(mine))
            finally:
                unlock(old)
        ours.begin_record(ours.session_of(run_folder)[0], moved)
        ours.ignore_runtime(run_folder.parent)
        return cls(path, fd, mine, session)

    def check(self) -> None:
        """LostLease when another driver has the session: called before each write.

        A lease that is no driver's is put back: somebody removed ours, or put something in its place.
        """
        if self._fd is None:
            raise LostLease(f"the lease of {self._session} was given back; take it again to write")
        found = ours.look(Path(self._path))
        if found is None or (found.st_dev, found.st_ino) != self._file or not found.st_mode & stat.S_IRUSR:
            self._put_back()
        data = os.pread(self._fd, 65536, 0)
        if data == self._bytes or (epoch := _parse(data).epoch) == self.epoch:
            return
        if epoch:
            raise self._lost(f"its epoch is {epoch}, ours {self.epoch}")
        self._put_back()

    def _put_back(self) -> None:
        """Our lease at its place again; what is there and is no other driver's goes aside."""
        path = Path(self._path)
        folder, relative = ours.session_of(path)
        if not folder.is_dir():
            raise self._lost(f"its folder {str(folder)!r} is gone")
        with disk.explained("put back the lease", path):
            moved = ours.clear(path) or self._make_way(path)
            fd, old = files.replace(self._path, self._bytes), self._fd
        if old is not None:
            unlock(old)
        self._fd, found = fd, os.fstat(fd)
        self._file = (found.st_dev, found.st_ino)
        ours.note(folder, moved or [ours.Restored(relative, "it is gone", "")])

    def _make_way(self, path: Path) -> list[ours.Restored]:
        """Put aside the file at our lease's place; LostLease where it is another driver's."""
        found = ours.look(path)
        if found is None:
            return []
        if (found.st_dev, found.st_ino) != self._file:
            other = _lock_old(self._path)
            if other is None:
                raise self._lost(f"it is held by {_parse(files.read(self._path) or b'')}")
            last = _parse(os.pread(other, 65536, 0))
            unlock(other)
            if last.epoch:
                raise self._lost(f"it was held by {last}")
        return [ours.moved(path)]

    def _lost(self, why: str) -> LostLease:
        return LostLease(
            f"{self._session} is no longer ours: {why}; nothing more is written. Run it again to go on"
        )

    def release(self) -> None:
        """Let the next driver in at once. The file stays, for its epoch."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            try:
                cut_off = self.after_death and not self._taken_up
                os.pwrite(fd, _dump(replace(self.holder, released=True, after_death=cut_off)), 0)
            except OSError:  # then the next one takes us for dead, and only takes more care
                pass
            finally:
                unlock(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.release()


def _lock_old(path: str) -> int | None:
    """The lease file at `path`, locked; None when it is held, or was replaced just now."""
    fd = disk.current.open_log(path)
    if not try_lock(fd):
        os.close(fd)
        return None
    try:
        if os.path.samestat(os.fstat(fd), os.stat(path, follow_symlinks=False)):
            return fd
    except FileNotFoundError:
        pass
    unlock(fd)
    return None


def _held(run_folder: Path, session: str) -> Held:
    who = holder(run_folder)
    return Held(
        f"{session} is driven by {who or 'another process'}; `{command_line('watch', session)}` follows it, "
        f"`{command_line('stop', session)}` ends it"
    )


def _dump(holder: Holder) -> bytes:
    """Of the same length, released or not: so that the one can be written over the other."""
    return json.dumps(asdict(holder)).encode() + b" " * (holder.released + holder.after_death) + b"\n"


def _parse(data: bytes) -> Holder:
    """What a lease file says; a file that says nothing usable is the zeroth driver's."""
    value = parse_json(data)
    if not isinstance(value, dict):
        return Holder()
    pid, epoch = value.get("pid"), value.get("epoch")
    return Holder(
        pid if isinstance(pid, int) else 0,
        str(value.get("host", "")),
        str(value.get("started_at", "")),
        epoch if isinstance(epoch, int) else 0,
        str(value.get("command", "")),
        value.get("released") is True,
        value.get("after_death") is True,
    )
