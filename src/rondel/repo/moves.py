"""Moving a branch that is checked out: the files of somebody's own tree go with it, all of them or none.

git writes one file after the other, and a death leaves some old and some new. So a move is noted before
the first file is touched, and only where no file that it touches holds anything but what was committed. git
works with a copy of the index; then the branch moves, in one step, and the copy becomes the index. All that
is one process, which a driver's death does not end.

A move that was cut short all the same is undone where its branch had not moved yet, else completed
(`restore`). Every path that it touches was clean when it began. So what equals either commit, is missing, or
is a beginning of what git was writing, is the move's own, and gets the content that HEAD says. Anything else
was written since, by a person: it stays as it is, and is named. Doing this twice is doing it once.
"""

from __future__ import annotations

import os
import shlex
import signal
import stat
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rondel import paths
from rondel.errors import GitError, MachineTrouble
from rondel.model.refs import END
from rondel.model.texts import first_few
from rondel.model.trouble import machine
from rondel.repo import reflocks
from rondel.repo.checkout import BUSY_S, MOVES, NOTE, Checkout, Move, is_in_folders, quoted
from rondel.repo.edits import POINTER
from rondel.repo.git import Git, to_the_end
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
        with to_the_end():
            yield
        return
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        with to_the_end():
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
        failed = GitError(f"the files in {here.folder} cannot be updated: {done.message}")
        _put_back(here, failed)
        # Where the branch has moved, only the last of it had failed, and restoring has completed that.
        if here.git("rev-parse", "--verify", END, step.ref) != step.after:
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
    # `ln` is the lock: it makes the name with all of its text, or fails. The copy keeps the index's time, by
    # which git knows what it has to look at again. The note goes last: it is what `restore` looks for.
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
    changed = {
        *git.paths("diff-files", "--name-only", "-z", "--ignore-submodules=all"),
        *git.paths("diff-index", "--cached", "--name-only", "-z", "--no-renames", END, step.before),
    }
    tracked = changed & touched.tracked
    others = _others(here.folder, touched) | (changed & touched.added)
    if tracked or others:
        raise _in_the_way(here, git, step, sorted(tracked), sorted(others))


def _touched(git: Git, step: Move) -> _Touched:
    found = git.paths("diff-tree", "-r", "-z", "--name-status", "--no-renames", END, step.before, step.after)
    by: dict[str, set[str]] = {"D": set(), "A": set()}
    changed: set[str] = set()
    for letter, name in zip(found[::2], found[1::2], strict=True):
        by.get(letter, changed).add(name)
    return _Touched(frozenset(by["D"]), frozenset(changed), frozenset(by["A"]))


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
    names = [quoted(name) for name in (*tracked, *others)]
    branch, shown = step.ref.removeprefix("refs/heads/"), first_few(names, SHOWN_MAX)
    words = f"{branch!r} is checked out in {here.folder} and cannot be moved forward there"
    kind = "not committed" if not others else "not in git" if not tracked else "not committed or not in git"
    ignored = bool(others) and git.run("check-ignore", "--stdin", stdin="\n".join(others)).ok
    option = " --all" if ignored else " --include-untracked" if others else ""
    put = f"git -C {quoted(here.folder)} stash push{option} -- {' '.join(names[:TYPED_MAX])}"
    first = "Commit them" if tracked and not others else "Move them away"
    return GitError(f"{words}; {kind}: {shown}.\n{first}, or put them aside, then go on: {put}", then=put)


# -- restoring what a move that was cut short has left -------------------------------------------


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
    with to_the_end(), trees.locked(MOVES):  # one that is under way ends first
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
    words = git.paths("diff-tree", "-r", "-z", "--raw", "--no-renames", "--full-index", END, before, after)
    one: dict[str, tuple[str, str]] = {}
    two: dict[str, tuple[str, str]] = {}
    for entry, name in zip(words[::2], words[1::2], strict=True):
        modes = entry.removeprefix(":").split(" ")
        if POINTER not in modes[:2]:  # git does not touch the files of a submodule
            one[name], two[name] = (modes[0], modes[2]), (modes[1], modes[3])
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
                found |= {entry[2:] for entry in git.paths("ls-files", "-t", "-z") if entry.startswith("S ")}
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
    changed = set(git.paths("diff-files", "--name-only", "-z"))
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
