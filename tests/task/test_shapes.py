"""What task files may look like: the document's examples, and the shapes found in the wild."""

# ruff: noqa: E501 - commands and examples stand on one line

from __future__ import annotations

import json

import pytest
from task_support import project, repository, run, session, state, step, task

from rondel.model.snapshot import FrozenSnapshot
from rondel.workflows.task import read
from rondel.workflows.task.preanalysis import OnError
from rondel.workflows.task.schema import Agent, assign, task_from
from rondel.workflows.task.state import Complexity, classify, upgraded

# The document's example, with its own enumerations written out as it does.
EXAMPLE = {
    "id": "IMPL-1.2",
    "title": "Implement JWT authentication",
    "status": "pending|active|completed|blocked|container",
    "meta": {"type": "feature|bugfix|refactor|test|docs", "agent": "code-developer|planning-agent"},
    "context": {
        "requirements": ["JWT authentication", "OAuth2 support"],
        "focus_paths": ["src/auth", "tests/auth", "config/auth.json"],
        "acceptance": ["JWT validation works"],
        "parent": "IMPL-1",
        "depends_on": ["IMPL-1.1"],
        "inherited": {"from": "IMPL-1", "context": ["Authentication system design completed"]},
        "shared_context": {"auth_strategy": "JWT with refresh tokens"},
    },
    "flow_control": {
        "pre_analysis": [
            {
                "step": "gather_context",
                "action": "Read dependency summaries",
                "command": "bash(cat .workflow/*/summaries/IMPL-1.1-summary.md)",
                "output_to": "auth_design_context",
                "on_error": "skip_optional",
            },
            {
                "step": "analyze_patterns",
                "action": "Analyze existing auth patterns",
                "command": "bash(~/.claude/scripts/gemini-wrapper -p '@{src/auth/**/*} using context: [auth_design_context]')",
                "output_to": "pattern_analysis",
                "on_error": "fail",
            },
            {
                "step": "implement",
                "action": "Implement JWT based on analysis",
                "command": "bash(codex --full-auto exec 'Implement JWT using: [pattern_analysis] and: [auth_design_context]')",
                "on_error": "manual_intervention",
            },
        ],
        "implementation_approach": {
            "task_description": "Reference [inherited.context] from parent task [parent]. Apply [shared_context.auth_strategy].",
            "modification_points": ["Update [focus_paths]"],
            "logic_flow": ["login → token"],
        },
        "target_files": ["src/auth/login.ts:handleLogin:75-120", "src/middleware/auth.ts:validateToken"],
    },
}
FLOW_EXAMPLE = [
    {
        "step": "gather_dependencies",
        "action": "Load context from completed dependencies",
        "command": 'bash(for dep in ${depends_on}; do cat .summaries/$dep-summary.md 2>/dev/null || echo "No summary for $dep"; done)',
        "output_to": "dependency_context",
        "on_error": "skip_optional",
    },
    {
        "step": "analyze_codebase",
        "action": "Understand current implementation",
        "command": "bash(gemini -p '@{[focus_paths]} analyze current patterns using context: [dependency_context]')",
        "output_to": "codebase_analysis",
        "on_error": "fail",
    },
    {
        "step": "implement",
        "action": "Execute implementation based on analysis",
        "command": "bash(codex --full-auto exec 'Implement based on: [codebase_analysis] with: [dependency_context]')",
        "on_error": "manual_intervention",
    },
]
SESSION_EXAMPLE = {
    "session_id": "WFS-[topic-slug]",
    "project": "feature description",
    "type": "simple|medium|complex",
    "current_phase": "PLAN|IMPLEMENT|REVIEW",
    "status": "active|paused|completed",
    "progress": {"completed_phases": ["PLAN"], "current_tasks": ["IMPL-1", "IMPL-2"]},
}


def findings(*bodies: dict) -> set[tuple[str, str]]:
    found = read.read(
        FrozenSnapshot({f".task/{b['id']}.json": json.dumps(b) for b in bodies}), read.ref_of("WFS-x")
    )
    return {(f.file, f.rule) for f in found.violations}


