"""The workflow `generate`: code generated cycle by cycle from a profile.

Importing the package costs next to nothing; a name of its public API is imported when it is
first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rondel.workflows.generate.models import CycleConfig as CycleConfig
    from rondel.workflows.generate.models import CycleState as CycleState
    from rondel.workflows.generate.models import IterationState as IterationState
    from rondel.workflows.generate.models import WorkflowPhase as WorkflowPhase
    from rondel.workflows.generate.models import WorkflowStage as WorkflowStage
    from rondel.workflows.generate.models import WorkflowState as WorkflowState
    from rondel.workflows.generate.models import WorkflowStatus as WorkflowStatus
    from rondel.workflows.generate.models import validate_cycles as validate_cycles
    from rondel.workflows.generate.profiles.base import CycleContext as CycleContext
    from rondel.workflows.generate.profiles.base import WorkflowProfile as WorkflowProfile
    from rondel.workflows.generate.profiles.discover import load_profile as load_profile
    from rondel.workflows.generate.profiles.discover import profile_names as profile_names
    from rondel.workflows.generate.profiles.worker import import_profile as import_profile
    from rondel.workflows.generate.workflow import Generate as Generate
    from rondel.workflows.generate.workflow import status_text as status_text

_HOMES = {
    "CycleConfig": "models",
    "CycleContext": "profiles.base",
    "CycleState": "models",
    "Generate": "workflow",
    "IterationState": "models",
    "WorkflowPhase": "models",
    "WorkflowProfile": "profiles.base",
    "WorkflowStage": "models",
    "WorkflowState": "models",
    "WorkflowStatus": "models",
    "import_profile": "profiles.worker",
    "load_profile": "profiles.discover",
    "profile_names": "profiles.discover",
    "status_text": "workflow",
    "validate_cycles": "models",
}
__all__ = sorted(_HOMES)  # noqa: PLE0605  # one table for both


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
