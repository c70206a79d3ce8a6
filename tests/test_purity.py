"""Decisions are pure: they open no file, start no process and read no clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support import purity

DECISIONS = {"read", "steps", "prompt", "check", "write", "begin", "summary"}


def watched(folder: Path, *words: str) -> dict[str, dict[str, int]]:
    """What the watcher saw, in a process of its own: an audit hook stays for good."""
    result = folder / "result.json"
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "RONDEL_TRUST": "yes",
        "PYTHONPATH": str(Path(purity.__file__).parent.parent),
    }
    argv = [sys.executable, purity.__file__, str(folder), str(result), *words]
    done = subprocess.run(
        argv, env=env, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(result.read_text())


@pytest.mark.slow
def test_no_decision_of_any_workflow_opens_a_file_or_starts_a_process_or_reads_a_clock(tmp_path):
    found = watched(tmp_path)
    assert set(found["made"]) == DECISIONS
    assert all(times > 20 for times in found["made"].values())
    assert found["wrong"] == {}


def test_a_decision_that_is_not_pure_would_be_seen(tmp_path):
    found = watched(tmp_path, "misdeeds")
    assert {name.partition(":")[0] for name in found["wrong"]} == set(found["made"])
