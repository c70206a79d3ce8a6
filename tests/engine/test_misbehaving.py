"""Misbehaving agents in a whole session: a clear end within the limits, and no process left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness import REF, repository, start

DRIVE = Path(__file__).parent / "drive.py"
MISBEHAVE = Path(__file__).parent.parent / "support" / "misbehave.py"
MARK = "RONDEL_TEST_MARK"


def alive(mark: str) -> list[int]:
    """The processes that were started with the mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            environ = (entry / "environ").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if f"{MARK}={mark}".encode() in environ.split(b"\0"):
            found.append(int(entry.name))
    return found


@pytest.mark.parametrize(
    ("how", "code", "words"),
    [
        ("never_exits_after_its_result", 1, "no output for 3 s"),
        ("ignores_sigterm", 1, "no output for 3 s"),
        ("reads_stdin_for_ever", 0, ""),
        ("leaves_grandchildren", 0, ""),
        ("prints_200_mb", 1, "printed more than may be kept"),
        ("invalid_utf8", 0, ""),
        ("truncated_json", 1, "it does not begin with a letter"),
        ("exits_0_with_nothing", 1, "said nothing"),
        ("hangs_silently", 1, "no output for 3 s"),
        ("dies_by_a_signal", 1, "SIGSEGV"),
        ("fails", 1, "the model is on fire"),
        ("reports_a_usage_limit", 6, "parked until 20"),
    ],
)
def test_a_session_with_a_misbehaving_agent_ends_clearly(tmp_path, how, code, words):
    root = repository(tmp_path / "repo")
    command = json.dumps([sys.executable, str(MISBEHAVE), how])
    (root / "rondel.toml").write_text(
        f'[agents.fake]\nkind = "command"\ncommand = {command}\ntimeout_s = 20\nidle_s = 3\n'
        f'env = {{ {MARK} = "{tmp_path}" }}\n[roles]\ndefault = "fake"\n[limits]\nattempts_max = 1\n'
    )
    start(root, auto=True, width=1)
    began = time.monotonic()
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    ended = subprocess.run(
        [sys.executable, DRIVE, root], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, words in ended.stdout) == (code, True), ended.stdout + ended.stderr
    assert "Traceback" not in ended.stderr
    assert time.monotonic() - began < 40
    assert alive(str(tmp_path)) == []
    assert (root / REF.folder / "final.md").exists() == (code == 0)
