"""Whether a child can have namespaces of its own here, tried once per process; and why not."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

from rondel.sandbox import enter

TRY_S = 10.0
_FORBIDDEN = {  # what systems forbid them by, and the value that does
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1",
    "/proc/sys/kernel/unprivileged_userns_clone": "0",
    "/proc/sys/user/max_user_namespaces": "0",
}


@cache
def missing() -> str:
    """What this machine refuses a child that wants namespaces of its own; empty where it refuses nothing."""
    if sys.platform != "linux":
        return "there are none outside of Linux"
    words = [sys.executable, "-I", "-S", str(Path(enter.__file__))]
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=TRY_S, check=False, cwd="/", env={}
        )
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(e)
    if done.returncode == 0:
        return ""
    return "; ".join(((done.stderr.strip().splitlines() or ["no reason"])[-1], *_forbidden()))


def _forbidden() -> list[str]:
    """The settings of the system that forbid them, by name."""
    found = []
    for place, value in _FORBIDDEN.items():
        try:
            if Path(place).read_text(encoding="ascii").strip() == value:
                found.append(f"{place.removeprefix('/proc/sys/').replace('/', '.')} is {value}")
        except OSError:
            continue
    return found
