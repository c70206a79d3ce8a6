"""Sessions: names, markers, switching, pausing, completing, and what doctor mends."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from task_support import project, repository, run, session, statuses, task

from rondel.agents.base import Request
from rondel.errors import UsageError
from rondel.model.names import is_safe_name, slug
from rondel.store import disk
from rondel.testing.faults import killed_at
from rondel.testing.scripted import Scripted
from rondel.workflows.task import files, read
from rondel.workflows.task.state import Complexity
from support.in_the_way import KINDS, is_found, is_untouched, put
from support.repos import git


@pytest.fixture
def root(tmp_path):
    return repository(tmp_path / "repo")


def document(root: Path, name: str) -> dict:
    return json.loads((root / ".workflow" / name / "workflow-session.json").read_text())


def test_a_new_session_has_the_minimal_files_and_a_marker(root):
    ref = files.create(root, "User Auth System", Complexity.MEDIUM)
    assert ref.id == "WFS-user-auth-system"
    folder = root / ref.folder
    assert {p.name for p in folder.iterdir()} - {".rondel"} == {
        "workflow-session.json",
        "IMPL_PLAN.md",
        "TODO_LIST.md",
        ".task",
    }
    assert (root / ".workflow/.active-WFS-user-auth-system").exists()
    assert document(root, ref.id) == {
        "session_id": "WFS-user-auth-system",
        "project": "User Auth System",
        "type": "medium",
        "current_phase": "PLAN",
        "status": "active",
        "progress": {"completed_phases": [], "current_tasks": []},
    }


def test_a_number_is_added_only_on_conflict(root):
    names = [files.create(root, "Payment integration").id for _ in range(3)]
    assert names == [
        "WFS-payment-integration",
        "WFS-payment-integration-002",
        "WFS-payment-integration-003",
    ]


def test_two_who_start_at_once_get_two_sessions(root):
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(files.create(root, "Same").id)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 6
    assert len(files.markers(root)) == 1


@pytest.mark.parametrize(
    "topic", ["用户认证系统", "Система входа", "نظام", "🦊🦊", "a" * 500, "con", "../../etc"]
)
def test_a_topic_in_any_script_gives_a_usable_name(root, topic):
    ref = files.create(root, topic)
    assert is_safe_name(ref.id)
    assert (root / ref.folder).parent == root / ".workflow"
    assert [r.id for r in read.sessions(project(root).files(ref).__class__(root))] == [ref.id]


@given(st.text(min_size=1, max_size=80))
def test_whatever_the_topic_the_name_is_one_safe_segment(topic):
    assert is_safe_name(f"WFS-{slug(topic)}")


def test_starting_another_session_pauses_the_first(root):
    first, second = files.create(root, "One"), files.create(root, "Two")
    assert files.markers(root) == [second.id]
    assert document(root, first.id)["status"] == "paused"
    assert files.active(root) == second.id


def test_switching_is_one_step_between_one_marker_and_another(root, monkeypatch):
    one, two = files.create(root, "One").id, files.create(root, "Two").id
    seen: list[list[str]] = []
    before = disk.point
    monkeypatch.setattr(disk, "point", lambda *_: seen.append(files.markers(root)))
    assert files.switch(root, one) == two
    monkeypatch.setattr(disk, "point", before)
    assert {tuple(names) for names in seen} <= {(one,), (two,)}
    assert files.active(root) == one
    assert (document(root, one)["status"], document(root, two)["status"]) == ("active", "paused")


def test_a_death_anywhere_in_a_switch_leaves_exactly_one_active_session(root):
    one, two = files.create(root, "One").id, files.create(root, "Two").id
    point = 0
    while True:
        point += 1
        files.switch(root, one)
        died = killed_at(point, lambda: files.switch(root, two))
        assert len(files.markers(root)) == 1
        here = project(root)
        active = [r.id for r in here.sessions("task") if here.state(r).is_marked]
        assert active == files.markers(root)
        if not died:
            break
    assert point > 6


def test_many_who_switch_at_once_leave_one_marker(root):
    names = [files.create(root, f"S {n}").id for n in range(4)]
    threads = [threading.Thread(target=files.switch, args=(root, n)) for n in names * 5]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(files.markers(root)) == 1


def test_switching_to_what_is_not_there_says_what_is(root):
    files.create(root, "One")
    with pytest.raises(UsageError, match="WFS-one"):
        files.switch(root, "WFS-nothing")


def test_the_marker_is_the_truth_about_what_is_active(root):
    one = files.create(root, "One")
    files.create(root, "Two")
    (root / ".workflow/.active-WFS-two").rename(root / ".workflow/.active-WFS-one")
    assert files.active(root) == one.id
    assert project(root).summary(project(root).ref("WFS-one")).status == "active"
    assert project(root).summary(project(root).ref("WFS-two")).status == "paused"


def test_pausing_takes_the_marker_away_and_resuming_brings_it_back(root):
    ref = files.create(root, "One")
    files.pause(root, ref.id)
    assert files.markers(root) == []
    assert document(root, ref.id)["status"] == "paused"
    files.switch(root, ref.id)
    assert files.markers(root) == [ref.id]
    assert document(root, ref.id)["status"] == "active"


def test_completing_marks_no_unfinished_task_as_done(root):
    ref = session(root, [task("IMPL-1"), task("IMPL-2", status="active")])
    files.complete(root, ref.id)
    assert statuses(root, ref) == {"IMPL-1": "pending", "IMPL-2": "active"}
    assert document(root, ref.id)["status"] == "completed"
    assert files.markers(root) == []
    assert run(project(root), ref).exit_code == 0
    assert statuses(root, ref) == {"IMPL-1": "pending", "IMPL-2": "active"}


def test_the_phase_is_plan_then_implement_then_review(root):
    ref = session(root, [])
    here = project(root)
    assert here.summary(ref).phase == "PLAN"
    files.add(root, ref, "One")
    assert here.summary(ref).phase == "IMPLEMENT"
    run(here, ref)
    assert here.summary(ref).phase == "REVIEW"
    body = document(root, ref.id)
    assert body["current_phase"] == "REVIEW"
    assert body["progress"] == {"completed_phases": ["PLAN", "IMPLEMENT"], "current_tasks": []}


def test_the_session_document_keeps_fields_nobody_here_knows(root):
    ref = session(root, [task("IMPL-1")])
    path = root / ref.folder / "workflow-session.json"
    path.write_text(json.dumps({"owner": "me", **document(root, ref.id)}))
    run(project(root), ref)
    assert document(root, ref.id)["owner"] == "me"


def test_a_session_upgrades_its_complexity_as_it_grows(root):
    ref = session(root, [task(f"IMPL-{n}") for n in range(1, 7)])
    run(project(root), ref)
    assert document(root, ref.id)["type"] == "medium"


def test_a_complexity_that_a_person_chose_higher_stays(root):
    ref = files.create(root, "One", Complexity.COMPLEX)
    files.add(root, ref, "A task")
    run(project(root), ref)
    assert document(root, ref.id)["type"] == "complex"


def test_folders_are_made_only_when_they_are_needed(root):
    ref = session(root, [task("IMPL-1")])
    assert not (root / ref.folder / ".summaries").exists()
    run(project(root), ref)
    assert (root / ref.folder / ".summaries/IMPL-1-summary.md").exists()
    assert not (root / ref.folder / ".chat").exists()


def test_those_who_add_tasks_at_once_get_different_ids(root):
    ref = files.create(root, "One")
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(files.add(root, ref, "T"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [f"IMPL-{n}" for n in range(1, 9)]


def test_a_subtask_makes_its_parent_a_container(root):
    ref = files.create(root, "One")
    files.add(root, ref, "Parent")
    assert files.add(root, ref, "Child", parent="IMPL-1") == "IMPL-1.1"
    assert statuses(root, ref) == {"IMPL-1": "container", "IMPL-1.1": "pending"}
    with pytest.raises(UsageError, match="no third"):
        files.add(root, ref, "Grandchild", parent="IMPL-1.1")


@pytest.mark.parametrize("bad", ["../x", "/etc", "src/*"])
def test_a_task_cannot_be_added_with_a_path_that_is_none_of_the_project(root, bad):
    ref = files.create(root, "One")
    with pytest.raises(UsageError):
        files.add(root, ref, "A task", focus_paths=[bad])
    assert statuses(root, ref) == {}


# -- doctor ---------------------------------------------------------------------------------


def found(root: Path, *, repair: bool = False) -> set[tuple[str, str]]:
    return {(name, p.rule) for name, p in files.doctor(str(root), repair=lambda *_: repair)}


def test_doctor_finds_nothing_in_a_healthy_session(root):
    session(root, [task("IMPL-1", status="container"), task("IMPL-1.1", parent="IMPL-1")])
    assert found(root) == set()


def test_a_marker_without_its_session_is_removed(root):
    files.create(root, "One")
    os.utime(root / ".workflow/.active-WFS-one", (1, 1))
    (root / ".workflow/.active-WFS-gone").touch()
    assert files.active(root) == "WFS-one"
    assert found(root) == {("task:WFS-gone", "marker-orphaned")}
    assert (root / ".workflow/.active-WFS-gone").exists()
    found(root, repair=True)
    assert files.markers(root) == ["WFS-one"]
    assert found(root) == set()


def test_of_several_markers_the_newest_stays_and_the_others_are_paused(root):
    files.create(root, "One")
    files.create(root, "Two")
    (root / ".workflow/.active-WFS-one").touch()
    os.utime(root / ".workflow/.active-WFS-one", (1, 1))
    here = project(root)
    assert "several-markers" in {p.rule for p in here.summary(here.ref("WFS-two")).problems}
    assert here.state(here.ref("WFS-two")).is_marked
    assert not here.state(here.ref("WFS-one")).is_marked
    found(root, repair=True)
    assert files.markers(root) == ["WFS-two"]
    assert document(root, "WFS-one")["status"] == "paused"


@pytest.mark.parametrize("damage", [b"{", b"[]", b"", None])
def test_a_damaged_session_file_is_written_anew_and_the_old_one_kept(root, damage):
    ref = session(root, [task("IMPL-1", status="completed")])
    path = root / ref.folder / "workflow-session.json"
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    assert project(root).summary(ref).status == "damaged"
    found(root, repair=True)
    body = document(root, ref.id)
    assert (body["session_id"], body["current_phase"], body["status"]) == (ref.id, "REVIEW", "active")
    kept = list((root / ref.folder / ".rondel/aside").glob("*")) if damage is not None else []
    assert [p.read_bytes() for p in kept] == ([] if damage is None else [damage])


def test_a_broken_hierarchy_is_rebuilt_and_what_was_replaced_is_kept(root):
    ref = session(root, [task("IMPL-1"), task("IMPL-1.1"), task("IMPL-2.1", parent="IMPL-2")])
    assert {rule for _, rule in found(root)} == {"hierarchy"}
    found(root, repair=True)
    assert statuses(root, ref) == {
        "IMPL-1": "container",
        "IMPL-1.1": "pending",
        "IMPL-2": "container",
        "IMPL-2.1": "pending",
    }
    assert (
        json.loads((root / ref.folder / ".task/IMPL-1.1.json").read_text())["context"]["parent"] == "IMPL-1"
    )
    kept = {p.name for p in (root / ref.folder / ".rondel/aside").iterdir()}
    assert kept == {".task__IMPL-1.json.replaced-1", ".task__IMPL-1.1.json.replaced-1"}
    assert found(root) == set()


def test_a_parent_inside_a_wrapper_is_mended_inside_it(root):
    ref = session(root, [task("IMPL-1.1", parent="IMPL-1")])
    path = root / ref.folder / ".task/IMPL-1.json"
    path.write_text(json.dumps({"task": task("IMPL-1")}))
    assert {rule for _, rule in found(root)} == {"hierarchy"}
    found(root, repair=True)
    assert found(root) == set()
    assert json.loads(path.read_text())["task"]["status"] == "container"


def test_a_completed_task_without_a_summary_is_a_problem(root):
    ref = session(root, [task("IMPL-1", status="completed")])
    assert [p.rule for p in project(root).summary(ref).problems] == ["summary-missing"]


def test_a_summary_that_the_task_does_not_know_of_is_adopted(root):
    ref = session(root, [task("IMPL-1"), task("IMPL-2", depends_on=["IMPL-1"])])
    folder = root / ref.folder / ".summaries"
    folder.mkdir()
    (folder / "IMPL-1-summary.md").write_text("# Done by hand\n")
    here = project(root)
    assert run(here, ref).exit_code == 0
    assert statuses(root, ref) == {"IMPL-1": "completed", "IMPL-2": "completed"}
    assert (folder / "IMPL-1-summary.md").read_text() == "# Done by hand\n"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "file"])
def test_what_stands_where_a_document_belongs_is_put_aside_by_whatever_writes_it(root, tmp_path, kind):
    ref = session(root, [task("IMPL-1"), task("IMPL-1.1")])
    folder, outside = root / ref.folder, tmp_path / "outside"
    put(folder / "workflow-session.json", kind, outside)
    files.switch(root, ref.id)
    assert is_found(folder, "workflow-session.json", kind, outside)
    found(root, repair=True)
    assert document(root, ref.id)["session_id"] == ref.id
    assert statuses(root, ref)["IMPL-1"] == "container"
    assert is_found(folder, "workflow-session.json", kind, outside)
    assert is_untouched(outside)


def test_a_place_for_what_is_replaced_is_made_where_something_else_stands(root, tmp_path):
    ref = session(root, [task("IMPL-1"), task("IMPL-1.1")])
    put(root / ref.folder / ".rondel/aside", "file", tmp_path)
    found(root, repair=True)
    kept = {p.name for p in (root / ref.folder / ".rondel/aside").iterdir()}
    assert {".task__IMPL-1.json.replaced-1", ".rondel__aside.damaged-1"} <= kept


# -- markers that nobody made by a command ---------------------------------------------------------


@pytest.fixture
def two(root):
    """Two sessions that the person began; the second is the active one, with a task."""
    here = project(root)
    first, second = (here.start("task", topic=topic).ref for topic in ("First", "Second"))
    (root / second.folder / ".task/IMPL-1.json").write_text(json.dumps(task("IMPL-1")))
    return first, second


@pytest.mark.parametrize("tracked", [False, True])
def test_an_agents_edit_does_not_say_which_session_is_active(root, two, tracked):
    first, second = two
    if tracked:
        git(root, "add", "--all", "--force")
        git(root, "commit", "-qm", "with the markers")
    (root / ".workflow" / f".active-{second.id}").touch()

    def moves(request: Request) -> str:
        home = request.cwd / ".workflow"
        home.mkdir(exist_ok=True)
        (home / f".active-{second.id}").unlink(missing_ok=True)
        (home / f".active-{first.id}").write_text("first\n")
        (request.cwd / "made.txt").write_text("made\n")
        git(request.cwd, "add", "--all", "--force")
        return "I did it.\n"

    here = project(root, Scripted(moves))
    assert run(here, second).exit_code == 0
    changed = git(root, "diff", "--name-only", "HEAD~1", "HEAD").split()
    assert changed == ["made.txt"]
    assert files.markers(root) == [second.id]
    assert statuses(root, second) == {"IMPL-1": "completed"}


def test_the_marker_of_a_foreign_session_takes_nobodys_place(root, two, monkeypatch):
    first, second = two
    (root / ".workflow/WFS-foreign/.task").mkdir(parents=True)
    (root / ".workflow/WFS-foreign/workflow-session.json").write_text('{"status": "active"}')
    for name in ("WFS-foreign", "WFS-ghost"):
        later = time.time() + 1000
        (root / f".workflow/.active-{name}").touch()
        os.utime(root / f".workflow/.active-{name}", (later, later))
    here = project(root)
    marked = {ref.id: here.state(ref).is_marked for ref in here.sessions("task")}
    assert marked == {first.id: False, second.id: True, "WFS-foreign": False}
    assert files.active(root, here.is_recorded) == second.id
    monkeypatch.delenv("RONDEL_TRUST", raising=False)
    here = project(root)
    assert ("task:WFS-ghost", "marker-orphaned") in {(s, p.rule) for s, p in here.doctor(repair=True)}
    assert second.id in files.markers(root), "a repair does not put a foreign session in its place"
    assert run(here, second).exit_code == 0
    files.switch(root, first.id, here.is_known, here.change)
    assert files.active(root, here.is_recorded) == first.id
    assert second.id not in files.markers(root)
