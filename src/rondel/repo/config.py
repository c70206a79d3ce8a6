"""What a repository's own configuration may not say: which programs git runs.

A folder that somebody unpacked brings its `.git/config`, and an agent in a worktree can write it. Git has no
option to leave it out, so each key in it that names a program is overridden: by what the person's own global
or system configuration says, else by something that does nothing. The files are read by git itself, once for
each state of theirs; where git reads another one than those that were looked at, it is not started.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from rondel.errors import GitError, MachineTrouble
from rondel.model.trouble import trouble

FILTER_KEYS = ("clean", "smudge", "process", "required")
INCLUDES_MAX = 50
READ_S = 30.0
VERSION_MIN = (2, 31)
TEXT_MERGE = "git merge-file --marker-size=%L %A %O %B"  # what git does where no driver is named
# Section and last word of a key: what it is when nobody but the repository says something. Keys that git
# reads only from the person's configuration (uploadpack.packObjectsHook), or that an option or a variable
# of ours overrides in any case (core.hooksPath, core.gitProxy), are not here.
_PROGRAMS: Mapping[tuple[str, str], str] = {
    ("core", "alternaterefscommand"): "true",
    ("core", "askpass"): "",
    ("core", "editor"): "true",
    ("core", "pager"): "cat",
    ("core", "sshcommand"): "ssh",
    ("credential", "helper"): "",
    ("diff", "command"): "true",
    ("diff", "external"): "true",
    ("diff", "textconv"): "cat",
    ("gpg", "program"): "false",
    ("gpg", "defaultkeycommand"): "false",
    ("interactive", "difffilter"): "cat",
    ("merge", "driver"): TEXT_MERGE,
    ("submodule", "update"): "none",
    ("tar", "command"): "false",
    ("trailer", "cmd"): "true",
    ("trailer", "command"): "true",
    ("lfs", "path"): "false",  # lfs.customtransfer.<name>.path: git-lfs reads this configuration, too
    ("lfs", "clean"): "false",  # lfs.extension.<name>.clean
    ("lfs", "smudge"): "false",
}
_HELPER = ("credential", "helper")
_ATTRIBUTES = "core.attributesfile"
REMOTE = "git partial clone"
_PROMISOR = ("remote", "promisor")
_OF_FETCHING = ("extensions", "http", "protocol", "remote", "url")
_SHELL = re.compile(r"[;|&<>()$`\n\\*?\[]")
_INTERPRETER = re.compile(
    r"(python|pypy|perl|ruby|node|php|lua|Rscript|julia|tclsh)[\d.]*|deno|bun|npx|npm|uvx?|pipx|poetry|make|just"
    r"|(ba|da|z|k|c|tc|fi)?sh|env|nice|nohup|time|timeout|sudo|xargs|exec|eval|java|go|cargo|docker|awk|sed"
)
_FIRST_COUNTS = (("remote", "uploadpack"), ("remote", "receivepack"))  # which cannot be overridden later
Entries = tuple[tuple[str, str], ...]  # keys with their values, in order
Drivers = dict[str, dict[str, str]]  # filter drivers by name: their keys


@dataclass(frozen=True)
class Overrides:
    """What is said to git over the head of a repository's configuration."""

    entries: Entries = ()
    filters: frozenset[str] = frozenset()  # drivers that do not run: the repository alone defines them
    may_fetch: bool = False  # objects that a partial clone lacks, from where its configuration says

    def config(self, *, strict_filters: bool) -> Entries:
        """The keys to be set; with `strict_filters` git refuses a file whose filter does not run."""
        required = "true" if strict_filters else "false"
        return (*self.entries, *((f"filter.{name}.required", required) for name in sorted(self.filters)))


Admits = Callable[[str, Mapping[str, str]], bool]  # a part of a repository's configuration, by its keys
_admits: dict[Path, Admits] = {}  # by the folder of a repository's configuration


def ask_about(git_dir: Path, admits: Admits) -> None:
    """Say who knows whether the person consented to a part of a repository's configuration, as it is."""
    _admits[git_dir] = admits


def _filter(name: str) -> str:
    """How a person is asked about a filter."""
    return f"git filter {name}"


def allowed_filters(own: Drivers, repository: Drivers, admits: Admits | None = None) -> Drivers:
    """The filter drivers that may run, as they are defined: the person's own.

    Those that only the repository's configuration defines need the person's consent.
    """
    persons = {
        name: keys
        for name, keys in own.items()
        if "process" in keys or "process" not in repository.get(name, {})
    }
    brought = {
        name: keys
        for name, keys in repository.items()
        if name not in own and admits and admits(_filter(name), keys)
    }
    return {**brought, **persons}


