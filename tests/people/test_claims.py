"""What somebody writes into a session is not what the session did."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from rondel.project import Project
from rondel.testing.scripted import run_of
from rondel.workflows.feature import worktrees
from support.in_the_way import spot
from support.stories import Story


def at_work(story: Story, process: subprocess.Popen[str]) -> None:
    """Wait until an agent is at work."""
    before = story.starts()
    end = time.monotonic() + 60
    while story.starts() == before and process.poll() is None and time.monotonic() < end:
        time.sleep(0.02)


def edit(path: Path, **fields: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}, indent=2))


def test_a_cycle_that_is_said_to_be_completed_while_it_runs_goes_on_to_its_real_end(tmp_path):
    story = Story(tmp_path, "cycle", seconds=0.7)
    process = story.drive()
    at_work(story, process)
    edit(story.session.parent / f"{story.ref.id}.json", status="completed")
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    assert "discount.py" in story.git("ls-tree", "-r", "--name-only", f"rondel/cycle/{story.ref.id}")
    assert json.loads((story.session.parent / f"{story.ref.id}.json").read_text())["current_iteration"] == 2


@pytest.mark.parametrize("how", ["deleted", "damaged"])
def test_a_session_whose_id_is_lost_between_two_runs_gets_it_back_and_counts_no_claim(how, tmp_path):
    story = Story(tmp_path, "task")
    story.git("switch", "-q", "-c", "other")
    process = story.popen("task", "run", "IMPL-1")
    assert process.wait(60) == 0
    identity = story.session / ".rondel/session.json"
    before = identity.read_text()
    identity.unlink() if how == "deleted" else identity.write_text(before[:25])
    edit(story.session / ".task/IMPL-2.json", status="completed")
    process = story.drive()
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert identity.read_text() == before
    assert story.git("log", "--format=%(trailers:key=Rondel-Action)", "main").count("Rondel-Action") == 3
    assert "Rondel-Action" not in story.git("log", "--format=%(trailers:key=Rondel-Action)", "other")


@pytest.mark.parametrize(
    ("gone", "how"),
    [
        ((".rondel/session.json", "RUN"), "put back as it was last known"),
        ((".rondel",), "the session's commits show its id"),
    ],
)
def test_an_id_that_is_lost_with_the_runtime_is_taken_back(gone, how, tmp_path):
    story = Story(tmp_path, "task")
    assert story.typed("task", "run", "IMPL-1")[0] == 0
    before = json.loads((story.session / ".rondel/session.json").read_text())
    for name in gone:
        place = spot(story.session, name)
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    edit(story.session / ".task/IMPL-2.json", status="completed")
    code, said = story.typed("task", "run")
    assert code == 0, said
    after = json.loads((story.session / ".rondel/session.json").read_text())
    assert (after["id"], after["branch"]) == (before["id"], before["branch"])
    assert "adopted" not in after
    trailers = story.git("log", "--format=%(trailers:key=Rondel-Action,valueonly)", "main").split()
    assert len(trailers) == 3, "the claim counts for nothing, and nothing is done twice"
    assert how in story.rondel("status", story.ref.name)


def test_an_id_that_nobody_can_tell_any_more_is_a_problem_and_claims_are_not_made_by_rondel(tmp_path):
    story = Story(tmp_path, "task")
    assert story.typed("task", "run", "IMPL-1")[0] == 0
    shutil.rmtree(story.session / ".rondel")
    story.git("commit", "--amend", "-qm", "no trailer")
    edit(story.session / ".task/IMPL-2.json", status="completed")
    code, said = story.typed("task", "run")
    assert code == 0, said
    assert "its id is lost" in said
    shown = story.rondel("status", story.ref.name)
    assert "identity-lost" in shown
    assert "not made by Rondel: what was completed before its id was lost" in shown


def test_a_session_of_another_tool_has_lost_nothing(tmp_path):
    story = Story(tmp_path, "task")
    shutil.rmtree(story.session / ".rondel")
    assert story.typed("task", "run")[0] == 0
    assert "identity-lost" not in story.rondel("status", story.ref.name)


def test_a_session_that_somebody_else_ended_has_not_ended(tmp_path):
    story = Story(tmp_path, "task")
    (story.session / ".rondel/decisions").mkdir(parents=True, exist_ok=True)
    (story.session / ".rondel/decisions/end.json").write_text('{"answer": "complete", "by": "person"}')
    edit(story.session / "workflow-session.json", status="completed")
    assert story.drive().wait(60) == 0
    assert len(list((story.session / ".summaries").glob("IMPL-*"))) == 3
    story.rondel("task", "complete")
    assert "completed" in story.rondel("status", story.ref.name)


def test_a_run_that_is_refused_makes_no_blocked_task_due_again(tmp_path):
    story = Story(tmp_path, "task")
    edit(story.session / ".task/IMPL-1.json", status="blocked")
    task = json.loads((story.session / ".task/IMPL-2.json").read_text())
    steps = [{"step": "x", "command": "bash(echo [nosuchname])", "on_error": "fail"}]
    edit(story.session / ".task/IMPL-2.json", flow_control={**task["flow_control"], "pre_analysis": steps})
    before = story.shown()
    code, said = story.typed("task", "run", "IMPL-1", "IMPL-2")
    assert code == 1, said
    assert "nothing was run" in said
    after = story.shown()
    after.pop("session/.rondel/.gitignore", None)
    before.pop("session/.rondel/.gitignore", None)
    assert after == before


def test_an_approval_is_for_the_text_that_the_reviewer_read(tmp_path):
    story = Story(tmp_path, "feature", seconds=1.0)
    spec = story.session / "spec.md"
    spec.write_text("# Spec A\n")
    process = story.popen("feature", "specify", "--yes")
    journal, end = run_of(story.session) / "journal.jsonl", time.monotonic() + 60
    while not (journal.exists() and "review.json" in journal.read_text()) and time.monotonic() < end:
        time.sleep(0.02)
    spec.write_text("# Spec B, written while A is read\n")
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 0, said
    spool = run_of(story.session) / "spool"
    asked = [json.loads(path.read_text())["prompt"] for path in spool.glob("*review*.json")]
    assert any("Spec A" in prompt for prompt in asked)
    assert any("Spec B" in prompt for prompt in asked), "the text that is approved was never shown"


def test_ending_a_feature_removes_no_folder_that_is_not_its_worktree(tmp_path):
    story = Story(tmp_path, "feature")
    story.rondel("feature", "start", "Second", "--worktree")
    theirs = story.root.parent / "shop-002-second.removed"
    theirs.mkdir()
    (theirs / "mine.txt").write_text("precious\n")
    code, said = story.typed("feature", "finish", "002-second", "--abandon")
    assert (theirs / "mine.txt").read_text() == "precious\n"
    assert code == 0, said
    assert not theirs.with_name("shop-002-second").exists()
    assert not theirs.with_name("shop-002-second.removed-1").exists()


def test_ending_a_feature_removes_no_worktree_of_another_one_with_such_a_name(tmp_path):
    story = Story(tmp_path, "feature")
    story.rondel("feature", "start", "Second", "--worktree")
    theirs = story.root.parent / "shop-002-second.removed"
    story.git("worktree", "add", "-q", str(theirs))
    worktrees.add(Project(theirs).look, "003-third", "feature/003-third")
    third = theirs.with_name(f"{theirs.name}-003-third")
    (third / "mine.txt").write_text("precious\n")
    code, said = story.typed("feature", "finish", "002-second", "--abandon")
    assert code == 0, said
    assert (third / "mine.txt").read_text() == "precious\n"
    assert theirs.is_dir()
    assert not theirs.with_name("shop-002-second").exists()
