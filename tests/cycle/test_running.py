"""A cycle that runs, seen from other terminals: feedback, pause, stop, decisions, blockers, conflicts."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cycle_repo import Repo

from rondel.model import doclog

TALK = """
import sys
from rondel.cli.main import main
for n in range(int(sys.argv[2])):
    assert main(["cycle", "feedback", sys.argv[3], f"{sys.argv[1]} says {n}", "--to", "vas"]) == 0
"""
SUITE = """grep -q 'a - b' calc.py && s=0 || s=1
[ $s = 0 ] && b= || b="<failure message='no sub'/>"
case="<testcase classname='tests.test_calc' name='test_sub'>$b</testcase>"
echo "<testsuite>$case</testsuite>" > "$RONDEL_JUNIT"
exit $s"""
QUICK = f"[project]\ntest = {json.dumps(SUITE)}\n"


def wait_for(what: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)


def called(repo: Repo, role: str) -> Callable[[], bool]:
    return lambda: any(c["role"] == role for c in repo.calls)


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    made = Repo(tmp_path)
    made.configure(QUICK)
    return made


def test_two_terminals_that_send_feedback_while_it_runs_lose_nothing(repo):
    repo.configure(QUICK, CYCLE_SECONDS="0.4")
    driver = repo.popen("cycle", "start", "Add subtraction", "--max-iterations", "3")
    wait_for(called(repo, "ra"))
    talkers = [
        subprocess.Popen(
            [sys.executable, "-c", TALK, name, "15", repo.id],
            cwd=repo.root,
            env=repo.env,
            stderr=subprocess.PIPE,
        )
        for name in ("one", "two")
    ]
    for talker in talkers:
        _, err = talker.communicate(timeout=120)
        assert talker.returncode == 0, err.decode()
    driver.communicate(timeout=200)
    said = {f"{name} says {n}" for name in ("one", "two") for n in range(15)}
    log = repo.state["coordination"]["feedback_log"]
    from_user = [e["content"] for e in log if e["source"] == "user"]
    assert sorted(from_user) == sorted(said), "each is there, once"
    assert any(e["source"] == "vas" for e in log), "and so is what the agents said"
    logged = doclog.read((repo.progress / "coordination/state.ndjson").read_bytes())
    assert logged.document == repo.state
    assert not logged.broken


def test_a_pause_takes_effect_before_the_next_action_and_keeps_what_is_under_way(repo):
    repo.configure(QUICK, CYCLE_HELD="ra ep")
    driver = repo.popen("cycle", "start", "Add subtraction")
    wait_for(called(repo, "ra"))
    repo.rondel("cycle", "pause", repo.id)
    repo.gate.touch()
    driver.communicate(timeout=60)
    assert driver.returncode == 3
    assert {c["role"] for c in repo.calls} == {"ra", "ep"}
    assert repo.state["status"] == "paused"
    assert repo.state["requirements"]["version"] == "1.0.0", "what was under way has finished and is kept"
    assert "plan" not in repo.state
    repo.configure(QUICK)
    repo.rondel("cycle", "resume", repo.id)
    assert repo.state["status"] == "completed"
    asked = [c["action"] for c in repo.calls if "told" not in c]
    assert len(asked) == len(set(asked)), "nobody was asked twice"


@pytest.mark.parametrize("words", [["stop"], ["pause", "--now"]])
def test_a_stop_ends_the_agents_that_are_under_way(repo, words):
    repo.configure(QUICK, CYCLE_HELD="ra ep")
    driver = repo.popen("cycle", "start", "Add subtraction")
    wait_for(called(repo, "ra"))
    begin = time.monotonic()
    repo.popen("cycle", *words, repo.id).communicate(
        timeout=40
    )  # what it says comes next is not typed meanwhile
    driver.communicate(timeout=40)
    assert time.monotonic() - begin < 30
    assert driver.returncode == 3
    assert repo.state["status"] == "paused"
    assert "stopped by a person" in repo.state["agents"]["ra"]["last_message"]
    repo.configure(QUICK)
    repo.rondel("resume", f"cycle:{repo.id}")
    assert repo.state["status"] == "completed"


def test_a_status_set_by_hand_is_obeyed_before_the_next_action(repo):
    repo.configure(QUICK, CYCLE_HELD="ra ep")
    driver = repo.popen("cycle", "start", "Add subtraction")
    wait_for(called(repo, "ra"))
    wait_for(called(repo, "ep"))
    repo.state_file.write_text(json.dumps(repo.state | {"status": "paused"}))
    repo.gate.touch()
    driver.communicate(timeout=60)
    assert driver.returncode == 3
    assert {c["role"] for c in repo.calls} == {"ra", "ep"}
    assert repo.state["status"] == "paused"
    assert repo.state["requirements"]["version"] == "1.0.0"


def test_a_killed_driver_is_followed_by_the_next_and_nobody_repairs_anything(repo):
    repo.configure(QUICK, CYCLE_HELD="cd")
    driver = repo.popen("cycle", "start", "Add subtraction")
    wait_for(called(repo, "cd"))
    driver.kill()
    driver.communicate()
    repo.configure(QUICK)
    repo.rondel("cycle", "resume")
    assert repo.state["status"] == "completed"
    asked = [c["action"] for c in repo.calls if c["role"] in ("ra", "ep")]
    assert len(asked) == len(set(asked)), "what was finished was not asked for again"


def test_an_extension_from_another_terminal_waits_for_the_next_iteration(repo):
    repo.configure(QUICK, CYCLE_HELD="cd")
    driver = repo.popen("cycle", "start", "Add subtraction")
    wait_for(called(repo, "cd"))
    repo.rondel("cycle", "extend", repo.id, "Also add multi-factor authentication")
    repo.gate.touch()
    driver.communicate(timeout=120)
    assert driver.returncode == 0
    assert repo.state["iterations"][1]["extension"] == "Also add multi-factor authentication"
    assert repo.state["status"] == "completed"


def test_a_decision_waits_for_a_person_who_names_an_option_by_number(repo):
    repo.configure(QUICK, CYCLE_MODE="decide")
    repo.rondel("cycle", "start", "Add subtraction", exit_code=3)
    assert "D-1-ra-1: Which sign? [1 minus, 2 dash]" in repo.rondel("cycle", "status")
    (decision,) = repo.state["coordination"]["pending_decisions"]
    repo.rondel("cycle", "decide", repo.id, "D-1-ra-1", "--option", "3", exit_code=2)
    repo.rondel("cycle", "decide", repo.id, "D-9", "--option", "1", exit_code=2)
    assert repo.state["coordination"]["pending_decisions"] == [decision]
    repo.rondel("cycle", "decide", repo.id, "D-1-ra-1", "--option", "2")
    (decision,) = repo.state["coordination"]["pending_decisions"]
    assert (decision["chosen_option"], decision["made_by"], decision["status"]) == (
        "dash",
        "user",
        "implemented",
    )
    assert repo.state["status"] == "completed"


def test_a_question_can_be_answered_through_the_door_of_all_workflows_too(repo):
    repo.configure(QUICK, CYCLE_MODE="decide")
    repo.rondel("cycle", "start", "Add subtraction", exit_code=3)
    repo.rondel("approve", f"cycle:{repo.id}", "--option", "minus")
    (decision,) = repo.state["coordination"]["pending_decisions"]
    assert (decision["chosen_option"], decision["status"]) == ("minus", "implemented")
    assert repo.state["status"] == "completed"


def test_auto_asks_nobody(repo):
    repo.configure(QUICK, CYCLE_MODE="decide")
    repo.rondel("cycle", "start", "Add subtraction", "--auto")
    assert repo.state["coordination"]["pending_decisions"][0]["chosen_option"] == "minus"
    assert repo.state["status"] == "completed"


def test_a_blocker_of_a_person_holds_the_cycle_until_it_is_out_of_the_way(repo):
    repo.rondel("cycle", "start", "Add subtraction", "--no-run")
    assert repo.rondel("cycle", "block", repo.id, "no credentials yet").strip() == "B-1"
    repo.rondel("cycle", "resume", exit_code=3)
    assert repo.calls == []
    assert "blocker B-1: no credentials yet" in repo.rondel("cycle", "status")
    repo.rondel("cycle", "unblock", repo.id, "B-2", exit_code=2)
    repo.rondel("cycle", "block", repo.id, "and another")
    repo.rondel("cycle", "pause", repo.id)
    repo.rondel("cycle", "unblock", repo.id, "B-2")
    assert repo.state["status"] == "paused", "an answer alone does not make it go on"
    repo.rondel("cycle", "resume", exit_code=3)
    repo.rondel("cycle", "unblock", repo.id, "B-1", "--resolution", "they came")
    blocker = repo.state["coordination"]["blockers"][0]
    assert (blocker["status"], blocker["resolution"], blocker["reported_by"]) == (
        "resolved",
        "they came",
        "user",
    )
    assert repo.state["status"] == "completed"


def test_two_edits_that_do_not_merge_are_a_blocker_with_the_files_and_nothing_is_lost(repo):
    repo.configure(QUICK, CYCLE_MODE="clash", CYCLE_SECONDS="0.3")
    repo.rondel("cycle", "start", "Add subtraction", exit_code=3)
    (blocker,) = repo.state["coordination"]["blockers"]
    assert blocker["status"] == "open"
    assert "calc.py" in blocker["description"]
    commit = blocker["description"].rpartition(" ")[2]
    statuses = {t["id"]: t["status"] for t in repo.state["plan"]["tasks"]}
    assert sorted(statuses.values()) == ["blocked", "completed"]
    lost = next(t for t, s in statuses.items() if s == "blocked")[-1]
    kept = next(t for t, s in statuses.items() if s == "completed")[-1]
    assert f"# way {kept}" in repo.built("calc.py")
    assert f"# way {lost}" in repo.git("show", f"{commit}:calc.py")
    assert commit in repo.git("rev-list", "--all", "--reflog"), "a ref holds it: no collection takes it"
    assert repo.git("for-each-ref", "--contains", commit), "and a person finds it by name"
    repo.rondel("cycle", "unblock", repo.id, blocker["id"], "--resolution", "keep both")
    assert repo.state["status"] == "completed"
    assert f"# way {kept}" in repo.built("calc.py")
    assert f"# and way {lost}" in repo.built("calc.py")
    assert {t["status"] for t in repo.state["plan"]["tasks"]} == {"completed"}


@pytest.mark.parametrize("role", ["ra", "vas"])
def test_an_agent_that_cannot_answer_fails_the_cycle_and_a_resume_tries_again(repo, role):
    repo.configure(QUICK, CYCLE_MODE=f"broken-{role}")
    repo.rondel("cycle", "start", "Add subtraction", exit_code=1)
    assert repo.state["status"] == "failed"
    assert "the agent is broken" in repo.state["failure_reason"]
    assert repo.state["phase_errors"][0]["phase"] == role
    repo.configure(QUICK)
    repo.rondel("cycle", "resume", repo.id)
    assert repo.state["status"] == "completed"
    assert "failure_reason" not in repo.state


def test_the_limit_ends_a_cycle_and_an_extension_goes_on(repo):
    never = QUICK.replace("grep -q 'a - b' calc.py", "test -f mfa.py")
    assert never != QUICK
    repo.configure(never)
    repo.rondel("cycle", "start", "Add subtraction", "--max-iterations", "1", exit_code=1)
    assert repo.state["status"] == "failed"
    assert "test_sub" in repo.state["failure_reason"]
    repo.rondel("cycle", "resume", repo.id, exit_code=1)
    assert repo.state["current_iteration"] == 1
    repo.rondel("cycle", "extend", repo.id, "Also add multi-factor authentication")
    assert (repo.state["status"], repo.state["max_iterations"]) == ("completed", 2)
