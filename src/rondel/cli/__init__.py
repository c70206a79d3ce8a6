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
    _leave_relative_places()
    if argv == ["--version"]:
        print(f"rondel {__version__}")  # noqa: T201 - this is the command's answer
        return
    module = "rondel.cli.hook" if argv[:1] == ["hook"] else "rondel.cli.main"
    sys.exit(import_module(module).main(argv))


def _leave_relative_places() -> None:
    """Find programs where they are whatever the folder: `.` on the PATH is the repository here."""
    places = os.environ.get("PATH", "").split(os.pathsep)
    if not all(map(os.path.isabs, places)):
        os.environ["PATH"] = os.pathsep.join(filter(os.path.isabs, places)) or os.defpath
