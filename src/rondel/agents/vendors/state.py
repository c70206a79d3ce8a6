"""What decides how a vendor's CLI behaves: its settings, hooks, plugins, programs and lists of servers.

The CLI's state is used in place, so whatever runs inside could change what the person's own CLI does
tomorrow. These files are noted before a run and compared after it: a change is undone, what was written is
kept aside, and the action is blocked with a word that names it. What cannot be compared or undone is said.

What runs inside can write all of that state: nothing here follows a link in it, waits for a pipe or goes
deeper than it can come back (`rondel.paths`). Where the state is was resolved before anything ran.

Several runs of one vendor may go on at once, in several drivers. The first one notes what is there; the
others go by that note until the last has ended, which the locks of the living say. A note that a dead driver
left is compared by the next, and what differs is said; it may be the person's, so it stays.

What a CLI that is open made for itself and runs (a snapshot of a shell, links to its helpers) goes with that
CLI: there only a change is one, and what was changed is taken away.

What a CLI installs by itself is not told from what an agent put there: it goes again, without a word, when
the last one has ended, and the CLI installs it anew. What is watched says `rondel.agents.vendors.watched`.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rondel import paths
from rondel.agents.vendors.watched import (
    ALL_MAX,
    KEYS,
    LIVE,
    Note,
    Watched,
    content,
    document_at,
    is_in,
    look,
    others_found,
    others_noted,
)
from rondel.model import jsons
from rondel.model.names import digest
from rondel.model.texts import first_few, visible
from rondel.model.trouble import machine

NOTE_MAX = 4 * ALL_MAX
SHOWN_MAX = 5


class Guard:
    """One run's eye on a vendor's state. `notes` is a folder of ours that nothing inside can reach."""

    def __init__(self, notes: Path, watched: Watched) -> None:
        self._watched = watched.real()
        places = "\n".join(map(str, (*watched.paths, *watched.keys)))
        self._folder = Path(os.path.realpath(notes)) / digest(places)[:16]
        self._in_use = -1

    def begin(self) -> str:
        """Note what is there, unless somebody is at work who has; what a dead driver's run left changed."""
        with machine("write", self._folder), self._alone():
            self._in_use = paths.open_path(self._folder / "in-use", os.O_RDWR | os.O_CREAT, 0o600)
            words = ""
            if _is_locked(self._in_use, fcntl.LOCK_EX):
                before = self._noted()
                if before is not None:
                    words = first_few(self._left(before), SHOWN_MAX, "; ")
                now = look(self._watched, others_found(self._watched))
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
                after = look(self._watched, others_noted(before))
                installed = _installed(self._watched, before, after)
                words = [
                    self._undo(name, before.get(name), after.get(name), aside)
                    for name in _differences(before, after)
                    if name not in installed
                ]
                if _is_locked(self._in_use, fcntl.LOCK_EX):  # the last one
                    words += _uninstall(self._watched, before, after, installed)
                    paths.remove(self._note)
        finally:
            os.close(self._in_use)
            self._in_use = -1
        return first_few(words, SHOWN_MAX, "; ")

    @property
    def _note(self) -> Path:
        return self._folder / "note.json"

    def _noted(self) -> Note | None:
        try:
            found = jsons.load(paths.read(self._note, NOTE_MAX), bytes_max=NOTE_MAX)
        except (OSError, ValueError):
            return None
        return {str(name): str(what) for name, what in found.items()} if isinstance(found, dict) else None

    def _left(self, before: Note) -> list[str]:
        """What a run changed whose driver died, in words."""
        now = look(self._watched, others_noted(before))
        installed = _installed(self._watched, before, now)
        changed = [name for name in _differences(before, now) if name not in installed]
        return [f"{_shown(name)} is not as it was (it stays)" for name in changed]

    def _undo(self, name: str, before: str | None, after: str | None, aside: Path) -> str:
        """Put one thing back; in words, what was done with it."""
        kept = ""
        if after is not None:
            spot = aside / digest(name)[:12]
            paths.make_folders(aside, 0o700)
            now = content(name) if after.startswith(LIVE) else after
            text = _login(name) if self._is_login(name) else _text(now or "")
            paths.write(spot, f"{name}\n{text}".encode("utf-8", "surrogateescape"), 0o600)
            kept = f", what was written is in {spot}"
        how = "added" if before is None else "removed" if after is None else "changed"
        try:
            if self._is_login(name):
                done = _put_key_back(name, None) and before is None
            else:
                done = _put_key_back(name, before) if KEYS in name else _put_back(name, before)
        except (OSError, ValueError):
            done = False
        return f"{_shown(name)} was {how} ({'undone' if done else 'it could NOT be undone'}{kept})"

    def _is_login(self, name: str) -> bool:
        place, _, key = name.partition(KEYS)
        return bool(key) and Path(place) in self._watched.logins

    @contextmanager
    def _alone(self) -> Iterator[None]:
        paths.make_folders(self._folder, 0o700)
        gate = paths.open_path(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(gate, fcntl.LOCK_EX)
            yield
        finally:
            os.close(gate)


def _is_locked(fd: int, how: int) -> bool:
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _differences(before: Note, after: Note) -> list[str]:
    gone = {name for name in before if name not in after and before[name].startswith(LIVE)}
    return sorted(name for name in {*before, *after} - gone if before.get(name) != after.get(name))


def _login(name: str) -> str:
    """A login that was written, for the person whose it may be."""
    place, _, key = name.partition(KEYS)
    return json.dumps((document_at(place) or {}).get(jsons.load(key)[0]))


def _replaced(watched: Watched, before: Note, after: Note) -> list[str]:
    """The folders that were installed anew: what says which is there is not what it was."""
    return [
        str(place)
        for place, marks in watched.installs.items()
        if any(before.get(str(mark)) != after.get(str(mark)) for mark in marks)
    ]


def _installed(watched: Watched, before: Note, after: Note) -> frozenset[str]:
    """Of the differences, what may be the CLI's own doing: it came new, or with all that it belongs to."""
    marks = {str(mark) for marks in watched.installs.values() for mark in marks}
    anew = _replaced(watched, before, after)
    tops = tuple(map(str, watched.installs))
    return frozenset(
        name
        for name in _differences(before, after)
        if name in marks
        or (name not in tops and (is_in(name, anew) or (name not in before and is_in(name, tops))))
    )


def _uninstall(watched: Watched, before: Note, after: Note, installed: frozenset[str]) -> list[str]:
    """Take out what was installed, so that the CLI does it anew; in words, where that is not possible."""
    anew = _replaced(watched, before, after)
    for place in anew:
        paths.remove_folder(place)
    left = [place for place in anew if paths.is_there(place)]
    for name in sorted(installed):
        inside = is_in(name, anew)
        try:
            if not inside and not _put_back(name, before.get(name)):
                left.append(name)
        except (OSError, ValueError):
            left.append(name)
    return [f"{_shown(name)} was added (it could NOT be undone)" for name in left]


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
    if kind == LIVE:
        _take_away(Path(path))
        return True
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


def _take_away(path: Path) -> None:
    """Whatever is reached by a path: the file, or the first link on the way to it."""
    for place in (*reversed(path.parents), path):
        if stat.S_ISLNK(paths.look(place).st_mode):
            paths.remove(place)
            return
    paths.remove(path)


def _replace(path: str, data: bytes, mode: int) -> None:
    """A new file in place of whatever is there; under a name that nobody inside could know."""
    temporary = f"{path}.{secrets.token_hex(8)}"
    paths.write(temporary, data, mode)
    paths.chmod(temporary, mode)
    paths.move(temporary, path)


def _put_key_back(name: str, before: str | None) -> bool:
    """One value of a document as it was; the rest of the document stays."""
    place, _, key = name.partition(KEYS)
    document = document_at(place)
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


def _shown(name: str) -> str:
    """What a name in a note means, for a person."""
    place, _, key = name.partition(KEYS)
    shown = f"{'.'.join(jsons.load(key))} of {place}" if key else place
    return visible(shown.encode("utf-8", "replace").decode())
