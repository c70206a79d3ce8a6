"""The engine's own cost per action, as the session grows; and what a durable commit costs.

The agent answers at once, so that what is measured is the engine. Every figure is a ratio
of two measurements of the same run.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rondel.agents.base import AgentSettings, Beat, Reply, Request
from rondel.model.actions import Ask, Derive
from rondel.model.changes import Change, text
from rondel.model.outcomes import Ended, Outcome, Usage
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Status, Summary
from rondel.model.workflow import NOTHING_GIVEN, Given, SessionRef, Step, Workflow
from rondel.project import Project

REF = SessionRef("bench", "one", ".bench/one")
SIZES = (100, 1_000, 10_000)
ROUND = 100
CONFIG = '[agents.instant]\nkind = "mock"\n\n[roles]\ndefault = "instant"\n'


@dataclass(frozen=True)
class Wheel:
    """The round that is open, and what of it is there."""

    number: int
    there: frozenset[str]


class WheelWorkflow(Workflow[Wheel]):
    """As many actions as asked for, in rounds of `width`, each closed by a file."""

    name = "bench"

    def __init__(self, total: int, width: int) -> None:
        self.total, self.width = total, width

    def sessions(self, repo: Snapshot) -> Iterable[SessionRef]:
        """See `Workflow`."""
        return [REF]

    def read(self, files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> Wheel:
        """See `Workflow`."""
        number = len(files.names("closed")) + 1
        return Wheel(number, files.names(f"round-{number}"))

    def steps(self, state: Wheel) -> Iterable[Step[Wheel]]:
        """See `Workflow`."""
        if (state.number - 1) * self.width >= self.total:
            return
        missing = False
        for k in range(self.width):
            if f"{k}.md" not in state.there:
                missing = True
                yield _step(Ask(f"round-{state.number}/{k}.md", "bench.writer"))
        if not missing:
            yield _step(Derive(f"closed/{state.number}"))

    def summary(self, state: Wheel) -> Summary:
        """See `Workflow`."""
        return Summary("bench", Status.ACTIVE)


def _step(action: Ask | Derive) -> Step[Wheel]:
    def write(_state: Wheel, outcome: Outcome) -> Sequence[Change]:
        return [text(action.path, outcome.text or "closed")]

    return Step(action, write, lambda _state: f"Write {action.path}.")


class Instant:
    """An agent that answers at once."""

    name = kind = "mock"
    in_process = True
    model = ""

    async def run(self, request: Request, _beat: Callable[[Beat], None]) -> Reply:
        """See `Agent`."""
        return Reply(Ended.DONE, f"An answer to {request.action}.\n", usage=Usage(10, 1))

    def recover(self, _request: Request) -> Reply | None:
        """See `Agent`."""
        return None

    def version(self) -> str | None:
        """See `Agent`."""
        return "1"


def instant(_settings: AgentSettings) -> Instant:
    """Whoever is asked answers at once."""
    return Instant()


def _drive(total: int, width: int) -> float:
    """Seconds per action of a whole session."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "repo")
        os.environ["XDG_STATE_HOME"] = f"{folder}/state"
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        (root / "rondel.toml").write_text(CONFIG)
        (root / REF.folder / ".rondel").mkdir(parents=True)
        workflow = WheelWorkflow(total, width)

        project = Project(root, workflows={"bench": workflow}, build=instant)
        begin = time.perf_counter()
        project.run(REF)
        seconds = time.perf_counter() - begin
        made = sum(1 for _ in (root / REF.folder).glob("round-*/*.md"))
        if made != total:
            raise SystemExit(f"only {made} of {total} actions were done")
        return seconds / total


def _bare(times: int) -> tuple[float, float]:
    """Seconds for the bare file operations of one action, and of its durable commit alone.

    The commit is a durable file and two durable lines. Before it a try has a file with its prompt and
    its answer, so that no answer is paid for twice.
    """
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        for k in range(times):
            Path(f"{folder}/{k}.json").write_bytes(b"Write it. An answer to the action.\n")
        tried = (time.perf_counter() - begin) / times
        log = os.open(f"{folder}/journal", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        line = json.dumps({"kind": "finished", "action": "round-1/1.md", "digest": "0" * 64}).encode() + b"\n"
        begin = time.perf_counter()
        for k in range(times):
            os.write(log, line)
            os.fsync(log)
            fd = os.open(f"{folder}/tmp", os.O_CREAT | os.O_WRONLY)
            os.write(fd, b"An answer to the action.\n")
            os.fsync(fd)
            os.close(fd)
            os.rename(f"{folder}/tmp", f"{folder}/{k}.md")  # noqa: PTH104 - the bare operation is measured
            here = os.open(folder, os.O_RDONLY)
            os.fsync(here)
            os.close(here)
            os.write(log, line)
            os.fsync(log)
        committed = (time.perf_counter() - begin) / times
        os.close(log)
        return tried + committed, committed


def main() -> None:
    """Print the ratios; sessions and bare operations take turns, so that a busy disk slows both alike."""
    for shape, width_of in (("rounds of 100", lambda _: ROUND), ("one fan-out", lambda total: total)):
        cost, against_bare, against_commit = {}, [], []
        for total in SIZES:
            runs = 1 if total == SIZES[-1] else 3
            times = [(_drive(total, width_of(total)), _bare(500)) for _ in range(runs)]
            cost[total] = statistics.median(driven for driven, _ in times)
            against_bare += [driven / bare for driven, (bare, _) in times]
            against_commit += [driven / commit for driven, (_, commit) in times]
        ratio, commit = statistics.median(against_bare), statistics.median(against_commit)
        for total in SIZES:
            print(f"  {shape}: {total:>6} actions: {cost[total] * 1e3:.2f} ms an action")
        print(f"  {shape}: cost per action, 10,000 against 100: {cost[10_000] / cost[100]:.2f} (at most 1.3)")
        print(f"  {shape}: an action against its bare file operations: {ratio:.2f} (at most 3)")
        print(f"  {shape}: an action against the durable ones of these alone: {commit:.2f}")


if __name__ == "__main__":
    main()
