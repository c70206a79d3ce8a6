"""Scenarios: what the model answers to which request.

    {"steps": [...],          # by number of tool results after the last user message; the last one repeats
     "branches": [{"system": regex, "user": regex, "history": regex, "steps": [...]}],   # first match wins
     "faults": [{"status": 429, "times": 2, "retry_after": 1}],   # before the script, in order
     "side_text": "ok",       # for calls without tools
     "max_main": 60,          # a bound on runaways
     "usage": [1000, 50]}

A fault is one of `status` (with `message`, `retry_after`, `headers`, `error`), `hang`
("before" or "mid"), `drop`, `bad` ("json", "html", "empty", "truncate"), each with `times`
(for ever without it). A step may carry its own `fault`, which then needs no counter.
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from modelserver.asked import Answer, Asked, Call, Tool

Step = Mapping[str, Any]
Script = Mapping[str, Any] | Sequence[Any] | str | Callable[[Asked], Any]

SIDE_TEXT = '{"reasoning":"scripted","model_choice":"flash","title":"scripted"}'


@dataclass
class Scenario:
    """One script, with the only two counters there are: main requests, and faults given."""

    steps: Sequence[Any] = ()
    decide: Callable[[Asked], Any] | None = None
    branches: Sequence[Mapping[str, Any]] = ()
    faults: Sequence[Mapping[str, Any]] = ()
    side_text: str = SIDE_TEXT
    max_main: int = 60
    usage: tuple[int, int] = (1000, 50)
    main: int = 0
    given: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, script: Script) -> Scenario:
        if callable(script):
            return cls(decide=script)
        if isinstance(script, str):
            return cls(steps=[script])
        if isinstance(script, Mapping):
            return cls(**script)
        return cls(steps=list(script))

    def next_fault(self) -> Mapping[str, Any] | None:
        """The fault due for this main request, if any. Counts it."""
        for number, fault in enumerate(self.faults):
            times = fault.get("times")
            if times is None or self.given.get(number, 0) < times:
                self.given[number] = self.given.get(number, 0) + 1
                return fault
        return None

    def step(self, asked: Asked) -> Step:
        """The step for this request."""
        if self.decide is not None:
            return as_step(self.decide(asked))
        steps = next(
            (branch["steps"] for branch in self.branches if _matches(branch, asked)),
            self.steps,
        )
        if isinstance(steps, str):
            steps = [steps]
        if not steps:
            return {"text": "The script has no answer to this."}
        return as_step(steps[min(asked.step, len(steps) - 1)])


def as_step(found: Any) -> Step:
    return {"text": found} if isinstance(found, str) else found


def _matches(branch: Mapping[str, Any], asked: Asked) -> bool:
    return all(
        re.search(branch[name], getattr(asked, name))
        for name in ("system", "user", "history")
        if name in branch
    )


def answer(step: Step, asked: Asked, usage: tuple[int, int]) -> Answer:
    """The step in the words of the CLI that asked: its own tools."""
    calls = tuple(_call(wanted, asked) for wanted in step.get("tools", ()))
    spent = step.get("usage", usage)
    return Answer(str(step.get("text", "")), calls, int(spent[0]), int(spent[1]))


def _call(wanted: Mapping[str, Any], asked: Asked) -> Call:
    ((kind, given),) = wanted.items()
    if kind == "write":
        return _write(asked, given["path"], given["content"])
    if kind == "shell":
        return _shell(asked, given["command"])
    if kind == "read":
        return _read(asked, given["path"])
    if kind == "call":
        tool = asked.tool(given["name"])
        return Call(given["name"], given["input"], tool.namespace if tool else None)
    raise ValueError(f"no tool {kind!r} in a step; there are: write, read, shell, call")


def _write(asked: Asked, path: str, content: str) -> Call:
    for tool in asked.tools:
        for name in ("file_path", "filePath", "path"):
            if {name, "content"} <= tool.properties.keys():
                return Call(tool.name, {name: path, "content": content}, tool.namespace)
    patch = asked.tool("apply_patch")
    if patch is not None:
        lines = "".join(f"+{line}\n" for line in content.splitlines())
        text = f"*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch\n"
        return Call(patch.name, text if patch.freeform else {"input": text})
    if asked.dialect == "responses":
        data = base64.b64encode(content.encode()).decode()
        return _shell(asked, f"printf %s {data} | base64 -d > {shlex.quote(path)}")
    # Not offered: asked for all the same, as a model may, to see that it does not happen.
    name, key = {"gemini": ("write_file", "file_path")}.get(asked.dialect, ("Write", "file_path"))
    return Call(name, {key: path, "content": content})


def _read(asked: Asked, path: str) -> Call:
    for tool in asked.tools:
        for name in ("file_path", "filePath"):
            if name in tool.properties and "read" in tool.name.lower():
                return Call(tool.name, {name: path}, tool.namespace)
    return _shell(asked, f"cat {shlex.quote(path)}")


def _shell(asked: Asked, command: str) -> Call:
    for tool in asked.tools:
        for name in ("command", "cmd"):
            if name in tool.properties and "path" not in tool.properties:
                return Call(tool.name, _shell_input(tool, name, command), tool.namespace)
    name, key = {"responses": ("exec_command", "cmd"), "gemini": ("run_shell_command", "command")}.get(
        asked.dialect, ("Bash", "command")
    )
    return Call(name, {key: command})


def _shell_input(tool: Tool, name: str, command: str) -> Mapping[str, Any]:
    many = tool.properties[name].get("type") == "array"
    given: dict[str, Any] = {name: ["bash", "-c", command] if many else command}
    if "description" in tool.properties:
        given["description"] = "scripted"
    return given
