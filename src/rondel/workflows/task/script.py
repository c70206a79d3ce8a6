"""What is known of a script while it is read: its names, its quotes, its nested commands."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field
from enum import Enum, auto

from rondel.workflows.task.hazards import Command, Evaluated

VARIABLE = "RONDEL_VAR_"


@dataclass(frozen=True)
class Script:
    """A command that is ready for bash once the variables of `names` are set, in their order."""

    text: str
    names: tuple[str, ...] = ()
    exported: frozenset[str] = frozenset()  # names that another shell reads from its environment
    problems: tuple[str, ...] = ()


class Quote(Enum):
    """The quotes a reference stands in."""

    NONE = auto()
    SINGLE = auto()
    ANSI = auto()
    DOUBLE = auto()
    HERE = auto()


AROUND = {
    Quote.NONE: '"${%s}"',
    Quote.SINGLE: "'\"${%s}\"'",
    Quote.ANSI: "'\"${%s}\"$'",
    Quote.DOUBLE: "${%s}",
    Quote.HERE: "${%s}",
}


class Names:
    """The names met so far, over all nested scripts of one command."""

    def __init__(self, known: Container[str], first: int) -> None:
        self.known = known
        self.first = first
        self.numbers: dict[str, int] = {}
        self.exported: set[str] = set()
        self.problems: list[str] = []
        self.integers = False

    def variable(self, name: str) -> str:
        """The shell variable that holds a name's value."""
        return f"{VARIABLE}{self.numbers.setdefault(name, self.first + len(self.numbers))}"

    def problem(self, words: str) -> None:
        """Note what is wrong, once."""
        if words not in self.problems:
            self.problems.append(words)

    def refuse(self, name: str, reason: Evaluated) -> None:
        """Note that a value must not stand where it does."""
        self.problem(f"[{name}] stands in {reason.where}, {reason.why}; {reason.advice}")


@dataclass
class HereDocument:
    """A here-document whose body has not begun."""

    delimiter: str
    quoted: bool
    strips_tabs: bool
    spot: int  # where in the output its delimiter stands
    commands: list[Command]  # what reads it: its own command, and the rest of the pipeline on its line


@dataclass
class Level:
    """One list of commands: the whole script, a substitution, a subshell, an array."""

    is_array: bool = False
    command: Command = field(default_factory=Command)
    piped: list[str] = field(default_factory=list)  # references earlier in the pipeline
    word_start: int | None = None  # in the source, of the word being read
    cases: list[str] = field(default_factory=list)  # per open `case`: head, pattern or body

    @property
    def in_pattern(self) -> bool:
        """Whether bash expects a pattern of `case`."""
        return self.cases[-1:] == ["pattern"]


def pipeline(line: str) -> list[Command]:
    """The commands that follow on a line behind pipes."""
    commands = []
    for part in re.split(r"\|(?!\|)", line.partition(";")[0])[1:]:
        command = Command()
        for word in part.split():
            command.add(word)
        commands.append(command)
    return commands


def closing_brace(text: str, at: int) -> int:
    """The `}` that ends `${`, or the end of the text."""
    depth = 1
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text.startswith("${", at):
            depth += 1
        elif text[at] == "}":
            depth -= 1
            if depth == 0:
                return at
        at += 1
    return len(text)
