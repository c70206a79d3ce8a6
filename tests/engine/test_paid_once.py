"""Drivers killed by time, around the end of their agents: a complete answer is never asked for again."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from harness import repository, start

pytestmark = pytest.mark.sweep

SESSIONS = 60 if os.environ.get("RONDEL_SWEEP") else 2
KILLS = 3  # of one session: fewer than may cut an action off
DRIVE = Path(__file__).parent / "drive.py"

AGENT = """
import os, sys, time
folder, action = sys.argv[1], os.environ["RONDEL_ACTION"]

def note(name):
    fd = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, (action + "\\n").encode())

note("asked")
time.sleep(0.05)
print("An answer to", action, flush=True)
note("paid")
time.sleep(0.03)  # a program takes a moment to end
"""


@pytest.fixture
def session(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "agent.py").write_text(AGENT)

    def make(number: int) -> tuple[Path, Path]:
        root = repository(tmp_path / str(number) / "repo")
        words = json.dumps([sys.executable, str(tmp_path / "agent.py"), str(root.parent)])
        (root / "rondel.toml").write_text(
            f'[agents.mine]\nkind = "command"\ncommand = {words}\n\n[roles]\ndefault = "mine"\n'
        )
        start(root, auto=True, width=3)
        return root, root.parent / "paid"

    return make


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_a_complete_answer_is_paid_for_once_whenever_its_driver_is_killed(session):
    rng = random.Random(11)
    twice: Counter[str] = Counter()
    for number in range(SESSIONS):
        root, paid = session(number)
        for _ in range(KILLS):
            before = len(lines(paid))
            driver = subprocess.Popen([sys.executable, str(DRIVE), str(root)], stdout=subprocess.DEVNULL)
            # Killed shortly after an answer is there: while the agent ends, and its driver takes it in.
            end = time.monotonic() + 20
            while driver.poll() is None and len(lines(paid)) == before and time.monotonic() < end:
                time.sleep(0.001)
            time.sleep(rng.uniform(0, 0.06))
            driver.kill()
            driver.wait()
        assert subprocess.run([sys.executable, str(DRIVE), str(root)], check=False).returncode == 0
        twice.update({action: n for action, n in Counter(lines(paid)).items() if n > 1})
    assert twice == {}
