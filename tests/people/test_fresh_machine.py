"""A session that goes on where the state folder is another one pays again only for what was under way."""

from __future__ import annotations

import json
import shutil

import pytest

from rondel.testing.scripted import run_of
from support.world import GOOD, World

FAILS = {  # who gives no answer the first time
    "review": {"role": "review.reviewer*"},
    "feature": {"role": "feature.*-reviewer"},
    "cycle": {"role": "cycle.cd"},
    "task": {"role": "task.*", "action": "*IMPL-2*"},
    "generate": {"role": "generate.*", "action": "*review*"},
}


def events(world: World) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run_of(world.session) / "journal.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("workflow", FAILS)
def test_only_what_was_under_way_is_paid_for_again(tmp_path, workflow):
    world = World(tmp_path, workflow)
    world.answer([{**FAILS[workflow], "fail": "the model is on fire"}, *GOOD])
    world.begin()
    asked = {e["action"] for e in events(world) if e["kind"] == "started" and "agent" in e}
    done = {e["action"] for e in events(world) if e["kind"] == "finished" and e["ended"] == "done"} & asked
    assert done
    assert asked - done, "something was under way"
    shutil.rmtree(world.folder / "home/.local/state")
    (shown,) = json.loads(world.rondel("status", "--json").out)["sessions"]
    world.answer(GOOD)
    world.rondel("resume", shown["session"])
    again = {e["action"] for e in events(world) if e["kind"] == "started" and "agent" in e}
    assert again, world.said
    assert not again & done
