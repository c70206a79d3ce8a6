"""Whoever wrote a review: its verdict and its counts are read right, or not at all."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rondel.workflows.review.dialects import VERDICTS, parse_review
from rondel.workflows.review.findings import Category, Severity


def counts(text: str) -> tuple[int, int, int]:
    found = parse_review(text).counts
    return found["blockers"], found["should_fix"], found["suggestions"]


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("## Verdict\n\n**REQUEST CHANGES**\n", "REQUEST CHANGES"),
        ("## Verdict\n\n**APPROVE**\n\nApproved by all five reviewers.\n", "APPROVE"),
        ("## Verdict: APPROVE\n", "APPROVE"),
        ("**Verdict**: NEEDS DISCUSSION\n", "NEEDS DISCUSSION"),
        ("**Verdict:** Request Changes\n", "REQUEST CHANGES"),
        ("Verdict: approve\n", "APPROVE"),
        ("- **Verdict**: `REQUEST_CHANGES`\n", "REQUEST CHANGES"),
        (
            "**Verdict**: REQUEST CHANGES** — sound, but two things must change: a (Blocker 1) and b.\n",
            "REQUEST CHANGES",
        ),
        ("## Verdict\n\nAfter the discourse:\n\n✅ **APPROVE** — nothing is open.\n", "APPROVE"),
        ("### Final Verdict — Changes requested\n", "REQUEST CHANGES"),
        ("| Verdict | NEEDS DISCUSSION |\n", "NEEDS DISCUSSION"),
        ("## 🏁 Verdict\n\n> **LGTM**\n", "APPROVE"),
        ("## Verdict\r\n\r\n**APPROVE**\r\n", "APPROVE"),
        ("## Verdict\n\n**APPROVED** with suggestions.\n", "APPROVE"),
    ],
)
def test_every_form_of_a_verdict_is_read(text: str, verdict: str):
    assert parse_review(text).verdict == verdict


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Just a text.",
        "## Verdict\n",
        "## Verdict\n\nHold for now.\n",
        "## Verdict: not approved\n",
        "## Verdict\n\nDo not APPROVE.\n",
        "**APPROVE** | **REQUEST CHANGES** | **NEEDS DISCUSSION**",
        "## Verdict\n\n**APPROVE** | **REQUEST CHANGES** | **NEEDS DISCUSSION**\n",
        "## Verdict\n\nAPPROVE or REQUEST CHANGES\n",
        "## Verdict\n\n**APPROVE**\n\n**REQUEST CHANGES**\n",
        "## Verdict: APPROVE\n\n**Verdict**: REQUEST CHANGES\n",
        "## Verdict\n\nAPPROVE once the blockers are fixed\n",
        "## Verdict\n\nApprove with changes\n",
        "```\n## Verdict: APPROVE\n```\n",
        "<!-- **Verdict**: APPROVE -->\n",
        "Previous verdict: APPROVE\n",
        "APPROVE\n",
    ],
)
def test_an_unclear_or_contradictory_verdict_is_none(text: str):
    assert parse_review(text).verdict is None


NUMBERED = """\
# Code Review: feat/import

## Verdict

**REQUEST CHANGES**

---

## Blockers

### 1. Rows are lost when the file ends without a newline

**Flagged by**: @principal-1, @quality-2
**Location**: `src/import.ts:42-50`

**Issue**: The last row is dropped.

- it happens with every export of the old tool
- nobody notices

**Why this blocks**: Data is lost.

**Suggested fix**:
```ts
## not a heading
```

#### A detail of the first

More words.

---

## Should Fix

### 1. Unused import
### 2. Dead code
### 3. No log line

---

## Suggestions

### Code Quality
- Shorter names — @quality-1
- "Extract the loop" — @quality-2 [**Low**]
  - a nested remark

### Testing

* **Cover the empty file** — @testing-1, @principal-1

## Consensus & Dissent

### Finding: names

