"""The repository that an agent finds in its worktree: a clone of its own, which shares the person's objects.

Branches, settings, hooks and remotes that an agent makes are made there, and go with the worktree. Our own
git works on the same files through another git folder, which nothing in the worktree names: of the clone it
reads only which files the agent has put into its index. A clone is written as plain files, without a process:
what git needs is a HEAD, an index, refs, and where the objects are.

Before a worktree is named to a person, what git reads in it is made harmless (`disarm`). Whoever follows
advice and calls git there has a git that nothing confines, and it runs what the configuration and the hooks
in its folder name. What an agent may have written of these is put aside, beside its place, and a
configuration with nothing but plain values is there instead.
"""

from __future__ import annotations

import os
import re
import stat
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rondel import paths
from rondel.errors import GitError
from rondel.model.trouble import machine
from rondel.repo.git import Git
from rondel.repo.worktrees import Mark, Worktrees

_FILES = {"HEAD", "config", "index", "packed-refs", "objects/info/alternates", "info/exclude"}
_SHOWN = ("HEAD", "index", "info/exclude")  # what says where a worktree is
ALTERNATES_MAX = 20
INDEX_MAX = 1 << 30
_HIDDEN = ("refs/rondel", "refs/heads/rondel", "refs/stash")


def make(trees: Worktrees, path: Path, mark: Mark) -> None:
    """A fresh clone in a worktree, at the commit that the worktree is at."""
    own = _own(path)
    with _writing(own):
        if paths.is_folder(own):
            paths.remove_tree(own)
        else:
            paths.remove(own)
        for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
            paths.make_folders(own / folder)
        _write(own / "objects/info/alternates", f"{_listed(trees.common / 'objects')}\n")
        paths.write(own / "config", config(trees))
        _write(own / "packed-refs", _refs(trees))
        with suppress(FileNotFoundError):
            paths.write(own / "shallow", (trees.common / "shallow").read_bytes())
        _show(trees, own, mark)


def object_folders(common: Path) -> list[str]:
    """Where the objects are that clones share: git's own folder for them, and those it names in turn."""
    found, queue = list[str](), [common / "objects"]
    while queue and len(found) < ALTERNATES_MAX:
        folder = queue.pop().resolve()
        found.append(str(folder))
        lines = _read(folder / "info/alternates").splitlines()
        others = ((folder / line).resolve() for line in lines if line and not line.startswith("#"))
        queue += [other for other in others if str(other) not in found]
    return found


def follow(trees: Worktrees, path: Path, mark: Mark) -> None:
    """The clone in a worktree is at the commit that the worktree is at, with nothing under way in it."""
    own = _own(path)
    if not is_there(path) or any(paths.is_folder(own / name) for name in _SHOWN):
        make(trees, path, mark)
        return
    with _writing(own):
        for name in ("index.lock", "HEAD.lock"):
            paths.remove(own / name)
        _show(trees, own, mark)


@dataclass(frozen=True)
class Tracked:
    """How the files that an agent's index names differ from those of ours."""

    more: tuple[str, ...] = ()  # added by the agent, also where they are ignored
    fewer: tuple[str, ...] = ()  # still there, and taken out of the index by the agent


def tracked(path: Path, mark: Mark) -> Tracked:
    """What an agent added to its index, or took out of it. Of an index that cannot be read: nothing."""
    own = _own(path)
    ours, copy = Git(path, Path(mark.git_dir)), Path(mark.git_dir, "rondel-index")
    try:
        data = paths.read(own / "index", INDEX_MAX)
    except OSError:
        return Tracked()
    with machine("write", copy):
        copy.write_bytes(data)
    theirs = replace(ours, index=copy).run("ls-files", "-z")
    if not theirs.ok:
        return Tracked()
    before, after = set(ours.names("ls-files", "-z")), {name for name in theirs.out.split("\0") if name}
    there = {name for name in before ^ after if paths.is_there(own.parent / name)}
    return Tracked(tuple(sorted(there - before)), tuple(sorted(there - after)))


