"""What decides how a vendor's CLI behaves: its settings, hooks, plugins, programs and lists of servers.

The CLI's state is used in place, so whatever runs inside could change what the person's own CLI does
tomorrow. These files are noted before a run and compared after it: a change is undone, what was written is
kept aside, and the action is blocked with a word that names it. What cannot be compared or undone is said.

What runs inside can write all of that state: nothing here follows a link in it, waits for a pipe or goes
deeper than it can come back (`rondel.paths`). Where the state is was resolved before anything ran.

Several runs of one vendor may go on at once, in several drivers. The first one notes what is there; the
others go by that note until the last has ended, which the locks of the living say. A note that a dead driver
left is compared by the next, and what differs is said; it may be the person's, so it stays.

Besides what an adapter names, two kinds of files are found when the first one begins: those that the settings
name by a path, and those that can be run. What a CLI installs by itself is not told from what an agent put
there: it goes again, without a word, when the last one has ended, and the CLI installs it anew.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import secrets
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from rondel import paths
from rondel.agents.vendors.paths import named_in, strings_of
from rondel.model import jsons
from rondel.model.cut import first_few
from rondel.model.digests import digest
from rondel.model.plain import visible
from rondel.model.trouble import machine

KEPT_MAX = 1_000_000  # bytes of a file that can be put back; of a larger one a change is only seen
ALL_MAX = 20_000_000  # of all of them
NOTE_MAX = 4 * ALL_MAX
DOCUMENT_MAX = 16_000_000
FILES_MAX = 20_000
ENTRIES_MAX = 20_000  # that are looked at for programs, the upper folders first
PROGRAMS_MAX = 500
NAMED_MAX = 200
SHOWN_MAX = 5
TOO_MANY = "more files than can be compared"

Note = dict[str, str]  # by name: what is there, as text
_KEYS = "\0keys "  # no path holds such a name
_ALSO = "\0also"
_SETTINGS = (".json", ".jsonc", ".toml")
_NO_PROGRAMS = (
    ".json",
    ".jsonl",
    ".toml",
    ".yaml",
    ".md",
    ".txt",
    ".log",
    ".lock",
    ".db",
    ".sqlite",
    "-shm",
    "-wal",
)

# Of each vendor's state, what its CLI writes at every run and nothing is run from.
DATA = {
    "claude": (
        *(
            "projects",
            "todos",
            "tasks",
            "plans",
            "shell-snapshots",
            "file-history",
            "session-env",
            "sessions",
        ),
        *(
            "backups",
            "cache",
            "debug",
            "ide",
            "image-cache",
            "paste-cache",
            "statsig",
            "telemetry",
            "uploads",
        ),
        *("plugins/store", "plugins/data", "worktrees"),
        *(".credentials.json", "history.jsonl", "stats-cache.json", "policy-limits.json"),
    ),
    "codex": (
        *("sessions", "archived_sessions", "log", "tmp", ".tmp", "cache", "shell_snapshots", "memories"),
        *("thread-writer-locks", "worktrees", "generated_images"),
        *("auth.json", "history.jsonl", "models_cache.json", "version.json", "installation_id"),
    ),
    "gemini": (
        *("tmp", "history", "cache", "worktrees", "antigravity", "antigravity-browser-profile"),
        *("oauth_creds.json", "google_accounts.json", "mcp-oauth-tokens.json", "installation_id"),
        *("projects.json", "state.json", "user_id"),
    ),
    "opencode": (
        "log",
        "snapshot",
        "storage",
        "tool-output",
        "project",
        "repos",
        "worktree",
        "mcp-auth.json",
    ),
}


@dataclass(frozen=True)
class Watched:
    """Files and folders that are watched as they are; and JSON documents of which some keys are.

    Keys are for documents that the CLI itself writes all the time. `a.*.b` is `b` of everything in `a`; each
    part, and the name of a path, may be a pattern.
    """

    paths: tuple[Path, ...] = ()
    keys: Mapping[Path, tuple[str, ...]] = field(default_factory=dict)
    logins: Mapping[Path, str] = field(default_factory=dict)  # no entry may come or change in this field
    installs: Mapping[Path, tuple[Path, ...]] = field(
        default_factory=dict
    )  # and what says which is installed
    state: tuple[Path, ...] = ()  # where programs, and files that settings name, are looked for
    data: tuple[Path, ...] = ()  # where in it they are not
    home: Path | None = None  # what `~` means in settings

    def real(self) -> Watched:
        """The same, through the links of the person's own that are there before anything runs."""
        return Watched(
            tuple(map(_real, self.paths)),
            {_real(place): keys for place, keys in self.keys.items()},
            {_real(place): kind for place, kind in self.logins.items()},
            {_real(place): tuple(map(_real, marks)) for place, marks in self.installs.items()},
            tuple(Path(os.path.realpath(place)) for place in self.state),
            tuple(map(_real, self.data)),
            self.home,
        )


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
                now = _look(self._watched, _found(self._watched))
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
                after = _look(self._watched, _also(before))
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
        now = _look(self._watched, _also(before))
        installed = _installed(self._watched, before, now)
        changed = [name for name in _differences(before, now) if name not in installed]
        return [f"{_shown(name)} is not as it was (it stays)" for name in changed]

    def _undo(self, name: str, before: str | None, after: str | None, aside: Path) -> str:
        """Put one thing back; in words, what was done with it."""
        kept = ""
        if after is not None:
            spot = aside / digest(name)[:12]
            paths.make_folders(aside, 0o700)
            text = _login(name) if self._is_login(name) else _text(after)
            paths.write(spot, f"{name}\n{text}".encode("utf-8", "surrogateescape"), 0o600)
            kept = f", what was written is in {spot}"
        how = "added" if before is None else "removed" if after is None else "changed"
        try:
            if self._is_login(name):
                done = _put_key_back(name, None) and before is None
            else:
                done = _put_key_back(name, before) if _KEYS in name else _put_back(name, before)
        except (OSError, ValueError):
            done = False
        return f"{_shown(name)} was {how} ({'undone' if done else 'it could NOT be undone'}{kept})"

    def _is_login(self, name: str) -> bool:
        place, _, key = name.partition(_KEYS)
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


