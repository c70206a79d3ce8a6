"""The repository that an agent finds in its worktree: a clone of its own, which shares the person's objects.

Branches, settings, hooks and remotes that an agent makes are made there, and go with the worktree. Our own
git works on the same files through another git folder, which nothing in the worktree names: of the clone it
reads only which files the agent has put into its index. A clone is written as plain files, without a process:
what git needs is a HEAD, an index, refs, and where the objects are.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from rondel import paths
from rondel.agents.git import Git
from rondel.agents.worktrees import Mark, Worktrees, writable
from rondel.model.trouble import machine

_FILES = {"HEAD", "config", "index", "packed-refs", "objects/info/alternates", "info/exclude"}
ALTERNATES_MAX = 20
_HIDDEN = ("refs/rondel", "refs/heads/rondel", "refs/stash")


def make(trees: Worktrees, path: Path, mark: Mark) -> None:
    """A fresh clone in a worktree, at the commit that the worktree is at."""
    own = path / ".git"
    with machine("write", own):
        if own.is_dir() and not own.is_symlink():
            writable(own)
            paths.remove_tree(own)
        else:
            own.unlink(missing_ok=True)
        for folder in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
            (own / folder).mkdir(parents=True)
        _write(own / "objects/info/alternates", f"{_listed(trees.common / 'objects')}\n")
        _write(own / "config", _config(trees))
        _write(own / "packed-refs", _refs(trees))
        with suppress(FileNotFoundError):
            shutil.copyfile(trees.common / "shallow", own / "shallow")
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
    own = path / ".git"
    if not is_there(path) or (own / "info").is_symlink():
        make(trees, path, mark)
        return
    with machine("write", own):
        for name in ("index.lock", "HEAD.lock"):
            (own / name).unlink(missing_ok=True)
        _show(trees, own, mark)


@dataclass(frozen=True)
class Tracked:
    """How the files that an agent's index names differ from those of ours."""

    more: tuple[str, ...] = ()  # added by the agent, also where they are ignored
    fewer: tuple[str, ...] = ()  # still there, and taken out of the index by the agent


def tracked(path: Path, mark: Mark) -> Tracked:
    """What an agent added to its index, or took out of it. Of an index that cannot be read: nothing."""
    own = path / ".git"
    ours = Git(path, Path(mark.git_dir))
    if (own / "index").is_symlink() or not (own / "index").is_file() or own.is_symlink():
        return Tracked()
    theirs = replace(ours, index=own / "index").run("ls-files", "-z")
    if not theirs.ok:
        return Tracked()
    before, after = set(ours.names("ls-files", "-z")), {name for name in theirs.out.split("\0") if name}
    there = {name for name in before ^ after if os.path.lexists(path / name)}
    return Tracked(tuple(sorted(there - before)), tuple(sorted(there - after)))


def is_there(path: Path) -> bool:
    """Whether a worktree has a clone that git would take for one."""
    own = path / ".git"
    return (own / "HEAD").is_file() and not own.is_symlink()


def is_as_made(trees: Worktrees, path: Path, mark: Mark) -> bool:
    """Whether nothing was added to a clone or changed in it: no hook, no setting, no object."""
    own = path / ".git"
    files = {
        os.path.relpath(os.path.join(here, name), own)  # noqa: PTH118 - a folder may be a link
        for here, _, names in paths.walk(own)
        for name in names
    }
    same = (own / "config", _config(trees)), (own / "HEAD", f"{mark.base}\n")
    return files - {"shallow"} == _FILES and all(_read(file) == text for file, text in same)


def _show(trees: Worktrees, own: Path, mark: Mark) -> None:
    private = Path(mark.git_dir)
    for name in ("HEAD", "index", "info/exclude"):
        (own / name).unlink(missing_ok=True)  # whatever it is now: nothing is written through it
    (own / "info").mkdir(exist_ok=True)
    excludes = [_read(file) for file in (trees.common / "info/exclude", private / "rondel-exclude")]
    _write(own / "info/exclude", "\n".join(excludes))
    shutil.copyfile(private / "index", own / "index")
    _write(own / "HEAD", f"{trees.head(mark)}\n")


def _refs(trees: Worktrees) -> str:
    """The person's branches, tags and remotes, as `packed-refs` has them."""
    lines = trees.git("for-each-ref", "--format=%(objectname) %(refname)").splitlines()
    return "".join(f"{line}\n" for line in lines if not line.partition(" ")[2].startswith(_HIDDEN))


def _config(trees: Worktrees) -> str:
    """The settings of a clone."""
    version = "1" if "extensions.objectformat" in trees.settings else "0"
    known = trees.settings | {
        "core.repositoryformatversion": version,
        "core.bare": "false",
        "gc.auto": "0",
    }
    lines = []
    for name, value in known.items():
        section, _, key = name.partition(".")
        lines += [f"[{section}]", f"\t{key} = {_quoted(value)}"]
    return "\n".join([*lines, ""])


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


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8", errors="surrogateescape")