def is_there(path: Path) -> bool:
    """Whether a worktree has a clone that git would take for one."""
    own = _own(path)
    return paths.is_file(own / "HEAD") and paths.is_folder(own / "info")


def is_as_made(trees: Worktrees, path: Path, mark: Mark) -> bool:
    """Whether nothing was added to a clone or changed in it: no hook, no setting, no object."""
    own = _own(path)
    files = {
        f"{here}/{name}".removeprefix("/") for _, here, _, names in paths.walk_open(own) for name in names
    }
    same = (own / "config", config(trees)), (own / "HEAD", _encoded(f"{mark.base}\n"))
    return files - {"shallow"} == _FILES and all(_holds(file, data) for file, data in same)


def _show(trees: Worktrees, own: Path, mark: Mark) -> None:
    private = Path(mark.git_dir)
    excludes = [_read(file) for file in (trees.common / "info/exclude", private / "rondel-exclude")]
    _write(own / "info/exclude", "\n".join(excludes))
    at = int((private / "index").stat().st_mtime)
    paths.write(own / "index", (private / "index").read_bytes())
    paths.touch(own / "index", at)  # git looks into files that changed in the second of their index, or later
    _write(own / "HEAD", f"{trees.head(mark)}\n")


def _refs(trees: Worktrees) -> str:
    """The person's branches, tags and remotes, as `packed-refs` has them."""
    lines = trees.git("for-each-ref", "--format=%(objectname) %(refname)").splitlines()
    return "".join(f"{line}\n" for line in lines if not line.partition(" ")[2].startswith(_HIDDEN))


def config(trees: Worktrees) -> bytes:
    """The settings of a clone."""
    version = "1" if "extensions.objectformat" in trees.settings else "0"
    return as_config(
        trees.settings
        | {
            "core.repositoryformatversion": version,
            "core.bare": "false",
            "gc.auto": "0",
        }
    )


def as_config(known: Mapping[str, str]) -> bytes:
    """Settings by name, as a file of git's configuration has them."""
    lines = []
    for name, value in known.items():
        section, _, rest = name.partition(".")
        between, _, key = rest.rpartition(".")
        lines += [
            f"[{section} {_quoted(between)}]" if between else f"[{section}]",
            f"\t{key} = {_quoted(value)}",
        ]
    return _encoded("\n".join([*lines, ""]))


def _quoted(text: str) -> str:
    """A text as git's settings and its list of alternates have it in quotes."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
    return '"' + "".join(escapes.get(c, c) for c in text) + '"'


def _listed(folder: Path) -> str:
    text = str(folder)
    return _quoted(text) if re.search(r'^["#]|\n', text) else text


def _read(file: Path) -> str:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="surrogateescape")
    return ""


def _own(path: Path) -> Path:
    """The clone of a worktree. Agents write in it, and in no folder above the worktree."""
    return Path(paths.settled(path)) / ".git"


@contextmanager
def _writing(own: Path) -> Iterator[None]:
    """What somebody puts in the way meanwhile is not written through; it is an error."""
    try:
        with machine("write", own):
            yield
    except OSError as e:
        raise GitError(
            f"{own} cannot be written: {e.strerror}; end what still changes it, then run it again"
        ) from e


def _holds(file: Path, data: bytes) -> bool:
    try:
        return paths.read(file, len(data)) == data
    except OSError:
        return False


def _write(file: Path, text: str) -> None:
    paths.write(file, _encoded(text))


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


# -- made harmless -------------------------------------------------------------------------------


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
    if not is_there(path):
        make(trees, path, mark)
    aside: list[str] = []
    _open_up(top)
    try:
        for place, folder in _git_folders(top):
            text = config(trees) if folder == ".git" else _minimal(trees.git, top, place, folder)
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
    return as_config(kept)


def _put_aside(top: Path, name: str) -> str:
    other = f"{name}{ASIDE}{uuid.uuid4().hex[:8]}"
    paths.move(top / name, top / other)
    return other
