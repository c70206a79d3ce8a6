"""A session's branch that was deleted or set back: what was done is put back, or said to be gone."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from rondel.testing.scripted import run_of
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
    return copy_of(template, tmp_path)


def copy_of(world: World, folder: Path) -> World:
    copy = World(folder, "task")
    for name in ("repo", "home"):
        shutil.rmtree(folder / name)
        shutil.copytree(world.folder / name, folder / name, symlinks=True)
    return copy


def answered(world: World) -> int:
    """How often an agent has answered."""
    place = run_of(world.session) / "journal.jsonl"  # a copy of the repository has none yet
    journal = place.read_text().splitlines() if place.exists() else []
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


@pytest.mark.parametrize("how", ["rebase", "reword", "squash", "declared"])
def test_what_was_rebased_reworded_squashed_or_declared_done_is_no_loss(tasks, how):
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
    if how == "reword":
        for commit in ("done~1", "done"):
            tasks.git("cherry-pick", "--no-commit", commit)
            tasks.git("commit", "-qm", "in words of my own")
    if how == "squash":
        tasks.git("merge", "-q", "--squash", "done")
        tasks.git("commit", "-q", "--no-edit")
    tasks.git("branch", "-qD", "done")
    assert tasks.rondel("resume", "task:WFS-add-it").code in (0, 5), tasks.said


def lose(world: World, how: str, branch: str = "main") -> None:
    """Take the last edit of a branch back, in one of the ways that people do."""
    here = world.git("symbolic-ref", "--short", "HEAD")
    world.git("switch", "-q", branch)
    if how == "reset":
        world.git("reset", "-q", "--hard", "HEAD~1")
    elif how == "reset and commit":
        world.git("reset", "-q", "--hard", "HEAD~1")
        world.git("commit", "-q", "--allow-empty", "-m", "other")
    elif how == "revert":
        world.git("revert", "--no-edit", "HEAD")
    elif how == "revert of an older one":
        world.git("commit", "-q", "--allow-empty", "-m", "other")
        world.git("revert", "--no-edit", "HEAD~1")
    world.git("switch", "-q", here)


SHOWING = [("status",), ("status", "task:WFS-add-it"), ("doctor",), ("task", "validate"), ("task", "todo")]
GOING_ON = [("task", "run"), ("task", "complete"), ("run", "task:WFS-add-it"), ("resume", "task:WFS-add-it")]


@pytest.fixture(scope="module")
def all_done(template, tmp_path_factory) -> World:
    """The same session with both tasks done."""
    world = copy_of(template, tmp_path_factory.mktemp("done"))
    assert world.rondel("task", "run").code == 0, world.said
    return world


@pytest.fixture
def done(all_done, tmp_path) -> World:
    return copy_of(all_done, tmp_path)


@pytest.mark.parametrize("how", ["reset", "revert of an older one"])
def test_an_edit_that_is_gone_is_said_by_every_command_that_shows_and_refused_by_every_one_that_goes_on(
    done, how
):
    lose(done, how)
    before = answered(done)
    for command in SHOWING:
        said = done.rondel(*command)
        assert "main does not hold it any more" in said.out + said.err, command
        assert "IMPL-2" in said.out + said.err, command
    assert "(edits lost)" in done.rondel("task", "sessions").out
    for command in GOING_ON:
        said = done.rondel(*command)
        assert said.code == 1, (command, said)
        assert "an edit counts as done in task:WFS-add-it, and main does not hold it any more" in said.err
        assert said.commands == ["rondel task reopen IMPL-2 --session WFS-add-it"], command
    assert answered(done) == before
    assert json.loads((done.session / "workflow-session.json").read_text())["status"] != "completed"


@pytest.mark.parametrize("how", ["reset", "revert"])
def test_what_is_printed_next_leads_from_a_lost_edit_to_the_end(done, how):
    lose(done, how)
    typed = []
    while "task complete" not in "".join(typed):
        done.rondel("status", "task:WFS-add-it")
        typed.append(done.next)
        assert done.type(done.next).code == 0, (typed, done.said)
        assert len(typed) < 5, typed
    assert {"IMPL-1.txt", "IMPL-2.txt"} <= set(files(done, "main"))
    said = done.rondel("status")
    assert "does not hold" not in said.out
    assert "completed" in said.out


@pytest.mark.parametrize(
    ("how", "way"),
    [
        ("reset and commit", "To have it back, on main"),
        ("revert", "To have it back, on main"),
        ("revert", "To go on without"),
    ],
)
def test_each_advice_after_a_loss_leads_on(done, how, way):
    lose(done, how)
    done.rondel("task", "complete")
    done.type(advice(done, way))
    assert done.said.code == 0, done.said
    assert "does not hold" not in done.rondel("status").out
    assert done.rondel("task", "complete").code == 0, done.said
    assert ("IMPL-2.txt" in files(done, "main")) is (way != "To go on without")


def test_a_loss_in_a_completed_session_is_said_and_can_be_accepted(done):
    assert done.rondel("task", "complete").code == 0
    lose(done, "revert")
    assert "completed (edits lost)" in done.rondel("status").out
    done.rondel("status", "task:WFS-add-it")
    assert "main does not hold it any more" in done.said.out
    assert done.next == "rondel run task:WFS-add-it --onto main"
    assert done.type(done.next).code in (0, 5), done.said
    assert "edits lost" not in done.rondel("status").out


def test_a_revert_that_was_reverted_is_no_loss(done):
    lose(done, "revert")
    done.git("revert", "--no-edit", "HEAD")
    assert "does not hold" not in done.rondel("status").out
    assert done.rondel("task", "complete").code == 0


def test_in_a_clone_what_the_session_did_is_known_by_its_own_records(done, tmp_path):
    done.git("add", "-f", ".workflow")
    done.git("commit", "-qm", "the session")
    (tmp_path / "second").mkdir()
    clone = World(tmp_path / "second", "task")
    shutil.rmtree(clone.root)
    done.git("clone", "-q", str(done.root), str(clone.root))
    for name in ("rondel.toml", "script.json"):
        shutil.copy(done.root / name, clone.root / name)
    assert "does not hold" not in clone.rondel("status").out
    clone.git("revert", "--no-edit", "HEAD~1")
    assert "main does not hold it any more" in clone.rondel("status").out
    assert clone.rondel("task", "complete", "WFS-add-it").code == 1, clone.said
    assert "does not hold" not in done.rondel("status").out, "the first repository has it still"


def test_an_edit_that_a_colleague_has_is_fetched_and_merged_before_it_is_done_again(template, done, tmp_path):
    """Who has a colleague's session and not their commits is led to these."""
    (tmp_path / "here").mkdir()
    here = copy_of(template, tmp_path / "here")
    folder = here.session
    shutil.rmtree(folder)
    shutil.copytree(done.session, folder)
    here.git("remote", "add", "origin", str(done.root))
    typed = []
    for _ in range(3):
        here.rondel("status", "task:WFS-add-it")
        if "does not hold" not in here.said.out:
            break
        typed.append(here.next)
        assert here.type(here.next).code == 0, here.said
    assert [words.split()[1] for words in typed] == ["fetch", "merge"], typed
    assert {"IMPL-1.txt", "IMPL-2.txt"} <= set(files(here, "main"))


