"""What a repository's own configuration may not say: which programs git runs.

A folder that somebody unpacked brings its `.git/config`, and an agent in a worktree can write it. Git has no
option to leave it out, so each key in it that names a program is overridden: by what the person's own global
or system configuration says, else by something that does nothing. The files are read by git itself, once for
each state of theirs.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

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
_FIRST_COUNTS = (("remote", "uploadpack"), ("remote", "receivepack"))  # which cannot be overridden later
Entries = tuple[tuple[str, str], ...]  # keys with their values, in order
Drivers = dict[str, dict[str, str]]  # filter drivers by name: their keys


@dataclass(frozen=True)
class Overrides:
    """What is said to git over the head of a repository's configuration."""

    entries: Entries = ()
    filters: frozenset[str] = frozenset()  # drivers that do not run: the repository alone defines them
    no_lazy_fetch: bool = False  # the program that a fetch would run is the repository's

    def config(self, *, strict_filters: bool) -> Entries:
        """The keys to be set; with `strict_filters` git refuses a file whose filter does not run."""
        required = "true" if strict_filters else "false"
        return (*self.entries, *((f"filter.{name}.required", required) for name in sorted(self.filters)))


def allowed_filters(own: Drivers, repository: Drivers) -> Drivers:
    """The filter drivers that may run, as they are defined: the person's own.

    Those that only the repository's configuration defines would need the person's consent.
    """
    return {
        name: keys
        for name, keys in own.items()
        if "process" in keys or "process" not in repository.get(name, {})
    }


def overrides(folder: Path, git_dir: Path | None, env: Mapping[str, str]) -> Overrides:
    """What must be overridden for git in a folder. Starts a process only when a file has changed."""
    return _look(folder, git_dir, env).overrides


def config_keys(git_dir: Path, env: Mapping[str, str]) -> Entries:
    """What a repository's own configuration says, with all that it includes."""
    return _look(git_dir, git_dir, env).keys


def own_filters(folder: Path, git_dir: Path | None, env: Mapping[str, str]) -> Drivers:
    """The filter drivers that may run in a repository."""
    repository = _look(folder, git_dir, env).keys
    return allowed_filters(_drivers(_persons_keys(folder, env)), _drivers(repository))


@dataclass(frozen=True)
class _Known:
    """What the files of a configuration said in one state of theirs."""

    states: object
    files: tuple[Path, ...]
    keys: Entries
    overrides: Overrides


_known: dict[tuple[Path, ...], _Known] = {}


def _look(folder: Path, git_dir: Path | None, env: Mapping[str, str]) -> _Known:
    files = config_files(folder, git_dir)
    known = _known.get(files)
    if known is None or known.states != _states((*known.files, *_persons(env)), env):
        _require_version(env["PATH"])
        states = _states(files, env)
        keys, read = _read_all(files, env)
        found = Overrides()
        if _is_of_interest(keys):
            found = _overriding(keys, _persons_keys(folder, env), env)
        known = _Known(_states((*read, *_persons(env)), env), read, keys, found)
        if states == _states(files, env):  # else they changed while they were read
            _known[files] = known
    return known


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
        elif (linked := _named(spot, "gitdir:")) is not None:
            yield linked
        elif (here / "HEAD").is_file():  # a bare one
            yield here


def _named(file: Path, prefix: str) -> Path | None:
    """The folder that one of git's files names."""
    try:
        text = file.read_bytes() if file.is_file() else b""
    except OSError:
        return None
    name = os.fsdecode(text).removeprefix(prefix).strip()
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
    return _listed(["--file", str(file), "--no-includes"], Path("/"), env)


def _listed(options: list[str], folder: Path, env: Mapping[str, str]) -> Entries:
    """The keys that `git config --list` names in a file."""
    words = (os.fsdecode(entry).partition("\n") for entry in _list(options, folder, env) if entry)
    return tuple((key, value) for key, _, value in words)


def _persons_keys(folder: Path, env: Mapping[str, str]) -> Entries:
    """The keys of the person's global and system configuration, as far as it counts in this folder."""
    words = _list(["--show-scope", "--includes"], folder, env)
    entries = (
        os.fsdecode(entry).partition("\n")
        for scope, entry in zip(words[::2], words[1::2], strict=False)
        if scope in (b"global", b"system")
    )
    return tuple((key, value) for key, _, value in entries)


def _list(options: list[str], folder: Path, env: Mapping[str, str]) -> list[bytes]:
    argv = ["git", "config", *options, "--list", "-z"]
    return _said(argv, folder, env).split(b"\0")


def not_started(folder: Path, error: OSError) -> GitError | MachineTrouble:
    """Why git did not start at all."""
    if (why := trouble(error)) is not None:
        return MachineTrouble(f"git cannot run in {str(folder)!r}: {why}")
    if error.filename == "git":
        return GitError("git is not installed, or not on the PATH")
    return GitError(f"git cannot run in {folder}: {error.strerror}")


def _said(argv: list[str], folder: Path, env: Mapping[str, str]) -> bytes:
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
    return done.stdout


@lru_cache
def _require_version(path: str) -> None:
    """GitError where git is older than the variables in which the overrides are given to it."""
    said = os.fsdecode(_said(["git", "version"], Path("/"), {"PATH": path}))
    version = re.search(r"(\d+)\.(\d+)", said)
    if version is None or (int(version[1]), int(version[2])) < VERSION_MIN:
        raise GitError(f"git {VERSION_MIN[0]}.{VERSION_MIN[1]} or newer is needed; this is {said.strip()!r}")


# -- overriding ---------------------------------------------------------------------------------


def _split(key: str) -> tuple[str, str, str]:
    """A key as its section, what is between, and its last word."""
    section, _, rest = key.partition(".")
    middle, _, name = rest.rpartition(".")
    return section, middle, name


def _is_of_interest(keys: Entries) -> bool:
    return any(_says_program(key) for key, _ in keys)


def _says_program(key: str) -> bool:
    section, _, name = _split(key)
    at = (section, name)
    return section in ("filter", "pager") or at in _PROGRAMS or at in _FIRST_COUNTS or key == _ATTRIBUTES


def _overriding(keys: Entries, own: Entries, env: Mapping[str, str]) -> Overrides:
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
    allowed = allowed_filters(_drivers(own), repository)
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
        no_lazy_fetch=any(_split(key)[::2] in _FIRST_COUNTS for key, _ in keys),
    )


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
