"""Dependencies: what may run when, and that following one change gives what reading everything gives."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st
from task_support import snapshot, state, step, task

from rondel.model.actions import Ask, Derive
from rondel.model.outcomes import Ended, Outcome
from rondel.model.snapshot import FrozenSnapshot
from rondel.workflows.task import graph, read
from rondel.workflows.task.schema import TaskStatus
from rondel.workflows.task.workflow import TaskWorkflow


def due(tasks: list[dict], extra: dict | None = None) -> list[str]:
    return [
        a.title.split(":")[0]
        for a in TaskWorkflow().plan(state(tasks, extra, run=True))
        if isinstance(a, Ask)
    ]


def test_a_step_writes_into_its_task_as_that_is_now_and_nothing_where_it_is_gone():
    before = state([task("IMPL-1"), task("IMPL-2", steps=[step("bash(true)")])], run=True)
    allowed = replace(before, allowed=_Everything())
    work, run = (found for found in TaskWorkflow().steps(allowed) if not isinstance(found.action, Derive))
    done = Outcome(Ended.DONE, text="It is done.", exit_code=0)
    for found in (work, run):
        assert found.write(before, done)
        assert found.begin(before, datetime.now(UTC))
        gone = state([], run=True)
        assert (*found.write(gone, done), *found.begin(gone, datetime.now(UTC))) == ()
    shorter = state([task("IMPL-1"), task("IMPL-2")], run=True)
    assert list(run.write(shorter, done)) == []


class _Everything:
    def __contains__(self, _: object) -> bool:
        return True


def test_what_waits_for_nothing_is_due_together():
    assert due([task("IMPL-1"), task("IMPL-2"), task("IMPL-3", depends_on=["IMPL-1"])]) == [
        "IMPL-1",
        "IMPL-2",
    ]


def test_the_task_with_the_longest_chain_behind_it_comes_first():
    tasks = [
        task("IMPL-1"),
        task("IMPL-2"),
        task("IMPL-3", depends_on=["IMPL-2"]),
        task("IMPL-4", depends_on=["IMPL-3"]),
    ]
    assert due(tasks) == ["IMPL-2", "IMPL-1"]


def test_a_container_is_never_run_and_its_subtasks_are():
    assert due([task("IMPL-1", status="container"), task("IMPL-1.1"), task("IMPL-1.2")]) == [
        "IMPL-1.1",
        "IMPL-1.2",
    ]


def test_a_parent_that_does_not_say_so_is_a_container_all_the_same():
    assert due([task("IMPL-1"), task("IMPL-1.1")]) == ["IMPL-1.1"]


def test_a_dependency_on_a_parent_means_all_its_subtasks():
    tasks = [
        task("IMPL-1", status="container"),
        task("IMPL-1.1", status="completed"),
        task("IMPL-1.2"),
        task("IMPL-2", depends_on=["IMPL-1"]),
    ]
    assert due(tasks) == ["IMPL-1.2"]


def test_a_subtask_waits_for_what_its_parent_waits_for():
    tasks = [task("IMPL-1"), task("IMPL-2", status="container", depends_on=["IMPL-1"]), task("IMPL-2.1")]
    assert due(tasks) == ["IMPL-1"]


def test_tasks_in_the_same_places_are_not_due_together():
    tasks = [
        task("IMPL-1", focus_paths=["src/auth"]),
        task("IMPL-2", focus_paths=["src/auth/login.ts"]),
        task("IMPL-3", focus_paths=["src/authors"]),
        task("IMPL-4", focus_paths=["docs", "src"]),
    ]
    assert due(tasks) == ["IMPL-1", "IMPL-3"]


def test_a_task_under_way_holds_its_places():
    assert due([task("IMPL-1", focus_paths=["a"]), task("IMPL-2", focus_paths=["a/b"], status="active")]) == [
        "IMPL-2"
    ]


def test_the_whole_project_is_a_place():
    assert due([task("IMPL-1", focus_paths=["."]), task("IMPL-2", focus_paths=["x"]), task("IMPL-3")]) == [
        "IMPL-1",
        "IMPL-3",
    ]


def test_a_parents_status_is_derived():
    def derived(*words: str) -> str:
        subs = [task(f"IMPL-1.{n}", status=w) for n, w in enumerate(words, start=1)]
        found = state([task("IMPL-1", status="container"), *subs])
        return graph.derived_status(found.graph, found.tasks, "IMPL-1")

    assert derived("completed", "completed") == "completed"
    assert derived("completed", "active", "blocked") == "active"
    assert derived("completed", "blocked") == "blocked"
    assert derived("pending", "blocked") == "pending"
    assert derived("completed", "pending") == "pending"


def test_a_parent_is_blocked_when_what_is_left_waits_for_a_blocked_one():
    tasks = [
        task("IMPL-1", status="container"),
        task("IMPL-1.1", status="blocked"),
        task("IMPL-1.2", depends_on=["IMPL-1.1"]),
    ]
    found = state(tasks)
    assert graph.derived_status(found.graph, found.tasks, "IMPL-1") == "blocked"


WORDS = [s for s in TaskStatus if s is not TaskStatus.CONTAINER]


@settings(max_examples=200, deadline=None)
@given(
    edges=st.lists(st.tuples(st.integers(2, 9), st.integers(1, 8)), max_size=16),
    moves=st.lists(st.tuples(st.integers(1, 9), st.sampled_from(WORDS)), max_size=12),
)
def test_following_each_change_shows_what_reading_everything_shows(edges, moves):
    bodies = {
        f"IMPL-{n}": task(f"IMPL-{n}", depends_on=sorted({f"IMPL-{b}" for a, b in edges if a == n and b < n}))
        for n in range(1, 10)
    }
    followed = state(list(bodies.values()), run=True)
    for number, word in moves:
        name = f"IMPL-{number}"
        bodies[name] = {**bodies[name], "status": str(word)}
        files = snapshot(list(bodies.values()), {".rondel/request-1.json": json.dumps({"kind": "run"})})
        followed = read.reread(followed, files, [f".task/{name}.json"])
        whole = read.read(files, followed.ref)
        assert followed.frontier == whole.frontier
        assert followed.tasks == whole.tasks
        assert followed.claims == whole.claims


def test_any_other_change_of_a_task_is_read_whole():
    first = state([task("IMPL-1"), task("IMPL-2")], run=True)
    changed = [task("IMPL-1"), task("IMPL-2", depends_on=["IMPL-1"])]
    after = read.reread(first, snapshot(changed), [".task/IMPL-2.json"])
    assert after.graph.needs["IMPL-2"] == {"IMPL-1"}


def test_a_task_whose_file_is_gone_is_gone():
    first = state([task("IMPL-1"), task("IMPL-2")])
    after = read.reread(first, snapshot([task("IMPL-1")]), [".task/IMPL-2.json"])
    assert set(after.tasks) == {"IMPL-1"}
    assert isinstance(after.files, FrozenSnapshot)