def _look(watched: Watched, also: Iterable[str]) -> Note:
    """Everything that is watched, as it is now."""
    listed = tuple(also)
    found: Note = {_ALSO: json.dumps(listed)}
    room = ALL_MAX
    own = frozenset(map(str, watched.installs))
    marks = (mark for marks in watched.installs.values() for mark in marks)
    files = (Path(path) for path in listed if not paths.is_folder(path))
    for place in (*_matching(watched.paths), *marks, *files, *watched.installs):
        for number, path in enumerate(_below(place, own - {str(place)})):
            if number >= FILES_MAX:
                found[f"{place}: {TOO_MANY}"] = TOO_MANY
                break
            if path not in found and (what := _content(path, min(room, KEPT_MAX))) is not None:
                found[path] = what
                room -= len(what)
    for place, keys in watched.keys.items():
        found |= _keys_at(place, keys)
    for place, kind in watched.logins.items():
        found |= _logins_at(place, kind)
    return found


def _keys_at(place: Path, keys: tuple[str, ...]) -> Note:
    """The values of these keys of a document."""
    document = _document(str(place))
    if document is None:
        return {f"{place}{_KEYS}": "no document"}
    return {
        f"{place}{_KEYS}{name}": json.dumps(value, sort_keys=True)
        for key in keys
        for name, value in _values(document, key.split("."))
        if value  # what a CLI writes by itself is an empty list
    }


def _logins_at(place: Path, kind: str) -> Note:
    """Of which kind each login of a document is; nothing else of it, since tokens are renewed."""
    document = _document(str(place))
    if document is None:
        return {f"{place}{_KEYS}": "no document"}
    return {
        f"{place}{_KEYS}{json.dumps((name,))}": json.dumps(one.get(kind) if isinstance(one, dict) else None)
        for name, one in document.items()
    }


def _login(name: str) -> str:
    """A login that was written, for the person whose it may be."""
    place, _, key = name.partition(_KEYS)
    return json.dumps((_document(place) or {}).get(jsons.load(key)[0]))


def _matching(places: Iterable[Path]) -> Iterator[Path]:
    """Places, with those that a pattern in the name means in its place."""
    for place in places:
        if "*" not in place.name:
            yield place
        elif paths.is_folder(place.parent):
            found = paths.names(place.parent)
            yield from (place.parent / name for name in found if fnmatchcase(name, place.name))


