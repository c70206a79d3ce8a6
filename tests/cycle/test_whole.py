"""A whole cycle on a scratch repository with a real pytest suite, by the real engine and the commands."""

from __future__ import annotations

import json
import re

import pytest
from cycle_repo import Repo

from rondel.workflows.cycle import ChangeLog, CycleState


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two iterations, the first failing a test, and an extension."""
    repo = Repo(tmp_path_factory.mktemp("whole"))
    repo.started = repo.rondel("cycle", "start", "Add subtraction").strip()
    repo.first = repo.state
    repo.rondel("cycle", "extend", repo.id, "Also add multi-factor authentication")
    return repo


def test_the_first_iteration_fails_a_test_the_feedback_reaches_cd_and_the_second_passes(finished):
    state = CycleState.model_validate(finished.first)
    assert finished.started == finished.id
    assert (state.status, state.current_iteration, state.current_phase) == ("completed", 2, "complete")
    first, second = state.iterations
    assert not first.resolved
    assert "test_sub" in first.issues_found[0]
    assert second.resolved
    assert second.issues_found == []
    told = [c["told"] for c in finished.calls if "told" in c]
    assert told == [False, True], "the code developer mends it because it was told"
    entry = state.coordination.feedback_log[0]
    assert (entry.source, entry.target, entry.type) == ("vas", "cd", "bug_report")
    assert state.test_results is not None
    assert (state.test_results.pass_rate, state.test_results.total_tests) == (100, 2)
    old = json.loads((finished.progress / "vas/history/test-results-v1.0.0.json").read_text())
    assert (old["pass_rate"], old["failed_tests"]) == (50, ["tests.test_calc::test_sub"])


def test_coverage_is_measured_by_the_run_itself(finished):
    coverage = finished.state["test_results"]["coverage"]
    assert 0 < coverage <= 100
    assert coverage != 100, "the claim of the agent is 100 %; nobody tests mfa.py"


def test_the_extension_is_its_own_iteration_with_everything_the_document_asks_for(finished):
    state = CycleState.model_validate(finished.state)
    assert (state.status, state.current_iteration) == ("completed", 3)
    assert state.description == "Add subtraction\n\n--- ITERATION 3 ---\nAlso add multi-factor authentication"
    assert state.task_history == ["Add subtraction", "Also add multi-factor authentication"]
    assert state.iterations[2].extension == "Also add multi-factor authentication"
    for section in (state.requirements, state.plan, state.test_results, state.exploration):
        assert section is not None
        assert section.version == "1.2.0"
    assert "REQ-003" in (finished.progress / "ra/requirements.md").read_text()
    assert "REQ-003" not in (finished.progress / "ra/history/requirements-v1.1.0.md").read_text()
    assert [
        a.iterations_completed for a in (state.agents.ra, state.agents.ep, state.agents.cd, state.agents.vas)
    ] == [3] * 4
    assert state.created_at.endswith("+08:00")


def test_the_work_is_on_the_cycles_own_branch_one_commit_a_task_and_the_persons_tree_is_untouched(finished):
    assert "return a - b" in finished.built("calc.py")
    assert "42" in finished.built("mfa.py")
    log = finished.git("log", "--format=%s", f"main..{finished.branch}").splitlines()
    assert log == ["TASK-002: second factor", "TASK-001: subtract", "TASK-001: subtract"]
    assert finished.git("rev-list", "--merges", finished.branch) == ""
    assert finished.git("branch", "--show-current") == "main"
    assert "sub" not in (finished.root / "calc.py").read_text()
    assert finished.git("status", "--porcelain", "--untracked-files=no") == ""


def test_every_changed_file_is_a_line_of_the_log(finished):
    lines = [json.loads(line) for line in (finished.progress / "cd/changes.log").read_text().splitlines()]
    assert [(x["iteration"], x["action"], x["file"]) for x in lines] == [
        (1, "modify", "calc.py"),
        (2, "modify", "calc.py"),
        (3, "create", "mfa.py"),
    ]
    assert [ChangeLog.model_validate(x).document() for x in lines] == finished.state["changes"]["changes"]
    assert finished.state["changes"]["total_files"] == 2


def test_no_workspace_and_no_finished_branch_is_left(finished):
    assert finished.git("worktree", "list").count("\n") == 0 or "/read/" in finished.git("worktree", "list")
    assert "/write/" not in finished.git("worktree", "list")
    assert finished.git("for-each-ref", "--format=%(refname:short)", "refs/heads").split() == [
        "main",
        finished.branch,
    ]


def test_the_state_file_is_pretty_printed_and_validates(finished):
    text = finished.state_file.read_text()
    assert text.startswith('{\n  "cycle_id"')
    CycleState.model_validate_json(text)


def test_the_doors_show_it(finished):
    status = finished.rondel("cycle", "status")
    assert "completed, phase complete, iteration 3 of at most 5" in status
    assert f"git merge {finished.branch}" in status
    shown = json.loads(finished.rondel("cycle", "status", finished.id, "--json"))
    assert shown["sessions"][0]["status"] == "completed"
    assert shown["sessions"][0]["state"]["cycle_id"] == finished.id
    assert (
        json.loads(finished.rondel("status", f"cycle:{finished.id}", "--json"))["sessions"][0]["phase"]
        == "complete"
    )
    timeline = finished.rondel("cycle", "timeline").splitlines()
    assert [bool(re.match(rf"- \*\*Iteration {n}\*\*", line)) for n, line in enumerate(timeline[1:], 1)] == [
        True
    ] * 3
    assert len(json.loads(finished.rondel("cycle", "timeline", "--json"))["iterations"]) == 3
    assert json.loads(finished.rondel("cycle", "schema"))["title"] == "CycleState"
    assert "nothing to rebuild" in finished.rondel("cycle", "rebuild")


def test_a_run_on_a_finished_cycle_asks_nobody(finished):
    before = len(finished.calls)
    finished.rondel("cycle", "resume", finished.id)
    assert len(finished.calls) == before


def test_status_restores_a_damaged_state_file_and_warns(tmp_path):
    repo = Repo(tmp_path)
    repo.rondel("cycle", "start", "Add subtraction", "--no-run")
    good = repo.state
    repo.state_file.write_text('{"cut')
    process = repo.popen("cycle", "status")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "warning" in err
    assert "rebuilt" in err
    assert repo.state == good
    assert (repo.progress / f"coordination/{repo.id}.json.damaged-1").read_text() == '{"cut'
    repo.state_file.unlink()
    answer = json.loads(repo.rondel("cycle", "rebuild", "--json"))
    assert (answer["rebuilt"], answer["from"], answer["state"]) == (True, "log", good)


CODE = "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a {} b\n"
PLAN = {"tasks": [{"id": "TASK-001", "description": "subtract", "files": ["calc.py"]}]}


def scripted(folder):
    """A script for the mock agent: the code is right only when its prompt holds the failing test."""

    def reply(phase, text):
        return (
            f"{text}\n\nPHASE_RESULT:\n- phase: {phase}\n- status: success\n- summary: done\n- issues: []\n"
        )

    code = {"role": "cycle.cd", "reply": reply("cd", "It subtracts.")}
    right = code | {"files": {"calc.py": CODE.format("-")}}
    rules = [
        {"role": "cycle.ra", "reply": reply("ra", "# Requirements\n\n- REQ-001: it subtracts")},
        {"action": "*/plan.json", "reply": reply("ep", f"```json\n{json.dumps(PLAN)}\n```")},
        {"role": "cycle.ep", "reply": reply("ep", "# Exploration")},
        right | {"prompt": "test failed: tests.test_calc::test_sub"},
        right | {"prompt": "return a - b|This is iteration 3"},
        code | {"files": {"calc.py": CODE.format("+")}},
        {"role": "cycle.vas", "reply": reply("vas", "# Validation")},
    ]
    path = folder / "script.json"
    path.write_text(json.dumps({"rules": rules}))
    return path


def test_the_same_with_the_mock_agent(tmp_path):
    repo = Repo(tmp_path)
    script = json.dumps(str(scripted(tmp_path)))
    (repo.root / "rondel.toml").write_text(
        f'[agents.m]\nkind = "mock"\nscript = {script}\n[roles]\ndefault = "m"\n'
    )
    repo.rondel("cycle", "start", "Add subtraction")
    first = repo.state
    assert (first["status"], first["current_iteration"]) == ("completed", 2)
    assert [i["resolved"] for i in first["iterations"]] == [False, True]
    assert first["test_results"]["pass_rate"] == 100
    repo.rondel("cycle", "extend", repo.id, "Document it")
    assert (repo.state["status"], repo.state["current_iteration"]) == ("completed", 3)
    assert "return a - b" in repo.built("calc.py")


def test_a_state_file_of_another_tool_alone_opens_and_goes_on(tmp_path):
    repo = Repo(tmp_path)
    folder = repo.root / ".workflow/.cycle"
    folder.mkdir(parents=True)
    agents = {name: {"status": "idle"} for name in ("ra", "ep", "cd", "vas")}
    older = {"cycle_id": "theirs", "description": "Add subtraction", "status": "created", "agents": agents}
    (folder / "theirs.json").write_text(json.dumps(older | {"changes": [], "note": "mine"}))
    assert "created" in repo.rondel("cycle", "status", "theirs", "--json")
    repo.rondel("cycle", "resume", "theirs")
    state = repo.state
    assert (state["status"], state["task_history"], state["note"]) == (
        "completed",
        ["Add subtraction"],
        "mine",
    )
    CycleState.model_validate(state)


def test_doctor_restores_it_too_and_show_shows_the_summary(tmp_path):
    repo = Repo(tmp_path)
    repo.rondel("cycle", "start", "Add subtraction", "--no-run")
    good = repo.state
    repo.state_file.write_text("[]")
    assert "state-damaged" in repo.rondel("doctor", exit_code=1)
    assert repo.state_file.read_text() == "[]", "looking changes nothing"
    found = json.loads(repo.rondel("doctor", "--repair", "--json", exit_code=1))
    assert [p["repaired"] for p in found["problems"] if p["rule"] == "state-damaged"] == [True]
    assert repo.state == good
    (repo.progress / "vas").mkdir()
    (repo.progress / "vas/summary.md").write_text("# Summary, iteration 1\n")
    assert repo.rondel("show", f"cycle:{repo.id}") == "# Summary, iteration 1\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["start", " "], "the text is empty"),
        (["start", "x", "--max-iterations", "0"], "max-iterations"),
        (["extend", "nobody", "x"], "no session 'nobody'"),
        (["feedback", "nobody", "x"], "--to"),
        (["status"], "there is no cycle here"),
        (["resume"], "no active cycle"),
    ],
)
def test_a_wrong_command_is_named_and_changes_nothing(tmp_path, words, said):
    repo = Repo(tmp_path)
    process = repo.popen("cycle", *words)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert said in err
    assert "Traceback" not in err
    assert not (repo.root / ".workflow").exists()


def test_a_repository_without_a_commit_is_named(tmp_path):
    repo = Repo(tmp_path)
    repo.git("update-ref", "-d", "HEAD")
    process = repo.popen("cycle", "start", "x")
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "no commit yet" in err
