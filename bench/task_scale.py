"""A session of a thousand tasks: wall time against the lower bound, and the cost of one task.

The lower bound is the longest chain, or all work divided by the jobs, whichever is longer.
Cost is processor time of Rondel and of the git it starts; the mock agent only sleeps.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SECONDS = 0.5
LAYERS = 4
WALL_MAX = 1.15
FLAT_MAX = 1.25


def main() -> int:
    """Print the figures for a hundred and for a thousand tasks; 1 when a bound does not hold."""
    args = _arguments()
    rows = []
    for count in args.tasks:
        with tempfile.TemporaryDirectory(prefix="rondel-bench-", dir=args.folder) as folder:
            rows.append(measure(Path(folder), count, args.jobs, edits=args.edits))
        row = rows[-1]
        print(
            f"  {count:5} tasks, {args.jobs} jobs: {row['wall']:6.1f} s, "
            f"{row['wall'] / row['bound']:.3f} of the lower bound {row['bound']:.1f} s, "
            f"{row['cost'] * 1000:.1f} ms of processor time per task"
        )
    wall = rows[-1]["wall"] / rows[-1]["bound"]
    flat = rows[-1]["cost"] / rows[0]["cost"]
    print(f"  wall: {wall:.3f} (at most {WALL_MAX}); cost of a task, large against small: {flat:.2f}")
    return 0 if wall <= WALL_MAX and flat <= FLAT_MAX else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tasks", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument(
        "--edits", action="store_true", help="each task changes a file, which goes on the branch"
    )
    parser.add_argument("--folder", help="where the scratch repository is made")
    return parser.parse_args()


def measure(folder: Path, count: int, jobs: int, *, edits: bool) -> dict[str, float]:
    """One run of `count` tasks in a scratch repository."""
    env = _environment(folder)
    root = _repository(folder / "repo", count, env, edits=edits)
    before, since = _processor_time(), time.monotonic()
    argv = [sys.executable, "-m", "rondel", "task", "run", "--jobs", str(jobs), "--json"]
    done = subprocess.run(argv, cwd=root, env=env, capture_output=True, text=True, check=False)
    wall = time.monotonic() - since
    if done.returncode != 0:
        sys.exit(f"the run failed: {done.stderr[-2000:]}{done.stdout[-2000:]}")
    left = [p for p in (root / ".workflow/WFS-scale/.task").iterdir() if '"completed"' not in p.read_text()]
    if left:
        sys.exit(f"{len(left)} tasks are not completed")
    bound = max(LAYERS * SECONDS, count * SECONDS / jobs)
    return {"wall": wall, "bound": bound, "cost": (_processor_time() - before) / count}


def _processor_time() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _environment(folder: Path) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "PYTHONPATH")}
    who = {f"GIT_{w}_{k}": "bench@localhost" for w in ("AUTHOR", "COMMITTER") for k in ("NAME", "EMAIL")}
    return {
        **kept,
        **who,
        "HOME": str(folder),
        "RONDEL_TRUST": "yes",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_SYSTEM": "/dev/null",
    }


def _repository(root: Path, count: int, env: dict[str, str], *, edits: bool) -> Path:
    root.mkdir(parents=True)
    rule: dict[str, object] = {
        "reply": "## What was done\nIt.\n",
        "seconds": SECONDS,
        "prompt": r"# (?P<id>IMPL-\d+):",
    }
    if edits:
        rule["files"] = {"out/{id}.txt": "{id}\n"}
    (root / "mock.json").write_text(json.dumps({"rules": [rule]}))
    (root / "rondel.toml").write_text(
        '[agents.m]\nkind = "mock"\nscript = "mock.json"\n[roles]\ntask = "m"\n'
    )
    for argv in (
        ["git", "init", "-q", "-b", "main"],
        ["git", "add", "-A"],
        ["git", "commit", "-qm", "start"],
        [sys.executable, "-m", "rondel", "task", "start", "Scale"],
    ):
        subprocess.run(argv, cwd=root, env=env, check=True, capture_output=True)
    _tasks(root / ".workflow/WFS-scale/.task", count)
    return root


def _tasks(folder: Path, count: int) -> None:
    """Tasks on a few levels, each of which waits for one of the level above."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    width = count // LAYERS
    for number in range(1, count + 1):
        above = [f"IMPL-{number - width}"] if number > width else []
        body = {
            "id": f"IMPL-{number}",
            "title": f"Task {number}",
            "status": "pending",
            "meta": {"type": "feature", "agent": "code-developer"},
            "context": {
                "requirements": ["x"],
                "focus_paths": [f"out/IMPL-{number}.txt"],
                "depends_on": above,
            },
            "flow_control": {"pre_analysis": [], "implementation_approach": {}, "target_files": []},
        }
        (folder / f"IMPL-{number}.json").write_text(json.dumps(body))


if __name__ == "__main__":
    sys.exit(main())
