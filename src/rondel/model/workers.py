"""Workers: programs that answer a workflow's questions, in a process that may reach little.

A workflow names the program and the question; the core runs it (`rondel.agents.workers`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rondel.errors import RondelError


@dataclass(frozen=True)
class Program:
    """What runs as a worker: a module that serves (`rondel.sandbox.serve`) what the repository brings."""

    name: str  # safe as the name of a file: `profile-wide`
    module: str
    folder: str  # where it works, and what of the repository it may read; absolute
    words: tuple[str, ...] = ()
    version: str = ""  # the digest of what it runs: another version is another process


Read = Callable[[object], object]  # what a program wants to know to answer, looked up when it asks


def nothing_to_read(_: object) -> object:
    """For questions that say everything."""
    return None


class AskProgram(Protocol):
    """Ask a program, which is started when it does not run yet."""

    def __call__(
        self, program: Program, what: str, question: object, read: Read = nothing_to_read, /
    ) -> object:
        """Its answer, a JSON value; RondelError where it gives none.

        `what` says in an error what was asked of whom. The same question to the same version, with the
        same text read for it, is asked once.
        """
        ...


def ask_nobody(_program: Program, what: str, _question: object, _read: Read = nothing_to_read, /) -> object:
    """Whoever does not say how programs are run runs none."""
    raise RondelError(f"{what}: programs of the repository are not run here")
