"""What a test run says of itself, and nothing else, becomes pass rate and coverage."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.model.outcomes import Ended, Outcome
from rondel.workflows.cycle.measure import COVERAGE, FRESH, JUNIT, look_for_tip, measured

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=80)


def junit(*states: str) -> bytes:
    inner = {
        "passed": "",
        "failed": '<failure message="assert 1 == 2">trace</failure>',
        "error": "<error>boom</error>",
        "skipped": '<skipped message="later"/>',
    }
    cases = "".join(
        f'<testcase classname="tests.test_x" name="t{i}">{inner[s]}</testcase>' for i, s in enumerate(states)
    )
    head = '<?xml version="1.0" encoding="utf-8"?>'
    return f"{head}<testsuites><testsuite>{cases}</testsuite></testsuites>".encode()


def run(report: bytes | None, code: int = 0, coverage: bytes | None = None, **fields: object):
    files = {k: v for k, v in ((JUNIT, report), (COVERAGE, coverage)) if v is not None}
    ended = Ended.DONE if code == 0 else Ended.FAILED
    return measured(Outcome(**{"ended": ended, "exit_code": code, "files": files, **fields}))


def test_failures_and_errors_are_counted_and_skipped_tests_are_not():
    found = run(junit("passed", "failed", "error", "skipped"), 1)
    assert (found.total, found.skipped, found.ran) == (4, 1, 3)
    assert found.pass_rate == 33.33
    assert [(f.name, f.message) for f in found.failures] == [
        ("tests.test_x::t1", "assert 1 == 2"),
        ("tests.test_x::t2", "boom"),
    ]
    assert not found.passed


def test_every_failure_counts_however_many_are_named():
    found = run(junit(*["failed"] * 1500, *["passed"] * 500), 1)
    assert (found.failed, len(found.failures), found.pass_rate) == (1500, 1000, 25)


def test_all_passed_is_100():
    found = run(junit("passed", "passed"))
    assert (found.pass_rate, found.passed, found.problem) == (100, True, "")


@pytest.mark.parametrize(
    ("report", "code", "fields", "words"),
    [
        (junit(), 0, {}, "no test was run"),
        (junit("skipped"), 0, {}, "no test was run"),
        (junit(), 5, {}, "there are no tests"),
        (None, 5, {}, "there are no tests"),
        (
            junit("passed"),
            1,
            {"error": "coverage too low"},
            "status 1 although no test failed: coverage too low",
        ),
        (None, 2, {"text": "make: no rule"}, "status 2: make: no rule"),
        (b"not xml", 1, {}, "status 1"),
        (b"<testsuites>", 0, {}, "cannot be read"),
        (junit("passed"), 0, {"ended": Ended.TIMED_OUT}, "did not end in time"),
    ],
)
def test_a_run_that_proves_nothing_does_not_count_as_passed(report, code, fields, words):
    found = run(report, code, **fields)
    assert words in found.problem
    assert not found.passed


def test_a_configured_command_without_a_report_is_taken_by_its_status():
    assert run(None, 0).passed


@pytest.mark.parametrize(
    "report",
    [
        b'<!DOCTYPE x [<!ENTITY a "aaaa">]><testsuite><testcase name="&a;"/></testsuite>',
        "<testsuites/>".encode("utf-16"),
        b"<html><testcase/></html>",
        b"<testsuites>",
        b"",
    ],
)
def test_a_report_that_is_not_plain_junit_is_none(report):
    found = run(report, 1)
    assert found.total == 0
    assert not found.passed


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"totals": {"percent_covered": 78.456}}', 78.46),
        (b'{"totals": {"percent_covered": 100.0}}', 100),
        (b'<coverage line-rate="0.85" version="7"></coverage>', 85),
        (b'<coverage line-rate="nan"></coverage>', None),
        (b'{"totals": {}}', None),
        (b'{"totals": {"percent_covered": "85"}}', None),
        (b"[1]", None),
        (b"junk", None),
        (None, None),
    ],
)
def test_coverage_is_what_the_data_says(data, value):
    assert run(junit("passed"), coverage=data).coverage == value


@CALM
@given(st.lists(st.sampled_from(["passed", "failed", "error", "skipped"]), max_size=30), st.integers(0, 5))
def test_the_pass_rate_is_always_from_0_to_100_and_100_only_when_nothing_failed(states, code):
    found = run(junit(*states), code)
    assert 0 <= found.pass_rate <= 100
    bad = {"failed", "error"} & set(states)
    assert found.passed == (code == 0 and not bad and "passed" in states)
    assert (found.pass_rate == 100) == ("passed" in states and not bad)


@CALM
@given(st.binary(max_size=300), st.binary(max_size=300))
def test_no_report_makes_it_raise(report, coverage):
    json.dumps(run(report, 1, coverage).pass_rate)


class Tree:
    """A commit's files, as git tells them; the person consents to all of it."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def git(self, *args: str, check: bool = True) -> str:
        if args[0] == "rev-parse":
            return "a" * 40
        return "\0".join(self.files) if args[0] == "ls-tree" else self.files[args[-1].partition(":")[2]]

    def admits(self, _: object) -> bool:
        return True


def test_a_project_that_is_not_of_python_has_tests_too():
    tree = Tree({"package.json": '{"scripts": {"test": "jest"}}'})
    assert look_for_tip(tree, "main", "", "")["command"] == FRESH + "npm test --silent"
    assert look_for_tip(tree, "main", "", "make it")["command"] == FRESH + "make it"
    assert look_for_tip(Tree({"README.md": ""}), "main", "", "")["command"] == ""
