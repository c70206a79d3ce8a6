"""What a session looks like from outside: its line of `rondel status`, its conclusion, what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from rondel.model.actions import Decide

EDITS_LOST = "edits-lost"  # the rule of a Problem: what counts as done is not on the session's branch

FOREIGN_SESSION = "foreign-session"  # the rule of a Problem: this person neither began nor adopted it here


class Status(StrEnum):
    """The status of a session, the same words for all workflows."""

    ACTIVE = "active"
    RUNNING = "running"  # a driver holds it; never stored
    WAITING = "waiting"
    PAUSED = "paused"
    COMPLETED = "completed"
    CANCELLED = "cancelled"  # a person gave it up: cancelled, abandoned, closed before its end
    FAILED = "failed"
    DAMAGED = "damaged"

    @property
    def is_over(self) -> bool:
        """Whether nothing more is done by itself, for better or worse."""
        return self in (Status.COMPLETED, Status.CANCELLED)


@dataclass(frozen=True)
class Problem:
    """Something a file shows that should not be. `repair` says what to do about it.

    With `when_idle` it is one only while no driver works on the session. A `loud` one is said
    by a run that meets it, too.
    """

    rule: str
    file: str
    message: str
    repair: str = ""
    when_idle: bool = False
    repaired: bool = False
    loud: bool = False


@dataclass(frozen=True)
class Summary:
    """A session in short. `state` is the workflow's own document and what is derived from it."""

    title: str
    status: Status
    phase: str = ""
    done: int = 0
    total: int = 0
    waiting_for: str | None = None
    updated_at: datetime | None = None
    problems: tuple[Problem, ...] = ()
    next: str = ""  # the command a person would type now
    state: dict[str, object] = field(default_factory=dict)
    foreign: tuple[str, ...] = ()  # what counts as done and was not done by Rondel: a round, a phase, a cycle

    @property
    def edits_lost(self) -> Problem | None:
        """That its branch does not hold what counts as done: said wherever the session is shown."""
        return next((p for p in self.problems if p.rule == EDITS_LOST), None)

    @property
    def is_foreign(self) -> bool:
        """Whether this person neither began nor adopted it here: said wherever the session is shown."""
        return any(p.rule == FOREIGN_SESSION for p in self.problems)


@dataclass(frozen=True)
class Conclusion:
    """What is said and returned when a run of a session ends.

    It belongs to the workflow and not to a command: the workflow's own command, `rondel run`,
    `rondel resume` and an answer to a question all end the same way.
    """

    approved: bool | None = None  # where nothing was judged; False is exit code 4 where that is asked for
    document: str = ""  # Markdown for a person
    lines: tuple[str, ...] = ()  # for a person, after the document
    notes: tuple[str, ...] = ()  # what a person should know besides
    fields: Mapping[str, object] = field(default_factory=dict)  # for a program


OWN_WORDS = '"…"'  # what the person has to say themselves


def command_line(*words: str) -> str:
    """`rondel` and these words, as a person can paste them: names are quoted where a shell needs it."""
    return " ".join(("rondel", *(word if word == OWN_WORDS else shlex.quote(word) for word in words)))


def answering(group: Sequence[str], session: str, questions: Sequence[Decide]) -> str:
    """The command that answers the first of a session's questions, with the first answer it takes.

    `group` is where the command is: nothing for `rondel approve`, else a workflow's own.
    """
    first = questions[0]
    which = ("--on", first.path) if len(questions) > 1 else ()
    if "approve" in first.options:
        return command_line(*group, "approve", session, *which)
    if "reject" in first.options:
        return command_line(*group, "reject", session, *which, "--feedback", OWN_WORDS)
    return command_line("approve", session, *which, "--option", first.options[0])
