"""Killed anywhere and started again, a session ends as if nothing had happened; no answer is paid for twice.

A workflow's tests say in a `Trial` how a fresh session is made and driven and what must be the
same afterwards; here it dies, goes on and is compared: the session's files, and what the person
has of their repository (`repository`). Whatever is asked of an agent is asked of a `Scripted` one:
it counts what was paid for.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

from rondel.model.refs import END
from rondel.testing.faults import die_anywhere_at, in_child
from rondel.testing.scripted import asked, paid

SETTLE_S = 10.0  # for a git that outlived its killed driver
RECORDS = {"written.jsonl", "restored.jsonl", "lock"}
Point = TypeVar("Point", int, float)  # the number of a fault point, or a time in seconds
TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?")
ID = re.compile(rb"\b[a-z]+-[0-9a-f]{16}\b")
MARK = re.compile(rb"\b[0-9a-f]{32}\b")
BASE = re.compile(rb'"base": "[0-9a-f]{40}"')
SEAL = re.compile(rb'"(seal|decided)": ("[0-9a-f]{64}"|\{[^{}]*\})')  # of a decision


def content(session: Path) -> dict[str, bytes]:
    """Every file of a session that is state: what a crash must not change.

    The record of what was written holds digests of texts with times in them, and one line more
    for each action that is done again; that of what was put back is of the last run.
    """
    return {
        str(p.relative_to(session)): p.read_bytes()
        for p in sorted(session.rglob("*"))
        if p.is_file() and ".torn-" not in p.name and p.name not in RECORDS
    }


def timeless(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """The same without what differs from trial to trial: moments, the random id, marks, seals, the base."""
    known = (
        (TIME, b"TIME"),
        (ID, b"ID"),
        (MARK, b"MARK"),
        (BASE, b'"base": "BASE"'),
        (SEAL, rb'"\1": "SEAL"'),
    )
    return {path: reduce(lambda d, k: k[0].sub(k[1], d), known, data) for path, data in files.items()}


def repository(root: Path, leave_out: str = "") -> dict[str, object]:
    """What a person has of their repository: each branch, HEAD, and their own working tree.

    Not what is below `leave_out`, where the session is, nor the settings, which name the test's own
    folders, nor the ids of commits and sessions.
    """
    others = (".git/", SETTINGS, leave_out or ".git/")
    heads = _git(root, "for-each-ref", "--format=%(refname:short)", "refs/heads").splitlines()
    return {
        **{f"branch {head}": _branch(root, head) for head in heads},
        "HEAD": _git(root, "symbolic-ref", "--quiet", "HEAD"),
        "status": [line for line in _status(root) if not line[3:].startswith(leave_out or "\0")],
        "files": {
            name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(root.rglob("*"))
            if path.is_file() and not (name := str(path.relative_to(root))).startswith(others)
        },
        "under way": sorted(UNDER_WAY & {p.name for p in (root / ".git").iterdir()}),
        "worktrees": sum("/read/" not in line for line in _git(root, "worktree", "list").splitlines()),
    }


SETTINGS = "rondel.toml"
UNDER_WAY = {"index.lock", "rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "MERGE_HEAD", "sequencer"}
_COMMIT = "--format=%s|%(trailers:key=Rondel-Action,valueonly,separator=%x2C)"


def _branch(root: Path, head: str) -> tuple[list[str], list[str]]:
    """The files of a branch by content, and its commits by what they say; parallel ones in any order."""
    commits = _git(root, "log", _COMMIT, END, head).splitlines()
    entries = _git(root, "ls-tree", "-r", "--full-tree", END, head).splitlines()
    return (
        [entry for entry in entries if not entry.endswith(f"\t{SETTINGS}")],
        sorted(re.sub(r"\|[^/]*/", "|", commit) for commit in commits),
    )


def _status(root: Path) -> list[str]:
    return [line for line in _git(root, "status", "--porcelain", "-z", "-uall").split("\0") if line]


def _git(root: Path, *words: str) -> str:
    quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    done = subprocess.run(["git", *words], cwd=root, env=quiet, capture_output=True, check=False)
    return done.stdout.decode(errors="replace").strip("\n")


class Trial:
    """One fresh session in a folder of its own."""

    root: Path  # the repository
    session: Path  # the session's folder in it

    def drive(self) -> int:
        """All the way to the end, as a person would; 0 when it got there. Carried out in a child."""
        raise NotImplementedError

    def shown(self) -> Mapping[str, object]:
        """What must be the same, however often it was killed."""
        return timeless(content(self.session))

    def repository(self) -> Mapping[str, object]:
        """What the person has besides the session, with the session's own id as `ID`."""
        top = self.session.relative_to(self.root).parts[0]
        return {k.replace(self.id, "ID"): v for k, v in repository(self.root, f"{top}/").items()}

    @property
    def id(self) -> str:
        """What is in the names of the session's branches, and is another one each time."""
        return self.session.name.removesuffix(".progress")

    def check_killed(self) -> None:
        """What must hold whenever it was killed."""

    def check_ended(self) -> None:
        """What must hold at the end, besides being the same."""


