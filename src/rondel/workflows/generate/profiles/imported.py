"""A profile of a folder, imported: for its own process (`worker`), and for its own tests."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from rondel.errors import RondelError
from rondel.model.digests import digest
from rondel.workflows.generate.layout import PROFILES
from rondel.workflows.generate.profiles.base import WorkflowProfile

MODULE = "profile.py"


def import_profile(folder: Path) -> WorkflowProfile:
    """The profile of a folder, imported into this process: whatever it does, it does as this process."""
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
    made = kinds[0]()
    if not isinstance(made, WorkflowProfile):
        raise RondelError(f"{PROFILES}/{name}/{MODULE}: {kinds[0].__name__} is no WorkflowProfile")
    return made
