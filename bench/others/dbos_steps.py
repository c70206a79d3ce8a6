"""Seconds per step of DBOS with SQLite: `chain N` a line, one number a line back."""

from __future__ import annotations

import sys
import tempfile
import time

from dbos import DBOS


@DBOS.step()
def step(number: int) -> str:
    """A step that answers at once."""
    return f"An answer to step {number}.\n"


@DBOS.workflow()
def chain(steps: int) -> int:
    """As many steps, one after the other."""
    return sum(bool(step(k)) for k in range(steps))


with tempfile.TemporaryDirectory() as folder:
    where = f"sqlite:///{folder}/db"
    DBOS(
        config={
            "name": "steps",
            "system_database_url": where,
            "log_level": "ERROR",
            "run_admin_server": False,
        }
    )
    DBOS.launch()
    for line in sys.stdin:
        number = int(line.split()[1])
        begin = time.perf_counter()
        if chain(number) != number:
            raise SystemExit("not every step was done")
        print((time.perf_counter() - begin) / number, flush=True)
    DBOS.destroy()
