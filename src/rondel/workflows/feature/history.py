"""`.review-history.md`: one entry for every iteration, in the document's format."""

from __future__ import annotations

import re

from rondel.workflows.feature.review import Review

_HEADING = re.compile(r"(?m)^(#{1,6}\s|---\s*$)")


def entry(number: int, at: str, review: Review, changes: str) -> str:
    """What iteration `number` came to. Always the same for the same iteration."""
    issues = "\n".join(f"- {_line(str(issue))}" for issue in review.issues) or "- none"
    return (
        f"### Iteration {number} - {at}\n\n"
        f"**Reviewer Feedback:**\n{_body(review.summary) or _verdict(review)}\n\n"
        f"**Issues:**\n{issues}\n\n"
        f"**Changes Made:**\n{_body(changes)}\n\n---\n"
    )


def added(history: str | None, phase: str, text: str) -> str:
    """The history with this entry at its end. One that is there already is not added again."""
    before = history or ""
    heading = f"## Phase: {phase}"
    if text in before:
        return before
    if before and not before.endswith("\n"):
        before += "\n"
    phases = re.findall(r"(?m)^## Phase: .*$", before)
    if not phases or phases[-1] != heading:
        before += f"{heading}\n\n" if not before else f"\n{heading}\n\n"
    else:
        before += "\n"
    return before + text


def _verdict(review: Review) -> str:
    return "Approved." if review.approved else "Not approved."


def _body(text: str) -> str:
    """Text of an agent that stays text: no line of it can pass for a heading or a rule."""
    return _HEADING.sub(lambda m: "\\" + m.group(0), text.strip())


def _line(text: str) -> str:
    return " ".join(text.split())
