"""Variables: what `[name]` stands for in the commands and texts of a task.

A name is the output of an earlier step, or a property of the task, also by a dotted path.
In a command its value is data (see `quoting`); it travels on the standard input of the
script, so its size is bounded by nothing and it never stands in a process list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from rondel.workflows.task.brackets import REFERENCE
from rondel.workflows.task.hazards import Option
from rondel.workflows.task.quoting import VARIABLE, Script, compile_command

EXPORTED = (
    *("id", "title", "status", "type", "agent", "requirements", "focus_paths", "acceptance", "parent"),
    *("depends_on", "target_files"),
)  # what a command finds in its environment too; lists are separated by spaces
ALWAYS = (
    *EXPORTED,
    *("inherited", "inherited.from", "inherited.context", "shared_context"),
)  # what every task has, if only empty
ENVIRONMENT_MAX = 32_000  # bytes of one environment variable; the system allows 128 KB
_BEGINS_A_WORD = re.compile(r"(^|[\s\\'\"])-")  # also behind what `read` and `xargs` take away
INDEX_DIGITS = 9  # of a place in a list


@dataclass(frozen=True)
class Variables:
    """The names a task's steps may refer to, and what they stand for."""

    properties: Mapping[str, object]
    outputs: Mapping[str, str]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.value(name) is not None

    def value(self, name: str, separator: str = " ") -> str | None:
        """What a name stands for; None for an unknown one. Outputs come before properties."""
        if name in self.outputs:
            return clean(self.outputs[name])
        found: object = self.properties
        for part in name.split("."):
            found = _member(found, part)
            if found is None:
                return "" if name in ALWAYS else None
        return clean(as_text(found, separator))

    def environment(self) -> dict[str, str]:
        """The properties as environment variables; lists are separated by spaces."""
        values = {name: self.value(name) or "" for name in EXPORTED}
        return {n: v for n, v in values.items() if len(v.encode()) <= ENVIRONMENT_MAX}

    def fill(self, text: str) -> str:
        """A text for an agent, its references replaced; what is unknown stays as it stands."""

        def replace(found: re.Match[str]) -> str:
            value = self.value(found[1], ", ")
            return found[0] if value is None else value

        return REFERENCE.sub(replace, text)


def _member(value: object, name: str) -> object:
    if isinstance(value, Mapping):
        return value.get(name)
    if isinstance(value, list) and name.isdecimal() and len(name) <= INDEX_DIGITS and int(name) < len(value):
        return value[int(name)]
    return None


def as_text(value: object, separator: str = " ") -> str:
    """A JSON value as text: a list of plain values is separated, anything deeper is JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and not any(isinstance(v, list | dict) for v in value):
        return separator.join(as_text(v) for v in value)
    return json.dumps(value, ensure_ascii=False)


def clean(text: str) -> str:
    """A text that a shell can hold: without NUL, and without half characters."""
    return text.replace("\0", "").encode(errors="replace").decode()


@dataclass(frozen=True)
class Prepared:
    """A script for `bash -c` and its standard input, or why it cannot run."""

    command: str = ""
    stdin: str = ""
    problem: str = ""


def prepare(commands: tuple[str, ...], variables: Variables) -> Prepared:
    """Commands, each in a shell of its own, the next only after the success of the one before."""
    names: list[str] = []
    scripts: list[Script] = []
    for command in commands:
        script = compile_command(command, variables, first=len(names), exported=EXPORTED)
        names += script.names
        scripts.append(script)
    problems = [p for s in scripts for p in s.problems]
    problems += [w for s in scripts for o in sorted(s.options) if (w := _taken_for_option(o, variables))]
    if problems:
        return Prepared(problem="; ".join(dict.fromkeys(problems)))
    values = [variables.value(name) or "" for name in names]
    return Prepared(_head(len(names)) + _body(scripts), "".join(f"{v}\0" for v in values))


def _taken_for_option(option: Option, variables: Variables) -> str:
    """Why a value cannot stand where a program would take it for an option; empty when it can."""
    value = variables.value(option.name) or ""
    begins = _BEGINS_A_WORD.search(value) is not None if option.splits else value.startswith("-")
    if not begins:
        return ""
    return (
        f'[{option.name}] begins with "-", and {option.program} would take it for an option; put -- before it'
    )


def _head(count: int) -> str:
    """The lines that set the variables from the standard input."""
    if not count:
        return ""
    lines = [f"IFS= read -r -d '' {VARIABLE}{n}" for n in range(count)]
    return "\n".join([*lines, "exec </dev/null", ""])


def _body(scripts: list[Script]) -> str:
    if len(scripts) == 1:
        return scripts[0].text
    return " || exit\n".join(f"(\n{script.text}\n)" for script in scripts)
