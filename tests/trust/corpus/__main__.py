"""`python -m corpus FOLDER [CASE...]`: build the repositories for a person to look at."""

import sys
from pathlib import Path

from corpus import CASES, build


def main(words: list[str]) -> int:
    if not words:
        print(f"python -m corpus FOLDER [CASE...]; there are {len(CASES)} cases:")
        for one in CASES.values():
            print(f"  {one.name}: {one.why}")
        return 2
    for name in words[1:] or CASES:
        build(CASES[name], Path(words[0]).resolve() / name)
        print(f"{words[0]}/{name}/repo: {CASES[name].why}")
    return 0


sys.exit(main(sys.argv[1:]))
