"""The process of one profile of the repository: it imports `profile.py` and answers for its hooks.

Started by `rondel.agents.workers` as `python -m … FOLDER`, inside the sandbox where there is one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rondel.model.workers import Read
from rondel.sandbox.serve import serve
from rondel.workflows.generate.context import CycleContext
from rondel.workflows.generate.models import CycleConfig, WorkflowPhase
from rondel.workflows.generate.profiles.base import PromptPlan, ResponsePlan
from rondel.workflows.generate.profiles.imported import import_profile


class AskedFiles(Mapping[str, str]):
    """Files by name; the text of each is asked for when it is used, and once."""

    def __init__(self, shelf: Mapping[str, Any], read: Read) -> None:
        self._number = shelf["shelf"]
        self._names = dict.fromkeys(map(str, shelf["names"]))
        self._read = cache(lambda name: str(read([self._number, name])))

    def __getitem__(self, name: str) -> str:
        if name not in self._names:
            raise KeyError(name)
        return self._read(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def main(folder: Path) -> int:
    """Answer for the profile of a folder; it is imported with the first question."""
    profile = cache(lambda: import_profile(folder))

    def answer(question: Mapping[str, Any], read: Read) -> object:
        return _hooked(profile(), question, read)

    return serve(answer)


def _hooked(profile: Any, question: Mapping[str, Any], read: Read) -> object:
    """What a hook gives, as JSON; RondelError names a hook that gives something else."""
    hook = question["hook"]
    if hook == "check_context":
        return profile.check_context(question["context"])
    if hook == "get_cycles":
        try:
            found = profile.get_cycles(question["context"])
        except ValueError as e:  # its word for a context that will not do
            return {"wrong": str(e)}
        return [vars(cycle) if isinstance(cycle, CycleConfig) else repr(cycle) for cycle in found]
    if hook == "standards":
        return profile.standards(question["scope"], question["context"])
    cycle = _context(question["cycle"], read)
    if hook == "plan_prompt":
        made = profile.plan_prompt(cycle)
        if not isinstance(made, PromptPlan):
            raise TypeError("it gave no PromptPlan with a text")
        return made.text
    planned = profile.plan_response(cycle)
    if not isinstance(planned, ResponsePlan):
        raise TypeError("it gave no ResponsePlan")
    return {"files": [[file.path, file.text] for file in planned.files], "error": planned.error}


def _context(asked: Mapping[str, Any], read: Read) -> CycleContext:
    """A phase of a cycle, from its JSON."""
    outputs = {
        name: {"files": found["files"], "artifacts": AskedFiles(found["artifacts"], read)}
        for name, found in asked["outputs"].items()
    }
    return CycleContext(
        type=asked["type"],
        scope=asked["scope"],
        phase=WorkflowPhase(asked["phase"]),
        iteration=asked["iteration"],
        context={**asked["context"], "cycle_outputs": outputs},
        standards=asked["standards"],
        plan=asked["plan"],
        review=asked["review"],
        feedback=tuple(asked["feedback"]),
        code=AskedFiles(asked["code"], read),
        inputs=AskedFiles(asked["inputs"], read),
        sources=AskedFiles(asked["sources"], read),
        response=asked["response"],
    )


if __name__ == "__main__":
    # Bytecode that the repository brings is none that anybody consented to.
    sys.pycache_prefix = f"{os.devnull}/none"
    sys.exit(main(Path(sys.argv[3])))
