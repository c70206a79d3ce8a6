"""Calling git: the one place that makes its command lines and its environment.

Bounded in time, in a clean environment. Nothing asks, signs, opens an editor, runs a hook or any other
program that the repository names (`rondel.repo.config`), and what git refuses is a GitError with
its own message. Values are given after `END`, or after `--`: what stands there is never an
option.
"""

from __future__ import annotations

import errno
import os
import shlex
import signal
import stat
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rondel import paths
from rondel.errors import GitError, MachineTrouble
from rondel.model.refs import END, is_operand
from rondel.model.trouble import trouble_of, trouble_said
from rondel.processes.environment import clean_env
from rondel.repo import reflocks
from rondel.repo.config import (
    FILTER_KEYS,
    brought,
    config_files,
    is_independent,
    lacks_objects,
    not_started,
    overrides,
    own_filters,
)

TIMEOUT_S = 600.0
GRACE_S = 2.0  # for a git that is told to end
PATIENCE_S = 3.0  # before it is looked for what keeps a git
_CONFIG = (
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.quotePath", "false"),
    ("core.safecrlf", "false"),
    ("core.editor", "true"),
    ("sequence.editor", "true"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("push.gpgSign", "false"),
    ("commit.cleanup", "whitespace"),
    ("trailer.separators", ":"),
    ("i18n.commitEncoding", "UTF-8"),
    ("i18n.logOutputEncoding", "UTF-8"),
    ("log.showSignature", "false"),
    ("merge.conflictStyle", "merge"),
    ("merge.autoStash", "false"),
    ("merge.verifySignatures", "false"),
    ("rerere.enabled", "false"),
    ("submodule.recurse", "false"),
    ("status.submoduleSummary", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("push.recurseSubmodules", "no"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("advice.detachedHead", "false"),
    ("safe.bareRepository", "explicit"),
    ("protocol.ext.allow", "never"),
)
_PATCHES = ("--no-ext-diff", "--no-textconv")  # no program makes, or prepares, what is compared
_OUTSIDE = "--ignore-submodules=dirty"  # a look into a submodule would follow the configuration in there
_ALWAYS: Mapping[str, tuple[str, ...]] = {  # the options that a command always has
    "diff": (*_PATCHES, _OUTSIDE),
    "diff-files": (*_PATCHES, _OUTSIDE),
    "diff-index": (*_PATCHES, _OUTSIDE),
    "diff-tree": _PATCHES,
    "log": _PATCHES,
    "show": _PATCHES,
    "status": (_OUTSIDE,),
    "fetch": ("--no-recurse-submodules", "--upload-pack=git-upload-pack"),
    "push": ("--recurse-submodules=no", "--receive-pack=git-receive-pack"),
}
_NO_END = ("checkout", "reset")  # which know no END: what stands there is checked all the same
_COMMITTING = ("commit", "commit-tree", "cherry-pick", "merge")  # what needs to know who commits
# What is not repeated as it is: git may have made its commit, and moved to it, before it failed.
_ONCE = ("commit", "cherry-pick")
_PASSED = (
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_ALLOW_PROTOCOL",
    "XDG_CONFIG_HOME",
)
_FIXED = {
    "LC_ALL": "C.UTF-8",
    "LANGUAGE": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_ASKPASS": "",
    "GIT_PROXY_COMMAND": "",  # it is there: core.gitProxy does not count
    "GIT_TEMPLATE_DIR": "",
    "GIT_NO_REPLACE_OBJECTS": "1",  # a commit is what its name says, and came after what it names
    "GIT_GRAFT_FILE": "/dev/null/none",
}
# No other command has a network: what a partial clone lacks is fetched after consent alone. Not every git
# knows the variable for that; all of them know of protocols.
_TRANSPORTING = ("fetch", "push")
_NO_FETCH = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
_PARTIAL = (
    "this is a partial clone, and fetches what it lacks after your yes: `rondel trust` shows where from"
)
_NONE = ("unspecified", "unset", "set")  # values of an attribute that name nothing
_PROTOCOLS = "file:git:http:https:ssh"  # any other is a program of its own


def _variables(entries: Iterable[tuple[str, str]], first: int = 0) -> dict[str, str]:
    """Keys of git's configuration as variables; their number is another one."""
    found: dict[str, str] = {}
    for number, (key, value) in enumerate(entries, first):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


_FIXED_CONFIG = _variables(_CONFIG)
held: ContextVar[tuple[int, ...]] = ContextVar("held", default=())  # files whose locks our gits share


class GitStopped(GitError):
    """A git was ended, or not started, since the run that it is for was told to end."""


class Calls:
    """The gits of one run, whichever threads wait for them: they end when the run is told to."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self.ended = False

    def end(self) -> None:
        """End those that run, with time to remove their locks; no other one starts."""
        with self._lock:
            self.ended = True
            for child in self._running:
                _end(child, signal.SIGTERM)
            if self._running:
                killer = threading.Timer(GRACE_S, self._kill)
                killer.daemon = True
                killer.start()

    def _kill(self) -> None:
        with self._lock:
            for child in self._running:
                _end(child)

    @contextmanager
    def running(self, child: subprocess.Popen[bytes]) -> Iterator[None]:
        """While a git is waited for."""
        with self._lock:
            self._running.add(child)
            if self.ended:
                _end(child)
        try:
            yield
        finally:
            with self._lock:
                self._running.discard(child)


# Those of the run that is under way here; outside of one, and where a git is not to be ended, none.
calls: ContextVar[Calls | None] = ContextVar("calls", default=None)


@contextmanager
def to_the_end() -> Iterator[None]:
    """The gits in here come to their own end, whatever the run is told."""
    token = calls.set(None)
    try:
        yield
    finally:
        calls.reset(token)


class NotAValue(GitError):
    """What is to be given to git as a value would be an option, or nothing."""


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
    def message(self) -> str:
        """What git says about what went wrong."""
        return (self.err.strip() or self.out.strip() or f"status {self.status}")[-2000:]


def check_machine(what: str, status: int, words: str) -> None:
    """MachineTrouble when a git that failed says that the machine has no room, files or memory for it."""
    if status == 0:
        return
    why = trouble_of(errno.EFBIG) if status == -signal.SIGXFSZ else trouble_said(words)
    if why is not None:
        raise MachineTrouble(f"{what} failed: {why}")


def _encoded(text: str) -> bytes:
    """A text as git is given it; a name that is not UTF-8 (`os.fsdecode`) has its own bytes again."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode(errors="replace")


def _end(child: subprocess.Popen[bytes], number: signal.Signals = signal.SIGKILL) -> None:
    with suppress(OSError):
        os.killpg(child.pid, number)


def command(args: Sequence[str]) -> list[str]:
    """A git command line; GitError where a value in it could be taken for an option."""
    at = _subcommand(args)
    options = [word for word in _ALWAYS.get(args[at], ()) if not _says(args, word)]
    rest = list(args[at + 1 :])
    if END in rest:
        end = rest.index(END)
        tail = rest[end + 1 :]
        for word in tail[: tail.index("--")] if "--" in tail else tail:
            if not is_operand(word):
                raise NotAValue(
                    f"git {args[at]} is not given {word!r}: that is no name of a commit or a file"
                )
        if args[at] in _NO_END:
            rest = rest[:end] + tail + ([] if "--" in tail else ["--"])
    return ["git", "--no-pager", *args[: at + 1], *options, *rest]


def endless(folder: Path, configs: Iterable[Path]) -> Path | None:
    """A pipe or a device where git reads a file, which it would never end to do; None where there is none.

    In a git folder that is any file, in the working tree those that git has names for.
    """
    own = dict.fromkeys(file.parent for file in configs)
    places = ((at, "") for at in own if at.is_dir())
    for place, start in (*places, (folder, ".git"), (folder, ".mailmap")):
        for here, folders, names in paths.walk(place):
            folders[:] = [name for name in folders if not start or name != ".git"]
            for name in names:
                if name.startswith(start) and not _is_regular(Path(here, name)):
                    return Path(here, name)
    return None


def _is_regular(file: Path) -> bool:
    """Whether this is a file, or a link to nothing."""
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except OSError:
        return True


def _subcommand(args: Sequence[str]) -> int:
    """Which of the words is git's command: options of git itself stand before it."""
    at = 0
    while args[at].startswith("-"):
        at += 2 if args[at] == "-c" else 1
    return at


def _says(args: Sequence[str], option: str) -> bool:
    """Whether a caller has this option already, with whatever value."""
    return any(word.partition("=")[0] == option.partition("=")[0] for word in args)


@dataclass(frozen=True)
class Git:
    """Git in one folder; with `git_dir`, of exactly that repository, whatever the folder holds."""

    folder: Path
    git_dir: Path | None = None
    index: Path | None = None  # instead of the repository's own
    strict_filters: bool = False  # git refuses a file whose filter may not run, and takes none as it is
    by_agents: bool = False  # agents wrote what is there: a filter that takes orders from it does not run

    def run(self, *args: str, stdin: str = "", timeout_s: float = TIMEOUT_S) -> Result:
        """Run a git command, whatever comes of it; GitError only when it cannot run or end."""
        name, said = args[_subcommand(args)], _encoded(stdin)

        def call() -> Result:
            status, out, err = self._run(command(args), name, said, timeout_s)
            return Result(status, out.decode(errors="replace"), err.decode(errors="replace"))

        if name in _ONCE:
            return call()
        return reflocks.try_again(call, lambda done: done.err, self.folder, " ".join((*args, stdin)))

    def raw(self, *args: str, stdin: bytes = b"") -> bytes:
        """The bytes that a git command prints, and is sent: contents of files, and names of any kind."""
        status, out, err = self._run(command(args), args[_subcommand(args)], stdin, TIMEOUT_S)
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
        return shlex.join(command(args))

    def _run(
        self, command: Sequence[str], name: str, stdin: bytes, timeout_s: float
    ) -> tuple[int, bytes, bytes]:
        ours = calls.get()
        if ours and ours.ended:
            raise GitStopped(f"git {name} was not started: the run was told to end")
        try:
            child = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.env | self._more(name),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                pass_fds=held.get(),  # a git that outlives its killed driver keeps the lock until it ends
            )
        except OSError as e:
            raise not_started(self.folder, e) from e
        try:
            with ours.running(child) if ours else nullcontext():
                out, err = self._ended(child, stdin, timeout_s)
        except BaseException as e:
            _end(child)
            child.communicate()
            if isinstance(e, subprocess.TimeoutExpired):
                raise GitError(f"git {name} did not end within {timeout_s:g} s") from e
            raise
        if ours and ours.ended and child.returncode:
            raise GitStopped(f"git {name} was ended: the run was told to end")
        words = err.decode(errors="replace")
        check_machine(f"git {name} in {str(self.folder)!r}", child.returncode, words)
        return child.returncode, out, err

    def _ended(self, child: subprocess.Popen[bytes], stdin: bytes, timeout_s: float) -> tuple[bytes, bytes]:
        """What a git said until it ended. One that would wait for a pipe for ever is not waited for."""
        kept_by = list[Path]()

        def look() -> None:
            if (found := endless(self.folder, config_files(self.folder, self.git_dir))) is not None:
                kept_by.append(found)
                _end(child)

        watch = threading.Timer(PATIENCE_S, look)
        watch.daemon = True
        watch.start()
        try:
            out, err = child.communicate(stdin, timeout=timeout_s)
        finally:
            watch.cancel()
        if kept_by and child.returncode:
            raise GitError(f"{kept_by[0]} is no regular file, and git reads it; move it away")
        return out, err

    def __call__(self, *args: str, stdin: str = "") -> str:
        """The output of a git command, without its last line end; GitError when git refuses."""
        result = self.run(*args, stdin=stdin)
        if not result.ok:
            raise self._refused(args, result)
        return result.out.removesuffix("\n")

    def names(self, *args: str) -> tuple[str, ...]:
        """The file names that a git command with `-z` prints, as text for a person or a document."""
        return tuple(name for name in self(*args).split("\0") if name)

    def paths(self, *args: str) -> list[str]:
        """The same as the system has them, so that a name that is no UTF-8 still opens its file."""
        return [os.fsdecode(word) for word in self.raw(*args).split(b"\0") if word]

    def _refused(self, args: tuple[str, ...], result: Result) -> GitError:
        partial = lacks_objects(self.folder, self.git_dir, self._clean)
        why = f"; {_PARTIAL}" if partial else ""
        return GitError(f"git {args[_subcommand(args)]} failed in {self.folder}: {result.message}{why}")

    @property
    def env(self) -> dict[str, str]:
        """The environment of git here, and of any program that calls git here itself."""
        found = overrides(self.folder, self.git_dir, self._clean)
        entries = (*found.config(strict_filters=self.strict_filters), *self._dependent())
        more = _variables(entries, len(_CONFIG))
        count = {"GIT_CONFIG_COUNT": str(len(_CONFIG) + len(more) // 2)}
        env = {**self._clean, **_FIXED_CONFIG, **more, **count}
        return env if found.may_fetch else env | _NO_FETCH

    def _dependent(self) -> list[tuple[str, str]]:
        """What keeps filters from running that would run what agents wrote."""
        if not self.by_agents:
            return []
        required = "true" if self.strict_filters else "false"
        return [
            (f"filter.{name}.{key}", required if key == "required" else "")
            for name, keys in own_filters(self.folder, self.git_dir, self._clean).items()
            if not is_independent(keys)
            for key in FILTER_KEYS
        ]

    @cached_property
    def _clean(self) -> dict[str, str]:
        env = clean_env(_PASSED, _FIXED)
        env.setdefault("GIT_ALLOW_PROTOCOL", _PROTOCOLS)
        if self.index is not None:
            env["GIT_INDEX_FILE"] = str(self.index)
        if self.git_dir is not None:
            env |= {"GIT_DIR": str(self.git_dir), "GIT_WORK_TREE": str(self.folder)}
        return env

    def brought(self) -> dict[str, dict[str, str]]:
        """What only the repository's configuration says and counts after consent, with its keys."""
        common = Path(self("rev-parse", "--git-common-dir"))
        return brought(self.folder, (self.folder / common).resolve(), self._clean)

    def unfiltered(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of these files whose attributes name a filter that may not run: git has them as they are."""
        stdin = "".join(f"{name}\0" for name in names)
        words = self("check-attr", "-z", "--stdin", "filter", stdin=stdin).split("\0") if stdin else []
        named = {
            name: value for name, value in zip(words[::3], words[2::3], strict=False) if value not in _NONE
        }
        there = own_filters(self.folder, self.git_dir, self._clean) if named else {}
        allowed = {n for n, keys in there.items() if not self.by_agents or is_independent(keys)}
        return tuple(name for name, value in named.items() if value not in allowed)

    def _more(self, name: str) -> dict[str, str]:
        """What a command needs besides: who commits, and a network where it is there for that."""
        if name in _TRANSPORTING:
            return {"GIT_ALLOW_PROTOCOL": os.environ.get("GIT_ALLOW_PROTOCOL", _PROTOCOLS)}
        return self._identity if name in _COMMITTING else {}

    @cached_property
    def _identity(self) -> dict[str, str]:
        """Who commits, where neither the repository nor the person says so."""
        if self.run("config", "user.email").out.strip():
            return {}
        who = {"NAME": "Rondel", "EMAIL": "rondel@localhost"}
        return {f"GIT_{role}_{what}": who[what] for role in ("AUTHOR", "COMMITTER") for what in who}
