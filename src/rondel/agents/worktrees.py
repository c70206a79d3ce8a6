"""Worktrees: git's working copies of ours, each with a mark that says whose it is.

The mark lies beside the worktree, not in it, and names its private git folder: whatever an
agent does to the files, git never works on another repository by mistake.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path

from rondel.agents.git import Git, held
from rondel.errors import GitError

LOCK_S = 3600.0
_UNDER_WAY = {  # what git leaves in its folder, and the command that ends it
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "sequencer": "cherry-pick",
}


@dataclass(frozen=True)
class Mark:
    """Whose worktree it is and how far it got."""

    session: str
    key: str
    base: str
    git_dir: str
    ready: bool = False  # set up; before that nothing in it counts
    commit: str | None = None  # the edit, once it is one
    branch: str = ""  # that holds the commit
    trailer: str = ""  # by which the commit is found again
    target: str | None = None  # where it is to go
    integrating: bool = False  # in the middle of going there
    shared: bool = False  # by several actions, one after the other


class Worktrees:
    """The worktrees of one repository, below one folder."""

    def __init__(self, repo: Path, root: Path) -> None:
        self.repo = repo
        self.root = root
        self.git = Git(repo)
        self._stop = threading.Event()

    @cached_property
    def common(self) -> Path:
        """The repository's own git folder, which all its worktrees share."""
        return (self.repo / self.git("rev-parse", "--git-common-dir")).resolve()

    @contextmanager
    def locked(self, what: str, wait_s: float = LOCK_S) -> Iterator[None]:
        """One at a time on this machine; the kernel lets go when its holder dies."""
        with (self.common / f"rondel-{what}.lock").open("a") as file:
            deadline = time.monotonic() + wait_s
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if self._stop.wait(0.05) or time.monotonic() > deadline:
                        raise GitError(f"{file.name} is held by another process; try again later") from None
            token = held.set((*held.get(), file.fileno()))
            try:
                yield
            finally:
                held.reset(token)

    def close(self) -> None:
        """Wait for no lock any more."""
        self._stop.set()

    def commit_of(self, name: str) -> str:
        """The commit that a branch, a tag or a digest means."""
        result = self.git.run("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if result.ok and not name.startswith("-"):
            return result.out.strip()
        _ = self.common  # says it when this is no repository at all
        if not self.git.run("rev-parse", "--verify", "--quiet", "HEAD").ok:
            raise GitError(f"the repository {self.repo} has no commit yet; commit something first")
        raise GitError(f"there is no commit {name!r} in {self.repo}")

    # -- marks ----------------------------------------------------------------------------

    def mark(self, path: Path) -> Mark | None:
        """The mark of a worktree that is there; None for one that cannot be relied on."""
        mark = _load(self.mark_file(path))
        whole = mark is not None and path.is_dir() and Path(mark.git_dir, "HEAD").is_file()
        return mark if whole else None

    def save(self, path: Path, mark: Mark) -> Mark:
        """Note how far a worktree got; that lasts."""
        file = self.mark_file(path)
        temporary = file.with_suffix(".tmp")
        with temporary.open("w", encoding="utf-8") as f:
            json.dump(asdict(mark), f)
            f.flush()
            os.fsync(f.fileno())
        temporary.replace(file)
        return mark

    def mark_file(self, path: Path) -> Path:
        """Where a worktree's mark is: beside it."""
        return path.with_name(f"{path.name}.json")

    def marks(self, kind: str) -> Iterator[tuple[Path, Mark]]:
        """Every mark of a kind, also of worktrees that are not whole any more."""
        for file in sorted((self.root / kind).glob("*.json")):
            if (mark := _load(file)) is not None:
                yield file.with_suffix(""), mark

    # -- worktrees ------------------------------------------------------------------------

    def in_tree(self, path: Path, mark: Mark) -> Git:
        """Git in a worktree, and nowhere else."""
        return Git(path, Path(mark.git_dir))

    def add(self, path: Path, session: str, key: str, base: str) -> Mark:
        """A fresh worktree at `base`, on no branch, with a mark that does not say ready yet."""
        self.drop(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self.git("worktree", "add", "--quiet", "--force", "--force", "--detach", str(path), base)
        git_dir = Git(path)("rev-parse", "--absolute-git-dir")
        return self.save(path, Mark(session, key, base, git_dir))

    def drop(self, path: Path) -> None:
        """Remove a worktree, also one that was never whole; its mark goes last.

        Not by `git worktree prune`: that would forget a person's own on a disk not mounted now.
        """
        remove = ("worktree", "remove", "--force", "--force", str(path))
        if path.exists():
            writable(path)
        self.git.run(*remove)
        if path.exists():
            shutil.rmtree(path)
            self.git.run(*remove)
        self.mark_file(path).unlink(missing_ok=True)

    def settle(self, git: Git, mark: Mark) -> None:
        """End whatever git has under way in a worktree, and forget the locks of a killed git."""
        private = Path(mark.git_dir)
        for name in ("index.lock", "HEAD.lock"):
            (private / name).unlink(missing_ok=True)
        for name, command in _UNDER_WAY.items():
            if (private / name).exists():
                git.run(command, "--quit")

    def go_to(self, git: Git, mark: Mark, commit: str) -> None:
        """The files of `commit` and no others, but for ignored ones."""
        self.settle(git, mark)
        git("checkout", "--quiet", "--force", "--detach", commit)
        git(*self.excludes(mark), "clean", "--quiet", "-d", "--force", "--force")

    def is_at(self, git: Git, mark: Mark, commit: str) -> bool:
        """Whether a worktree holds exactly `commit`, but for ignored files."""
        head = git.run("rev-parse", "--verify", "--quiet", "HEAD")
        if head.out.strip() != commit:
            return False
        look = ("status", "--porcelain", "-z", "--ignore-submodules=all", "--untracked-files=normal")
        status = git.run(*self.excludes(mark), *look)
        return status.ok and not status.out

    # -- what the set-up left ---------------------------------------------------------------

    def excludes(self, mark: Mark) -> tuple[str, ...]:
        """The option that hides what the set-up left, besides what the person ignores anyway."""
        file = Path(mark.git_dir, "rondel-exclude")
        return ("-c", f"core.excludesFile={file}") if file.exists() else ()

    def exclude_what_is_new(self, git: Git, mark: Mark) -> None:
        """Hide every file that is untracked now from later commits; undo changes to tracked ones."""
        git("reset", "--quiet", "--hard")
        self.exclude(git, mark, git.names("ls-files", "-z", "--others", "--exclude-standard", "--directory"))

    def exclude(self, git: Git, mark: Mark, names: Sequence[str]) -> None:
        """Hide these files from later commits, besides what the person ignores anyway."""
        if not names:
            return
        file = Path(mark.git_dir, "rondel-exclude")
        general = ""
        with suppress(OSError):
            own = "" if file.exists() else git.run("config", "--path", "core.excludesFile").out.strip()
            general = (file if file.exists() else Path(own or _default_excludes())).read_text(
                encoding="utf-8", errors="replace"
            )
        patterns = "\n".join(_pattern(name) for name in names)
        file.write_text(f"{general}\n{patterns}\n", encoding="utf-8", errors="replace")


def _load(file: Path) -> Mark | None:
    try:
        return Mark(**json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def _default_excludes() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "git" / "ignore"


def _pattern(name: str) -> str:
    """A file's name as a pattern that fits only this file."""
    return "/" + "".join(f"\\{c}" if c in "*?[]\\ !#" else c for c in name)


def read_only(path: Path) -> None:
    """Nobody writes in this folder by mistake."""
    _change(path, lambda mode: mode & ~0o222)


def writable(path: Path) -> None:
    """The owner may write in this folder again."""
    _change(path, lambda mode: mode | 0o200)


def _change(path: Path, change: Callable[[int], int]) -> None:
    """Change the mode of each folder and file below `path`; links are left alone."""
    for here, folders, names in os.walk(path, topdown=True):
        for entry in (here, *(os.path.join(here, name) for name in (*folders, *names))):  # noqa: PTH118
            with suppress(OSError):
                info = os.lstat(entry)
                if stat.S_ISREG(info.st_mode) or stat.S_ISDIR(info.st_mode):
                    os.chmod(entry, change(stat.S_IMODE(info.st_mode)))  # noqa: PTH101
