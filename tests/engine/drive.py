"""A driver in a process of its own: `python drive.py ROOT`. Agents come from the repository's rondel.toml."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
sys.path.insert(0, str(Path(__file__).parent))

from harness import REF
from small import SmallWorkflow

from rondel.errors import MachineTrouble, RondelError
from rondel.project import Project

if __name__ == "__main__":
    try:
        report = Project(Path(sys.argv[1]), workflows={"small": SmallWorkflow()}).run(REF)
    except (RondelError, MachineTrouble) as e:
        print(f"rondel: {e}", file=sys.stderr)
        sys.exit(e.exit_code)
    print(report.message)
    sys.exit(report.exit_code)
