import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "engine"))
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _nobody_said_yes(monkeypatch):
    monkeypatch.delenv("RONDEL_TRUST")


@pytest.fixture
def env(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    who = {f"GIT_{w}_{k}": v for w in ("AUTHOR", "COMMITTER") for k, v in (("NAME", "t"), ("EMAIL", "t@t"))}
    quiet = {"GIT_CONFIG_GLOBAL": "/dev/null", "RONDEL_SANDBOX": "none"}  # what runs leaves a mark outside
    return {"PATH": "/usr/bin:/bin", "HOME": str(home), **quiet, **who}


@pytest.fixture
def marker(tmp_path):
    """A file that no program of the repository may write."""
    return tmp_path / "ran"


@pytest.fixture
def repo(tmp_path, env):
    """A stranger's repository with a change to review."""
    root = tmp_path / "repo"
    root.mkdir()
    (root / "a.py").write_text("A = 1\n")
    for args in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "start"]):
        subprocess.run(["git", *args], cwd=root, env=env, check=True)
    subprocess.run(["git", "checkout", "-qb", "change"], cwd=root, env=env, check=True)
    (root / "a.py").write_text("A = 2\n")
    subprocess.run(["git", "commit", "-qam", "change"], cwd=root, env=env, check=True)
    return root
