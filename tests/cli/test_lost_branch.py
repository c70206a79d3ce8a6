"""A session's branch that was deleted or set back: what was done is put back, or said to be gone."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from support.world import CODED, EXPLORED, GOOD, SETTINGS, WORK, World

EACH: dict[str, object] = {
    "role": "task.*",
    "prompt": r"# (?P<id>IMPL-[\d.]+):",
    "files": {"{id}.txt": "{id}\n"},
    "reply": WORK,
}


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> World:
    """A session of two tasks; the first one is done."""
    world = World(tmp_path_factory.mktemp("template"), "task")
    world.answer([EACH])
    for words in (("start", "Add it"), ("add", "One"), ("add", "Two"), ("run", "IMPL-1")):
        world.rondel("task", *words)
    assert world.said.code == 0, world.said
    return world


@pytest.fixture
def tasks(template, tmp_path) -> World:
    """A copy of it."""
    world = World(tmp_path, "task")
    for folder in ("repo", "home"):
        shutil.rmtree(tmp_path / folder)
        shutil.copytree(template.folder / folder, tmp_path / folder, symlinks=True)
    return world


def answered(world: World) -> int:
    """How often an agent has answered."""
    journal = (world.session / ".rondel/run/journal.jsonl").read_text().splitlines()
    return sum(e["kind"] == "finished" and "usage" in e for e in map(json.loads, journal))


def files(world: World, branch: str) -> list[str]:
    return world.git("ls-tree", "--name-only", branch).split()


def advice(world: World, words: str) -> str:
    """The command after these words, as it was printed."""
    found = re.search(rf"{words}: (.+)", world.said.err)
    assert found is not None, world.said
    return found[1]


WAYS = {
    "To have it back, on main": ["IMPL-1.txt", "IMPL-2.txt"],
    "To do it again": ["IMPL-1.txt", "IMPL-2.txt"],
    "To go on without": ["IMPL-2.txt"],
}


@pytest.mark.parametrize("way", WAYS)
def test_a_branch_that_was_set_back_behind_a_task_stops_the_run_and_each_advice_leads_on(tasks, way):
    tasks.git("reset", "-q", "--hard", "HEAD~1")
    before = answered(tasks)
    said = tasks.rondel("task", "run")
    assert said.code == 1
    assert "an edit counts as done in task:WFS-add-it, and main does not hold it any more:" in said.err
    assert answered(tasks) == before, "nobody works on a branch that lacks what was done"
    tasks.type(advice(tasks, way))
    assert tasks.rondel("task", "run").code in (0, 5), tasks.said
    assert [n for n in files(tasks, "main") if n.startswith("IMPL")] == WAYS[way]
    assert tasks.rondel("resume", "task:WFS-add-it").code in (0, 5)


def test_a_session_whose_last_task_was_taken_back_is_not_completed(tasks):
    assert tasks.rondel("task", "run").code == 0
    tasks.git("reset", "-q", "--hard", "HEAD~1")
    said = tasks.rondel("resume", "task:WFS-add-it")
    assert said.code == 1
    assert "IMPL-2" in said.err


@pytest.mark.parametrize("how", ["rebase", "squash", "declared"])
def test_what_was_rebased_squashed_or_declared_done_is_no_loss(tasks, how):
    assert tasks.rondel("task", "run").code == 0
    tasks.git("branch", "-q", "done")
    tasks.git("reset", "-q", "--hard", "HEAD~2")
    if how == "declared":
        for name in ("IMPL-1", "IMPL-2"):
            tasks.rondel("task", "reopen", name)
            assert tasks.rondel("task", "complete", name, "--reason", "done by hand").code == 0
    else:
        Path(tasks.root, "other.txt").write_text("other\n")
        tasks.git("add", "other.txt")
        tasks.git("commit", "-qm", "other")
    if how == "rebase":
        tasks.git("cherry-pick", "done~1", "done")
    if how == "squash":
        tasks.git("merge", "-q", "--squash", "done")
        tasks.git("commit", "-q", "--no-edit")
    tasks.git("branch", "-qD", "done")
    assert tasks.rondel("resume", "task:WFS-add-it").code in (0, 5), tasks.said


PLAN = """\
```json
{"tasks": [{"id": "TASK-001", "description": "first", "effort": "small"},
 {"id": "TASK-002", "description": "second", "effort": "small", "depends_on": ["TASK-001"]}]}
```
"""


def test_a_cycle_whose_branch_is_deleted_in_an_iteration_loses_no_task(tmp_path):
    world = World(tmp_path, "cycle")
    world.configure(settings=SETTINGS.replace("report=", "test -f first.txt || exit 1\\nreport=", 1))
    first: dict[str, object] = {
        "role": "cycle.cd",
        "action": "*TASK-001*",
        "files": {"first.txt": "1\n"},
        "reply": CODED,
    }
    second = {**first, "action": "*TASK-002*", "files": {"second.txt": "2\n"}}
    plan: dict[str, object] = {"role": "cycle.ep", "action": "*plan*", "reply": PLAN + EXPLORED}
    world.answer([first, {**second, "park_s": 3600}, plan, *GOOD])
    world.rondel("cycle", "start", "Add it")
    assert world.said.code == 6, world.said
    [branch] = [b for b in world.git("branch", "--format=%(refname:short)").split() if "cycle/" in b]
    assert "first.txt" in files(world, branch)
    world.git("branch", "-qD", branch)
    world.answer([first, second, plan, *GOOD])
    world.rondel("resume", "cycle", "--retry")
    assert f"the branch {branch} was deleted; it is made again" in world.said.err
    assert {"first.txt", "second.txt"} <= set(files(world, branch))


def test_a_feature_is_verified_with_its_code_also_when_its_branch_is_gone(tmp_path):
    world = World(tmp_path, "feature")
    world.rondel("feature", "start", "Add it", "--mode", "hotfix")
    assert world.rondel("feature", "implement", "001-add-it", "--yes").code == 0, world.said
    world.git("branch", "-qD", "feature/001-add-it")
    world.configure(settings=SETTINGS.replace("report=", "test -f made.txt || exit 1\\nreport=", 1))
    assert world.rondel("feature", "verify", "001-add-it", "--yes").code == 0, world.said
    [checks] = world.session.glob(".rondel/parts/verify/**/checks.json")
    assert '"exit_code": 0' in checks.read_text()
    assert "made.txt" in files(world, "feature/001-add-it")
