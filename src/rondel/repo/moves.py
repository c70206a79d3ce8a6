"""Moving a branch that is checked out: the files of somebody's own tree go with it, all of them or none.

git writes one file after the other, and a death leaves some old and some new. So a move is noted before
the first file is touched, and only where no file that it touches holds anything but what was committed. git
works with a copy of the index; then the branch moves, in one step, and the copy becomes the index. All that
is one process, which a driver's death does not end. A move that was cut short all the same, before its branch
moved, is undone, one after it is completed: `rondel.repo.restore`.
"""

from __future__ import annotations

import os
import shlex
import signal
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rondel import paths
from rondel.errors import GitError, MachineTrouble
from rondel.model.refs import END
from rondel.repo.checkout import BUSY_S, MOVES, NOTE, Checkout, Move, is_in_folders, quoted
from rondel.repo.git import Git
from rondel.repo.restore import restore_checkout
from rondel.repo.worktrees import Worktrees

SHOWN_MAX = 10
TYPED_MAX = 100
_BUSY = 75  # how the script ends when the index is locked all the while
_FILES = ("rondel-move-index", "index", NOTE)
_BUSY_WITH = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD")


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits until this is over; other threads than the first never hear of it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def move(trees: Worktrees, folder: Path, step: Move, also: str = "") -> None:
    """Move a branch that is checked out in `folder`; GitError when that cannot be.

    Nothing has changed then, or the error says that the next command will see to it.
    `also` are more lines for the transaction in which the branch moves, see `git update-ref --stdin`.
    """
    with uninterrupted(), trees.locked(MOVES):
        here = Checkout.at(folder)
        if here.is_cut:
            restore_checkout(here)
        try:
            _check(here, here.copy_index("move"), step)
        finally:
            here.forget_index("move")
        here.note(step)
        _apply(here, step, also)


def _apply(here: Checkout, step: Move, also: str) -> None:
    """Do it; where that fails, everything is put back."""
    try:
        done = here.writing.script("read-tree", _script(here, step, also))
    except (GitError, MachineTrouble) as e:
        _put_back(here, e)
        raise
    if done.status == _BUSY:
        here.forget_move()
        raise here.busy()
    if not done.ok:
        failed = GitError(f"the files in {here.folder} cannot be updated: {done.words}")
        _put_back(here, failed)
        if (
            here.git("rev-parse", "--verify", END, step.ref) != step.after
        ):  # else only the last of it had failed
            raise failed


def _put_back(here: Checkout, failed: GitError | MachineTrouble) -> None:
    try:
        restore_checkout(here)
    except (GitError, MachineTrouble) as e:
        words = f"The files in {here.folder} are half updated; going on with the session puts them right"
        raise type(failed)(f"{failed}\n{words}: {e}") from failed


def _script(here: Checkout, step: Move, also: str) -> str:
    """The lock of the index, files, branch, index, in this order, by one process.

    It goes on to its end when its driver is killed: only its own death leaves something to put right.
    """
    own, lock, copy, index, note = (quoted(here.git_dir / n) for n in (*here.own_lock(), *_FILES))
    git, moves = here.git.typed, f"update {step.ref} {step.after} {step.before}\n{also}"
    return f"""\
trap '' INT HUP
n=0
until ln {own} {lock} 2>/dev/null; do
  n=$((n + 1)); [ $n -le {BUSY_S * 10:.0f} ] || exit {_BUSY}; sleep 0.1
done
rm -f {own} {copy}.lock
export GIT_INDEX_FILE={copy}
cp -p {index} {copy} && {git("update-index", "-q", "--refresh")} >/dev/null
{git("read-tree", "-m", "-u", END, step.before, step.after)} &&
printf %s {shlex.quote(moves)} | {git("update-ref", "-m", "rondel", "--stdin")} &&
mv -f {copy} {index} && rm -f {note} {lock}
"""


# -- what is in the way -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Touched:
    """The paths that a move writes or removes."""

    removed: frozenset[str]  # not there after it
    changed: frozenset[str]  # there before and after it
    added: frozenset[str]  # not there before it

    @property
    def tracked(self) -> frozenset[str]:
        return self.removed | self.changed


