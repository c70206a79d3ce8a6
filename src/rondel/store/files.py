"""Files: whole or not at all, and still there when the power comes back.

Every byte that Rondel keeps is written by a function of this module (the lease and the
journal add only how they hold their file open).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rondel.errors import RondelError, UnsafePath
from rondel.model.names import inside, safe_name
from rondel.store import disk
from rondel.store.locks import try_lock, unlock, wait_lock

TEMP = ".rondel-tmp-"
SIZE_MAX = 64 * 1024 * 1024
_TRIES = 5

_swept: set[str] = set()


def write(path: Path, data: bytes) -> None:
    """After this returns, `path` holds all of `data`, even if the power goes.

    Readers see the old file or the new one, never a part. The rename is the commit; the
    fsync of the folder is what makes the rename last. A file that is replaced keeps its
    mode. Whatever fails, the old file or the new one is there, and nothing else.
    """
    name = os.fspath(path)
    with disk.explained("write", name):
        unlock(replace(name, data))


def replace(name: str, data: bytes) -> int:
    """Like `write`; gives the new file, open and locked."""
    folder = os.path.dirname(name) or "."
    if folder not in _swept:
        sweep(folder)
    for _ in range(_TRIES):
        try:
            return _replace_once(folder, name, data)
        except _TakenForDead:
            continue
    raise RondelError(f"cannot write {name!r}: something keeps removing {TEMP}* files from its folder")


class _TakenForDead(Exception):
    """Another process removed our temporary file in the instant before we had locked it."""


def _replace_once(folder: str, name: str, data: bytes) -> int:
    temp = f"{folder}/{TEMP}{os.urandom(6).hex()}"
    fd = disk.current.create(temp)
    if not try_lock(fd):
        os.close(fd)
        raise _TakenForDead
    try:
        _keep_mode(name, fd)
        disk.current.write(fd, temp, data)
        disk.current.sync(fd, temp)
        disk.current.rename(temp, name)
        disk.current.sync_folder(folder)
    except BaseException as error:
        gone = isinstance(error, FileNotFoundError) and os.path.isdir(folder)
        _remove(temp)
        unlock(fd)
        if gone:
            raise _TakenForDead from error
        raise
    return fd


def _keep_mode(name: str, fd: int) -> None:
    try:
        found = os.lstat(name)
    except FileNotFoundError:
        return
    if stat.S_ISREG(found.st_mode):
        os.fchmod(fd, stat.S_IMODE(found.st_mode))


def _remove(temp: str) -> None:
    """Best effort, on the way out of another error: what stays is swept by the next writer."""
    try:
        os.unlink(temp)
    except OSError:
        return


def sweep(folder: str) -> None:
    """Remove the temporary files of writers that have died. Those of living ones are locked."""
    with disk.explained("look into", folder), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(TEMP) and entry.is_file(follow_symlinks=False):
                _sweep_one(entry.path)
    _swept.add(folder)


def _sweep_one(temp: str) -> None:
    try:
        fd = os.open(temp, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return
    if not try_lock(fd):
        os.close(fd)
        return
    try:
        disk.current.unlink(temp)
    except OSError:  # gone, or not ours to remove: it is no state either way
        return
    finally:
        unlock(fd)


def read(path: Path | str, size_max: int = SIZE_MAX) -> bytes | None:
    """The bytes of a regular file; None when there is none. Never waits for a pipe."""
    with disk.explained("read", path):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                raise RondelError(f"{os.fspath(path)!r} is not a regular file; move it away")
            if found.st_size > size_max:
                raise RondelError(
                    f"{os.fspath(path)!r} has {found.st_size} bytes; at most {size_max} are read"
                )
            with os.fdopen(fd, "rb", closefd=False) as file:
                return file.read(size_max)
        finally:
            os.close(fd)


def append_line(path: Path, line: str, *, again: bool = True) -> None:
    """After this returns, `line` is the last line of `path`, even if the power goes.

    A torn last line, left by a writer that died, is set aside first. With `again=False` a
    line that is the last one already is not added a second time.
    """
    append_next(path, lambda last: line if again or last != line else None)


def append_next(path: Path, following: Callable[[str | None], str | None]) -> None:
    """Add the line that follows the log's last one (None: there is none); None adds nothing.

    Nobody else adds a line in between.
    """
    name = os.fspath(path)
    with disk.explained("append to", name):
        fd = open_log(name)
        try:
            line = following(_last_line(fd))
            if line is not None:
                add_line(fd, name, line)
        finally:
            unlock(fd)


def open_log(name: str) -> int:
    """A log, open and locked, its torn last line set aside, its name durable."""
    fd = disk.current.open_log(name)
    try:
        wait_lock(fd, name)
    except BaseException:
        os.close(fd)
        raise
    try:
        mend_log(fd, name)
    except BaseException:
        unlock(fd)
        raise
    return fd


def mend_log(fd: int, name: str) -> None:
    """Set aside what follows the last newline of an open, locked log."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise RondelError(f"{name!r} is not a regular file; move it away")
    size = found.st_size
    if size == 0:
        # Made durable while it is empty: whoever sees a line in it can rely on its name.
        disk.current.sync_folder(os.path.dirname(name) or ".")
    elif os.pread(fd, 1, size - 1) != b"\n":
        torn = _tail(fd, size)
        _set_aside(name, torn)
        disk.current.truncate(fd, name, size - len(torn))
        disk.current.sync(fd, name)


