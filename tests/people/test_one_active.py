"""Sessions beside each other: one is active, an answer that is refused leaves nothing, a copy is noticed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import time

import pytest

from rondel.testing.scripted import run_of
from support.cli import RONDEL
from support.world import BEGIN, World


def at_work(world: World) -> subprocess.Popen[str]:
    """`task run`, while its agent works."""
    child = subprocess.Popen(
        [*RONDEL, "task", "run"], cwd=world.root, env=world.env, stderr=subprocess.PIPE, text=True
    )
    (session,) = world.root.glob(".workflow/WFS-add-it")
    journal = run_of(session) / "journal.jsonl"
    end = time.monotonic() + 30
    while not journal.exists() or '"agent":' not in journal.read_text():
        assert time.monotonic() < end, "nobody was asked"
        time.sleep(0.02)
    return child


@pytest.mark.parametrize("words", [("task", "start", "Else"), ("task", "switch", "WFS-other")])
def test_another_session_does_not_become_the_active_one_while_this_one_is_worked_on(tmp_path, words):
    world = World(tmp_path, "task")
    world.answer([{"role": "task.*", "seconds": 600}])
    world.rondel("task", "start", "Other")
    for each in BEGIN["task"][:-1]:
        world.rondel(*each)
    before = sorted(p.name for p in (world.root / ".workflow").iterdir())
    child = at_work(world)
    try:
        said = world.rondel(*words)
        assert said.code == 1, said
        assert "task:WFS-add-it" in said.err
        assert "Another active session would pause it" in said.err
        assert sorted(p.name for p in (world.root / ".workflow").iterdir()) == before, "nothing is left of it"
        (stop,) = re.findall(r"or `(rondel [^`]+)`", said.err)
        assert world.type(stop).code == 0
        assert child.wait(30) == 3, "now it was said"
    finally:
        child.kill()
        child.communicate()
    assert world.rondel(*words).code == 0
    assert (world.root / ".workflow/.active-WFS-add-it").exists() is False


def state_of(world: World) -> dict[str, bytes]:
    return {
        str(p.relative_to(world.session)): p.read_bytes() for p in world.session.rglob("*") if p.is_file()
    }


def test_an_answer_that_is_refused_writes_nothing(tmp_path):
    """Not even what follows from what the person put there, and would be written by whatever goes on."""
    world = World(tmp_path, "generate")
    world.rondel(*BEGIN["generate"][0][:-1])
    (prompt,) = world.session.rglob("planning-prompt.md")
    prompt.unlink()
    before = state_of(world)
    assert world.rondel("generate", "approve", "--on", "no-such-question").code == 2
    assert state_of(world) == before
    assert world.rondel("generate", "approve", "--no-run").code == 0, "what is accepted is worked out first"
    assert prompt.exists()


@pytest.mark.parametrize("workflow", ["task", "feature"])
def test_a_copied_session_is_noticed_and_becomes_one_of_its_own(tmp_path, workflow):
    world = World(tmp_path, workflow)
    world.begin()
    original = world.session
    copy = original.with_name("002-copy" if workflow == "feature" else "WFS-copy")
    shutil.copytree(original, copy)
    for folder in (original, copy):
        said = world.rondel("resume", f"{workflow}:{folder.name}")
        assert said.code == 1
        assert all(str(f.relative_to(world.root)) in said.err for f in (original, copy)), said
        assert "same-id" in world.rondel("status", f"{workflow}:{folder.name}").out
    assert world.rondel("doctor").out.count("same-id") == 2
    assert world.rondel("status").out.count("(!)") == 2
    shown = json.loads(world.rondel("status", "--json").out)["sessions"]
    assert all("same-id" in [p["rule"] for p in one["problems"]] for one in shown)
    (advice,) = re.findall(r"`(rm [^`]+)`", world.rondel("resume", f"{workflow}:{copy.name}").err)
    world.type(advice.replace("COPY", str(copy)))
    assert world.rondel("resume", f"{workflow}:{original.name}").code in (0, 3), world.said
    assert world.rondel("resume", f"{workflow}:{copy.name}").code in (0, 3), world.said
    ids = [json.loads((f / ".rondel/session.json").read_text())["id"] for f in (original, copy)]
    assert len(set(ids)) == 2
