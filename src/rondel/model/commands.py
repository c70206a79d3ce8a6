"""Commands for people: what to type next, exactly as a shell takes it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rondel.model.actions import Decide

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
