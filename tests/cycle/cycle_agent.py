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


MODE = os.environ.get("CYCLE_MODE", "")


def requirements() -> str:
    asks = (
        {"decisions": "[Which sign? (minus | dash)]"}
        if MODE == "decide" and "Which sign?" not in PROMPT
        else {}
    )
    extra = "- REQ-003: there is a second factor\n" if "multi-factor" in PROMPT else ""
    text = (
        f"# Requirements\n\n- REQ-001: it adds\n- REQ-002: it subtracts\n{extra}\n## Edge cases\n\n- zero\n"
    )
    return text + end(**asks)


def plan() -> str:
    tasks = [{"id": "TASK-001", "description": "subtract", "effort": "small", "files": ["calc.py"]}]
    if MODE == "clash":
        tasks = [
            {"id": f"TASK-{n}", "description": f"subtract, way {n}", "files": ["calc.py"]} for n in (1, 2)
        ]
    if "REQ-003" in PROMPT:
        mend = tasks if "test failed" in PROMPT else []
        tasks = [{"id": "TASK-002", "description": "second factor", "effort": "small"}, *mend]
    return f"Plan.\n\n```json\n{json.dumps({'tasks': tasks})}\n```\n" + end()


def code() -> str:
    if "TASK-002" in ACTION:
        Path("mfa.py").write_text(MFA)
        return "The second factor.\n" + end(files_written="[mfa.py]")
    if MODE == "clash":
        way = ACTION.rpartition("TASK-")[2].partition(".")[0]
        text = Path("calc.py").read_text()
        line = f"def sub(a, b):\n    return a - b  # way {way}\n"
        Path("calc.py").write_text(text + line if "def sub" not in text else text + f"# and way {way}\n")
        return f"Way {way}.\n" + end(files_written="[calc.py]")
    told = bool(re.search(r"test failed: \S*test_calc::test_sub", PROMPT))
    log(told=told)
    Path("calc.py").write_text(RIGHT if told else WRONG)
    return "Subtracts.\n" + end(files_written="[calc.py]")


log()
if f"broken-{ROLE}" == MODE:
    sys.exit("the agent is broken")
time.sleep(float(os.environ.get("CYCLE_SECONDS", "0")))
gate = Path(os.environ.get("CYCLE_GATE", "/"))  # nobody of CYCLE_HELD answers before it is there
while ROLE in os.environ.get("CYCLE_HELD", "").split() and not gate.exists():
    time.sleep(0.02)
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
