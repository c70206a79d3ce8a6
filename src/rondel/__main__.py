"""`python -m rondel` is `rondel`."""

import sys
from contextlib import suppress
from pathlib import Path

# Python looks for modules in the current folder first, and a repository may have a `click.py`.
with suppress(OSError):
    if sys.path and sys.path[0] in ("", str(Path.cwd())):
        del sys.path[0]

from rondel.cli import main

main()
