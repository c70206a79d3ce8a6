"""What is due when, what an answer leaves, and how issues, extensions and versions go round."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest
from cycle_loop import EP, JUNIT_FAIL, RA, Loop, block, plan_reply

from rondel.model.actions import Access, Ask, Decide, Derive, Run
from rondel.model.outcomes import Ended, Outcome
from rondel.model.summary import Status
from rondel.workflows.cycle import ChangeLog, CycleState, transitions
from rondel.workflows.cycle.files import added

TWO = ({"id": "TASK-001", "description": "one"}, {"id": "TASK-002", "description": "two"})
CHAIN = (
    {"id": "A", "description": "first"},
    {"id": "B", "description": "beside", "effort": "large"},
    {"id": "C", "description": "after both", "depends_on": ["A", "B"]},
)


def names(loop: Loop) -> list[str]:
    return [a.path.removeprefix(".rondel/parts/") for a in loop.due()]


def until(loop: Loop, ending: str) -> Loop:
    """Go on until an action with this ending is due."""
    for _ in range(60):
        if any(a.path.endswith(ending) for a in loop.due()):
            return loop
        assert loop.step(), f"{ending} never came"
    raise AssertionError(ending)


def vas(**fields: str) -> str:
    return "# Validation\n\nLooked.\n\n" + block("vas", **fields)


# -- order --------------------------------------------------------------------------------------


def test_requirements_and_exploration_start_together_and_the_plan_needs_both(tmp_path):
    loop = Loop(tmp_path)
    loop.step()
    both = ["iteration-1/ra/requirements.md", "iteration-1/ep/exploration.md"]
    assert names(loop) == both
    for action in loop.due():
        loop.begin(action)
    assert loop.document["current_phase"] == "ra", "while both run, the phase is the analyst's"
    assert [loop.document["agents"][n]["status"] for n in ("ra", "ep")] == ["running", "running"]
    loop.do(loop.due()[1])
    assert names(loop) == both[:1]
    loop.do(loop.due()[0])
    assert names(loop) == ["iteration-1/ep/plan.json"]


def test_the_phases_come_in_the_documents_order(tmp_path):
    loop = Loop(tmp_path)
    phases = []
    while loop.step():
        phases.append(loop.document["current_phase"])
    assert list(dict.fromkeys(phases)) == ["ra", "ep", "cd", "vas", "complete"]
    assert loop.document["completed_phases"] == ["ra", "ep", "cd", "vas"]


def test_independent_tasks_are_due_at_once_and_dependent_ones_start_from_what_they_need(tmp_path):
    loop = until(Loop(tmp_path, {"plan.json": plan_reply(*CHAIN)}), "cd/A.md")
    due = loop.due()
    assert [a.path.rpartition("/")[2] for a in due] == ["A.md", "B.md"]
    assert {a.workspace.base for a in due} == {"b" * 40}
    assert {a.workspace.access for a in due} == {Access.WRITE}
    assert {a.workspace.target for a in due} == {f"rondel/cycle/{loop.ref.id}"}
    until(loop, "cd/C.md")
    last = json.loads((loop.folder / ".rondel/parts/iteration-1/cd/changes/B.json").read_text())["commit"]
    assert [a.workspace.base for a in loop.due()] == [last], "the later commit holds both"
    assert loop.document["plan"]["critical_path"] == ["B", "C"]


def test_only_the_code_developer_writes(tmp_path):
    loop = Loop(tmp_path)
    access = {}
    while True:
        asks = [a for a in loop.due() if isinstance(a, Ask | Run)]
        access |= {getattr(a, "role", "tests"): a.workspace.access for a in asks}
        if not loop.step():
            break
    assert access.pop("cycle.cd") is Access.WRITE
    assert access.pop("tests") is Access.WRITE, "a test run leaves files, in a copy that goes with it"
    assert access == dict.fromkeys(["cycle.ra", "cycle.ep", "cycle.vas"], Access.READ)


def test_a_finished_cycle_has_nothing_due_and_says_where_its_work_is(tmp_path):
    loop = Loop(tmp_path)
    loop.run()
    assert loop.due() == []
    summary = loop.workflow.summary(loop.state)
    assert summary.status is Status.COMPLETED
    assert summary.next == f"git merge rondel/cycle/{loop.ref.id}"


# -- what an answer leaves ------------------------------------------------------------------------


def test_the_agents_files_hold_their_answers_without_the_block(tmp_path):
    loop = Loop(tmp_path)
    loop.run()
    text = (loop.folder / "ra/requirements.md").read_text()
    assert "PHASE_RESULT" not in text
    assert "- REQ-001: it adds\n- REQ-002: it subtracts\n" in text, "every requirement has an id"
    assert loop.document["requirements"]["specification"] == text
    assert loop.document["requirements"]["edge_cases"] == ["zero", "negative numbers"]
    assert "PHASE_RESULT" not in (loop.folder / "vas/validation.md").read_text()
    assert json.loads((loop.folder / "ep/plan.json").read_text()) == loop.document["plan"]
    assert json.loads((loop.folder / "vas/test-results.json").read_text()) == loop.document["test_results"]
    exploration = loop.document["exploration"]
    assert exploration["architecture_summary"] == "One module."
    assert exploration["integration_points"] == ["a.py"]
    assert exploration["identified_risks"] == ["none known"]


def test_each_iteration_bumps_the_versions_and_archives_the_former_ones(tmp_path):
    again = vas(issues="[cd: once more]")
    loop = Loop(tmp_path, {"iteration-1/vas/validation": again, "iteration-2/vas/validation": again})
    loop.run()
    for section in ("requirements", "exploration", "plan", "test_results"):
        assert loop.document[section]["version"] == "1.2.0"
    for kept in (
        "ra/history/requirements-v{}.md",
        "ep/history/exploration-v{}.md",
        "ep/history/plan-v{}.json",
        "cd/history/implementation-v{}.md",
        "vas/history/test-results-v{}.json",
        "vas/history/validation-v{}.md",
        "vas/history/summary-v{}.md",
    ):
        folder = (loop.folder / kept).parent
        assert sorted(p.name for p in folder.glob(f"{kept.rpartition('/')[2].partition('-v{}')[0]}-v*")) == [
            kept.rpartition("/")[2].format(v) for v in ("1.0.0", "1.1.0")
        ]
    for version in ("1.0.0", "1.1.0"):
        old = json.loads((loop.folder / f"vas/history/test-results-v{version}.json").read_text())
        assert old["version"] == version


def test_changes_are_lines_of_their_log_with_the_iteration_on_each(tmp_path):
    loop = Loop(tmp_path, {"iteration-1/vas/tests.json": JUNIT_FAIL})
    loop.run()
    lines = [json.loads(line) for line in (loop.folder / "cd/changes.log").read_text().splitlines()]
    assert [(x["iteration"], x["file"], x["action"]) for x in lines] == [
        (1, "a.py", "modify"),
        (1, "b.py", "create"),
        (2, "a.py", "modify"),
        (2, "b.py", "create"),
    ]
    for line in lines:
        ChangeLog.model_validate(line)
    changes = loop.document["changes"]
    assert changes["changes"] == lines
    assert changes["total_files"] == 2
    assert changes["iteration_markers"] == {"1": lines[0]["timestamp"], "2": lines[2]["timestamp"]}


def test_each_full_iteration_is_one_line_of_the_timeline(tmp_path):
    loop = Loop(tmp_path, {"iteration-1/vas/tests.json": JUNIT_FAIL})
    loop.run()
    lines = (loop.folder / "coordination/timeline.md").read_text().splitlines()
    assert lines[0] == "# Timeline"
    first, second = lines[1:]
    assert first.startswith("- **Iteration 1**")
    assert "tests: 1 of 2 passed" in first
    assert "test_two" in first
    assert first.endswith("goes on")
    assert second.startswith("- **Iteration 2**")
    assert second.endswith("completed")


def test_pass_rate_and_coverage_are_the_test_runs_whatever_an_agent_claims(tmp_path):
    def tests(action, _state):
        files = {
            ".rondel-junit.xml": JUNIT_FAIL,
            ".rondel-coverage.json": b'{"totals": {"percent_covered": 61.254}}',
        }
        return Outcome(
            Ended.FAILED, exit_code=1, files=files, started_at=loop.tick(), finished_at=loop.tick()
        )

    claim = vas(pass_rate="100%", coverage="100%", failed_tests="[]", summary="all green")
    loop = Loop(tmp_path, {"tests.json": tests, "validation.md": claim}, {"max_iterations": 1})
    loop.run()
    results = loop.document["test_results"]
    assert (results["pass_rate"], results["coverage"], results["total_tests"]) == (50, 61.25, 2)
    assert results["failed_tests"] == ["tests.test_a::test_two"]
    assert loop.document["status"] == "failed", "an agent cannot approve itself"


# -- issues go round ----------------------------------------------------------------------------


def test_failing_tests_reach_the_code_developer_and_the_next_iteration_mends_them(tmp_path):
    loop = Loop(tmp_path, {"iteration-1/vas/tests.json": JUNIT_FAIL})
    until(loop, "iteration-2/cd/TASK-001.md")
    record = loop.document["iterations"][0]
    assert record["issues_found"] == ["test failed: tests.test_a::test_two: assert 1 == 2"]
    assert record["resolved"] is False
    entry = loop.document["coordination"]["feedback_log"][-1]
    assert (entry["source"], entry["target"], entry["type"]) == ("vas", "cd", "bug_report")
    prompt = loop.prompt()
    assert "bug_report, from vas: test failed: tests.test_a::test_two: assert 1 == 2" in prompt
    loop.run()
    assert loop.document["status"] == "completed"
    assert loop.document["iterations"][1]["resolved"] is True


@pytest.mark.parametrize(
    ("issue", "target", "kind"),
    [
        ("ra: is a token valid for an hour?", "ra", "clarification"),
        ("it is unclear which hash is meant", "ra", "clarification"),
        ("ep: the order is wrong", "ep", "clarification"),
        ("the plan is incomplete", "ep", "clarification"),
        ("cd: sub() returns a sum", "cd", "issue_fix"),
        ("sub() returns a sum", "cd", "issue_fix"),
    ],
)
def test_an_issue_goes_to_the_agent_it_concerns(tmp_path, issue, target, kind):
    loop = Loop(tmp_path, {"iteration-1/vas/validation": vas(issues=f"[{issue}]")})
    until(loop, "iteration-2/ra/requirements.md")
    entry = loop.document["coordination"]["feedback_log"][-1]
    assert (entry["target"], entry["type"]) == (target, kind)
    ending = {"ra": "ra/requirements.md", "ep": "ep/plan.json", "cd": "cd/TASK-001.md"}[target]
    until(loop, f"iteration-2/{ending}")
    ask = next(a for a in loop.due() if a.path.endswith(ending))
    assert entry["content"] in loop.prompt(ask)


def test_when_no_iteration_is_left_the_cycle_fails_and_names_the_open_issues(tmp_path):
    loop = Loop(
        tmp_path,
        {"tests.json": JUNIT_FAIL, "validation.md": vas(issues="[cd: x is missing]")},
        {"max_iterations": 2},
    )
    loop.run()
    assert loop.document["status"] == "failed"
    assert loop.document["current_iteration"] == 2
    reason = loop.document["failure_reason"]
    assert "test_two" in reason
    assert "x is missing" in reason
    assert loop.workflow.summary(loop.state).waiting_for == reason
    assert "extend" in loop.workflow.summary(loop.state).next


def test_a_validation_that_is_no_success_is_an_issue_even_without_a_word(tmp_path):
    loop = Loop(
        tmp_path, {"validation.md": vas(status="partial", summary="half of it")}, {"max_iterations": 1}
    )
    loop.script["validation.md"] = "# V\n\n" + block("vas", "partial", summary="half of it")
    loop.run()
    assert loop.document["status"] == "failed"
    assert "half of it" in loop.document["failure_reason"]


def test_without_tests_nothing_is_resolved_unless_nobody_asks_for_them(tmp_path):
    def tip(_action, _state):
        at = loop.tick()
        return Outcome(Ended.DONE, data={"commit": "c" * 40, "command": ""}, started_at=at, finished_at=at)

    loop = Loop(tmp_path / "a", {"tip.json": tip}, {"max_iterations": 1})
    loop.run()
    assert loop.document["status"] == "failed"
    assert "no tests" in loop.document["failure_reason"]
    loop = Loop(tmp_path / "b", {"tip.json": tip}, {"max_iterations": 1, "tests_required": False})
    loop.run()
    assert loop.document["status"] == "completed"


# -- extensions -----------------------------------------------------------------------------------


def test_an_extension_of_a_completed_cycle_opens_the_next_iteration(tmp_path):
    loop = Loop(tmp_path)
    loop.run()
    loop.carry([added("Also multiply", loop.tick())])
    loop.step()
    state = CycleState.model_validate(loop.document)
    assert (state.status, state.current_iteration) == ("running", 2)
    assert state.description == "Add it\n\n--- ITERATION 2 ---\nAlso multiply"
    assert state.task_history == ["Add it", "Also multiply"]
    assert state.iterations[1].extension == "Also multiply"
    assert [a.iterations_completed for a in (state.agents.ra, state.agents.vas)] == [1, 1]
    assert "Also multiply" in loop.prompt()
    loop.run()
    assert loop.document["status"] == "completed"
    assert loop.document["requirements"]["version"] == "1.1.0"


def test_an_extension_goes_on_where_the_limit_had_ended_the_cycle(tmp_path):
    loop = Loop(tmp_path, {"iteration-1/vas/tests.json": JUNIT_FAIL}, {"max_iterations": 1})
    loop.run()
    assert loop.document["status"] == "failed"
    loop.carry([added("Try once more", loop.tick())])
    loop.run()
    assert (loop.document["status"], loop.document["max_iterations"]) == ("completed", 2)
    assert "failure_reason" not in loop.document


def test_an_extension_may_raise_the_limit_by_more(tmp_path):
    loop = Loop(tmp_path, {"tests.json": JUNIT_FAIL}, {"max_iterations": 1})
    loop.run()
    loop.carry([added("Go on", loop.tick(), 3)])
    loop.run()
    assert loop.document["current_iteration"] == 3


def test_what_is_added_while_an_iteration_runs_belongs_to_the_next_one(tmp_path):
    loop = until(Loop(tmp_path), "cd/TASK-001.md")
    loop.carry([added("First", loop.tick()), added("Second", loop.tick())])
    loop.run()
    assert loop.document["current_iteration"] == 2
    assert loop.document["task_history"] == ["Add it", "First", "Second"]
    assert loop.document["description"].count("--- ITERATION 2 ---") == 2
    assert loop.document["iterations"][1]["extension"] == "First\n\nSecond"
    assert loop.document["status"] == "completed"


# -- feedback of the user ---------------------------------------------------------------------------


def tell(loop: Loop, target: str, words: str) -> None:
    entry = transitions.feedback("user", target, words, "issue_fix", loop.state.time(loop.tick()))
    loop.carry([loop.state.edit(loop.now, transitions.say(entry))])


def test_what_the_user_says_reaches_the_agent_when_it_is_next_asked(tmp_path):
    loop = until(Loop(tmp_path), "ep/plan.json")
    tell(loop, "cd", "use integers")
    until(loop, "cd/TASK-001.md")
    assert "issue_fix, from user: use integers" in loop.prompt()
    loop.run()
    assert loop.document["current_iteration"] == 1, "it was told in time"


def test_what_the_user_says_too_late_for_this_iteration_opens_the_next(tmp_path):
    loop = until(Loop(tmp_path), "vas/validation.md")
    tell(loop, "cd", "use integers")
    loop.run()
    assert loop.document["current_iteration"] == 2
    assert loop.document["iterations"][0]["issues_found"] == ["use integers"]
    assert loop.document["status"] == "completed"
    said = [e for e in loop.document["coordination"]["feedback_log"] if e["content"] == "use integers"]
    assert len(said) == 1


# -- decisions and blockers -------------------------------------------------------------------------


ASKING = RA.replace("- summary: done", "- summary: done\n- decisions: [Which first? (google | github)]")


def test_a_question_of_an_agent_waits_for_a_person_before_the_next_phase(tmp_path):
    loop = Loop(tmp_path, {"ra/requirements.md": ASKING})
    loop.run()
    (question,) = loop.due()
    assert isinstance(question, Decide)
    assert question.options == ("google", "github")
    assert loop.workflow.summary(loop.state).status is Status.WAITING
    decision = loop.document["coordination"]["pending_decisions"][0]
    assert (decision["id"], decision["status"]) == ("D-1-ra-1", "pending")
    path = loop.folder / question.path
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"answer": "github", "by": "person", "at": "", "comment": ""}))
    loop.script.clear()
    until(loop, "ep/plan.json")
    decision = loop.document["coordination"]["pending_decisions"][0]
    assert (decision["chosen_option"], decision["made_by"], decision["status"]) == (
        "github",
        "person",
        "made",
    )
    assert "Which first? → github" in loop.prompt()
    loop.run()
    assert loop.document["coordination"]["pending_decisions"][0]["status"] == "implemented"


def test_when_nobody_is_to_be_asked_the_first_option_is_taken_and_said_so(tmp_path):
    loop = Loop(tmp_path, {"ra/requirements.md": ASKING}, {"auto": True})
    loop.run()
    decision = loop.document["coordination"]["pending_decisions"][0]
    assert (decision["chosen_option"], decision["made_by"]) == ("google", "auto")
    assert loop.document["status"] == "completed"


def test_a_blocker_of_the_user_holds_everything_in_every_mode(tmp_path):
    for auto in (False, True):
        loop = until(Loop(tmp_path / str(auto), {}, {"auto": auto}), "cd/TASK-001.md")
        loop.carry([loop.state.edit(loop.tick(), transitions.add_blocker("B-1", "no access", "user"))])
        assert [type(a) for a in loop.due()] == [Decide]
        loop.carry([loop.state.edit(loop.tick(), transitions.settle_blocker("B-1", "resolved", "given"))])
        loop.run()
        assert loop.document["status"] == "completed"


def conflict(loop: Loop, *files: str) -> Outcome:
    at = loop.tick()
    return Outcome(
        Ended.CONFLICT,
        text="Done.\n\n" + block("cd"),
        error="the edit does not go on top",
        conflicts=files,
        commit="d" * 40,
        changed=files,
        started_at=at,
        finished_at=at,
    )


def test_a_merge_conflict_is_a_blocker_with_the_files_and_the_kept_commit(tmp_path):
    loop = Loop(tmp_path, {"plan.json": plan_reply(*TWO)})
    loop.script["cd/TASK-001.md"] = lambda *_: conflict(loop, "a.py", "b.py")
    loop.run()
    (blocker,) = loop.document["coordination"]["blockers"]
    assert (blocker["id"], blocker["status"], blocker["reported_by"]) == ("B-1-TASK-001", "open", "cd")
    for words in ("TASK-001", "a.py, b.py", "d" * 40):
        assert words in blocker["description"]
    assert [t["status"] for t in loop.document["plan"]["tasks"]] == ["blocked", "completed"], (
        "the other went on"
    )
    (question,) = loop.due()
    assert isinstance(question, Decide)


def test_a_resolved_conflict_is_worked_on_again_on_top_of_the_others(tmp_path):
    loop = Loop(tmp_path, {"plan.json": plan_reply(*TWO)})
    loop.script["cd/TASK-001.md"] = lambda *_: conflict(loop, "a.py")
    loop.run()
    loop.carry(
        [loop.state.edit(loop.tick(), transitions.settle_blocker("B-1-TASK-001", "resolved", "keep both"))]
    )
    (again,) = loop.due()
    assert again.path.endswith("cd/TASK-001.try-2.md")
    other = json.loads((loop.folder / ".rondel/parts/iteration-1/cd/changes/TASK-002.json").read_text())
    assert again.workspace.base == other["commit"]
    prompt = loop.prompt(again)
    assert "keep both" in prompt
    assert "d" * 40 in prompt
    loop.run()
    assert loop.document["status"] == "completed"
    assert {t["status"] for t in loop.document["plan"]["tasks"]} == {"completed"}


def test_a_conflict_that_a_person_went_round_is_not_worked_on_again(tmp_path):
    loop = Loop(tmp_path, {"plan.json": plan_reply(*TWO)})
    loop.script["cd/TASK-001.md"] = lambda *_: conflict(loop, "a.py")
    loop.run()
    loop.carry(
        [loop.state.edit(loop.tick(), transitions.settle_blocker("B-1-TASK-001", "workaround", "by hand"))]
    )
    loop.run()
    assert loop.document["status"] == "completed"
    assert not any("try-2" in path for path in loop.done)


def test_when_nobody_is_asked_a_conflict_becomes_an_issue_of_the_next_iteration(tmp_path):
    loop = Loop(tmp_path, {"iteration-1/ep/plan.json": plan_reply(*TWO)}, {"auto": True})
    loop.script["iteration-1/cd/TASK-001.md"] = lambda *_: conflict(loop, "a.py")
    loop.run()
    assert loop.document["status"] == "completed"
    assert loop.document["current_iteration"] == 2
    assert "a.py" in loop.document["iterations"][0]["issues_found"][0]
    (blocker,) = loop.document["coordination"]["blockers"]
    assert (blocker["status"], blocker["resolution"]) == ("workaround", "handed to iteration 2 as feedback")


def test_what_depends_on_a_blocked_task_is_not_worked_on(tmp_path):
    loop = Loop(tmp_path, {"plan.json": plan_reply(*CHAIN)}, {"auto": True, "max_iterations": 1})
    loop.script["cd/A.md"] = lambda *_: conflict(loop, "a.py")
    loop.run()
    assert {t["id"]: t["status"] for t in loop.document["plan"]["tasks"]} == {
        "A": "blocked",
        "B": "completed",
        "C": "blocked",
    }
    assert not any("cd/C" in path for path in loop.done)


def test_a_blocker_of_an_agent_holds_what_comes_after_it(tmp_path):
    reply = EP.replace("- summary: done", "- summary: done\n- blockers: [no access to staging]")
    loop = Loop(tmp_path, {"ep/exploration.md": reply})
    loop.run()
    (question,) = loop.due()
    assert isinstance(question, Decide)
    assert "no access to staging" in question.question
    assert loop.document["coordination"]["blockers"][0]["reported_by"] == "ep"


def developer(**fields: str) -> str:
    return "Done.\n\n" + block("cd", **fields)


def test_the_developers_questions_and_blockers_wait_for_a_person_and_leave_the_plan_alone(tmp_path):
    reply = developer(blockers="[no key]", decisions="[Which sign? (minus | dash)]")
    loop = Loop(tmp_path, {"cd/TASK-001.md": reply})
    loop.run()
    assert [b["id"] for b in loop.document["coordination"]["blockers"]] == ["B-1-cd-TASK_001.1"]
    assert [d["id"] for d in loop.document["coordination"]["pending_decisions"]] == ["D-1-cd-TASK_001.1"]
    assert {type(a) for a in loop.due()} == {Decide}
    plan = json.loads((loop.folder / "ep/plan.json").read_text())
    assert set(plan) == {"version", "tasks", "total_estimated_effort", "critical_path", "last_updated"}


def test_a_second_try_raises_its_own_blockers(tmp_path):
    loop = Loop(tmp_path, {"cd/TASK-001.try-2.md": developer(blockers="[the second]")})

    def first(*_):
        return replace(conflict(loop, "a.py"), text=developer(blockers="[the first]"))

    loop.script["cd/TASK-001.md"] = first
    loop.run()
    for blocker in loop.state.open_blockers:
        loop.carry([loop.state.edit(loop.tick(), transitions.settle_blocker(blocker.id, "resolved", "so"))])
    loop.run()
    assert [b.description for b in loop.state.open_blockers] == ["the second"]


def test_what_a_rejected_report_asks_for_is_not_raised(tmp_path):
    loop = Loop(tmp_path)

    def rejected(*_):
        at = loop.tick()
        text = developer(blockers="[no key]").replace("phase: cd", "phase: ra")
        return Outcome(Ended.REJECTED, text=text, error="another's phase", started_at=at, finished_at=at)

    loop.script["cd/TASK-001.md"] = rejected
    loop.run()
    assert loop.document["status"] == "failed"
    assert loop.document["coordination"]["blockers"] == []


def test_what_the_developer_remarks_on_finished_work_is_logged_and_holds_nothing_up(tmp_path):
    reply = developer(issues="[ra: is a token valid for an hour?, the module is large]")
    loop = Loop(tmp_path, {"cd/TASK-001.md": reply})
    loop.run()
    assert loop.document["status"] == "completed"
    said = [(e["source"], e["target"], e["content"]) for e in loop.document["coordination"]["feedback_log"]]
    assert said == [("cd", "ra", "is a token valid for an hour?"), ("cd", "vas", "the module is large")]


@pytest.mark.parametrize("name", ["tip", "changes", "failed", "TASK-1_2"])
def test_a_task_may_have_any_allowed_id_without_meeting_a_file_of_the_engine(tmp_path, name):
    loop = Loop(tmp_path, {"ep/plan.json": plan_reply({"id": name, "description": "write it"})})
    loop.run()
    assert loop.document["status"] == "completed"
    assert loop.document["test_results"]["total_tests"] == 1


def test_parts_that_somebody_changed_to_other_types_never_stop_a_cycle(tmp_path):
    loop = until(Loop(tmp_path), "vas/validation.md")
    parts = loop.folder / ".rondel/parts/iteration-1"
    result = json.loads((parts / "cd/TASK-001.json").read_text())
    (parts / "cd/TASK-001.json").write_text(json.dumps(result | {"issues": None, "status": "partial"}))
    (parts / "vas/tests.json").write_text(json.dumps({"failures": None}))
    loop.run()
    assert loop.document["status"] == "completed"


# -- failures -------------------------------------------------------------------------------------


def nothing(loop: Loop, words: str = "no answer") -> Outcome:
    at = loop.tick()
    return Outcome(Ended.FAILED, error=words, started_at=at, finished_at=at)


@pytest.mark.parametrize(
    "path", ["ra/requirements.md", "ep/exploration.md", "ep/plan.json", "vas/validation.md"]
)
def test_an_agent_that_gives_no_answer_fails_the_cycle_and_a_retry_asks_again(tmp_path, path):
    loop = Loop(tmp_path)
    loop.script[path] = lambda *_: nothing(loop)
    loop.run()
    agent = path.partition("/")[0]
    document = loop.document
    assert document["status"] == "failed"
    assert document["failure_reason"] == f"{agent} failed in iteration 1: no answer"
    assert document["agents"][agent]["status"] == "failed"
    assert document["agents"][agent]["error"] == "no answer"
    assert [(e["phase"], e["error"]) for e in document["phase_errors"]] == [(agent, "no answer")]
    loop.carry(loop.workflow.control(loop.state, "resume", loop.tick()))
    assert loop.due() == [], "a plain resume leaves a failure a failure"
    loop.script.clear()
    loop.carry(loop.workflow.control(loop.state, "retry", loop.tick()))
    loop.run()
    assert loop.document["status"] == "completed"


def test_a_task_without_an_answer_is_an_issue_and_no_answer_at_all_a_failure(tmp_path):
    loop = Loop(tmp_path / "one", {"iteration-1/ep/plan.json": plan_reply(*TWO)})
    loop.script["iteration-1/cd/TASK-001.md"] = lambda *_: nothing(loop)
    loop.run()
    assert loop.document["status"] == "completed"
    assert loop.document["iterations"][0]["issues_found"] == ["TASK-001 failed: no answer"]
    loop = Loop(tmp_path / "all", {"iteration-1/ep/plan.json": plan_reply(*TWO)})
    loop.script["cd/TASK"] = lambda *_: nothing(loop)
    loop.run()
    assert loop.document["status"] == "failed"
    assert loop.document["current_iteration"] == 1, "no second iteration is paid for"
    loop.script.clear()
    loop.carry(loop.workflow.control(loop.state, "retry", loop.tick()))
    loop.run()
    assert loop.document["status"] == "completed"


def test_an_edit_whose_report_was_lost_with_its_driver_counts(tmp_path):
    loop = Loop(tmp_path)

    def found(*_):
        at = loop.tick()
        return Outcome(Ended.DONE, commit="e" * 40, changed=("a.py",), started_at=at, finished_at=at)

    loop.script["cd/TASK-001.md"] = found
    loop.run()
    assert loop.document["status"] == "completed"
    assert "e" * 40 in (loop.folder / ".rondel/parts/iteration-1/cd/TASK-001.md").read_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no block at all", "no PHASE_RESULT block"),
        (block("cd"), "says phase 'cd'; yours is 'ra'"),
        ("x\n" + block("ra", "success | failed | partial"), "choose one of: success, failed, partial"),
        ("x\n" + block("ra", "done"), "says status 'done'"),
        (block("ra"), "nothing but the PHASE_RESULT block"),
    ],
)
def test_an_answer_that_cannot_be_used_is_sent_back_with_words_to_act_on(tmp_path, text, words):
    loop = Loop(tmp_path)
    loop.step()
    step = loop.planned(loop.due()[0])
    assert words in str(step.check(loop.state, text))
    assert step.check(loop.state, RA) is None
    outcome = Outcome(
        Ended.REJECTED, text=text, error="as said", started_at=loop.tick(), finished_at=loop.tick()
    )
    loop.carry(step.write(loop.state, outcome))
    assert loop.document["status"] == "failed", "fail closed"
    assert not (loop.folder / "ra/requirements.md").exists()


# -- people and other tools -----------------------------------------------------------------------


def test_a_persons_edit_of_the_requirements_is_what_the_plan_is_made_from(tmp_path):
    loop = until(Loop(tmp_path, {"iteration-1/vas/tests.json": JUNIT_FAIL}), "ep/plan.json")
    (loop.folder / "ra/requirements.md").write_text("# Requirements\n\n- REQ-007: by hand\n")
    assert "REQ-007: by hand" in loop.prompt()
    until(loop, "iteration-2/ra/requirements.md")
    assert "REQ-007: by hand" in loop.prompt()
    loop.run()
    assert "REQ-007: by hand" in (loop.folder / "ra/history/requirements-v1.0.0.md").read_text()


def test_a_plan_of_somebody_else_that_is_broken_before_it_is_taken_over_is_no_answer(tmp_path):
    loop = Loop(tmp_path)
    theirs = loop.folder / "ep/plan.json"
    theirs.parent.mkdir(exist_ok=True)
    theirs.write_text(json.dumps({"tasks": [{"id": "A", "description": "by hand"}]}))
    until(loop, "ep/plan.json")
    step = loop.planned(loop.due()[0])
    assert isinstance(step.action, Derive)
    theirs.write_text(json.dumps({"tasks": []}))
    outcome = loop.outcome(step.action, loop.tick())
    assert not step.write(loop.state, outcome)
    assert isinstance(loop.due()[0], Ask), "the planner is asked"


def test_a_task_that_a_person_adds_to_the_plan_is_worked_on(tmp_path):
    loop = until(Loop(tmp_path), "cd/TASK-001.md")
    path = loop.folder / "ep/plan.json"
    plan = json.loads(path.read_text())
    plan["tasks"].append({"id": "MINE", "description": "by hand"})
    path.write_text(json.dumps(plan))
    assert [a.path.rpartition("/")[2] for a in loop.due()] == ["TASK-001.md", "MINE.md"]
    path.write_text("{ broken")
    assert [a.path for a in loop.due()] == ["ep/plan.json"], "it is written again, as it was accepted"
    assert "plan-invalid" in {p.rule for p in loop.state.problems}
    loop.run()
    assert [t["id"] for t in json.loads(path.read_text())["tasks"]] == ["TASK-001"]


def test_a_plan_that_a_person_made_unusable_is_theirs_to_correct(tmp_path):
    loop = until(Loop(tmp_path), "cd/TASK-001.md")
    path = loop.folder / "ep/plan.json"
    path.write_text('{"tasks": []}')
    assert [a.path.rpartition("/")[2] for a in loop.due()] == ["TASK-001.md"]
    assert "plan-invalid" in {p.rule for p in loop.state.problems}
    loop.run()
    assert path.read_text() == '{"tasks": []}'


def test_a_cycle_of_another_tool_goes_on_where_it_was(tmp_path):
    loop = until(Loop(tmp_path), "cd/TASK-001.md")
    shutil.rmtree(loop.folder / ".rondel")
    (loop.folder / "coordination/state.ndjson").unlink()
    loop.run()
    assert loop.document["status"] == "completed"
    asked = [p for p in loop.done if p.endswith(".md")]
    assert asked.count(".rondel/parts/iteration-1/ra/requirements.md") == 1, "the analyst is not paid twice"
    assert asked[-2:] == [
        ".rondel/parts/iteration-1/cd/TASK-001.md",
        ".rondel/parts/iteration-1/vas/validation.md",
    ]


@pytest.mark.parametrize("word", ["pause", "stop"])
def test_a_paused_cycle_rests_says_why_and_goes_on(tmp_path, word):
    loop = until(Loop(tmp_path), "cd/TASK-001.md")
    loop.begin(loop.due()[0])
    loop.carry(loop.workflow.control(loop.state, word, loop.tick()))
    assert loop.document["status"] == "paused"
    assert loop.due() == []
    agent = loop.document["agents"]["cd"]
    assert agent["status"] == "waiting"
    assert agent["last_message"].startswith({"pause": "paused", "stop": "stopped"}[word])
    assert loop.workflow.summary(loop.state).status is Status.PAUSED
    loop.carry(loop.workflow.control(loop.state, "resume", loop.tick()))
    loop.run()
    assert loop.document["status"] == "completed"


def test_what_an_agent_that_was_under_way_answers_after_a_pause_is_kept(tmp_path):
    loop = until(Loop(tmp_path), "ep/plan.json")
    ask = loop.due()[0]
    step, started = loop.planned(ask), loop.tick()
    loop.carry(step.begin(loop.state, started))
    loop.carry(loop.workflow.control(loop.state, "pause", loop.tick()))
    loop.carry(step.write(loop.state, loop.outcome(ask, started)))
    assert loop.document["status"] == "paused"
    assert loop.document["plan"]["version"] == "1.0.0"
    loop.carry(loop.workflow.control(loop.state, "resume", loop.tick()))
    assert names(loop) == ["iteration-1/cd/TASK-001.md"]
