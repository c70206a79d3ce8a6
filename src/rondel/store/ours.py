"""Ours: every file of a session has its place, and what somebody put there instead is moved out of the way.

An agent or a person may put a folder, a link or a pipe where a file of ours belongs, or a file
where a folder belongs. It goes to `.rondel/aside/`, whatever it is: it is not deleted, not
replaced and not followed. A record beside that folder says so. Whoever writes a file of a
session asks here where.

A session has two folders with the name `.rondel`: the one in its own folder, which is state, and its
runtime in the person's state folder (see `rondel.trust.sessions`). What is said here holds for both.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from rondel import paths
from rondel.errors import RondelError
from rondel.model import jsons
from rondel.model.names import digest, free_name, inside, numbered, safe_name
from rondel.store import disk, files, logs

HOME = ".rondel"  # below it everything is ours, and no link is followed
ASIDE = f"{HOME}/aside"
RESTORED = "restored.jsonl"  # what was put aside or put back since a driver last took the session
RECORD = f"{HOME}/{RESTORED}"
OLD_RUN = f"{HOME}/run"  # where version 0.1 had its runtime: nothing there is read
LOCK = f"{HOME}/lock"  # held by whoever drives the session, whichever state folder is theirs
IGNORED = f"run/\ncontrol\nlock\n{RESTORED}\n".encode()  # of what is below HOME: no state
IGNORED_BEFORE = (b"run/\ncontrol\n",)  # what earlier versions wrote
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
    if not relative.startswith(("../", f"{HOME}/")):
        place = folder / inside(relative)
        if _stands(place, stat.S_ISREG, as_it_is=as_it_is):
            return place
    place = place_of(folder, relative, beside, as_it_is=as_it_is)
    files.make_folder(place.parent)
    if relative.startswith(f"{HOME}/") and relative != f"{HOME}/.gitignore":
        keep_out_of_git(folder / HOME)
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
    if paths.is_folder(path) if is_folder else _stands(path, stat.S_ISREG):
        return path
    found = clear(path, is_folder=is_folder)
    if found:
        note(session_of(path)[0], found)
    return path


def clear(path: Path, *, is_folder: bool = False) -> list[Restored]:
    """The same, for who says later what was moved."""
    found = _walk(*session_of(path), is_folder=is_folder)[1]
    files.make_folder(path if is_folder else path.parent)
    return found


def keep_out_of_git(home: Path, *, renew: bool = False) -> None:
    """Keep what is no state in a session's `.rondel` out of git. A person's own rules there stay as they are.

    With `renew` the rules that an earlier version wrote become those of now.
    """
    rules = own(home / ".gitignore")
    if not paths.is_there(rules) or (renew and view(rules) in IGNORED_BEFORE):
        files.write(rules, IGNORED)


def write_view(path: Path, data: bytes) -> None:
    """Replace a file of ours that may be lost at any time: it is for others to look at."""
    temporary = own(path.with_name(f"{path.name}.tmp"))
    with disk.explained("write", path):
        paths.write(temporary, data)
        paths.move(temporary, own(path))


def clear_folder(path: Path) -> None:
    """In this folder of ours, where there is one, are files and folders only; links and pipes are aside."""
    found = look(path)
    if found is None or not stat.S_ISDIR(found.st_mode):
        return
    with disk.explained("look into", path), paths.listing(path) as entries:
        strange = [
            e.name
            for e in entries
            if not (e.is_file(follow_symlinks=False) or e.is_dir(follow_symlinks=False))
        ]
    for one in strange:
        own(path / one)


def remove(path: Path) -> None:
    """No file of ours is at this path any more; what somebody else put there is aside."""
    if paths.is_there(path):
        paths.remove(own(path))


def read(path: Path, size_max: int = files.SIZE_MAX) -> bytes | None:
    """The bytes of a file of ours; None when there is none. Nothing is moved, and no link followed."""
    fd = open_own(path)
    if fd is None:
        return None
    try:
        with disk.explained("read", path):
            return paths.read_open(fd, paths.bounded(fd, path, size_max))
    finally:
        os.close(fd)


def view(path: Path) -> bytes | None:
    """The bytes of a file of ours that may be lost; None, too, for one that cannot be read."""
    try:
        return read(path)
    except RondelError:
        return None


def open_own(path: Path) -> int | None:
    """A file of ours, open for reading; None when there is none."""
    found = look(path)
    if found is None or not stat.S_ISREG(found.st_mode):
        return None
    with disk.explained("read", path):
        try:
            return paths.open_path(path, os.O_RDONLY)
        except FileNotFoundError:
            return None


def look(path: Path | str) -> os.stat_result | None:
    """What is at a path of ours; None for nothing, for a link, and for what is reached through one only."""
    try:
        found = paths.look(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            return None
        raise
    return None if stat.S_ISLNK(found.st_mode) else found


def names(folder: Path) -> frozenset[str]:
    """The names in a folder of ours; none where there is no folder, or only a link to one."""
    found = look(folder)
    is_one = found is not None and stat.S_ISDIR(found.st_mode)
    return frozenset(paths.names(folder)) if is_one else frozenset()


def is_locked_out(path: Path) -> bool:
    """Whether a file of ours is at this path whose mode or owner does not let us use it."""
    found = look(path)
    if found is None or not stat.S_ISREG(found.st_mode):
        return False
    with disk.explained("read", path):
        try:
            os.close(paths.open_path(path, os.O_RDWR))
        except PermissionError:
            return True
        except FileNotFoundError:
            return False
    return False


def session_of(path: Path) -> tuple[Path, str]:
    """The folder that a `.rondel` is in, and the path from there, of a path below it."""
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
        place, at = place / part, f"{at}{part}"
        if not _is_folder(place):
            found.append(_moved(folder, place, at))
        at += "/"
    place = place / name
    good = _is_folder if is_folder else _is_file
    if not as_it_is and not good(place):
        found.append(_moved(folder, place, relative))
    return place, found


def _stands(place: Path, kind: Callable[[int], bool], *, as_it_is: bool = False) -> bool:
    """Whether nothing is in the way: the folder is there, and in it what belongs at the place, or nothing."""
    try:
        return kind(paths.look(place).st_mode) or as_it_is
    except FileNotFoundError:
        return paths.is_folder(place.parent)
    except (OSError, ValueError):  # whoever goes there step by step says what it is
        return False


def _is_file(place: Path) -> bool:
    return _is(place, stat.S_ISREG)


def _is_folder(place: Path) -> bool:
    return _is(place, stat.S_ISDIR)


def _is(place: Path, kind: Callable[[int], bool]) -> bool:
    """Whether there is nothing, or something of this kind."""
    with disk.explained("use", place):
        try:
            return kind(paths.look(place).st_mode)
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
    mode = paths.look(place).st_mode
    kinds = ((stat.S_ISLNK, "symbolic link"), (stat.S_ISDIR, "folder"), (stat.S_ISREG, "file"))
    what = next((word for is_it, word in kinds if is_it(mode)), "pipe or device")
    return f"a {what} was there, which does not belong there"


def put_aside(folder: Path, place: Path, relative: str, word: str = "damaged") -> str:
    """Move what is at a place to a free name under `aside/`; returns that name. It is never followed."""
    way = next((at for at in (folder / HOME, folder / ASIDE) if not _is_folder(at)), None)
    if way is None:
        files.make_folder(folder / ASIDE)
        spot = free_spot(folder, relative, word)
        files.aside(place, folder / spot)
        return spot
    # What stands where `aside/` belongs waits beside it until there is one.
    waits = Path(free_name(numbered(f"{way}.{word}"), paths.is_there))
    files.aside(way, waits)
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

    def is_taken(spot: str) -> bool:
        return paths.is_there(folder / spot) and (content is None or digest_of(folder / spot) != content)

    return free_name(numbered(f"{ASIDE}/{flat}.{word}"), is_taken)


def digest_of(place: Path) -> str | None:
    """The digest of a file; None for what is not there, and for what is too large to be ours."""
    found = look(place)
    if found is None or not stat.S_ISREG(found.st_mode) or found.st_size > files.SIZE_MAX:
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
    paths.remove(_walk(folder, RECORD)[0])
    if restored := list(restored):
        note(folder, restored)


def restored_in(data: bytes | None) -> list[Restored]:
    """What a record says. A line that says nothing is skipped."""
    found = []
    for line in (data or b"").splitlines():
        try:
            one = jsons.load(line)
        except ValueError:
            continue
        if isinstance(one, dict):
            found.append(Restored(*(str(one.get(key) or "") for key in ("file", "why", "aside"))))
    return found
