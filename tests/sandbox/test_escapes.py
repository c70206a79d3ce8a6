"""From inside the sandbox nothing gets out: every escape is tried, and none succeeds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import platformdirs
import pytest

from rondel.sandbox import namespaces
from rondel.sandbox.box import holds
from sandbox.inside import ESCAPES
from sandbox.world import Outside, attempts, confined, make_world, tried_in

DOCUMENT = Path(__file__).parents[2] / "docs/sandbox.md"
NETWORKS = ("all",) if namespaces.missing() else ("all", "vendor", "none")
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")

pytestmark = pytest.mark.skipif(not holds(), reason="this kernel has no Landlock to hold anything")


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A person's home folder, their repository, two working copies, and somebody outside."""
    made = make_world(tmp_path)
    monkeypatch.setenv("HOME", made["home"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    with Outside() as outside:
        yield made | outside


def test_there_are_enough_of_them_and_all_are_published():
    assert len(ESCAPES) >= 60
    rows = [line.split(" | ") for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")]
    listed = {row[0].removeprefix("| "): row[1].removesuffix(" |") for row in rows if len(row) == 2}
    assert {name: one.layer for name, one in ESCAPES.items()}.items() <= listed.items()


@pytest.mark.parametrize("network", NETWORKS)
def test_no_escape_succeeds(world, network):
    assert attempts(world, tried_in(network), confined(world, network)) == {}


def test_without_the_sandbox_each_that_may_be_tried_succeeds(world):
    names = [name for name, one in ESCAPES.items() if one.control]
    if os.getuid():  # making a device needs more than a user has
        names.remove("the device of a disk made in the working copy")
    missing = set(names) - set(attempts(world, names, None))
    assert missing == set()


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user has tried them already")
@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="no Python that another user can start")
def test_no_escape_succeeds_for_an_ordinary_user(world, tmp_path):
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o755)
    code = tmp_path / "code"
    shutil.copytree(Path(__file__).parents[2] / "src/rondel", code / "rondel")
    shutil.copytree(Path(platformdirs.__file__).parent, code / "platformdirs")
    shutil.copytree(Path(__file__).parents[1] / "sandbox", code / "sandbox")
    subprocess.run(["chown", "-R", "65534:65534", str(tmp_path)], check=True)
    env = {"PATH": "/usr/bin:/bin", "HOME": world["home"], "PYTHONPATH": str(code), "AWS_X": "secret"}
    done = subprocess.run(
        [*AS_NOBODY, "/usr/bin/python3", "-m", "sandbox.world", str(tmp_path / "again"), *NETWORKS],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    uid, got = json.loads(done.stdout)
    assert (uid, got) == (65534, {network: {} for network in NETWORKS})
