"""What decides how a vendor's CLI behaves: its settings, hooks, plugins and lists of servers.

The CLI's state is used in place, so whatever runs inside could change what the person's own CLI does
tomorrow. These files are noted before a run and compared after it: a change is undone, what was written is
kept aside, and the action is blocked with a word that names it. What cannot be compared or undone is said.

What runs inside can write all of that state: nothing here follows a link in it, waits for a pipe or goes
deeper than it can come back (`rondel.paths`). Where the state is was resolved before anything ran.

Several runs of one vendor may go on at once, in several drivers. The first one notes what is there; the
others go by that note until the last has ended, which the locks of the living say. A note that a dead driver
left is compared by the next, and what differs is said; it may be the person's, so it stays.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rondel import paths
from rondel.model import jsons
from rondel.model.digests import digest
from rondel.model.plain import visible
from rondel.model.trouble import machine

KEPT_MAX = 1_000_000  # bytes of a file that can be put back; of a larger one a change is only seen
ALL_MAX = 20_000_000  # of all of them
NOTE_MAX = 4 * ALL_MAX
DOCUMENT_MAX = 16_000_000
FILES_MAX = 20_000
SHOWN_MAX = 5
TOO_MANY = "more files than can be compared"

Note = dict[str, str]  # by name: what is there, as text
_KEYS = "\0keys "  # no path holds such a name


@dataclass(frozen=True)
class Watched:
    """Files and folders that are watched as they are; and JSON documents of which some keys are.

    Keys are for documents that the CLI itself writes all the time. `a.*.b` is `b` of everything in `a`.
    """

    paths: tuple[Path, ...] = ()
    keys: Mapping[Path, tuple[str, ...]] = field(default_factory=dict)
    without: tuple[Path, ...] = ()  # what the CLI itself writes below them


class Guard:
    """One run's eye on a vendor's state. `notes` is a folder of ours that nothing inside can reach."""

    def __init__(self, notes: Path, watched: Watched) -> None:
        self._watched = Watched(
            tuple(map(_real, watched.paths)),
            {_real(place): keys for place, keys in watched.keys.items()},
            tuple(map(_real, watched.without)),
        )
        places = "\n".join(map(str, (*watched.paths, *watched.keys)))
        self._folder = Path(os.path.realpath(notes)) / digest(places)[:16]
        self._in_use = -1

    def begin(self) -> str:
        """Note what is there, unless somebody is at work who has; what a dead driver's run left changed."""
        with machine("write", self._folder), self._alone():
            self._in_use = paths.open_path(self._folder / "in-use", os.O_RDWR | os.O_CREAT, 0o600)
            words = ""
            if _is_locked(self._in_use, fcntl.LOCK_EX):
                now = _look(self._watched)
                before = self._noted()
                changed = _differences(before, now) if before is not None else []
                words = _list([f"{_shown(name)} is not as it was (it stays)" for name in changed])
                paths.replace(self._note, json.dumps(now).encode())
            fcntl.flock(self._in_use, fcntl.LOCK_SH)
        return words

    def end(self, aside: Path) -> str:
        """What was changed since, in words; it is as it was again, and what was written is in `aside`."""
        if self._in_use < 0:
            return ""
        try:
            with machine("compare", self._folder), self._alone():
                before = self._noted()
                if before is None:
                    return "what is noted of it is gone, so nobody can say"
                after = _look(self._watched)
                words = [
                    self._undo(name, before.get(name), after.get(name), aside)
                    for name in _differences(before, after)
                ]
                if _is_locked(self._in_use, fcntl.LOCK_EX):  # the last one
                    paths.remove(self._note)
        finally:
            os.close(self._in_use)
            self._in_use = -1
        return _list(words)

    @property
    def _note(self) -> Path:
        return self._folder / "note.json"

    def _noted(self) -> Note | None:
        try:
            found = jsons.load(paths.read(self._note, NOTE_MAX), bytes_max=NOTE_MAX)
        except (OSError, ValueError):
            return None
        return {str(name): str(what) for name, what in found.items()} if isinstance(found, dict) else None

    def _undo(self, name: str, before: str | None, after: str | None, aside: Path) -> str:
        """Put one thing back; in words, what was done with it."""
        kept = ""
        if after is not None:
            spot = aside / digest(name)[:12]
            paths.make_folders(aside, 0o700)
            paths.write(spot, f"{name}\n{_text(after)}".encode("utf-8", "surrogateescape"))
            kept = f", what was written is in {spot}"
        how = "added" if before is None else "removed" if after is None else "changed"
        try:
            done = _put_key_back(name, before) if _KEYS in name else _put_back(name, before)
        except (OSError, ValueError):
            done = False
        return f"{_shown(name)} was {how} ({'undone' if done else 'it could NOT be undone'}{kept})"

    @contextmanager
    def _alone(self) -> Iterator[None]:
        paths.make_folders(self._folder, 0o700)
        gate = paths.open_path(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(gate, fcntl.LOCK_EX)
            yield
        finally:
            os.close(gate)


def _real(place: Path) -> Path:
    """Where something is, through the links of the person's own that are there before anything runs."""
    return Path(os.path.realpath(place.parent)) / place.name


def _is_locked(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _differences(before: Note, after: Note) -> list[str]:
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def _list(words: list[str]) -> str:
    more = [f"and {len(words) - SHOWN_MAX} more"] if len(words) > SHOWN_MAX else []
    return "; ".join((*words[:SHOWN_MAX], *more))


def _look(watched: Watched) -> Note:
    """Everything that is watched, as it is now."""
    found: Note = {}
    room = ALL_MAX
    for place in watched.paths:
        for number, path in enumerate(_below(place, watched.without)):
            if number >= FILES_MAX:
                found[f"{place}: {TOO_MANY}"] = TOO_MANY
                break
            if (what := _content(path, min(room, KEPT_MAX))) is not None:
                found[path] = what
                room -= len(what)
    for place, keys in watched.keys.items():
        document = _document(str(place))
        if document is None:
            found[f"{place}{_KEYS}"] = "no document"
            continue
        for key in keys:
            for name, value in _values(document, key.split(".")):
                if value:  # what a CLI writes by itself is an empty list
                    found[f"{place}{_KEYS}{name}"] = json.dumps(value, sort_keys=True)
    return found


def _below(place: Path, without: tuple[Path, ...]) -> Iterator[str]:
    """A file, or every file of a folder that is none; and whatever else stands there."""
    top = str(place)
    if not paths.is_folder(top):
        yield top
        return
    left_out = frozenset(map(str, without))
    for here, folders, names in paths.walk(top):
        folders[:] = sorted(name for name in folders if f"{here}/{name}" not in left_out)
        yield from (f"{here}/{name}" for name in sorted(names))


def _content(path: str, kept_max: int) -> str | None:
    """What is at a path: a file with what it holds; of a large one, how large it is and since when."""
    try:
        info = paths.look(path)
        if stat.S_ISLNK(info.st_mode):
            with paths.folder_of(path) as (fd, name):
                return f"link {os.readlink(name, dir_fd=fd)}"
        if not stat.S_ISREG(info.st_mode):
            return f"other {stat.S_IFMT(info.st_mode)}"
        if info.st_size > kept_max:
            return f"large {info.st_size} {info.st_mtime_ns} {info.st_ctime_ns} {info.st_ino}"
        data = paths.read(path, kept_max)
        return f"file {stat.S_IMODE(info.st_mode)} {base64.b64encode(data).decode()}"
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return "unreadable"


def _text(what: str) -> str:
    """What was there, for a person."""
    kind, _, rest = what.partition(" ")
    return base64.b64decode(rest.partition(" ")[2]).decode(errors="replace") if kind == "file" else what


def _put_back(path: str, before: str | None) -> bool:
    """A file as it was; a folder that stands in its place is not removed."""
    folder = os.path.dirname(path)  # noqa: PTH120
    if before is None:
        paths.remove(path)
        return True
    kind, _, rest = before.partition(" ")
    if kind not in ("file", "link"):
        return False
    paths.make_folders(folder, 0o700)
    paths.chmod(folder, 0o700 | stat.S_IMODE(paths.look(folder).st_mode))
    if kind == "link":
        paths.remove(path)
        with paths.folder_of(path) as (fd, name):
            os.symlink(rest, name, dir_fd=fd)
        return True
    mode, _, data = rest.partition(" ")
    _replace(path, base64.b64decode(data), int(mode))
    return True


def _replace(path: str, data: bytes, mode: int) -> None:
    """A new file in place of whatever is there; under a name that nobody inside could know."""
    temporary = f"{path}.{secrets.token_hex(8)}"
    paths.write(temporary, data, mode)
    paths.chmod(temporary, mode)
    paths.move(temporary, path)


def _put_key_back(name: str, before: str | None) -> bool:
    """One value of a document as it was; the rest of the document stays."""
    place, _, key = name.partition(_KEYS)
    document = _document(place)
    if document is None or not key:
        return False
    *parents, last = jsons.load(key)
    table = document
    for parent in parents:
        inner = table.get(parent)
        if not isinstance(inner, dict):
            inner = table[parent] = {}
        table = inner
    if before is None:
        table.pop(last, None)
    else:
        table[last] = jsons.load(before)
    mode = stat.S_IMODE(paths.look(place).st_mode) if paths.is_file(place) else 0o600
    _replace(place, json.dumps(document, indent=2).encode(), mode)
    return True


def _document(place: str) -> dict[str, object] | None:
    """A JSON object; empty where there is none yet, None where something else is in its place."""
    try:
        found = jsons.load(paths.read(place, DOCUMENT_MAX), bytes_max=DOCUMENT_MAX)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _values(document: object, key: list[str], path: tuple[str, ...] = ()) -> Iterator[tuple[str, object]]:
    """The values that a key means, each by its own path in the document."""
    if not isinstance(document, dict):
        return
    first, *rest = key
    for name in sorted(document) if first == "*" else [first] if first in document else []:
        if rest:
            yield from _values(document[name], rest, (*path, name))
        else:
            yield json.dumps((*path, name)), document[name]


def _shown(name: str) -> str:
    """What a name in a note means, for a person."""
    place, _, key = name.partition(_KEYS)
    shown = f"{'.'.join(jsons.load(key))} of {place}" if key else place
    return visible(shown.encode("utf-8", "replace").decode())
