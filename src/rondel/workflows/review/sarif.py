"""SARIF 2.1.0: the findings in the form that code hosts and editors show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import quote

from rondel import __version__
from rondel.model.changes import Document, Json
from rondel.workflows.review.findings import Category, Finding, Severity

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "rondelFinding/v1"
_ROOT = "SRCROOT"
_RULES: Mapping[Category, tuple[str, str]] = {
    Category.BLOCKER: ("The change must not go in like this.", "error"),
    Category.SHOULD_FIX: ("It goes wrong in a plausible case.", "warning"),
    Category.SUGGESTION: ("It would be better otherwise.", "note"),
    Category.STYLE: ("A matter of taste.", "note"),
}


def to_sarif(
    findings: Iterable[Finding], *, commit: str | None = None, repository: str | None = None
) -> Document:
    """A SARIF log with one run. A result's rule is the one it breaks, or else its category.

    Every result carries its fingerprint, so that a host knows it again when lines have moved.
    """
    found = list(findings)
    rules = {_id(category): _category(category) for category in Category}
    for finding in found:
        if finding.rule:
            rules.setdefault(finding.rule, _rule(finding))
    order = list(rules)
    results: list[Json] = [_result(finding, order) for finding in found]
    driver: Document = {"name": "Rondel", "version": __version__, "rules": list(rules.values())}
    run: Document = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    if repository:
        source: Document = {"repositoryUri": repository}
        run["versionControlProvenance"] = [source | ({"revisionId": commit} if commit else {})]
    elif commit:
        run["properties"] = {"commit": commit}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _id(category: Category) -> str:
    return f"rondel/{category.value}"


def _category(category: Category) -> Document:
    text, level = _RULES[category]
    return {
        "id": _id(category),
        "name": "".join(word.title() for word in category.value.split("_")),
        "shortDescription": {"text": text},
        "defaultConfiguration": {"level": level},
    }


def _rule(finding: Finding) -> Document:
    return {
        "id": finding.rule,
        "shortDescription": {"text": finding.title.removeprefix(f"{finding.rule}: ")},
        "defaultConfiguration": {"level": level_of(finding)},
    }


def level_of(finding: Finding) -> str:
    """How loud a result is: a blocker or a grave fix is an error."""
    grave = finding.severity in (Severity.CRITICAL, Severity.HIGH)
    if finding.category is Category.SHOULD_FIX and grave:
        return "error"
    return _RULES[finding.category][1]


def _result(finding: Finding, rules: list[str]) -> Document:
    rule = finding.rule or _id(finding.category)
    result: Document = {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": level_of(finding),
        "message": {"text": _message(finding)},
        "properties": {
            "severity": finding.severity.value,
            "reviewer": finding.reviewer,
            "verified": finding.verified,
        },
    }
    if finding.fingerprint:
        result["partialFingerprints"] = {FINGERPRINT: finding.fingerprint}
    if finding.file:
        result["locations"] = [{"physicalLocation": _location(finding, finding.file)}]
    return result


def _message(finding: Finding) -> str:
    parts = [finding.title]
    if finding.problem and finding.problem != finding.title:
        parts.append(finding.problem)
    if finding.suggestion:
        parts.append(f"Suggestion: {finding.suggestion}")
    return "\n\n".join(parts)


def _location(finding: Finding, file: str) -> Document:
    location: Document = {"artifactLocation": {"uri": quote(file, safe="/"), "uriBaseId": _ROOT}}
    if finding.line:
        region: Document = {"startLine": finding.line}
        if finding.line_end and finding.line_end >= finding.line:
            region["endLine"] = finding.line_end
        location["region"] = region
    return location
