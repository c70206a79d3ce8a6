"""The `rondel` command with a vendor's real CLI behind it, from the first line to the last."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modelserver import toml_tables, vendor_config
from rondel.testing.scripted import run_of
from vendors.rig import DEAD_PROXY, TAG

pytestmark = pytest.mark.agents

WORDS = ("review", "--team", "principal:1", "--quick", "--no-fail-on-changes")
REVIEWER = "You review a change to a code base."

REVIEW = """## Summary

Read.

## Findings

One.

## What works well

- It is short.

## Questions

None.

```json
{"findings": [{"title": "Subtracts instead of adding", "category": "must_fix", "severity": "high",
  "file": "app.py", "line": 2, "problem": "2 - 1 is 1", "suggestion": "use +", "evidence": "return a - b"}]}
```
"""


def prepare(rig) -> Path:
    """A repository with a change on a branch, and a rondel.toml that gives every role to the vendor."""
    repo = rig.repository
    (repo / "app.py").write_text("def add(a, b):\n    return a + b\n")
    table = vendor_config(rig.kind, rig.model.url("it"), rig.home, [str(rig.program)])
    table["env"] |= {TAG: rig.tag, **({} if rig.quarantined else DEAD_PROXY)}
    (repo / "rondel.toml").write_text('[roles]\ndefault = "it"\n\n' + toml_tables({"it": table}))
    rig.commit()
    rig.git("checkout", "-q", "-b", "feature")
    (repo / "app.py").write_text("def add(a, b):\n    return a - b\n")
    rig.commit()
    return repo


def rondel(rig, *words: str) -> subprocess.Popen[str]:
    home = rig.tmp / "person"
    home.mkdir(exist_ok=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "NO_COLOR": "1", "RONDEL_TRUST": "yes"}
    program = Path(sys.executable).with_name("rondel")
    return subprocess.Popen(
        [str(program), *words],
        cwd=rig.repository,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def final_review(rig) -> str:
    (found,) = rig.repository.glob(".ocr/sessions/*/rounds/round-1/final.md")
    return found.read_text()


def test_a_review_by_the_real_cli(rig):
    rig.model.script("it", REVIEW)
    prepare(rig)
    run = rondel(rig, *WORDS)
    said, _ = run.communicate(timeout=120)
    assert run.returncode == 0, said
    assert "Subtracts instead of adding" in final_review(rig)
    assert any("return a - b" in asked.user for asked in rig.model.requests("it"))
    assert counted(rig) == 1000 * len(rig.model.requests("it"))


def test_a_review_whose_driver_is_killed_goes_on_in_the_vendor_s_session(rig):
    def hang_after_a_look(asked):
        if REVIEWER not in asked.user:
            return REVIEW
        if asked.step == 0:
            return {"tools": [{"read": {"path": "app.py"}}]}
        return {"fault": {"hang": "before"}}

    rig.model.script("it", hang_after_a_look)
    prepare(rig)
    run = rondel(rig, *WORDS)
    wait_until(lambda: any(asked.step == 1 for asked in rig.model.requests("it")))
    rig.wait_saved()
    run.send_signal(signal.SIGKILL)
    run.wait(10)
    wait_until(lambda: rig.left_behind() == [])
    before = len(rig.model.requests("it"))

    rig.model.script("it", REVIEW)
    run = rondel(rig, *WORDS)
    said, _ = run.communicate(timeout=120)
    assert run.returncode == 0, said
    assert "Subtracts instead of adding" in final_review(rig)
    again = rig.model.requests("it")[before]
    assert again.history.count(REVIEWER) == 2  # as it was asked before its driver died, and after
    assert "return a - b" in again.history
    answered = len(rig.model.requests("it")) - 1  # all but the one that hung
    assert counted(rig) in (1000 * answered, 1000 * (answered - (rig.kind == "gemini")))


def wait_until(true) -> None:
    end = time.monotonic() + 90
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)


def counted(rig) -> int:
    """The tokens the session's journal counts."""
    (session,) = rig.repository.glob(".ocr/sessions/*")
    journal = run_of(session, rig.tmp / "person/.local/state") / "journal.jsonl"
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    return sum(event["usage"]["input_tokens"] for event in events if event.get("usage"))
