"""Trust: commands come from files that anybody may have written, so a person allows each one first.

A permission is the digest of a command's text; a changed command asks again. Permissions
are kept in the person's own state folder (see `rondel.trust`), never in the repository.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from rondel.model.digests import digest
from rondel.workflows.task.schema import Task


@dataclass(frozen=True)
class Waiting:
    """A command that nobody has allowed yet."""

    task_id: str
    step: str
    command: str

    @property
    def digest(self) -> str:
        """What a permission for it is."""
        return command_digest(self.command)


def command_digest(command: str) -> str:
    """What makes two commands the same command: every character of their text."""
    return digest(f"rondel task command\n{command}")


def waiting(task: Task, allowed: Container[str]) -> list[Waiting]:
    """The commands of a task that are not allowed."""
    return [
        Waiting(task.id, step.name, command)
        for step in task.steps
        for command in step.commands
        if not step.unusable and command_digest(command) not in allowed
    ]


def waiting_in(tasks: Iterable[Task], allowed: Container[str]) -> list[Waiting]:
    """The commands of several tasks that are not allowed, each once."""
    found: dict[str, Waiting] = {}
    for task in tasks:
        for one in waiting(task, allowed):
            found.setdefault(one.command, one)
    return list(found.values())
