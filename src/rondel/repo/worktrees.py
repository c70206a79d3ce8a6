"""Worktrees: git's working copies of ours, each with a mark that says whose it is.

The mark lies beside the worktree, not in it, and names its private git folder: whatever an
agent does to the files, git never works on another repository by mistake.

A worktree is removed under another name. It has lost its own, in one step that lasts, before the
first of its files goes: what a killed driver has half removed is nobody's edit.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import threading
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from rondel import paths
from rondel.errors import GitError, NewerFile
from rondel.model import jsons
from rondel.model.names import digest
from rondel.model.refs import END, is_commit, is_operand
from rondel.model.trouble import machine
from rondel.model.versions import VERSION, message, newer
from rondel.repo.git import Git, held
from rondel.repo.sizes import EditMax

LOCK_S = 3600.0
REMOVED = "rondel-removed"  # where git's notes about a worktree go while they are removed
KINDS = ("read", "write")  # the folders of worktrees
GOING = ".removed-"  # in the name of a worktree whose files are being removed
ASIDE = ".kept-"  # in the name of one whose files a person may want, and git cannot hold
TREE_LOCKS = 64  # as many files, however many worktrees there are
_SETTINGS = (
    r"^(core\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|longpaths|excludesfile)"
    r"|extensions\.objectformat|user\.(name|email))$"
)
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
    hidden: str = ""  # a path in it that is no part of the edit


class Worktrees:
    """The worktrees of one repository, below one folder."""

    def __init__(
        self, repo: Path, root: Path, most: EditMax | None = None, unedited: tuple[str, ...] = ()
    ) -> None:
        self.repo = repo
        self.root = root
        self.most = most or EditMax()
        self.unedited = unedited  # patterns of what is no part of any edit
        self.git = Git(repo)
        self._stop = threading.Event()
        self._gates: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    @cached_property
    def common(self) -> Path:
        """The repository's own git folder, which all its worktrees share."""
        own = self.repo / ".git"
        if (own / "HEAD").is_file():
            return own.resolve()
        return (self.repo / self.git("rev-parse", "--git-common-dir")).resolve()

    @cached_property
    def settings(self) -> dict[str, str]:
        """The repository's settings that decide how files become objects, and who commits."""
        found = self.git.run("config", "--local", "-z", "--get-regexp", _SETTINGS).out
        return dict(entry.partition("\n")[::2] for entry in found.split("\0") if entry)

    @contextmanager
    def locked(self, what: str, wait_s: float = LOCK_S) -> Iterator[None]:
        """One at a time on this machine; the kernel lets go when its holder dies."""
        deadline = time.monotonic() + wait_s
        gate = self._gates[what]  # our own threads wait here, without looking again and again
        while not gate.acquire(timeout=min(1.0, max(0.0, wait_s))):
            self._give_up(what, deadline)
        try:
            with (self.common / f"rondel-{what}.lock").open("a") as file:
                while not _flock(file):
                    self._give_up(what, deadline)
                    self._stop.wait(0.05)
                token = held.set((*held.get(), file.fileno()))
                try:
                    yield
                finally:
                    held.reset(token)
        finally:
            gate.release()

    @contextmanager
    def tree_locked(self, path: Path) -> Iterator[None]:
        """One at a time in a worktree: also a git that outlives its killed driver ends first."""
        with self.locked(f"tree-{int(digest(path.name)[:8], 16) % TREE_LOCKS:02}"):
            yield

    def _give_up(self, what: str, deadline: float) -> None:
        if self._stop.is_set() or time.monotonic() > deadline:
            name = self.common / f"rondel-{what}.lock"
            raise GitError(f"{name} is held by another process; try again later")

    def close(self) -> None:
        """Wait for no lock any more."""
        self._stop.set()

    def tip(self, ref: str) -> str | None:
        """Where a ref is, read from git's own files where they tell; None when there is no such ref."""
        try:
            text = (self.common / ref).read_text(encoding="ascii").strip()
        except FileNotFoundError:
            text = self._packed(ref)
        except (OSError, ValueError):
            text = ""
        if is_commit(text):
            return text
        return self.git.run("rev-parse", "--verify", "--quiet", END, ref).out.strip() or None

    def _packed(self, ref: str) -> str:
        """Where a ref without a file of its own is."""
        try:
            text = (self.common / "packed-refs").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        found = re.search(rf"^([0-9a-f]+) {re.escape(ref)}$", text, re.MULTILINE)
        return found[1] if found else ""

    def commit_of(self, name: str) -> str:
        """The commit that a branch, a tag or a digest means."""
        if name.startswith("refs/heads/") and (tip := self.tip(name)):
            return tip
        look = ("rev-parse", "--verify", "--quiet")
        if is_operand(name) and (found := self.git.run(*look, END, f"{name}^{{commit}}")).ok:
            return found.out.strip()
        _ = self.common  # says it when this is no repository at all
        if not self.git.run("rev-parse", "--verify", "--quiet", "HEAD").ok:
            raise GitError(f"the repository {self.repo} has no commit yet; commit something first")
        raise GitError(f"there is no commit {name!r} in {self.repo}")

    # -- marks ----------------------------------------------------------------------------

    def mark(self, path: Path) -> Mark | None:
        """The mark of a worktree that is there; None for one that cannot be relied on."""
        mark = self.noted(path)
        whole = mark is not None and path.is_dir() and Path(mark.git_dir, "HEAD").is_file()
        return mark if whole else None

    def noted(self, path: Path) -> Mark | None:
        """The mark of a worktree, whole or not."""
        return _load(self.mark_file(path))

    def save(self, path: Path, mark: Mark) -> Mark:
        """Note how far a worktree got; that lasts."""
        write_note(self.mark_file(path), asdict(mark))
        return mark

    def mark_file(self, path: Path) -> Path:
        """Where a worktree's mark is: beside it."""
        return path.with_name(f"{path.name}.json")

    def marks(self, kind: str) -> Iterator[tuple[Path, Mark]]:
        """Every mark of a kind, also of worktrees that are not whole any more."""
        for file in sorted((self.root / kind).glob("*.json")):
            with suppress(NewerFile):
                if (mark := _load(file)) is not None:
                    yield file.with_suffix(""), mark

    def unmarked(self) -> list[Path]:
        """What has the place of a worktree and no mark: a driver died while it made or removed one."""
        there = (p for kind in KINDS for p in (self.root / kind).glob("*") if p.is_dir())
        ours = (p for p in there if GOING not in p.name and ASIDE not in p.name)
        return [path for path in ours if not self.mark_file(path).exists()]

    # -- worktrees ------------------------------------------------------------------------

    def in_tree(self, path: Path, mark: Mark) -> Git:
        """Git in a worktree, and nowhere else."""
        return Git(path, Path(mark.git_dir), by_agents=True)

    def add(self, path: Path, session: str, key: str, base: str) -> Mark:
        """A fresh worktree at `base`, on no branch, with a mark that does not say ready yet.

        Only git's own list of worktrees is changed one at a time: a git that reads the list
        while another changes it may fail. The files come afterwards.
        """
        if path.exists() or self.mark_file(path).exists() or self._is_registered(path):
            self.drop(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with self.locked("worktrees"):
            self.git(
                "worktree",
                "add",
                "--quiet",
                "--force",
                "--force",
                "--detach",
                "--no-checkout",
                END,
                str(path),
                base,
            )
        private = (path / ".git").read_text(encoding="utf-8").removeprefix("gitdir:").strip()
        mark = self.save(path, Mark(session, key, base, str(Path(private).resolve())))
        self.in_tree(path, mark)("read-tree", "--reset", "-u", base)
        return mark

    def _is_registered(self, path: Path) -> bool:
        """Whether git has a worktree at this path, were it only by name."""
        wanted = str(path / ".git")
        for file in (self.common / "worktrees").glob(f"{path.name}*/gitdir"):
            with suppress(OSError):
                if file.read_text(encoding="utf-8", errors="replace").strip() == wanted:
                    return True
        return False

    def drop(self, path: Path) -> None:
        """Remove a worktree, also one that was never whole. From the first step on it is none.

        Its name and its mark are gone for good before the first of its files goes, and before
        another worktree gets its name. What a death leaves is removed by `tidy`.
        Not by `git worktree prune`: that would forget a person's own on a disk not mounted now.
        """
        # A name of its own each time: what an earlier removal left half done may still have one.
        going = path.with_name(f"{path.name}{GOING}{uuid.uuid4().hex[:8]}")
        try:
            if path.exists():
                path.rename(going)  # from here on it is no worktree, whatever is still in it
            if not self._unlist(path):
                with self.locked("worktrees"):
                    self.git.run("worktree", "remove", "--force", "--force", END, str(path))
            file = self.mark_file(path)
            _half_written(file).unlink(missing_ok=True)
            file.unlink(missing_ok=True)
            if path.parent.is_dir():
                sync_folder(path.parent)
        except OSError as e:
            raise GitError(f"the worktree {path} cannot be removed: {e.strerror}") from e
        paths.remove_tree(going, ignore_errors=True)

    def _unlist(self, path: Path) -> bool:
        """Take a worktree that is surely ours out of git's list, in one step; whether that was done."""
        mark = self.noted(path)
        private = Path(mark.git_dir) if mark is not None else None
        if private is None or private.parent != self.common / "worktrees":
            return False
        spot = self.common / REMOVED / uuid.uuid4().hex
        try:
            if (private / "gitdir").read_text(encoding="utf-8").strip() != str(path / ".git"):
                return False
            spot.parent.mkdir(exist_ok=True)
            with self.locked("worktrees"):
                private.rename(spot)
        except OSError:
            return False
        paths.remove_tree(spot, ignore_errors=True)
        return True

    def tidy(self) -> None:
        """Remove what dropped worktrees left half removed, and the folder for git's notes about them."""
        for kind in KINDS:
            for half in (self.root / kind).glob(f"*{GOING}*"):
                paths.remove_tree(half, ignore_errors=True)
        paths.remove_tree(self.common / REMOVED, ignore_errors=True)

    def head(self, mark: Mark) -> str:
        """The commit that a worktree is at."""
        text = Path(mark.git_dir, "HEAD").read_text(encoding="utf-8", errors="replace").strip()
        if is_commit(text):
            return text
        return Git(self.repo, Path(mark.git_dir))("rev-parse", "HEAD")

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
        git("checkout", "--quiet", "--force", "--detach", END, commit)
        git(*self.excludes(mark), "clean", "--quiet", "-d", "--force", "--force")

    def is_at(self, git: Git, mark: Mark, commit: str, *, submodules: bool = False) -> bool:
        """Whether a worktree holds exactly `commit`, but for ignored files; `submodules` at their commits."""
        try:
            if self.head(mark) != commit:
                return False
        except (GitError, OSError):
            return False
        ignored = "dirty" if submodules else "all"
        look = ("status", "--porcelain", "-z", f"--ignore-submodules={ignored}", "--untracked-files=normal")
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
        self.exclude(mark, git.names("ls-files", "-z", "--others", "--exclude-standard", "--directory"))

    @cached_property
    def _general_excludes(self) -> Path:
        own = self.git.run("config", "--path", "core.excludesFile").out.strip()
        return Path(own or _default_excludes())

    def exclude(self, mark: Mark, names: Sequence[str]) -> None:
        """Hide these files from later commits, besides what the person ignores anyway."""
        if not names:
            return
        file = Path(mark.git_dir, "rondel-exclude")
        general = ""
        with suppress(OSError):
            known = file if file.exists() else self._general_excludes
            general = known.read_text(encoding="utf-8", errors="replace")
        patterns = "\n".join(_pattern(name) for name in names)
        file.write_text(f"{general}\n{patterns}\n", encoding="utf-8", errors="replace")


def _flock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _half_written(mark_file: Path) -> Path:
    """A mark before it has its name; one that a killed driver leaves goes with its worktree."""
    return mark_file.with_suffix(".tmp")


def write_note(file: Path, note: dict[str, object]) -> None:
    """A note of ours is there, whole, and lasts."""
    temporary = _half_written(file)
    with temporary.open("w", encoding="utf-8") as f:
        json.dump({"schema_version": VERSION, **note}, f)
        f.flush()
        os.fsync(f.fileno())
    temporary.replace(file)
    sync_folder(file.parent)


def read_note(file: Path) -> dict[str, Any]:
    """What such a note says; OSError, ValueError or TypeError where it is none. NewerFile: it is not ours."""
    with machine("read", file):  # one that cannot be opened now is not missing
        found = jsons.load(file.read_bytes())
    if (version := newer(found)) is not None:
        raise NewerFile(message(str(file), version, VERSION))
    if not isinstance(found, dict):
        raise TypeError(f"{file} is no JSON object")
    return {name: value for name, value in found.items() if name != "schema_version"}


def _load(file: Path) -> Mark | None:
    """A mark; None for one that is damaged. One of a newer Rondel is an error: its worktree is not ours."""
    try:
        return Mark(**read_note(file))
    except (OSError, ValueError, TypeError):
        return None


def _default_excludes() -> Path:
    config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(config) / "git" / "ignore"


def _pattern(name: str) -> str:
    """A file's name as a pattern, on one line, that fits this file; a line end in it is any character."""
    return "/" + "".join("?" if c in "\r\n" else f"\\{c}" if c in "*?[]\\ !#" else c for c in name)


def sync_folder(folder: Path) -> None:
    """After this the names in a folder survive a power loss."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_only(path: Path) -> None:
    """Nobody writes in this folder by mistake."""
    _change(path, lambda mode: mode & ~0o222)


def writable(path: Path) -> None:
    """The owner may write in this folder again."""
    _change(path, lambda mode: mode | 0o200)


def _change(path: Path, change: Callable[[int], int]) -> None:
    """Change the mode of each folder and file from `path` on; links are left alone, and not followed."""
    for fd, here, folders, names in paths.walk_open(path):
        for name in (*([] if here else ["."]), *folders, *names):
            with suppress(OSError):
                paths.change_mode(name, fd, change)
