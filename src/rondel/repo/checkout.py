"""A checkout of somebody's own while a branch is moved in it: its index is locked, the step is noted.

The lock is git's own (`index.lock`), so that no other git changes the index meanwhile. Its text says that
it is ours: one that is left by a death is told from one that somebody's git needs. Whoever has the lock of
all moves (`MOVES`) knows that no process of ours, nor a git of ours, is at work here.
"""

from __future__ import annotations

import os
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rondel.errors import GitError
from rondel.model.trouble import machine
from rondel.repo.git import Git
from rondel.repo.worktrees import read_note, sync_folder, write_note

MOVES = "moves"  # the lock of everything here: one move at a time in a repository
BUSY_S = 5.0  # for which a git of the person's own is waited for
NOTE = "rondel-move.json"
_LOCKED = b"rondel moves a branch here; if it was killed, `rondel doctor --repair` puts the files right\n"


@dataclass(frozen=True)
class Move:
    """A branch goes from one commit to another, and the files of its checkout with it."""

    ref: str
    before: str
    after: str


@dataclass(frozen=True)
class Checkout:
    """A working tree and git's own folder for it."""

    folder: Path
    git_dir: Path

    @classmethod
    def at(cls, folder: Path) -> Checkout:
        """The checkout with this working tree."""
        return cls(folder, Path(Git(folder)("rev-parse", "--absolute-git-dir")))

    @property
    def git(self) -> Git:
        """Git here. It cannot write the index while we hold it."""
        return Git(self.folder, self.git_dir)

    @property
    def writing(self) -> Git:
        """Git here where it writes files: one whose filter may not run is refused, not written as it is."""
        return Git(self.folder, self.git_dir, strict_filters=True)

    def with_index(self, name: str, *, writing: bool = False) -> Git:
        """Git here with an index of ours instead of the person's."""
        index = self.git_dir / f"rondel-{name}-index"
        return Git(self.folder, self.git_dir, index, strict_filters=writing)

    def copy_index(self, name: str) -> Git:
        """Git here with a copy of the person's index.

        Its time is that of the original: by it git knows which files it has to look at again.
        """
        git = self.with_index(name)
        self.forget_index(name)
        if (self.git_dir / "index").exists() and git.index is not None:
            with machine("copy", self.git_dir / "index"):
                shutil.copy2(self.git_dir / "index", git.index)
        git.run("update-index", "-q", "--refresh")
        return git

    def take_index(self, name: str) -> None:
        """An index of ours becomes the person's."""
        own = self.git_dir / f"rondel-{name}-index"
        with own.open("rb") as file:
            os.fsync(file.fileno())
        own.replace(self.git_dir / "index")

    def forget_index(self, name: str) -> None:
        """Remove an index of ours, and the lock of a git that was killed with it."""
        for file in (f"rondel-{name}-index", f"rondel-{name}-index.lock"):
            (self.git_dir / file).unlink(missing_ok=True)

    # -- the note of a move -----------------------------------------------------------------

    def note(self, move: Move) -> None:
        """From now on whoever comes here knows of the move."""
        with machine("write", self.git_dir / NOTE):
            write_note(self.git_dir / NOTE, asdict(move))

    def noted(self) -> Move | None:
        """The move that was begun here and has not come to its end."""
        file = self.git_dir / NOTE
        try:
            found = read_note(file)
            return Move(found["ref"], found["before"], found["after"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError) as e:
            raise GitError(
                f"{file} cannot be read; git was cut off in {self.folder}: put its files right, then "
                f"rm {quoted(file)}"
            ) from e

    def forget_move(self) -> None:
        """The move has come to its end, and that lasts."""
        (self.git_dir / NOTE).unlink(missing_ok=True)
        sync_folder(self.git_dir)

    # -- the lock of the index --------------------------------------------------------------

    @property
    def is_cut(self) -> bool:
        """Whether a move was begun here, or only its lock taken. Or it is under way."""
        return (self.git_dir / NOTE).exists() or self._is_locked_by_us()

    def _is_locked_by_us(self) -> bool:
        try:
            with (self.git_dir / "index.lock").open("rb") as file:
                return file.read(len(_LOCKED) + 1) == _LOCKED
        except OSError:
            return False

    @contextmanager
    def locked(self) -> Iterator[None]:
        """No other git writes the index. Waits a little for the person's own; needs the lock `MOVES`."""
        self._lock()
        try:
            yield
        finally:
            if self._is_locked_by_us():  # a person may have removed it, as git tells them to
                (self.git_dir / "index.lock").unlink(missing_ok=True)

    def own_lock(self) -> tuple[str, str]:
        """A file that becomes the lock of the index with its second name, and that name."""
        own = self.git_dir / "rondel-lock"
        try:
            with machine("write", own):
                own.unlink(missing_ok=True)  # its second name may be a lock that is in use
                own.write_bytes(_LOCKED)
        except OSError as e:
            raise GitError(f"{own} cannot be written: {e.strerror}") from e
        return own.name, "index.lock"

    def _lock(self) -> None:
        own, lock = (self.git_dir / name for name in self.own_lock())
        deadline = time.monotonic() + BUSY_S
        try:
            while not self._is_locked_by_us() and not _linked(own, lock):
                if time.monotonic() > deadline:
                    raise self.busy()
                time.sleep(0.1)
        finally:
            own.unlink(missing_ok=True)

    def busy(self) -> GitError:
        """Somebody else has the index: a git at work, or one that was killed."""
        return GitError(
            f"another git works in {self.folder}, or was killed there; "
            f"if none does: rm {quoted(self.git_dir / 'index.lock')}"
        )


def _linked(file: Path, name: Path) -> bool:
    """Give a file a second name, whole from the first moment on; False where the name is taken."""
    try:
        os.link(file, name)
    except FileExistsError:
        return False
    return True


def is_in_folders(folder: Path, path: str) -> bool:
    """Whether everything above a path is a folder, and none a link to somewhere else."""
    above = [folder / part for part in list(Path(path).parents)[:-1]]
    return all(part.is_dir() and not part.is_symlink() for part in above)


def quoted(path: Path | str) -> str:
    """A path as a person types it in a shell."""
    return shlex.quote(os.fsencode(path).decode(errors="replace"))
