"""The lease: one driver per session, told from a dead one at once.

The file `lease` of a session's runtime is locked by the driver that has the session;
the kernel lets go of it when the driver dies. Each driver puts a file of its own there, with
an epoch one higher than the last. A driver whose file is no longer the one at that path has
been replaced, and must not write.

People who share a checkout have each their own runtime. So the driver also locks a file in the session's
own folder, in the same way; what stands there says who it is, and is believed by nobody.

A driver that follows one that died finds files that were never made durable. It relies on
them, so it makes everything durable first.
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import socket
import stat
import time
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from rondel import paths
from rondel.errors import Held, LostLease
from rondel.model.jsons import parse_json
from rondel.model.summary import command_line
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
    user: str = ""
    released: bool = False  # it came to its end, and died not
    after_death: bool = False  # a driver before it died, and none has taken up since what that cut off

    def __str__(self) -> str:
        whose = f" of {self.user}" if self.user and self.user != _user() else ""
        return f"process {self.pid}{whose} on {self.host} since {self.started_at}" + (
            f" ({self.command})" if self.command else ""
        )


def holder(run_folder: Path | str, folder: Path | str | None = None) -> Holder | None:
    """Who drives the session; None when no living process does. The lock decides, not the pid.

    With the session's own `folder` also somebody else who shares the checkout.
    """
    found = _holder(f"{run_folder}/{NAME}")
    return _holder(f"{folder}/{ours.LOCK}") if found is None and folder is not None else found


def _holder(name: str) -> Holder | None:
    """Who has a file locked."""
    try:
        with machine("read", name):
            fd = paths.open_path(name, os.O_RDONLY)
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

    def __init__(self, path: str, fd: int, holder: Holder, session: str, folder: Path) -> None:
        self._path = path
        self._folder = folder
        self._fd: int | None = fd
        found = os.fstat(fd)
        self._file = (found.st_dev, found.st_ino)
        self._bytes = _dump(holder)
        self._session = session
        self.holder = holder
        self._lock: _FolderLock | None = None
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
    def take(cls, run_folder: Path, session: str, *, folder: Path | None = None, command: str = "") -> Lease:
        """The lease of a session; Held, with who has it, when another process drives it.

        `run_folder` is its runtime, `folder` its own: whoever has the lease writes there.
        """
        path = os.path.join(run_folder, NAME)
        moved = ours.clear(Path(path))
        with disk.explained("take the lease", path):
            if (old := _wait_for(path)) is None:
                raise _held(session, holder(run_folder))
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
                    _user(),
                    after_death=died or last.after_death,
                )
                if not last.epoch and os.fstat(old).st_size:
                    moved.append(ours.moved(Path(path)))
                fd = files.replace(path, _dump(mine))
            finally:
                unlock(old)
        place = ours.session_of(run_folder)[0]
        lease = cls(path, fd, mine, session, folder or place)
        ours.begin_record(place, moved)
        if folder is not None:
            lease._take_folder(folder)
        return lease

    def _take_folder(self, folder: Path) -> None:
        """Lock the session's own folder, too; Held, with all of it given back, where somebody has it."""
        try:
            if _holder(f"{folder}/{ours.LOCK}") is None:  # what was put back before is no news
                ours.begin_record(folder)
            self._lock = _FolderLock.take(folder, _dump(self.holder))
            if self._lock is not None:
                ours.keep_out_of_git(folder / ours.HOME, renew=True)
        except BaseException:
            self.release()
            raise
        if self._lock is None:
            self.release()
            raise _held(self._session, _holder(f"{folder}/{ours.LOCK}"))

    def check(self) -> None:
        """LostLease when another driver has the session: called before each write.

        A lease that is no driver's is put back: somebody removed ours, or put something in its place.
        """
        if self._fd is None:
            raise LostLease(f"the lease of {self._session} was given back; take it again to write")
        if self._lock is None or not self._lock.is_held():  # what is held is in a folder that is there
            if not paths.is_folder(self._folder):
                raise self._lost(f"its folder {str(self._folder)!r} is gone")
            if self._lock is not None and (other := self._lock.lost()):
                raise self._lost(f"its folder is held by {other}")
        found = ours.look(self._path)
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
        place, relative = ours.session_of(path)
        with disk.explained("put back the lease", path):
            moved = ours.clear(path) or self._make_way(path)
            fd, old = files.replace(self._path, self._bytes), self._fd
        if old is not None:
            unlock(old)
        self._fd, found = fd, os.fstat(fd)
        self._file = (found.st_dev, found.st_ino)
        ours.note(place, moved or [ours.Restored(relative, "it is gone", "")])

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
                if self._lock is not None:
                    self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.release()