def test_the_documents_example_alone_fails_for_its_status_and_what_it_refers_to():
    file = ".task/IMPL-1.2.json"
    assert findings(EXAMPLE) == {(file, "status"), (file, "parent-exists"), (file, "depends-on-exists")}


def test_the_documents_example_is_valid_with_one_status_among_its_tasks():
    example = {**EXAMPLE, "status": "pending"}
    assert findings(task("IMPL-1", status="container"), task("IMPL-1.1"), example) == set()


def test_the_documents_flow_example_is_valid():
    assert findings(task("IMPL-1", steps=FLOW_EXAMPLE)) == set()


@pytest.mark.parametrize(
    "paths",
    [
        ["src/auth", "tests/auth", "config/auth.json", "src/middleware/auth.ts"],
        ["src/components/Button", "src/styles", "tests/components"],
        ["migrations", "src/models", "config/database.json"],
    ],
)
def test_the_documents_focus_paths_are_valid(paths):
    assert findings(task("IMPL-1", focus_paths=paths)) == set()


def test_the_documents_session_example_is_read_and_what_is_no_value_reported():
    info = read.session_info(SESSION_EXAMPLE, "WFS-x", {}, 0)
    assert info.project == "feature description"
    assert "status is 'active|paused|completed'" in info.problem
    assert info.current_tasks == ("IMPL-1", "IMPL-2")


def shape(**body: object) -> dict:
    return {"title": "A task", "status": "pending", "meta": {}, "context": {}, "flow_control": {}, **body}


def notes(body: dict, name: str = "IMPL-1") -> str:
    found = task_from(f".task/{name}.json", body)
    return "\n".join(n.message for n in found.notes)


def test_task_id_is_read_as_the_id_and_reported():
    found = task_from(".task/IMPL-4.json", shape(task_id="IMPL-4"))
    assert found.id == "IMPL-4"
    assert "'task_id' is read instead" in notes(shape(task_id="IMPL-4"))


@pytest.mark.parametrize(
    "where",
    [
        {"depends_on": ["IMPL-2"]},
        {"dependencies": ["IMPL-2"]},
        {"dependencies": {"upstream": ["IMPL-2"], "downstream": []}},
        {"context": {"dependencies": ["IMPL-2"]}},
        {"relations": {"dependencies": ["IMPL-2"]}},
    ],
)
def test_dependencies_in_other_places_are_read_and_reported(where):
    body = shape(id="IMPL-1", **where)
    assert task_from(".task/IMPL-1.json", body).depends_on == ("IMPL-2",)
    assert "is read as context.depends_on" in notes(body)


@pytest.mark.parametrize("odd", [1, None, {"id": "IMPL-2"}, "IMPL-" + "9" * 5000])
def test_a_dependency_that_is_no_id_keeps_the_task_from_running(odd):
    found = state([task("IMPL-1", depends_on=[odd]), task("IMPL-2")], run=True)
    assert "IMPL-1" in found.unusable
    assert [f.rule for f in found.violations] == ["depends-on-exists"]


@pytest.mark.parametrize("odd", [["exit_code:0"], {"exit_code": 0}, 0, "exit_code:9999"])
def test_success_criteria_that_cannot_be_checked_keep_the_task_from_running(odd):
    found = state([task("IMPL-1", steps=[step("bash(true)", success_criteria=odd)])])
    assert "cannot be checked" in found.unusable["IMPL-1"]


def test_commands_as_a_list_are_read_in_order_and_reported():
    commands = {"step": "x", "action": "y", "commands": ["bash(echo a)", "Read(README.md)"]}
    body = shape(id="IMPL-1", flow_control={"pre_analysis": [commands]})
    [found] = task_from(".task/IMPL-1.json", body).steps
    assert found.scripts == ("echo a", "cat -- README.md")
    assert "'commands' is read instead" in notes(body)


def test_an_approach_as_a_list_is_read_and_reported():
    body = shape(id="IMPL-1", flow_control={"implementation_approach": [{"step": 1, "title": "First"}]})
    assert "implementation_approach is a list" in notes(body)


