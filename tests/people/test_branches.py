"""A session stays on the branch it was begun on, is nobody else's, and hears settings that were corrected."""

from __future__ import annotations

import json
import re
import shutil

import pytest

from support.stories import RUN, UNITTEST, Story
from support.world import BEGIN, World


def committed(story: Story, branch: str) -> str:
    return story.git("ls-tree", "-r", "--name-only", branch)


def drive(story: Story, *words: str, code: int = 0) -> str:
    process = story.popen(*(words or RUN[story.workflow]))
    said, _ = process.communicate(timeout=120)
    assert process.returncode == code, said
    return said


def test_tasks_go_to_the_branch_where_their_session_was_begun_wherever_head_is(tmp_path):
    story = Story(tmp_path, "task")
    story.git("switch", "-q", "-c", "elsewhere")
    story.write({"elsewhere.txt": "x\n"}, "elsewhere")
    said = drive(story)
    assert "the work goes to main, where the session was begun; HEAD is on elsewhere" in said
    assert story.git("log", "--format=%(trailers:key=Rondel-Action)", "elsewhere").strip() == ""
    assert story.git("log", "--format=%(trailers:key=Rondel-Action)", "main").strip()
    assert "elsewhere.txt" not in committed(story, "main")


def test_a_person_moves_a_session_to_another_branch_and_hears_what_that_lacks(tmp_path):
    story = Story(tmp_path, "task")
    story.git("branch", "other")
    drive(story, "task", "run", "IMPL-1")
    said = drive(story, "run", story.ref.name, "--onto", "other")
    assert "other lacks 1 commits of this session that are on main" in said
    said = drive(story, "task", "run")
    assert "the work goes to other, as you chose; HEAD is on main" in said
    assert story.git("rev-list", "--count", "main..other") != "0"
    assert "there is no branch 'nowhere'" in drive(story, "run", story.ref.name, "--onto", "nowhere", code=2)


def test_a_branch_that_was_merged_and_deleted_is_made_again_with_what_was_done(tmp_path):
    story = Story(tmp_path, "task")
    story.git("switch", "-q", "-c", "work")
    drive(story, "run", story.ref.name, "--onto", "work")
    drive(story, "task", "run", "IMPL-1")
    done = set(committed(story, "work").split())
    story.git("switch", "-q", "main")
    story.git("merge", "-q", "work")
    story.git("branch", "-q", "-d", "work")
    drive(story)
    assert done < set(committed(story, "work").split()), "what the first task did is there for the others"


def test_a_review_goes_onto_no_branch(tmp_path):
    story = Story(tmp_path, "review")
    drive(story)
    assert "puts nothing on a branch" in drive(story, "run", story.ref.name, "--onto", "main", code=2)


ENDS = {
    "cycle": (),
    "task": (("task", "complete"),),
    "feature": (("feature", "finish", "001-add-it", "--abandon"),),
}


@pytest.mark.parametrize("workflow", ENDS)
def test_a_session_that_is_over_stays_on_its_branch_and_says_where_its_work_is(workflow, tmp_path):
    world = World(tmp_path, workflow)
    world.git("branch", "other")
    for words in (*BEGIN[workflow], *ENDS[workflow]):
        world.typed(*words)
    name = f"{workflow}:{world.session.name.removesuffix('.progress')}"
    before = world.typed("status", name)
    code, said = world.typed("run", name, "--onto", "other")
    over = "cancelled" if workflow == "feature" else "completed"
    assert (code, f"{name} is {over}, and puts nothing more on a branch" in said) == (5, True), said
    assert world.typed("status", name) == before, "nothing is changed"
    if workflow == "feature":
        return
    on = re.search("what it did is on ([^;]+); `git switch other && git merge ([^`]+)`", said)
    assert on is not None, said
    assert on[1] == on[2]
    world.git("switch", "-q", "other")
    world.git("merge", "-q", on[1])
    assert "made.txt" in world.git("ls-tree", "--name-only", "other").split()
    code, said = world.typed("run", name, "--onto", "other")
    assert (code, "git merge" in said) == (5, False), said


def test_a_cycle_begins_where_it_was_begun_wherever_head_is(tmp_path):
    story = Story(tmp_path, "cycle")
    story.git("switch", "-q", "-c", "elsewhere")
    story.write({"elsewhere.txt": "x\n"}, "elsewhere")
    drive(story)
    built = committed(story, f"rondel/cycle/{story.ref.id}")
    assert "discount.py" in built
    assert "elsewhere.txt" not in built


