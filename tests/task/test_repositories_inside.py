"""A submodule, or a repository inside of the repository: a task ends, and what it says leads on."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from support.repos import repository
from support.world import SETTINGS, WORK, World

ALLOW = "git -c protocol.file.allow=always"
# What is there before, what the agent does, and whether the task can be completed as it is.
CASES = {
    "initialised": ("add", "echo work > made.txt", True),
    "initialised and written to": ("add", "echo work > sub/made.txt", False),
    "not initialised": ("bare", "echo work > made.txt", True),
    "not initialised and written to": ("bare", "mkdir -p sub; echo work > sub/made.txt", False),
    "added by the agent": ("", f"{ALLOW} submodule --quiet add OTHER sub", False),
    "made by the agent": ("", "git init -q sub; cd sub; git commit -q --allow-empty -m x; echo > a", False),
    "made by the agent without a commit": ("", "git init -q sub; echo work > sub/made.txt", False),
}


def world_of(folder: Path, there: str, does: str) -> World:
    other = repository(folder / "other", {"theirs.txt": "x\n"})
    (folder / "it").mkdir()
    world = World(folder / "it", "task")
    if there:
        world.git(*ALLOW.split()[1:], "submodule", "--quiet", "add", str(other), "sub")
        world.git("commit", "-qm", "a submodule")
    if there == "bare":
        world.git("submodule", "--quiet", "deinit", "-f", "sub")
    agent = folder / "agent.sh"
    agent.write_text(f"{does.replace('OTHER', shlex.quote(str(other)))}\ncat <<'END'\n{WORK}END\n")
    command = json.dumps(["sh", str(agent)])
    old = '[agents.mock]\nkind = "mock"\nscript = "script.json"'
    world.configure(settings=SETTINGS.replace(old, f'[agents.mock]\nkind = "command"\ncommand = {command}'))
    return world


@pytest.mark.parametrize("case", CASES)
def test_a_repository_inside_never_leaves_a_task_active(case, tmp_path):
    there, does, completes = CASES[case]
    world = world_of(tmp_path, there, does)
    for words in (("task", "start", "Add it"), ("task", "add", "Add it")):
        world.rondel(*words)
    said = world.rondel("task", "run")

    def task() -> dict:
        return json.loads((world.session / ".task/IMPL-1.json").read_text())

    if said.code == 0:
        assert task()["status"] == "completed"
        assert completes or "made.txt" in world.git("ls-tree", "-r", "--name-only", "HEAD"), said
        return
    assert not completes, said
    assert task()["status"] == "blocked"
    assert "IMPL-1" in said.err
    words = task()["meta"]["error"]
    place = re.search(r" is in (/\S+?)\.?$", words, re.MULTILINE) or re.search(
        r"rm -rf (/\S+)/sub/\.git", words
    )
    assert place is not None, words
    tree = Path(place[1])
    assert (tree / "sub").is_dir(), words
    assert world.next.startswith("rondel "), said
    world.type(world.next)
    assert task()["status"] in ("blocked", "completed"), "typed before anything was done about it"
    for command in re.findall(r"rm -rf \S+/\.git\b", words):  # what it says that a person does by hand
        world.type(command)
    if (tree / "sub/made.txt").is_file() and there:
        (tree / "sub/made.txt").rename(tree / "made.txt")
    (tmp_path / "agent.sh").write_text(f"echo work > made.txt\ncat <<'END'\n{WORK}END\n")
    world.rondel("task", "run")
    assert (world.said.code, task()["status"]) == (0, "completed"), world.said
