"""What of a vendor's state is watched, and what is there now: files, keys of documents, logins, programs.

Besides what an adapter names, three kinds of files are found when the first run begins: those that the
settings name by a path (hooks, status lines, helpers, servers), those that can be run, and those that a CLI
which is open now made for itself and runs.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import stat
import tomllib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from rondel import paths
from rondel.model import jsons

KEPT_MAX = 1_000_000  # bytes of a file that can be put back; of a larger one a change is only seen
ALL_MAX = 20_000_000  # of all of them
DOCUMENT_MAX = 16_000_000
FILES_MAX = 20_000
ENTRIES_MAX = 20_000  # that are looked at for programs, the upper folders first
PROGRAMS_MAX = 500
NAMED_MAX = 200
TOO_MANY = "more files than can be compared"

Note = dict[str, str]  # by name: what is there, as text
KEYS = "\0keys "  # no path holds such a name
LIVE = "live"
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
    live: tuple[Path, ...] = ()  # what a CLI made at its start and runs until it ends: it may go, not change
    home: Path | None = None  # what `~` means in settings

    @classmethod
    def of(cls, kind: str, folder: Path, names: Iterable[str], home: Path) -> Watched:
        """These names in the folder that holds all of a vendor's state."""
        data = tuple(folder / name for name in DATA[kind])
        return cls(tuple(folder / name for name in names), state=(folder,), data=data, home=home)

    def real(self) -> Watched:
        """The same, through the links of the person's own that are there before anything runs."""
        return Watched(
            tuple(map(_real, self.paths)),
            {_real(place): keys for place, keys in self.keys.items()},
            {_real(place): kind for place, kind in self.logins.items()},
            {_real(place): tuple(map(_real, marks)) for place, marks in self.installs.items()},
            tuple(Path(os.path.realpath(place)) for place in self.state),
            tuple(map(_real, self.data)),
            tuple(map(_real, self.live)),
            self.home,
        )


def _real(place: Path) -> Path:
    """Where something is, through the links of the person's own that are there before anything runs."""
    return Path(os.path.realpath(place.parent)) / place.name


def look(watched: Watched, also: Iterable[str]) -> Note:
    """Everything that is watched, as it is now."""
    listed = tuple(also)
    found: Note = {_ALSO: json.dumps(listed)}
    room = ALL_MAX
    own = frozenset(map(str, watched.installs))
    marks = (mark for marks in watched.installs.values() for mark in marks)
    live = tuple(map(str, _matching(watched.live)))
    files = (Path(path) for path in listed if not is_in(path, live) and not paths.is_folder(path))
    for place in (*_matching(watched.paths), *marks, *files, *watched.installs):
        for number, path in enumerate(_below(place, own - {str(place)})):
            if number >= FILES_MAX:
                found[f"{place}: {TOO_MANY}"] = TOO_MANY
                break
            if path not in found and (what := content(path, min(room, KEPT_MAX))) is not None:
                found[path] = what
                room -= len(what)
    for path in listed:
        if is_in(path, live) and (what := _identity(path)):
            found[path] = what
    for place, keys in watched.keys.items():
        found |= _keys_at(place, keys)
    for place, kind in watched.logins.items():
        found |= _logins_at(place, kind)
    return found


def _keys_at(place: Path, keys: tuple[str, ...]) -> Note:
    """The values of these keys of a document."""
    document = document_at(str(place))
    if document is None:
        return {f"{place}{KEYS}": "no document"}
    return {
        f"{place}{KEYS}{name}": json.dumps(value, sort_keys=True)
        for key in keys
        for name, value in _values(document, key.split("."))
        if value  # what a CLI writes by itself is an empty list
    }


def _logins_at(place: Path, kind: str) -> Note:
    """Of which kind each login of a document is; nothing else of it, since tokens are renewed."""
    document = document_at(str(place))
    if document is None:
        return {f"{place}{KEYS}": "no document"}
    return {
        f"{place}{KEYS}{json.dumps((name,))}": json.dumps(one.get(kind) if isinstance(one, dict) else None)
        for name, one in document.items()
    }


def _matching(places: Iterable[Path]) -> Iterator[Path]:
    """Places, with those that a pattern in the name means in its place."""
    for place in places:
        if "*" not in place.name:
            yield place
        elif paths.is_folder(place.parent):
            found = paths.names(place.parent)
            yield from (place.parent / name for name in found if fnmatchcase(name, place.name))


