"""One session of each workflow in a scratch repository, driven by the real command and a scripted agent."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from unittest import mock

from rondel.cli import demo
from rondel.cli.main import main
from rondel.model.workflow import SessionRef
from rondel.project import Project
from rondel.testing.kills import ID, TIME, content
from rondel.workflows.cycle import layout
from support.follow import follow
from support.person import YES

WORKFLOWS = ("review", "feature", "cycle", "task", "generate")
# Says only what is the same in every run: which tests failed.
UNITTEST = f'said=$({sys.executable} -m unittest -q 2>&1); code=$?; echo "$said" | grep FAIL; exit $code'
TEST = """import unittest


class Shop(unittest.TestCase):
    def test_is_open(self):
        self.assertTrue("open")
"""
CHANGE = "import os\n\n\ndef price(a):\n    if a == None:\n        return eval('1')\n    return a\n"
BEGIN: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "review": (),
    "feature": (("feature", "start", "Discount codes", "--mode", "quick"),),
    "cycle": (("cycle", "start", "Give discounts", "--auto", "--no-run"),),
    "task": (("task", "start", "Receipts"), ("task", "plan", "Print receipts")),
    "generate": (
        (
            *("generate", "init", "python-service", "--auto", "--with-tests"),
            *(word for key, value in demo.CONTEXT.items() for word in ("-c", f"{key}={value}")),
        ),
    ),
}
RUN: Mapping[str, tuple[str, ...]] = {
    "review": ("review", "--team", "quality:1,security:1"),
    "feature": ("feature", "run", "--until", "create-tasks", "--auto"),
    "cycle": ("cycle", "resume", "--agents-max", "1"),  # so that one comes before the other
    "task": ("task", "run", "--jobs", "2"),
    "generate": ("generate", "run"),
}
_PLACE = re.compile(rb"(?<=-)[0-9a-f]{8}(?:[0-9a-f]{4})?\b")  # at the end of a workspace's name
_SECONDS = re.compile(rb"\b\d+(\.\d+)? ?s(ec(onds?)?)?\b")
_SHA = re.compile(rb"\b(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})\b")


def script(workflow: str, seconds: float) -> dict[str, object]:
    """What the scripted agent says, thinking for so long each time."""
    if workflow == "generate":
        rules = demo.answers()
    elif workflow == "review":
        rules = [{"role": "review.*", "reply": "[]"}]
    else:
        text = (resources.files("rondel.cli") / "stories" / f"{workflow}.json").read_text(encoding="utf-8")
        rules = json.loads(text)["rules"]
    return {"rules": [{**rule, "seconds": seconds} for rule in rules]}


@dataclass
class Story:
    """A scratch repository with one session of a workflow, begun and not run."""

    folder: Path
    workflow: str
    seconds: float = 0.0
    settings: str = ""

    def __post_init__(self) -> None:
        self.root = self.folder / "shop"
        self.root.mkdir(parents=True)
        (self.folder / "home").mkdir()
        self.git("init", "-q", "-b", "main")
        roles = 'default = "script"' if self.workflow != "review" else 'default = "checks"'
        self.write(
            {
                "README.md": "# A shop\n",
                "test_shop.py": TEST,
                ".gitignore": "__pycache__/\n.ocr/\n.workflow/\n.aiwf/\ndocs/features/\n",
                "script.json": json.dumps(script(self.workflow, self.seconds)),
                "rondel.toml": f'[agents.script]\nkind = "mock"\nscript = "script.json"\n[roles]\n{roles}\n'
                f"[project]\ntest = {json.dumps(UNITTEST)}\n{self.settings}",
            },
            "start",
        )
        if self.workflow == "review":
            self.git("switch", "-q", "-c", "change")
            self.write({f"shop{n}.py": CHANGE for n in range(8)}, "change")
        for words in BEGIN[self.workflow]:
            self.rondel(*words)

    @property
    def env(self) -> dict[str, str]:
        """A clean environment with a home of its own."""
        who = {f"GIT_{r}_{w}": "t@localhost" for r in ("AUTHOR", "COMMITTER") for w in ("NAME", "EMAIL")}
        return who | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.folder / "home"),
            **YES,
            "LANG": "C.UTF-8",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def git(self, *args: str) -> str:
        at = {f"GIT_{who}_DATE": "2026-01-01T00:00:00Z" for who in ("AUTHOR", "COMMITTER")}
        done = subprocess.run(
            ["git", *args], cwd=self.root, env=self.env | at, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def write(self, files: Mapping[str, str], message: str) -> None:
        for name, text in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        self.git("add", "-A")
        self.git("commit", "-qm", message)

    def popen(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "rondel", *words],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def typed(self, *words: str) -> tuple[int, str]:
        """A command as a person types it, in this process: its exit code, and what it printed."""
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

    def rondel(self, *words: str) -> str:
        """A command that does what it says; what it printed."""
        code, said = self.typed(*words)
        assert code == 0, f"{words}: {code}\n{said}"
        return said

    @property
    def ref(self) -> SessionRef:
        """The session that was begun first; others may have been begun beside it."""
        return min(Project(self.root).sessions(self.workflow), key=lambda ref: ref.id)

    def of_it(self) -> dict[str, bytes]:
        """What is in the session's folder."""
        return dict(content(self.session))

    @property
    def session(self) -> Path:
        return self.root / self.ref.folder

    def drive(self) -> subprocess.Popen[str]:
        """The run that the session is for, in a process of its own."""
        return self.popen(*RUN[self.workflow])

    def starts(self) -> int:
        """How many actions were started so far."""
        journals = (self.folder / "home/.local/state").glob(
            "rondel/repos/*/sessions/*/*/.rondel/journal.jsonl"
        )
        return sum(path.read_bytes().count(b'"started"') for path in journals)

    def shown(self) -> dict[str, bytes]:
        """What a person has at the end: the session, the trees of all branches, the files of their own."""
        session, name = self.session, self.ref.id.encode()
        found = {f"session/{path}": data for path, data in content(session).items()}
        found.pop(f"session/{layout.LOG}", None)  # has more lines where a second begins in between
        found |= {f"beside/{p.name}": p.read_bytes() for p in session.parent.iterdir() if p.is_file()}
        for branch in self.git("for-each-ref", "--format=%(refname)", "refs/heads").split():
            found[f"tree of {branch}"] = self.git("ls-tree", "-r", branch).encode()
            found[f"commits of {branch}"] = self.git("rev-list", "--count", branch).encode()
        found["changed"] = self.git("status", "--porcelain").encode()
        folder = str(self.folder).encode()
        return {
            _plain(path.encode(), name).decode(): _plain(data.replace(folder, b"FOLDER"), name)
            for path, data in found.items()
        }


