"""What is installed: the workflows, found by their entry points. None is imported before it is used."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import metadata
from typing import Any

from rondel.errors import RondelError
from rondel.model.plugins import plugins
from rondel.model.workflow import Workflow

AnyWorkflow = Workflow[Any]
LAST = 1_000_000  # the place of a workflow that cannot be loaded


@cache
def workflows() -> dict[str, metadata.EntryPoint]:
    """Every workflow that is installed, by name."""
    return plugins("rondel.workflows")


@cache
def workflow(name: str) -> AnyWorkflow:
    """An installed workflow; RondelError where its package cannot be imported."""
    found = workflows()[name]
    try:
        made = found.load()()
    except Exception as e:  # whatever somebody else's package does
        package = found.dist.name if found.dist else found.value
        raise RondelError(
            f"the workflow {name!r} of the package {package} cannot be loaded: {type(e).__name__}: {e}; "
            f"correct it, or remove the package"
        ) from e
    if not isinstance(made, Workflow):
        raise RondelError(f"{found.value}, the workflow {name!r}, is no rondel.model.workflow.Workflow")
    return made


def in_order(names: Iterable[str]) -> list[str]:
    """Workflows as a person meets them in lists: each says its own place."""

    def place(name: str) -> tuple[int, str]:
        try:
            return workflow(name).order, name
        except RondelError:  # said where it is used
            return LAST, name

    return sorted(names, key=place)