def others_noted(note: Note) -> list[str]:
    """The files that were found when a note was made."""
    return [str(path) for path in jsons.load(note.get(_ALSO, "[]"))]


def others_found(watched: Watched) -> list[str]:
    """Files that settings name, and programs, where no list says them already."""
    listed = (*watched.paths, *watched.keys, *watched.logins, *watched.installs, *watched.data)
    known = tuple(map(str, listed))
    files = (*_named(watched), *_programs(watched, known))
    folders = filter(paths.is_folder, _matching(watched.live))
    live = (path for folder in folders for path in islice(_below(folder), FILES_MAX))
    return sorted({*(path for path in files if not is_in(path, known)), *live})


def is_in(path: str, places: Iterable[str]) -> bool:
    """Whether a path is one of these places, or below one."""
    return any(path == place or path.startswith(f"{place}/") for place in places)


def _named(watched: Watched) -> list[str]:
    """The files of the state that settings name by a path, be they there or not; through a link, both."""
    tops = tuple(map(str, watched.state))
    found: dict[str, None] = {}
    for place, text in _settings(watched):
        for path in named_in(text, str(place.parent), str(watched.home or Path.home())):
            for one in (str(_real(Path(path))), os.path.realpath(path)):
                if is_in(one, tops) and one not in tops and not paths.is_folder(one):
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
            if stat.S_ISDIR(mode) and not is_in(path, known):
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


def _below(place: Path, without: frozenset[str] = frozenset()) -> Iterator[str]:
    """A file, or every file of a folder that is none; and whatever else stands there."""
    top = str(place)
    if not paths.is_folder(top):
        yield top
        return
    for here, folders, names in paths.walk(top):
        folders[:] = sorted(name for name in folders if f"{here}/{name}" not in without)
        yield from (f"{here}/{name}" for name in sorted(names))


def _identity(path: str) -> str:
    """What tells a file from another one in its place, and from what it was; empty for none."""
    try:
        info = paths.look(path)
    except FileNotFoundError:
        return ""
    except (OSError, ValueError):
        return f"{LIVE} unreadable"
    return f"{LIVE} {info.st_mode} {info.st_size} {info.st_mtime_ns} {info.st_ctime_ns} {info.st_ino}"


def content(path: str, kept_max: int = KEPT_MAX) -> str | None:
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


def document_at(place: str) -> dict[str, object] | None:
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


# -- paths that settings name ----------------------------------------------------------------


LENGTH_MAX = 20_000  # of a text in which paths are looked for
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_OUTPUT = re.compile(r"""(?:>>?\|?|\btee(?:\s+-\w+)*\s)\s*(?:"[^"]*"|'[^']*'|[^\s;|&<>()]+)""")
_WORD = re.compile(r"""[^\s"'`;|&<>()=,{}\[\]]+""")
_HOME = re.compile(r"\$\{HOME\}|\$HOME\b|(?<![\w/.~])~(?=/)")
_FOLDER = re.compile(r"\$\{?(?:CLAUDE_CONFIG_DIR|CODEX_HOME)\b\}?")
_FILES_OF_A_TOOL = re.compile(r"(?:Read|Edit|Write|MultiEdit|NotebookEdit)\(")  # which it may change, or not
_WRITTEN = (".log", ".jsonl", ".db", ".sqlite", ".sqlite3", ".lock", ".pid", ".csv", ".tmp")


def strings_of(data: bytes, suffix: str) -> list[str]:
    """Every text in a settings file; of one that cannot be parsed, whatever stands in quotes."""
    text = data.decode(errors="replace")
    try:
        value: object = tomllib.loads(text) if suffix == ".toml" else jsons.load(text)
    except (ValueError, RecursionError):
        return _QUOTED.findall(text)
    return list(_strings(value))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def named_in(text: str, folder: str, home: str) -> Iterator[str]:
    """The paths that a command, or another text of a settings file, names; `folder` is where that file is.

    Not those that a command only writes to, by their place in it or by their name.
    """
    if len(text) > LENGTH_MAX or "\0" in text or _FILES_OF_A_TOOL.match(text):
        return
    read = _OUTPUT.sub(" ", _FOLDER.sub(lambda _: folder, _HOME.sub(lambda _: home, text)))
    for word in dict.fromkeys((read.strip(), *_words(read), *_WORD.findall(read))):
        path = word.removeprefix("file://").removeprefix("file:")
        if path.startswith(("/", "./", "../")) and not path.endswith(_WRITTEN):
            yield os.path.normpath(os.path.join(folder, path))  # noqa: PTH118


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []
