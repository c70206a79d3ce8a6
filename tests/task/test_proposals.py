"""Planning by an agent: checked before a file is written, and never trusted."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from task_support import Scripted, project, repository, session, state, statuses, step, task

from rondel.workflows.task.proposing import proposal
from rondel.workflows.task.state import Request as Asked


@pytest.fixture
def root(tmp_path):
    return repository(tmp_path / "repo")


def fenced(value: object) -> str:
    return f"Here it is.\n\n```json\n{json.dumps(value)}\n```\n"


def ask(root, ref, answers, **request):
    texts = iter(answers)
    here = project(root, Scripted(lambda _: next(texts)))
    here.ask_for(ref, request)
    return here.run(ref)


def load(root, ref, task_id: str) -> dict:
    return json.loads((root / ref.folder / f".task/{task_id}.json").read_text())


def test_a_plan_becomes_task_files_of_the_documents_schema(root):
    ref = session(root, [])
    answer = fenced(
        [
            {
                "id": "IMPL-1",
                "title": "Design it",
                "context": {"focus_paths": ["docs"], "requirements": ["a"]},
            },
            {"title": "Build it", "depends_on": ["IMPL-1"], "focus_paths": ["src"], "type": "refactor"},
        ]
    )
    assert ask(root, ref, [answer], kind="plan", text="Do it").exit_code == 0
    assert statuses(root, ref) == {"IMPL-1": "pending", "IMPL-2": "pending"}
    assert load(root, ref, "IMPL-1")["meta"] == {"type": "feature", "agent": "planning-agent"}
    assert load(root, ref, "IMPL-2")["context"]["depends_on"] == ["IMPL-1"]
    assert project(root).state(ref).violations == ()
    assert "**IMPL-2**" in (root / ref.folder / "TODO_LIST.md").read_text()


def test_a_plan_with_subtasks_gives_containers_and_what_they_inherit(root):
    ref = session(root, [])
    answer = fenced(
        [{"id": "IMPL-1", "title": "Group", "requirements": ["r"]}, {"id": "IMPL-1.1", "title": "Part"}]
    )
    assert ask(root, ref, [answer], kind="plan", text="x").exit_code == 0
    assert statuses(root, ref) == {"IMPL-1": "container", "IMPL-1.1": "pending"}
    assert load(root, ref, "IMPL-1.1")["context"]["inherited"] == {
        "from": "IMPL-1",
        "context": ["Group", "r"],
    }


BAD = [
    "no json at all",
    fenced({"not": "a list"}),
    fenced([]),
    fenced([{"title": ""}]),
    fenced([{"title": "x", "id": "../../evil"}]),
    fenced([{"title": "x", "id": "IMPL-1.1.1"}]),
    fenced([{"title": "x", "id": "IMPL-7"}]),
    fenced([{"title": "x", "depends_on": ["IMPL-99"]}]),
    fenced([{"title": "x", "focus_paths": ["../up"]}]),
    fenced([{"title": "x", "focus_paths": ["src/**"]}]),
    fenced(
        [
            {"title": "a", "id": "IMPL-8", "depends_on": ["IMPL-9"]},
            {"title": "b", "id": "IMPL-9", "depends_on": ["IMPL-8"]},
        ]
    ),
    fenced([{"title": "x", "flow_control": {"pre_analysis": [{"step": "s"}]}}]),
    fenced([{"title": "x", "flow_control": {"pre_analysis": [step("bash(echo [nobody])")]}}]),
    fenced([{"title": "x"}] * 201),
]


@pytest.mark.parametrize("answer", BAD)
def test_a_bad_plan_is_sent_back_once_with_what_is_wrong_and_writes_nothing(root, answer):
    ref = session(root, [task("IMPL-7")])
    agent = Scripted(lambda _: answer)
    here = project(root, agent)
    here.ask_for(ref, {"kind": "plan", "text": "x"})
    assert here.run(ref).exit_code == 1
    assert "cannot be used" in agent.seen[1].prompt
    assert statuses(root, ref) == {"IMPL-7": "pending"}


def test_a_plan_that_is_mended_after_one_complaint_is_taken(root):
    ref = session(root, [])
    assert ask(root, ref, ["nothing", fenced([{"title": "x"}])], kind="plan", text="x").exit_code == 0
    assert statuses(root, ref) == {"IMPL-1": "pending"}


def test_the_planner_cannot_mark_its_tasks_as_done_or_give_them_permissions(root):
    ref = session(root, [])
    entry = {
        "title": "x",
        "status": "completed",
        "flow_control": {"pre_analysis": [step("bash(touch PWNED)")]},
    }
    ask(root, ref, [fenced([entry])], kind="plan", text="x")
    assert statuses(root, ref) == {"IMPL-1": "pending"}
    here = project(root)
    here.ask_for(ref, {"kind": "run", "target": "main"})
    assert here.run(ref).exit_code == 3


def test_a_breakdown_fills_inherited_and_shared_context_from_the_parent(root):
    parent = task(
        "IMPL-2",
        "Auth",
        requirements=["JWT"],
        shared_context={"strategy": "JWT"},
        inherited={"from": "IMPL-0", "context": ["designed"]},
    )
    ref = session(root, [task("IMPL-1"), parent])
    answer = fenced([{"title": "Tokens"}, {"title": "Login", "depends_on": ["IMPL-2.1"]}])
    assert ask(root, ref, [answer], kind="breakdown", task_id="IMPL-2").exit_code == 0
    assert statuses(root, ref) == {
        "IMPL-1": "pending",
        "IMPL-2": "container",
        "IMPL-2.1": "pending",
        "IMPL-2.2": "pending",
    }
    context = load(root, ref, "IMPL-2.1")["context"]
    assert context["parent"] == "IMPL-2"
    assert context["inherited"] == {"from": "IMPL-2", "context": ["Auth", "JWT", "designed"]}
    assert context["shared_context"] == {"strategy": "JWT"}
    assert load(root, ref, "IMPL-2.2")["context"]["depends_on"] == ["IMPL-2.1"]


@pytest.mark.parametrize("name", ["IMPL-1.1", "IMPL-001.1"])
def test_a_plan_makes_no_subtasks_of_a_task_that_is_there(name):
    entry = {"id": name, "title": "Part"}
    found = proposal(state([task("IMPL-1", status="completed")]), Asked(kind="plan"), fenced([entry]))
    assert "would be a subtask of IMPL-1, which is there already" in found.error
    assert "IMPL-2" in found.error


def test_a_parent_that_the_planner_makes_up_is_not_taken():
    entry = {"id": "IMPL-5", "title": "x", "context": {"parent": "IMPL-1", "inherited": {"from": "IMPL-1"}}}
    found = proposal(state([task("IMPL-1", status="completed")]), Asked(kind="plan"), fenced([entry]))
    assert set(found.tasks["IMPL-5"]["context"]) == {
        "requirements",
        "focus_paths",
        "acceptance",
        "depends_on",
    }


def test_a_task_inside_a_wrapper_becomes_a_container_inside_it(root):
    ref = session(root, [])
    body = {"task": task("IMPL-1"), "workflow": {"session": ref.id}}
    (root / ref.folder / ".task/IMPL-1.json").write_text(json.dumps(body))
    answer = fenced([{"title": "Part"}])
    assert ask(root, ref, [answer], kind="breakdown", task_id="IMPL-1", text="").exit_code == 0
    assert load(root, ref, "IMPL-1")["task"]["status"] == "container"
    assert "status" not in load(root, ref, "IMPL-1")


def test_a_breakdown_makes_subtasks_of_its_task_and_of_no_other(root):
    ref = session(root, [task("IMPL-1"), task("IMPL-2")])
    answers = [fenced([{"id": "IMPL-1.1", "title": "x"}])] * 4
    assert ask(root, ref, answers, kind="breakdown", task_id="IMPL-2").exit_code == 1
    assert statuses(root, ref) == {"IMPL-1": "pending", "IMPL-2": "pending"}


def test_a_replan_replaces_the_definition_keeps_the_old_one_and_makes_it_due(root):
    old = task("IMPL-1", "Old", shared_context={"kept": "yes"})
    old["extra"] = 1
    ref = session(root, [old])
    here = project(root)
    here.ask_for(ref, {"kind": "run", "target": "main"})
    assert here.run(ref).exit_code == 0
    before = (root / ref.folder / ".task/IMPL-1.json").read_bytes()
    answer = fenced({"title": "New", "requirements": ["better"]})
    assert ask(root, ref, [answer], kind="replan", task_id="IMPL-1", text="better").exit_code == 0
    new = load(root, ref, "IMPL-1")
    assert (new["title"], new["status"], new["extra"]) == ("New", "pending", 1)
    assert new["context"]["shared_context"] == {"kept": "yes"}
    assert (root / ref.folder / ".rondel/parts/replaced/1-IMPL-1-summary.md").exists()
    assert (root / ref.folder / ".rondel/aside/.task__IMPL-1.json.replaced-1").read_bytes() == before
    agent = Scripted()
    again = project(root, agent)
    again.ask_for(ref, {"kind": "run", "target": "main"})
    assert again.run(ref).exit_code == 0
    assert len(agent.seen) == 1
    assert statuses(root, ref) == {"IMPL-1": "completed"}


@given(st.text(max_size=300))
def test_whatever_a_planner_answers_checking_never_raises(text):
    proposal(state([task("IMPL-1")]), Asked(kind="plan"), text)


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["id", "title", "meta", "context", "flow_control", "x"]), inner, max_size=4
        )
    ),
    max_leaves=10,
)


@given(JSON, st.sampled_from(["plan", "breakdown", "replan"]))
def test_whatever_json_a_planner_answers_what_is_taken_is_valid(value, kind):
    asked = {".rondel/request-1.json": json.dumps({"kind": kind, "task_id": "IMPL-1"})}
    before = state([task("IMPL-1")], asked)
    found = proposal(before, before.request, fenced(value))
    if not found.error:
        bodies = {"IMPL-1": task("IMPL-1"), **found.tasks}
        assert state(list(bodies.values())).violations == ()
