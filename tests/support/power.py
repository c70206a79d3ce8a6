"""A disk that knows what a power loss leaves: only what was made durable.

It does everything on the real disk too, so that the program under test goes on as usual,
and keeps a model of what would be there after the power went. Bytes count after `sync`,
names after `sync_folder`. What was not made durable may still have come through, in part
or in another order: `survive` decides about each such thing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from rondel.store import disk

Name = tuple[int, str]  # (the folder's id, a name in it)


def nothing_survives(_what: str) -> bool:
    """The worst case: whatever was not made durable is gone."""
    return False


class PowerDisk(disk.Disk):
    """A disk under `root`; what is there at the start is durable."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._ids: dict[int, int] = {}  # inode -> id; an inode number may be used again, an id is not
        self._next = 0
        self._durable: dict[Name, int] = {}
        self._pending: list[dict[Name, int | None]] = []  # changes of names, each one in one step
        self._synced: dict[int, bytes] = {}
        self._written: dict[int, bytes] = {}
        self._folders: set[int] = set()
        self._learn(self._root)

    def crash(self, into: Path, survive: Callable[[str], bool] = nothing_survives) -> None:
        """Make the folder `into` what `root` would be after the power went now."""
        names = dict(self._durable)
        for step in self._pending:
            if survive(f"names {sorted(name for _, name in step)}"):
                names.update({name: id_ for name, id_ in step.items() if id_ is not None})
                for name in [name for name, id_ in step.items() if id_ is None]:
                    names.pop(name, None)
        contents = dict(self._synced)
        for id_, data in self._written.items():
            if survive(f"bytes {data[:20]!r}"):
                contents[id_] = data if survive("all of them") else data[: len(data) // 2]
        self._build(self._ids[os.stat(self._root).st_ino], into, names, contents)

    def _build(self, folder: int, into: Path, names: dict[Name, int], contents: dict[int, bytes]) -> None:
        into.mkdir(exist_ok=True)
        for (parent, name), id_ in names.items():
            if parent == folder and id_ in self._folders:
                self._build(id_, into / name, names, contents)
            elif parent == folder:
                (into / name).write_bytes(contents.get(id_, b""))

    def _learn(self, path: str) -> int:
        """Something that is durable from the start."""
        here = self._new(path)
        if os.path.isdir(path):
            self._folders.add(here)
            for name in os.listdir(path):
                self._durable[here, name] = self._learn(f"{path}/{name}")
        else:
            self._synced[here] = Path(path).read_bytes()
        return here

    def _new(self, path: str) -> int:
        self._next += 1
        self._ids[os.lstat(path).st_ino] = self._next
        return self._next

    def _name(self, path: str) -> Name:
        head, _, name = path.rpartition("/")
        return self._id(head), name

    def _id(self, path: str) -> int:
        """The id of a file or folder; one that was made behind our back is there, and not durable."""
        inode = os.lstat(path).st_ino
        if inode not in self._ids:
            name = self._name(path) if path.startswith(f"{self._root}/") else None
            id_ = self._new(path)
            if os.path.isdir(path):
                self._folders.add(id_)
            if name is not None:
                self._pending.append({name: id_})
        return self._ids[inode]

    def create(self, path: str) -> int:
        fd = super().create(path)
        self._pending.append({self._name(path): self._new(path)})
        return fd

    def open_log(self, path: str) -> int:
        known = os.path.exists(path)
        fd = super().open_log(path)
        if not known:
            self._pending.append({self._name(path): self._new(path)})
        return fd

    def write(self, fd: int, path: str, data: bytes) -> None:
        super().write(fd, path, data)
        self._written[self._ids[os.fstat(fd).st_ino]] = os.pread(fd, os.fstat(fd).st_size, 0)

    def truncate(self, fd: int, path: str, size: int) -> None:
        super().truncate(fd, path, size)
        self._written[self._ids[os.fstat(fd).st_ino]] = os.pread(fd, size, 0)

    def sync(self, fd: int, path: str) -> None:
        disk.point("sync", path)  # the model counts here: no need to wait for the real disk
        id_ = self._ids[os.fstat(fd).st_ino]
        self._synced[id_] = os.pread(fd, os.fstat(fd).st_size, 0)
        self._written.pop(id_, None)

    def sync_folder(self, path: str) -> None:
        disk.point("sync-folder", path)
        self._settle(self._id(path))

    def _settle(self, folder: int) -> None:
        kept = []
        for step in self._pending:
            if any(parent == folder for parent, _ in step):
                for name, id_ in step.items():
                    if id_ is None:
                        self._durable.pop(name, None)
                    else:
                        self._durable[name] = id_
            else:
                kept.append(step)
        self._pending = kept

    def sync_all(self) -> None:
        disk.point("sync-all", "")
        for folder in [path for path, _, _ in os.walk(self._root)]:
            self._settle(self._id(folder))
        self._synced |= self._written
        self._written = {}

    def rename(self, old: str, new: str) -> None:
        id_ = self._id(old)
        gone, come = self._name(old), self._name(new)
        super().rename(old, new)
        self._pending.append({gone: None, come: id_})

    def link(self, old: str, new: str) -> None:
        super().link(old, new)
        self._pending.append({self._name(new): self._id(old)})

    def unlink(self, path: str) -> None:
        super().unlink(path)
        self._pending.append({self._name(path): None})

    def mkdir(self, path: str) -> None:
        super().mkdir(path)
        id_ = self._new(path)
        self._folders.add(id_)
        self._pending.append({self._name(path): id_})
