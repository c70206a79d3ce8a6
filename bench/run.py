"""All benchmarks, one after the other: `make bench`, or `make bench BENCH="engine start"` for some."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    """Run the named benchmarks, or all; a benchmark prints its own figures."""
    there = sorted(p.stem for p in HERE.glob("*.py") if p.stem != "run")
    wanted = sys.argv[1:] or there
    failed = 0
    env = {**os.environ, "RONDEL_TRUST": "yes"}  # to the settings that they write themselves
    for name in wanted:
        if name not in there:
            print(f"no benchmark {name!r}; there are: {', '.join(there)}")
            return 2
        print(f"{name}:", flush=True)
        failed += (
            subprocess.run([sys.executable, str(HERE / f"{name}.py")], env=env, check=False).returncode != 0
        )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
