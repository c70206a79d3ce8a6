"""Killed at random moments, in a repository of many files: nothing is lost, gone or paid for twice."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rondel.project import Project
from rondel.workflows.cycle import files as cycle_files
from rondel.workflows.feature import start_feature
from rondel.workflows.feature.files import update_phase_state
from rondel.workflows.feature.phases import ARTIFACTS
from rondel.workflows.generate import files as generate_files
from rondel.workflows.task import files as task_files
from rondel.workflows.task.schema import new_task
from support.timekills import AGENT, Calm, Scene, calm, git, large_repository, survive_all

EDIT = {"new/one.txt": "by the agent\n" * 50, "src/01/00.txt": "changed by the agent\n" * 50}
Rule = dict[str, object]


def configured(root: Path, rules: list[Rule], more: str = "") -> Path:
    """One agent for every role, with these rules."""
    (root / "rules.json").write_text(json.dumps(rules))
    command = json.dumps([sys.executable, str(AGENT), str(root / "rules.json")])
    (root / "rondel.toml").write_text(
        f'[agents.timed]\nkind = "command"\ncommand = {command}\n[roles]\ndefault = "timed"\n{more}'
    )
    return root


# -- the five workflows -----------------------------------------------------------------------

REPORT = "## What was done\nIt.\n\n## Decisions\nOne.\n\n## Notes for future tasks\nNone.\n"


def tasks(root: Path) -> Scene:
    """One edits, one changes nothing, one fails at first, one needs all of them."""
    rules: list[Rule] = [
        {"prompt": "# IMPL-1:", "files": {"one.txt": "one\n" * 99}, "reply": REPORT},
        {"prompt": "# IMPL-2:", "reply": REPORT},
        {"prompt": "# IMPL-3:", "attempt": 1, "files": {"three.txt": "half"}, "fail": "out of words"},
        {"prompt": "# IMPL-3:", "files": {"three.txt": "three\n" * 99}, "reply": REPORT},
        {"prompt": "# IMPL-4:", "files": {"src/02/00.txt": "four\n"}, "reply": REPORT},
    ]
    configured(root, rules, '[project]\nchecks = "test -f src/03/00.txt"\n')
    ref = task_files.start(root, "The topic")
    for name in ("IMPL-1", "IMPL-2", "IMPL-3", "IMPL-4"):
        body = new_task(name, f"Task {name}")
        if name == "IMPL-4":
            body["context"]["depends_on"] = ["IMPL-1", "IMPL-2", "IMPL-3"]
        (root / ref.folder / ".task" / f"{name}.json").write_text(json.dumps(body, indent=2))
    return Scene(root, ".workflow/", ("task", "run"), ("resume", ref.name))


def verdict(*, approved: bool) -> str:
    found = [] if approved else [{"severity": "blocker", "description": "an error case", "location": None}]
    return f"```json\n{json.dumps({'approved': approved, 'issues': found, 'summary': 'Read it.'})}\n```"


def feature(root: Path) -> Scene:
    """Two tasks, one of which has nothing to do; then a fix, which fails at first."""
    rules: list[Rule] = [
        {"action": "*iteration-1/review.json", "reply": verdict(approved=False)},
        {"action": "*review.json", "reply": verdict(approved=True)},
        {"action": "*task-1.json", "files": {"one.txt": "one\n" * 99}, "reply": "Done."},
        {"action": "*task-2.json", "reply": "There is nothing to do."},
        {"action": "*fix.json", "attempt": 1, "files": {"one.txt": "half"}, "fail": "out of words"},
        {"action": "*fix.json", "files": {"one.txt": "two\n" * 99}, "reply": "Fixed."},
    ]
    configured(root, rules, '[project]\nchecks = "test -f src/03/00.txt"\n')
    ref = start_feature(root, "Add", brainstorm="# Ideas\n")
    text = "# Tasks\n\n### Task 1: Add it\n\n- **Do**: it.\n\n### Task 2: Say so\n\n- **Do**: it.\n"
    at = "2026-11-15T12:00:00+00:00"
    for phase in ("specify", "design", "create-plan", "create-tasks"):
        (root / ref.folder / ARTIFACTS[phase]).write_text(text)
        assert update_phase_state(root / ref.folder, phase, {"started": at, "completed": at})
    command = ("feature", "implement", ref.id, "--yes")
    return Scene(root, "docs/features/", command, ("resume", ref.name))


def result(phase: str) -> str:
    return f"\nPHASE_RESULT:\n- phase: {phase}\n- status: success\n- summary: done\n- issues: []\n"


def cycle(root: Path) -> Scene:
    """Two tasks at once, one of which has nothing to do, and one after them that fails at first."""
    plan = {"tasks": [{"id": n, "description": n} for n in "AB"]}
    plan["tasks"].append({"id": "C", "description": "after", "depends_on": ["A", "B"]})  # type: ignore[dict-item]
    rules: list[Rule] = [
        {"action": "*requirements.md", "reply": f"# Requirements\n\n- REQ-001: it\n{result('ra')}"},
        {"action": "*exploration.md", "reply": f"# Exploration\n\n## Risks\n\n- none\n{result('ep')}"},
        {"action": "*plan.json", "reply": f"```json\n{json.dumps(plan)}\n```\n{result('ep')}"},
        {"action": "*validation.md", "reply": f"# Validation\n\nAll met.\n{result('vas')}"},
        {"action": "*/A.*", "files": {"a.txt": "a\n" * 99}, "reply": result("cd")},
        {"action": "*/B.*", "reply": result("cd")},
        {"action": "*/C.*", "attempt": 1, "files": {"c.txt": "half"}, "fail": "out of words"},
        {"action": "*/C.*", "files": {"c.txt": "c\n" * 99}, "reply": result("cd")},
    ]
    suite = """echo "<testsuite><testcase classname='t' name='one'/></testsuite>" > "$RONDEL_JUNIT\""""
    configured(root, rules, f"[project]\ntest = {json.dumps(suite)}\n")
    ref = cycle_files.start(root, "Add it", title=None, settings={"test": suite, "auto": True})
    return Scene(root, ".workflow/.cycle/", ("resume", ref.name), ("resume", ref.name))


