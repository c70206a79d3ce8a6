"""A repository with a session of each workflow under way, and an agent that does as it is told."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

from rondel.cli.main import main
from rondel.testing.scripted import run_of
from support.cli import RONDEL
from support.follow import Printed, follow, typed
from support.person import YES

REQUIREMENTS = (
    "# Requirements\n\n- REQ-001: it adds\n\nPHASE_RESULT:\n- phase: ra\n- status: success\n"
    "- files_written: []\n- summary: done\n- issues: []\n"
)
EXPLORED = REQUIREMENTS.replace("phase: ra", "phase: ep")
PLAN = '```json\n{"tasks": [{"id": "TASK-001", "description": "do it", "effort": "small"}]}\n```\n' + EXPLORED
WORK = "## What was done\nIt.\n\n## Decisions\nOne.\n\n## Notes for future tasks\nNone.\n"
CODED = WORK + REQUIREMENTS.replace("phase: ra", "phase: cd")
DRAFT = "# Text\n\nText.\n\n=== CHANGES ===\nWrote it.\n"
CODE = "```python\n# shelf/models.py\nclass Book:\n    pass\n```\n"
PASS = "@@@REVIEW_META\nverdict: PASS\nissues_total: 0\nissues_critical: 0\nmissing_inputs: 0\n@@@\n"
GOOD: list[dict[str, object]] = [
    {"role": "review.lead", "reply": "Look at the sign.\n"},
    {
        "role": "review.reviewer*",
        "reply": '## Summary\n\nRead.\n\n```json\n{"findings": []}\n```\n',
    },
    {"role": "review.*", "reply": '```json\n{"responses": []}\n```\n'},
    {
        "role": "feature.*-reviewer",
        "reply": '```json\n{"approved": true, "issues": [], "summary": "Good."}\n```',
    },
    {"role": "feature.implement", "files": {"made.txt": "made\n"}, "reply": "Made it."},
    {"role": "feature.*", "reply": DRAFT},
    {"role": "cycle.ra", "reply": REQUIREMENTS},
    {"role": "cycle.ep", "action": "*plan*", "reply": PLAN},
    {"role": "cycle.ep", "reply": EXPLORED},
    {"role": "cycle.cd", "files": {"made.txt": "made\n"}, "reply": CODED},
    {"role": "cycle.vas", "reply": REQUIREMENTS.replace("phase: ra", "phase: vas")},
    {"role": "task.*", "files": {"made.txt": "made\n"}, "reply": WORK},
    {"role": "generate.*.plan", "reply": "# Plan\n"},
    {"role": "generate.*.review", "reply": PASS},
    {"role": "generate.*", "reply": CODE},
]
SUITE = (
    "report=\"<testsuite><testcase classname='t' name='t'/></testsuite>\"\n"
    '[ -z "$RONDEL_JUNIT" ] || echo "$report" > "$RONDEL_JUNIT"'
)
SETTINGS = f"""\
[project]
test = {json.dumps(SUITE)}

[agents.mock]
kind = "mock"
script = "script.json"

[roles]
default = "mock"

