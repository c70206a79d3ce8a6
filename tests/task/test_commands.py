"""The doors: each is wired, says what it did, and exits right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest
from task_support import REPORT, git, put_identity, repository, statuses, step, task

from rondel.workflows.task import files
from rondel.workflows.task import read as reading
from support.follow import follow

PLAN = (
    '```json\n[{"title": "First", "focus_paths": ["a"]}, {"title": "Second", "depends_on": ["IMPL-1"]}]\n```'
)
PARTS = '```json\n[{"title": "Part one"}, {"title": "Part two"}]\n```'
ANEW = '```json\n{"title": "Something else", "requirements": ["new"]}\n```'


@pytest.fixture
def root(tmp_path):
    root = repository(tmp_path / "repo")
    rules = [
        {"role": "task.planner", "action": "*-plan.json", "reply": PLAN},
        {"role": "task.planner", "action": "*breakdown*", "reply": PARTS},
        {"role": "task.planner", "action": "*replan*", "reply": ANEW},
        {
            "role": "task.*",
            "prompt": r"# (?P<id>IMPL-[\d.]+):",
            "files": {"out/{id}.txt": "{id}\n"},
            "reply": REPORT,
        },
    ]
    (root / "mock.json").write_text(json.dumps({"rules": rules}))
    (root / "rondel.toml").write_text(
        '[agents.m]\nkind = "mock"\nscript = "mock.json"\n[roles]\ntask = "m"\n[project]\nchecks = "true"\n'
    )
    git(root, "add", "-A")
    git(root, "commit", "-qm", "settings")
    return root


def rondel(root: Path, *args: str, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "rondel", *args],
        cwd=root,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    assert done.returncode == code, done.stderr
    follow(root, os.environ, code, done.stdout, done.stderr)
    return done.stdout + done.stderr


def put(root: Path, body: dict) -> None:
    ref = files.active(root)
    (root / ".workflow" / ref / ".task" / f"{body['id']}.json").write_text(json.dumps(body))


def test_from_a_topic_to_a_completed_session(root):
    assert "WFS-user-auth-system" in rondel(
        root, "task", "start", "User Auth System", "--complexity", "medium"
    )
    rondel(root, "task", "plan", "Build it")
    assert "IMPL-3" in rondel(
        root, "task", "add", "Implement JWT", "--depends-on", "IMPL-1", "--focus", "src/auth"
    )
    assert rondel(root, "task", "validate", "--json").strip() == "[]"
    rondel(root, "task", "run", "--jobs", "4")
    assert rondel(root, "task", "todo").count("- [x] **IMPL-") == 3
    assert sorted(p.name for p in (root / "out").iterdir()) == ["IMPL-1.txt", "IMPL-2.txt", "IMPL-3.txt"]
    rondel(root, "task", "run", code=5)
    assert "is completed" in rondel(root, "task", "complete")
    shown = json.loads(rondel(root, "status", "task:WFS-user-auth-system", "--json"))["sessions"][0]
    assert (shown["status"], shown["phase"], shown["progress"]) == (
        "completed",
        "REVIEW",
        {"done": 3, "total": 3},
    )
    assert [t["status"] for t in shown["state"]["tasks"]] == ["completed"] * 3


def test_a_plan_from_a_specification(root):
    (root / "spec.md").write_text("The specification.\n")
    rondel(root, "task", "start", "One")
    rondel(root, "task", "plan", "--from", "spec.md")
    request = json.loads((root / ".workflow/WFS-one/.rondel/request-1.json").read_text())
    assert request["text"] == "The specification.\n"
    assert "IMPL-2" in rondel(root, "task", "todo")


def test_breaking_down_and_planning_anew(root):
    rondel(root, "task", "start", "One")
    rondel(root, "task", "add", "Big")
    rondel(root, "task", "breakdown", "IMPL-1")
    ref = hall_ref(root)
    assert statuses(root, ref) == {"IMPL-1": "container", "IMPL-1.1": "pending", "IMPL-1.2": "pending"}
    rondel(root, "task", "replan", "IMPL-1.2", "do something else")
    assert "Something else" in rondel(root, "task", "todo")
    assert "no third" in rondel(root, "task", "breakdown", "IMPL-1.1", code=2)
    assert "there is no task" in rondel(root, "task", "replan", "IMPL-9", "x", code=2)


def hall_ref(root: Path):
    from rondel.workflows.task.read import ref_of  # noqa: PLC0415 - only here

    return ref_of(files.active(root))


def test_listing_switching_pausing_and_resuming(root):
    rondel(root, "task", "start", "One")
    rondel(root, "task", "start", "Two")
    listed = rondel(root, "task", "sessions")
    assert "* WFS-two  active" in listed
    assert "  WFS-one  paused" in listed
    assert "WFS-one is active; WFS-two is paused" in rondel(root, "task", "switch", "one")
    rondel(root, "task", "pause")
    assert files.active(root) is None
    assert "WFS-one" in rondel(root, "task", "add", "x", code=2)
    rondel(root, "task", "resume", "two")
    assert files.active(root) == "WFS-two"
    found = json.loads(rondel(root, "task", "sessions", "--json"))["sessions"]
    assert {s["id"]: s["active"] for s in found} == {"WFS-one": False, "WFS-two": True}


def test_resuming_needs_a_name_only_where_several_sessions_are_not_over(root):
    for topic in ("One", "Two"):
        rondel(root, "task", "start", topic)
    rondel(root, "task", "pause")
    assert "WFS-one, WFS-two" in rondel(root, "task", "resume", code=2)
    rondel(root, "task", "complete", "one")
    rondel(root, "task", "resume")
    assert files.active(root) == "WFS-two"


def test_completing_names_what_is_unfinished(root):
    rondel(root, "task", "start", "One")
    rondel(root, "task", "add", "Left over")
    assert "unfinished: IMPL-1 (pending) Left over" in rondel(root, "task", "complete")


def test_commands_wait_until_they_are_allowed(root):
    rondel(root, "task", "start", "One")
    put(root, task("IMPL-1", steps=[step("bash(echo \x1b[8mhidden > stepped.txt)")]))
    said = rondel(root, "task", "run", code=3)
    assert "not yet allowed" in said
    assert not (root / "stepped.txt").exists()
    listed = rondel(root, "task", "allow", code=3)
    assert "echo \\u001b[8mhidden > stepped.txt" in listed, (
        "nothing can hide in what a person is asked to allow"
    )
    assert "allowed: 1" in rondel(root, "task", "allow", "--all")
    assert "every command is allowed" in rondel(root, "task", "allow")
    rondel(root, "task", "run")
    assert (root / "stepped.txt").exists()


def test_commands_that_the_person_configured_as_trusted_need_no_question(root):
    own = Path(platformdirs.user_config_dir("rondel"))
    own.mkdir(parents=True, exist_ok=True)
    (own / "config.toml").write_text("[task]\ntrust_commands = true\n")
    rondel(root, "task", "start", "One")
    put(root, task("IMPL-1", steps=[step("bash(echo x > stepped.txt)")]))
    rondel(root, "task", "run")
    assert (root / "stepped.txt").exists()


def test_an_unknown_variable_is_an_error_before_anything_runs(root):
    rondel(root, "task", "start", "One")
    put(root, task("IMPL-1", steps=[step("bash(touch first)", "a"), step("bash(echo [nobody])", "b")]))
    put(root, task("IMPL-2"))
    rondel(root, "task", "allow", "--all")
    assert "there is no variable [nobody]" in rondel(root, "task", "run", code=1)
    assert set(statuses(root, hall_ref(root)).values()) == {"pending"}


def test_validate_prints_file_rule_and_message(root):
    rondel(root, "task", "start", "One")
    put(root, task("IMPL-1", depends_on=["IMPL-9"], focus_paths=["../x"]))
    found = json.loads(rondel(root, "task", "validate", "--json", code=1))
    assert [set(f) for f in found] == [{"file", "rule", "message"}] * 2
    assert {(f["file"], f["rule"]) for f in found} == {
        (".task/IMPL-1.json", "focus-paths"),
        (".task/IMPL-1.json", "depends-on-exists"),
    }
    assert "depends-on-exists" in rondel(root, "task", "validate", code=1)


def test_running_without_tasks_or_without_a_branch_says_so(root):
    rondel(root, "task", "start", "One")
    assert "there are no tasks" in rondel(root, "task", "run", code=5)
    git(root, "checkout", "-q", "--detach")
    rondel(root, "task", "start", "Two")
    rondel(root, "task", "add", "x")
    said = rondel(root, "task", "run", code=2)
    assert "was begun on no branch" in said
    assert "`rondel run task:WFS-two --onto BRANCH`" in said
    rondel(root, "run", "task:WFS-two", "--onto", "main")
    rondel(root, "task", "run")
    assert statuses(root, hall_ref(root)) == {"IMPL-1": "completed"}


def test_a_blocked_task_is_tried_again_when_it_is_named(root):
    rondel(root, "task", "start", "One")
    put(root, task("IMPL-1", steps=[step("bash(test -f flag || { touch flag; exit 1; })", on_error="fail")]))
    rondel(root, "task", "allow", "--all")
    rondel(root, "task", "run", code=1)
    said = rondel(root, "task", "run", code=1)
    assert "is blocked" in said
    assert "next: rondel task run IMPL-1\n" in said
    put_flag = task("IMPL-1", steps=[step("bash(true)", on_error="fail")], status="blocked")
    put(root, put_flag)
    rondel(root, "task", "allow", "--all")
    rondel(root, "task", "run", "IMPL-1")
    assert statuses(root, hall_ref(root)) == {"IMPL-1": "completed"}


def test_a_sandbox_that_is_asked_for_and_not_there_is_refused(root, monkeypatch):
    (root / "rondel.toml").write_text((root / "rondel.toml").read_text() + "[task]\nsandbox = true\n")
    rondel(root, "task", "start", "One")
    rondel(root, "task", "add", "x")
    monkeypatch.setenv("RONDEL_SANDBOX", "none")
    said = rondel(root, "task", "run", code=2)
    assert "a sandbox is asked for ([task] sandbox), and there is none: it is switched off" in said


def test_doctor_mends_markers(root):
    rondel(root, "task", "start", "One")
    (root / ".workflow/.active-WFS-gone").touch()
    assert "next: rondel doctor --repair" in rondel(root, "doctor", code=1)
    assert "repaired: .workflow/.active-WFS-gone" in rondel(root, "doctor", "--repair")
    rondel(root, "doctor")
    assert files.markers(root) == ["WFS-one"]


def test_a_person_declares_a_task_done_with_a_reason_that_is_kept(root):
    rondel(root, "task", "start", "Auth")
    for title in ("First", "Second"):
        rondel(root, "task", "add", title, *(["--depends-on", "IMPL-1"] if title == "Second" else []))
    folder = root / ".workflow" / files.active(root)
    put_identity(root, reading.ref_of(folder.name))
    assert "--reason" in rondel(root, "task", "complete", "IMPL-1", code=2)
    assert statuses(root, reading.ref_of(folder.name))["IMPL-1"] == "pending"
    rondel(root, "task", "complete", "IMPL-9", "--reason", "x", code=2)
    rondel(root, "task", "complete", "--reason", "x", code=2)
    rondel(root, "task", "complete", "IMPL-1", "--reason", "Ann did it by hand in 3f2a")
    word = json.loads((folder / ".rondel/decisions/complete-IMPL-1-1.json").read_text())
    assert (word["answer"], word["by"], word["comment"]) == (
        "complete",
        "person",
        "Ann did it by hand in 3f2a",
    )
    summary = (folder / ".summaries/IMPL-1-summary.md").read_text()
    assert "Declared done by a person" in summary
    assert "Ann did it by hand in 3f2a" in summary
    assert "- [x] **IMPL-1" in (folder / "TODO_LIST.md").read_text()
    rondel(root, "task", "complete", "IMPL-1", "--reason", "again", code=5)
    rondel(root, "task", "run")
    assert [p.name for p in (root / "out").iterdir()] == ["IMPL-2.txt"]
    shown = json.loads(rondel(root, "status", "task:", "--json"))["sessions"][0]
    assert (shown["problems"], shown["status"]) == ([], "active")
    rondel(root, "task", "complete")
    shown = json.loads(rondel(root, "status", "task:", "--json"))["sessions"][0]
    assert (shown["problems"], shown["status"]) == ([], "completed")


def test_a_reopened_task_is_done_anew_and_what_it_left_is_kept(root):
    rondel(root, "task", "start", "Auth")
    rondel(root, "task", "add", "First")
    ref = reading.ref_of(files.active(root))
    put_identity(root, ref)
    folder = root / ref.folder
    rondel(root, "task", "reopen", "IMPL-1", code=5)
    rondel(root, "task", "run")
    before = (folder / ".summaries/IMPL-1-summary.md").read_text()
    rondel(root, "task", "reopen", "IMPL-1", "--reason", "the tests were wrong")
    assert statuses(root, ref) == {"IMPL-1": "pending"}
    assert (folder / ".rondel/parts/replaced/1-IMPL-1-summary.md").read_text() == before
    word = json.loads((folder / ".rondel/decisions/reopen-IMPL-1-1.json").read_text())
    assert (word["answer"], word["comment"]) == ("reopen", "the tests were wrong")
    said = rondel(root, "task", "run")
    assert "IMPL-1: First (m)" in said  # somebody was asked
    assert statuses(root, ref) == {"IMPL-1": "completed"}
    rondel(root, "task", "complete", "IMPL-1", "--reason", "x", code=5)


def test_status_names_what_was_completed_by_nobody_here(root):
    rondel(root, "task", "start", "Auth")
    rondel(root, "task", "add", "First")
    ref = reading.ref_of(files.active(root))
    put_identity(root, ref)
    put(root, task("IMPL-1", "First", status="completed"))
    assert "IMPL-1 says completed, and Rondel did not complete it" in rondel(root, "status", "task:")
    shown = json.loads(rondel(root, "status", "task:", "--json"))["sessions"][0]
    assert [(p["rule"], p["file"]) for p in shown["problems"]] == [
        ("completed-elsewhere", ".task/IMPL-1.json")
    ]
    assert shown["progress"] == {"done": 0, "total": 1}
    assert shown["state"]["tasks"][0]["completed_elsewhere"] is True


@pytest.mark.parametrize("named", [("IMPL-1",), ()])
def test_what_a_task_wrote_into_a_submodule_stays_where_it_is_named_and_is_taken_once_it_is_moved(
    root, named, tmp_path
):
    sub = repository(tmp_path / "sub")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(sub), "sub")
    rules = [{"role": "task.*", "files": {"sub/new.txt": "hard work\n"}, "reply": REPORT}]
    (root / "mock.json").write_text(json.dumps({"rules": rules}))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a submodule")
    rondel(root, "task", "start", "T")
    rondel(root, "task", "add", "A")
    rondel(root, "task", "run", code=1)
    error = json.loads((root / ".workflow/WFS-t/.task/IMPL-1.json").read_text())["meta"]["error"]
    tree = Path(error.rpartition(" is in ")[2].rstrip("."))
    assert (tree / "sub/new.txt").read_text() == "hard work\n"
    (tree / "sub/new.txt").rename(tree / "moved.txt")
    (root / "mock.json").write_text(json.dumps({"rules": []}))
    rondel(root, "task", "run", *named)
    assert git(root, "show", "HEAD:moved.txt") == "hard work"


def test_a_session_that_is_taken_up_again_misses_no_word_that_it_is_over(root):
    rondel(root, "task", "start", "One")
    rondel(root, "task", "add", "A")
    rondel(root, "task", "complete")
    assert json.loads(rondel(root, "status", "WFS-one", "--json"))["sessions"][0]["status"] == "completed"
    rondel(root, "task", "switch", "WFS-one")
    assert "decision-removed" not in rondel(root, "doctor")
    assert json.loads(rondel(root, "status", "WFS-one", "--json"))["sessions"][0]["status"] != "completed"
    (kept,) = (root / ".workflow/WFS-one/.rondel/aside").glob("*end.json*")
    assert json.loads(kept.read_text())["answer"] == "complete"


def test_an_answer_that_came_after_something_else_was_asked_is_named(root):
    (root / "rondel.toml").write_text('[roles]\ndefault = "manual"\n')
    rondel(root, "task", "start", "One")
    said = rondel(root, "task", "plan", "do x", code=3)
    answer = root / ".workflow/WFS-one/.rondel/manual/proposals.1-plan.json.response.md"
    assert answer.name in said
    rondel(root, "task", "add", "Other")
    assert "change the files in " in rondel(root, "task", "run", code=3)
    assert "answer-not-taken" not in rondel(root, "doctor")
    answer.write_text(PLAN)
    assert "answer-not-taken" in rondel(root, "doctor", code=1)
    assert "was not taken" in rondel(root, "status", "WFS-one")
