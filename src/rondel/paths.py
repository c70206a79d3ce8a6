"""Paths: opened, looked at and changed without following a symbolic link anywhere on them.

A repository's root and the person's state folder are resolved once, when they are opened; the
paths made from them hold no link. Whoever puts a link on such a path, at whatever moment, gets
an error (ELOOP) instead of a read or a write elsewhere: the kernel refuses while it opens the
file, so there is no moment between a look and a use.

Linux does that in one call (`openat2`), macOS with a flag; elsewhere, and where a container
forbids that call, each folder of the path is opened from the one above it. Imports little: a
hook that runs at each start of a coding agent reads with it.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import FileIO

from rondel.errors import MachineTrouble

SIZE_MAX = 64 * 1024 * 1024  # of a file that is read, where its reader names no other bound

_FOLDER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_DEPTH_MAX = 32  # as many folders are open while a tree is removed; what is deeper is moved up first
_ROUNDS_MAX = 10_000  # and so often at most: whoever makes folders meanwhile does not keep us
_NOT_NOW = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_ADVICE = "raise the limit (ulimit -n) or close some programs, and run it again"
_ITSELF = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC if hasattr(os, "O_PATH") else None  # be it a link
_OPENAT2 = 437  # the same number on every architecture
_NO_SYMLINKS = 0x04
_AT_FDCWD = -100

_Open = Callable[[str, int, int], int]


def open_path(path: str | os.PathLike[str], flags: int, mode: int = 0o666) -> int:
    """Open what is at a path; OSError (ELOOP) where a link is on it. Never waits for a pipe."""
    return _open(os.fspath(path), flags | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW, mode)


@contextmanager
def folder(path: str | os.PathLike[str]) -> Iterator[int]:
    """A folder, open: for what takes a `dir_fd`."""
    fd = _open(os.fspath(path), _FOLDER, 0)
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def folder_of(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """The folder that a path is in, open, and its name there: for what takes a `dir_fd`."""
    above, name = os.path.split(os.fspath(path))
    fd = _open(above or ".", _FOLDER, 0)
    try:
        yield fd, name
    finally:
        os.close(fd)


def look(path: str | os.PathLike[str]) -> os.stat_result:
    """What is at a path itself; OSError where it is nothing, or is reached through a link."""
    if _ITSELF is None:
        with folder_of(path) as (fd, name):
            return os.stat(name or ".", dir_fd=fd, follow_symlinks=False)
    try:
        fd = _open(os.fspath(path), _ITSELF, 0)
    except OSError as e:
        if e.errno in _NOT_NOW:  # what cannot be looked at now is not missing
            raise MachineTrouble(f"cannot look at {os.fspath(path)!r}: {e.strerror}; {_ADVICE}") from e
        raise
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


def is_there(path: str | os.PathLike[str]) -> bool:
    """Whether anything is at a path, be it a link; what is reached through one is not there."""
    try:
        look(path)
    except (OSError, ValueError):
        return False
    return True


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is at a path."""
    return _is(path, stat.S_ISDIR)


def is_file(path: str | os.PathLike[str]) -> bool:
    """Whether a regular file is at a path."""
    return _is(path, stat.S_ISREG)


def _is(path: str | os.PathLike[str], kind: Callable[[int], bool]) -> bool:
    try:
        return kind(look(path).st_mode)
    except (OSError, ValueError):
        return False


def names(path: str | os.PathLike[str]) -> list[str]:
    """The names in a folder, sorted; none where there is no folder."""
    try:
        fd = open_path(path, os.O_RDONLY | os.O_DIRECTORY)
    except (FileNotFoundError, NotADirectoryError):
        return []
    try:
        return sorted(os.listdir(fd))
    finally:
        os.close(fd)


