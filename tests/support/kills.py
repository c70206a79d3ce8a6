"""How often our own tests kill: at a share of the points, each in its own session, another with each commit.

RONDEL_SWEEP=1 takes every point, many in one session; RONDEL_KILL_STRIDE=1 every one in its own.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import platformdirs
import pytest

from rondel.testing import kills
from rondel.testing.chains import sweep_in_chains

POINTS_MAX = 50_000
MARKS = (pytest.mark.slow, pytest.mark.sweep, pytest.mark.timeout(14_400))
STRIDE = os.environ.get("RONDEL_KILL_STRIDE")
WHOLE = bool(os.environ.get("RONDEL_SWEEP"))


@cache
def commit_number() -> int:
    """A number that is another one for each commit of this project; 0 where there is no commit."""
    argv = ["git", "rev-parse", "HEAD"]
    done = subprocess.run(argv, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return int(done.stdout[:8] or "0", 16)


def points(stride: int) -> range:
    """The points to die at alone: every N-th one, another one with each commit; all in a whole sweep."""
    return _share(1 if WHOLE else stride)


def _share(stride: int) -> range:
    stride = int(STRIDE or stride)
    return range(1 + commit_number() % stride, POINTS_MAX, stride)


@contextmanager
def _never_given_up(folder: Path) -> Iterator[None]:
    """A person whose own settings let an action be cut off as often as a chain does it."""
    usual = Path(platformdirs.user_config_dir("rondel"), "config.toml")
    settings = usual.read_text() if usual.is_file() else ""
    assert "[limits]" not in settings
    (folder / "rondel").mkdir(parents=True)
    (folder / "rondel/config.toml").write_text(f"{settings}\n[limits]\ncutoffs_max = {POINTS_MAX}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder))
        yield


@dataclass(frozen=True)
class Share:
    """What one part of a slow test takes of a sweep."""

    alone: range
    part: int
    parts: int

    def sweep(
        self,
        make: Callable[[Path], kills.Trial],
        folder: Path,
        calm: kills.Undisturbed,
        *,
        least: int,
        apart: int,
    ) -> None:
        """Some deaths alone; in a whole sweep, all in chains."""
        if WHOLE and not STRIDE:
            mine = {"part": self.part, "parts": self.parts}
            with _never_given_up(folder / "config"):
                sweep_in_chains(make, folder, calm, least=least, apart=apart, **mine)
        else:
            kills.sweep(make, folder, self.alone, calm, least=least)


def swept(parts: int, stride: int = 1) -> pytest.MarkDecorator:
    """A slow test in so many parts; `share` is what one part takes."""
    shares = [Share(_share(stride)[part::parts], part, parts) for part in range(parts)]
    marked = [pytest.param(s, id=str(s.part + 1), marks=MARKS) for s in shares]
    return pytest.mark.parametrize("share", marked)


def swept_alone(parts: int, stride: int) -> pytest.MarkDecorator:
    """The same without chains; `points` is one part's share of the points to die at."""
    shares = [points(stride)[part::parts] for part in range(parts)]
    return pytest.mark.parametrize("points", [pytest.param(s, id=str(s.start), marks=MARKS) for s in shares])
