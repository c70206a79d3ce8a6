"""Damaging a session's documents while its driver runs, as an agent or an editor might.

A workflow's `Trial` (see `kills`) is driven in a child; at a chosen point, from its first ask on,
one of its documents is damaged. It must end as if nothing had happened.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from rondel.store import disk
from rondel.testing.faults import in_child
from rondel.testing.kills import Trial, Undisturbed
from rondel.testing.scripted import paid, run_of

SWEEP = bool(os.environ.get("RONDEL_SWEEP"))


def sibling(path: str, name: str) -> ModuleType:
    """The module of this name beside a test file: several folders have one of the same name."""
    place = Path(path).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"{place.parent.name}_{name}", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _delete(path: Path) -> None:
    path.unlink()


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()
    (path / "inside").write_text("x")


def _link_out(path: Path) -> None:
    path.unlink()
    path.symlink_to("/etc/hostname")


def _link_nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def _no_text(path: Path) -> None:
    path.write_bytes(b"\xff\xfe{\x80" + path.read_bytes()[:20])


def _garbage(path: Path) -> None:
    data = path.read_bytes()
    half = len(data) // 2
    path.write_bytes(data[:half] + b"\x00<<<<<<< HEAD\n" + data[half:])


DAMAGES: Mapping[str, Callable[[Path], object]] = {
    "cut": _cut,
    "emptied": lambda path: path.write_bytes(b""),
    "prose": lambda path: path.write_text("I have updated the file.\n"),
    "a list": lambda path: path.write_text("[1, 2]\n"),
    "nothing in it": lambda path: path.write_text("{}\n"),
    "a text": lambda path: path.write_text('"x"\n'),
    "deleted": _delete,
    "a folder": _folder,
    "a link out": _link_out,
    "a link to nothing": _link_nowhere,
    "no text": _no_text,
    "garbage": _garbage,
}


def cases(documents: Sequence[str], seed: int, points: int) -> Iterator[tuple[str, str, int]]:
    """Some kinds of damage to some document at some point; all of all, many times, under RONDEL_SWEEP."""
    rng = random.Random(seed)
    every = [(document, how) for document in documents for how in DAMAGES]
    for document, how in every * 5 if SWEEP else rng.sample(every, 4):
        yield document, how, rng.randint(1, points)


def points_of(trial: Trial) -> int:
    """How many points an undisturbed drive passes from its first ask on; the least of a few."""
    counted = trial.root / ".git/points"

    def work() -> int:
        passed = _count(lambda _: None)
        code = trial.drive()
        counted.write_text(str(passed()))
        return code

    assert in_child(work) == 0
    return int(counted.read_text())


def damaged_and_whole(trial: Trial, document: str, how: str, point: int, calm: Undisturbed) -> bool:
    """Damage a document, a pattern below the session, at a point; it ends as if nothing had happened.

    Whether it had to be put back: the driver's own next write may have come first.
    """
    struck = trial.root / ".git/struck"

    def work() -> int:
        def strike(_: int) -> None:
            found = sorted(p for p in trial.session.glob(document) if p.is_file() and not p.is_symlink())
            if found and not struck.exists():
                DAMAGES[how](found[-1])
                struck.write_text(str(found[-1]))

        _count(strike, point)
        return trial.drive()

    words = f"{document} {how} at point {point}"
    assert in_child(work) == 0, words
    assert unscathed(trial.shown()) == unscathed(calm.shown), words
    assert paid(trial.session) == calm.paid, words
    return struck.exists() and _is_said(trial.session, Path(struck.read_text()), how)


def _count(strike: Callable[[int], None], point: int = 0) -> Callable[[], int]:
    """Count the points from the first ask on, and strike from the chosen one on."""
    passed = 0

    def count(operation: str, path: str) -> None:
        nonlocal passed
        # The journal is not counted: a driver notes its own start there before it knows anything.
        is_driving = asyncio._get_running_loop() is not None and not path.endswith("journal.jsonl")
        if is_driving and (passed or operation == "agent"):
            passed += 1
            if passed >= point > 0:
                strike(passed)

    disk.point = count
    return lambda: passed


def unscathed(shown: Mapping[str, object]) -> dict[str, object]:
    """What a session shows but for what was put aside."""
    return {path: data for path, data in shown.items() if ".damaged-" not in path}


def _is_said(session: Path, path: Path, how: str) -> bool:
    """Whether the journal says that it was put back; then what was there is kept, and status says so."""
    lines = (run_of(session) / "journal.jsonl").read_text().splitlines()
    said = [event for line in lines if (event := json.loads(line))["kind"] == "restored"]
    if said:
        kept = list((session / ".rondel/aside").glob("*.damaged-*"))
        assert how == "deleted" or kept, said
        assert any(str(event["file"]).endswith(path.name) for event in said), said
    return bool(said)
