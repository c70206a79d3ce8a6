"""Ours: every file of a session has its place, and what somebody put there instead is moved out of the way.

An agent or a person may put a folder, a link or a pipe where a file of ours belongs, or a file
where a folder belongs. It goes to `.rondel/aside/`, whatever it is: it is not deleted, not
replaced and not followed. The record of the run says so. Whoever writes a file of a session asks here where.
"""

from __future__ import annotations

import itertools
import json
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from rondel.model.digests import digest
from rondel.model.names import inside, safe_name
from rondel.store import disk, files, logs

HOME = ".rondel"  # below it everything is ours, and no link is followed
ASIDE = f"{HOME}/aside"
RUN = f"{HOME}/run"
RECORD = f"{RUN}/restored.jsonl"  # what was put aside or put back since a driver last took the session
RUNTIME = b"run/\ncontrol\n"  # of what is below HOME: free to delete
NAME_MAX = 200  # bytes of a name under `aside/`, before its ending


class Restored(NamedTuple):
    """A place of ours that is as it should be again."""

    path: str
    why: str
    aside: str  # where what was there is now; empty where nothing was


# -- places ---------------------------------------------------------------------------------


def document(
    folder: Path, relative: str, beside: frozenset[str] = frozenset(), *, as_it_is: bool = False
) -> Path:
    """Where a file of a session belongs, its folder made: at it is a file or nothing. See `place_of`."""
    place = place_of(folder, relative, beside, as_it_is=as_it_is)
    files.make_folder(place.parent)
    if relative.startswith(f"{HOME}/") and relative != f"{HOME}/.gitignore":
        ignore_runtime(folder / HOME)
    return place


def place_of(
    folder: Path, relative: str, beside: frozenset[str] = frozenset(), *, as_it_is: bool = False
) -> Path:
    """Where a file of a session belongs: what stands in the way to it, or at its place, was moved.

    UnsafePath for a name that leads out; `../name` is good only for a `name` in `beside`. With
    `as_it_is` what is at the place itself stays, whatever it is.
    """
    up = relative.removeprefix("../")
    if up != relative and up in beside:
        place = Path(os.path.abspath(folder)).parent / safe_name(up, "the file beside the session")
        found = [] if as_it_is or _is_file(place) else [_moved(folder, place, relative)]
    else:
        place, found = _walk(folder, inside(relative), as_it_is=as_it_is)
    if found:
        note(folder, found)
    return place


def write(folder: Path, relative: str, data: bytes) -> None:
    """Write a file of a session at its place, durably."""
    files.write(document(folder, relative), data)


def own(path: Path, *, is_folder: bool = False) -> Path:
    """The same for a path below a session's `.rondel`; a folder is made where there is none."""
    found = clear(path, is_folder=is_folder)
    if found:
        note(session_of(path)[0], found)
    return path


def clear(path: Path, *, is_folder: bool = False) -> list[Restored]:
    """The same, for who says later what was moved."""
    found = _walk(*session_of(path), is_folder=is_folder)[1]
    files.make_folder(path if is_folder else path.parent)
    return found


def ignore_runtime(home: Path) -> None:
    """Keep what is no state in a session's `.rondel` out of git. A person's own file there stays as it is."""
    rules = own(home / ".gitignore")
    if not os.path.lexists(rules):
        files.write(rules, RUNTIME)


def write_view(path: Path, data: bytes) -> None:
    """Replace a file of ours that may be lost at any time: it is for others to look at."""
    temporary = own(path.with_name(f"{path.name}.tmp"))
    with disk.explained("write", path):
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        temporary.replace(own(path))


def clear_folder(path: Path) -> None:
    """In this folder of ours, where there is one, are files and folders only; links and pipes are aside."""
    found = look(path)
    if found is None or not stat.S_ISDIR(found.st_mode):
        return
    with disk.explained("look into", path), os.scandir(path) as entries:
        strange = [
            e.path
            for e in entries
            if not (e.is_file(follow_symlinks=False) or e.is_dir(follow_symlinks=False))
        ]
    for one in strange:
        own(Path(one))


def remove(path: Path) -> None:
    """No file of ours is at this path any more; what somebody else put there is aside."""
    if os.path.lexists(path):
        own(path).unlink(missing_ok=True)


def read(path: Path) -> bytes | None:
    """The bytes of a file of ours; None when there is none. Nothing is moved, and no link followed."""
    fd = open_own(path)
    if fd is None:
        return None
    try:
        return files.read_open(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)


def open_own(path: Path) -> int | None:
    """A file of ours, open for reading; None when there is none."""
    found = look(path)
    if found is None or not stat.S_ISREG(found.st_mode):
        return None
    with disk.explained("read", path):
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return None


def look(path: Path) -> os.stat_result | None:
    """What is at a path of ours; None for nothing, and for what is reached through a link only."""
    folder, relative = session_of(path)
    at, found = os.fspath(folder), None
    for part in relative.split("/"):
        at = f"{at}/{part}"
        try:
            found = os.lstat(at)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if stat.S_ISLNK(found.st_mode):
            return None
    return found


def is_locked_out(path: Path) -> bool:
    """Whether a file of ours is at this path whose mode or owner does not let us use it."""
    found = look(path)
    if found is None or not stat.S_ISREG(found.st_mode):
        return False
    with disk.explained("read", path):
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK))
        except PermissionError:
            return True
        except FileNotFoundError:
            return False
    return False


def session_of(path: Path) -> tuple[Path, str]:
    """The session's folder, and the path from there, of a path below a `.rondel`."""
    parts = path.parts
    if HOME not in parts:
        return path.parent, path.name
    at = len(parts) - 1 - parts[::-1].index(HOME)
    return Path(*parts[:at]), "/".join(parts[at:])


