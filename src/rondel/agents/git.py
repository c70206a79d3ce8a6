"""Calling git: bounded in time, in a clean environment, without the repository's hooks.

Nothing asks, signs, opens an editor or runs a hook, and what git refuses is a GitError with
its own words.
"""

from __future__ import annotations

import errno
import os
import shlex
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rondel.agents import reflocks
from rondel.agents.environment import clean_env
from rondel.errors import GitError, MachineTrouble
from rondel.model.trouble import trouble, trouble_of, trouble_said

TIMEOUT_S = 600.0
_OPTIONS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.safecrlf=false",
    "core.editor=true",
    "sequence.editor=true",
    "commit.gpgSign=false",
    "commit.cleanup=whitespace",
    "trailer.separators=:",
    "i18n.commitEncoding=UTF-8",
    "i18n.logOutputEncoding=UTF-8",
    "log.showSignature=false",
    "merge.conflictStyle=merge",
    "merge.autoStash=false",
    "merge.verifySignatures=false",
    "rerere.enabled=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
)
_COMMITTING = ("commit-tree", "cherry-pick", "merge")  # what needs to know who commits
_PASSED = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "XDG_CONFIG_HOME")
_FIXED = {"LC_ALL": "C.UTF-8", "LANGUAGE": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_EDITOR": "true"}


held: ContextVar[tuple[int, ...]] = ContextVar("held", default=())  # files whose locks our gits share


@dataclass(frozen=True)
class Result:
    """What a git command said."""

    status: int
    out: str
    err: str

    @property
    def ok(self) -> bool:
        """Whether git agreed."""
        return self.status == 0

    @property
    def words(self) -> str:
        """Git's own words about what went wrong."""
        return (self.err.strip() or self.out.strip() or f"status {self.status}")[-2000:]


def check_machine(what: str, status: int, words: str) -> None:
    """MachineTrouble when a git that failed says that the machine has no room, files or memory for it."""
    if status == 0:
        return
    why = trouble_of(errno.EFBIG) if status == -signal.SIGXFSZ else trouble_said(words)
    if why is not None:
        raise MachineTrouble(f"{what} failed: {why}")


def _command(args: Sequence[str]) -> list[str]:
    return ["git", *(word for option in _OPTIONS for word in ("-c", option)), *args]


@dataclass(frozen=True)
class Git:
    """Git in one folder; with `git_dir`, of exactly that repository, whatever the folder holds."""

    folder: Path
    git_dir: Path | None = None
    index: Path | None = None  # instead of the repository's own

    def run(self, *args: str, stdin: str = "", timeout_s: float = TIMEOUT_S) -> Result:
        """Run a git command, whatever comes of it; GitError only when it cannot run or end."""
        said = stdin.encode(errors="replace")

        def call() -> Result:
            status, out, err = self._run(_command(args), args[0], said, timeout_s)
            return Result(status, out.decode(errors="replace"), err.decode(errors="replace"))

        return reflocks.try_again(call, lambda done: done.err, self.folder, " ".join((*args, stdin)))

    def raw(self, *args: str, stdin: bytes = b"") -> bytes:
        """The bytes that a git command gives, and is given: contents of files, and names of any kind."""
        status, out, err = self._run(_command(args), args[0], stdin, TIMEOUT_S)
        if status != 0:
            raise self._refused(args, Result(status, "", err.decode(errors="replace")))
        return out

    def script(self, name: str, text: str) -> Result:
        """Several commands in one process, which comes to its end also when its driver dies; see `typed`."""
        status, out, err = self._run(["sh", "-c", text], name, b"", TIMEOUT_S)
        return Result(status, out.decode(errors="replace"), err.decode(errors="replace"))

    @staticmethod
    def typed(*args: str) -> str:
        """A git command as a script has it."""
        return shlex.join(_command(args))

    def _run(
        self, command: Sequence[str], name: str, stdin: bytes, timeout_s: float
    ) -> tuple[int, bytes, bytes]:
        try:
            child = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self._env | (self._identity if name in _COMMITTING else {}),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=held.get(),  # a git that outlives its killed driver keeps the lock until it ends
            )
        except OSError as e:
            if (why := trouble(e)) is not None:
                raise MachineTrouble(f"git cannot run in {str(self.folder)!r}: {why}") from e
            if e.filename == "git":
                raise GitError("git is not installed, or not on the PATH") from e
            raise GitError(f"git cannot run in {self.folder}: {e.strerror}") from e
        try:
            out, err = child.communicate(stdin, timeout=timeout_s)
        except BaseException as e:
            with suppress(OSError):
                os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            if isinstance(e, subprocess.TimeoutExpired):
                raise GitError(f"git {name} did not end within {timeout_s:g} s") from e
            raise
        words = err.decode(errors="replace")
        check_machine(f"git {name} in {str(self.folder)!r}", child.returncode, words)
        return child.returncode, out, err

    def __call__(self, *args: str, stdin: str = "") -> str:
        """The output of a git command, without its last line end; GitError when git refuses."""
        result = self.run(*args, stdin=stdin)
        if not result.ok:
            raise self._refused(args, result)
        return result.out.removesuffix("\n")

    def names(self, *args: str) -> tuple[str, ...]:
        """The file names that a git command with `-z` gives."""
        return tuple(name for name in self(*args).split("\0") if name)

    def _refused(self, args: tuple[str, ...], result: Result) -> GitError:
        return GitError(f"git {args[0]} failed in {self.folder}: {result.words}")

    @cached_property
    def _env(self) -> dict[str, str]:
        env = clean_env(_PASSED, _FIXED)
        if self.index is not None:
            env["GIT_INDEX_FILE"] = str(self.index)
        if self.git_dir is not None:
            env |= {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.folder)}
        return env

    @cached_property
    def _identity(self) -> dict[str, str]:
        """Who commits, where neither the repository nor the person says so."""
        known = subprocess.run(
            ["git", "config", "user.email"], cwd=self.folder, env=self._env, capture_output=True, check=False
        )
        if known.stdout.strip():
            return {}
        who = {"NAME": "Rondel", "EMAIL": "rondel@localhost"}
        return {f"GIT_{role}_{what}": who[what] for role in ("AUTHOR", "COMMITTER") for what in who}
