"""A command agent for kills by time: does what the first fitting rule says, and takes its time for it.

    timed_agent.py RULES

RULES is a JSON list. Of a rule, `action` is a pattern, `prompt` a text that must be in the prompt,
`attempt` a number; then `files` are written, `fail` is an error, `reply` is the answer.
"""

from __future__ import annotations

import json
import os
import sys
import time
from fnmatch import fnmatchcase
from pathlib import Path

PAUSE_S = 0.02
action, attempt, prompt = os.environ["RONDEL_ACTION"], os.environ["RONDEL_ATTEMPT"], sys.stdin.read()


def fits(rule: dict[str, str]) -> bool:
    return (
        fnmatchcase(action, rule.get("action", "*"))
        and rule.get("prompt", "") in prompt
        and str(rule.get("attempt", attempt)) == attempt
    )


rule = next(rule for rule in json.loads(Path(sys.argv[1]).read_text()) if fits(rule))
for name, text in rule.get("files", {}).items():
    half = len(text) // 2
    with Path(name).open("w") as file:
        for part in (text[:half], text[half:]):
            file.write(part)
            file.flush()
            time.sleep(PAUSE_S)
if "fail" in rule:
    sys.exit(rule["fail"])
print(rule["reply"])