# -- putting aside --------------------------------------------------------------------------


def _walk(
    folder: Path, relative: str, *, as_it_is: bool = False, is_folder: bool = False
) -> tuple[Path, list[Restored]]:
    """The place of a path, and what had to be moved on the way to it."""
    found: list[Restored] = []
    place, at = folder, ""
    *above, name = relative.split("/")
    for part in above:
        at = f"{at}{part}"
        place = place / part
        if not _is_folder(place):
            inner = _followed(folder, place, at) if os.path.islink(place) else None
            if inner is not None and inner.is_dir():
                place = inner
            else:
                found.append(_moved(folder, place, at))
        at += "/"
    place = place / name
    good = _is_folder if is_folder else _is_file
    if not as_it_is and not good(place):
        inner = _followed(folder, place, relative) if os.path.islink(place) else None
        if inner is not None and inner.is_file():
            return inner, found
        found.append(_moved(folder, place, relative))
    return place, found


def _followed(folder: Path, place: Path, relative: str) -> Path | None:
    """Where a link between documents leads, if that is in the session; below `.rondel` none is followed."""
    root, real = os.path.realpath(folder), os.path.realpath(place)
    ours = relative == HOME or relative.startswith(f"{HOME}/") or real == f"{root}/{HOME}"
    return Path(real) if not ours and real.startswith(f"{root}/") else None


def _is_file(place: Path) -> bool:
    return _is(place, stat.S_ISREG)


def _is_folder(place: Path) -> bool:
    return _is(place, stat.S_ISDIR)


def _is(place: Path, kind: Callable[[int], bool]) -> bool:
    """Whether there is nothing, or something of this kind."""
    with disk.explained("use", place):
        try:
            return kind(os.lstat(place).st_mode)
        except FileNotFoundError:
            return True


def moved(path: Path) -> Restored:
    """Put aside what is at a path of ours, whatever it is."""
    folder, relative = session_of(path)
    return _moved(folder, path, relative)


def _moved(folder: Path, place: Path, relative: str) -> Restored:
    spot = put_aside(folder, place, relative)
    return Restored(relative, _why(folder / spot), spot)


def _why(place: Path) -> str:
    mode = os.lstat(place).st_mode
    kinds = ((stat.S_ISLNK, "symbolic link"), (stat.S_ISDIR, "folder"), (stat.S_ISREG, "file"))
    what = next((word for is_it, word in kinds if is_it(mode)), "pipe or device")
    return f"a {what} was there, which does not belong there"


def put_aside(folder: Path, place: Path, relative: str, word: str = "damaged") -> str:
    """Move what is at a place to a free name under `aside/`; gives that name. It is never followed."""
    way = next((at for at in (folder / HOME, folder / ASIDE) if not _is_folder(at)), None)
    if way is None:
        files.make_folder(folder / ASIDE)
        spot = free_spot(folder, relative, word)
        files.aside(place, folder / spot)
        return spot
    # What stands where `aside/` belongs waits beside it until there is one.
    names = (Path(f"{way}.{word}-{number}") for number in itertools.count(1))
    files.aside(way, waits := next(name for name in names if not os.path.lexists(name)))
    spot = put_aside(folder, waits, way.relative_to(folder).as_posix(), word)
    if way == place:
        return spot
    note(folder, [Restored(way.relative_to(folder).as_posix(), _why(folder / spot), spot)])
    return put_aside(folder, place, relative, word)


def keep_aside(folder: Path, relative: str, word: str) -> None:
    """Give a file that is about to be replaced a second name under `aside/`, durably."""
    files.keep(folder / relative, document(folder, free_spot(folder, relative, word)))


def free_spot(folder: Path, path: str, word: str, content: str | None = None) -> str:
    """A free name under `aside/`, or the one where a death half-way has left this content."""
    flat = path.replace("../", "").replace("/", "__")
    if len(flat.encode()) > NAME_MAX:
        flat = f"{flat[-NAME_MAX // 5 :]}-{digest(path)[:8]}"
    spots = (f"{ASIDE}/{flat}.{word}-{number}" for number in itertools.count(1))
    return next(
        s
        for s in spots
        if not os.path.lexists(folder / s) or (content is not None and digest_of(folder / s) == content)
    )


def digest_of(place: Path) -> str | None:
    """The digest of a file; None for what is not there, and for what is too large to be ours."""
    if not place.is_file() or place.stat().st_size > files.SIZE_MAX:
        return None
    data = files.read(place)
    return None if data is None else digest(data)


# -- the record -----------------------------------------------------------------------------


def note(folder: Path, restored: Iterable[Restored]) -> None:
    """Say what was put aside or put back: whoever looks at the session is told, and its driver, too."""
    record, found = _walk(folder, RECORD)
    files.make_folder(record.parent)
    for one in (*found, *restored):
        logs.append_line(record, json.dumps({"file": one.path, "why": one.why, "aside": one.aside}))


def begin_record(folder: Path, restored: Iterable[Restored] = ()) -> None:
    """A driver took the session: what was put back before is no news."""
    _walk(folder, RECORD)[0].unlink(missing_ok=True)
    if restored := list(restored):
        note(folder, restored)


def restored_in(data: bytes | None) -> list[Restored]:
    """What a record says. A line that says nothing is skipped."""
    found = []
    for line in (data or b"").splitlines():
        try:
            one = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(one, dict):
            found.append(Restored(*(str(one.get(key) or "") for key in ("file", "why", "aside"))))
    return found