@contextmanager
def listing(path: str | os.PathLike[str]) -> Iterator[Iterator[os.DirEntry[str]]]:
    """What is in a folder; each entry knows its name, and no path."""
    fd = open_path(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with os.scandir(fd) as entries:
            yield entries
    finally:
        os.close(fd)


def walk(path: str | os.PathLike[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Like `os.walk` from the top, for trees of any depth: a folder, the folders in it, everything else."""
    queue = [os.fspath(path)]
    while queue:
        here = queue.pop()
        folders: list[str] = []
        others: list[str] = []
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    (folders if entry.is_dir(follow_symlinks=False) else others).append(entry.name)
        except OSError:
            continue
        yield here, folders, others
        queue += [f"{here}/{name}" for name in reversed(folders)]


def settled(path: str | os.PathLike[str]) -> str:
    """A path without a link above its last name: for a folder of ours that others write in."""
    above, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(above), name)


def walk_open(path: str | os.PathLike[str]) -> Iterator[tuple[int, str, list[str], list[str]]]:
    """Like `walk`, for a folder that others write in: no link is followed, whenever it is put there.

    Each folder comes open, and with its path below the first one, which is empty for itself.
    """
    top = settled(path)
    queue = [""]
    while queue:
        here = queue.pop()
        try:
            fd = open_path(f"{top}/{here}", os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            continue
        try:
            entries = _entries(fd)
            folders = [name for name, is_dir in entries if is_dir]
            yield fd, here, folders, [name for name, is_dir in entries if not is_dir]
        finally:
            os.close(fd)
        queue += [f"{here}/{name}" if here else name for name in reversed(folders)]


def _entries(fd: int) -> list[tuple[str, bool]]:
    """The names in an open folder, and which of them are folders."""
    try:
        with os.scandir(fd) as entries:
            return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    except OSError:
        return []


def change_mode(name: str, folder: int, change: Callable[[int], int]) -> None:
    """The mode of a file or folder in an open folder is another one; nothing else has its mode changed."""
    info = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not (stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode)):
        return
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except PermissionError:
        _chmod_itself(name, folder, change(stat.S_IMODE(info.st_mode)))
        return
    try:
        info = os.fstat(fd)
        if stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode):
            os.fchmod(fd, change(stat.S_IMODE(info.st_mode)))
    finally:
        os.close(fd)


def _chmod_itself(name: str, folder: int, mode: int) -> None:
    """The mode of what may not be opened; OSError for a link."""
    if _ITSELF is None:
        os.chmod(name, mode, dir_fd=folder, follow_symlinks=False)
        return
    fd = os.open(name, _ITSELF, dir_fd=folder)
    try:
        os.chmod(f"/proc/self/fd/{fd}", mode)
    finally:
        os.close(fd)


def remove_tree(path: str | os.PathLike[str], *, ignore_errors: bool = False) -> None:
    """Remove a folder and all that is in it, whatever its modes and however deep it is.

    Each folder is opened from the one above it: what is put in its place meanwhile, a link say, goes
    itself, or stays, and nothing that it leads to is touched.
    """
    above, name = os.path.split(os.path.abspath(path))
    try:
        fd = os.open(above, _FOLDER & ~os.O_NOFOLLOW)
        try:
            _remove_at(name, fd)
        finally:
            os.close(fd)
    except OSError:
        if not ignore_errors:
            raise


def _remove_at(name: str, folder: int) -> None:
    """The same for a folder in an open one."""
    errors: list[OSError] = []
    top = _for_removal(name, folder)
    try:
        for _ in range(_ROUNDS_MAX):
            if not _empty(top, top, 0, errors):
                break
    finally:
        os.close(top)
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError as e:
        raise (errors or [e])[0] from None


def _for_removal(name: str, folder: int) -> int:
    """A folder in an open one, open, with a mode that lets us remove what is in it."""
    try:
        fd = os.open(name, _LISTED, dir_fd=folder)
    except PermissionError:
        _chmod_itself(name, folder, stat.S_IRWXU)
        fd = os.open(name, _LISTED, dir_fd=folder)
    if ~os.fstat(fd).st_mode & stat.S_IRWXU:
        try:
            os.fchmod(fd, stat.S_IRWXU)
        except OSError:  # somebody else's: what cannot be removed says so
            return fd
    return fd


def _empty(top: int, fd: int, depth: int, errors: list[OSError]) -> int:
    """Remove what is in an open folder; how many folders in it were too deep, and are now in `top`."""
    moved = 0
    for name, is_dir in _entries(fd):
        try:
            if not is_dir:
                os.unlink(name, dir_fd=fd)
                continue
            below = _for_removal(name, fd)
            try:
                if depth < _DEPTH_MAX:
                    moved += _empty(top, below, depth + 1, errors)
            finally:
                os.close(below)
            if depth < _DEPTH_MAX:
                os.rmdir(name, dir_fd=fd)
            else:
                os.rename(name, f".moved-{os.urandom(8).hex()}", src_dir_fd=fd, dst_dir_fd=top)
                moved += 1
        except FileNotFoundError:
            continue
        except OSError as e:
            errors[:] = errors or [e]
    return moved


def is_bytecode(path: str | os.PathLike[str]) -> bool:
    """Whether this is what Python writes beside its sources, by place and name: Rondel runs none of it."""
    folder, name = os.path.split(path)
    return name.endswith(".pyc") and os.path.basename(folder) == "__pycache__"


def files_below(path: str | os.PathLike[str], without: str = "") -> list[str]:
    """The paths of everything below a folder that is no folder; none where there is no folder.

    The folder in it that is called `without` is not looked into.
    """
    found: list[str] = []
    try:
        with folder(path) as top:
            for here, folders, names, _ in os.fwalk(".", dir_fd=top):
                if here == "." and without in folders:
                    folders.remove(without)
                found += [f"{here}/{name}" for name in names]
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [one.removeprefix("./") for one in found]


def read(path: str | os.PathLike[str], size_max: int = SIZE_MAX) -> bytes:
    """The bytes of a regular file; OSError for anything else, and for one of more than `size_max` bytes."""
    fd = open_path(path, os.O_RDONLY)
    try:
        return read_open(fd, bounded(fd, path, size_max))
    finally:
        os.close(fd)


def bounded(fd: int, path: str | os.PathLike[str], size_max: int) -> int:
    """The size of an open file; OSError when it is no regular file, or has more bytes than that."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.ENXIO, "it is not a regular file; move it away", os.fspath(path))
    if found.st_size > size_max:
        why = f"it has {found.st_size} bytes, and at most {size_max} are read; move it away"
        raise OSError(errno.EOVERFLOW, why, os.fspath(path))
    return found.st_size


def read_elsewhere(path: str | os.PathLike[str], size_max: int = SIZE_MAX) -> bytes:
    """The same for a file of the person's, or of the repository's own: it may be a link."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return read_open(fd, bounded(fd, path, size_max))
    finally:
        os.close(fd)


def beginning(path: str | os.PathLike[str], size_max: int) -> bytes:
    """At most `size_max` bytes of a regular file, from its first one on."""
    fd = open_path(path, os.O_RDONLY)
    try:
        return read_open(fd, min(size_max, bounded(fd, path, sys.maxsize)))
    finally:
        os.close(fd)


def opened(path: str | os.PathLike[str]) -> FileIO:
    """A regular file, open for reading, without a buffer."""
    fd = open_path(path, os.O_RDONLY)
    try:
        bounded(fd, path, sys.maxsize)
        return FileIO(fd)
    except BaseException:
        os.close(fd)
        raise


def read_open(fd: int, size: int) -> bytes:
    """The first `size` bytes of an open file, or as many as there are: in as much memory as they take."""
    data = os.read(fd, size)
    while len(data) < size and (more := os.read(fd, size - len(data))):
        data += more
    return data


# -- changes that nobody builds on: a power loss may take them -------------------------------


def write(path: str | os.PathLike[str], data: bytes, mode: int = 0o666) -> None:
    """A new file with these bytes, instead of the file, link or pipe of that name."""
    remove(path)
    create(path, data, mode)


def create(path: str | os.PathLike[str], data: bytes, mode: int = 0o666) -> None:
    """A new file with these bytes; OSError where anything is at the path."""
    fd = open_path(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)


def append(path: str | os.PathLike[str], data: bytes) -> None:
    """Add bytes at the end of a file that is there."""
    fd = open_path(path, os.O_WRONLY | os.O_APPEND)
    with os.fdopen(fd, "ab") as file:
        file.write(data)


def replace(path: str | os.PathLike[str], data: bytes) -> None:
    """The same in one step: whoever looks sees the old file or the new one."""
    name = os.fspath(path)
    temporary = f"{os.path.dirname(name) or '.'}/.{os.path.basename(name)}.tmp"
    write(temporary, data)
    move(temporary, name)


def remove(path: str | os.PathLike[str]) -> None:
    """No file of that name is there any more; a link goes, not what it leads to."""
    try:
        with folder_of(path) as (fd, name):
            os.unlink(name, dir_fd=fd)
    except FileNotFoundError:
        return


def remove_folder(path: str | os.PathLike[str]) -> None:
    """Remove a folder and all that is in it, as far as that goes; links in it go, not what they lead to."""
    try:
        with folder_of(path) as (fd, name):
            _remove_at(name, fd)
    except OSError:
        return


def move(old: str | os.PathLike[str], new: str | os.PathLike[str]) -> None:
    """`old` becomes `new` in one step, replacing a file that is there."""
    with folder_of(old) as (fd, name):
        above, new_name = os.path.split(os.fspath(new))
        if above == os.path.dirname(os.fspath(old)):
            os.rename(name, new_name, src_dir_fd=fd, dst_dir_fd=fd)
            return
        with folder(above or ".") as to_fd:
            os.rename(name, new_name, src_dir_fd=fd, dst_dir_fd=to_fd)


def chmod(path: str | os.PathLike[str], mode: int) -> None:
    """The mode of a file or folder of ours."""
    fd = open_path(path, os.O_RDONLY)
    try:
        os.fchmod(fd, mode)
    finally:
        os.close(fd)


def touch(path: str | os.PathLike[str], at_s: float | None = None) -> None:
    """A file changed now, or at a time."""
    with folder_of(path) as (fd, name):
        os.utime(name, None if at_s is None else (at_s, at_s), dir_fd=fd, follow_symlinks=False)


def make_folders(path: str | os.PathLike[str], mode: int = 0o777) -> None:
    """A folder and the folders above it; what is there and is no folder is an error."""
    name = os.fspath(path)
    if is_folder(name):
        return
    above = os.path.dirname(name)
    if above and above != name:
        make_folders(above, mode)
    with folder_of(name) as (fd, last):
        try:
            os.mkdir(last, mode, dir_fd=fd)
        except FileExistsError:
            if not is_folder(name):
                raise


# -- how a path is opened -------------------------------------------------------------------


def _walk(path: str, flags: int, mode: int) -> int:
    """Each folder from the one above it: portable, and slower with each level."""
    *above, name = [part for part in path.split("/") if part not in ("", ".")] or ["."]
    at = os.open("/" if path.startswith("/") else ".", _FOLDER)
    try:
        for part in above:
            below = _below(part, _FOLDER, at)
            os.close(at)
            at = below
        return _below(name, flags, at, mode)
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(at)


def _below(name: str, flags: int, folder: int, mode: int = 0) -> int:
    try:
        return os.open(name, flags, mode, dir_fd=folder)
    except NotADirectoryError:  # what Linux says of a link where a folder is asked for
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


def _flagged(path: str, flags: int, mode: int) -> int:
    """One call, where the system has a flag that refuses links on the whole path."""
    return os.open(path, flags & ~os.O_NOFOLLOW | getattr(os, "O_NOFOLLOW_ANY", 0), mode)


def _with_openat2() -> _Open:
    """One call: `openat2` with RESOLVE_NO_SYMLINKS."""
    import ctypes

    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t]
    call.restype = ctypes.c_long
    hows: dict[tuple[int, int], ctypes.Array[ctypes.c_uint64]] = {}

    def opened(path: str, flags: int, mode: int) -> int:
        how = hows.get((flags, mode))
        if how is None:
            made = mode if flags & os.O_CREAT else 0
            how = hows[flags, mode] = (ctypes.c_uint64 * 3)(flags, made, _NO_SYMLINKS)
        name = os.fsencode(path)
        if b"\0" in name:
            raise ValueError("embedded null byte")
        sys.audit("open", path, None, flags)  # as `os.open` does: whoever listens hears of these, too
        while True:
            fd: int = call(_OPENAT2, _AT_FDCWD, name, how, 24)
            if fd >= 0:
                return fd
            number = ctypes.get_errno()
            if number not in (errno.EINTR, errno.EAGAIN):
                raise OSError(number, os.strerror(number), path)

    return opened


def _first(path: str, flags: int, mode: int) -> int:
    """Find out how this system does it, and do it so from now on."""
    global _open
    _open = _best()
    return _open(path, flags, mode)


def _best() -> _Open:
    if hasattr(os, "O_NOFOLLOW_ANY"):
        return _flagged
    if sys.platform == "linux":
        try:
            opened = _with_openat2()
            os.close(opened("/", _FOLDER, 0))
        except (OSError, ImportError, AttributeError):
            return _walk
        return opened
    return _walk


_open: _Open = _first
