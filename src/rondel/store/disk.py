"""The disk: the few operations that everything lasting goes through, each a named fault point.

Before an operation happens, `point` is called with its name and path. It does nothing; a
test puts a function there that ends the process at the N-th call. While one is set, bytes
are written in two halves with a point `<name>:half` between them, so that a test can die
in the middle of a write too.

`current` is the disk in use. A test may put another one there: one that notes what was made
durable and can lose the rest, as when the power goes.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType

from rondel import paths
from rondel.errors import RondelError
from rondel.model.trouble import machine


def _nothing(operation: str, path: str) -> None:
    """Outside of tests nothing happens before an operation."""


point: Callable[[str, str], None] = _nothing


class Disk:
    """The real disk. Nothing is durable before `sync`, no name before `sync_folder`. No link is followed."""

    def create(self, path: str) -> int:
        """A new empty file, open for writing; FileExistsError when there is one."""
        point("create", path)
        return paths.open_path(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)

    def open_log(self, path: str) -> int:
        """A file open for appending, made when there is none."""
        point("open", path)
        return paths.open_path(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)

    def write(self, fd: int, path: str, data: bytes) -> None:
        """All of `data` at the end of an open file."""
        point("write", path)
        if point is not _nothing:
            half = len(data) // 2
            _write_all(fd, data[:half])
            point("write:half", path)
            data = data[half:]
        _write_all(fd, data)

    def begin_sync(self, fd: int) -> None:
        """Let the disk begin with what was written, while others are written; it promises nothing."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def truncate(self, fd: int, path: str, size: int) -> None:
        """An open file cut to `size`."""
        point("truncate", path)
        os.ftruncate(fd, size)

    def sync(self, fd: int, path: str) -> None:
        """After this the bytes of an open file survive a power loss; its name may not."""
        point("sync", path)
        _sync(fd)

    def sync_folder(self, path: str) -> None:
        """After this the names in a folder survive a power loss."""
        point("sync-folder", path)
        fd = paths.open_path(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _sync(fd)
        finally:
            os.close(fd)

    def sync_all(self) -> None:
        """After this everything that anybody wrote before survives a power loss."""
        point("sync-all", "")
        os.sync()

    def rename(self, old: str, new: str) -> None:
        """`old` becomes `new` in one step, replacing a file that is there."""
        point("rename", new)
        paths.move(old, new)

    def link(self, old: str, new: str) -> None:
        """A second name for a file; FileExistsError when the name is taken."""
        point("link", new)
        with paths.folder_of(old) as (from_fd, name), paths.folder_of(new) as (to_fd, new_name):
            os.link(name, new_name, src_dir_fd=from_fd, dst_dir_fd=to_fd, follow_symlinks=False)

    def unlink(self, path: str) -> None:
        """A name removed."""
        point("unlink", path)
        with paths.folder_of(path) as (fd, name):
            os.unlink(name, dir_fd=fd)

    def mkdir(self, path: str) -> None:
        """A new folder; FileExistsError when the name is taken."""
        point("mkdir", path)
        with paths.folder_of(path) as (fd, name):
            os.mkdir(name, dir_fd=fd)


current = Disk()


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _sync(fd: int) -> None:
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # fsync alone leaves it in the drive's cache there
    else:
        os.fsync(fd)


_ADVICE = {
    errno.EACCES: "permission denied; change its owner or mode, or run as the user it belongs to",
    errno.EPERM: "not permitted; change its owner, mode or attributes",
    errno.ENOTDIR: "a part of the path is a file, not a folder; move that file away",
    errno.EISDIR: "it is a folder where a file belongs; move the folder away",
    errno.ENOTEMPTY: "a folder of that name is in the way; move it away",
    errno.ENAMETOOLONG: "the name is too long for this disk; use a shorter one",
    errno.ELOOP: "a symbolic link is on this path, and links are not followed here; put a real one there",
    errno.ENXIO: "it is not a regular file; move it away",
    errno.ENOENT: "its folder is not there; was it moved or deleted meanwhile?",
    errno.ENOLCK: "this disk has no file locks; work on one that does",
    errno.EOPNOTSUPP: "this disk cannot do that; work on a local one",
}


class explained:  # noqa: N801 - used like a function; it is everywhere, and costs next to nothing so
    """What the system refuses becomes an error that names the file and says what to do.

    Where it is the machine's own trouble, that error is a MachineTrouble.
    """

    __slots__ = ("_doing", "_path")

    def __init__(self, doing: str, path: str | os.PathLike[str]) -> None:
        self._doing, self._path = doing, path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if isinstance(error, OSError | ValueError | MemoryError | RuntimeError):
            with _explained(self._doing, self._path):
                raise error


@contextmanager
def _explained(doing: str, path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        with machine(doing, path):
            yield
    except OSError as error:
        why = _ADVICE.get(error.errno or 0) or error.strerror or str(error)
        raise RondelError(f"cannot {doing} {os.fspath(path)!r}: {why}") from error
    except ValueError as error:  # a NUL or a lone surrogate in the name
        raise RondelError(f"cannot {doing} {os.fspath(path)!r}: not a name for a file ({error})") from error
