"""Where everything of a feature lies, relative to its folder `docs/features/{id}-{slug}/`."""

from __future__ import annotations

from rondel.model.decisions import DECISIONS as DECISIONS
from rondel.workflows.feature.meta import FILE as META
from rondel.workflows.feature.phases import ARTIFACTS
from rondel.workflows.feature.place import FEATURES

SPEC = ARTIFACTS["specify"]
TASKS = ARTIFACTS["create-tasks"]
HISTORY = ".review-history.md"
HISTORY_KEPT = ".rondel/parts/review-history.md"
PARTS = ".rondel/parts"

__all__ = ["FEATURES", "META"]


def take(phase: str, number: int) -> str:
    """That somebody took the phase up, and how. The highest number counts."""
    return f"{PARTS}/{phase}/take-{number}.json"


def opened(phase: str, number: int) -> str:
    """That take `number` is noted in the document: the phase is under way there."""
    return f"{PARTS}/{phase}/take-{number}-opened.json"


def before(phase: str, number: int) -> str:
    """The artifact as it was when take `number` began from nothing."""
    return f"{PARTS}/{phase}/take-{number}-before.md"


def folder(phase: str, number: int) -> str:
    """The parts of one pass through a phase; the first has them in the phase's own folder."""
    return f"{PARTS}/{phase}" if number == 1 else f"{PARTS}/{phase}/pass-{number}"


def draft(pass_folder: str, number: int) -> str:
    """What was drafted in an iteration."""
    return f"{pass_folder}/iteration-{number}/draft.md"


def changes(pass_folder: str, number: int) -> str:
    """What its author says the draft changed."""
    return f"{pass_folder}/iteration-{number}/changes.md"


def superseded(pass_folder: str, number: int) -> str:
    """The agent's draft where a person wrote something else meanwhile."""
    return f"{pass_folder}/iteration-{number}/draft-superseded.md"


def review(pass_folder: str, number: int) -> str:
    """The verdict on an iteration."""
    return f"{pass_folder}/iteration-{number}/review.json"


def entry(pass_folder: str, number: int) -> str:
    """The iteration's entry in the history; it stays when the history goes."""
    return f"{pass_folder}/iteration-{number}/history.md"


def task(pass_folder: str, key: str) -> str:
    """That a task was carried out, with its commit."""
    return f"{pass_folder}/iteration-1/task-{key}.json"


def fix(pass_folder: str, number: int) -> str:
    """That an iteration's findings were worked on, with the commit."""
    return f"{pass_folder}/iteration-{number}/fix.json"


def base(pass_folder: str) -> str:
    """Where the work begins: commit, branch, and the project's tests."""
    return f"{pass_folder}/base.json"


def checks(pass_folder: str) -> str:
    """What the project's tests said before verification."""
    return f"{pass_folder}/checks.json"


def complete(pass_folder: str) -> str:
    """What a person is told at the end of the phase."""
    return f"{pass_folder}/complete.md"


def signed(pass_folder: str) -> str:
    """That Rondel completed the phase in this pass, with its mark."""
    return f"{pass_folder}/complete.json"


def decision(name: str, number: int) -> str:
    """The answer to one question that request or pass `number` raised."""
    return f"{DECISIONS}/{name}-{number}.json"
