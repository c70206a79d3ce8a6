"""Cycles with a revision, by the vendors' real CLIs that talk to the scripted model."""

from __future__ import annotations

import re

import pytest
from generate_java import FILES
from generate_scene import AT, FAIL, FULL, PASS, blocks, repo
from harness import git

from modelserver import toml_tables, vendor_config
from rondel.engine.driver import Stopped
from rondel.project import Project
from rondel.workflows.generate.files import GenerateOptions, create
from vendors.quarantine import no_network
from vendors.rig import DEAD_PROXY, program_or_skip

pytestmark = pytest.mark.agents

TITLE = re.compile(r"# (Plan|Generate|Review|Revise): Product, (\w+)")


@pytest.fixture(scope="module")
def cut_off():
    with no_network() as done:
        yield done


def model(asked) -> str:
    """What a good model says to the prompts of this profile."""
    found = TITLE.search(asked.user)
    if found is None:
        return "A title"  # some CLIs ask for one beside the work
    word, kind = found.groups()
    if word == "Plan":
        return f"# Plan of {kind}\n"
    if word == "Review":
        return FAIL if kind == "service" and "iteration 1)" in asked.user else PASS
    return blocks(FILES[kind])


FOUR = [("domain", 1), ("service", 2), ("api", 1), ("tests", 1)]


def go_through(kind, cut_off, tmp_path, model_server, scope):
    """A whole session by the CLI: its project, its reference."""
    program = program_or_skip(kind)
    table = vendor_config(kind, model_server.script("it", model), tmp_path / "cli-home", [str(program)])
    table["env"] |= {} if cut_off else DEAD_PROXY
    root = repo(tmp_path / "repo")
    (root / "rondel.toml").write_text(toml_tables({"it": table}) + '[roles]\ndefault = "it"\n')
    git(root, "add", "-A")
    git(root, "commit", "-qm", "settings")
    wish = GenerateOptions("jpa-mt", FULL | {"scope": scope}, with_tests=scope == "full", auto=True)
    ref = create(root, wish, at=AT)
    project = Project.find(root)
    report = project.run(ref)
    assert report.stopped is Stopped.COMPLETED, report.message
    return project, ref


def iterations(project, ref) -> list[tuple[str, int]]:
    return [(c.type, c.current_iteration) for c in project.state(ref).session.cycles]


def asked(model_server) -> int:
    """How often the model was asked for a phase; some CLIs ask for a title too."""
    return sum(TITLE.search(r.user) is not None for r in model_server.requests("it"))


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini"])
def test_a_real_cli_goes_through_four_cycles_with_one_revision(kind, cut_off, tmp_path, model_server):
    project, ref = go_through(kind, cut_off, tmp_path, model_server, "full")
    assert iterations(project, ref) == FOUR
    assert asked(model_server) == 14
    for name, text in FILES["api"].items():
        assert (project.root / ref.folder / "api/iteration-1/code" / name).read_text() == text


def test_a_real_cli_that_is_slow_to_start_goes_through_a_cycle_with_a_revision(
    cut_off, tmp_path, model_server
):
    project, ref = go_through("opencode", cut_off, tmp_path, model_server, "service")
    assert iterations(project, ref) == [("service", 2)]
    assert asked(model_server) == 5
    for name, text in FILES["service"].items():
        assert (project.root / ref.folder / "service/iteration-2/code" / name).read_text() == text
