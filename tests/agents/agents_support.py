"""What the tests of the agents share: starting fakes, and looking for processes that were left."""

import os
import sys
import time
import uuid
from pathlib import Path

from rondel.agents.process import Child, clean_env

FAKES = Path(__file__).parent / "fakes"
TAG = "RONDEL_TEST_TAG"


def fake(name: str, *args: str) -> tuple[str, ...]:
    return (sys.executable, str(FAKES / "misbehave.py"), name, *args)


def new_tag() -> str:
    return uuid.uuid4().hex


def child(tmp_path: Path, tag: str, argv: tuple[str, ...], **changes) -> Child:
    clocks = {"wall_s": 30.0, "idle_s": 30.0, "grace_s": 0.5} | changes
    env = clean_env((), {TAG: tag})
    return Child(argv=argv, cwd=tmp_path, env=env, spool=tmp_path / "spool", **clocks)


def alive(tag: str) -> list[int]:
    """The processes that carry the tag in their environment, this one excepted."""
    word = f"{TAG}={tag}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            threads = list(entry.glob("task/*"))  # the first one of a living process may have ended
            if any(word in _environ(thread).split(b"\0") for thread in threads):
                found.append(int(entry.name))
    return found


def _environ(thread: Path) -> bytes:
    try:
        return (thread / "environ").read_bytes()
    except OSError:
        return b""


def wait_until(true, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.02)
    return bool(true())
