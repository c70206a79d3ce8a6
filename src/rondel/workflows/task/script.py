"""What is known of a script while it is read: its names, its quotes, its nested commands."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, field
from enum import Enum, auto

from rondel.workflows.task.hazards import Command, Evaluated

VARIABLE = "RONDEL_VAR_"
_DELIMITER = re.compile(r"(?:'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|[^\s;&|<>()'\"\\])+")


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

    def nested(self) -> Names:
        """The names for a script in this one; what is wrong there is wrong here."""
        own = Names(self.known, self.first)
        own.numbers, own.problems = dict(self.numbers), self.problems
        return own

    def export(self, own: Names, script: str) -> None:
        """Take in the names of a nested script, which finds their values in its environment."""
        self.numbers = own.numbers
        used = {n for n, number in own.numbers.items() if f"${{{VARIABLE}{number}}}" in script}
        self.exported |= own.exported | used

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

    def end(self, text: str, at: int) -> tuple[int, str | None]:
        """Where its body ends, and the line of its delimiter; None when there is none."""
        while at < len(text):
            line, newline, _ = text[at:].partition("\n")
            if (line.lstrip("\t") if self.strips_tabs else line) == self.delimiter:
                return at, line
            at += len(line) + len(newline)
        return at, None


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

    def add(self, word: str) -> None:
        """Take in a word of the command."""
        if self.command.expects_name:
            if word == "case":
                self.cases.append("head")
            elif word == "esac" and self.cases:
                self.cases.pop()
        self.command.add(word)

    def next_command(self, *, piped: bool) -> list[str]:
        """Begin the next command; what is wrong with the one before, which may be piped into it."""
        if self.is_array:
            return []
        problems = list(self.command.problems(self.piped))
        self.piped = [*self.piped, *self.command.names] if piped else []
        self.command = Command()
        return problems


def pipeline(line: str) -> list[Command]:
    """The commands that follow on a line behind pipes."""
    commands = []
    for part in re.split(r"\|(?!\|)", line.partition(";")[0])[1:]:
        command = Command()
        for word in part.split():
            command.add(word)
        commands.append(command)
    return commands


def delimiter(text: str, at: int) -> tuple[str, str]:
    """The delimiter of a here-document, as it is written and as it is meant."""
    found = _DELIMITER.match(text, at)
    raw = found[0] if found else ""
    return raw, re.sub(r"\\(.)|['\"]", lambda m: m[1] or "", raw)


def backticks(text: str, at: int, quote: Quote) -> tuple[int, str]:
    """The backtick that ends the one at `at`, and the command between them, as the shell reads it."""
    end = at + 1
    while end < len(text) and text[end] != "`":
        end += 2 if text[end] == "\\" else 1
    escapes = r"\\([$`\\\"])" if quote is Quote.DOUBLE else r"\\([$`\\])"
    return end, re.sub(escapes, lambda m: m[1], text[at + 1 : end])


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
