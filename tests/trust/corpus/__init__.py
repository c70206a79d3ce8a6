"""A corpus of hostile repositories, each made by one small function with real git.

`python -m corpus FOLDER` in `tests/trust` builds all of them, or those that are named, for a
person to look at. What they would do when they succeed is to leave a file below `outside`, to
change a file of HOME, or to call a server on loopback: nothing else.
"""

from corpus import gits, names, programs, sessions, settings, texts
from corpus.base import CASES, Case, Site, build

__all__ = ["CASES", "Case", "Site", "build", "gits", "names", "programs", "sessions", "settings", "texts"]
