"""Four independent plan tasks of 2 s each with four agents: how long the code developer's phase takes.

Measured from the start of the first task until the branch holds the work of all: worktrees,
commits, rebases and the state with its log included. Against the same phase with one task,
in the same run; and against the bare 2 s, which a busy machine cannot keep.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from rondel.project import Project
from rondel.workflows.cycle.files import create

TASK_S = 2.0
AGENTS = 4
RUNS = 3
LIMIT = 1.25
END = "\n\nPHASE_RESULT:\n- phase: {}\n- status: success\n- summary: done\n- issues: []\n"


def _rules(tasks: int) -> list[dict[str, object]]:
    plan = [{"id": f"TASK-{n}", "description": f"write {n}", "files": [f"{n}.py"]} for n in range(tasks)]
    rules: list[dict[str, object]] = [
        {"role": "cycle.ra", "reply": "# Requirements\n\n- REQ-001: four files" + END.format("ra")},
        {"action": "*/plan.json", "reply": f"```json\n{json.dumps({'tasks': plan})}\n```" + END.format("ep")},
        {"role": "cycle.ep", "reply": "# Exploration" + END.format("ep")},
        {"role": "cycle.vas", "reply": "# Validation" + END.format("vas")},
    ]
    rules += [
        {
            "action": f"*/cd/TASK-{n}.md",
            "seconds": TASK_S,
            "files": {f"{n}.py": f"number = {n}\n"},
            "reply": "Done." + END.format("cd"),
        }
        for n in range(tasks)
    ]
    return rules


def _phase_s(folder: Path, tasks: int) -> float:
    """The code developer's phase of one cycle, from the journal."""
    root = folder / "repo"
    root.mkdir(parents=True)
    (folder / "script.json").write_text(json.dumps({"rules": _rules(tasks)}))
    (root / "rondel.toml").write_text(
        f'[agents.four]\nkind = "mock"\nscript = {json.dumps(str(folder / "script.json"))}\n'
        f'[roles]\ndefault = "four"\n[workspaces]\nroot = {json.dumps(str(folder / "work"))}\n'
    )
    (root / "README.md").write_text("bench\n")
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "start"]):
        subprocess.run(
            ["git", "-c", "user.name=b", "-c", "user.email=b@localhost", *words], cwd=root, check=True
        )
    ref = create(root, "Write four files", title=None, settings={"tests_required": False})
    report = Project.find(root).run(ref, agents_max=AGENTS)
    if report.exit_code != 0:
        sys.exit(f"the cycle ended with {report}")
    events = [
        json.loads(line)
        for line in (root / ref.folder / ".rondel/run/journal.jsonl").read_text().splitlines()
    ]
    began = [e["at"] for e in events if e["kind"] == "started" and "/cd/TASK" in e["action"]]
    ended = [e["at"] for e in events if e["kind"] == "finished" and e["action"].endswith("/tip.json")]
    return (datetime.fromisoformat(ended[0]) - datetime.fromisoformat(min(began))).total_seconds()


def main() -> int:
    """Print the ratios; the two take turns, and the best of each counts: a busy machine only slows."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        times = [(_phase_s(place / f"one-{n}", 1), _phase_s(place / f"four-{n}", 4)) for n in range(RUNS)]
    one, four = (min(column) for column in zip(*times, strict=True))
    print(f"  CD with 4 tasks of {TASK_S:g} s and {AGENTS} agents: {four:.2f} s")
    print(f"  {four / one:.2f} times the phase with one task ({one:.2f} s; at most {LIMIT})")
    print(f"  {four / TASK_S:.2f} times {TASK_S:g} s")
    return 0 if four <= LIMIT * one else 1


if __name__ == "__main__":
    sys.exit(main())
