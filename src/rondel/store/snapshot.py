"""The files of a folder, read when asked for and kept until they are forgotten.

What was read once is given again without looking at the disk, so that a workflow that reads
its session after every action pays only for what changed. `forget` says that one file was
written here; `refresh` looks for what others changed.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from pathlib import Path

from typing_extensions import override

from rondel import paths
from rondel.errors import MachineTrouble
from rondel.model.jsons import parse_json
from rondel.model.snapshot import Snapshot
from rondel.model.trouble import machine
from rondel.store.files import SIZE_MAX, TEMP

KEEP_MAX = 4 * 1024 * 1024  # larger files are read again each time
RACY_NS = 100_000_000  # what changed this shortly before it was read may have changed again unseen

_UNREAD = object()

_Key = tuple[int, int, int, int]


class _File:
    """What is known of one path that was asked for; `mtime` is None where there is no regular file."""

    __slots__ = ("data", "digest", "json", "key", "mtime", "path")

    def __init__(self, path: str | None) -> None:
        self.path = path
        self.key: _Key | None = None
        self.mtime: float | None = None
        self.data: bytes | None = None  # None: not read yet, or not kept
        self.json: object = _UNREAD
        self.digest: str | None = None


class _Folder:
    """What is known of one folder. `path` is None where there is none that may be looked into."""

    __slots__ = ("files", "folders", "key", "listing", "names", "only", "path", "unsure")

    def __init__(self, path: str | None, only: frozenset[str] | None = None) -> None:
        self.path = path
        self.only = only  # the only names that may be seen
        self.files: dict[str, _File] = {}
        self.folders: dict[str, _Folder] = {}
        self.key: _Key | None = None
        self.listing: set[str] | None = None  # None: not listed yet
        self.names: frozenset[str] | None = None  # `listing` as it was given away
        self.unsure: set[str] = set()  # names that changed or are odd: looked at before they are entered


class DiskSnapshot(Snapshot):
    """The files of a folder on disk.

    It never leaves the folder, except to `../name` for a name in `beside`, and follows no
    symbolic link: to a workflow links are not there. With `once` nothing is noted by which a
    change could be told: it is read and thrown away.
    """

    def __init__(
        self, folder: Path | str, beside: frozenset[str] = frozenset(), *, once: bool = False
    ) -> None:
        self._root = os.fspath(folder)
        self._once = once
        self._top = _Folder(self._root)
        if beside:
            self._top.folders[".."] = _Folder(os.path.dirname(os.path.abspath(folder)), beside)

    @property
    @override
    def place(self) -> str:
        return os.path.abspath(self._root)

    def below(self, folder: str, beside: frozenset[str] = frozenset()) -> DiskSnapshot:
        """The files below one folder, sharing what is known of them already."""
        here = self._folder(folder)
        found = DiskSnapshot(here.path or f"{self._root}/{folder}", beside, once=self._once)
        for name, parent in found._top.folders.items():
            here.folders.setdefault(name, parent)
        found._top = here
        return found

    def let_go(self, folder: str) -> None:
        """Keep nothing of what is below a folder: it has been seen, and there may be many."""
        above, _, name = folder.rpartition("/")
        self._folder(above).folders.pop(name, None)

    def names(self, folder: str = "") -> frozenset[str]:
        """See `Snapshot`."""
        here = self._folder(folder.rstrip("/"))
        if here.names is None:
            if here.listing is None:
                self._list(here)
            here.names = frozenset(here.listing or ())
        return here.names

    @override
    def data(self, path: str) -> bytes | None:
        """A file of more than 64 MB counts as unreadable."""
        return self._data(self._file(path))

    @override
    def json(self, path: str) -> object:
        file = self._file(path)
        if file.json is _UNREAD:
            file.json = parse_json(self._data(file))
        return file.json

    @override
    def digest(self, path: str) -> str | None:
        file = self._file(path)
        if file.digest is None:
            data = self._data(file)
            file.digest = None if data is None else hashlib.sha256(data).hexdigest()
        return file.digest

    @override
    def mtime(self, path: str) -> float | None:
        file = self._file(path)
        if file.mtime is None and file.path is not None:
            self._look(file)
        if file.mtime is not None:
            return file.mtime
        folder = self._folder(path.rstrip("/")).path
        return _mtime(folder) if folder is not None else None

    @override
    def exists(self, path: str) -> bool:
        head, _, name = path.rpartition("/")
        here = self._folder(head)
        if here.listing is not None:
            return name in here.listing
        file = _file_in(here, name)
        if file.mtime is None and file.path is not None:
            self._look(file)
        return file.mtime is not None

    def forget(self, path: str) -> None:
        """`path` was written, moved or removed. Costs the same however many files its folder has."""
        *above, name = path.rstrip("/").split("/")
        here = self._top
        for part in above:
            below = here.folders.get(part)
            if below is None or below.path is None:
                name = part  # nothing is known below it; it may be new itself
                break
            here = below
        if name in ("", ".", ".."):
            return
        here.files.pop(name, None)
        here.folders.pop(name, None)
        if here.listing is not None:
            self._list_again(here, name)

    def expect(self, path: str, data: bytes) -> bool:
        """Show a new file with these bytes, which are about to be written; `forget` it then.

        False where that cannot be told: something is there, or nothing is known of its folder.
        """
        head, _, name = path.rpartition("/")
        here = self._folder(head)
        if (
            here.listing is None
            or here.path is None
            or here.only is not None
            or {name, f"{name}/"} & here.listing
        ):
            return False
        file = here.files[name] = _File(f"{here.path}/{name}")
        file.data, file.mtime = data, time.time()
        here.listing.add(name)
        here.names = None
        return True

    def look_again(self, path: str) -> bool:
        """Whether a file may have changed since it was asked for; then it is read again."""
        file = self._file(path)
        if file.path is not None and not _changed(file.path, file.key):
            return False
        self.forget(path)
        return True

    def refresh(self, *folders: str) -> frozenset[str]:
        """Look for what others changed: everywhere, or below these folders. The rest stays known.

        Returns the paths that may have changed, of what was asked for before; a folder's ends in `/`.
        """
        changed: set[str] = set()
        for folder in folders or ("",):
            here, prefix = self._top, ""
            for part in folder.rstrip("/").split("/") if folder else ():
                below = here.folders.get(part)
                if below is not None and self._gone(here, part, below):
                    changed.add(f"{prefix}{part}/")
                    below = None
                if below is None:
                    break
                here, prefix = below, f"{prefix}{part}/"
            else:
                self._refresh(here, prefix, changed)
        return frozenset(changed)

    def _refresh(self, here: _Folder, prefix: str, changed: set[str]) -> None:
        before = here.listing
        if here.path is None or _changed(here.path, here.key):
            here.key = here.listing = here.names = None
            if before is not None:
                self._list(here)
                changed.update(f"{prefix}{name}" for name in before ^ (here.listing or set()))
        for name, file in tuple(here.files.items()):
            path = f"{here.path}/{name}"
            if file.mtime is None and file.data is None and not os.path.lexists(path):
                continue  # it was not there, and is not
            if file.path != path or _changed(file.path, file.key):
                del here.files[name]
                changed.add(f"{prefix}{name}")
        for name, below in tuple(here.folders.items()):
            if below.path is None and below.only is None and not os.path.lexists(f"{here.path}/{name}"):
                continue
            if self._gone(here, name, below):
                changed.add(f"{prefix}{name}/")
            else:
                self._refresh(below, f"{prefix}{name}/", changed)

    @staticmethod
    def _gone(here: _Folder, name: str, below: _Folder) -> bool:
        """Whether a folder is no longer the plain folder it was; then nothing of it is known any more."""
        path = f"{here.path}/{name}"
        if below.only is not None or (below.path == path and paths.is_folder(path)):
            return False
        del here.folders[name]
        return True

    def _folder(self, folder: str) -> _Folder:
        here = self._top
        if folder:
            for name in folder.split("/"):
                here = here.folders.get(name) or self._enter(here, name)
        return here

    def _enter(self, here: _Folder, name: str) -> _Folder:
        below = _Folder(None)
        if here.path is not None and here.only is None and name not in ("", ".", ".."):
            if here.listing is None or name in here.unsure:
                self._look_into(below, f"{here.path}/{name}")
            elif f"{name}/" in here.listing:
                below.path = f"{here.path}/{name}"
        here.folders[name] = below
        return below

    def _look_into(self, here: _Folder, path: str) -> None:
        """Whether there is a folder at `path`, without listing it."""
        seen_ns = time.time_ns()
        try:
            found = paths.look(path)
        except (OSError, ValueError):
            return
        if stat.S_ISDIR(found.st_mode):
            here.path, here.key = path, _key(found, seen_ns)

    def _file(self, path: str) -> _File:
        head, _, name = path.rpartition("/")
        return _file_in(self._folder(head), name)

    def _look(self, file: _File) -> None:
        """Whether there is a regular file, without reading it."""
        seen_ns = time.time_ns()
        try:
            found = paths.look(file.path or "")
            if stat.S_ISREG(found.st_mode):
                file.mtime, file.key = found.st_mtime, _key(found, seen_ns)
            else:
                file.path = None
        except (OSError, ValueError):
            file.path = None

    def _data(self, file: _File) -> bytes | None:
        if file.data is not None or file.path is None:
            return file.data
        try:
            with machine("read", file.path):  # a file that the machine cannot open now is not missing
                data = self._read(file)
        except (OSError, ValueError):
            return None
        if data is not None and len(data) <= KEEP_MAX:
            file.data = data
        return data

    def _read(self, file: _File) -> bytes | None:
        seen_ns = time.time_ns()
        try:
            fd = paths.open_path(file.path or "", os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            file.path = None
            raise
        try:
            found = os.fstat(fd)
            if not stat.S_ISREG(found.st_mode):
                file.path = None
                return None
            file.mtime, file.key = found.st_mtime, _key(found, seen_ns)
            return None if found.st_size > SIZE_MAX else paths.read_open(fd, found.st_size)
        finally:
            os.close(fd)

    def _list(self, here: _Folder) -> None:
        here.listing = found = set[str]()
        here.unsure.clear()
        if here.path is None:
            return
        try:
            with machine("look into", here.path):
                self._scan(here, here.path, found)
        except MachineTrouble:
            here.listing = None
            raise
        except OSError:
            pass
        found.discard("")

    def _scan(self, here: _Folder, path: str, found: set[str]) -> None:
        seen_ns = time.time_ns()
        fd = paths.open_path(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if here.key is None and not self._once:
                here.key = _key(os.fstat(fd), seen_ns)
            if here.only is not None:
                found.update(_listed(fd, name) for name in here.only)
                return
            with os.scandir(fd) as entries:
                for entry in entries:
                    name = entry.name
                    if not name.isascii() or name.startswith(TEMP):
                        here.unsure.add(name)
                        name = _listed(fd, name)
                    elif entry.is_dir(follow_symlinks=False):
                        name += "/"
                    elif not entry.is_file(follow_symlinks=False):
                        continue
                    found.add(name)
        finally:
            os.close(fd)

    def _list_again(self, here: _Folder, name: str) -> None:
        """One name of a listing as it is now."""
        listing = here.listing
        if listing is None or here.path is None or (here.only is not None and name not in here.only):
            return
        here.unsure.add(name)
        now = _listed_at(here.path, name)
        if now and now in listing:
            return
        listing -= {name, f"{name}/"}
        if now:
            listing.add(now)
        here.names = None


def _key(found: os.stat_result, seen_ns: int) -> _Key | None:
    """What tells one state of a file from the next; None when the clock is too coarse to tell."""
    if seen_ns - max(found.st_mtime_ns, found.st_ctime_ns) < RACY_NS:
        return None
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)


def _changed(path: str, key: _Key | None) -> bool:
    """Whether what was seen at `path` may no longer be what is there."""
    if key is None:
        return True
    try:
        found = os.stat(path, follow_symlinks=False)
    except OSError:
        return True
    return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino) != key


def _listed_at(folder: str, name: str) -> str:
    try:
        with paths.folder_of(f"{folder}/{name}") as (fd, _):
            return _listed(fd, name)
    except (OSError, ValueError):
        return ""


def _listed(folder: int, name: str) -> str:
    """How a name is listed now; empty for what is not there, or no business of a workflow."""
    try:
        name.encode()  # a name that is not text cannot be shown to anybody
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except (OSError, ValueError):
        return ""
    if stat.S_ISDIR(mode):
        return f"{name}/"
    return name if stat.S_ISREG(mode) and not name.startswith(TEMP) else ""


def _mtime(path: str) -> float | None:
    try:
        return paths.look(path).st_mtime
    except OSError:
        return None


def _file_in(here: _Folder, name: str) -> _File:
    file = here.files.get(name)
    if file is None:
        file = here.files[name] = _File(_file_path(here, name))
    return file


def _file_path(here: _Folder, name: str) -> str | None:
    if here.path is None or name in ("", ".", ".."):
        return None
    if here.only is not None and name not in here.only:
        return None
    if here.listing is not None and name not in here.listing:
        return None
    return f"{here.path}/{name}"
