"""COMMANDS: the command line. A command is one call to the project; errors become exit codes here.

Starting must be cheap: a version or a hook is answered before anything else is imported.
"""

import os
import sys
from importlib import import_module

from rondel import __version__


def main() -> None:
    """The command `rondel`."""
    argv = sys.argv[1:]
    if argv == ["--version"]:
        print(f"rondel {__version__}")  # noqa: T201 - this is the command's answer
        return
    _leave_places_of_the_repository()
    module = "rondel.cli.hook" if argv[:1] == ["hook"] else "rondel.cli.main"
    sys.exit(import_module(module).main(argv))


def _leave_places_of_the_repository() -> None:
    """Find programs where no repository puts them: not in `.` on the PATH, nor in a folder that it brings."""
    places = os.environ.get("PATH", "").split(os.pathsep)
    kept = [*filter(os.path.isabs, places)]
    root = _root()
    if root and (inside := [place for place in kept if _leads_into(root, place)]):
        kept = import_module("rondel.project.places").without_brought(kept, inside, root)
    os.environ["PATH"] = os.pathsep.join(kept) or os.defpath


def _root() -> str | None:
    """The folder of the repository around the current one, if there is one."""
    try:
        here = os.path.realpath(os.getcwd())
    except OSError:
        return None
    return next(
        (folder for folder in _and_above(here) if os.path.lexists(os.path.join(folder, ".git"))), None
    )


def _leads_into(root: str, place: str) -> bool:
    """Whether a place lies in a folder, or a link on the way to it does."""
    below = os.path.join(root, "")
    return any(os.path.join(os.path.realpath(way), "").startswith(below) for way in _and_above(place))


def _and_above(path: str) -> list[str]:
    """A path and the folders above it."""
    found = [path]
    while (above := os.path.dirname(found[-1])) != found[-1]:
        found.append(above)
    return found
