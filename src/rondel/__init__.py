"""Rondel drives AI coding agents through rounds of work and review that survive anything.

`from rondel import Project` is its Python API.
"""

from importlib import import_module

TYPE_CHECKING = False  # as type checkers know it; `typing` itself would cost every start its import
if TYPE_CHECKING:
    from rondel.project import Project as Project

__version__ = "0.1.0"
__all__ = ["Project", "__version__"]


def __getattr__(name: str) -> object:
    """Import the API when it is asked for: a version or a hook does not pay for it."""
    if name == "Project":
        return import_module("rondel.project").Project
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
