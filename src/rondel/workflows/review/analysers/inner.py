"""Analysers of our own, each in a process of its own: whatever a file makes of a parser, it ends.

The process gets paths of copies and lines on its standard input and prints hits. It runs under the
limits on time and memory of every program of `checks`; one that fails or is ended has looked at nothing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from rondel.model import jsons
from rondel.workflows.review.analysers.base import ChangedFile, Hit, Looked, Run, copies
from rondel.workflows.review.findings import Category, Severity

Find = Callable[[Sequence[ChangedFile]], Iterable[Hit]]


def in_child(module: str) -> Callable[[Sequence[ChangedFile], Path, Run], Looked]:
    """How an analyser looks whose module has a function `find`."""

    def look(files: Sequence[ChangedFile], scratch: Path, run: Run) -> Looked:
        placed = copies(files, scratch)
        asked = [[file.path, str(scratch / at), sorted(file.changed)] for at, file in placed.items()]
        name = module.rpartition(".")[2]
        argv = [sys.executable, "-I", "-m", __name__, name]
        status, out, err = run(argv, stdin=json.dumps(asked))
        hits = parse(out)
        if status != 0 or hits is None:
            said = err.strip().rpartition("\n")[2][-200:]
            return Looked(trouble=f"{name} ended with status {status}: {said}")
        return Looked(hits, frozenset(file.path for file in files))

    return look


def parse(out: str) -> tuple[Hit, ...] | None:
    """The hits that a process printed; None when it is not that."""
    try:
        return tuple(
            Hit(
                str(hit["rule"]),
                str(hit["message"]),
                str(hit["path"]),
                int(hit["line"]),
                Category(hit["category"]),
                Severity(hit["severity"]),
                frozenset(map(str, hit["kinds"])),
            )
            for hit in jsons.load(out)
        )
    except (ValueError, TypeError, KeyError):
        return None


def main(name: str) -> int:
    """Look at the files that standard input names, and print the hits."""
    find: Find = import_module(f"{__package__}.{name}").find
    asked = json.loads(sys.stdin.buffer.read())
    files = [ChangedFile(path, Path(copy).read_bytes(), frozenset(lines)) for path, copy, lines in asked]
    sys.stdout.write(json.dumps([{**asdict(hit), "kinds": sorted(hit.kinds)} for hit in find(files)]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
