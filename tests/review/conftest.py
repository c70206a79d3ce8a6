import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from review_support import feature_branch, repository


@pytest.fixture(autouse=True)
def clean_home(tmp_path, monkeypatch):
    """Nobody's settings, no vendor's CLI, no CI: what a test sees is what the test made."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "CI"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def repo(tmp_path):
    return repository(tmp_path / "repo")


@pytest.fixture
def feature(tmp_path):
    return feature_branch(tmp_path / "repo")