- all agree
"""


def test_numbered_headings_and_bullets_under_topics_are_counted():
    assert counts(NUMBERED) == (1, 3, 3)


def test_the_findings_of_a_final_review_keep_their_fields():
    first = parse_review(NUMBERED).findings[0]
    assert first.title == "Rows are lost when the file ends without a newline"
    assert first.category is Category.BLOCKER
    assert (first.file, first.line, first.line_end) == ("src/import.ts", 42, 50)
    assert first.reviewer == "principal-1, quality-2"
    assert "The last row is dropped." in first.problem
    assert "Data is lost." in first.problem
    assert "not a heading" in first.suggestion
    titles = [f.title for f in parse_review(NUMBERED).findings]
    assert titles[1:] == [
        *(
            "Unused import",
            "Dead code",
            "No log line",
            "Shorter names",
            "Extract the loop",
            "Cover the empty file",
        )
    ]
    assert parse_review(NUMBERED).findings[-1].reviewer == "testing-1, principal-1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("## Blockers\n\n### 🚫 Injection\n\nText.\n\n### 🚫 Bypass\n\nText.\n", (2, 0, 0)),
        ("## 🚫 Blockers (2)\n\n### ⚠️ One\n\n### ⚠️ Two\n\n## 💡 Suggestions\n\n- x\n", (2, 0, 1)),
        ("## Blockers\n\n### 1️⃣ One\n\n### 2️⃣ Two\n", (2, 0, 0)),
        ("## Blockers\n\n### Blocker 1: One\n\nText\n\n### Blocker 2: Two\n\nText\n", (2, 0, 0)),
        (
            "## Blockers\n\n### B1 — One\n- **Location**: a.py:3\n\n### [B2] Two\n- **Severity**: high\n",
            (2, 0, 0),
        ),
        ("## Blockers\n\n### The token is logged\n\nIt is printed at start.\n", (1, 0, 0)),
        (
            "## Blockers\n\n### The token is logged\n- **Severity**: Critical\n- **Location**: a.py\n",
            (1, 0, 0),
        ),
        ("## Blockers\n\n1. One\n2. Two\n\n## Should-Fix\n\n1) Three\n", (2, 1, 0)),
        ("## Blockers\n\n- No timeout on the socket — @security-1\n", (1, 0, 0)),
        ("## Blockers\n\n- None of the inputs is validated\n", (1, 0, 0)),
        ("# Review\n\n### Must Fix\n\n- One\n\n### Nits\n\n- Two\n", (1, 0, 1)),
        ("## Suggestions\n\n- A\n\n---\n\n## What's Working Well\n\n- good\n- better\n", (0, 0, 1)),
        ("## Blockers\n\n### 1. One\n\n---\n\n### 2. Two\n\n---\n", (2, 0, 0)),
        ("## Blockers\n\n**1. One**\n- **Location**: a.py\n- why\n\n**2. Two** - more\n\nText.\n", (2, 0, 0)),
        ("## Should Fix\n\n### Code\n\n**S1: One**\nText.\n\n**S2: Two**\n", (0, 2, 0)),
        (
            "## Blockers\n\n| # | What | Where |\n|---|:-:|---|\n| 1 | One | a.py |\n| 2 | Two | b.py |\n",
            (2, 0, 0),
        ),
        ("## Should Fix Before Merge\n\n- One\n\n## Suggestions for Improvement\n\n- Two\n", (0, 1, 1)),
        ("\ufeff## Blocking Issues\n\n- One\n", (1, 0, 0)),
    ],
)
def test_findings_in_every_form_are_counted(text: str, expected: tuple[int, int, int]):
    assert counts(text) == expected


LATER_ROUND = """\
## Blockers

None. All three of the second round have been resolved:

### Round 2 Blocker 1 — Pragmas: RESOLVED
**Verified by**: all reviewers

The fix is right.

### Round 2 Blocker 2 — Writes: AMENDMENT NEEDED

Text.

