"""`.review-history.md`: one entry for every iteration, in the document's format."""

from __future__ import annotations

import re

from rondel.workflows.feature.review import Review

_PHASE = re.compile(r"(?m)^## Phase: ")
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
    """The history with this entry at its end. The last one of its phase is not added again."""
    before = history or ""
    heading = f"## Phase: {phase}"
    at = max((m.start() for m in _PHASE.finditer(before)), default=None)
    section = before[at:] if at is not None else ""
    same_phase = section.startswith(f"{heading}\n")
    if same_phase and text in section:
        return before
    if before and not before.endswith("\n"):
        before += "\n"
    gap = "\n" if before else ""
    return before + gap + ("" if same_phase else f"{heading}\n\n") + text


def _verdict(review: Review) -> str:
    return "Approved." if review.approved else "Not approved."


def _body(text: str) -> str:
    """Text of an agent that stays text: no line of it can pass for a heading or a rule."""
    return _HEADING.sub(lambda m: "\\" + m.group(0), text.strip())


def _line(text: str) -> str:
    return " ".join(text.split())
