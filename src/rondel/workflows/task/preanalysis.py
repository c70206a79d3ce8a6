"""What `flow_control.pre_analysis` says is to be done before the agent is asked, as a task file has it."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class OnError(StrEnum):
    """What a failed step means for its task."""

    SKIP = "skip_optional"
    FAIL = "fail"
    RETRY = "retry_once"
    MANUAL = "manual_intervention"


_OTHER_ON_ERROR = {
    "warn": OnError.SKIP,
    "skip": OnError.SKIP,
    "continue": OnError.SKIP,
    "retry": OnError.RETRY,
}
_CALL = re.compile(r"^\s*([A-Za-z_][\w.:-]*)\((.*)\)\s*$", re.DOTALL)
_NAME = re.compile(r"^[A-Za-z_][\w-]*$")


@dataclass(frozen=True)
class AnalysisStep:
    """One step. `commands` are as the file has them; `scripts` are what bash gets."""

    name: str
    action: str
    commands: tuple[str, ...]
    scripts: tuple[str, ...]
    output_to: str | None
    on_error: OnError
    criteria: str
    unusable: str = ""  # why it cannot run at all


def steps_from(value: object) -> tuple[tuple[AnalysisStep, ...], list[str]]:
    """The steps of a task, and what is wrong with how they are written."""
    if value is None:
        return (), []
    if not isinstance(value, list):
        return (), ["pre_analysis must be a list of steps"]
    steps: list[AnalysisStep] = []
    problems: list[str] = []
    for number, entry in enumerate(value, start=1):
        wrong: list[str] = []
        steps.append(_step(number, entry, wrong))
        problems += [f"step {number}: {words}" for words in wrong]
    return tuple(steps), problems


def _step(number: int, entry: object, wrong: list[str]) -> AnalysisStep:
    """One step; what is wrong with how it is written goes to `wrong`."""
    if not isinstance(entry, Mapping):
        wrong.append("it must be an object with step, action and command")
        return AnalysisStep(f"step-{number}", "", (), (), None, OnError.FAIL, "", wrong[0])
    wrong += [f"{k} is missing" for k in ("step", "action") if not isinstance(entry.get(k), str | int)]
    commands = _commands(entry, wrong)
    scripts = tuple(script for c in commands if (script := script_of(c)) is not None)
    unusable = "" if commands else "it has no command"
    if len(scripts) < len(commands):
        strange = next(c for c in commands if script_of(c) is None)
        unusable = f"{strange[:80]!r} is not a bash(…) command"
        wrong.append(unusable)
    on_error = _on_error(entry.get("on_error"), wrong)
    output_to = entry.get("output_to")
    if output_to is not None and not (isinstance(output_to, str) and _NAME.match(output_to)):
        wrong.append(f"output_to must be a name of letters, digits and _, not {output_to!r}")
        output_to = None
    given = entry.get("success_criteria")
    criteria = "" if given is None else given if isinstance(given, str) else json.dumps(given)
    unchecked = criteria_problem(criteria)
    if unchecked is not None:
        wrong.append(unchecked)
        unusable = unusable or unchecked
    name = str(entry.get("step") or f"step-{number}")
    action = str(entry.get("action") or name)
    return AnalysisStep(name, action, commands, scripts, output_to, on_error, criteria, unusable)


def _commands(entry: Mapping[object, object], wrong: list[str]) -> tuple[str, ...]:
    command, commands = entry.get("command"), entry.get("commands")
    if isinstance(command, str) and command.strip():
        return (command,)
    if isinstance(commands, list) and commands and all(isinstance(c, str) for c in commands):
        wrong.append("command is missing ('commands' is read instead)")
        return tuple(commands)
    wrong.append("command is missing")
    return ()


def script_of(command: str) -> str | None:
    """What bash gets for a command: the inside of `bash(…)`, or a command without a wrapper.

    `Read(path)` is read as `cat`. Any other call is a tool of some agent, and not ours to run.
    """
    found = _CALL.match(command)
    if found is None:
        return command
    name, inside = found[1], found[2]
    if name.lower() in ("bash", "sh", "shell"):
        return inside
    if name == "Read" and "{" not in inside:
        return f"cat -- {shlex.quote(inside.strip())}"
    return None


def _on_error(value: object, wrong: list[str]) -> OnError:
    found = OnError.FAIL if value is None else next((s for s in OnError if s == value), None)
    if found is None:
        found = _OTHER_ON_ERROR.get(str(value), OnError.FAIL)
        wrong.append(f"on_error is {value!r}, not one of {', '.join(OnError)}; read as {found}")
    return found


def criteria_problem(criteria: str) -> str | None:
    """What is wrong with success criteria; None when they can be checked."""
    for one in _each(criteria):
        name, _, value = one.partition(":")
        if name == "exit_code" and re.fullmatch(r"\s*\d{1,3}(\s*,\s*\d{1,3})*\s*", value):
            continue
        if name in ("output_contains", "file_exists") and value.strip():
            continue
        if name == "output_not_empty" and not value:
            continue
        return (
            f"success_criteria {one!r} cannot be checked; use exit_code:0, output_contains:TEXT, "
            "output_not_empty or file_exists:PATH, separated by ';'"
        )
    return None


def _each(criteria: str) -> list[str]:
    return [one.strip() for one in criteria.split(";") if one.strip()]


def files_wanted(criteria: str) -> tuple[str, ...]:
    """The files whose existence the criteria ask for."""
    return tuple(one.partition(":")[2].strip() for one in _each(criteria) if one.startswith("file_exists:"))


def unmet(criteria: str, exit_code: int | None, output: str, files: Mapping[str, bytes]) -> str | None:
    """Which criterion a step missed, in words; None when it succeeded. By default the exit code is 0."""
    checks = _each(criteria)
    if not any(one.startswith("exit_code") for one in checks):
        checks.insert(0, "exit_code:0")
    for one in checks:
        name, _, value = one.partition(":")
        if name == "exit_code" and exit_code not in {int(v) for v in value.split(",")}:
            return f"exit code {exit_code}, not {value.strip()}"
        if name == "output_contains" and value.strip() not in output:
            return f"the output does not contain {value.strip()!r}"
        if name == "output_not_empty" and not output.strip():
            return "the output is empty"
        if name == "file_exists" and value.strip() not in files:
            return f"there is no file {value.strip()!r}"
    return None
