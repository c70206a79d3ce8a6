"""The integrity rules, each under its name."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from task_support import snapshot, state, step, task

from rondel.model.snapshot import FrozenSnapshot
from rondel.model.summary import Status
from rondel.workflows.task import ids, read
from rondel.workflows.task.graph import can_still_run, cycles
from rondel.workflows.task.validate import RULES
from rondel.workflows.task.workflow import TaskWorkflow


def rules(tasks: list[dict], extra: dict | None = None) -> set[str]:
    return {f.rule for f in state(tasks, extra).violations}


def without(body: dict, name: str) -> dict:
    return {k: v for k, v in body.items() if k != name}


GROUP = [task("IMPL-1", status="container", depends_on=["IMPL-2"]), task("IMPL-1.1", parent="IMPL-1")]
KNOTS = {
    "through a group": ([*GROUP, task("IMPL-2", depends_on=["IMPL-1"])], "IMPL-1 → IMPL-2 → IMPL-1 wait"),
    "of a group and its subtask": (
        [task("IMPL-1", status="container", depends_on=["IMPL-1.1"]), task("IMPL-1.1", parent="IMPL-1")],
        "IMPL-1 → IMPL-1.1 → IMPL-1 wait",
    ),
}


@pytest.mark.parametrize(("tasks", "words"), KNOTS.values(), ids=KNOTS.keys())
def test_a_cycle_with_a_group_in_it_is_named_with_the_group_and_stops_its_leaves(tasks, words):
    found = state(tasks, run=True)
    assert any(words in f.message for f in found.violations if f.rule == "depends-on-cycle")
    assert found.unusable
    assert set(found.unusable) <= set(found.graph.leaves)
    assert not any(can_still_run(found.graph, found.tasks, leaf) for leaf in found.graph.leaves)
    assert TaskWorkflow().summary(found).status is Status.FAILED


def test_a_session_as_the_document_writes_it_breaks_no_rule():
    assert (
        rules([task("IMPL-1"), task("IMPL-2", depends_on=["IMPL-1"], focus_paths=["src/auth", "a.json"])])
        == set()
    )


def test_the_rules_have_the_names_that_programs_rely_on():
    assert RULES == (
        "id-unique",
        "id-format",
        "parent-exists",
        "depth",
        "status",
        "required-fields",
        "focus-paths",
        "flow-control",
        "depends-on-exists",
        "depends-on-cycle",
    )


def test_two_files_with_one_id_are_reported():
    extra = {".task/IMPL-7.json": json.dumps(task("IMPL-1"))}
    assert "id-unique" in rules([task("IMPL-1")], extra)


def test_an_id_with_and_without_zeros_is_one_task():
    assert "id-unique" in rules([task("IMPL-1"), task("IMPL-001")])


@pytest.mark.parametrize("bad", ["TASK-1", "IMPL-", "IMPL-x", "impl-1", "IMPL-1.", "IMPL 1"])
def test_an_id_of_another_form_is_reported(bad):
    assert "id-format" in rules([task(bad)])


@pytest.mark.parametrize("good", ["IMPL-1", "IMPL-001", "IMPL-12.34"])
def test_an_id_of_the_form_is_not_reported(good):
    above = [task("IMPL-12", status="container")] if "." in good else []
    assert "id-format" not in rules([*above, task(good)])


def test_a_parent_without_a_file_is_reported():
    assert "parent-exists" in rules([task("IMPL-1.1")])
    assert "parent-exists" in rules([task("IMPL-1", parent="IMPL-9")])


def test_a_third_level_is_reported_and_never_runs():
    found = state([task("IMPL-1", status="container"), task("IMPL-1.1"), task("IMPL-1.1.1")], run=True)
    assert "depth" in {f.rule for f in found.violations}
    assert "IMPL-1.1.1" in found.unusable


@pytest.mark.parametrize("word", ["in_progress", "done", "pending|active", "", 3])
def test_a_status_outside_the_enumeration_is_reported(word):
    assert "status" in rules([task("IMPL-1", status=word)])


@pytest.mark.parametrize("name", ["id", "title", "status", "meta", "context", "flow_control"])
def test_each_of_the_six_fields_is_required(name):
    extra = {".task/IMPL-1.json": json.dumps(without(task("IMPL-1"), name))}
    assert "required-fields" in rules([], extra)


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "../x",
        "a/../b",
        "src/*.py",
        "src/**",
        "a?b",
        "[ab]",
        "{a,b}",
        "./src",
        "C:/x",
        "a\\b",
        "",
        3,
    ],
)
def test_a_path_that_is_none_of_the_project_is_reported(path):
    assert "focus-paths" in rules([task("IMPL-1", focus_paths=[path])])


def test_focus_paths_that_are_no_list_are_reported():
    assert "focus-paths" in rules([task("IMPL-1", focus_paths="src")])


@pytest.mark.parametrize(
    "steps",
    [
        "a text",
        ["a text"],
        [{"action": "x", "command": "bash(true)"}],
        [{"step": "x", "command": "bash(true)"}],
        [{"step": "x", "action": "x"}],
        [step("bash(true)", on_error="explode")],
        [step("bash(true)", success_criteria="shiny")],
        [step("bash(echo [nobody])")],
        [step("bash([title])")],
        [step("bash(true)", output_to="not a name")],
    ],
)
def test_steps_that_are_not_as_they_must_be_are_reported(steps):
    assert "flow-control" in rules([task("IMPL-1", steps=steps)])


def test_a_dependency_without_a_file_is_reported_and_the_task_waits():
    found = state([task("IMPL-1", depends_on=["IMPL-9"])], run=True)
    assert [f.rule for f in found.violations] == ["depends-on-exists"]
    assert found.frontier.ready == ()


def test_a_dependency_may_be_written_with_other_zeros():
    found = state([task("IMPL-001"), task("IMPL-002", depends_on=["IMPL-1"])])
    assert found.violations == ()
    assert found.graph.needs["IMPL-002"] == {"IMPL-001"}


def test_a_cycle_is_named_in_full():
    tasks = [task(f"IMPL-{n}", depends_on=[f"IMPL-{n % 3 + 1}"]) for n in (1, 2, 3)]
    [found] = [f for f in state(tasks).violations if f.rule == "depends-on-cycle"]
    assert found.message.startswith("IMPL-1 → IMPL-2 → IMPL-3 → IMPL-1 ")


def test_a_task_that_waits_for_itself_is_a_cycle():
    [found] = [
        f for f in state([task("IMPL-1", depends_on=["IMPL-1"])]).violations if f.rule == "depends-on-cycle"
    ]
    assert found.message.startswith("IMPL-1 → IMPL-1 ")


def test_a_subtask_that_waits_for_its_own_parent_is_a_cycle():
    tasks = [task("IMPL-1", status="container"), task("IMPL-1.1", depends_on=["IMPL-1"])]
    assert "depends-on-cycle" in rules(tasks)


@given(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), max_size=20))
def test_every_task_on_a_cycle_is_named_and_no_other_is(edges):
    wanted: dict[int, list[str]] = {n: [] for n in range(1, 9)}
    for a, b in edges:
        wanted[a].append(f"IMPL-{b}")
    tasks = [task(f"IMPL-{n}", depends_on=list(dict.fromkeys(d))) for n, d in wanted.items()]
    reach = {a: {b for b in range(1, 9) if f"IMPL-{b}" in wanted[a]} for a in wanted}
    for _ in range(8):
        reach = {a: r | {c for b in r for c in reach[b]} for a, r in reach.items()}
    on_a_cycle = {f"IMPL-{a}" for a in reach if a in reach[a]}
    found = [f.message for f in state(tasks).violations if f.rule == "depends-on-cycle"]
    named = {word for words in found for word in words.split() if word.startswith("IMPL-")}
    assert named == on_a_cycle


@given(st.dictionaries(st.text(max_size=8), st.binary(max_size=60), max_size=5))
def test_whatever_lies_in_the_folder_reading_never_raises(junk):
    found = {f".task/{name.replace('/', '')}.json": data for name, data in junk.items()}
    read.read(FrozenSnapshot(found), read.ref_of("WFS-x"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("id", "title", "status", "meta", "context", "flow_control", "task", "relations"), JSON
        ),
    ),
    st.sampled_from(["pre_analysis", "implementation_approach", "target_files"]),
    JSON,
)
def test_whatever_a_task_file_holds_reading_never_raises(body, name, value):
    body = {**body, "flow_control": {name: value}} if len(body) % 2 else body
    read.read(FrozenSnapshot({".task/IMPL-1.json": json.dumps(body)}), read.ref_of("WFS-x"))


@given(st.lists(st.tuples(st.integers(1, 30), st.none() | st.integers(1, 9)), max_size=12))
def test_a_new_id_is_never_one_that_is_there(numbers):
    there = {f"IMPL-{n}" if m is None else f"IMPL-{n}.{m}" for n, m in numbers}
    assert ids.next_main(there) not in there
    assert ids.next_sub("IMPL-3", there) not in there


def test_files_that_are_no_json_are_named(tmp_path):
    found = read.read(FrozenSnapshot({".task/IMPL-1.json": "{"}), read.ref_of("WFS-x"))
    assert list(found.unread.values()) == [".task/IMPL-1.json"]


def test_the_snapshot_of_the_tests_is_read():
    assert set(state([task("IMPL-1")]).tasks) == {"IMPL-1"}
    assert snapshot([]).exists("workflow-session.json")


@pytest.mark.parametrize("is_knot", [False, True])
def test_thousands_of_tasks_that_depend_on_hundreds_are_looked_through_at_once(is_knot):
    tasks = {f"IMPL-{n}": [f"IMPL-{m}" for m in range(max(1, n - 100), n)] for n in range(1, 2001)}
    if is_knot:
        tasks["IMPL-1"] = ["IMPL-2000"]
    found = state([task(name, depends_on=others) for name, others in tasks.items()])
    began = time.monotonic()
    knots = cycles(found.graph)
    assert time.monotonic() - began < 20
    assert bool(knots) is is_knot
