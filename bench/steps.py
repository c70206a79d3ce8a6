"""What one durable step costs, beside other engines, in one run.

The unit is a small line appended to an open file and made durable. Everything takes turns on the same
disk, and each figure is the median of its ratios to the appends beside it. The steps answer at once.
The other engines are installed into a folder of their own; where that is not possible they are left out.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

from engine import CONFIG, instant
from rondel.model.actions import Ask
from rondel.model.changes import Change, text
from rondel.model.outcomes import Outcome
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Status, Summary
from rondel.model.workflow import NOTHING_GIVEN, Given, SessionRef, Step, Workflow
from rondel.project import Project

HERE = Path(__file__).parent
OTHERS = HERE.parent / ".cache/bench-steps"
REF = SessionRef("steps", "one", ".steps/one")
ROUNDS = int(os.environ.get("RONDEL_STEPS_ROUNDS", "9"))
APPENDS = 100
CHAIN = 40
FAN = 64
AT_ONCE = 4  # as a person's settings have it, unless they say otherwise


class Steps(Workflow[frozenset[str]]):
    """So many steps, all due at once, or each after the one before."""

    name = "steps"

    def __init__(self, total: int, *, chain: bool) -> None:
        self.total, self.chain = total, chain
        self.asked = 0
        self.began = self.ended = 0.0

    def sessions(self, repo: Snapshot) -> Iterable[SessionRef]:
        """See `Workflow`."""
        return [REF]

    def read(self, files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> frozenset[str]:
        """See `Workflow`."""
        return files.names("steps")

    def steps(self, state: frozenset[str]) -> Iterable[Step[frozenset[str]]]:
        """From the last look before anything is asked to the first with nothing due."""
        now = time.perf_counter()
        if not self.asked:
            self.began = now
        if len(state) >= self.total:
            self.ended = self.ended or now
            return
        if self.chain:
            yield self._step(f"steps/{len(state)}.md")
            return
        for k in range(self.total):
            if f"{k}.md" not in state:
                yield self._step(f"steps/{k}.md")

    def _step(self, path: str) -> Step[frozenset[str]]:
        def prompt(_state: frozenset[str]) -> str:
            self.asked += 1
            return f"Write {path}."

        def write(_state: frozenset[str], outcome: Outcome) -> Sequence[Change]:
            return [text(path, outcome.text)]

        return Step(Ask(path, "steps.writer"), write, prompt)

    def summary(self, state: frozenset[str]) -> Summary:
        """See `Workflow`."""
        return Summary("steps", Status.ACTIVE)


def _rondel(total: int, at_once: int, *, chain: bool = False) -> float:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = f"{folder}/state"
        os.environ["XDG_CACHE_HOME"] = f"{folder}/cache"
        root = Path(folder, "repo")
        (root / REF.folder / ".rondel").mkdir(parents=True)
        (root / REF.folder / "steps").mkdir()
        (root / "rondel.toml").write_text(CONFIG)
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        workflow = Steps(total, chain=chain)

        Project(root, workflows={"steps": workflow}, build=instant).run(REF, agents_max=at_once)
        if len(list((root / REF.folder / "steps").iterdir())) != total:
            raise SystemExit("not every step was done")
        return (workflow.ended - workflow.began) / total


def _append() -> float:
    line = b'{"kind":"finished","action":"steps/1.md","try":1,"ended":"done"}\n'
    with tempfile.TemporaryDirectory() as folder:
        log = os.open(f"{folder}/log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        begin = time.perf_counter()
        for _ in range(APPENDS):
            os.write(log, line)
            os.fsync(log)
        seconds = time.perf_counter() - begin
        os.close(log)
    return seconds / APPENDS


def _replace() -> float:
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        for k in range(CHAIN):
            fd = os.open(f"{folder}/tmp", os.O_CREAT | os.O_WRONLY)
            os.write(fd, b"An answer to the step.\n")
            os.fsync(fd)
            os.close(fd)
            os.rename(f"{folder}/tmp", f"{folder}/{k}.md")  # noqa: PTH104 - the bare operation is measured
            here = os.open(folder, os.O_RDONLY)
            os.fsync(here)
            os.close(here)
        return (time.perf_counter() - begin) / CHAIN


class Other:
    """Another engine, at work in a process of its own."""

    def __init__(self, python: Path, name: str) -> None:
        self._process = subprocess.Popen(
            [str(python), str(HERE / "others" / f"{name}_steps.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self("chain", 5)  # so that everything is imported

    def __call__(self, shape: str, steps: int) -> float:
        """Seconds per step."""
        if self._process.stdin is None or self._process.stdout is None:
            raise SystemExit("it has no pipes")
        self._process.stdin.write(f"{shape} {steps}\n")
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        if not said:
            raise SystemExit("another engine ended before it had answered")
        return float(said)

    def close(self) -> None:
        """It ends with its input."""
        self._process.communicate()


def _installed() -> Path | None:
    """The interpreter that has the other engines; None, said loudly, where they cannot be installed."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    wanted: list[str] = project["optional-dependencies"]["bench"]
    python, stamp = OTHERS / "bin/python", OTHERS / "installed"
    if stamp.is_file() and stamp.read_text() == "\n".join(wanted):
        return python
    venv.create(OTHERS, with_pip=True, clear=True)
    words = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        print(f"  LEFT OUT: {', '.join(wanted)} cannot be installed here: {done.stderr.strip()[-300:]}")
        return None
    stamp.write_text("\n".join(wanted))
    return python


def main() -> None:
    """Print each step in units of the append, and against the same step of the others."""
    python = _installed()
    with ExitStack() as stack:
        works: dict[str, Callable[[], float]] = {
            "bare write, fsync, rename, fsync": _replace,
            "Rondel, one at a time": lambda: _rondel(CHAIN, 1, chain=True),
            f"Rondel, fan-out, {AT_ONCE} at once": lambda: _rondel(FAN, AT_ONCE),
            "Rondel, fan-out, all at once": lambda: _rondel(FAN, FAN),
        }
        if python is not None:
            graph, dbos = Other(python, "langgraph"), Other(python, "dbos")
            stack.callback(graph.close)
            stack.callback(dbos.close)
            works["LangGraph, one at a time"] = lambda: graph("chain", CHAIN)
            works["LangGraph, fan-out, all at once"] = lambda: graph("fan", FAN)
            works["DBOS, one at a time"] = lambda: dbos("chain", CHAIN)
        ratios: dict[str, list[float]] = {name: [] for name in works}
        units = []
        for _ in range(ROUNDS):
            for name, work in works.items():
                before, took, after = _append(), work(), _append()
                units.append((before + after) / 2)
                ratios[name].append(took / units[-1])
    print(f"  the unit, a line appended and synced: {statistics.median(units) * 1e6:.0f} us")
    for name, found in sorted(ratios.items(), key=lambda item: statistics.median(item[1])):
        low, _, high = statistics.quantiles(found, n=4)
        print(f"  {name}: {statistics.median(found):.1f} units (half of them {low:.1f} to {high:.1f})")


if __name__ == "__main__":
    os.environ.setdefault("RONDEL_TRUST", "yes")
    sys.exit(main())