def brought(folder: Path, git_dir: Path, env: Mapping[str, str]) -> Drivers:
    """What only a repository's configuration says and what counts after consent: filters, a partial clone."""
    own, keys = _look(folder, None, env).own, config_keys(git_dir, env)
    filters = {_filter(name): words for name, words in _drivers(keys).items() if name not in own}
    remote = _fetching(keys)
    return filters | ({REMOTE: remote} if remote else {})


def overrides(folder: Path, git_dir: Path | None, env: Mapping[str, str]) -> Overrides:
    """What must be overridden for git in a folder. Starts a process only when a file has changed."""
    return _look(folder, git_dir, env).overrides


def config_keys(git_dir: Path, env: Mapping[str, str]) -> Entries:
    """What a repository's own configuration says, with all that it includes."""
    return _look(git_dir, git_dir, env).keys


def lacks_objects(folder: Path, git_dir: Path | None, env: Mapping[str, str]) -> bool:
    """Whether a repository is a partial clone that fetches nothing, since nobody consented to that."""
    known = _look(folder, git_dir, env)
    return bool(_fetching(known.keys)) and not known.overrides.may_fetch


def own_filters(folder: Path, git_dir: Path | None, env: Mapping[str, str]) -> Drivers:
    """The filter drivers that may run in a repository."""
    known = _look(folder, git_dir, env)
    return allowed_filters(known.own, _drivers(known.keys), _asked(known.files))


def is_independent(keys: Mapping[str, str]) -> bool:
    """Whether a filter runs the same programs whatever is in the folder that it runs in."""
    return all(is_fixed_program(value) for key, value in keys.items() if key != "required")


def is_fixed_program(command: str) -> bool:
    """Whether a command is one program, by its name or its whole path, that takes no orders from a folder."""
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    if not words or _SHELL.search(command):
        return not command
    program = words[0]
    is_named = ("/" not in program or program.startswith("/")) and "=" not in program
    return is_named and _INTERPRETER.fullmatch(program.rpartition("/")[2]) is None


def _asked(files: Iterable[Path]) -> Admits | None:
    """Who knows about filters of these files."""
    folders = dict.fromkeys(file.parent.resolve() for file in files) if _admits else ()
    return next((_admits[folder] for folder in folders if folder in _admits), None)


@dataclass(frozen=True)
class _Known:
    """What the files of a configuration said in one state of theirs."""

    states: object
    files: tuple[Path, ...]
    keys: Entries
    overrides: Overrides
    own: Drivers  # the person's own filters
    admitted: frozenset[str] = frozenset()  # what of the repository's the person consented to


_known: dict[tuple[Path, ...], _Known] = {}


def _look(folder: Path, git_dir: Path | None, env: Mapping[str, str]) -> _Known:
    files = config_files(folder, git_dir)
    known = _known.get(files)
    admits = _asked(files)
    if (
        known is None
        or known.states != _states((*known.files, *_persons(env)), env)
        or known.admitted != _admitted(known.keys, admits)  # the person may say so at any time
    ):
        _require_version(env["PATH"])
        states = _states(files, env)
        keys, read = _read_all(files, env)
        entries = _said_here(folder, env)
        _refuse_unread(folder, git_dir, entries, read)
        own = tuple((entry.key, entry.value) for entry in entries if entry.scope in ("global", "system"))
        found = _overriding(keys, own, env, admits)
        states_now = _states((*read, *_persons(env)), env)
        known = _Known(states_now, read, keys, found, _drivers(own), _admitted(keys, admits))
        if states == _states(files, env):  # else they changed while they were read
            _known[files] = known
    return known


def _admitted(keys: Entries, admits: Admits | None) -> frozenset[str]:
    parts = {_filter(name): words for name, words in _drivers(keys).items()} | {REMOTE: _fetching(keys)}
    return frozenset(name for name, words in parts.items() if words and admits and admits(name, words))


