"""What the sandbox costs per start: `true` under its reaper, without it and in each kind of it, in turns."""

from __future__ import annotations

import asyncio
import resource
import statistics
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from rondel.processes.runner import Child, clean_env, run
from rondel.sandbox import namespaces
from rondel.sandbox.box import Box, Confined, holds, own_places
from rondel.sandbox.hosts import named

ROUNDS = 60


def processor_s() -> float:
    """Seconds that we, and those whom we waited for, have used of the processor."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in spent)


def once(folder: Path, confined: Confined | None) -> tuple[float, float]:
    """Seconds from the start of a child to its end, and of processor time."""
    child = Child(("true",), folder / "cwd", clean_env(), folder / "spool", confined=confined)
    began, used = time.perf_counter(), processor_s()
    ended = asyncio.run(run(child))
    took = time.perf_counter() - began, processor_s() - used
    if not ended.ok:
        raise SystemExit(f"`true` ended with {ended}")
    return took


def boxes(folder: Path) -> dict[str, Confined | None]:
    """No sandbox, and each kind that this machine has."""
    hidden = (str(folder / "repo"), *own_places())
    box = Box(hidden=hidden, objects=(str(folder / "repo/.git/objects"),))
    found: dict[str, Confined | None] = {"without": None, "inside": Confined(box, writes=True)}
    if not namespaces.missing():
        found["no network"] = Confined(replace(box, network="none"), writes=True)
        some = replace(box, network="vendor", hosts=named(["example.com"]))
        found["some hosts"] = Confined(some, writes=True)
    return found


def main() -> None:
    """Print the medians, and what each is over a start without a sandbox.

    On a busy machine processor time says more: the other has the waiting in it.
    """
    if not holds():
        print("  no Landlock here: nothing to measure")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "cwd").mkdir()
        subprocess.run(["git", "init", "-q", str(folder / "repo")], check=True)
        kinds = boxes(folder)
        rounds = [[once(folder, confined) for confined in kinds.values()] for _ in range(ROUNDS)]
    for n, what in enumerate(("time", "processor time")):
        medians = [
            statistics.median(took[n] * 1000 for took in column) for column in zip(*rounds, strict=True)
        ]
        for kind, median in zip(kinds, medians, strict=True):
            over = f"{median - medians[0]:+5.1f} ms  ratio {median / medians[0]:.2f}"
            print(f"  {what}, {kind:11} {median:6.1f} ms  {over}")


if __name__ == "__main__":
    main()