### Round 2 Blocker 3 — Deletes: RESOLVED
"""


@pytest.mark.parametrize(
    "text",
    [
        "## Blockers\n\nNone.\n",
        "## Blockers\n\n*No hard blockers identified.* All findings are suggestions.\n",
        "## Blockers\n\n- None identified\n",
        "## Blockers\n\n- N/A for this change\n",
        "## Blockers: none\n",
        "## Blockers (0)\n",
        LATER_ROUND,
        "## Blockers\n\nNone.\n\n### 1. Old one: RESOLVED\n\nIt was fixed.\n\n### ✅ 2. Old two\n",
        "## Blockers\n\n### 1. Old one (resolved)\n\nText with a list:\n\n- one\n- two\n",
        "## Resolved Blockers\n\n- one\n- two\n",
        "## Blockers\n\n- ~~struck out~~\n\n**1. Old one: RESOLVED**\n",
        "## Blockers\n\n| what | now |\n|---|---|\n| One | FIXED |\n| None | |\n",
        "## Blockers\n\n| what | now |\n",
        "## Blockers from Round 1\n\n- one\n",
    ],
)
def test_what_is_none_or_resolved_counts_nothing(text: str):
    assert counts(text) == (0, 0, 0)
    assert parse_review(text).findings == ()


def test_what_is_not_quite_resolved_still_counts():
    text = "## Blockers\n\nNone new.\n\n### 1. One: NOT FIXED\n\nText.\n\n### 2. Two: partially resolved\n"
    assert counts(text) == (2, 0, 0)


def test_numbers_that_a_line_states_are_taken():
    stated = "## Verdict: APPROVE\n\n**Blockers**: 0\n**Should Fix**: 3\n**Suggestions**: 5\n"
    assert counts(stated) == (0, 3, 5)
    assert counts("- Blockers: 2\n- Should fix: 1\n- Suggestions: 4\n") == (2, 1, 4)
    assert counts("**Blockers**: 2 | **Should Fix**: 3 | **Suggestions**: 1\n") == (2, 3, 1)


def test_a_stated_number_never_hides_what_is_listed():
    assert counts("**Blockers**: 0\n\n## Blockers\n\n### 1. One\n") == (1, 0, 0)


REVIEWER = """\
# Security Review

## Summary
Two things.

## Findings

### Finding 1: Tokens are compared with ==
- **Severity**: Critical
- **Location**: src/auth/token.ts:L42-L50
- **Issue**: The comparison stops at the first difference.
- **Why It Matters**: It can be timed.
- **Suggestion**: Compare in constant time.

### Finding 2: The log names the user
- **Severity**: Low
- **Location**: `src/log.ts` (line 7)
- **Issue**: It is personal data.

### Finding 3: A cache without a bound
**Severity:** High
**File**: src/cache.ts
**Lines**: 10-20
It grows for ever.

## What's Working Well
- The tests.