def _check(here: Checkout, git: Git, step: Move) -> None:
    """GitError where git is busy with something else, or a path does not hold what was committed."""
    head = git.run("symbolic-ref", "--quiet", "HEAD").out.strip()
    if head != step.ref or any((here.git_dir / name).exists() for name in _BUSY_WITH):
        see = f"git -C {quoted(here.folder)} status"
        raise GitError(f"git is in the middle of something in {here.folder}; end that first: {see}", then=see)
    now = git("rev-parse", "--verify", END, step.ref)
    if now != step.before or not git.run("merge-base", "--is-ancestor", END, step.before, step.after).ok:
        raise GitError(f"{step.ref} in {here.folder} is not where it was")
    touched = _touched(git, step)
    changed = _names(git.raw("diff-files", "--name-only", "-z", "--ignore-submodules=all"))
    changed |= _names(
        git.raw("diff-index", "--cached", "--name-only", "-z", "--no-renames", END, step.before)
    )
    tracked = changed & touched.tracked
    others = _others(here.folder, touched) | (changed & touched.added)
    if tracked or others:
        raise _in_the_way(here, git, step, sorted(tracked), sorted(others))


def _touched(git: Git, step: Move) -> _Touched:
    words = git.raw("diff-tree", "-r", "-z", "--name-status", "--no-renames", END, step.before, step.after)
    found = [os.fsdecode(word) for word in words.split(b"\0") if word]
    by: dict[str, set[str]] = {"D": set(), "A": set()}
    changed: set[str] = set()
    for letter, name in zip(found[::2], found[1::2], strict=True):
        by.get(letter, changed).add(name)
    return _Touched(frozenset(by["D"]), frozenset(changed), frozenset(by["A"]))


def _names(out: bytes) -> set[str]:
    return {os.fsdecode(word) for word in out.split(b"\0") if word}


def _others(folder: Path, touched: _Touched) -> set[str]:
    """What git does not know and is where a new file is to be; git itself would overwrite ignored files."""
    found: set[str] = set()
    fine: set[str] = set()  # folders that are there, or whose place is free
    for name in touched.added:
        above = str(Path(name).parent)
        if above not in fine:
            blocked = _blocked(folder, above, touched.tracked)
            if blocked is not None:
                found.add(blocked)
                continue
            fine.add(above)
        found.update(_there(folder, name, touched.tracked))
    return found


def _blocked(folder: Path, above: str, tracked: frozenset[str]) -> str | None:
    """The part of a folder's path that is something else than a folder, and not what goes with this move."""
    for part in (*reversed(Path(above).parents), Path(above)):
        try:
            mode = (folder / part).lstat().st_mode
        except OSError:
            return None
        if not stat.S_ISDIR(mode):
            return None if str(part) in tracked else str(part)
    return None


def _there(folder: Path, name: str, tracked: frozenset[str]) -> list[str]:
    """What is at this place, but for files that go with this move."""
    path = folder / name
    if path.is_symlink() or not path.is_dir():
        return [name] if os.path.lexists(path) and is_in_folders(folder, name) else []
    inside = (os.path.relpath(f"{at}/{n}", folder) for at, _, names in paths.walk(path) for n in names)
    return [n for n in inside if n not in tracked]


def _in_the_way(
    here: Checkout, git: Git, step: Move, tracked: Sequence[str], others: Sequence[str]
) -> GitError:
    """Which files are in the way, and a command that puts them aside; they are not committed anywhere."""
    names = [*tracked, *others]
    more = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    branch, shown = step.ref.removeprefix("refs/heads/"), ", ".join(map(quoted, names[:SHOWN_MAX]))
    words = f"{branch!r} is checked out in {here.folder} and cannot be moved forward there"
    kind = "not committed" if not others else "not in git" if not tracked else "not committed or not in git"
    ignored = bool(others) and git.run("check-ignore", "--stdin", stdin="\n".join(others)).ok
    option = " --all" if ignored else " --include-untracked" if others else ""
    put = (
        f"git -C {quoted(here.folder)} stash push{option} -- {' '.join(quoted(n) for n in names[:TYPED_MAX])}"
    )
    commit = (
        "Commit them, or put them aside" if tracked and not others else "Move them away, or put them aside"
    )
    return GitError(f"{words}; {kind}: {shown}{more}.\n{commit}, then go on: {put}", then=put)