def _tail(fd: int, size: int, block: int = 64 * 1024) -> bytes:
    """What follows the last newline before `size`."""
    start, tail = size, b""
    while start > 0 and b"\n" not in tail:
        step = min(block, start)
        start -= step
        tail = os.pread(fd, step, start) + tail
        block *= 2
    return tail.rpartition(b"\n")[2]


def _set_aside(name: str, torn: bytes) -> None:
    """`torn` in the first free `<name>.torn-N`, or in one that holds it already."""
    for number in range(1, 10_000):
        aside_name = f"{name}.torn-{number}"
        if not os.path.lexists(aside_name):
            return write(Path(aside_name), torn)
        if read(aside_name) == torn:  # we died between this and cutting it off
            return None
    raise RondelError(f"there are 10000 torn lines of {name!r}; something keeps killing its writers")


def add_line(fd: int, name: str, line: str, *, durable: bool = True) -> None:
    """One line at the end of an open, locked, mended log; all of it or, in case of an error, nothing."""
    if "\n" in line:
        raise RondelError(f"cannot append to {name!r}: a line of a log cannot hold a line break")
    size = os.fstat(fd).st_size
    try:
        disk.current.write(fd, name, _line_bytes(line))
        if durable:
            disk.current.sync(fd, name)
    except BaseException:
        os.ftruncate(fd, size)
        raise


def _line_bytes(line: str) -> bytes:
    return line.encode("utf-8", "backslashreplace") + b"\n"


def _last_line(fd: int) -> str | None:
    size = os.fstat(fd).st_size
    return _tail(fd, size - 1).decode(errors="replace") if size else None


def ends_with(path: Path, lines: Sequence[str]) -> int:
    """How many of `lines`, from the first one on, are the last complete lines of a log already."""
    blocks = [_line_bytes(line) for line in lines]
    end = _end(os.fspath(path), sum(map(len, blocks)) + 1)
    for count in range(len(blocks), 0, -1):
        block = b"".join(blocks[:count])
        if end == block or end.endswith(b"\n" + block):
            return count
    return 0


def _end(name: str, size: int) -> bytes:
    """The last `size` bytes of a log's complete lines."""
    with disk.explained("read", name):
        try:
            fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return b""
        try:
            whole = os.fstat(fd).st_size
            whole -= len(_tail(fd, whole))
            return os.pread(fd, min(size, whole), max(0, whole - size))
        finally:
            os.close(fd)


def read_lines(path: Path) -> list[str]:
    """The complete lines of a log, without their newlines; none when there is no log."""
    data = read(path) or b""
    return data[: data.rfind(b"\n") + 1].decode(errors="replace").split("\n")[:-1]


def make_folder(path: Path) -> None:
    """A folder and the folders above it, durable. One that is there already will do."""
    missing = []
    at = os.fspath(path)
    while at and not os.path.isdir(at):
        missing.append(at)
        at = os.path.dirname(at)
    for folder in reversed(missing):
        with disk.explained("make the folder", folder):
            try:
                disk.current.mkdir(folder)
            except FileExistsError:
                if not os.path.isdir(folder):
                    raise NotADirectoryError(errno.ENOTDIR, "a file is in the way", folder) from None
            disk.current.sync_folder(os.path.dirname(folder) or ".")


