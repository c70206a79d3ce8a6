"""Complexity of functions in many languages, by lizard."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rondel.workflows.review.analysers import base
from rondel.workflows.review.findings import Category, Severity

COMPLEXITY_MAX = 15
FAR_TOO_COMPLEX = 30
LENGTH_MAX = 150
_ORDERS = re.compile(r"(?i)lizard[ \t]++forgive|generated code")


@dataclass(frozen=True)
class Function:
    """A function as lizard sees it."""

    file: str
    name: str
    complexity: int
    start: int
    end: int


def _wants(file: base.ChangedFile) -> bool:
    return file.suffix in base.MEASURED


def _look(files: Sequence[base.ChangedFile], scratch: Path, run: base.Run) -> base.Looked:
    placed = base.copies(files, scratch, orders=_ORDERS)
    argv = [sys.executable, "-I", "-m", "lizard", "--csv", "-i", "-1"]
    status, out, err = run([*argv, *(str(scratch / name) for name in placed)])
    found = parse(out)
    if status != 0 or found is None:
        return base.Looked(trouble=f"lizard ended with status {status}: {err.strip()[-200:]}")
    return base.Looked(tuple(_hits(found, placed)), frozenset(f.path for f in files))


def parse(out: str) -> list[Function] | None:
    """The functions in lizard's CSV; None when it is not that."""
    functions = []
    try:
        for row in csv.reader(io.StringIO(out, newline="")):
            _, complexity, _, _, _, _, file, name, _, start, end = row
            functions.append(Function(file, name, int(complexity), int(start), int(end)))
    except (ValueError, csv.Error):
        return None
    return functions


def _hits(functions: Sequence[Function], placed: dict[str, base.ChangedFile]) -> Iterator[base.Hit]:
    """Functions that the change touches and that are too much for a reader."""
    for function in functions:
        file = base.original(function.file, placed)
        touched = sorted(n for n in file.changed if function.start <= n <= function.end) if file else []
        length = function.end - function.start + 1
        if file is None or not touched or (function.complexity <= COMPLEXITY_MAX and length <= LENGTH_MAX):
            continue
        far = function.complexity > FAR_TOO_COMPLEX
        too_complex = function.complexity > COMPLEXITY_MAX
        what = f"{function.complexity} paths" if too_complex else f"{length} lines"
        bound = COMPLEXITY_MAX if too_complex else LENGTH_MAX
        yield base.Hit(
            rule="complexity" if too_complex else "length",
            message=f"`{function.name}` has {what} ({bound} is already much to keep in mind and to test).",
            path=file.path,
            line=touched[0],
            category=Category.SHOULD_FIX if far else Category.SUGGESTION,
            severity=Severity.MEDIUM if far else Severity.LOW,
            kinds=frozenset({base.QUALITY}),
            suggestion="Split it where its steps can be named.",
        )


COMPLEXITY = base.Analyser("lizard", frozenset({base.QUALITY}), _wants, _look)
