"""The machine's trouble in a real review and a real run of tasks: nobody is blamed, and all goes on after."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from test_bad_places import mounted

from rondel.testing.scripted import run_of
from support.cli import RONDEL
from support.timekills import AGENT
from support.world import BEGIN, FOLDERS, SETTINGS, WORK, World

LEAD = "Look at the sign.\n"
REVIEW = '## Summary\n\nRead.\n\n```json\n{"findings": []}\n```\n'
RULES: dict[str, list[dict[str, object]]] = {
    "review": [{"action": "*/reviews/*", "reply": REVIEW}, {"action": "*", "reply": LEAD}],
    "task": [{"files": {"made.txt": "made\n"}, "reply": WORK}],
}
# Fills the disk and fails, the first time that it is asked; then it is the other program.
FILLS = """import os, sys
from pathlib import Path
if not Path(sys.argv[1]).exists():
    Path(sys.argv[1]).touch()
    fd = os.open(sys.argv[2], os.O_CREAT | os.O_WRONLY)
    for size in (65536, 4096, 512, 1):
        try:
            while True:
                os.write(fd, b"x" * size)
        except OSError:
            pass
    sys.exit("I could not write my file")
os.execv(sys.executable, [sys.executable, *sys.argv[3:]])
"""


def world_of(folder: Path, workflow: str, *fills: Path) -> World:
    """A repository whose agent is a program; one that fills the disk first, where it is given that."""
    (folder / "it").mkdir()
    world = World(folder / "it", workflow)
    (world.folder / "rules.json").write_text(json.dumps(RULES[workflow]))
    (world.folder / "fills.py").write_text(FILLS)
    program = [str(AGENT), str(world.folder / "rules.json")]
    if fills:
        program = [str(world.folder / "fills.py"), *map(str, fills), *program]
    old = 'kind = "mock"\nscript = "script.json"'
    command = json.dumps([sys.executable, *program])
    world.configure(settings=SETTINGS.replace(old, f'kind = "command"\ncommand = {command}'))
    for words in BEGIN[workflow][:-1]:
        world.rondel(*words)
    return world


def blamed(world: World) -> list[dict[str, object]]:
    """What counts against an agent: failures, and what was cut off."""
    if not list(world.root.glob(FOLDERS[world.workflow])):
        return []  # it did not come so far
    journal = run_of(world.session) / "journal.jsonl"
    events = [json.loads(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    bad = ("failed", "timed_out", "rejected", "conflict")
    return [e for e in events if e.get("ended") in bad or e["kind"] == "cutoff"]


def ended_well(world: World) -> None:
    assert world.said.code == 0, world.said
    assert blamed(world) == []
    if world.workflow == "review":
        assert LEAD.strip() in (world.session / "rounds/round-1/final.md").read_text(), "with its lead"
    else:
        tasks = [json.loads(path.read_text()) for path in (world.session / ".task").glob("*.json")]
        assert [task["status"] for task in tasks] == ["completed"] * 2


@pytest.mark.parametrize("workflow", RULES)
def test_a_disk_that_fills_while_an_agent_works_stops_the_run_with_its_name(workflow, tmp_path):
    with mounted(tmp_path / "disk", "size=16m") as small:
        full = small / "full"
        world = world_of(small, workflow, tmp_path / "filled", full)
        said = world.rondel(*BEGIN[workflow][-1])
        assert (said.code, "free some space" in said.err) == (6, True), said
        full.unlink()
        assert blamed(world) == []
        world.rondel(*BEGIN[workflow][-1])
        ended_well(world)


@pytest.mark.parametrize("workflow", RULES)
def test_too_many_open_files_stop_the_run_with_their_name(workflow, tmp_path):
    world = world_of(tmp_path, workflow)
    codes = []
    for limit in (12, 16, 20, 24):
        done = subprocess.run(
            [*RONDEL, *BEGIN[workflow][-1]],
            cwd=world.root,
            env=world.env,
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit)),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        codes.append(done.returncode)
        assert done.returncode in (0, 6), (limit, done)
        assert done.returncode != 6 or "open files" in done.stderr, (limit, done.stderr)
        assert blamed(world) == [], limit
        if done.returncode == 0:
            break
    assert 6 in codes, codes
    if codes[-1]:
        world.rondel(*BEGIN[workflow][-1])
    ended_well(world)
