"""A final review where others read it: as comments of a pull request, or as SARIF.

Everything of a round goes in one review on GitHub, so that it is there as a whole or not at all. A
hidden mark names the round and, in each inline comment, the finding's fingerprint: what a
mark shows to be there already is not sent again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from rondel import __version__
from rondel.errors import RondelError
from rondel.model import jsons
from rondel.model.changes import Document, Json
from rondel.model.jsons import pretty
from rondel.model.texts import for_forge
from rondel.workflows.review.change import Change
from rondel.workflows.review.findings import Category, Finding, Severity
from rondel.workflows.review.markdown import inline, quoted
from rondel.workflows.review.result import Entry

BODY_MAX = 60_000
INLINE_MAX = 50
CONTEXT = 3  # lines around a change that GitHub shows; a comment elsewhere makes it refuse the whole review
_FINDING = re.compile(r"<!-- rondel:finding:([\w-]{1,40}) -->")
_ROUND = re.compile(r"<!-- rondel:review:([^\s>]{1,300}) -->")


@dataclass(frozen=True)
class PullRequest:
    """Where to post."""

    number: int
    head: str = ""  # the commit GitHub shows; inline comments can only be about this one


@dataclass(frozen=True)
class Posted:
    """What is there already."""

    findings: frozenset[str] = frozenset()
    rounds: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Call:
    """One call of `gh`, with what it gets on standard input."""

    argv: tuple[str, ...]
    stdin: str
    what: str


def posted_in(bodies: Iterable[str]) -> Posted:
    """What the bodies of existing comments and reviews show."""
    findings: set[str] = set()
    rounds: set[str] = set()
    for body in bodies:
        findings |= set(_FINDING.findall(body))
        rounds |= set(_ROUND.findall(body))
    return Posted(frozenset(findings), frozenset(rounds))


def bodies_in(output: str, author: str) -> list[str]:
    """The bodies by this author in what `gh api --paginate` prints: one JSON list after another.

    Marks of others are none: anybody may write them. What cannot be read might hold a mark of
    ours: then nothing may be sent.
    """
    bodies: list[str] = []
    at = 0
    while (found := re.compile(r"\S").search(output, at)) is not None:
        start = found.start()
        try:
            page, at = jsons.load_from(output, start)
        except ValueError as e:
            raise RondelError(
                "gh api did not answer with JSON, so what is posted already is not known: "
                f"{output[start : start + 200]!r}"
            ) from e
        for row in page if isinstance(page, list) else [page]:
            body = row.get("body") if isinstance(row, dict) and _author(row) == author else None
            bodies += [body] if isinstance(body, str) else []
    return bodies


def _author(row: dict[str, object]) -> str:
    user = row.get("user")
    login = user.get("login") if isinstance(user, dict) else None
    return login if isinstance(login, str) else ""


def parse_pull_request(output: str) -> tuple[int, str]:
    """The number and the head of what `gh pr view --json` prints."""
    shown = jsons.parse_json(output.encode())
    number = shown.get("number") if isinstance(shown, dict) else None
    if not isinstance(shown, dict) or not isinstance(number, int):
        raise RondelError(f"gh pr view did not answer with a pull request: {output[:200]!r}")
    return number, str(shown.get("headRefOid") or "")


# A token of a workflow's run may not ask for `user`, but this.
WHO_CALL = ("gh", "api", "graphql", "-f", "query={viewer{login}}", "--jq", ".data.viewer.login")


def reading_calls(pr: int) -> tuple[tuple[str, ...], ...]:
    """The calls that show what is there: inline comments, reviews, comments."""
    roots = (f"pulls/{pr}/comments", f"pulls/{pr}/reviews", f"issues/{pr}/comments")
    return tuple(("gh", "api", "--paginate", f"repos/{{owner}}/{{repo}}/{root}") for root in roots)


def plan_post(
    pr: PullRequest,
    round_name: str,
    final: str,
    entries: Sequence[Entry],
    change: Change,
    reviewed: str,
    posted: Posted,
) -> tuple[Call, ...]:
    """The calls that post a round; none when it is there. `reviewed` is the commit the round looked at."""
    if round_name in posted.rounds:
        return ()
    shown = pr.head == reviewed
    inline = [
        _inline(entry, change)
        for entry in entries
        if shown and _is_new(entry, posted) and is_shown(entry, change)
    ][:INLINE_MAX]
    note = (
        ""
        if shown
        else "\n\nThe reviewed commit is not the one shown here, so nothing is said on single lines."
    )
    body = f"{for_forge(_cut(final))}{note}\n\n<!-- rondel:review:{round_name} -->"
    payload: dict[str, object] = {"event": "COMMENT", "body": body, "comments": inline}
    if pr.head:
        payload["commit_id"] = pr.head
    endpoint = f"repos/{{owner}}/{{repo}}/pulls/{pr.number or 'N'}/reviews"
    argv = ("gh", "api", "--method", "POST", endpoint, "--input", "-")
    where = f"pull request {pr.number}" if pr.number else "this branch's pull request (number not known)"
    what = f"the final review and {len(inline)} comments on lines, to {where}"
    return (Call(argv, pretty(payload), what),)


def _is_new(entry: Entry, posted: Posted) -> bool:
    return posted.findings.isdisjoint(entry.item.names)


def is_shown(entry: Entry, change: Change) -> bool:
    """Whether the diff shows the line a finding is about: only there a comment can stand."""
    return entry.finding.line is not None and entry.finding.line in _commentable(entry, change)


def _commentable(entry: Entry, change: Change) -> frozenset[int]:
    file = change.file(entry.finding.file)
    return file.lines_around(CONTEXT) if file else frozenset()


def _inline(entry: Entry, change: Change) -> dict[str, object]:
    finding = entry.finding
    rows = [f"**{finding.category.value.replace('_', ' ')}: {for_forge(inline(finding.title))}**"]
    rows += [for_forge(quoted(text)) for text in (finding.problem,) if text and text != finding.title]
    if finding.suggestion:
        rows.append("Suggestion:\n\n" + for_forge(quoted(finding.suggestion)))
    by = for_forge(", ".join(entry.item.supporters)) or "an earlier round"
    mark = "" if finding.verified else ", unverified"
    rows.append(f"<sub>{by}, weight {entry.weight}{mark}</sub>")
    rows.append(f"<!-- rondel:finding:{entry.item.fingerprint} -->")
    comment: dict[str, object] = {"path": finding.file, "side": "RIGHT", "body": "\n\n".join(rows)}
    line, end = finding.line, finding.line_end
    lines = _commentable(entry, change)
    if line and end and end > line and all(number in lines for number in range(line, end + 1)):
        return {**comment, "start_line": line, "start_side": "RIGHT", "line": end}
    return {**comment, "line": line}


def _cut(final: str) -> str:
    text = final.strip()
    return text if len(text) <= BODY_MAX else text[:BODY_MAX] + "\n\n[the rest is in the session's final.md]"


def describe(call: Call) -> str:
    """A call as a person reads it in a dry run."""
    payload = json.loads(call.stdin)
    rows = [f"would post {call.what}", f"  {' '.join(call.argv)}", "", str(payload["body"])]
    for comment in payload["comments"]:
        rows += ["", f"on {comment['path']}:{comment['line']}:", str(comment["body"])]
    return "\n".join(rows)


# -- SARIF -----------------------------------------------------------------------------------

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
