"""DOORS: the command line. A command is one call to the hall; errors become exit codes here.

Starting must be cheap: a version or a hook is answered before anything else is imported.
"""

import sys
from importlib import import_module

from rondel import __version__


def main() -> None:
    """The command `rondel`."""
    argv = sys.argv[1:]
    if argv == ["--version"]:
        print(f"rondel {__version__}")  # noqa: T201 - this is the command's answer
        return
    door = "rondel.cli.hook" if argv[:1] == ["hook"] else "rondel.cli.main"
    sys.exit(import_module(door).main(argv))
