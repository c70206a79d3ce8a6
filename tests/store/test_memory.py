"""Memory for a small document is small: what may be read at most is no measure of what is taken for it."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from rondel.engine import perform, spools
from rondel.engine.look import DiskReader
from rondel.processes import runner
from rondel.store import documents, files
from rondel.store.snapshot import DiskSnapshot
from rondel.workflows.feature import hook
from rondel.workflows.review import checks

SMALL = b'{"a": 1}\n'
PEAK_MAX = 300_000  # bytes; every bound in here is a megabyte or more

READERS: dict[str, Callable[[Path], object]] = {
    "files": lambda folder: files.read(folder / "x.json"),
    "documents": lambda folder: documents.load(folder / "x.json"),
    "an edit": lambda folder: documents.edit(folder / "x.json", lambda d: {**d, "b": 1}),
    "a snapshot": lambda folder: DiskSnapshot(folder).json("x.json"),
    "an output": lambda folder: runner.output(folder, "x.json"),
    "a tail": lambda folder: runner.tail(folder, "x.json"),
    "a command's output": lambda folder: perform._read(folder / "x.json"),
    "a command's file": lambda folder: spools._one(folder, "x.json"),
    "a look": lambda folder: DiskReader(folder, lambda: None).file("x.json", 50_000_000),  # type: ignore[arg-type,return-value]
    "a changed file": lambda folder: checks._read(folder, "x.json"),
    "a hook": lambda folder: hook._read(str(folder / "x.json")),
}


@pytest.mark.parametrize("name", READERS)
def test_a_small_document_takes_little_memory(tmp_path, name):
    (tmp_path / "x.json").write_bytes(SMALL)
    READERS[name](tmp_path)  # what is made once, on the first use, does not count
    (tmp_path / "x.json").write_bytes(SMALL)
    tracemalloc.start()
    try:
        assert READERS[name](tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < PEAK_MAX, f"{peak} bytes for {len(SMALL)}"


def test_a_document_is_read_where_there_is_little_memory(tmp_path):
    """With 20 MB of address space to spare, less than what may be read at most."""
    (tmp_path / "x.json").write_bytes(SMALL)
    code = f"""
import resource
from pathlib import Path
from rondel.store import documents, files
pages = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (pages + 20_000_000, pages + 20_000_000))
assert documents.load(Path({str(tmp_path / "x.json")!r})) == {{"a": 1}}
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
