"""How often our own tests kill: RONDEL_SWEEP=1 or RONDEL_KILL_STRIDE=1 takes every point in every sweep.

Without it a sweep takes a share of them, which changes with the commit.
"""

from __future__ import annotations

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

POINTS_MAX = 50_000
MARKS = (pytest.mark.slow, pytest.mark.sweep, pytest.mark.timeout(14_400))


@cache
def commit_number() -> int:
    """A number that is another one for each commit of this project; 0 where there is no commit."""
    argv = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(argv, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return int(done.stdout[:8] or "0", 16)


def points(stride: int) -> range:
    """The points to die at: every N-th one, another one with each commit; all of them in a whole sweep."""
    stride = int(os.environ.get("RONDEL_KILL_STRIDE") or (1 if os.environ.get("RONDEL_SWEEP") else stride))
    return range(1 + commit_number() % stride, POINTS_MAX, stride)


def swept(parts: int, stride: int = 1) -> pytest.MarkDecorator:
    """A slow test in so many parts; `points` is one part's share of the points to die at."""
    shares = [points(stride)[part::parts] for part in range(parts)]
    return pytest.mark.parametrize("points", [pytest.param(s, id=str(s.start), marks=MARKS) for s in shares])
