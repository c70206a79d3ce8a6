"""The process of one profile of the repository: it imports `profile.py` and answers for its hooks.

Started by `rondel.agents.workers` as `python -m … FOLDER`, inside the sandbox where there is one. Who asks
is `discover.ConfinedProfile`.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from rondel.errors import RondelError
from rondel.model.names import digest
from rondel.model.workers import Read
from rondel.sandbox.serve import serve
from rondel.workflows.generate.layout import PROFILES
from rondel.workflows.generate.models import CycleConfig, WorkflowPhase
from rondel.workflows.generate.profiles.base import (
    CycleContext,
    LazyFiles,
    PromptPlan,
    ResponsePlan,
    WorkflowProfile,
)

MODULE = "profile.py"
PLAIN = ("type", "scope", "iteration", "standards", "plan", "review", "response")  # go over as they are


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
    """A phase of a cycle, from its JSON. The text of a file is asked for when it is used."""

    def files(shelf: Mapping[str, Any]) -> LazyFiles:
        names = {str(name): str(name) for name in shelf["names"]}
        return LazyFiles(lambda name: str(read([shelf["shelf"], name])), names, sys.maxsize)

    outputs = {
        name: {"files": found["files"], "artifacts": files(found["artifacts"])}
        for name, found in asked["outputs"].items()
    }
    return CycleContext(
        **{name: asked[name] for name in PLAIN},
        phase=WorkflowPhase(asked["phase"]),
        context={**asked["context"], "cycle_outputs": outputs},
        feedback=tuple(asked["feedback"]),
        code=files(asked["code"]),
        inputs=files(asked["inputs"]),
        sources=files(asked["sources"]),
    )


# -- the profile itself -------------------------------------------------------------------------


def import_profile(folder: Path) -> WorkflowProfile:
    """The profile of a folder, imported into this process: whatever it does, it does as this process.

    For the profile's own process, and for its own tests.
    """
    return _instance(_import(folder), folder.name)


def _import(folder: Path) -> ModuleType:
    """The module of a profile's folder, under a name of its own."""
    title = f"rondel_profile_{digest(str(folder.resolve()))[:12]}"
    spec = importlib.util.spec_from_file_location(title, folder / MODULE)
    if spec is None or spec.loader is None:
        raise RondelError(f"{folder / MODULE} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[title] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as e:
        del sys.modules[title]
        raise RondelError(f"{folder / MODULE} cannot be imported: {type(e).__name__}: {e}") from e
    return module


def _instance(module: ModuleType, name: str) -> WorkflowProfile:
    kinds = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, WorkflowProfile)
        and value.__module__ == module.__name__
        and not value.__abstractmethods__
    ]
    if len(kinds) != 1:
        raise RondelError(
            f"{PROFILES}/{name}/{MODULE} must define one class that is a WorkflowProfile; it has {len(kinds)}"
        )
    return kinds[0]()


if __name__ == "__main__":
    # Bytecode that the repository brings is none that anybody consented to.
    sys.pycache_prefix = f"{os.devnull}/none"
    sys.exit(main(Path(sys.argv[3])))
