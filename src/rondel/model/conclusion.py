"""Conclusions: what a session came to, in its workflow's own words, whichever command ran it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Conclusion:
    """What is said and returned when a run of a session ends.

    It belongs to the workflow and not to a command: the workflow's own command, `rondel run`,
    `rondel resume` and an answer to a question all end the same way.
    """

    approved: bool | None = (
        None  # None where nothing was judged; False is exit code 4 where that is asked for
    )
    document: str = ""  # Markdown for a person
    lines: tuple[str, ...] = ()  # for a person, after the document
    notes: tuple[str, ...] = ()  # what a person should know besides
    fields: Mapping[str, object] = field(default_factory=dict)  # for a program
