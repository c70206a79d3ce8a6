"""Restoring what a move that was cut short has left: files of two commits side by side.

Every path that the move touches was clean when it began. So what equals either commit, is missing, or is a
beginning of what git was writing, is the move's own, and gets the content that HEAD says. Anything else was
written since, by a person: it stays as it is, and is named. Doing this twice is doing it once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rondel.errors import GitError
from rondel.model.refs import END
from rondel.model.trouble import machine
from rondel.repo import reflocks
from rondel.repo.checkout import MOVES, Checkout, Move, is_in_folders
from rondel.repo.git import Git
from rondel.repo.worktrees import Worktrees

_POINTER = "160000"  # a submodule: git does not touch its files
_NONE = "000000"
Entries = Mapping[str, tuple[str, str]]  # by path: mode and id of what a commit has there


@dataclass(frozen=True)
class Restored:
    """A checkout whose files are those of its HEAD again, but for those that somebody wrote since."""

    folder: Path
    kept: tuple[str, ...]

    @property
    def words(self) -> str:
        """What a person is told."""
        names = ", ".join(os.fsencode(name).decode(errors="replace") for name in self.kept)
        kept = f"; not these, which somebody wrote since: {names}" if names else ""
        return f"git was cut off while it updated the files in {self.folder}; they were put right{kept}"


def restore(trees: Worktrees) -> list[Restored]:
    """Put every checkout of a repository right in which a move was cut short."""
    if not any(here.is_cut for here in _checkouts(trees)):
        return []
    with trees.locked(MOVES):  # one that is under way ends first
        cut = [here for here in _checkouts(trees) if here.is_cut]
        return [done for here in cut if (done := restore_checkout(here)) is not None]


def cut_short(trees: Worktrees) -> list[Path]:
    """The checkouts in which a move was cut short; none while one is under way, which looks the same."""
    if not any(here.is_cut for here in _checkouts(trees)):
        return []
    try:
        with trees.locked(MOVES, wait_s=0):
            return [here.folder for here in _checkouts(trees) if here.is_cut]
    except GitError:
        return []


def _checkouts(trees: Worktrees) -> Iterable[Checkout]:
    common = trees.common
    yield Checkout(common.parent, common) if common.name == ".git" else Checkout.at(trees.repo)
    for git_dir in sorted((common / "worktrees").glob("*")):
        with suppress(OSError):
            folder = Path(os.fsdecode((git_dir / "gitdir").read_bytes().strip())).parent
            if folder.is_dir():
                yield Checkout(folder, git_dir)


def restore_checkout(here: Checkout) -> Restored | None:
    """The same for one, by whoever has the lock `MOVES`; None where nothing had been done yet."""
    try:
        with machine("put right", here.folder), here.locked():
            step = here.noted()
            if step is not None:
                common = here.git_dir / here.git("rev-parse", "--git-common-dir")
                reflocks.forget((common / f"{step.ref}.lock", here.git_dir / "HEAD.lock"), {step.after})
            kept = _restore(here, step) if step is not None else ()
            for name in ("move", "before", "after", "head"):
                here.forget_index(name)
            here.forget_move()
    except OSError as e:
        raise GitError(f"{here.folder} cannot be put right: {e}") from e
    return Restored(here.folder, kept) if step is not None else None


def _restore(here: Checkout, step: Move) -> tuple[str, ...]:
    head = here.git("rev-parse", "--verify", "HEAD")
    before, after = _both(here.git, step.before, step.after)
    commits: dict[str, Entries] = {"before": before, "after": after}
    if head not in (step.before, step.after):
        commits["head"] = _at(here.git, step.after, head, after)
    goal = "before" if head == step.before else "after" if head == step.after else "head"
    hidden = _hidden(here)
    paths = {p for p in (*before, *after) if p not in hidden}
    differs = {name: _differing(here, name, commits[name], paths) for name in commits}
    # Where HEAD went elsewhere, a person has been here: only what is surely the move's own is touched.
    own = {"before", "after"} if goal != "head" else {"after"}
    todo = {p for p in paths & differs[goal] if any(p not in differs[c] for c in own - {goal})}
    if goal != "head":
        todo |= {p for p in (paths & differs[goal]) - todo if _is_cut(here, p, (before, after))}
    _write(here, goal, commits[goal], todo)
    if goal == "after":
        _advance_index(here, step)
    if goal == "head":
        return ()
    return tuple(sorted(_differing(here, goal, commits[goal], paths)))


def _both(git: Git, before: str, after: str) -> tuple[dict[str, tuple[str, str]], dict[str, tuple[str, str]]]:
    """What two commits have at the paths where they differ."""
    out = git.raw("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", END, before, after)
    words = out.split(b"\0")
    one: dict[str, tuple[str, str]] = {}
    two: dict[str, tuple[str, str]] = {}
    for entry, name in zip(words[::2], words[1::2], strict=False):
        modes = entry.decode().removeprefix(":").split(" ")
        if _POINTER not in modes[:2]:
            one[os.fsdecode(name)] = (modes[0], modes[2])
            two[os.fsdecode(name)] = (modes[1], modes[3])
    return one, two


def _at(git: Git, after: str, head: str, known: Entries) -> Entries:
    """What a third commit has at the paths of `known`, which are those of `after`."""
    _, there = _both(git, after, head)
    return {path: there.get(path, entry) for path, entry in known.items()}


def _hidden(here: Checkout) -> set[str]:
    """The paths that a sparse checkout leaves out: git does not write them."""
    found: set[str] = set()
    for git in (here.git, here.with_index("move")):
        if git.index is None or git.index.exists():
            with suppress(GitError):  # the copy of a git that was killed may be anything
                entries = git.raw("ls-files", "-t", "-z").split(b"\0")
                found |= {os.fsdecode(entry[2:]) for entry in entries if entry.startswith(b"S ")}
    return found


def _differing(here: Checkout, name: str, entries: Entries, paths: set[str]) -> set[str]:
    """The paths where the files are not what a commit has. Compared by git: filters and modes count."""
    here.forget_index(name)
    git = here.with_index(name)
    lines = [
        f"{mode} {id_}\t".encode() + os.fsencode(path) + b"\0"
        for path, (mode, id_) in entries.items()
        if path in paths and mode != _NONE
    ]
    git.raw("update-index", "-z", "--index-info", stdin=b"".join(lines))
    git.run("update-index", "-q", "--refresh")
    changed = {os.fsdecode(word) for word in git.raw("diff-files", "--name-only", "-z").split(b"\0") if word}
    absent = {path for path in paths if entries[path][0] == _NONE}
    return changed | {path for path in absent if _is_file(here.folder, path)}


def _is_file(folder: Path, path: str) -> bool:
    spot = folder / path
    return is_in_folders(folder, path) and (spot.is_symlink() or spot.is_file())


def _is_cut(here: Checkout, path: str, commits: tuple[Entries, Entries]) -> bool:
    """Whether git was about to write this file: it is not there, or only its beginning is."""
    file = here.folder / path
    if not os.path.lexists(file):
        return True
    if not file.is_file() or file.is_symlink():
        return False
    data = file.read_bytes()
    for entries in commits:
        mode, id_ = entries[path]
        if mode in ("100644", "100755"):
            whole = here.git.raw("cat-file", "--filters", f"--path={path}", END, id_)
            if whole.startswith(data):
                return True
    return False


def _write(here: Checkout, name: str, entries: Entries, paths: set[str]) -> None:
    """Make these paths what a commit has; what is in a folder, or in its place, and not among them, stays."""
    for path in sorted((p for p, entry in entries.items() if entry[0] == _NONE), reverse=True):
        if path in paths and _is_file(here.folder, path):
            (here.folder / path).unlink()
        if not os.path.lexists(here.folder / path):  # git may have made its folder, and no more
            for above in list(Path(path).parents)[:-1]:
                with suppress(OSError):
                    (here.folder / above).rmdir()
    free = [p for p in sorted(paths) if entries[p][0] != _NONE and _is_free(here.folder, p)]
    stdin = b"".join(os.fsencode(path) + b"\0" for path in free)
    here.with_index(name, writing=True).raw("checkout-index", "--force", "-z", "--stdin", stdin=stdin)


def _is_free(folder: Path, path: str) -> bool:
    """Whether git may write here: it would remove a folder, or a file where a folder is to be."""
    for above in list(Path(path).parents)[:-1]:
        spot = folder / above
        if spot.is_symlink() or (spot.exists() and not spot.is_dir()):
            return False
    spot = folder / path
    if spot.is_dir() and not spot.is_symlink():
        with suppress(OSError):  # a person's files are in it
            spot.rmdir()
    return spot.is_symlink() or not spot.is_dir()


def _advance_index(here: Checkout, step: Move) -> None:
    """The branch has moved: the index goes with it, but for what a person has staged since."""
    git = here.copy_index("move")
    if git.run("read-tree", "-i", "-m", step.before, END, step.after).ok:
        here.take_index("move")
