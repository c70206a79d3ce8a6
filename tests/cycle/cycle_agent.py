"""A command agent for cycles: answers by role; its code is right only when it was told what is wrong.

Every call is a line of `$CYCLE_CALLS`. The prompt must carry the feedback: without it the
code developer repeats its mistake.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from pathlib import Path

ROLE = os.environ["RONDEL_ROLE"].rpartition(".")[2]
ACTION = os.environ["RONDEL_ACTION"]
PROMPT = sys.stdin.read()

RIGHT = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n"
WRONG = RIGHT.replace("a - b", "a + b")
MFA = "def code():\n    return 42\n"


def log(**fields: object) -> None:
    calls = os.environ.get("CYCLE_CALLS")
    if calls:
        with Path(calls).open("a", encoding="utf-8") as f:
            f.write(json.dumps({"role": ROLE, "action": ACTION, **fields}) + "\n")


def end(status: str = "success", **fields: str) -> str:
    lines = {"files_written": "[]", "summary": f"{ROLE} is done", "issues": "[]", **fields}
    body = "".join(f"- {k}: {v}\n" for k, v in lines.items())
    return f"\nPHASE_RESULT:\n- phase: {ROLE}\n- status: {status}\n{body}"


def requirements() -> str:
    extra = "- REQ-003: there is a second factor\n" if "multi-factor" in PROMPT else ""
    return (
        f"# Requirements\n\n- REQ-001: it adds\n- REQ-002: it subtracts\n{extra}\n## Edge cases\n\n- zero\n"
        + end()
    )


def plan() -> str:
    tasks = [{"id": "TASK-001", "description": "subtract", "effort": "small", "files": ["calc.py"]}]
    if "REQ-003" in PROMPT:
        tasks = [{"id": "TASK-002", "description": "second factor", "effort": "small", "files": ["mfa.py"]}]
    return f"Plan.\n\n```json\n{json.dumps({'tasks': tasks})}\n```\n" + end()


def code() -> str:
    if "TASK-002" in ACTION:
        Path("mfa.py").write_text(MFA)
        return "The second factor.\n" + end(files_written="[mfa.py]")
    told = bool(re.search(r"test failed: \S*test_calc::test_sub", PROMPT))
    log(told=told)
    Path("calc.py").write_text(RIGHT if told else WRONG)
    return "Subtracts.\n" + end(files_written="[calc.py]")


log()
time.sleep(float(os.environ.get("CYCLE_SECONDS", "0")))
if ROLE == "ra":
    print(requirements())
elif ROLE == "ep":
    print(
        plan()
        if ACTION.endswith("plan.json")
        else "# Exploration\n\n## Architecture\n\nOne module.\n" + end()
    )
elif ROLE == "cd":
    print(code())
else:
    print("# Validation\n\nLooked at it. 100 % passed!\n" + end(pass_rate="100%", coverage="100%"))