## Clarifying Questions
- Why?
"""


def test_a_reviewer_who_states_a_verdict_has_findings_all_the_same():
    stated = "# Review\n\n**Verdict**: REQUEST CHANGES\n\n"
    graded = stated + "## Finding 1: One\n**Severity**: Critical\n\n## Finding: Names\n\nAll agree.\n"
    assert (parse_review(graded).verdict, counts(graded)) == ("REQUEST CHANGES", (1, 0, 0))
    block = {"findings": [{"title": "One", "category": "should_fix"}]}
    assert counts(f"{stated}```json\n{json.dumps(block)}\n```\n") == (0, 1, 0)


@pytest.mark.parametrize("said", ["N/A", "`n/a`", "no place given", "General", "Multiple files", "None"])
def test_a_finding_without_a_place_has_none(said: str):
    one = parse_review(f"## Finding 1: One\n**Location**: {said}\n").findings[0]
    assert (one.file, one.line) == (None, None)
    two = parse_review("## Finding 1: One\n**Location**: general-purpose.py:3\n").findings[0]
    assert (two.file, two.line) == ("general-purpose.py", 3)


def test_a_reviewers_file_yields_its_findings():
    parsed = parse_review(REVIEWER)
    one, two, three = parsed.findings
    assert parsed.verdict is None
    assert (one.title, one.category, one.severity) == (
        "Tokens are compared with ==",
        Category.BLOCKER,
        Severity.CRITICAL,
    )
    assert (one.file, one.line, one.line_end) == ("src/auth/token.ts", 42, 50)
    assert one.problem == "The comparison stops at the first difference.\n\nIt can be timed."
    assert one.suggestion == "Compare in constant time."
    assert (two.file, two.line, two.severity) == ("src/log.ts", 7, Severity.LOW)
    assert (three.file, three.line, three.line_end, three.severity) == ("src/cache.ts", 10, 20, Severity.HIGH)
    assert counts(REVIEWER) == (1, 1, 1)


def test_our_own_reviewers_files_yield_their_json_block():
    block = {
        "findings": [{"title": "Leak", "category": "blocker", "severity": "high", "file": "a.py", "line": 3}]
    }
    text = f"## Summary\nBad.\n\n## Findings\n\n### Leak\n\nText.\n\n```json\n{json.dumps(block)}\n```\n"
    (finding,) = parse_review(text).findings
    assert (finding.title, finding.category, finding.line) == ("Leak", Category.BLOCKER, 3)


def test_what_was_read_can_be_printed_as_json():
    printed = json.loads(json.dumps(parse_review(NUMBERED).document()))
    assert printed["verdict"] == "REQUEST CHANGES"
    assert printed["counts"] == {"blockers": 1, "should_fix": 3, "suggestions": 3}
    assert [finding["category"] for finding in printed["findings"]][:2] == ["blocker", "should_fix"]


def test_a_path_out_of_the_repository_is_no_location():
    (finding,) = parse_review("### Finding 1: x\n- **Location**: ../../etc/passwd:3\n").findings
    assert finding.file is None


lines = st.sampled_from(
    [
        *NUMBERED.splitlines(),
        *REVIEWER.splitlines(),
        *(
            "## Verdict: APPROVE",
            "None.",
            "```",
            "```json",
            '{"findings": []}',
            "<!--",
            "-->",
            "| a | b |",
            "# ",
        ),
        *("### 🚫 x: RESOLVED", "**Blockers**: 99999999999", "- ", "1.", "***", "[[[[", "<" * 50),
    ]
)


@given(st.text() | st.lists(lines, max_size=30).map("\n".join))
@example("#" * 5_000)
@example("- \n" * 500)
def test_any_text_is_read_without_an_error(text: str):
    parsed = parse_review(text)
    assert parsed.verdict is None or parsed.verdict in VERDICTS
    assert set(parsed.counts) == {"blockers", "should_fix", "suggestions"}
    for finding in parsed.findings:
        json.dumps(finding.document()).encode()
        assert finding.title


@pytest.mark.parametrize("sign", ["*", "[", " ", "- ", "fixed ", "_", "~", "|"])
@pytest.mark.parametrize("glue", ["\n", ""])
@pytest.mark.parametrize("opening", ["### 1. ", "- ", "**1. ", "|-|\n| "])
def test_hostile_text_is_read_in_time(sign: str, glue: str, opening: str):
    line = (sign * 3_000)[:3_000]
    start = time.process_time()
    parse_review(f"## Blockers\n\n{opening}{glue.join([line] * 100)}a\n\n{opening}{line}a\n")
    assert time.process_time() - start < 10


def test_a_comment_mark_in_code_hides_nothing():
    text = "**Verdict**: APPROVE\n\n## Blockers\n\n### 1. A\n\n```\n<!--\n```\n\n### 2. B\n"
    assert parse_review(text).counts["blockers"] == 2
    hidden = "**Verdict**: APPROVE\n\n## Blockers\n\n### 1. A <!-- x\n### 2. B\n--> and\n\n### 3. C\n"
    assert parse_review(hidden).counts["blockers"] == 2
