"""Shell scripts, by shellcheck."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rondel.model import jsons
from rondel.workflows.review.analysers import base
from rondel.workflows.review.findings import Category, Severity

_SHELLS = {"sh", "bash", "dash", "ksh"}
_LEVELS: Mapping[str, tuple[str, Category, Severity]] = {
    "error": (base.RELIABILITY, Category.SHOULD_FIX, Severity.HIGH),
    "warning": (base.RELIABILITY, Category.SHOULD_FIX, Severity.MEDIUM),
    "info": (base.QUALITY, Category.SUGGESTION, Severity.LOW),
    "style": (base.QUALITY, Category.STYLE, Severity.INFO),
}
_SYNTAX = range(1000, 2000)
_ORDERS = re.compile(r"#[ \t]*+shellcheck\b")


def program() -> str | None:
    """Where shellcheck is: beside this Python, or on the PATH."""
    beside = Path(sys.executable).parent / "shellcheck"
    return str(beside) if beside.is_file() else shutil.which("shellcheck")


def _wants(file: base.ChangedFile) -> bool:
    return file.interpreter in _SHELLS or (not file.interpreter and file.suffix in (".sh", ".bash", ".ksh"))


def _look(files: Sequence[base.ChangedFile], scratch: Path, run: base.Run) -> base.Looked:
    found_at = program()
    if found_at is None:
        return base.Looked(trouble="shellcheck is not installed")
    placed = base.copies(files, scratch, orders=_ORDERS)
    # A script without a first line that says so is read as bash, the most common one.
    groups = [(name, file) for name, file in placed.items() if file.interpreter]
    others = [(name, file) for name, file in placed.items() if not file.interpreter]
    hits: list[base.Hit] = []
    for chosen, options in ((groups, []), (others, ["--shell=bash"])):
        if not chosen:
            continue
        argv = [found_at, "--norc", "--format=json1", *options, "--"]
        status, out, err = run([*argv, *(str(scratch / name) for name, _ in chosen)])
        found = parse(out)
        if found is None:
            return base.Looked(trouble=f"shellcheck ended with status {status}: {err.strip()[-200:]}")
        hits += _hits(found, placed)
    return base.Looked(tuple(hits), frozenset(f.path for f in files))


def parse(out: str) -> list[Mapping[str, object]] | None:
    """The comments in shellcheck's JSON; None when it is not that."""
    try:
        report = jsons.load(out)
    except ValueError:
        return None
    found = report.get("comments") if isinstance(report, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else None


def _hits(found: Sequence[Mapping[str, object]], placed: dict[str, base.ChangedFile]) -> Iterator[base.Hit]:
    for item in found:
        file = base.original(item.get("file"), placed)
        level = _LEVELS.get(str(item.get("level")))
        line, end, code = item.get("line"), item.get("endLine"), item.get("code")
        if file is None or level is None or not isinstance(line, int) or not isinstance(code, int):
            continue
        broken = level[2] is Severity.HIGH and code in _SYNTAX
        yield base.Hit(
            rule=f"SC{code}",
            message=str(item.get("message") or ""),
            path=file.path,
            line=file.nearest(line) if broken else line,
            category=Category.BLOCKER if broken else level[1],
            severity=level[2],
            kinds=frozenset({level[0]}),
            line_end=end if isinstance(end, int) and not broken else None,
        )


SHELLCHECK = base.Analyser("shellcheck", frozenset({base.QUALITY, base.RELIABILITY}), _wants, _look)
