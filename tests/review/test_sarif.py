"""The findings as SARIF: what hosts and editors require is there, whatever the findings say."""

from __future__ import annotations

import json
import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.workflows.review.findings import Category, Finding, Severity, parse_reviewer_json
from rondel.workflows.review.publish import to_sarif

ONE = Finding(
    title="The handle leaks",
    category=Category.SHOULD_FIX,
    severity=Severity.MEDIUM,
    file="src/ä b/read#1.py",
    line=12,
    line_end=14,
    problem="It is never closed.",
    suggestion="Use with.",
    reviewer="quality-1",
    verified=True,
    fingerprint="0123456789abcdef",
)


def conforms(log: dict) -> None:
    """What the 2.1.0 schema requires of the properties that are used here."""
    assert set(log) == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    assert log["$schema"].startswith("https://")
    for run in log["runs"]:
        assert set(run) <= {"tool", "columnKind", "results", "versionControlProvenance", "properties"}
        assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
        driver = run["tool"]["driver"]
        assert driver["name"]
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(ids) == len(set(ids))
        for rule in driver["rules"]:
            assert set(rule) <= {"id", "name", "shortDescription", "defaultConfiguration"}
            assert rule["shortDescription"]["text"]
            assert rule["defaultConfiguration"]["level"] in ("none", "note", "warning", "error")
        for source in run.get("versionControlProvenance", []):
            assert source["repositoryUri"]
        for result in run["results"]:
            of_result(result, ids)


def of_result(result: dict, ids: list[str]) -> None:
    known = {"ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints", "properties"}
    assert set(result) <= known
    assert ids[result["ruleIndex"]] == result["ruleId"]
    assert result["level"] in ("none", "note", "warning", "error")
    assert result["message"]["text"]
    assert all(isinstance(value, str) for value in result.get("partialFingerprints", {}).values())
    for location in result.get("locations", []):
        place = location["physicalLocation"]
        uri = place["artifactLocation"]["uri"]
        assert re.fullmatch(r"[A-Za-z0-9._~%/-]+", uri)
        region = place.get("region")
        if region is not None:
            assert region["startLine"] >= 1
            assert region.get("endLine", region["startLine"]) >= region["startLine"]


def test_a_finding_becomes_a_result_with_its_place_and_fingerprint():
    log = to_sarif([ONE], commit="abc", repository="https://example.org/r")
    conforms(log)
    run = log["runs"][0]
    (result,) = run["results"]
    assert result["ruleId"] == "rondel/should_fix"
    assert result["level"] == "warning"
    assert result["partialFingerprints"] == {"rondelFinding/v1": "0123456789abcdef"}
    place = result["locations"][0]["physicalLocation"]
    assert unquote(place["artifactLocation"]["uri"]) == "src/ä b/read#1.py"
    assert place["region"] == {"startLine": 12, "endLine": 14}
    assert result["message"]["text"] == "The handle leaks\n\nIt is never closed.\n\nSuggestion: Use with."
    assert run["versionControlProvenance"] == [
        {"repositoryUri": "https://example.org/r", "revisionId": "abc"}
    ]


@pytest.mark.parametrize(
    ("category", "severity", "level"),
    [
        (Category.BLOCKER, Severity.LOW, "error"),
        (Category.SHOULD_FIX, Severity.HIGH, "error"),
        (Category.SHOULD_FIX, Severity.MEDIUM, "warning"),
        (Category.SUGGESTION, Severity.HIGH, "note"),
        (Category.STYLE, Severity.INFO, "note"),
    ],
)
def test_levels_follow_category_and_severity(category: Category, severity: Severity, level: str):
    (result,) = to_sarif([Finding("t", category, severity)])["runs"][0]["results"]
    assert result["level"] == level


def test_an_analysers_rule_is_the_rule_of_the_result():
    found = Finding("S602: shell=True", Category.SHOULD_FIX, Severity.HIGH, rule="S602")
    log = to_sarif([found, ONE, found])
    conforms(log)
    run = log["runs"][0]
    assert [result["ruleId"] for result in run["results"]] == ["S602", "rondel/should_fix", "S602"]
    (rule,) = [rule for rule in run["tool"]["driver"]["rules"] if rule["id"] == "S602"]
    assert rule["shortDescription"]["text"] == "shell=True"


def test_a_review_without_findings_is_a_whole_log():
    log = to_sarif([], commit="abc")
    conforms(log)
    assert log["runs"][0]["results"] == []


def test_a_finding_without_a_place_has_no_location():
    (result,) = to_sarif([Finding("t", Category.STYLE, Severity.INFO)])["runs"][0]["results"]
    assert "locations" not in result


texts = st.text(min_size=1, max_size=20)
items = st.fixed_dictionaries(
    {
        "title": texts,
        "category": st.sampled_from(list(Category)),
        "severity": st.sampled_from(list(Severity)),
    },
    optional={
        "file": texts,
        "line": st.integers(-5, 10**9),
        "line_end": st.integers(-5, 10**9),
        "problem": texts,
    },
)


@given(st.lists(items, max_size=8))
def test_whatever_a_reviewer_says_the_log_conforms(found: list[dict[str, object]]):
    findings, _ = parse_reviewer_json(f"```json\n{json.dumps({'findings': found})}\n```")
    log = to_sarif(findings)
    conforms(json.loads(json.dumps(log)))
    assert len(log["runs"][0]["results"]) == len(findings)