def _refuse_unread(
    folder: Path, git_dir: Path | None, entries: Iterable[_Entry], read: Iterable[Path]
) -> None:
    """GitError where git reads a repository's file that was not looked at, or works in another folder."""
    known = {os.path.realpath(file) for file in read}
    for entry in entries:
        if entry.scope not in ("local", "worktree"):
            continue
        files = {os.path.realpath(at / entry.file) for at in (folder.absolute(), *folder.absolute().parents)}
        if not files & known:
            raise GitError(
                f"git in {folder} would read its settings from {entry.file!r}, by a name that only git can "
                "follow; git is not started there. Name the file plainly, or remove what includes it"
            )
        if git_dir is None and entry.key == "core.worktree":
            tree = os.path.realpath(Path(next(iter(files & known))).parent / entry.value)
            if not Path(os.path.realpath(folder)).is_relative_to(tree):
                raise GitError(
                    f"{entry.file} in {folder} says that its files are in {tree} (core.worktree); git is not "
                    "started there"
                )


def config_files(folder: Path, git_dir: Path | None) -> tuple[Path, ...]:
    """Every file that may be a repository's configuration for git in a folder, there or not.

    Also those of repositories around it: which of them git takes depends on what else is in them.
    """
    found: dict[Path, None] = {}
    for own in (git_dir,) if git_dir is not None else _git_dirs(folder):
        common = _named(own / "commondir", "") or own
        found |= dict.fromkeys((common / "config", common / "config.worktree", own / "config.worktree"))
    return tuple(found)


def _git_dirs(folder: Path) -> Iterator[Path]:
    at = folder.absolute()
    for here in (at, *at.parents):
        spot = here / ".git"
        if spot.is_dir():
            yield spot
        elif (linked := _named(spot, "gitdir: ")) is not None:
            yield linked
        elif (here / "HEAD").is_file():  # a bare one
            yield here


def _named(file: Path, prefix: str) -> Path | None:
    """The folder that one of git's files names."""
    try:
        text = file.read_bytes() if file.is_file() else b""
    except OSError:
        return None
    name = os.fsdecode(text).removeprefix(prefix).rstrip("\r\n")
    return file.parent / name if name else None


# -- reading ------------------------------------------------------------------------------------


