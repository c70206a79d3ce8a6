"""Which profiles there are: those installed, by entry point, and those in the repository's own folder.

A profile of the repository is a program: it runs, in a process of its own, when a session that uses it is
started or goes on, after the person consented to it as it is, and never when one is only looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from typing_extensions import override

from rondel import paths
from rondel.errors import NeedsConsent, RondelError, UsageError
from rondel.model.consent import Admits, Brought, admits_nothing
from rondel.model.names import digest, is_safe_name
from rondel.model.plugins import plugins
from rondel.model.summary import command_line
from rondel.model.workers import AskProgram, Program, Read, ask_nobody, nothing_to_read
from rondel.workflows.generate.layout import PROFILES
from rondel.workflows.generate.profiles import worker
from rondel.workflows.generate.profiles.base import (
    CodeFile,
    CycleConfig,
    CycleContext,
    PromptPlan,
    ResponsePlan,
    WorkflowProfile,
)
from rondel.workflows.generate.profiles.worker import MODULE, PLAIN

GROUP = "rondel.profiles"
FILE_MAX = 10_000_000
FILES_MAX = 2_000
Root = str | Path | None  # the repository's folder; none or empty: only what is installed


@cache
def _installed() -> dict[str, metadata.EntryPoint]:
    """What is installed does not change while we run."""
    return plugins(GROUP)


def profile_names(root: Root = None) -> dict[str, str]:
    """Every profile by name, and where it comes from. Nothing is imported."""
    found = {name: e.value for name, e in _installed().items()}
    folder = Path(root) / PROFILES if root else None
    if folder is not None and folder.is_dir():
        for place in sorted(folder.iterdir()):
            if is_safe_name(place.name) and (place / MODULE).is_file():
                found[place.name] = f"{PROFILES}/{place.name}"
    return dict(sorted(found.items()))


def is_brought(name: str, root: Root) -> bool:
    """Whether the repository has a profile of that name."""
    return profile_names(root).get(name) == f"{PROFILES}/{name}"


def is_installed(name: str) -> bool:
    """Whether a profile of that name is installed."""
    return name in _installed()


def brought_profile(name: str) -> Brought:
    """A profile of the repository, as the person consents to it: every file of its folder but its texts."""
    folder = f"{PROFILES}/{name}"
    return Brought(f"profile {name}", f"{folder}/{MODULE}", (folder,))


def load_profile(
    name: str, root: Root = None, admits: Admits = admits_nothing, ask: AskProgram = ask_nobody
) -> WorkflowProfile:
    """The profile of that name.

    One of the repository comes before an installed one where the person consented to it. It is never
    imported here: `ask` runs it.
    """
    there = profile_names(root)
    if name not in there:
        raise UsageError(f"no profile {name!r}; there are: {', '.join(there) or 'none'}")
    if root and is_brought(name, root):
        if admits(brought_profile(name)):
            return ConfinedProfile(Path(root).resolve() / PROFILES / name, ask)
        if not is_installed(name):
            raise NeedsConsent(
                f"the profile {name!r} is a program of this repository, and you have not consented to it\n"
                f"  `{command_line('trust')}` shows it\n  next: {command_line('trust', '--yes')}"
            )
    entry = _installed()[name]
    made = entry.load()()
    if not isinstance(made, WorkflowProfile):
        raise RondelError(f"the profile {name!r} ({entry.value}) is no WorkflowProfile")
    return made


# -- a profile of the repository, as the driver sees it -------------------------------------------


class ConfinedProfile(WorkflowProfile):
    """A profile of the repository: each hook is a question to its own process (`worker`).

    RondelError where the profile gives no answer, or one that is none.
    """

    def __init__(self, folder: Path, ask: AskProgram) -> None:
        if not paths.is_file(folder / MODULE):  # its process may read the folder: not one a link leads to
            raise RondelError(f"{folder / MODULE} is reached through a link; copy the profile there")
        self.name = folder.name
        self._ask = ask
        place = str(folder)
        self._program = Program(f"profile-{folder.name}", worker.__name__, place, (place,), _version(folder))

    @override
    def get_cycles(self, context: dict[str, Any]) -> list[CycleConfig]:
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

    @override
    def check_context(self, context: dict[str, Any]) -> str:
        return self._text("check_context", {"context": context})

    @override
    def standards(self, scope: str, context: dict[str, Any]) -> str:
        return self._text("standards", {"scope": scope, "context": context})

    @override
    def plan_prompt(self, cycle: CycleContext) -> PromptPlan:
        asked, read = _asked(cycle)
        return PromptPlan(self._text("plan_prompt", {"cycle": asked}, read))

    @override
    def plan_response(self, cycle: CycleContext) -> ResponsePlan:
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
        **{name: getattr(cycle, name) for name in PLAIN},
        "phase": cycle.phase.value,
        "context": {key: value for key, value in cycle.context.items() if key != "cycle_outputs"},
        "outputs": outputs,
        "feedback": list(cycle.feedback),
        "code": shelf(cycle.code),
        "inputs": shelf(cycle.inputs),
        "sources": shelf(cycle.sources),
    }
    return asked, read
