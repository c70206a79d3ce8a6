"""A scratch repository with a small Python project, a scripted agent, and the real command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from support.follow import follow
from support.person import YES

APPROVED = '```json\n{"approved": true, "issues": [], "summary": "Good."}\n```'
TASKS = """# Tasks

### Task 1: Add the function

- **Do**: `add(a, b)` in calc.py.
- **Done when**: test_add.py passes.

### Task 2: Say so

- **Do**: a sentence in README.md.
- **Done when**: it is there.
"""
TEST = "from calc import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n"
RULES = [
    {"role": "feature.*-reviewer", "reply": APPROVED},
    {"role": "feature.create-tasks", "reply": TASKS},
    {
        "role": "feature.implement",
        "action": "*task-1.json",
        "files": {"calc.py": "def add(a, b):\n    return a + b\n", "test_add.py": TEST},
        "reply": "Added it, with a test.",
    },
    {
        "role": "feature.implement",
        "action": "*task-2.json",
        "files": {"README.md": "It adds.\n"},
        "reply": "Said so.",
    },
    {"role": "feature.*", "reply": "# {role}\n\nText.\n\n=== CHANGES ===\nWrote it.\n"},
]
MOCK = """\
[agents.mock]
kind = "mock"
script = "script.json"

[roles]
default = "mock"

[project]
test = "{python} -m pytest -q"
"""


def environment(folder: Path) -> dict[str, str]:
    """A clean environment with a home of its own."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    (home / ".gitconfig").write_text("[user]\nname = t\nemail = t@localhost\n[init]\ndefaultBranch = main\n")
    bin_ = Path(sys.executable).parent
    return {"PATH": f"{bin_}:/usr/bin:/bin", "HOME": str(home), "GIT_CONFIG_SYSTEM": "/dev/null", **YES}


def git(cwd: Path, *args: str) -> str:
    env = environment(cwd.parent)
    done = subprocess.run(["git", *args], cwd=cwd, env=env, check=True, capture_output=True, text=True)
    return done.stdout


def repository(folder: Path, rules: list[dict[str, object]] | None = None) -> Path:
    """A repository with one commit and a scripted agent for every role."""
    root = folder / "repo"
    root.mkdir()
    git(root, "init", "-q")
    (root / "calc.py").write_text("")
    (root / "test_none.py").write_text("def test_none():\n    assert True\n")
    (root / ".gitignore").write_text(
        "docs/features/\nrondel.toml\nscript.json\n__pycache__/\n.pytest_cache/\n"
    )
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    (root / "rondel.toml").write_text(MOCK.format(python=sys.executable))
    script(root, RULES if rules is None else rules)
    return root


def script(root: Path, rules: list[dict[str, object]]) -> None:
    (root / "script.json").write_text(json.dumps({"rules": rules}))


def rondel(cwd: Path, *args: str, wait_s: float = 120, **env: str) -> subprocess.CompletedProcess[str]:
    """The real command, without a terminal."""
    top = cwd
    while not (top / "home").is_dir() and top != top.parent:
        top = top.parent
    whole = environment(top if top != top.parent else cwd.parent) | env
    done = subprocess.run(
        [sys.executable, "-m", "rondel", *args],
        cwd=cwd,
        env=whole,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=wait_s,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    follow(cwd, whole, done.returncode, done.stdout, done.stderr)
    return done


def meta(root: Path, name: str = "001-add") -> dict[str, object]:
    found = json.loads((root / "docs/features" / name / ".meta.json").read_text())
    assert isinstance(found, dict)
    return found


def listing(folder: Path) -> set[str]:
    return {os.fspath(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