[review]
team = "quality:1"
"""
GENERATE = ("python-service", "-c", "package=shelf", "-c", "entity=Book", "-c", "scope=models")
BEGIN: dict[str, list[tuple[str, ...]]] = {
    "review": [("review",)],
    "feature": [("feature", "start", "Add it"), ("feature", "specify", "001-add-it")],
    "cycle": [("cycle", "start", "Add it")],
    "task": [
        ("task", "start", "Add it"),
        ("task", "add", "Add it"),
        ("task", "add", "More"),
        ("task", "run"),
    ],
    "generate": [("generate", "init", *GENERATE, "--auto"), ("generate", "run")],
}
FOLDERS = {
    "review": ".ocr/sessions/*",
    "feature": "docs/features/*",
    "cycle": ".workflow/.cycle/*.progress",
    "task": ".workflow/WFS-*",
    "generate": ".aiwf/sessions/*",
}


@dataclass
class World:
    """One repository, its HOME beside it, and one session."""

    folder: Path
    workflow: str
    said: Printed = field(default_factory=lambda: Printed(0, "", ""))
    more_env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = self.folder / "repo"
        self.root.mkdir()
        (self.folder / "home").mkdir()
        (self.folder / "home/.gitconfig").write_text("[user]\nname = t\nemail = t@localhost\n")
        self.git("init", "-q", "-b", "main")
        (self.root / "app.py").write_text("def add(a, b):\n    return a + b\n")
        (self.root / ".gitignore").write_text(
            ".ocr/\ndocs/\n.workflow/\n.aiwf/\nrondel.toml\nscript.json\n__pycache__/\n"
        )
        self.git("add", "-A")
        self.git("commit", "-qm", "start")
        if self.workflow == "review":
            self.git("switch", "-qc", "change")
            (self.root / "app.py").write_text("def add(a, b):\n    return a - b\n")
            self.git("commit", "-qam", "change")
        self.configure()
        self.answer(GOOD)

    def configure(self, more: str = "", settings: str = SETTINGS) -> None:
        (self.root / "rondel.toml").write_text(f"{settings}\n{more}")

    def answer(self, rules: list[dict[str, object]]) -> None:
        (self.root / "script.json").write_text(json.dumps({"rules": rules}))

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(self.folder / "home"),
            "GIT_CONFIG_SYSTEM": "/dev/null",
            **YES,
            **self.more_env,
        }

    def git(self, *words: str) -> str:
        done = subprocess.run(
            ["git", *words], cwd=self.root, env=self.env, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def type(self, command: str) -> Printed:
        """Type a command line; what it said is kept."""
        self.said = typed(command, self.root, self.env)
        assert "Traceback" not in self.said.err, self.said.err
        return self.said

    def rondel(self, *words: str) -> Printed:
        done = subprocess.run(
            [*RONDEL, *words],
            cwd=self.root,
            env=self.env,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )
        self.said = Printed(done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr, done.stderr
        follow(self.root, self.env, done.returncode, done.stdout, done.stderr)
        return self.said

    def typed(self, *words: str) -> tuple[int, str]:
        """A command in this process: its exit code, and what it printed."""
        said = io.StringIO()
        with (
            chdir(self.root),
            mock.patch.dict(os.environ, self.env, clear=True),
            redirect_stdout(said),
            redirect_stderr(said),
        ):
            try:
                code = main(list(words))
            except SystemExit as e:
                code = e.code if isinstance(e.code, int) else 0
        follow(self.root, self.env, code, "", said.getvalue())
        return code, said.getvalue()

    def popen(self, *words: str) -> subprocess.Popen[str]:
        """A command that is still running."""
        return subprocess.Popen(
            [*RONDEL, *words],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def begin(self) -> Printed:
        """Begin a session and run it."""
        for words in BEGIN[self.workflow]:
            self.rondel(*words)
        return self.said

    @property
    def session(self) -> Path:
        (found,) = self.root.glob(FOLDERS[self.workflow])
        return found

    @property
    def next(self) -> str:
        (command,) = self.said.commands
        return command

    @property
    def asked(self) -> int:
        """How often an agent was asked."""
        journal = run_of(self.session) / "journal.jsonl"
        events = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
        return sum(e["kind"] == "started" and "agent" in e for e in events)

    def begin_and_kill(self, *command: str) -> None:
        """Run the last command of beginning, or another one, and kill it while an agent works."""
        before = self.asked if list(self.root.glob(FOLDERS[self.workflow])) else 0
        child = subprocess.Popen(
            [*RONDEL, *(command or BEGIN[self.workflow][-1])],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        end = time.monotonic() + 30
        while not (list(self.root.glob(FOLDERS[self.workflow])) and self.asked > before):
            assert time.monotonic() < end, "nobody was asked"
            assert child.poll() is None, "it ended before anybody was asked"
            time.sleep(0.05)
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
