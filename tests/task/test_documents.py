"""TODO_LIST.md to the letter, IMPL_PLAN.md, and summaries."""

# ruff: noqa: E501 - commands and examples stand on one line

from __future__ import annotations

import json
import re
import signal

from hypothesis import given
from hypothesis import strategies as st
from task_support import project, repository, run, session, state, task

from rondel.model.outcomes import Ended, Outcome
from rondel.testing.faults import die_at, in_child
from rondel.workflows.task import documents
from rondel.workflows.task.documents import said, summary

TODO = """\
# Tasks: Session Topic

## Task Progress
▸ **IMPL-001**: Main Task Group → [📋](./.task/IMPL-001.json)
  - [ ] **IMPL-001.1**: Subtask → [📋](./.task/IMPL-001.1.json)
  - [x] **IMPL-001.2**: Subtask → [📋](./.task/IMPL-001.2.json) | [✅](./.summaries/IMPL-001.2-summary.md)
{blanks}
- [x] **IMPL-002**: Simple Task → [📋](./.task/IMPL-002.json) | [✅](./.summaries/IMPL-002.md)

▸ **IMPL-003**: Main Task Group → [📋](./.task/IMPL-003.json)
  - [ ] **IMPL-003.1**: Subtask → [📋](./.task/IMPL-003.1.json)
  - [ ] **IMPL-003.2**: Subtask → [📋](./.task/IMPL-003.2.json)

## Status Legend
- `▸` = Container task (has subtasks)
- `- [ ]` = Pending leaf task{blanks}
- `- [x]` = Completed leaf task
- Maximum 2 levels: Main tasks and subtasks only

## Notes
None.
""".format(blanks="  ")


def test_the_list_of_tasks_is_the_template_to_the_letter():
    tasks = [
        task("IMPL-001", "Main Task Group", status="container"),
        task("IMPL-001.1", "Subtask"),
        task("IMPL-001.2", "Subtask", status="completed"),
        task("IMPL-002", "Simple Task", status="completed"),
        task("IMPL-003", "Main Task Group", status="container"),
        task("IMPL-003.1", "Subtask"),
        task("IMPL-003.2", "Subtask"),
    ]
    there = {".summaries/IMPL-001.2-summary.md": "x", ".summaries/IMPL-002.md": "x"}
    found = state(tasks, there)
    assert documents.todo_list("Session Topic", found.tasks, found.graph, found.summaries) == TODO


def test_a_blocked_task_is_in_the_notes_with_its_reason():
    body = task("IMPL-1", status="blocked")
    body["meta"]["error"] = "the disk\nis full"
    found = state([body])
    text = documents.todo_list("x", found.tasks, found.graph, found.summaries)
    assert text.endswith("## Notes\n- IMPL-1 is blocked: the disk is full\n")


def test_the_plan_has_an_overview_the_requirements_and_the_tasks_as_a_graph():
    tasks = [
        task("IMPL-1", "First", requirements=["Be fast"], acceptance=["It is"]),
        task("IMPL-2", "Group", status="container", depends_on=["IMPL-1"]),
        task("IMPL-2.1", 'Say "hi" [now]'),
    ]
    found = state(tasks)
    text = documents.plan("The topic", "simple", found.tasks, found.graph)
    assert "# Implementation Plan\n\n## Overview\n\nThe topic\n" in text
    assert "- Be fast" in text
    graph = re.search(r"```mermaid\n(.*?)```", text, re.DOTALL)[1].splitlines()
    assert graph == [
        "graph TD",
        '  IMPL_1["IMPL-1: First"]',
        '  subgraph IMPL_2["IMPL-2: Group"]',
        '    IMPL_2_1["IMPL-2.1: Say #34;hi#34; #91;now#93;"]',
        "  end",
        "  IMPL_1 --> IMPL_2",
    ]


@given(st.text(max_size=60))
def test_no_title_breaks_the_form_of_a_document(title):
    found = state([task("IMPL-1", title or "x")])
    todo = documents.todo_list("x", found.tasks, found.graph, found.summaries)
    assert len([line for line in todo.splitlines() if line.startswith("- [ ] **IMPL-1**")]) == 1
    assert todo.count("\n## ") == 3
    plan = documents.plan("x", "simple", found.tasks, found.graph)
    assert len(re.findall(r"^  IMPL_1\[\"[^\"\[\]<>]*\"\]$", plan, re.MULTILINE)) == 1


def test_a_hand_edit_of_a_document_is_kept_aside_and_the_document_is_right_again(tmp_path):
    root = repository(tmp_path / "repo")
    ref = session(root, [task("IMPL-1")])
    here = project(root)
    (root / ref.folder / "TODO_LIST.md").write_text("my own notes\n")
    assert run(here, ref).exit_code == 0
    assert "- [x] **IMPL-1**" in (root / ref.folder / "TODO_LIST.md").read_text()
    kept = list((root / ref.folder / ".rondel/aside").iterdir())
    assert [p.read_text() for p in kept] == ["my own notes\n"]


def test_what_nobody_touched_is_not_kept_aside(tmp_path):
    root = repository(tmp_path / "repo")
    ref = session(root, [task("IMPL-1"), task("IMPL-2", depends_on=["IMPL-1"])])
    assert run(project(root), ref).exit_code == 0
    assert not (root / ref.folder / ".rondel/aside").exists()


def test_what_a_killed_run_drew_is_not_taken_for_a_person_s(tmp_path):
    """It dies after it drew the list and before it noted so; then the list has to show something else."""
    root = repository(tmp_path / "repo")
    ref = session(root, [task("IMPL-1"), task("IMPL-2", depends_on=["IMPL-1"])])
    todo = root / ref.folder / "TODO_LIST.md"

    def doomed() -> None:
        die_at(1, counts=lambda *_: "- [x] **" in todo.read_text())
        run(project(root), ref)

    assert in_child(doomed) == -signal.SIGKILL
    (root / ref.folder / ".task/IMPL-3.json").write_text(json.dumps(task("IMPL-3")))
    assert run(project(root), ref).exit_code == 0
    assert todo.read_text().count("- [x] **") == 3
    assert not (root / ref.folder / ".rondel/aside").exists()


def test_a_document_is_never_read_back(tmp_path):
    root = repository(tmp_path / "repo")
    ref = session(root, [task("IMPL-1")])
    (root / ref.folder / "TODO_LIST.md").write_text("- [x] **IMPL-1**: done\n")
    assert project(root).state(ref).tasks["IMPL-1"].status == "pending"


def test_an_answer_without_headings_is_what_was_done():
    assert said("I did it.").done == "I did it."


def test_an_answer_is_taken_apart_by_its_headings():
    words = said(
        "# Report\n\n## What was done\nThis.\n\n### Detail\nMore.\n## Decisions\nThat.\n## Notes for Future Tasks\nMind.\n"
    )
    assert "This." in words.done
    assert "### Detail\nMore." in words.done
    assert (words.decisions, words.notes) == ("That.", "Mind.")


def test_a_summary_says_what_was_done_files_decisions_checks_and_notes():
    found = state([task("IMPL-1")])
    outcome = Outcome(Ended.DONE, "## Decisions\nA", commit="abc", changed=("a.py", "b.py"), agent="x")
    text = summary(found.tasks["IMPL-1"], outcome, "pytest -q")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        "What Was Done",
        "Files",
        "Decisions",
        "Checks",
        "Notes for Future Tasks",
    ]
    assert "- `a.py`\n- `b.py`" in text
    assert "`pytest -q` passed" in text


@given(st.text(max_size=200))
def test_taking_an_answer_apart_never_raises(text):
    said(text)
