"""Routing: what was found in an iteration, and whose it is.

Failing tests go to the code developer, unclear requirements to the analyst, a plan that
does not hold to the planner. An agent may name the addressee itself: `ra: which hash?`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rondel.workflows.cycle.measure import TestRun
from rondel.workflows.cycle.models import FeedbackType
from rondel.workflows.cycle.transitions import feedback

TEXT_MAX = 2000
_ADDRESSED = re.compile(r"^\W*(ra|ep|cd|vas)\W*:\s*(\S.*)$", re.IGNORECASE | re.DOTALL)
_UNCLEAR = re.compile(
    r"\b(unclear|ambiguous|contradict\w*|unspecified|undefined behaviou?r|not specified|underspecified)\b"
    r"|\brequirements?\b.*\b(missing|unclear|conflict\w*|incomplete|wrong)\b"
    r"|\b(missing|unclear|conflicting|incomplete|wrong) requirements?\b"
    r"|\bREQ-\d+\b.*\b(missing from|conflicts? with)\b",
    re.IGNORECASE | re.DOTALL,
)
_PLANNING = re.compile(
    r"\b(plan|architecture|design|dependency order|task order)\b"
    r".*\b(wrong|missing|incomplete|flawed|does not)\b",
    re.IGNORECASE | re.DOTALL,
)


@dataclass(frozen=True)
class Issue:
    """Something that is not as it should be, and who is to see to it."""

    text: str
    source: str
    target: str
    type: FeedbackType


def addressed(text: str, source: str) -> Issue:
    """An issue in an agent's own words."""
    words = text.strip()[:TEXT_MAX]
    if found := _ADDRESSED.match(words):
        target, words = found[1].lower(), found[2]
    elif _UNCLEAR.search(words):
        target = "ra"
    else:
        target = "ep" if _PLANNING.search(words) else "cd"
    kind = FeedbackType.ISSUE_FIX if target == "cd" else FeedbackType.CLARIFICATION
    return Issue(words, source, target, kind)


def of_tests(run: TestRun) -> list[Issue]:
    """What the test run found: always the code developer's."""
    found = [f"test failed: {f.name}" + (f": {f.message}" if f.message else "") for f in run.failures]
    if run.problem:
        found.append(run.problem)
    return [Issue(words, "vas", "cd", FeedbackType.BUG_REPORT) for words in found]


def each_once(issues: Iterable[Issue]) -> list[Issue]:
    """The issues without repetitions, in order."""
    seen: dict[str, Issue] = {}
    for issue in issues:
        seen.setdefault(" ".join(issue.text.casefold().split()), issue)
    return list(seen.values())


def reason(issues: Sequence[Issue], iterations: int) -> str:
    """Why a cycle failed: the open issues by name."""
    named = "; ".join(i.text for i in issues[:10])
    more = f"; and {len(issues) - 10} more" if len(issues) > 10 else ""  # noqa: PLR2004 - as above
    count = f"{len(issues)} open issue{'s' if len(issues) != 1 else ''}"
    return f"no iteration is left after {iterations}; {count}: {named}{more}"


def notes(issues: Sequence[str], source: str, default: str, at: str) -> list[dict[str, str]]:
    """What an agent remarked, for the one it concerns; it holds nothing up."""
    found = []
    for words in issues:
        issue = addressed(words, source)
        target = default if issue.target == source else issue.target
        found.append(feedback(source, target, issue.text, "clarification", at))
    return found