def claim_folder(parent: Path, names: Iterable[str]) -> Path:
    """A new folder under the first of `names` that is free; nobody else gets the same one."""
    make_folder(parent)
    tried = []
    for name in names:
        folder = parent / safe_name(name, "the folder name")
        with disk.explained("make the folder", folder):
            try:
                disk.current.mkdir(os.fspath(folder))
            except FileExistsError:
                tried.append(name)
                continue
            disk.current.sync_folder(os.fspath(parent))
        return folder
    raise RondelError(
        f"no free name in {os.fspath(parent)!r}; taken: {', '.join(tried[:5]) or 'no name given'}"
    )


def aside(path: Path, to: Path, *, again: bool = True) -> bool:
    """Move a file or folder out of the way; False when there is nothing (any more) to move.

    What is at `to` is never replaced. It is an error, unless it is the same file, left by
    one who died half-way. With `again=False` it means that this was done before, and a file
    at `path` that only repeats it goes.
    """
    old, new = os.fspath(path), os.fspath(to)
    with disk.explained("move aside", old):
        if not os.path.lexists(old):
            return False
        if os.path.lexists(new) and not _half_moved(old, new):
            if again:
                raise RondelError(f"cannot move {old!r} aside: {new!r} is there already; choose another name")
            if _same_bytes(old, new):
                disk.current.unlink(old)
                disk.current.sync_folder(os.path.dirname(old) or ".")
            return False
        if os.path.isdir(old) and not os.path.islink(old):
            disk.current.rename(old, new)
        else:
            _move_file(old, new)
        for folder in {os.path.dirname(new) or ".", os.path.dirname(old) or "."}:
            disk.current.sync_folder(folder)
        return True


def _half_moved(old: str, new: str) -> bool:
    """Whether these are two names of one file."""
    here, there = os.lstat(old), os.lstat(new)
    return (
        os.path.samestat(here, there) and here.st_nlink > 1 and os.path.realpath(old) != os.path.realpath(new)
    )


def _same_bytes(old: str, new: str) -> bool:
    here, there = os.lstat(old), os.lstat(new)
    return (
        stat.S_ISREG(here.st_mode)
        and stat.S_ISREG(there.st_mode)
        and not os.path.samestat(here, there)
        and here.st_size == there.st_size
        and read(old) == read(new)
    )


def _move_file(old: str, new: str) -> None:
    """By a link, because a rename would replace what is there."""
    try:
        disk.current.link(old, new)
    except FileExistsError:
        if not _half_moved(old, new):
            raise
    except PermissionError:  # a disk without hard links
        disk.current.rename(old, new)
        return
    disk.current.sync_folder(os.path.dirname(new) or ".")  # the new name lasts before the old one goes
    disk.current.unlink(old)


def safe_join(root: Path, relative: str, beside: frozenset[str] = frozenset()) -> Path:
    """The path of `relative` in `root`; UnsafePath when it, or a symbolic link on it, leads out.

    `../name` is good only for a `name` in `beside`.
    """
    up = relative[3:] if relative.startswith("../") else None
    if up is not None and up in beside:
        base, plain = os.path.dirname(os.path.abspath(root)), safe_name(up, "the file beside the session")
    else:
        base, plain = os.fspath(root), inside(relative)
    at = base
    for part in plain.split("/"):
        at = f"{at}/{part}"
        with disk.explained("use", at):
            try:
                mode = os.lstat(at).st_mode
            except FileNotFoundError:
                break
            if stat.S_ISLNK(mode):
                return _through_links(base, plain)
    return Path(base, plain)


def _through_links(base: str, plain: str) -> Path:
    real_base = os.path.realpath(base)
    real = os.path.realpath(os.path.join(base, plain))
    if os.path.commonpath([real_base, real]) != real_base or real == real_base:
        raise UnsafePath(
            f"path {plain!r} leads out of {base!r} through a symbolic link, to {real!r}; remove the link"
        )
    return Path(real)


def ignore(folder: Path, line: str) -> None:
    """A `.gitignore` with `line` in `folder`, unless there is one: a person's own stays as it is."""
    name = folder / ".gitignore"
    if not os.path.lexists(name):
        make_folder(folder)
        write(name, f"{line}\n".encode())
