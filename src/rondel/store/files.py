"""Files: whole or not at all, and still there when the power comes back.

Every byte that Rondel keeps is written by a function of this module, or as a line of a log by
one of `logs` (the lease and the journal add only how they hold their file open).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from rondel import paths
from rondel.errors import RondelError, UnsafePath
from rondel.model.names import inside, safe_name
from rondel.paths import SIZE_MAX as SIZE_MAX
from rondel.store import disk
from rondel.store.locks import try_lock, unlock

TEMP = ".rondel-tmp-"
_TRIES = 5

_swept: set[str] = set()


class Changed(Exception):
    """A file is not what it was when it was decided to replace it. Nothing was written."""


def write(path: Path, data: bytes, last: Callable[[], None] = lambda: None) -> None:
    """After this returns, `path` holds all of `data`, even if the power goes.

    Readers see the old file or the new one, never a part. The rename is the commit; the
    fsync of the folder is what makes the rename last. A file that is replaced keeps its
    mode. Whatever fails, the old file or the new one is there, and nothing else.

    `last` is called in the last moment, when all bytes are on the disk, and may raise: Changed.
    """
    name = os.fspath(path)
    with disk.explained("write", name):
        unlock(replace(name, data, last))


def replace(name: str, data: bytes, last: Callable[[], None] = lambda: None) -> int:
    """Like `write`; returns the new file, open and locked."""
    folder = os.path.dirname(name) or "."
    if folder not in _swept:
        sweep(folder)
    for _ in range(_TRIES):
        try:
            return _replace_once(folder, name, data, last)
        except _TakenForDead:
            continue
    raise RondelError(f"cannot write {name!r}: something keeps removing {TEMP}* files from its folder")


class _TakenForDead(Exception):
    """Another process removed our temporary file in the instant before we had locked it."""


def _replace_once(folder: str, name: str, data: bytes, last: Callable[[], None]) -> int:
    temp = f"{folder}/{TEMP}{os.urandom(6).hex()}"
    fd = disk.current.create(temp)
    if not try_lock(fd):
        os.close(fd)
        raise _TakenForDead
    try:
        _keep_mode(name, fd)
        disk.current.write(fd, temp, data)
        disk.current.sync(fd, temp)
        last()
        disk.current.rename(temp, name)
        disk.current.sync_folder(folder)
    except BaseException as error:
        gone = isinstance(error, FileNotFoundError) and paths.is_folder(folder)
        _remove(temp)
        unlock(fd)
        if gone:
            raise _TakenForDead from error
        raise
    return fd


def write_new(items: Mapping[str, bytes], last: Callable[[], None] = lambda: None) -> list[str]:
    """Write new files that do not depend on each other, like `write`; returns the names not written.

    They are made durable together: all bytes, then all names. Not written is what somebody else has
    put at one of these names meanwhile, or whose temporary file was taken for a dead writer's.
    """
    temps: dict[str, tuple[str, int]] = {}
    try:
        for name, data in items.items():
            with disk.explained("write", name):
                if (made := _begin(name, data)) is not None:
                    temps[name] = made
        for name, (temp, fd) in temps.items():
            with disk.explained("write", name):
                disk.current.sync(fd, temp)
        last()
        return _name_all(items, temps)
    finally:
        for temp, fd in temps.values():
            _remove(temp)
            unlock(fd)


def _begin(name: str, data: bytes) -> tuple[str, int] | None:
    """A temporary file for a name, open and locked, its bytes under way; None where it was taken for dead."""
    folder = os.path.dirname(name) or "."
    if folder not in _swept:
        sweep(folder)
    temp = f"{folder}/{TEMP}{os.urandom(6).hex()}"
    fd = disk.current.create(temp)
    if not try_lock(fd):
        os.close(fd)
        return None
    try:
        disk.current.write(fd, temp, data)
        disk.current.begin_sync(fd)
    except BaseException:
        _remove(temp)
        unlock(fd)
        raise
    return temp, fd


def _name_all(items: Iterable[str], temps: dict[str, tuple[str, int]]) -> list[str]:
    """Give temporary files their names, durably, where these are free; returns those that are not."""
    left, folders = [], set()
    try:
        for name in items:
            temp = temps[name][0] if name in temps else None
            with disk.explained("write", name):
                if temp is None or paths.is_there(name):
                    left.append(name)
                    continue
                try:
                    disk.current.rename(temp, name)
                except FileNotFoundError:
                    left.append(name)
                    continue
                folders.add(os.path.dirname(name) or ".")
                unlock(temps.pop(name)[1])
    finally:
        for folder in folders:
            with disk.explained("write", folder):
                disk.current.sync_folder(folder)
    return left


def _keep_mode(name: str, fd: int) -> None:
    try:
        found = paths.look(name)
    except FileNotFoundError:
        return
    if stat.S_ISREG(found.st_mode):
        os.fchmod(fd, stat.S_IMODE(found.st_mode))


def _remove(temp: str) -> None:
    """Best effort, on the way out of another error: what stays is swept by the next writer."""
    try:
        with paths.folder_of(temp) as (fd, name):
            os.unlink(name, dir_fd=fd)
    except OSError:
        return


def sweep(folder: str) -> None:
    """Remove the temporary files of writers that have died. Those of living ones are locked."""
    with disk.explained("look into", folder), paths.listing(folder) as entries:
        for entry in entries:
            if entry.name.startswith(TEMP) and entry.is_file(follow_symlinks=False):
                _sweep_one(f"{folder}/{entry.name}")
    _swept.add(folder)


def _sweep_one(temp: str) -> None:
    try:
        fd = paths.open_path(temp, os.O_RDONLY)
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
    """The bytes of a regular file; None when there is none. Follows no link, never waits for a pipe."""
    with disk.explained("read", path):
        try:
            return paths.read(path, size_max)
        except FileNotFoundError:
            return None


def make_folder(path: Path) -> None:
    """A folder and the folders above it, durable. One that is there already will do; a link will not."""
    missing = []
    at = os.fspath(path)
    while at and not paths.is_folder(at):
        missing.append(at)
        at = os.path.dirname(at)
    for folder in reversed(missing):
        with disk.explained("make the folder", folder):
            try:
                disk.current.mkdir(folder)
            except FileExistsError:
                if not paths.is_folder(folder):
                    is_link = stat.S_ISLNK(paths.look(folder).st_mode)
                    number = errno.ELOOP if is_link else errno.ENOTDIR
                    raise OSError(number, "something else is in the way", folder) from None
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
            with whole_or_gone(folder):
                disk.current.sync_folder(os.fspath(parent))
        return folder
    raise RondelError(
        f"no free name in {os.fspath(parent)!r}; taken: {', '.join(tried[:5]) or 'no name given'}"
    )


@contextmanager
def whole_or_gone(folder: Path) -> Iterator[None]:
    """Fill a folder that is new. Where that fails (a full disk) it is gone again, and its name is free."""
    try:
        yield
    except Exception:
        paths.remove_tree(folder, ignore_errors=True)
        raise


def aside(path: Path, to: Path, *, again: bool = True) -> bool:
    """Move a file or folder out of the way; False when there is nothing (any more) to move.

    What is at `to` is never replaced. It is an error, unless it is the same file, left by
    one who died half-way. With `again=False` it means that this was done before, and a file
    at `path` that only repeats it goes.
    """
    old, new = os.fspath(path), os.fspath(to)
    with disk.explained("move aside", old):
        if not paths.is_there(old):
            return False
        if paths.is_there(new) and not _half_moved(old, new):
            if again:
                raise RondelError(f"cannot move {old!r} aside: {new!r} is there already; choose another name")
            if _same_bytes(old, new):
                disk.current.unlink(old)
                disk.current.sync_folder(os.path.dirname(old) or ".")
            return False
        if paths.is_folder(old):
            disk.current.rename(old, new)
        else:
            _move_file(old, new)
        for folder in {os.path.dirname(new) or ".", os.path.dirname(old) or "."}:
            disk.current.sync_folder(folder)
        return True


def keep(path: Path, to: Path) -> None:
    """Give a file a second name, durably. What is at `to` is never replaced."""
    old, new = os.fspath(path), os.fspath(to)
    with disk.explained("keep", old):
        if paths.is_there(new):
            return
        try:
            disk.current.link(old, new)
        except PermissionError:  # a disk without hard links
            write(to, paths.read(old))
        disk.current.sync_folder(os.path.dirname(new) or ".")


def _half_moved(old: str, new: str) -> bool:
    """Whether these are two names of one file."""
    here, there = paths.look(old), paths.look(new)
    return (
        os.path.samestat(here, there) and here.st_nlink > 1 and os.path.abspath(old) != os.path.abspath(new)
    )


def _same_bytes(old: str, new: str) -> bool:
    here, there = paths.look(old), paths.look(new)
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
    """The path of `relative` in `root`; UnsafePath when it leads out, or a symbolic link is on it.

    `../name` is good only for a `name` in `beside`.
    """
    base, plain = _in(root, relative, beside)
    if (link := _link_on(base, plain)) is not None:
        raise UnsafePath(f"{link!r} is a symbolic link, and links are not followed here; remove it")
    return Path(base, plain)


def real_path(root: Path, relative: str) -> Path:
    """The same for a file of the repository, with links that stay in `root` resolved: it is free of links."""
    base, plain = _in(root, relative)
    return Path(base, plain) if _link_on(base, plain) is None else _through_links(base, plain)


def _in(root: Path, relative: str, beside: frozenset[str] = frozenset()) -> tuple[str, str]:
    up = relative[3:] if relative.startswith("../") else None
    if up is not None and up in beside:
        return os.path.dirname(os.path.abspath(root)), safe_name(up, "the file beside the session")
    return os.fspath(root), inside(relative)


def _link_on(base: str, plain: str) -> str | None:
    """The first symbolic link on a path; None where there is none."""
    at = base
    for part in plain.split("/"):
        at = f"{at}/{part}"
        with disk.explained("use", at):
            try:
                if stat.S_ISLNK(paths.look(at).st_mode):
                    return at
            except FileNotFoundError:
                break
    return None


def _through_links(base: str, plain: str) -> Path:
    real_base = os.path.realpath(base)
    real = os.path.realpath(os.path.join(base, plain))
    if os.path.commonpath([real_base, real]) != real_base or real == real_base:
        raise UnsafePath(
            f"path {plain!r} leads out of {base!r} through a symbolic link, to {real!r}; remove the link"
        )
    return Path(real)
