"""Four cycles with one revision, by a vendor's real CLI that talks to the scripted model."""

from __future__ import annotations

import re

import pytest
from generate_java import FILES
from generate_scene import AT, FAIL, FULL, PASS, blocks, repo
from harness import git

from modelserver import toml_tables, vendor_config
from rondel.api import Hall
from rondel.engine.driver import Stopped
from rondel.workflows.generate.files import Wish, start
from vendors.install import binary, selected
from vendors.quarantine import no_network

pytestmark = pytest.mark.agents

KINDS = ("claude", "codex")
DEAD_PROXY = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1",
}
TITLE = re.compile(r"# (Plan|Generate|Review|Revise): Product, (\w+)")


@pytest.fixture(scope="module")
def cut_off():
    with no_network() as done:
        yield done


def model(asked) -> str:
    """What a good model says to the prompts of this profile."""
    found = TITLE.search(asked.user)
    assert found, asked.user[:200]
    word, kind = found.groups()
    if word == "Plan":
        return f"# Plan of {kind}\n"
    if word == "Review":
        return FAIL if kind == "service" and "iteration 1)" in asked.user else PASS
    return blocks(FILES[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_a_real_cli_goes_through_four_cycles_with_one_revision(kind, cut_off, tmp_path, model_server):
    if kind not in selected():
        pytest.skip(f"vendor not run: {kind}: not selected")
    program = binary(kind)
    if program is None:
        pytest.skip(f"vendor not run: {kind}: NOT INSTALLED (python tests/vendors/install.py {kind})")
    table = vendor_config(kind, model_server.script("it", model), tmp_path / "cli-home", [str(program)])
    table["env"] |= {} if cut_off else DEAD_PROXY
    root = repo(tmp_path / "repo")
    (root / "rondel.toml").write_text(toml_tables({"it": table}) + '[roles]\ndefault = "it"\n')
    git(root, "add", "-A")
    git(root, "commit", "-qm", "settings")
    ref = start(root, Wish("jpa-mt", FULL, with_tests=True, request={"auto": True}), at=AT)
    hall = Hall.open(root)
    report = hall.drive(ref)
    assert report.stopped is Stopped.COMPLETED, report.message
    cycles = hall.state(ref).session.cycles
    assert [(c.type, c.current_iteration) for c in cycles] == [
        ("domain", 1),
        ("service", 2),
        ("api", 1),
        ("tests", 1),
    ]
    assert len(model_server.requests("it")) == 14
    for name, text in FILES["api"].items():
        assert (root / ref.folder / "api/iteration-1/code" / name).read_text() == text