def test_a_feature_is_built_on_where_it_was_begun_wherever_head_is(tmp_path):
    story = Story(tmp_path, "feature")
    folder = story.session
    (folder / "spec.md").write_text("# Spec\n\nR1: discounts.\n")
    story.git("switch", "-q", "-c", "elsewhere")
    story.write({"elsewhere.txt": "x\n"}, "elsewhere")
    rules = json.loads((story.root / "script.json").read_text())["rules"]
    rules.insert(0, {"role": "feature.implement", "files": {"done.txt": "x\n"}, "reply": "Done."})
    (story.root / "script.json").write_text(json.dumps({"rules": rules}))
    drive(story, "feature", "implement", "--yes")
    built = committed(story, "feature/001-discount-codes")
    assert "done.txt" in built
    assert "elsewhere.txt" not in built


@pytest.mark.parametrize("how", ["folder removed", "clone"])
def test_the_same_topic_begun_anew_is_done_anew(how, tmp_path):
    story = Story(tmp_path / "first", "task")
    drive(story)
    first = story.git("rev-list", "--count", "main")
    if how == "clone":
        again = Story(tmp_path / "second", "task")
        shutil.rmtree(again.root)
        story.git("clone", "-q", str(story.root), str(again.root))
    else:
        shutil.rmtree(story.root / ".workflow")
        again = story
    again.rondel("task", "start", "Receipts")
    again.rondel("task", "plan", "Print receipts")
    script = json.loads((again.root / "script.json").read_text())
    for rule in script["rules"]:
        rule["files"] = dict.fromkeys(rule.get("files", {}), "anew\n")
    (again.root / "script.json").write_text(json.dumps(script))
    drive(again)
    assert int(again.git("rev-list", "--count", "main")) == int(first) + 3, "every task was asked again"


def test_a_reverted_task_that_is_due_again_is_done_again(tmp_path):
    story = Story(tmp_path, "task")
    drive(story)
    commit = story.git("log", "--format=%H", "--grep=/IMPL-1", "--grep=IMPL-1-summary", "-1", "main")
    story.git("revert", "--no-edit", commit)
    task = story.session / ".task/IMPL-1.json"
    task.write_text(task.read_text().replace('"completed"', '"pending"'))
    for summary in (story.session / ".summaries").glob("IMPL-1-*"):
        summary.unlink()
    before = int(story.git("rev-list", "--count", "main"))
    drive(story)
    assert int(story.git("rev-list", "--count", "main")) == before + 1
    assert "IMPL-1" in story.git("log", "-1", "--format=%B", "main")


def misconfigured(story: Story) -> str:
    """The settings with a test command that does not exist; gives those that are right."""
    right = (story.root / "rondel.toml").read_text()
    (story.root / "rondel.toml").write_text(right.replace(json.dumps(UNITTEST), '"no-such-command"'))
    return right


def test_a_corrected_test_command_counts_for_the_tasks_that_are_left(tmp_path):
    story = Story(tmp_path, "task")
    right = misconfigured(story)
    assert "no-such-command: command not found" in drive(story, code=6)
    (story.root / "rondel.toml").write_text(right)
    drive(story, "task", "run", "IMPL-1", "IMPL-2", "IMPL-3")


def test_a_corrected_test_command_counts_for_the_cycles_next_iteration(tmp_path):
    story = Story(tmp_path, "cycle", settings="[cycle]\nmax_iterations = 1\n")
    right = misconfigured(story)
    assert "no-such-command: command not found" in drive(story, code=6)
    (story.root / "rondel.toml").write_text(right)
    said = drive(story, "cycle", "extend", story.ref.id, "go on")
    assert "no-such-command" not in said
    assert "test_ten_percent" in said, "the tests that are there were run"


def test_a_corrected_gate_counts_when_a_generation_is_resumed(tmp_path):
    story = Story(tmp_path, "generate")
    (story.session / ".rondel/request-1.json").write_text('{"auto": false}')
    drive(story, "resume", story.ref.name, code=3)
    settings = story.root / "rondel.toml"
    settings.write_text(settings.read_text() + '[generate]\ngate = "skip"\n')
    drive(story, "resume", story.ref.name)
