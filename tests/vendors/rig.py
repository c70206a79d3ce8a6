"""One vendor's real CLI with everything it needs for a test."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from modelserver import FakeModel, vendor_config
from rondel.agents.base import AgentSettings, Beat, Clocks, Reply, Request
from rondel.agents.roster import build
from rondel.model.actions import Access
from rondel.sandbox.box import Box, holds, own_places
from vendors.install import binary, selected

TAG = "RONDEL_TEST_TAG"
DEAD_PROXY = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
}


def program_or_skip(kind: str) -> Path:
    """The installed CLI; the test is skipped, loudly, where it is not to be had."""
    if kind not in selected():
        pytest.skip(f"vendor not run: {kind}: not selected (make test-agents runs all four)")
    program = binary(kind)
    if program is None:
        pytest.skip(f"vendor not run: {kind}: NOT INSTALLED (python tests/vendors/install.py {kind})")
    return program


@dataclass
class Rig:
    """One vendor's CLI, a scripted model, a repository to work in and a HOME of its own."""

    kind: str
    program: Path
    model: FakeModel
    tmp: Path
    quarantined: bool
    beats: list[Beat] = field(default_factory=list)
    confined: bool = True  # where the CLI's own refusals are asked for, our sandbox would hide them

    @property
    def tag(self) -> str:
        return f"{self.kind}-{self.tmp.name}-{os.getpid()}"

    @property
    def home(self) -> Path:
        return self.tmp / "home"

    @property
    def repository(self) -> Path:
        """A git repository with one commit."""
        place = self.tmp / "repo"
        if not place.exists():
            place.mkdir()
            (place / "README.md").write_text("hello\n")
            self.git("init", "-q", "-b", "main")
            self.commit()
        return place

    def git(self, *words: str) -> str:
        mine = ["-c", "user.name=Test", "-c", "user.email=test@localhost"]
        done = subprocess.run(
            ["git", *mine, *words], cwd=self.tmp / "repo", check=True, capture_output=True, text=True
        )
        return done.stdout

    def commit(self) -> None:
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "as it is")

    def agent(self, scenario: str, **settings: object):
        table = vendor_config(self.kind, self.model.url(scenario), self.home, [str(self.program)])
        env = {**table.pop("env"), TAG: self.tag, **({} if self.quarantined else DEAD_PROXY)}
        command = tuple(table.pop("command"))
        return build(AgentSettings(name="it", command=command, env=env, **{**table, **settings}))

    def request(self, attempt: int = 1, **changes: object) -> Request:
        given = {
            "prompt": "Please do what the script says.\n",
            "role": "review.reviewer",
            "session": "review:2026-11-15-main",
            "action": f"rounds/round-1/reviews/{self.kind}.md",
            "attempt": attempt,
            "cwd": self.repository,
            "spool": self.tmp / "spool" / str(attempt),
            "home": self.tmp / "run-home",
            "access": Access.WRITE,
            "clocks": Clocks(wall_s=120, idle_s=60),
            "box": Box(hidden=own_places()) if self.confined and holds() else None,
        }
        return Request(**{**given, **changes})

    def ask(
        self, script: object, *, scenario: str = "it", request: Request | None = None, **settings: object
    ) -> Reply:
        """Script the model, ask the agent, give its reply."""
        self.model.script(scenario, script)
        agent = self.agent(scenario, **settings)
        return asyncio.run(agent.run(request or self.request(), self.beats.append))

    def wait_saved(self, quiet_s: float = 1.0, within_s: float = 30.0) -> None:
        """Until the CLI writes nothing more below its HOME: a session that it has not saved cannot go on."""
        end = time.monotonic() + within_s
        before, since = self._state(), time.monotonic()
        while time.monotonic() < min(end, since + quiet_s):
            time.sleep(0.1)
            if (now := self._state()) != before:
                before, since = now, time.monotonic()

    def _state(self) -> dict[str, int]:
        """The files of the CLI's HOME with their sizes."""
        found = {}
        for folder, _, names in os.walk(self.home):
            for name in names:
                with contextlib.suppress(OSError):
                    found[f"{folder}/{name}"] = os.lstat(f"{folder}/{name}").st_size
        return found

    def left_behind(self) -> list[str]:
        """Processes of this test that are still there."""
        word = f"{TAG}={self.tag}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and word in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((entry / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return found
