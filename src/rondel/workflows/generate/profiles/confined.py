"""A profile of the repository as the driver sees it: each hook is a question to the profile's own process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rondel import paths
from rondel.errors import RondelError
from rondel.model.digests import digest
from rondel.model.workers import AskProgram, Program, Read, nothing_to_read
from rondel.workflows.generate.context import CycleContext
from rondel.workflows.generate.extract import CodeFile
from rondel.workflows.generate.models import CycleConfig
from rondel.workflows.generate.profiles import worker
from rondel.workflows.generate.profiles.base import PromptPlan, ResponsePlan, WorkflowProfile

FILE_MAX = 10_000_000
FILES_MAX = 2_000


class ConfinedProfile(WorkflowProfile):
    """See `WorkflowProfile`. RondelError where the profile gives no answer, or one that is none."""

    def __init__(self, folder: Path, ask: AskProgram) -> None:
        self.name = folder.name
        self._ask = ask
        place = str(folder)
        self._program = Program(f"profile-{folder.name}", worker.__name__, place, (place,), _version(folder))

    def get_cycles(self, context: dict[str, Any]) -> list[CycleConfig]:
        """See `WorkflowProfile`."""
        found = self._asked("get_cycles", {"context": context})
        if isinstance(found, Mapping) and "wrong" in found:
            raise ValueError(str(found["wrong"]))
        if not isinstance(found, list):
            raise self._nonsense("get_cycles")
        return [self._cycle(cycle) for cycle in found]

    def _cycle(self, found: object) -> CycleConfig:
        match found:
            case {"type": str(kind), "scope": str(scope), "depends_on": [*needed]} if _are_texts(needed):
                return CycleConfig(kind, scope, needed)
            case str():
                raise RondelError(
                    f"get_cycles of profile {self.name} gave {found}; it must give CycleConfig values"
                )
        raise self._nonsense("get_cycles")

    def check_context(self, context: dict[str, Any]) -> str:
        """See `WorkflowProfile`."""
        return self._text("check_context", {"context": context})

    def standards(self, scope: str, context: dict[str, Any]) -> str:
        """See `WorkflowProfile`."""
        return self._text("standards", {"scope": scope, "context": context})

    def plan_prompt(self, cycle: CycleContext) -> PromptPlan:
        """See `WorkflowProfile`."""
        asked, read = _asked(cycle)
        return PromptPlan(self._text("plan_prompt", {"cycle": asked}, read))

    def plan_response(self, cycle: CycleContext) -> ResponsePlan:
        """See `WorkflowProfile`."""
        asked, read = _asked(cycle)
        match self._asked("plan_response", {"cycle": asked}, read):
            case {"files": [*files], "error": str(error)} if all(_is_file(file) for file in files):
                return ResponsePlan(tuple(CodeFile(path, text) for path, text in files), error)
        raise self._nonsense("plan_response")

    def _text(self, hook: str, words: Mapping[str, object], read: Read = nothing_to_read) -> str:
        found = self._asked(hook, words, read)
        if not isinstance(found, str):
            raise self._nonsense(hook)
        return found

    def _asked(self, hook: str, words: Mapping[str, object], read: Read = nothing_to_read) -> object:
        return self._ask(self._program, f"{hook} of profile {self.name}", {"hook": hook, **words}, read)

    def _nonsense(self, hook: str) -> RondelError:
        return RondelError(f"{hook} of profile {self.name} gave something that it must not give")


def _version(folder: Path) -> str:
    """The digest of everything in a profile's folder."""
    found = []
    names = (name for name in paths.files_below(folder) if not paths.is_bytecode(name))
    for name in sorted(names)[:FILES_MAX]:
        try:
            found.append((name, digest(paths.read(folder / name, FILE_MAX))))
        except OSError:
            found.append((name, ""))
    return digest(repr(found))


def _are_texts(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def _is_file(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and _are_texts(value)  # noqa: PLR2004 - path and text


def _asked(cycle: CycleContext) -> tuple[dict[str, object], Read]:
    """A phase of a cycle as JSON, and how the profile gets the texts that it uses."""
    shelves: list[Mapping[str, str]] = []

    def shelf(files: Mapping[str, str]) -> dict[str, object]:
        shelves.append(files)
        return {"shelf": len(shelves) - 1, "names": list(files)}

    def read(wanted: object) -> object:
        match wanted:
            case [int(number), str(name)] if 0 <= number < len(shelves) and name in shelves[number]:
                return shelves[number][name]
        return ""

    outputs = {
        name: {"files": found["files"], "artifacts": shelf(found["artifacts"])}
        for name, found in cycle.outputs.items()
    }
    asked: dict[str, object] = {
        "type": cycle.type,
        "scope": cycle.scope,
        "phase": cycle.phase.value,
        "iteration": cycle.iteration,
        "context": {key: value for key, value in cycle.context.items() if key != "cycle_outputs"},
        "outputs": outputs,
        "standards": cycle.standards,
        "plan": cycle.plan,
        "review": cycle.review,
        "feedback": list(cycle.feedback),
        "code": shelf(cycle.code),
        "inputs": shelf(cycle.inputs),
        "sources": shelf(cycle.sources),
        "response": cycle.response,
    }
    return asked, read
