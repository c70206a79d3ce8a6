"""However a session is gone on with, it ends as its workflow's own command does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.world import BEGIN, GOOD, World

BROKEN: list[dict[str, object]] = [{"role": "*", "fail": "the model is on fire"}]
FOUND = {
    "title": "It subtracts",
    "category": "blocker",
    "severity": "critical",
    "file": "app.py",
    "line": 2,
    "quote": "    return a - b",
    "why": "add must add",
    "fix": "return a + b",
}
REFUSED: list[dict[str, object]] = [
    {
        "role": "review.reviewer*",
        "reply": f"## Summary\n\nRead.\n\n```json\n{json.dumps({'findings': [FOUND]})}\n```\n",
    },
    {
        "role": "feature.*-reviewer",
        "reply": '```json\n{"approved": false, "issues": '
        '[{"severity": "blocker", "description": "it is thin"}]}\n```',
    },
    *GOOD,
]
UNREADABLE: list[dict[str, object]] = [{"role": "feature.*-reviewer", "reply": "Looks good to me!"}, *GOOD]
NAMES = {"review": "review:", "feature": "feature:001-add-it"}


def world_of(folder: Path, workflow: str, rules: list[dict[str, object]]) -> World:
    folder.mkdir(exist_ok=True)
    world = World(folder, workflow)
    world.more_env["CI"] = "1"
    world.answer(rules)
    return world


@pytest.mark.parametrize("workflow", ["review", "feature"])
@pytest.mark.parametrize("way", ["run", "resume"])
def test_what_is_gone_on_with_ends_as_the_workflows_own_command_does(tmp_path, workflow, way):
    own = world_of(tmp_path / "own", workflow, REFUSED)
    said = own.begin()
    assert said.code == 4, said
    assert "subtracts" in said.out or "it is thin" in said.out
    other = world_of(tmp_path / "other", workflow, BROKEN)
    assert other.begin().code == 1
    other.answer(REFUSED)
    again = other.rondel(way, NAMES[workflow])
    assert again.code == 4
    assert again.out.splitlines()[:1] == said.out.splitlines()[:1]
    assert "subtracts" in again.out or "it is thin" in again.out
    assert other.rondel(way, NAMES[workflow], "--no-fail-on-changes").code == 0


@pytest.mark.parametrize(("workflow", "key"), [("review", "verdict"), ("feature", "concerns")])
def test_a_program_gets_the_verdict_whichever_command_it_calls(tmp_path, workflow, key):
    world = world_of(tmp_path, workflow, BROKEN)
    world.begin()
    world.answer(REFUSED)
    body = json.loads(world.rondel("resume", NAMES[workflow], "--json").out)
    assert body["exit_code"] == world.said.code == 4
    assert body[key] in ("REQUEST CHANGES", {"specify": ["[blocker] it is thin"]})
    words = (*BEGIN[workflow][-1], "--json", *(("--again",) if workflow == "review" else ("--yes",)))
    own = json.loads(world.rondel(*words).out)
    assert own.keys() == body.keys()


def test_a_verdict_that_cannot_be_read_is_said_and_is_no_approval_after_a_resume(tmp_path):
    world = world_of(tmp_path, "feature", BROKEN)
    world.begin()
    world.answer(UNREADABLE)
    said = world.rondel("resume", "feature:001-add-it")
    assert said.code == 4
    assert "specify: Phase complete. Reviewer concerns: [blocker]" in said.out


def test_phases_that_a_run_did_before_it_was_cut_off_are_part_of_what_it_came_to(tmp_path):
    world = world_of(tmp_path, "feature", [{"role": "feature.design", "fail": "no"}, *REFUSED])
    world.rondel("feature", "start", "Add it")
    assert world.rondel("feature", "run", "001-add-it", "--auto", "--until", "design").code == 1
    world.answer(GOOD)
    said = world.rondel("resume", "feature:001-add-it")
    assert said.code == 4, "brainstorm and specify have concerns, though they were done in the first run"
    assert [line.partition(":")[0] for line in said.out.splitlines()] == ["brainstorm", "specify", "design"]


def test_a_completed_cycle_that_rondel_did_not_make_is_no_approval_under_ci(tmp_path):
    world = world_of(tmp_path, "generate", GOOD)
    world.rondel(*BEGIN["generate"][0])
    document = world.session / "session.json"
    body = json.loads(document.read_text())
    document.write_text(
        json.dumps(body | {"cycles": [{**cycle, "status": "completed"} for cycle in body["cycles"]]})
    )
    said = world.rondel("resume", f"generate:{world.session.name}")
    assert (said.code, "not made by Rondel, and so no approval" in said.err) == (4, True), said
