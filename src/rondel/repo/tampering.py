"""What an editing action must leave alone in the repository: configuration, hooks, refs.

The git that an agent finds is a clone of its own, but the person's repository is at a path that it can find
out, and so can a command. These things are compared before and after; what differs is said by name, and
nothing of the action is taken until a person has seen it. A person commits, fetches and pushes while agents
work: a ref that is new or went forward, or that follows a remote, is no matter. Where the sandbox holds,
nobody else reaches the refs, and they are not compared.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from rondel.model.names import digest
from rondel.model.texts import first_few
from rondel.repo.config import config_keys
from rondel.repo.git import Git

SHOWN_MAX = 10
FILE_MAX = 1_000_000
_FILES = ("info/attributes", "info/grafts", "objects/info/alternates")
_OWN = ("branch.",)  # keys that git itself writes while somebody works: what a branch follows

MOVED = "moved"  # in place of a digest: a branch that is not where its tree left it
REFS = "refs"  # says that they are noted, and how
_AT = "at "  # before the commit of a ref
_KINDS = {"refs/heads/": "the branch ", "refs/tags/": "the tag "}
# What Rondel itself moves, and what git does where it follows others.
_NOT_THEIRS = ("refs/rondel/", "refs/heads/rondel/", "refs/remotes/", "refs/prefetch/")

State = Mapping[str, str]  # by the name that a person reads: a digest


def state_of(common: Path, root: Path, *, refs: bool) -> State:
    """How these things are now; `common` is git's folder, `root` that of our own worktrees."""
    found: dict[str, str] = {}
    for key, value in config_keys(common, Git(common, common).env):
        if not key.startswith(_OWN):
            name = f"git config {key}"
            found[name] = digest(f"{found.get(name, '')}\0{value}")
    with suppress(OSError):
        for file in sorted((common / "hooks").iterdir()):
            if file.suffix != ".sample":
                found[f"the hook {file.name}"] = _content(file)
    for name in _FILES:
        if os.path.lexists(common / name):
            found[f"{common.name}/{name}"] = _content(common / name)
    for folder, branch in _moved_from_elsewhere(common, root):
        found[f"a move of the branch {branch}, which is checked out in {folder},"] = MOVED
    return {**found, **_refs(common)} if refs else found


def _refs(common: Path) -> State:
    """Where the refs are that are the person's alone."""
    lines = Git(common, common)("for-each-ref", "--format=%(objectname) %(refname)").splitlines()
    named = (line.partition(" ")[::2] for line in lines)
    theirs = {_shown(ref): f"{_AT}{commit}" for commit, ref in named if not ref.startswith(_NOT_THEIRS)}
    return {REFS: "noted", **theirs}


def _shown(ref: str) -> str:
    prefix = next((prefix for prefix in _KINDS if ref.startswith(prefix)), "")
    return f"{_KINDS.get(prefix, 'the ref ')}{ref.removeprefix(prefix)}"


def differences(before: State, after: State, goes_on: Callable[[str, str], bool]) -> str:
    """What differs, in words; empty when nothing does. A branch that is back again is no matter.

    `goes_on` says whether a commit comes after another.
    """
    both = REFS in before and REFS in after
    changed: dict[str, str] = {}
    for name in sorted({*before, *after} - {REFS}):
        old, new = before.get(name, ""), after.get(name, "")
        is_ref = (old or new).startswith(_AT)
        if old == new or (old == MOVED and not new) or (is_ref and not (both and old)):
            continue
        if is_ref and new:
            if not goes_on(old.removeprefix(_AT), new.removeprefix(_AT)):
                changed[name] = "moved, and not forward"
        else:
            changed[name] = "added" if name not in before else "changed" if name in after else "removed"
    return first_few([f"{name} was {what}" for name, what in changed.items()], SHOWN_MAX, "; ")


def _content(file: Path) -> str:
    """A digest of what a file is and holds; a link is what it names."""
    try:
        info = file.lstat()
        if stat.S_ISLNK(info.st_mode):
            return digest(os.fsencode(file.readlink()).decode(errors="replace"))
        if not stat.S_ISREG(info.st_mode):
            return digest(str(info.st_mode))
        with file.open("rb") as f:
            return digest(f"{info.st_mode} {info.st_size} {f.read(FILE_MAX).hex()}")
    except OSError:
        return ""


def _moved_from_elsewhere(common: Path, root: Path) -> Iterator[tuple[Path, str]]:
    """The branches that are checked out, but for our own worktrees, and are not where their tree left them.

    Whoever moves a branch where it is checked out leaves a line in the log of HEAD there; a branch that is
    somewhere else than that line says was moved behind the back of its tree.
    """
    for git_dir in (common, *sorted((common / "worktrees").glob("*"))):
        folder = common.parent
        if git_dir != common:
            with suppress(OSError):
                folder = Path(os.fsdecode((git_dir / "gitdir").read_bytes().strip())).parent
        if folder.is_relative_to(root):
            continue
        with suppress(OSError, ValueError):
            head = (git_dir / "HEAD").read_text(encoding="utf-8").strip()
            ref = head.removeprefix("ref: ")
            tip = (common / ref).read_text(encoding="ascii").strip()
            last = (git_dir / "logs/HEAD").read_bytes().rstrip(b"\n").rpartition(b"\n")[2]
            if head != ref and tip != last.split(b" ")[1].decode():
                yield folder, ref.removeprefix("refs/heads/")