def generate(root: Path) -> Scene:
    """A whole session of one cycle; the code fails at first. It edits nothing in the repository."""
    passed = "@@@REVIEW_META\nverdict: PASS\nissues_total: 0\nissues_critical: 0\nmissing_inputs: 0\n@@@\n"
    code = "```java\n// Product.java\nclass Product {}\n```\n"
    rules: list[Rule] = [
        {"action": "*planning-response.md", "reply": "A plan."},
        {"action": "*review-response.md", "reply": passed},
        {"action": "*", "attempt": 1, "fail": "out of words"},
        {"action": "*", "reply": code},
    ]
    configured(root, rules)
    (root / "schema.sql").write_text("create table app.products (id bigint primary key);\n")
    context = {
        "entity": "Product",
        "table": "app.products",
        "bounded_context": "catalog",
        "scope": "domain",
        "schema_file": "schema.sql",
    }
    wish = generate_files.GenerateOptions("jpa-mt", context, request={"auto": True})
    ref = generate_files.start(root, wish, at=Project(root).look.at)
    return Scene(root, ".aiwf/sessions/", ("resume", ref.name), ("resume", ref.name))


def review(root: Path) -> Scene:
    """Reviewers who find nothing, and one who fails at first. It edits nothing in the repository."""
    empty = '```json\n{"findings": []}\n```\n'
    parts = {"Summary": "Read.", "Findings": "None.", "What works well": "- It.", "Questions": "None."}
    said = "".join(f"## {title}\n\n{text}\n\n" for title, text in parts.items()) + empty
    rules: list[Rule] = [
        {"action": "*/reviews/quality-1.md", "attempt": 1, "fail": "out of words"},
        {"action": "*/reviews/*", "reply": said},
        {"action": "*discourse*", "reply": '```json\n{"responses": []}\n```\n'},
        {"action": "*", "reply": "Look at it.\n"},
    ]
    git(root, "stash", "--quiet", "--include-untracked")
    git(root, "checkout", "--quiet", "-b", "change")
    (root / "app.py").write_text("def add(a, b):\n    return a + b\n")
    git(root, "add", "app.py")
    git(root, "commit", "-qm", "a change")
    git(root, "stash", "pop", "--quiet")
    configured(root, rules)
    command = ("review", "main...change", "--team", "principal:1,quality:1")
    return Scene(root, ".ocr/sessions/", command, command)


SCENES: dict[str, Callable[[Path], Scene]] = {
    "task": tasks,
    "feature": feature,
    "cycle": cycle,
    "generate": generate,
    "review": review,
}


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return large_repository(tmp_path_factory.mktemp("large") / "repo")


@pytest.fixture(scope="module")
def fresh(template):
    """Gives a scene of a workflow in a fresh copy of the repository."""

    def make(workflow: str, folder: Path) -> Scene:
        shutil.copytree(template, folder / "repo", symlinks=True)
        return SCENES[workflow](folder / "repo")

    return make


@pytest.fixture(scope="module")
def calms(fresh, tmp_path_factory):
    """What undisturbed runs of a workflow give; made when it is first needed."""
    known: dict[str, Calm] = {}

    def find(workflow: str) -> Calm:
        if workflow not in known:
            known[workflow] = calm(fresh(workflow, tmp_path_factory.mktemp(workflow)))
        return known[workflow]

    return find


@pytest.mark.slow
@pytest.mark.sweep
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("workflow", SCENES)
def test_killed_at_random_moments_a_session_ends_as_if_nothing_had_happened(workflow, fresh, calms, tmp_path):
    survive_all(workflow, lambda name: fresh(workflow, tmp_path / name), calms(workflow))
