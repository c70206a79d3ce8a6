"""Actions: what is due, named by the file it will leave.

`path` is relative to the session folder and is the identity of the action: the same
path is the same action in every run, on every machine. An action is done when its
workflow no longer plans it, which is when its files are there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Access(StrEnum):
    """What an agent or a command finds in its working folder."""

    NONE = "none"  # an empty scratch folder
    READ = "read"  # a checkout of `base`, shared, thrown away; what is written there goes nowhere
    WRITE = "write"  # a git worktree of its own, whose changes become one commit


@dataclass(frozen=True)
class Workspace:
    """Where an action works. Only WRITE leaves anything behind.

    A WRITE workspace starts at `base` (a commit); without one, where `target` is when it is
    made. What it changed becomes one commit with the trailer
    `Rondel-Action: <session id>/<path>`. With a `target` (a branch name) the commit is put on
    top of that branch by rebase, `checks` (a shell command) must pass there, and the branch
    is moved forward; otherwise it is left on a branch of its own and named in the outcome.
    Actions with the same `name` share one worktree, one after the other: what a command
    changed there is part of the ask's commit. A command with one to itself leaves nothing
    there: it is removed when the command has ended.
    """

    access: Access = Access.NONE
    base: str | None = None
    target: str | None = None
    checks: str | None = None
    name: str | None = None


SCRATCH = Workspace()


@dataclass(frozen=True)
class Ask:
    """Ask the agent that has `role`. Its prompt is made when it starts."""

    path: str
    role: str
    inputs: tuple[str, ...] = ()  # files of the session whose change makes the result stale
    workspace: Workspace = SCRATCH
    outputs: tuple[str, ...] = ()  # further files the result rewrites (a published copy)
    prompt_file: str | None = None  # where a person finds the prompt; else under .rondel/manual/
    reply_file: str | None = None  # where a person leaves the answer; else under .rondel/manual/
    title: str = ""


@dataclass(frozen=True)
class Run:
    """Run a command: an argument list, or one string for `bash -c`."""

    path: str
    command: tuple[str, ...] | str
    inputs: tuple[str, ...] = ()
    workspace: Workspace = SCRATCH
    outputs: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: str = ""
    timeout_s: float | None = None
    collect: tuple[str, ...] = ()  # files of the workspace that come back in the outcome
    attempts_max: int = 1
    exclusive: str | None = None  # at most one action with this word at a time
    setting: str = ""  # which one names the command; said where it cannot be run
    closed: bool = False  # it runs in a sandbox without a network, or not at all
    title: str = ""


@dataclass(frozen=True)
class Decide:
    """A person, or a gate, must answer. The answer is the file `path`, under .rondel/decisions/."""

    path: str
    question: str
    options: tuple[str, ...] = ("approve", "reject")
    inputs: tuple[str, ...] = ()
    title: str = ""


@dataclass(frozen=True)
class Probe:
    """Look at the repository: a diff, the standards. Its step says how."""

    path: str
    name: str
    args: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    title: str = ""
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Derive:
    """Nothing to ask: the files follow from the state."""

    path: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    title: str = ""


Action = Ask | Run | Decide | Probe | Derive


DEFAULT = "default"


def match_role(table: Mapping[str, str], role: str) -> str | None:
    """The agent that `[roles]` gives to `role`; None when nothing fits and there is no default.

    `review` fits every role below it, word by word: `review.reviewer` but not `reviewed`.
    The last word also fits with a number behind it, so `review.reviewer.security` fits
    `review.reviewer.security-1`, and `review.reviewer.security-1` itself comes first.
    """
    words = role.split(".")
    best = max((fit, key) for key in (*table, "") if (fit := _fit(words, key)) is not None)
    return table.get(best[1] or DEFAULT)


def _fit(words: list[str], key: str) -> tuple[int, bool] | None:
    """How many words of the role the key fits and whether exactly; None when it does not."""
    if not key:
        return 0, False
    wanted = key.split(".")
    if wanted == words[: len(wanted)]:
        return len(wanted), True
    numbered = (
        len(wanted) == len(words)
        and wanted[:-1] == words[:-1]
        and re.fullmatch(re.escape(wanted[-1]) + r"-\d+", words[-1])
    )
    return (len(wanted), False) if numbered else None
