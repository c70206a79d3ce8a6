"""Which profiles there are: those installed, by entry point, and those in the repository's own folder.

A profile of the repository is a program: it runs, in a process of its own, when a session that uses it is
started or goes on, after the person consented to it as it is, and never when one is only looked at.
"""

from __future__ import annotations

from functools import cache
from importlib import metadata
from pathlib import Path

from rondel import paths
from rondel.errors import NeedsConsent, RondelError, UsageError
from rondel.model.commands import command_line
from rondel.model.consent import Admits, Brought, admits_nothing
from rondel.model.names import is_safe_name
from rondel.model.workers import AskProgram, ask_nobody
from rondel.workflows.generate.layout import PROFILES
from rondel.workflows.generate.profiles.base import WorkflowProfile
from rondel.workflows.generate.profiles.confined import ConfinedProfile
from rondel.workflows.generate.profiles.imported import MODULE

GROUP = "rondel.profiles"


@cache
def _installed() -> dict[str, metadata.EntryPoint]:
    """What is installed does not change while we run."""
    return {e.name: e for e in metadata.entry_points(group=GROUP)}


def profile_names(root: Path | None = None) -> dict[str, str]:
    """Every profile by name, and where it comes from. Nothing is imported."""
    found = {name: e.value for name, e in _installed().items()}
    folder = root / PROFILES if root else None
    if folder is not None and folder.is_dir():
        for place in sorted(folder.iterdir()):
            if is_safe_name(place.name) and (place / MODULE).is_file():
                found[place.name] = f"{PROFILES}/{place.name}"
    return dict(sorted(found.items()))


def is_brought(name: str, root: Path | None) -> bool:
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
    name: str, root: Path | None = None, admits: Admits = admits_nothing, ask: AskProgram = ask_nobody
) -> WorkflowProfile:
    """The profile of that name.

    One of the repository comes before an installed one where the person consented to it. It is never
    imported here: `ask` runs it.
    """
    there = profile_names(root)
    if name not in there:
        raise UsageError(f"no profile {name!r}; there are: {', '.join(there) or 'none'}")
    if root is not None and is_brought(name, root):
        if admits(brought_profile(name)):
            return _confined(root.resolve() / PROFILES / name, ask)
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


def _confined(folder: Path, ask: AskProgram) -> ConfinedProfile:
    if not paths.is_file(folder / MODULE):  # its process may read the folder: not one that a link leads to
        raise RondelError(f"{folder / MODULE} is reached through a link; copy the profile there")
    return ConfinedProfile(folder, ask)
