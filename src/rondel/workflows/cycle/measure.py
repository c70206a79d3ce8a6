"""Tests: how what was built is tested, and what a run says of itself. Never an agent's claim.

A run is measured by its JUnit XML, its coverage data and its exit status.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

from rondel.errors import RondelError
from rondel.model import jsons
from rondel.model.consent import Brought, require
from rondel.model.jsons import mappings
from rondel.model.outcomes import Ended, Outcome
from rondel.model.refs import END
from rondel.model.toolchain import PYTEST, Toolchain, brought_tests, commit_at, names_at, toolchain_at
from rondel.model.workflow import RepoReader

DATA = ".rondel-coverage-data"
FRESH = f'rm -rf -- "$RONDEL_JUNIT" "$RONDEL_COVERAGE" {DATA}\n'  # what an earlier run left is no result
JUNIT = ".rondel-junit.xml"
COVERAGE = ".rondel-coverage.json"
MESSAGE_MAX = 400
FAILURES_MAX = 1000
NO_TESTS_COLLECTED = 5  # pytest's exit status


@dataclass(frozen=True)
class Failure:
    """A test that did not pass, and its own words."""

    name: str
    message: str = ""


@dataclass(frozen=True)
class TestRun:
    """What was measured. `coverage` is None where nothing measured it."""

    __test__ = False  # pytest: not a test

    total: int = 0
    skipped: int = 0
    failed: int = 0
    failures: tuple[Failure, ...] = ()  # the first of the failed ones
    coverage: float | None = None
    problem: str = ""  # why the run as a whole does not count as passed

    @property
    def ran(self) -> int:
        """How many tests were really run."""
        return self.total - self.skipped

    @property
    def pass_rate(self) -> float:
        """From 0 to 100; 0 when nothing ran."""
        if self.ran <= 0:
            return 0
        return _short(100 * max(0, self.ran - self.failed) / self.ran)

    @property
    def passed(self) -> bool:
        """Whether tests ran and nothing speaks against them."""
        return not self.failed and not self.problem


def measured(outcome: Outcome, junit: str = JUNIT, coverage: str = COVERAGE) -> TestRun:
    """The test run behind an outcome. What cannot be read counts as not passed."""
    report = outcome.files.get(junit)
    cases = None if report is None else _cases(report)
    total = skipped = 0
    failures: list[Failure] = []
    for name, state, message in cases or ():
        total += 1
        skipped += state == "skipped"
        if state == "failed":
            failures.append(Failure(name, message))
    run = TestRun(
        total, skipped, len(failures), tuple(failures[:FAILURES_MAX]), _coverage(outcome.files.get(coverage))
    )
    return replace(run, problem=_problem(outcome, run, report, readable=cases is not None))


def run_of(found: Mapping[str, Any]) -> TestRun:
    """A test run as its part in an iteration says."""
    failures = tuple(
        Failure(str(f.get("name", "")), str(f.get("message", ""))) for f in mappings(found, "failures")
    )
    total, skipped, failed = found.get("total"), found.get("skipped"), found.get("failed")
    coverage = found.get("coverage")
    return TestRun(
        total if isinstance(total, int) else 0,
        skipped if isinstance(skipped, int) else 0,
        failed if isinstance(failed, int) else len(failures),
        failures,
        coverage if isinstance(coverage, int | float) else None,
        str(found.get("problem", "")),
    )


def _problem(outcome: Outcome, run: TestRun, report: bytes | None, *, readable: bool) -> str:
    """Why a run does not count as passed although no test failed; empty when it does."""
    if outcome.ended is Ended.TIMED_OUT:
        return "the tests did not end in time"
    code = outcome.exit_code
    if code == NO_TESTS_COLLECTED and not run.total:
        return "there are no tests"
    if not readable:
        unread = "its JUnit report cannot be read" if report is not None else ""
        return unread if code == 0 else f"the test command ended with status {code}: {_tail(outcome)}"
    if run.ran <= 0:
        return "no test was run"
    if code != 0 and not run.failed:
        return f"the test command ended with status {code} although no test failed: {_tail(outcome)}"
    return ""


def _tail(outcome: Outcome) -> str:
    words = outcome.error.removeprefix(f"status {outcome.exit_code}: ") or outcome.text
    return " ".join(words.split())[-MESSAGE_MAX:]


def _cases(report: bytes) -> list[tuple[str, str, str]] | None:
    """Name, state and message of each test case; None when it is not a JUnit report."""
    root = _parse(report)
    if root is None or root.tag not in ("testsuites", "testsuite"):
        return None
    return [(_name(case), *_state(case)) for case in root.iter("testcase")]


def _parse(report: bytes) -> ET.Element | None:
    """The XML; None for anything that is not plain UTF-8 without a document type."""
    try:
        text = report.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        return None
    text = re.sub(r"^\s*<\?xml[^>]*\?>", "", text, count=1)
    try:
        return ET.fromstring(text)  # noqa: S314 - no document type, so no entities
    except (ET.ParseError, ValueError):
        return None


def _name(case: ET.Element) -> str:
    """`tests/test_a.py::test_b` where the report says enough, else `module::test`."""
    name, group = case.get("name", ""), case.get("classname", "")
    path = case.get("file", "")
    if path:
        return f"{path}::{name}"
    return f"{group}::{name}" if group else name


def _state(case: ET.Element) -> tuple[str, str]:
    for child in case:
        if child.tag in ("failure", "error"):
            words = child.get("message") or child.text or ""
            return "failed", " ".join(words.split())[:MESSAGE_MAX]
    return ("skipped" if case.find("skipped") is not None else "passed"), ""


def _coverage(data: bytes | None) -> float | None:
    """The covered percentage: coverage.py's JSON or a Cobertura XML."""
    number = None if data is None else _percentage(data)
    return None if number is None else _short(min(100.0, max(0.0, number)))


