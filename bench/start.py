"""How long the command takes to start, against an interpreter that does nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 15
RONDEL = str(Path(sys.executable).with_name("rondel"))
COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "rondel --version": [RONDEL, "--version"],
    "rondel hook session-start": [RONDEL, "hook", "session-start"],
}


def _seconds(argv: list[str], cwd: str) -> float:
    begin = time.perf_counter()
    subprocess.run(argv, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def main() -> None:
    """Print the ratios; the commands take turns, so that a busy machine slows all alike."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
        times: dict[str, list[float]] = {name: [] for name in COMMANDS}
        for _ in range(RUNS):
            for name, argv in COMMANDS.items():
                times[name].append(_seconds(argv, folder))
    bare = statistics.median(times.pop("python -c pass"))
    for name, seconds in times.items():
        middle = statistics.median(seconds)
        print(f"  {name}: {middle / bare:.2f} times `python -c pass` ({middle * 1e3:.0f} ms; at most 4)")


if __name__ == "__main__":
    main()
