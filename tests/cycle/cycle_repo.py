"""A scratch repository with a real pytest suite, the command agent, and `rondel` in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from support.follow import follow
from support.person import YES

AGENT = Path(__file__).parent / "cycle_agent.py"
GIT = ["git", "-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"]
SUITE = (
    "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\n"
    "def test_sub():\n    from calc import sub\n\n    assert sub(3, 2) == 1\n"
)


@dataclass
class Repo:
    """One scratch repository; everything it uses is below `folder`."""

    folder: Path
    agent: Path = AGENT
    config: str = ""

    def __post_init__(self) -> None:
        self.root = self.folder / "repo"
        (self.root / "tests").mkdir(parents=True)
        (self.folder / "home").mkdir()
        (self.root / "calc.py").write_text("def add(a, b):\n    return a + b\n")
        (self.root / "tests/test_calc.py").write_text(SUITE)
        self.configure(self.config)
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-qm", "start")

    def configure(self, more: str = "", **env: str) -> None:
        """Write rondel.toml; `env` is what the agent finds in its environment."""
        pairs = {"CYCLE_CALLS": str(self.calls_file), "CYCLE_GATE": str(self.gate), **env}
        listed = ", ".join(f"{k} = {json.dumps(v)}" for k, v in pairs.items())
        command = json.dumps([sys.executable, str(self.agent)])
        work = json.dumps(str(self.folder / "work"))
        (self.root / "rondel.toml").write_text(
            f'[agents.fake]\nkind = "command"\ncommand = {command}\nenv = {{ {listed} }}\n\n'
            f'[roles]\ndefault = "fake"\n\n[workspaces]\nroot = {work}\n\n{more}'
        )

    @property
    def gate(self) -> Path:
        """Agents of the roles in CYCLE_HELD wait for this file."""
        return self.folder / "gate"

    @property
    def calls_file(self) -> Path:
        return self.folder / "calls"

    @property
    def calls(self) -> list[dict]:
        """What the agent was asked, in order."""
        if not self.calls_file.exists():
            return []
        return [json.loads(line) for line in self.calls_file.read_text().splitlines()]

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
            **YES,
            "GIT_CONFIG_NOSYSTEM": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def git(self, *words: str) -> str:
        done = subprocess.run(
            [*GIT, *words], cwd=self.root, check=True, capture_output=True, text=True, env=self.env
        )
        return done.stdout.strip()

    def popen(self, *words: str, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "rondel", *words],
            cwd=self.root,
            env={**self.env, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )

    def rondel(self, *words: str, exit_code: int = 0, **env: str) -> str:
        """Run a command in a real process; its standard output."""
        process = self.popen(*words, **env)
        out, err = process.communicate(timeout=240)
        assert process.returncode == exit_code, f"{words}: {process.returncode}\n{out}\n{err}"
        follow(self.root, {**self.env, **env}, exit_code, out, err)
        return out

    @property
    def id(self) -> str:
        (path,) = (self.root / ".workflow/.cycle").glob("*.progress")
        return path.name.removesuffix(".progress")

    @property
    def progress(self) -> Path:
        return self.root / f".workflow/.cycle/{self.id}.progress"

    @property
    def state_file(self) -> Path:
        return self.root / f".workflow/.cycle/{self.id}.json"

    @property
    def state(self) -> dict:
        return json.loads(self.state_file.read_text())

    @property
    def branch(self) -> str:
        return f"rondel/cycle/{self.id}"

    def built(self, path: str) -> str:
        """A file as it is on the cycle's branch."""
        return self.git("show", f"{self.branch}:{path}")
