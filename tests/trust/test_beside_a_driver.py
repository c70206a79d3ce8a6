"""What a person's command writes counts, also while a program is at work that nothing confines."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from rondel.model.workflow import SessionRef
from rondel.project import Project
from rondel.trust.doubts import WRITTEN_MEANWHILE
from support.world import BEGIN, GENERATE, GOOD, World

USAGE = 2  # the exit code of a command that was typed wrongly
FINDING = {
    "title": "It subtracts",
    "category": "should_fix",
    "severity": "medium",
    "file": "app.py",
    "line": 2,
    "problem": "It is called add.",
    "suggestion": "Add.",
    "evidence": "return a - b",
}
FOUND = f"## Summary\n\nRead.\n\n```json\n{json.dumps({'findings': [FINDING]})}\n```\n"

# What a person may type beside a driver that is at work, in an order in which each does something.
BESIDE: dict[str, list[tuple[str, ...]]] = {
    "review": [("review", "accept", "F1")],
    "feature": [],
    "cycle": [
        ("cycle", "extend", "{}", "And document it", "--no-run"),
        ("cycle", "feedback", "{}", "It is too short", "--to", "ra"),
        ("cycle", "block", "{}", "No key"),
        ("cycle", "pause", "{}"),
    ],
    "task": [
        ("task", "add", "Third"),
        ("task", "add", "A part of the third", "--parent", "IMPL-3"),
        ("task", "reopen", "IMPL-1", "--reason", "It broke"),
        ("task", "complete", "IMPL-1", "--reason", "By hand"),
        ("task", "todo"),
        ("task", "switch", "{}"),
        ("task", "pause", "{}"),
    ],
    "generate": [("generate", "apply", "{}", "--yes")],
    "generate, not run": [("generate", "skip", "models", "{}"), ("generate", "cancel", "{}")],
}
ALL = [("pause", "{}"), ("stop", "{}"), ("doctor", "--repair")]
# What a person may type after a driver was killed, while what it had started may still be at work.
AFTER: dict[str, list[tuple[str, ...]]] = {
    "review": [
        ("review", "close"),
        ("review", "--again", "--requirements", "../wanted.md"),
        ("review", "--restart", "--requirements", "../wanted.md"),
    ],
    "feature": [("feature", "finish", "{}", "--keep", "--force")],
    "cycle": [("cycle", "rebuild", "{}")],
    "task": [("task", "complete", "{}")],
    "generate": [],
}


@pytest.fixture
def world(tmp_path, monkeypatch, request):
    """A repository with a session of a workflow, finished where nothing else is said."""
    workflow, _, is_open = request.param.partition(", ")
    made = World(tmp_path, workflow, more_env={"XDG_STATE_HOME": str(tmp_path / "state")})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    if made.workflow == "review":
        made.answer([{"role": "review.reviewer*", "reply": FOUND}, *GOOD])
    (tmp_path / "wanted.md").write_text("It adds.\n")
    begin = [("generate", "init", *GENERATE[:-1], "scope=full")] if is_open else BEGIN[workflow]
    for words in begin:
        code, said = made.typed(*words)
        assert code == 0, said
    return made


def ref_of(world: World) -> SessionRef:
    (found,) = Project(world.root).sessions(world.workflow)
    return found


def doubted(world: World) -> list[str]:
    found = Project(world.root).summary(ref_of(world)).problems
    return [problem.file for problem in found if problem.rule == WRITTEN_MEANWHILE]


@pytest.mark.parametrize(("world", "commands"), BESIDE.items(), indirect=["world"])
def test_what_a_command_writes_beside_an_unconfined_driver_counts(world, commands):
    here, ref = Project(world.root), ref_of(world)
    with here.hold(ref):  # as a driver does, and as it watches while such a program is at work
        session = here.session(ref)
        session.watch()
        for words in (*commands, *ALL):
            code, said = world.typed(*(word.format(ref.id) for word in words))
            assert code == 0, (words, said)
            assert doubted(world) == [], words
        session.watch_no_more()
    assert doubted(world) == []


@pytest.mark.parametrize(("world", "commands"), AFTER.items(), indirect=["world"])
def test_what_a_command_writes_after_an_unconfined_driver_died_counts(world, commands):
    here, ref = Project(world.root), ref_of(world)
    for words in (*commands, *ALL):
        here.session(ref).watch()
        code, said = world.typed(*(word.format(ref.id) for word in words))
        assert code != USAGE, (words, said)
        assert "does not count" not in said, words
        assert doubted(world) == [], words


def broken_meta(folder: Path) -> None:
    place = folder / ".meta.json"
    place.write_text(place.read_text() + "}\n")


def broken_state(folder: Path) -> None:
    (folder.parent / f"{folder.name.removesuffix('.progress')}.json").write_text('{"status": "runn')


def broken_session(folder: Path) -> None:
    (folder / "workflow-session.json").write_text("{")
    task = json.loads((folder / ".task/IMPL-1.json").read_text())
    (folder / ".task/IMPL-4.1.json").write_text(json.dumps({**task, "id": "IMPL-4.1", "status": "pending"}))


@pytest.mark.parametrize(
    ("world", "damage"),
    [("feature", broken_meta), ("cycle", broken_state), ("task", broken_session)],
    indirect=["world"],
)
def test_what_doctor_repairs_after_an_unconfined_driver_died_counts(world, damage):
    here, ref = Project(world.root), ref_of(world)
    damage(world.session)
    here.session(ref).watch()
    _, said = world.typed("doctor", "--repair")
    assert "repaired" in said
    assert doubted(world) == []


@pytest.mark.parametrize("world", ["task"], indirect=True)
def test_a_task_that_is_added_beside_an_unconfined_driver_is_run(world):
    """The agent is a program; it waits until the task is there."""
    agent = world.folder / "agent.sh"
    agent.write_text(
        f"touch {world.folder}/asked; until [ -e {world.folder}/go ]; do sleep 0.05; done\n"
        "echo made >> made.txt; printf '## What was done\\nIt.\\n'\n"
    )
    world.configure(f'[agents.program]\nkind = "command"\ncommand = ["sh", "{agent}"]\n')
    settings = (world.root / "rondel.toml").read_text().replace('default = "mock"', 'default = "program"')
    (world.root / "rondel.toml").write_text(settings)
    world.typed("task", "add", "Third")
    with ExitStack() as stack:
        run = stack.enter_context(world.popen("task", "run"))
        end = time.monotonic() + 30
        while not (world.folder / "asked").exists():
            assert time.monotonic() < end
            time.sleep(0.05)
        assert world.typed("task", "add", "Fourth")[0] == 0
        (world.folder / "go").touch()
        _, err = run.communicate(timeout=60)
    assert run.returncode == 0, err
    assert (world.session / ".summaries/IMPL-4-summary.md").exists()
    assert doubted(world) == []
