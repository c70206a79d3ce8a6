"""The workflow `feature`: phases under a reviewer.

Importing the package costs next to nothing; a name of its public API is imported when it is
first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rondel.workflows.feature.files import lint_file as lint_file
    from rondel.workflows.feature.files import start_feature as start_feature
    from rondel.workflows.feature.files import update_phase_state as update_phase_state
    from rondel.workflows.feature.lint import Anomaly as Anomaly
    from rondel.workflows.feature.phases import ARTIFACTS as ARTIFACTS
    from rondel.workflows.feature.phases import EXPECTATIONS as EXPECTATIONS
    from rondel.workflows.feature.phases import LIMITS as LIMITS
    from rondel.workflows.feature.phases import PHASES as PHASES
    from rondel.workflows.feature.review import Issue as Issue
    from rondel.workflows.feature.review import Review as Review
    from rondel.workflows.feature.review import review_artifact as review_artifact
    from rondel.workflows.feature.transitions import Transition as Transition
    from rondel.workflows.feature.transitions import validate_transition as validate_transition
    from rondel.workflows.feature.workflow import Feature as Feature

_HOMES = {
    "ARTIFACTS": "phases",
    "Anomaly": "lint",
    "EXPECTATIONS": "phases",
    "Feature": "workflow",
    "Issue": "review",
    "LIMITS": "phases",
    "PHASES": "phases",
    "Review": "review",
    "Transition": "transitions",
    "lint_file": "files",
    "review_artifact": "review",
    "start_feature": "files",
    "update_phase_state": "files",
    "validate_transition": "transitions",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605  # one table for both


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
