"""What tests of processes share: starting ones that misbehave, and looking for processes that were left."""

import sys
import time
import uuid
from pathlib import Path

from rondel.processes.runner import Child, clean_env
from rondel.testing.conformance import TAG, alive

__all__ = ["TAG", "alive"]
TESTS = Path(__file__).parent.parent


def fake(name: str, *args: str) -> tuple[str, ...]:
    return (sys.executable, str(TESTS / "support" / "misbehave.py"), name, *args)


def new_tag() -> str:
    return uuid.uuid4().hex


def child(tmp_path: Path, tag: str, argv: tuple[str, ...], **changes) -> Child:
    clocks = {"wall_s": 30.0, "idle_s": 30.0, "grace_s": 0.5} | changes
    env = clean_env((), {TAG: tag})
    return Child(argv=argv, cwd=tmp_path, env=env, spool=tmp_path / "spool", **clocks)


def wait_until(true, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.02)
    return bool(true())