@dataclass(frozen=True)
class Undisturbed:
    """What a session shows and has paid for when nothing happened to it."""

    shown: Mapping[str, object]
    paid: Counter[str]
    repository: Mapping[str, object]


def undisturbed(trial: Trial) -> Undisturbed:
    """Drive a session to its end, and see what it leaves."""
    assert in_child(trial.drive) == 0
    trial.check_ended()
    return Undisturbed(trial.shown(), paid(trial.session), trial.repository())


def killed_and_resumed(
    trial: Trial, points: Iterable[Point], calm: Undisturbed, die: Callable[[Any], None] = die_anywhere_at
) -> bool:
    """Die at each of these points in turn, go on to the end, and compare. Whether it died at all."""
    ends = [_killed(trial, point, die) for point in points]
    assert _driven(trial, trial.drive) == 0
    trial.check_ended()
    assert_same(trial.shown(), calm.shown)
    assert_same(paid(trial.session), calm.paid)
    assert_same(_settled(trial, calm.repository), calm.repository)
    assert not list(trial.root.rglob(".rondel-tmp-*"))
    return any(ends)


def _killed(trial: Trial, point: Point, die: Callable[[Point], None]) -> bool:
    def doomed() -> int:
        die(point)
        return trial.drive()

    print("to be killed at", point)
    status = _driven(trial, doomed)
    assert status in (0, -signal.SIGKILL)
    trial.check_killed()
    return status != 0


def _driven(trial: Trial, work: Callable[[], int]) -> int:
    before = asked(trial.session)
    there = [action for action in before if (trial.session / action).is_file()]
    status = in_child(work)
    after = asked(trial.session)
    assert [a for a in there if after[a] != before[a]] == [], "these were there, and were asked for again"
    return status


def _settled(trial: Trial, wanted: Mapping[str, object]) -> Mapping[str, object]:
    """The repository, once the gits of killed drivers have ended."""
    deadline = time.monotonic() + SETTLE_S
    while (found := trial.repository()) != wanted and time.monotonic() < deadline:
        time.sleep(0.2)
    return found


def assert_same(found: Mapping[str, object], wanted: Mapping[str, object]) -> None:
    """AssertionError with what differs, and nothing else."""
    different = {k for k in {*found, *wanted} if found.get(k) != wanted.get(k)}
    assert {k: found.get(k) for k in different} == {k: wanted.get(k) for k in different}


def sweep(
    make: Callable[[Path], Trial],
    folder: Path,
    points: Iterable[int],
    calm: Undisturbed,
    *,
    least: int,
    die: Callable[[int], None] = die_anywhere_at,
) -> None:
    """Kill a fresh session at each of these points, until a point is beyond its end."""
    for point in points:
        own = folder / str(point)
        if not killed_and_resumed(make(own), [point], calm, die):
            assert point > least, "there are more points to die at than that"
            return
        shutil.rmtree(own)
    raise AssertionError("it never came to its end")
