"""What `rondel status` costs over 5,000 sessions, against a bare scan that reads the same files.

An audit hook notes which files and folders a first look opens; the bare scan then opens
exactly these, reads them and parses nothing.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rondel.cli.common import summary_json
from rondel.project import Project

SESSIONS = int(os.environ.get("SESSIONS", "5000"))
RUNS = 5


def _make(root: Path) -> None:
    """Sessions as reviews leave them: two rounds, the second complete for every other one."""
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    for number in range(SESSIONS):
        name = f"2026-01-01-branch-{number:04}"
        folder = root / ".ocr" / "sessions" / name
        for k in (1, 2):
            reviews = folder / "rounds" / f"round-{k}" / "reviews"
            reviews.mkdir(parents=True)
            for reviewer in ("quality-1", "security-1"):
                (reviews / f"{reviewer}.md").write_text("## Summary\n\nFine.\n")
            if k == 1 or number % 2:
                (reviews.parent / "discourse.md").write_text("# Discourse\n")
                (reviews.parent / "final.md").write_text("# Final review\n\n**Verdict**: APPROVE\n")
        state = {
            "session_id": name,
            "status": "active",
            "current_phase": "reviews",
            "phase_number": 4,
            "current_round": 2,
            "branch": f"branch-{number:04}",
            "started_at": "2026-01-01T10:00:00+00:00",
            "updated_at": "2026-01-01T11:00:00+00:00",
        }
        (folder / "state.json").write_text(json.dumps(state, indent=2))
        (folder / ".rondel" / "run").mkdir(parents=True)
        (folder / ".rondel" / "request-1.json").write_text(json.dumps({"round": 2, "team": []}))
        (folder / ".rondel" / "run" / "lease").write_text(json.dumps({"pid": 1, "epoch": 1}))


class Watch:
    """Notes what is opened below a folder while it is switched on."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self.on = False
        self.files: list[str] = []
        self.folders: list[str] = []
        sys.addaudithook(self._note)

    def _note(self, event: str, args: tuple[object, ...]) -> None:
        if not self.on or event not in ("open", "os.scandir", "os.listdir") or not isinstance(args[0], str):
            return
        path = args[0]
        if path.startswith(self._root):
            flags = args[2] if event == "open" and isinstance(args[2], int) else 0
            if not flags & os.O_PATH:  # that is a look at a name, and no read
                is_file = event == "open" and not flags & os.O_DIRECTORY
                (self.files if is_file else self.folders).append(path)


def _status(root: Path) -> int:
    """What the command does, less the printing."""
    project = Project(root)
    rows = [summary_json(project, ref, found) for ref, found in project.survey()]
    return len(rows)


def _bare_scan(files: list[str], folders: list[str]) -> None:
    for path in folders:
        with os.scandir(path) as entries:
            for entry in entries:
                entry.is_dir()
    for path in files:
        with open(path, "rb") as file:  # noqa: PTH123 - the bare operation is measured
            file.read()


def _seconds(work: object) -> float:
    begin = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - begin


def main() -> None:
    """Print the ratio; the two take turns, so that a busy machine slows both alike."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _make(root)
        watch = Watch(root)
        watch.on = True
        found = _status(root)
        watch.on = False
        if found != SESSIONS:
            raise SystemExit(f"{found} sessions of {SESSIONS} were found")
        files = [p for p in watch.files if Path(p).is_file()]
        folders = [p for p in watch.folders if Path(p).is_dir()]
        times = [
            (_seconds(lambda: _status(root)), _seconds(lambda: _bare_scan(files, folders)))
            for _ in range(RUNS)
        ]
    status, bare = (statistics.median(column) for column in zip(*times, strict=True))
    print(f"  {len(files)} files and {len(folders)} folders are read for {SESSIONS} sessions")
    print(f"  status: {status:.2f} s, bare scan: {bare:.2f} s: {status / bare:.2f} times (at most 3)")


if __name__ == "__main__":
    main()