def test_status_looks_with_git_only_where_something_moved(done):
    done.git("pack-refs", "--all")
    counter = done.folder / "calls"
    shim = done.folder / "bin/git"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\necho x >> {counter}\nexec /usr/bin/git "$@"\n')
    shim.chmod(0o755)
    done.more_env["PATH"] = f"{shim.parent}:{done.env['PATH']}"
    done.rondel("status")
    assert not counter.exists(), "nothing moved since the last look"
    done.git("commit", "-q", "--allow-empty", "-m", "other")
    counter.unlink(missing_ok=True)
    done.rondel("status")
    assert counter.exists(), "what moved is looked at"


def test_a_completed_cycle_whose_edit_is_gone_says_so_and_can_be_accepted(tmp_path):
    world = World(tmp_path, "cycle")
    assert world.begin().code == 0, world.said
    [branch] = [b for b in world.git("branch", "--format=%(refname:short)").split() if "cycle/" in b]
    lose(world, "revert", branch)
    words = f"{branch} does not hold it any more"
    for command in (("status",), ("cycle", "status"), ("doctor",)):
        assert words in world.rondel(*command).out, command
    said = world.rondel("resume", "cycle")
    assert said.code == 1
    assert words in said.err
    world.type(world.next)
    assert world.said.code in (0, 5), world.said
    assert words not in world.rondel("status").out


@pytest.mark.parametrize(("how", "way"), [("reset", "--merge"), ("revert", "--keep")])
def test_a_feature_whose_edit_is_gone_is_not_finished(tmp_path, how, way):
    world = World(tmp_path, "feature")
    world.rondel("feature", "start", "Add it", "--mode", "hotfix")
    assert world.rondel("feature", "implement", "001-add-it", "--yes").code == 0, world.said
    lose(world, how, "feature/001-add-it")
    words = "feature/001-add-it does not hold it any more"
    for command in (("status",), ("feature", "status", "001"), ("doctor",)):
        assert words in world.rondel(*command).out, command
    said = world.rondel("feature", "finish", "001-add-it", way, "--force")
    assert said.code == 1
    assert words in said.err
    assert json.loads((world.session / ".meta.json").read_text())["status"] == "active"
    world.type(world.next)
    assert world.said.code == 0, world.said
    assert words not in world.rondel("status").out


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