def _percentage(data: bytes) -> float | None:
    try:
        found = jsons.load(data).get("totals", {}).get("percent_covered")
        return float(found) if isinstance(found, int | float) else None
    except (ValueError, AttributeError):
        root = _parse(data)
    rate = root.get("line-rate", "") if root is not None and root.tag == "coverage" else ""
    return 100 * float(rate) if re.fullmatch(r"\d{1,3}(\.\d{1,20})?", rate) else None


def _short(number: float) -> float:
    """Two digits, and a whole number as one."""
    rounded = round(number, 2)
    return int(rounded) if float(rounded).is_integer() else rounded


def look_for_tip(look: RepoReader, target: str, base: str, test: str) -> dict[str, object]:
    """The commit that holds what was built, and how it is tested; no command where there are no tests.

    The configured command counts, else what the project's own files say; a pytest suite is measured.
    """
    commit = commit_at(look, f"refs/heads/{target}") or base
    tip: dict[str, object] = {"commit": commit, "command": "", "env": {}}
    tool = Toolchain() if test.strip() else toolchain_at(look, commit)
    for found in tool.tests:
        require(found, look.admits)
    if tool.test != PYTEST:
        command = test if test.strip() else tool.test
        return tip | {"command": FRESH + command if command else ""}
    command = FRESH + _pytest(*_python(look), _source(look, commit, names_at(look, commit)))
    return tip | {"command": command, "env": {"PYTHONPATH": "src:.", "PYTHONDONTWRITEBYTECODE": "1"}}


def _source(look: RepoReader, commit: str, names: list[str]) -> list[str]:
    """What coverage is measured of: the whole project, code nobody imports too; or what its settings say."""
    settings = [n for n in (".coveragerc", "setup.cfg", "tox.ini", "pyproject.toml") if n in names]
    said = "".join(look.git("show", END, f"{commit}:{name}", check=False) for name in settings)
    if ".coveragerc" in names or re.search(r"^\[(tool\.)?coverage[.:]", said, re.MULTILINE):
        return []
    return [".", "src"] if any(n.startswith("src/") for n in names) else ["."]


def _pytest(python: str, coverage: str, source: list[str]) -> str:
    """The test command for a pytest suite, measured where something can measure."""
    name = shlex.quote(python)
    base = "-m pytest -q"
    if coverage == "pytest_cov":
        measure = " ".join(f"--cov={s}" for s in source) or "--cov"
        return f'{name} {base} {measure} --cov-report="json:$RONDEL_COVERAGE"'
    if coverage == "coverage":
        of = f"--source={','.join(source)} " if source else ""
        run = f"{name} -m coverage run --data-file={DATA} {of}{base}"
        report = f'{name} -m coverage json -q --data-file={DATA} -o "$RONDEL_COVERAGE"'
        return f"{run}\nstatus=$?\n{report} >/dev/null 2>&1\nexit $status"
    return f"{name} {base}"


def brought(look: RepoReader, branch: str = "") -> Iterable[Brought]:
    """What of the repository would run to test it, on a session's branch too, where no settings say how."""
    yield from brought_tests(look, branch)
    yield from _environments(look)


def _environments(look: RepoReader) -> Iterable[Brought]:
    """The virtual environments in the repository's folder: an interpreter is a program like any other."""
    for name in (".venv", "venv"):
        path = f"{name}/bin/python"
        if Path(look.root, path).is_file():
            yield Brought(f"virtual environment {name}", path, (path, f"{name}/pyvenv.cfg"))


def _python(look: RepoReader) -> tuple[str, str]:
    """The interpreter that has pytest, the project's own first, and what it can measure coverage with."""
    script = (
        "import sys\n"
        "sys.path[:] = filter(None, sys.path)\n"  # not the repository's folder: what is there is no module
        "import importlib.util as u, pytest\n"
        "print(next((n for n in ('pytest_cov', 'coverage') if u.find_spec(n)), ''))"
    )
    own = [f"{look.root}/{one.text}" for one in _environments(look) if look.admits(one)]
    for name in (*own, "python", "python3", sys.executable):
        try:
            code, out, _ = look.run([name, "-c", script])
        except RondelError:
            continue
        if code == 0:
            return name, out.strip()
    return "python3", ""
