"""What a test run says of itself: JUnit XML, coverage data and the exit status. Never an agent's claim."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from xml.etree import ElementTree as ET

from rondel.model import jsons
from rondel.model.outcomes import Ended, Outcome

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
        total,
        skipped,
        len(failures),
        tuple(failures[:FAILURES_MAX]),
        _coverage(outcome.files.get(coverage)),
    )
    return replace(run, problem=_problem(outcome, run, report, readable=cases is not None))


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
    if data is None:
        return None
    number = next(_percentages(data), None)
    return None if number is None else _short(min(100.0, max(0.0, number)))


def _percentages(data: bytes) -> Iterator[float]:
    try:
        totals = jsons.load(data).get("totals", {}).get("percent_covered")
        if isinstance(totals, int | float):
            yield float(totals)
    except (ValueError, AttributeError):
        root = _parse(data)
        rate = root.get("line-rate", "") if root is not None and root.tag == "coverage" else ""
        if re.fullmatch(r"\d{1,3}(\.\d{1,20})?", rate):
            yield 100 * float(rate)


def _short(number: float) -> float:
    """Two digits, and a whole number as one."""
    rounded = round(number, 2)
    return int(rounded) if float(rounded).is_integer() else rounded
