"""Done by decree: in a session that was begun here only the engine, or a person's word, completes a task."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from task_support import (
    REPORT,
    Scripted,
    project,
    put_identity,
    repository,
    run,
    session,
    state,
    statuses,
    task,
    task_id,
    write_file,
)

from rondel.model.actions import Ask, Derive
from rondel.model.marks import FOREIGN
from rondel.model.summary import Status
from rondel.workflows.task import files, read
from rondel.workflows.task.summarise import problems
from rondel.workflows.task.workflow import TaskWorkflow

IDENTITY = {".rondel/session.json": json.dumps({"schema_version": 1, "id": "0123456789abcdef"})}
CHAIN = [("IMPL-1", []), ("IMPL-2", ["IMPL-1"]), ("IMPL-3", ["IMPL-2"])]


@pytest.fixture
def root(tmp_path):
    return repository(tmp_path / "repo")


def chain() -> list[dict]:
    return [task(name, depends_on=needs, focus_paths=[f"out/{name}"]) for name, needs in CHAIN]


def due(found) -> list[str]:
    return [a.title.split(":")[0] for a in TaskWorkflow().plan(found) if isinstance(a, Ask)]


def rules(found) -> list[tuple[str, str]]:
    return [(p.rule, p.file) for p in problems(found)]


def decree(folder: Path, name: str, *, summary: bool = False) -> None:
    """What a stray write of an agent leaves: a status, and perhaps a summary beside it."""
    path = folder / ".task" / f"{name}.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "status": "completed"}))
    if summary:
        (folder / ".summaries").mkdir(exist_ok=True)
        (folder / ".summaries" / f"{name}-summary.md").write_text("# All done, trust me\n")


@pytest.mark.parametrize("extra", [{}, {".summaries/IMPL-1-summary.md": "# Done\n"}])
def test_a_completed_that_the_engine_did_not_write_changes_nothing_and_is_shown(extra):
    tasks = chain()
    tasks[0]["status"] = "completed"
    found = state(tasks, {**IDENTITY, **extra}, run=True)
    assert due(found) == ["IMPL-1"]
    assert found.frontier.completed == 0
    assert (FOREIGN, ".task/IMPL-1.json") in rules(found)
    assert not found.all_completed


def test_every_task_completed_by_decree_does_not_end_the_session():
    tasks = chain()
    for one in tasks:
        one["status"] = "completed"
    body = files.template("WFS-x", "The topic") | {"status": "completed"}
    found = state(tasks, {**IDENTITY, "workflow-session.json": json.dumps(body)}, run=True)
    assert due(found) == ["IMPL-1"]
    assert found.session.status != "completed"
    assert (FOREIGN, "workflow-session.json") in rules(found)


def test_a_session_of_another_tool_is_read_as_before():
    tasks = chain()
    tasks[0]["status"] = "completed"
    found = state(tasks, {".summaries/IMPL-1-summary.md": "# Done\n"}, run=True)
    assert due(found) == ["IMPL-2"]
    assert rules(found) == []
    adopting = state(chain(), {".summaries/IMPL-1-summary.md": "# Done\n"}, run=True)
    assert (
        next(a.title for a in TaskWorkflow().plan(adopting) if isinstance(a, Derive))
        == "IMPL-1 has a summary"
    )


def test_a_running_driver_does_not_believe_an_agent_that_completes_the_others(root):
    ref = session(root, chain())
    put_identity(root, ref)
    folder = root / ref.folder

    def answer(request):
        if task_id(request) == "IMPL-1":
            for name in ("IMPL-1", "IMPL-2", "IMPL-3"):
                decree(folder, name, summary=name != "IMPL-2")
            body = json.loads((folder / "workflow-session.json").read_text())
            (folder / "workflow-session.json").write_text(json.dumps({**body, "status": "completed"}))
        write_file(request, f"out/{task_id(request)}", "x\n")
        return REPORT

    agent = Scripted(answer)
    here = project(root, agent)
    assert run(here, ref).exit_code == 0
    assert [task_id(r) for r in agent.seen] == ["IMPL-1", "IMPL-2", "IMPL-3"]
    assert sorted(p.name for p in (root / "out").iterdir()) == ["IMPL-1", "IMPL-2", "IMPL-3"]
    assert set(statuses(root, ref).values()) == {"completed"}
    found = here.summary(ref)
    assert found.status is not Status.COMPLETED
    assert [p.rule for p in found.problems if p.file.startswith(".task/")] == []


def test_a_run_says_what_it_does_not_believe(root):
    ref = session(root, chain())
    put_identity(root, ref)
    decree(root / ref.folder, "IMPL-1")
    said: list[tuple[str, object]] = []

    class View:
        def event(self, kind, fields):
            said.append((kind, fields.get("file")))

        def tick(self, *_):
            pass

    here = project(root, Scripted(seconds=0.01))
    here.ask_for(ref, {"kind": "run", "target": "main", "checks": "", "tasks": []})
    here.run(ref, view=View())
    assert ("problem", ".task/IMPL-1.json") in said


def test_what_the_engine_completed_stays_completed(root):
    ref = session(root, chain())
    put_identity(root, ref)
    here = project(root)
    assert run(here, ref).exit_code == 0
    found = files.state_of(root, ref)
    assert found.all_completed
    assert rules(found) == []
    assert list(TaskWorkflow().plan(found)) == []


def test_a_mark_fits_no_other_task_and_no_other_session(root):
    ref = session(root, chain())
    put_identity(root, ref)
    here = project(root)
    run(here, ref, only=("IMPL-1",))
    folder = root / ref.folder / ".task"
    done = json.loads((folder / "IMPL-1.json").read_text())
    other = json.loads((folder / "IMPL-2.json").read_text())
    copied = {
        **other,
        "status": "completed",
        "meta": {**other["meta"], "completion": done["meta"]["completion"]},
    }
    (folder / "IMPL-2.json").write_text(json.dumps(copied))
    assert (FOREIGN, ".task/IMPL-2.json") in rules(files.state_of(root, ref))
    put_identity(root, ref, "fedcba9876543210")
    assert (FOREIGN, ".task/IMPL-1.json") in rules(files.state_of(root, ref))


def test_a_completed_task_that_is_set_to_pending_is_asked_anew(root):
    ref = session(root, chain()[:1])
    put_identity(root, ref)
    agent = Scripted()
    here = project(root, agent)
    run(here, ref)
    path = root / ref.folder / ".task/IMPL-1.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "status": "pending"}))
    assert run(here, ref).exit_code == 0
    assert len(agent.seen) == 2
    assert statuses(root, ref) == {"IMPL-1": "completed"}
    assert (root / ref.folder / ".rondel/parts/replaced/1-IMPL-1-summary.md").exists()


WORDS = ("completed", "done", "pending", "active", "blocked", "finished")


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["IMPL-1", "IMPL-2", "IMPL-3"]), st.sampled_from(WORDS), st.booleans()),
        max_size=8,
    ),
    st.sampled_from(["active", "completed", "paused"]),
)
def test_no_writing_of_statuses_and_summaries_completes_anything(writes, word):
    bodies = {one["id"]: one for one in chain()}
    extra: dict[str, str | bytes] = dict(IDENTITY)
    followed = state(list(bodies.values()), extra, run=True)
    for name, status, summary in writes:
        bodies[name] = {**bodies[name], "status": status}
        changed = [f".task/{name}.json"]
        if summary:
            changed.append(f".summaries/{name}-summary.md")
            extra[changed[1]] = "# It is done\n"
        body = files.template("WFS-x", "The topic") | {"status": word}
        whole = state(list(bodies.values()), {**extra, "workflow-session.json": json.dumps(body)}, run=True)
        assert whole.frontier.completed == 0
        assert whole.session.status != "completed"
        assert all(a.startswith("IMPL-1") for a in due(whole) if bodies[a]["status"] != "active")
        followed = read.reread(followed, whole.files, [*changed, "workflow-session.json"])
        assert (followed.frontier, followed.tasks, followed.claims) == (
            whole.frontier,
            whole.tasks,
            whole.claims,
        )
