"""What durability costs: each operation of the store against the bare file operations it needs."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rondel.store import documents, files
from rondel.store.journal import Journal
from rondel.store.snapshot import DiskSnapshot

TIMES = 300
ROUNDS = 5
SESSIONS = 5_000
TEXT = b"An answer of some length.\n" * 20
EVENT = {"action": "rounds/round-1/reviews/principal-1.md", "tokens": 1234, "digest": "0" * 64}


def bare_write(path: str, data: bytes) -> None:
    """The four steps of an atomic, durable file, and nothing else."""
    folder, temp = os.path.dirname(path), f"{path}.tmp"  # noqa: PTH120 - bare operations are measured
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(fd, data)
    os.fsync(fd)
    os.close(fd)
    os.rename(temp, path)  # noqa: PTH104 - likewise
    fd = os.open(folder, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def compare(name: str, bare: Callable[[int], object], ours: Callable[[int], object]) -> None:
    """Print the ratio; the two take turns, so that a busy machine slows both alike."""
    spent: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(ROUNDS):
        for mine in (False, True):
            work = ours if mine else bare
            begin = time.perf_counter()
            for number in range(TIMES):
                work(number)
            spent[mine].append((time.perf_counter() - begin) / TIMES)
    before, after = (statistics.median(spent[mine]) for mine in (False, True))
    print(f"  {name}: {after / before:.2f} times the bare operations ({after * 1e6:.0f} µs; at most 3)")


def commits(folder: Path) -> None:
    """A file, a line of the journal, a document."""
    compare(
        "a file",
        lambda n: bare_write(f"{folder}/bare-{n}", TEXT),
        lambda n: files.write(folder / f"ours-{n}", TEXT),
    )
    log = os.open(f"{folder}/bare.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    journal = Journal(folder / "ours.jsonl")

    def bare_line(_: int) -> None:
        os.write(log, json.dumps(EVENT).encode() + b"\n")
        os.fsync(log)

    compare("a line of the journal", bare_line, lambda _: journal.add("finished", **EVENT))

    def bare_edit(number: int) -> None:
        path = Path(f"{folder}/bare.json")
        document = json.loads(path.read_bytes()) if path.exists() else {}
        bare_write(str(path), json.dumps({**document, "n": number}, indent=2).encode())

    compare(
        "a document", bare_edit, lambda n: documents.edit(folder / "ours.json", lambda d: {**d, "n": n + 0.5})
    )


FOLDERS = ("", "rounds", ".rondel")
FILES = ("state.json", ".rondel/request-1.json")


def bare_scan(folder: Path) -> None:
    """What reading many sessions needs, and nothing else."""
    for name in os.listdir(folder):  # noqa: PTH208 - bare operations are measured
        for below in FOLDERS:
            os.listdir(f"{folder}/{name}/{below}")  # noqa: PTH208 - likewise
        for path in FILES:
            with open(f"{folder}/{name}/{path}", "rb") as file:  # noqa: PTH123 - likewise
                json.loads(file.read())


def our_scan(folder: Path) -> None:
    """The same by snapshots."""
    for name in os.listdir(folder):  # noqa: PTH208 - likewise
        session = DiskSnapshot(f"{folder}/{name}")
        for below in FOLDERS:
            session.names(below)
        for path in FILES:
            session.json(path)


def scan(folder: Path) -> None:
    """Reading the state of many sessions."""
    for number in range(SESSIONS):
        session = folder / f"session-{number}"
        (session / ".rondel").mkdir(parents=True)
        (session / "rounds" / "round-1").mkdir(parents=True)
        (session / "state.json").write_text(json.dumps({"phase": "reviews", "history": list(range(40))}))
        (session / ".rondel" / "request-1.json").write_text('{"target": "main"}')
    spent: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(3):
        for mine in (False, True):
            begin = time.perf_counter()
            (our_scan if mine else bare_scan)(folder)
            spent[mine].append(time.perf_counter() - begin)
    ratio = statistics.median(spent[True]) / statistics.median(spent[False])
    print(f"  reading {SESSIONS} sessions: {ratio:.2f} times a bare scan of the same files (at most 3)")


def main() -> None:
    """Print the ratios."""
    for work in (commits, scan):
        folder = Path(tempfile.mkdtemp(dir=Path.cwd()))
        try:
            work(folder)
        finally:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