def _persons(env: Mapping[str, str]) -> tuple[Path, ...]:
    """The files of the person's own configuration: another one may define other drivers."""
    home = env.get("HOME", "/")
    xdg = env.get("XDG_CONFIG_HOME") or f"{home}/.config"
    return (
        Path(env.get("GIT_CONFIG_GLOBAL") or f"{home}/.gitconfig"),
        Path(xdg, "git", "config"),
        Path(env.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"),
    )


def _states(files: Iterable[Path], env: Mapping[str, str]) -> object:
    return tuple((file, _state(file)) for file in files), env.get("GIT_CONFIG_NOSYSTEM")


def _state(file: Path) -> tuple[int, ...] | None:
    try:
        info = file.stat()
    except OSError:
        return None
    return (info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def _read_all(files: Sequence[Path], env: Mapping[str, str]) -> tuple[Entries, tuple[Path, ...]]:
    """The keys of these files and of all that they include, on whatever condition; and those files."""
    todo, read, keys = list(files), dict.fromkeys(files), []
    while todo:
        file = todo.pop(0)
        for key, value in _read(file, env):
            keys.append((key, value))
            if key.startswith(("include.", "includeif.")) and key.endswith(".path"):
                named = file.parent / os.path.expanduser(value)  # noqa: PTH111 - a `~name` without a home is a name
                if named not in read:
                    todo.append(named)
                    read[named] = None
        if len(read) > INCLUDES_MAX + len(files):
            raise GitError(
                f"{files[0]} includes more than {INCLUDES_MAX} other files; git is not started there"
            )
    return tuple(keys), tuple(read)


def _read(file: Path, env: Mapping[str, str]) -> Entries:
    try:
        info = file.stat()
    except OSError:
        return ()
    if not stat.S_ISREG(info.st_mode):
        raise GitError(f"{file} is no regular file; git is not started with such a configuration")
    entries = _list(["--file", str(file), "--no-includes"], Path("/"), env)
    return tuple(entry.partition("\n")[::2] for entry in entries if entry)


class _Entry(NamedTuple):
    """One value of git's configuration, and where it is from."""

    scope: str
    file: str
    key: str
    value: str


def _said_here(folder: Path, env: Mapping[str, str]) -> list[_Entry]:
    """Everything that counts as configuration for git in this folder."""
    words = _list(["--show-scope", "--show-origin", "--includes"], folder, env)
    found = zip(words[::3], words[1::3], words[2::3], strict=False)
    return [
        _Entry(scope, origin.removeprefix("file:"), *entry.partition("\n")[::2])
        for scope, origin, entry in found
    ]


def _list(options: list[str], folder: Path, env: Mapping[str, str]) -> list[str]:
    return _said(["git", "config", *options, "--list", "-z"], folder, env).split("\0")


def not_started(folder: Path, error: OSError) -> GitError | MachineTrouble:
    """Why git did not start at all."""
    if (why := trouble(error)) is not None:
        return MachineTrouble(f"git cannot run in {str(folder)!r}: {why}")
    if error.filename == "git":
        return GitError("git is not installed, or not on the PATH")
    return GitError(f"git cannot run in {folder}: {error.strerror}")


def _said(argv: list[str], folder: Path, env: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            argv, cwd=folder, env=dict(env), capture_output=True, timeout=READ_S, check=False
        )
    except OSError as e:
        raise not_started(folder, e) from e
    except subprocess.TimeoutExpired as e:
        raise GitError(f"git did not read its configuration within {READ_S:g} s in {folder}") from e
    if done.returncode:
        raise GitError(f"git cannot read its configuration: {os.fsdecode(done.stderr).strip()[-500:]}")
    return os.fsdecode(done.stdout)


@lru_cache
def _require_version(path: str) -> None:
    """GitError where git is older than the variables in which the overrides are given to it."""
    said = _said(["git", "version"], Path("/"), {"PATH": path})
    version = re.search(r"(?<!\d)(\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) < VERSION_MIN:
        raise GitError(f"git {VERSION_MIN[0]}.{VERSION_MIN[1]} or newer is needed; this is {said.strip()!r}")


# -- overriding ---------------------------------------------------------------------------------


def _split(key: str) -> tuple[str, str, str]:
    """A key as its section, what is between, and its last word."""
    section, _, rest = key.partition(".")
    middle, _, name = rest.rpartition(".")
    return section, middle, name


def _fetching(keys: Entries) -> dict[str, str]:
    """What says where git fetches objects that are not there; nothing where it fetches none."""
    if not any(key == "extensions.partialclone" or _split(key)[::2] == _PROMISOR for key, _ in keys):
        return {}
    return {key: value for key, value in keys if _split(key)[0] in _OF_FETCHING}


def _overriding(
    keys: Entries, own: Entries, env: Mapping[str, str], admits: Admits | None = None
) -> Overrides:
    """What overrides a repository's keys, where the person's own configuration says this."""
    of_person: dict[str, str] = dict(own)
    entries: dict[str, str] = {}
    for key in dict.fromkeys(key for key, _ in keys):
        section, _, name = _split(key)
        neutral = _PROGRAMS.get((section, name), "false" if section == "pager" else None)
        if key == _ATTRIBUTES:
            neutral = str(_persons(env)[1].with_name("attributes"))
        if neutral is not None and (section, name) != _HELPER:
            entries[key] = of_person.get(key, neutral)
    repository = _drivers(keys)
    allowed = allowed_filters(_drivers(own), repository, admits)
    for driver in repository:
        counts = allowed.get(driver, {})
        words = {key: counts.get(key, "") for key in FILTER_KEYS if key in repository[driver] or not counts}
        words.pop("required", None)
        entries |= {f"filter.{driver}.{key}": value for key, value in words.items()}
        if counts:
            entries[f"filter.{driver}.required"] = counts.get("required", "false")
    return Overrides(
        (*entries.items(), *_helpers(keys, own)),
        frozenset(driver for driver in repository if driver not in allowed),
        may_fetch=_may_fetch(keys, admits),
    )


def _may_fetch(keys: Entries, admits: Admits | None) -> bool:
    """Whether the person consented to where a partial clone's objects come from."""
    names_program = any(_split(key)[::2] in _FIRST_COUNTS for key, _ in keys)
    remote = _fetching(keys)
    return bool(remote) and not names_program and admits is not None and admits(REMOTE, remote)


def _helpers(keys: Entries, own: Entries) -> Entries:
    """Credential helpers are a list: an empty one forgets those before it, and the person's own follow."""
    if not any(_split(key)[::2] == _HELPER for key, _ in keys):
        return ()
    return (
        ("credential.helper", ""),
        *((key, value) for key, value in own if _split(key)[::2] == _HELPER),
    )


def _drivers(keys: Entries) -> Drivers:
    found: Drivers = {}
    for key, value in keys:
        section, name, word = _split(key)
        if section == "filter" and word in FILTER_KEYS:
            found.setdefault(name, {})[word] = value
    return found