def _also(note: Note) -> list[str]:
    """The files that were found when a note was made."""
    return [str(path) for path in jsons.load(note.get(_ALSO, "[]"))]


def _found(watched: Watched) -> list[str]:
    """Files that settings name, and programs, where no list says them already."""
    listed = (*watched.paths, *watched.keys, *watched.logins, *watched.installs, *watched.data)
    known = tuple(map(str, listed))
    files = (*_named(watched), *_programs(watched, known))
    return sorted({path for path in files if not _is_in(path, known)})


def _is_in(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _named(watched: Watched) -> list[str]:
    """The files of the state that settings name by a path, be they there or not; through a link, both."""
    tops = tuple(map(str, watched.state))
    found: dict[str, None] = {}
    for place, text in _settings(watched):
        for path in named_in(text, str(place.parent), str(watched.home or Path.home())):
            for one in (str(_real(Path(path))), os.path.realpath(path)):
                if _is_in(one, tops) and one not in tops and not paths.is_folder(one):
                    found[one] = None
    return list(found)[:NAMED_MAX]


def _settings(watched: Watched) -> Iterator[tuple[Path, str]]:
    """Every text in the settings, with the file that it is from."""
    for place in _matching(watched.paths):
        if place.suffix in _SETTINGS:
            try:
                data = paths.read_elsewhere(place, KEPT_MAX)
            except (OSError, ValueError):
                continue
            yield from ((place, text) for text in strings_of(data, place.suffix))
    for place, keys in watched.keys.items():
        for value in _keys_at(place, keys).values():
            yield from ((place, text) for text in strings_of(value.encode(), ".json"))


def _programs(watched: Watched, known: tuple[str, ...]) -> list[str]:
    """The files of the state that can be run."""
    found: list[str] = []
    queue = deque(map(str, watched.state))
    entries_left = ENTRIES_MAX
    while queue:
        here = queue.popleft()
        for name, mode in _modes(here, entries_left):
            entries_left -= 1
            path = f"{here}/{name}"
            if stat.S_ISDIR(mode) and not _is_in(path, known):
                queue.append(path)
            elif stat.S_ISREG(mode) and mode & 0o111 and not name.endswith(_NO_PROGRAMS):
                found.append(path)
    return found[:PROGRAMS_MAX]


def _modes(folder: str, entries_max: int) -> list[tuple[str, int]]:
    """What is in a folder and of which mode, sorted; nothing where it cannot be read."""
    try:
        with paths.listing(folder) as entries:
            some = [entry for _, entry in zip(range(entries_max), entries, strict=False)]
            return sorted((entry.name, entry.stat(follow_symlinks=False).st_mode) for entry in some)
    except OSError:
        return []


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
        or (name not in tops and (_is_in(name, anew) or (name not in before and _is_in(name, tops))))
    )


def _uninstall(watched: Watched, before: Note, after: Note, installed: frozenset[str]) -> list[str]:
    """Take out what was installed, so that the CLI does it anew; in words, where that is not possible."""
    anew = _replaced(watched, before, after)
    for place in anew:
        paths.remove_folder(place)
    left = [place for place in anew if paths.is_there(place)]
    for name in sorted(installed):
        inside = _is_in(name, anew)
        try:
            if not inside and not _put_back(name, before.get(name)):
                left.append(name)
        except (OSError, ValueError):
            left.append(name)
    return [f"{_shown(name)} was added (it could NOT be undone)" for name in left]


def _below(place: Path, without: frozenset[str]) -> Iterator[str]:
    """A file, or every file of a folder that is none; and whatever else stands there."""
    top = str(place)
    if not paths.is_folder(top):
        yield top
        return
    for here, folders, names in paths.walk(top):
        folders[:] = sorted(name for name in folders if f"{here}/{name}" not in without)
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
    for name in sorted(name for name in document if fnmatchcase(name, first)):
        if rest:
            yield from _values(document[name], rest, (*path, name))
        else:
            yield json.dumps((*path, name)), document[name]


def _shown(name: str) -> str:
    """What a name in a note means, for a person."""
    place, _, key = name.partition(_KEYS)
    shown = f"{'.'.join(jsons.load(key))} of {place}" if key else place
    return visible(shown.encode("utf-8", "replace").decode())
