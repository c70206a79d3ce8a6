"""Eight reviewers whose agent takes 2 s: how much longer than the longest chain of actions a review takes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rondel.project import Project
from rondel.workflows.review import files
from rondel.workflows.review.request import ResolvedOptions

AGENT_S = 2.0
CHAIN = 4  # guidance, a review, discourse or a refuter, synthesis
RATIO_MAX = 1.25
AGENT = f"""
import os, sys, time
sys.stdin.read()
time.sleep({AGENT_S})
action = os.environ["RONDEL_ACTION"]
found = '{{"title": "It subtracts", "category": "should_fix", "file": "a.py", "line": 1}}'
if "/reviews/" in action:
    print('```json\\n{{"findings": [%s]}}\\n```' % found)
elif "/discourse/" in action:
    print('{{"responses": []}}')
elif "/refute/" in action:
    print('{{"verdict": "stands"}}')
else:
    print("words")
"""


def git(root: Path, *args: str) -> None:
    """Git in the scratch repository."""
    who = ("-c", "user.name=b", "-c", "user.email=b@localhost")
    subprocess.run(["git", *who, *args], cwd=root, check=True, capture_output=True)


def main() -> int:
    """Print the ratio; 1 when it is too large."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder
        root = Path(folder) / "repo"
        root.mkdir()
        agent = Path(folder) / "agent.py"
        agent.write_text(AGENT)
        git(root, "init", "-q", "-b", "main")
        (root / "a.py").write_text("x = 1\n")
        config = f'[agents.slow]\nkind = "command"\ncommand = ["{sys.executable}", "{agent}"]\n'
        (root / "rondel.toml").write_text(config + '[roles]\ndefault = "slow"\n[limits]\nagents_max = 8\n')
        git(root, "add", "-A")
        git(root, "commit", "-qm", "start")
        (root / "a.py").write_text("x = 2 - 1\n")
        project = Project.find(root)
        options = ResolvedOptions(
            team="principal:4,quality:4", kind_of=lambda role: project.config.agent_for(role).kind
        )
        begun = time.monotonic()
        opened = files.open_round(project.root, project.look, options)
        report = project.run(opened.ref)
        seconds = time.monotonic() - begun
    ratio = seconds / (CHAIN * AGENT_S)
    print(f"  eight reviewers of {AGENT_S:g} s: {seconds:.2f} s, {ratio:.2f} times the longest chain")
    print(f"  of {CHAIN} actions (at most {RATIO_MAX})")
    return 0 if report.exit_code == 0 and ratio <= RATIO_MAX else 1


if __name__ == "__main__":
    sys.exit(main())
