"""What the tests of `generate` may import: their own support, and the engine's."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "engine")]


@pytest.fixture(autouse=True)
def _clean(monkeypatch, tmp_path):
    """A HOME of its own, no settings and no vendors of the machine."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home/.config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home/.cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.delenv("CI", raising=False)
