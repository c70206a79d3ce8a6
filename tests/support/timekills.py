"""Killed by the clock: the real command, in a real repository of many files, ended by SIGKILL at any moment.

Where `support.kills` dies at each step once, here the moments are random, so that they also fall
into what takes long: thousands of files being checked out, looked at or removed, by us or by a git
that goes on alone. The seed of a trial is its number, so a failure can be repeated. RONDEL_SWEEP=1
makes all of them, in a repository of 5,000 files; otherwise each commit makes another one, in a smaller one.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rondel.testing.kills import SETTLE_S, TIME, assert_same, content, repository
from rondel.testing.scripted import run_of
from support import repos
from support.kills import commit_number
from support.person import YES

WHOLE = bool(os.environ.get("RONDEL_SWEEP"))
FILES = 5000 if WHOLE else 500
TRIALS = 10  # of each workflow at least; of a share, one of them
TRIALS_MAX = 40
KILLS = 3 if WHOLE else 2  # in each trial, one after the other
KILLS_MIN = 30  # of each workflow, in a whole sweep
ENDED = (0, 5)  # done, or nothing more to do
AGENT = Path(__file__).with_name("timed_agent.py")
_ID = re.compile(rb"\b(?:[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32}|[0-9a-f]{12})\b")
_LOGS = (".log", "timeline.md")
_OURS = re.compile(r"\.rondel/(request-\d+|session)\.json$")  # another one for each time a person asks


def git(folder: Path, *words: str) -> str:
    moment = "2026-11-15T12:00:00Z"  # the same commits get the same ids in each copy
    return repos.git(folder, *words, GIT_AUTHOR_DATE=moment, GIT_COMMITTER_DATE=moment)


def large_repository(root: Path) -> Path:
    """Many files, and a person who is in the middle of something."""
    for n in range(FILES):
        path = root / f"src/{n % 50:02}/{n // 50:02}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{n}\n" * 20)
    (root / ".gitignore").write_text("rondel.toml\nrules.json\n.workflow/\n.aiwf/\n.ocr/\ndocs/features/\n")
    git(root, "init", "-q", "-b", "main")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    (root / "src/00/00.txt").write_text("theirs, not committed\n")
    (root / "theirs.txt").write_text("not even added\n")
    return root


@dataclass
class Scene:
    """A session in a repository of its own, and what a person types to run it and to go on."""

    root: Path
    home: str  # where the sessions of its workflow are, in the repository
    command: tuple[str, ...]
    resume: tuple[str, ...]

    def __post_init__(self) -> None:
        self._requests = self._count_requests()

    @property
    def session(self) -> Path:
        """The one session; a place that is not there, before somebody has begun it."""
        below = (self.root / self.home).glob("*/")
        return next((folder for folder in below if folder.is_dir()), self.root / self.home / "none")

    def _count_requests(self) -> int:
        return len(list(self.session.glob(".rondel/request-*.json")))

    @property
    def id(self) -> str:
        return self.session.name.removesuffix(".progress")

    def popen(self, words: tuple[str, ...]) -> subprocess.Popen[str]:
        home = self.root.parent / "home"
        home.mkdir(exist_ok=True)
        own = {"HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
        env = {"PATH": os.environ["PATH"], **own, **repos.GIT_ENV, **YES}
        return subprocess.Popen(
            [sys.executable, "-m", "rondel", *words],
            cwd=self.root,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def words(self) -> tuple[str, ...]:
        """What goes on: before the first word was noted, that is to say it again."""
        return self.resume if self._count_requests() > self._requests else self.command

    def to_the_end(self) -> float:
        """Run to the end, undisturbed; the seconds it took."""
        began = time.monotonic()
        child = self.popen(self.words())
        out, _ = child.communicate(timeout=300)
        assert child.returncode in ENDED, f"{child.args}: {child.returncode}\n{out}"
        assert "Traceback" not in out, out
        return time.monotonic() - began

    def killed(self, after_s: float) -> bool:
        """Run, and be killed after a while; whether that was before the end."""
        child = self.popen(self.words())
        try:
            child.wait(after_s)
        except subprocess.TimeoutExpired:
            os.kill(child.pid, signal.SIGKILL)
        child.communicate()
        assert child.returncode in (*ENDED, -signal.SIGKILL)
        return child.returncode < 0

    def files(self) -> dict[str, bytes]:
        """The files of the session, without moments, commits and ids; logs in any order, as agents end."""
        found = {p: d for p, d in content(self.session).items() if not _OURS.search(p)}
        return {path.replace(self.id, "ID"): self._plain(path, data) for path, data in found.items()}

    def _plain(self, path: str, data: bytes) -> bytes:
        if path.endswith(".ndjson"):  # one document after the other: the last one is what is compared
            data = data.splitlines()[-1].partition(b'"status"')[2][:20]
        plain = _ID.sub(b"HEX", TIME.sub(b"TIME", data.replace(self.id.encode(), b"ID")))
        return b"\n".join(sorted(plain.splitlines())) if path.endswith(_LOGS) else plain

    def repository(self) -> dict[str, object]:
        return {k.replace(self.id, "ID"): v for k, v in repository(self.root, self.home).items()}

    def answered(self) -> Counter[str]:
        """How many complete answers there were to each action."""
        found: Counter[str] = Counter()
        for file in run_of(self.session).glob("spool/*/*/exit.json"):
            known = json.loads(file.read_bytes())
            if known["code"] == 0 and known["reason"] == "exited":
                found[file.parent.parent.name] += 1
        return found


@dataclass(frozen=True)
class Calm:
    """What an undisturbed run leaves, and how long it takes."""

    files: Mapping[str, bytes]
    repository: Mapping[str, object]
    answered: Counter[str]
    seconds: float


def calm(scene: Scene) -> Calm:
    seconds = scene.to_the_end()
    assert scene.answered(), "it did not even begin"
    return Calm(scene.files(), scene.repository(), scene.answered(), seconds)


def survive_all(workflow: str, make: Callable[[str], Scene], calm: Calm) -> None:
    """In a whole sweep until it was really killed so often: a moment may be after the end of a run."""
    if not WHOLE:
        number = commit_number() % TRIALS
        survive(make(str(number)), calm, f"{workflow} {number}")
        return
    kills = 0
    for number in range(TRIALS_MAX):
        kills += survive(make(str(number)), calm, f"{workflow} {number}")
        if kills >= KILLS_MIN and number + 1 >= TRIALS:
            return
    raise AssertionError(f"{kills} kills in {TRIALS_MAX} trials, not {KILLS_MIN}")


def survive(scene: Scene, calm: Calm, seed: str) -> int:
    """Be killed some times, go on to the end, and compare everything with an undisturbed run.

    How often it was killed.
    """
    dice, kills = random.Random(seed), 0
    for _ in range(KILLS):
        moment_s = dice.uniform(0.2, max(0.3, calm.seconds))
        was_killed = scene.killed(moment_s)
        print(f"seed {seed!r}: killed after {moment_s:.3f} s:", was_killed)
        kills += was_killed
    scene.to_the_end()
    assert_same(scene.files(), calm.files)
    deadline = time.monotonic() + SETTLE_S
    while (found := scene.repository()) != calm.repository and time.monotonic() < deadline:
        time.sleep(0.2)
    assert_same(found, calm.repository)
    answered = scene.answered()
    assert {a: n for a, n in answered.items() if n > calm.answered[a]} == {}, "paid for twice"
    shutil.rmtree(scene.root.parent)
    return kills
