"""Assignment: which agent a task is for, by its type and the words of its title."""

from __future__ import annotations

import re
from enum import StrEnum


class Agent(StrEnum):
    """The agents that tasks are assigned to; each is a role of `rondel.toml`, as `task.<agent>`."""

    PLANNING = "planning-agent"
    CODE = "code-developer"
    TEST = "code-review-test-agent"
    REVIEW = "review-agent"


_BY_TYPE = {"test": Agent.TEST}
_BY_WORD = (
    (Agent.REVIEW, re.compile(r"\b(review|audit|inspect)", re.IGNORECASE)),
    (Agent.PLANNING, re.compile(r"\b(plan|design|architect|research|investigat|analy[sz]e)", re.IGNORECASE)),
    (Agent.TEST, re.compile(r"\b(tests?|testing|coverage|e2e|qa)\b", re.IGNORECASE)),
)


def assign(kind: str, title: str) -> Agent:
    """The agent for a task: by its type where that says it, then by its title, else the developer.

    A title counts by its first word that says what to do: "Implement the review page" is
    implementation.
    """
    if kind in _BY_TYPE:
        return _BY_TYPE[kind]
    first = re.match(
        r"\s*(implement|build|add|create|fix|write|update|refactor|remove|migrate)\b", title, re.IGNORECASE
    )
    words = title[first.end() :] if first else title
    for agent, pattern in _BY_WORD:
        if pattern.match(title.lstrip()) or (not first and pattern.search(words)):
            return agent
    if first and _BY_WORD[2][1].search(words) and first[1].lower() in ("write", "add", "create", "update"):
        return Agent.TEST
    return Agent.CODE