@pytest.mark.parametrize(
    ("word", "status"),
    [("in_progress", "active"), ("done", "completed"), ("todo", "pending"), ("failed", "blocked")],
)
def test_other_words_for_a_status_are_read_and_reported(word, status):
    body = shape(id="IMPL-1", status=word)
    assert task_from(".task/IMPL-1.json", body).status == status
    assert f"read as {status}" in notes(body)


def test_a_status_that_means_nothing_keeps_the_task_from_running():
    assert task_from(".task/IMPL-1.json", shape(id="IMPL-1", status="archived")).status == "blocked"


def test_an_agent_with_an_at_sign_and_a_type_of_another_tool_are_read():
    body = shape(id="IMPL-1", meta={"type": "docs-tree", "agent": "@doc-generator"})
    found = task_from(".task/IMPL-1.json", body)
    assert (found.agent, found.type) == ("doc-generator", "docs-tree")
    assert "meta.agent is 'doc-generator'" in notes(body)


def test_a_task_inside_an_execution_context_is_read():
    found = task_from(".task/IMPL-1.json", {"task": shape(id="IMPL-1"), "workflow": {"session": "WFS-x"}})
    assert (found.id, found.inner) == ("IMPL-1", ("task",))


def test_a_step_that_only_another_tool_can_carry_out_is_reported_and_never_handed_to_a_shell():
    body = task(
        "IMPL-1", steps=[step("mcp__index__find_files() && mcp__index__search()"), step("Extract(a.b)")]
    )
    found = task_from(".task/IMPL-1.json", body)
    assert found.steps[1].scripts == ()
    assert "IMPL-1" in state([body]).unusable


def test_on_error_has_four_words_and_fails_without_one():
    words = ["skip_optional", "fail", "retry_once", "manual_intervention"]
    assert [str(o) for o in OnError] == words
    found = task_from(".task/IMPL-1.json", task("IMPL-1", steps=[step("bash(true)")]))
    assert found.steps[0].on_error is OnError.FAIL


def test_reading_and_running_a_wild_file_changes_its_status_and_nothing_else(tmp_path):
    root = repository(tmp_path / "repo")
    body = {
        "task_id": "IMPL-001",
        "title": "A wild one",
        "status": "todo",
        "depends_on": [],
        "meta": {"type": "docs-tree", "agent": "@doc-generator"},
        "extra": {"kept": [1, 2]},
        "flow_control": {"implementation_approach": [{"step": 1, "title": "First"}]},
    }
    ref = session(root, [])
    path = root / ref.folder / ".task/IMPL-001.json"
    path.write_text(json.dumps(body))
    before = path.read_bytes()
    here = project(root)
    assert {p.rule for p in here.summary(ref).problems} >= {"required-fields", "shape", "status"}
    assert path.read_bytes() == before
    assert run(here, ref).exit_code == 0
    assert json.loads(path.read_text()) == {**body, "status": "completed"}


@pytest.mark.parametrize(
    ("kind", "title", "agent"),
    [
        ("feature", "Plan the migration", Agent.PLANNING),
        ("feature", "Design the schema", Agent.PLANNING),
        ("feature", "Implement JWT authentication", Agent.CODE),
        ("bugfix", "Login fails on Mondays", Agent.CODE),
        ("test", "Login", Agent.TEST),
        ("feature", "Write tests for login", Agent.TEST),
        ("feature", "Test the login flow", Agent.TEST),
        ("feature", "Review the login flow", Agent.REVIEW),
        ("refactor", "Security audit of tokens", Agent.REVIEW),
        ("feature", "Implement the review page", Agent.CODE),
        ("docs", "User guide", Agent.CODE),
    ],
)
def test_a_task_is_assigned_by_its_type_and_its_title(kind, title, agent):
    assert assign(kind, title) is agent


def test_complexity_follows_the_number_of_tasks():
    assert [classify(n, 1) for n in (0, 4, 5, 15, 16)] == ["simple", "simple", "medium", "medium", "complex"]
    assert classify(3, 2) is Complexity.MEDIUM


def test_complexity_upgrades_and_never_downgrades():
    for now in Complexity:
        for count in (0, 5, 16):
            order = list(Complexity)
            assert order.index(upgraded(now, count, 1)) >= order.index(now)
    assert upgraded(Complexity.SIMPLE, 16, 1) is Complexity.COMPLEX
