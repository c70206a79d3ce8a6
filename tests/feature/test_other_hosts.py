"""The other vendors' real CLIs read what `rondel init` leaves for them."""

from __future__ import annotations

import os
import subprocess

import pytest
from scratch import environment, repository

from modelserver import FakeModel, vendor_config
from rondel.plugin import install_plugin
from vendors.install import binary, selected

pytestmark = pytest.mark.agents

ARGUMENTS = {
    "codex": ["exec", "--json", "--skip-git-repo-check", "-s", "read-only", "-m", "gpt-5.5", "hello"],
    "gemini": ["-p", "/rondel:design two", "-o", "json", "--skip-trust", "-m", "gemini-2.5-flash"],
    "opencode": ["run", "--format", "json", "-m", "fake/fake-model", "--command", "rondel/design", "two"],
}
EXPECTED = {
    "codex": "do not approve your own work",
    "gemini": "rondel feature design two",
    "opencode": "rondel feature design two",
}
WAIT_S = 120


@pytest.mark.parametrize("host", ARGUMENTS)
def test_what_init_leaves_reaches_the_model(tmp_path, host):
    program = binary(host) if host in selected() else None
    if program is None:
        pytest.skip(f"vendor not run: {host}: not selected or not installed (make test-agents runs all)")
    root = repository(tmp_path)
    install_plugin(root, [host])
    with FakeModel() as model:
        model.script("host", "Read.")
        table = vendor_config(host, model.url("host"), tmp_path / "vendor-home", [str(program)])
        env = environment(tmp_path) | table["env"] | {"PATH": os.environ["PATH"]}
        done = subprocess.run(
            [*table["command"], *ARGUMENTS[host]],
            cwd=root,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        asked = "\n".join(f"{a.system}\n{a.history}" for a in model.requests("host"))
    assert EXPECTED[host] in asked, done.stderr[-2000:]
