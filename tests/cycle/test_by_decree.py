"""Done by decree: a cycle that was begun here is completed by the engine, and by nobody's word in a file."""

from __future__ import annotations

import copy
import json

import pytest
from cycle_loop import JUNIT_FAIL, Loop
from cycle_repo import Repo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_running import QUICK, called, wait_for

from rondel.model import doclog
from rondel.model.marks import FOREIGN
from rondel.model.summary import Status
from rondel.workflows.cycle import files as cycle_files

AT = "2026-01-22T12:00:00+08:00"


def ended(document: dict) -> dict:
    """What an agent leaves that wants to be done: everything says so."""
    after = copy.deepcopy(document) | {"status": "completed", "current_phase": "complete", "completed_at": AT}
    after["completed_phases"] = ["ra", "ep", "cd", "vas"]
    for record in after["iterations"]:
        record |= {"completed_at": AT, "resolved": True}
    return after


def status_only(document: dict) -> dict:
    return document | {"status": "completed"}


def iteration_only(document: dict) -> dict:
    after = copy.deepcopy(document)
    for record in after["iterations"]:
        record |= {"completed_at": AT, "resolved": True}
    return after


def logged_too(loop: Loop, document: dict) -> None:
    """The state and its log agree, as if the engine had written both."""
    log = loop.folder / "coordination/state.ndjson"
    line = doclog.line(log.read_text().splitlines()[-1], loop.document, document)
    if line:
        log.write_text(f"{log.read_text()}{line}\n")
    loop.state_path.write_text(json.dumps(document))


@pytest.mark.parametrize("how", [ended, status_only, iteration_only])
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("steps", [1, 3, 5, 8])
def test_a_state_that_claims_an_end_changes_nothing_and_is_shown(tmp_path, how, log, steps):
    loop = Loop(tmp_path)
    for _ in range(steps):
        loop.step()
    before, due = loop.document, [a.path for a in loop.due()]
    claim = how(before)
    assert claim != before
    logged_too(loop, claim) if log else loop.state_path.write_text(json.dumps(claim))
    summary = loop.workflow.summary(loop.state)
    assert summary.status is Status.ACTIVE
    assert [p.rule for p in summary.problems] == [FOREIGN]
    assert [a.path for a in loop.due() if "/taken/" not in a.path] == due
    loop.run()
    assert loop.document["status"] == "completed"
    assert [r["number"] for r in loop.document["iterations"]] == [1]
    assert (loop.folder / ".rondel/parts/iteration-1/vas/validation.md").exists()
    kept = json.loads((loop.folder / f"coordination/{loop.ref.id}.json.refused-1").read_text())
    assert kept == claim
    after = loop.workflow.summary(loop.state)
    assert after.status is Status.COMPLETED
    assert [(p.rule, p.file) for p in after.problems] == [
        (FOREIGN, f"coordination/{loop.ref.id}.json.refused-1")
    ]


def test_a_claim_that_came_while_an_agent_worked_is_not_carried_on_by_what_the_engine_writes(tmp_path):
    loop = Loop(tmp_path)
    loop.script["ra/requirements.md"] = lambda *_: (
        loop.state_path.write_text(json.dumps(status_only(loop.document))) and None
    )
    loop.run()
    assert loop.document["status"] == "completed"
    assert (loop.folder / ".rondel/parts/iteration-1/aggregate.json").exists()
    assert len([p for p in loop.done if p.endswith("ra/requirements.md")]) == 1


def test_an_aggregate_that_an_agent_wrote_closes_nothing(tmp_path):
    loop = Loop(tmp_path, {"vas/tests.json": JUNIT_FAIL})
    for _ in range(5):
        loop.step()
    end = {"iteration": 1, "at": AT, "resolved": True, "issues": [], "feedback": [], "status": "completed"}
    (loop.folder / ".rondel/parts/iteration-1/aggregate.json").write_text(json.dumps(end))
    loop.state_path.write_text(json.dumps(ended(loop.document)))
    assert loop.workflow.summary(loop.state).status is Status.ACTIVE
    loop.run()
    assert loop.document["status"] == "failed"


def test_an_extended_cycle_does_not_go_back_to_the_end_it_had(tmp_path):
    loop = Loop(tmp_path)
    loop.run()
    before = loop.document
    assert before["status"] == "completed"
    loop.carry([cycle_files.added("More", loop.tick())])
    for _ in range(3):
        loop.step()
    assert loop.document["current_iteration"] == 2
    loop.state_path.write_text(json.dumps(before))
    assert loop.workflow.summary(loop.state).status is Status.ACTIVE
    assert loop.state.document["current_iteration"] == 2


def test_pause_and_stop_set_by_hand_are_still_taken_over(tmp_path):
    loop = Loop(tmp_path)
    for _ in range(3):
        loop.step()
    loop.state_path.write_text(json.dumps(loop.document | {"status": "paused"}))
    loop.run()
    assert loop.document["status"] == "paused"
    assert loop.state.problems == ()


def test_a_cycle_of_another_tool_is_read_as_before(tmp_path):
    loop = Loop(tmp_path, begun="")
    for _ in range(3):
        loop.step()
    loop.state_path.write_text(json.dumps(status_only(loop.document)))
    assert loop.workflow.summary(loop.state).status is Status.COMPLETED


def test_a_running_driver_does_not_believe_it_and_says_so(tmp_path):
    repo = Repo(tmp_path)
    repo.configure(QUICK, CYCLE_HELD="ra ep")
    driver = repo.popen("cycle", "start", "Add subtraction")
    wait_for(called(repo, "ra"))
    wait_for(called(repo, "ep"))
    identity = repo.state_file.with_suffix(".progress") / ".rondel/session.json"
    if not identity.exists():
        identity.write_text(json.dumps({"schema_version": 1, "id": "0123456789abcdef"}))
    repo.state_file.write_text(json.dumps(ended(repo.state)))
    wait_for(lambda: "refused" in repo.rondel("status", "--json", "cycle:") or _said(repo))
    repo.gate.touch()
    _, err = driver.communicate(timeout=60)
    assert driver.returncode == 0
    assert {c["role"] for c in repo.calls} == {"ra", "ep", "cd", "vas"}
    assert repo.state["status"] == "completed"
    assert "Rondel did not end it" in err


def _said(repo: Repo) -> bool:
    return "Rondel did not end it" in repo.rondel("status", "cycle:")


FIELDS = st.sampled_from(["status", "record", "phase", "completed_at", "iteration", "phases"])


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 9), st.lists(FIELDS, min_size=1, max_size=4), st.booleans())
def test_no_writing_into_the_state_ends_a_cycle_whose_work_is_not_done(tmp_path_factory, steps, fields, log):
    loop = Loop(tmp_path_factory.mktemp("cycle"))
    for _ in range(steps):
        loop.step()
    claim = copy.deepcopy(loop.document)
    for name in fields:
        if name == "status":
            claim["status"] = "completed"
        elif name == "phase":
            claim["current_phase"] = "complete"
        elif name == "completed_at":
            claim["completed_at"] = AT
        elif name == "iteration":
            claim["current_iteration"] += 1
        elif name == "phases":
            claim["completed_phases"] = ["ra", "ep", "cd", "vas"]
        else:
            claim = iteration_only(claim)
    logged_too(loop, claim) if log else loop.state_path.write_text(json.dumps(claim))
    parts = loop.folder / ".rondel/parts"
    shown = loop.workflow.summary(loop.state)
    done = any(json.loads(p.read_text())["status"] == "completed" for p in parts.glob("*/aggregate.json"))
    assert done or shown.status is not Status.COMPLETED
