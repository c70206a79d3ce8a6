"""Python, by ruff: errors, likely bugs, security, performance, complexity."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rondel.model import jsons
from rondel.workflows.review.analysers import base
from rondel.workflows.review.findings import Category, Severity

SELECTED = "F,E9,B,S,PERF,C4,C90,PLE,PLW,ASYNC,BLE,T100,DTZ"
# Each of these is right so seldom in other people's code that it would only be noise.
IGNORED = "S101,S404,S603,S607,B008,B905,PLW2901,PLW0603,C408,DTZ001,DTZ011,PERF203"
COMPLEXITY_MAX = 15
SYNTAX = "invalid-syntax"

_Rule = tuple[str, Category, Severity]
_BLOCKER, _FIX, _SUGGEST = Category.BLOCKER, Category.SHOULD_FIX, Category.SUGGESTION
# The longest beginning of a rule's code counts.
_RULES: Mapping[str, _Rule] = {
    SYNTAX: (base.RELIABILITY, _BLOCKER, Severity.CRITICAL),
    "E9": (base.RELIABILITY, _BLOCKER, Severity.CRITICAL),
    "F": (base.QUALITY, _FIX, Severity.MEDIUM),
    "F401": (base.QUALITY, _SUGGEST, Severity.LOW),
    "F541": (base.QUALITY, Category.STYLE, Severity.INFO),
    "F63": (base.RELIABILITY, _FIX, Severity.HIGH),
    "F7": (base.RELIABILITY, _BLOCKER, Severity.HIGH),
    "F82": (base.RELIABILITY, _BLOCKER, Severity.HIGH),
    "F84": (base.QUALITY, _SUGGEST, Severity.LOW),
    "B": (base.RELIABILITY, _FIX, Severity.MEDIUM),
    "B006": (base.RELIABILITY, _FIX, Severity.HIGH),
    "B023": (base.RELIABILITY, _FIX, Severity.HIGH),
    "B007": (base.QUALITY, Category.STYLE, Severity.INFO),
    "B009": (base.QUALITY, Category.STYLE, Severity.INFO),
    "B010": (base.QUALITY, Category.STYLE, Severity.INFO),
    "B904": (base.QUALITY, _SUGGEST, Severity.LOW),
    "BLE": (base.RELIABILITY, _SUGGEST, Severity.MEDIUM),
    "S": (base.SECURITY, _FIX, Severity.MEDIUM),
    "S10": (base.SECURITY, _FIX, Severity.HIGH),
    "S103": (base.SECURITY, _FIX, Severity.MEDIUM),
    "S110": (base.RELIABILITY, _FIX, Severity.MEDIUM),
    "S112": (base.RELIABILITY, _FIX, Severity.MEDIUM),
    "S113": (base.RELIABILITY, _FIX, Severity.MEDIUM),
    "S307": (base.SECURITY, _FIX, Severity.HIGH),
    "S301": (base.SECURITY, _FIX, Severity.HIGH),
    "S311": (base.SECURITY, _SUGGEST, Severity.LOW),
    "S501": (base.SECURITY, _FIX, Severity.HIGH),
    "S506": (base.SECURITY, _FIX, Severity.HIGH),
    "S60": (base.SECURITY, _FIX, Severity.HIGH),
    "S608": (base.SECURITY, _FIX, Severity.HIGH),
    "PERF": (base.PERFORMANCE, _SUGGEST, Severity.LOW),
    "C4": (base.PERFORMANCE, _SUGGEST, Severity.LOW),
    "C90": (base.QUALITY, _SUGGEST, Severity.MEDIUM),
    "PLE": (base.RELIABILITY, _FIX, Severity.HIGH),
    "PLW": (base.QUALITY, _SUGGEST, Severity.LOW),
    "PLW1508": (base.RELIABILITY, _FIX, Severity.MEDIUM),
    "ASYNC": (base.RELIABILITY, _FIX, Severity.MEDIUM),
    "T100": (base.QUALITY, _FIX, Severity.MEDIUM),
    "DTZ": (base.RELIABILITY, _SUGGEST, Severity.LOW),
}
_SECRET = ("S105", "S106", "S107")


def _wants(file: base.ChangedFile) -> bool:
    return file.suffix in (".py", ".pyi") or (not file.suffix and file.interpreter.startswith("python"))


def _look(files: Sequence[base.ChangedFile], scratch: Path, run: base.Run) -> base.Looked:
    placed = base.copies(files, scratch, ".py" if any(not f.suffix for f in files) else "")
    options = ["check", "--isolated", "--no-cache", "--no-fix", "--exit-zero", "--output-format=json"]
    options.append("--ignore-noqa")  # a comment of the change does not say what is found in it
    rules = [f"--select={SELECTED}", f"--ignore={IGNORED}", "--target-version=py314"]
    limits = ["--config", f"lint.mccabe.max-complexity={COMPLEXITY_MAX}"]
    argv = [sys.executable, "-I", "-m", "ruff", *options, *rules, *limits, "--"]
    status, out, err = run([*argv, *(str(scratch / name) for name in placed)])
    if status != 0:
        return base.Looked(trouble=f"ruff ended with status {status}: {err.strip()[-200:]}")
    found = parse(out)
    if found is None:
        return base.Looked(trouble="ruff printed something that is not its report")
    return base.Looked(tuple(_hits(found, placed)), frozenset(f.path for f in files))


def parse(out: str) -> list[Mapping[str, object]] | None:
    """The diagnostics in ruff's JSON; None when it is not that."""
    try:
        found = jsons.load(out)
    except ValueError:
        return None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else None


def _hits(found: Sequence[Mapping[str, object]], placed: dict[str, base.ChangedFile]) -> Iterator[base.Hit]:
    for item in found:
        file = base.original(item.get("filename"), placed)
        code = str(item.get("code") or SYNTAX)
        rule = next((_RULES[code[:n]] for n in range(len(code), 0, -1) if code[:n] in _RULES), None)
        line, end = _row(item.get("location")), _row(item.get("end_location"))
        if file is None or rule is None or line is None or (file.is_test and code.startswith("S")):
            continue
        if code == SYNTAX or code.startswith("E9"):
            line, end = file.nearest(line), None
        fix = item.get("fix")
        yield base.Hit(
            rule=code,
            message=str(item.get("message") or code),
            path=file.path,
            line=line,
            category=rule[1],
            severity=rule[2],
            kinds=frozenset({rule[0]}),
            line_end=end,
            suggestion=str(fix.get("message") or "") if isinstance(fix, dict) else "",
            secret=code in _SECRET,
        )


def _row(place: object) -> int | None:
    row = place.get("row") if isinstance(place, dict) else None
    return row if isinstance(row, int) and row > 0 else None


RUFF = base.Analyser("ruff", frozenset(base.TYPES), _wants, _look)