class _FolderLock:
    """The lock on a session's folder, against others who share the checkout."""

    def __init__(self, folder: Path, fd: int, words: bytes) -> None:
        self._folder, self.fd, self._words = folder, fd, words
        self._path = folder / ours.LOCK

    @classmethod
    def take(cls, folder: Path, words: bytes) -> _FolderLock | None:
        """The lock, with words that say whose it is; None where somebody else has it."""
        path = ours.own(folder / ours.LOCK)
        with disk.explained("lock", path):
            old = _wait_for(os.fspath(path))
            if old is None:
                return None
            try:
                if (
                    os.fstat(old).st_size and not _parse(os.pread(old, 65536, 0)).epoch
                ):  # a text of somebody's
                    ours.note(folder, [ours.moved(path)])
                return cls(folder, files.replace(os.fspath(path), words), words)
            finally:
                unlock(old)

    def is_held(self) -> bool:
        """Whether our file is at its place, and may be read."""
        found = ours.look(self._path)
        return found is not None and self._is_ours(found) and bool(found.st_mode & stat.S_IRUSR)

    def _is_ours(self, found: os.stat_result) -> bool:
        return os.path.samestat(found, os.fstat(self.fd))

    def lost(self) -> str:
        """Who has it now; empty where we do, or nobody did: then it is put back."""
        if self.is_held():
            return ""
        path = self._path
        found = ours.look(path)
        is_ours = found is not None and self._is_ours(found)
        moved = [ours.moved(path)] if is_ours else []
        last = _parse(ours.view(path) or b"")
        if last.epoch and last != _parse(self._words):
            return str(last)
        again = _FolderLock.take(self._folder, self._words)
        if again is None:
            return str(_holder(os.fspath(path)) or "another process")
        self.release()
        self.fd = again.fd
        ours.note(self._folder, moved or [ours.Restored(ours.LOCK, "it is gone", "")])
        return ""

    def release(self) -> None:
        """Let the next one in. The file stays: removing it could let in two."""
        unlock(self.fd)


def _wait_for(path: str) -> int | None:
    """The file at `path`, locked; None where somebody has it for longer than it takes to look."""
    end = time.monotonic() + _PATIENCE_S
    while (fd := _lock_old(path)) is None:
        if time.monotonic() > end:
            return None
        time.sleep(0.01)
    return fd


def _lock_old(path: str) -> int | None:
    """The lease file at `path`, locked; None when it is held, or was replaced just now."""
    try:
        fd = disk.current.open_log(path)
    except PermissionError:  # another person's: who may write in the folder may put their own there
        fd = paths.open_path(path, os.O_RDONLY)
    if not try_lock(fd):
        os.close(fd)
        return None
    try:
        if os.path.samestat(os.fstat(fd), paths.look(path)):
            return fd
    except FileNotFoundError:
        pass
    unlock(fd)
    return None


def refuse_driven(run_folder: Path, session: str, folder: Path | None = None) -> None:
    """Held where somebody drives the session."""
    if (who := holder(run_folder, folder)) is not None:
        raise _held(session, who)


def _user() -> str:
    """The name of the person who runs this."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _held(session: str, who: Holder | None) -> Held:
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
        str(value.get("user", "")),
        value.get("released") is True,
        value.get("after_death") is True,
    )
