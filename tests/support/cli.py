"""The real command, as a person calls it, and a session to call it on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support.follow import follow

RONDEL = [sys.executable, "-m", "rondel"]


def rondel(cwd: Path, env: dict[str, str], *args: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*RONDEL, *args],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    follow(cwd, env, done.returncode, done.stdout, done.stderr)
    return done


def reviewed(repo: Path) -> str:
    """A session as another tool leaves it: one complete round."""
    folder = repo / ".ocr/sessions/2026-11-15-main"
    (folder / "rounds/round-1").mkdir(parents=True)
    (folder / "rounds/round-1/final.md").write_text("# The final review\n")
    return "review:2026-11-15-main"