def _plain(data: bytes, name: bytes) -> bytes:
    """Without what differs from run to run: moments, seconds, names, ids, commits and digests."""
    for pattern, word in (
        (TIME, b"TIME"),
        (ID, b"ID"),
        (_SHA, b"SHA"),
        (_SECONDS, b"SECONDS"),
        (_PLACE, b"PLACE"),
    ):
        data = pattern.sub(word, data)
    return data.replace(name, b"NAME")


def stopped_at_work(process: subprocess.Popen[str], story: Story, seconds: float) -> bool:
    """Stop a driver (it keeps its lease) once it works, so many seconds later; False when it has ended."""
    before = story.starts()
    end = time.monotonic() + 60
    while time.monotonic() < end and process.poll() is None and story.starts() == before:
        time.sleep(0.02)
    time.sleep(seconds)
    if process.poll() is not None:
        return False
    process.send_signal(signal.SIGSTOP)
    while time.monotonic() < end and _works(process.pid):  # a git that it began goes on to its end
        time.sleep(0.02)
    return True


def _works(pid: int) -> bool:
    """Whether a process has a git of its own that is still at work."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            try:
                state = Path(f"/proc/{child}/stat").read_text()
            except OSError:
                continue
            name, _, rest = state.partition("(")[2].rpartition(")")
            if name.startswith("git") and rest.split()[0] != "Z":
                return True
    return False
