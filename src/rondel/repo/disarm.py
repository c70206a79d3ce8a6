"""Git folders in a worktree made harmless, before the worktree is named to a person.

Whoever follows advice and calls git there has a git that nothing confines, and it runs what the
configuration and the hooks in its folder name. What an agent may have written of these is put aside,
beside its place, and a configuration with nothing but plain values is there instead.
"""

from __future__ import annotations

import os
import re
import stat
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rondel import paths
from rondel.errors import GitError
from rondel.repo import clone
from rondel.repo.git import Git
from rondel.repo.worktrees import Mark, Worktrees

_NESTED = ("modules", "worktrees")  # where a git folder has others
CONFIG_MAX = 1_000_000
ASIDE = ".by-agent-"  # in the name of what is put aside
_ARMED = ("config.worktree", "commondir", "hooks", "info/attributes")
_PLAIN = re.compile(
    r"(core\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|longpaths|repositoryformatversion)"
    r"|extensions\.(objectformat|refstorage)|user\.(name|email))"
)
_REMOTE = re.compile(r"remote\.([A-Za-z0-9_-]+)\.url")
_URL = re.compile(
    r"((https?|ssh|git|file)://[^\s-]\S*|/\S*|[A-Za-z0-9_.]+@[A-Za-z0-9_.][A-Za-z0-9_.-]*:[^\s-]\S*)"
)


def disarm(trees: Worktrees, path: Path, mark: Mark) -> list[str]:
    """Make what git reads in a worktree harmless; the paths in it of what was put aside."""
    top = Path(paths.settled(path))
    if not clone.is_there(path):
        clone.make(trees, path, mark)
    aside: list[str] = []
    _open_up(top)
    try:
        for place, folder in _git_folders(top):
            text = clone.config(trees) if folder == ".git" else _minimal(trees.git, top, place, folder)
            aside += [_put_aside(top, f"{folder}/{n}") for n in _ARMED if paths.is_there(top / folder / n)]
            file = top / folder / "config"
            if not _holds(file, text):
                if paths.is_there(file):
                    aside.append(_put_aside(top, f"{folder}/config"))
                paths.write(file, text)
        aside += [_put_aside(top, name) for name in _strange(top)]
    except OSError as e:
        raise GitError(f"what git reads in {path} cannot be made harmless: {e.strerror}") from e
    return aside


def _git_folders(top: Path) -> Iterator[tuple[str, str]]:
    """Every folder that git would take its configuration from, by path, after the place of its files."""
    places = {target: place for place, target in _pointing(top)}
    for _, here, folders, names in paths.walk_open(top):
        parts = here.split("/")
        inside = parts[parts.index(".git") + 1 :] if ".git" in parts else None
        if inside and inside[0] not in _NESTED:
            folders.clear()
        elif inside == []:
            yield here.removesuffix(".git").removesuffix("/"), here
        elif inside and _is_git({*names, *folders}):
            yield places.get(here, ""), here


def _pointing(top: Path) -> Iterator[tuple[str, str | None]]:
    """Each place with a file `.git`, and which git folder of the worktree it names; None for no such one."""
    for _, here, folders, names in paths.walk_open(top):
        if ".git" in here.split("/"):
            folders.clear()
        elif ".git" in names:
            yield here, _target(top, here)


def _target(top: Path, place: str) -> str | None:
    try:
        text = os.fsdecode(paths.read(top / place / ".git", CONFIG_MAX))
    except OSError:
        return None
    said = text.removeprefix("gitdir: ").rstrip("\r\n")
    named = os.path.normpath(top / place / said)
    if said not in (named, os.path.relpath(named, top / place)):  # a way through a link, perhaps
        return None
    inside = os.path.relpath(named, top)
    first, _, rest = inside.partition("/")
    within = first == ".git" and rest.split("/")[0] in _NESTED
    return inside if within and paths.is_folder(named) else None


def _strange(top: Path) -> list[str]:
    """What leads git to a folder that is not looked at here: files `.git`, and links among git folders."""
    found = [f"{place}/.git" for place, target in _pointing(top) if target is None]
    for fd, here, folders, names in paths.walk_open(top / ".git"):
        if here and here.split("/")[0] not in _NESTED:
            folders.clear()
        else:
            links = (name for name in names if here or name in _NESTED)
            found += [os.path.normpath(f".git/{here}/{name}") for name in links if _is_link(name, fd)]
    return found


def _is_git(names: set[str]) -> bool:
    """Whether git takes a folder with these names for one of its own."""
    return "HEAD" in names and ({"objects", "refs"} <= names or "commondir" in names)


def _is_link(name: str, folder: int) -> bool:
    return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)


def _open_up(top: Path) -> None:
    """Every folder can be listed: one that cannot hides from us what git opens by its name."""
    for fd, _, folders, _ in paths.walk_open(top):
        for name in folders:
            with suppress(OSError):
                paths.change_mode(name, fd, lambda mode: mode | stat.S_IRWXU)


def _minimal(git: Git, top: Path, place: str, folder: str) -> bytes:
    """The configuration of a submodule: what of its own is a plain value, and where its files are."""
    try:
        own = os.fsdecode(paths.read(top / folder / "config", CONFIG_MAX))
    except OSError:
        own = ""
    listed = git.run("config", "--file", "-", "--no-includes", "--list", "-z", stdin=own).out
    known = dict(entry.partition("\n")[::2] for entry in listed.split("\0") if entry)
    kept = {name: value for name, value in known.items() if _PLAIN.fullmatch(name)}
    kept = {"core.repositoryformatversion": "0"} | kept | {"core.bare": "false"}
    if place and Path(folder).name != ".git":
        kept["core.worktree"] = os.path.relpath(top / place, top / folder)
    for name, value in known.items():
        if (remote := _REMOTE.fullmatch(name)) and _URL.fullmatch(value):
            kept |= {name: value, f"remote.{remote[1]}.fetch": f"+refs/heads/*:refs/remotes/{remote[1]}/*"}
    return clone.as_config(kept)


def _holds(file: Path, data: bytes) -> bool:
    try:
        return paths.read(file, CONFIG_MAX) == data
    except OSError:
        return False


def _put_aside(top: Path, name: str) -> str:
    other = f"{name}{ASIDE}{uuid.uuid4().hex[:8]}"
    paths.move(top / name, top / other)
    return other
