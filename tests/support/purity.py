"""Run as a program: the demo's workflows, with every decision of theirs watched.

A decision (`read`, `steps`, what a step asks, checks and writes, `summary`) may look at what it is
given and compute. Leaves, as JSON, who opened a file, started a process or read a clock, and how
often each kind of decision was made.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import rondel
from rondel import installed
from rondel.cli import demo
from rondel.cli.main import main
from rondel.model.workflow import Given, Step, Workflow

FORBIDDEN = ("open", "os.", "subprocess.", "socket.", "shutil.", "tempfile.", "ctypes.dlopen")
CLOCKS = {"now", "utcnow", "today", "time", "time_ns", "monotonic", "perf_counter", "localtime", "gmtime"}
OWN = str(Path(rondel.__file__).parent)  # the package's own prompts are part of the program
MADE = Counter[str]()
WRONG = Counter[str]()
_here = threading.local()


def _decision() -> str:
    return getattr(_here, "decision", "")


def _saw(what: str) -> None:
    frame, names = sys._getframe(2), []
    while frame is not None and len(names) < 12:
        names.append(f"{frame.f_code.co_filename.removeprefix(OWN)}:{frame.f_code.co_name}")
        frame = frame.f_back
    WRONG[f"{_decision()}: {what}, in {' < '.join(n for n in names if n.startswith('/'))[:400]}"] += 1


def _audit(event: str, args: tuple[object, ...]) -> None:
    if _decision() and event.startswith(FORBIDDEN):
        place = str(args[0]) if args else ""
        if not (event == "open" and place.startswith(OWN)):
            _saw(f"{event} {place}")


def _profile(_frame: object, event: str, called: object) -> None:
    if event == "c_call" and _decision() and getattr(called, "__name__", "") in CLOCKS:
        module = str(getattr(called, "__module__", "") or getattr(called, "__self__", ""))
        if "time" in module:
            _saw(f"the clock {called}")


@contextmanager
def _as(decision: str) -> Iterator[None]:
    """In this thread, for this long."""
    before, profile = _decision(), sys.getprofile()
    _here.decision = decision
    sys.setprofile(_profile if decision else None)
    try:
        yield
    finally:
        sys.setprofile(profile)
        _here.decision = before


def _watched(name: str, function: Callable[..., object]) -> Callable[..., object]:
    def call(*args: object, **more: object) -> object:
        MADE[name] += 1
        with _as(name):
            return function(*args, **more)

    return call


def _free(function: Callable[..., object]) -> Callable[..., object]:
    """What the core gives to a decision may do what it has to."""

    def call(*args: object, **more: object) -> object:
        with _as(""):
            return function(*args, **more)

    return call


class _Given:
    """A snapshot that the core gives: it may read."""

    def __init__(self, inner: object) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        with _as(""):
            found = getattr(self._inner, name)
        return _free(found) if callable(found) else found


def _given(value: object) -> object:
    if isinstance(value, Given):
        calls = {n: _free(getattr(value, n)) for n in ("admits", "allowed", "ask") if getattr(value, n)}
        return replace(value, **calls, kind_of=_free(value.kind_of) if value.kind_of else None)
    return _Given(value) if hasattr(value, "names") and hasattr(value, "digest") else value


def _step(step: Step[object]) -> Step[object]:
    names = ("write", "prompt", "check", "begin")
    return replace(step, **{name: _watched(name, getattr(step, name)) for name in names})


def watch(flow: type[Workflow[object]]) -> None:
    """See to every decision of a workflow."""
    read, reread, steps, summary = flow.read, flow.reread, flow.steps, flow.summary

    def each(self: Workflow[object], state: object) -> Iterator[Step[object]]:
        MADE["steps"] += 1
        with _as("steps"):
            found = iter(steps(self, state))
        while True:
            with _as("steps"):
                step = next(found, None)
            if step is None:
                return
            yield _step(step)

    def read_all(self: Workflow[object], *args: object, **more: object) -> object:
        return _watched("read", read)(self, *map(_given, args), **{k: _given(v) for k, v in more.items()})

    def read_again(self: Workflow[object], state: object, *args: object) -> object:
        return _watched("read", reread)(self, state, *map(_given, args))

    flow.read, flow.reread, flow.steps = read_all, read_again, each
    flow.summary = _watched("summary", summary)


def _in_process(scene: demo.Scene, *args: str, expect: int = 0) -> None:
    before, cwd = dict(os.environ), Path.cwd()
    os.environ.clear()
    os.environ.update(scene._env)
    os.chdir(scene.root)
    try:
        code = main(list(args))
    except SystemExit as e:
        code = int(e.code or 0)
    finally:
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(before)
    assert code == expect, f"{args} ended with {code}"


def run(folder: Path) -> None:
    for module in pkgutil.walk_packages(rondel.__path__, "rondel."):
        if "__main__" not in module.name:
            importlib.import_module(module.name)  # what is imported later would open files then
    for point in installed.workflows().values():
        watch(point.load())
    demo.Scene.rondel = _in_process
    sys.addaudithook(_audit)
    for name, part in demo.PARTS.items():
        part(demo.Scene(folder / name))


def misdeeds() -> None:
    """What no decision may do, done as one: to see that it is seen."""
    sys.addaudithook(_audit)
    deeds = {
        "opens": lambda: Path("/etc/passwd").read_bytes(),
        "lists": lambda: os.listdir("/"),
        "starts": lambda: subprocess.run(["true"], check=True),
        "asks the time": lambda: datetime.now(UTC),
    }
    for name, deed in deeds.items():
        _watched(name, deed)()


if __name__ == "__main__":
    folder, result = map(Path, sys.argv[1:3])
    run(folder) if sys.argv[3:] != ["misdeeds"] else misdeeds()
    result.write_text(json.dumps({"made": MADE, "wrong": WRONG}), encoding="utf-8")
