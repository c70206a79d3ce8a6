"""An agent that changes the repository itself: nothing of it runs in our git, and the person hears of it."""

import json
from pathlib import Path

import pytest

from support.world import SETTINGS, WORK, World

WAYS = {  # what an agent does in the person's own repository: its path is no secret
    "filter": "$G config filter.x.clean {evil}; echo '* filter=x' > .gitattributes",
    "fsmonitor": "$G config core.fsmonitor {evil}",
    "hook": "cp {evil} {root}/.git/hooks/post-checkout",
    "include": "$G config include.path {cfg}",
    "attributes": "mkdir -p {root}/.git/info; echo '* text' > {root}/.git/info/attributes",
    "branch": "cd {linked}; git update-ref refs/heads/main $(git commit-tree -m evil HEAD^{{tree}})",
}
SAID = {
    "filter": "git config filter.x.clean was added",
    "fsmonitor": "git config core.fsmonitor was added",
    "hook": "the hook post-checkout was added",
    "include": "git config include.path was added",
    "attributes": "info/attributes was added",
    "branch": "a move of the branch main, which is checked out in",
}


def world_with(tmp_path: Path, what: str) -> World:
    world = World(tmp_path, "task")
    evil, cfg = tmp_path / "evil.sh", tmp_path / "evil.cfg"
    evil.write_text(f'#!/bin/sh\necho "$0" >> {tmp_path}/ran\nexec cat\n')
    evil.chmod(0o755)
    cfg.write_text(f'[filter "x"]\n\tclean = {evil}\n')
    (tmp_path / "reply").write_text(WORK)
    linked = tmp_path / "linked"
    world.git("worktree", "add", "-q", "--detach", str(linked))
    words = what.format(evil=evil, cfg=cfg, root=world.root, linked=linked)
    agent = tmp_path / "agent.sh"
    agent.write_text(
        f"cat > /dev/null\nG='git -C {world.root}'\necho made > made.txt\n{words}\ncat {tmp_path}/reply\n"
    )
    more = f'[agents.sly]\nkind = "command"\ncommand = ["sh", {json.dumps(str(agent))}]\n'
    settings = SETTINGS.replace('default = "mock"', 'default = "mock"\ntask = "sly"')
    world.configure(more, settings)
    return world


@pytest.mark.parametrize("way", list(WAYS))
def test_what_an_agent_changes_in_the_repository_runs_nowhere_and_is_said(tmp_path, way):
    world = world_with(tmp_path, WAYS[way])
    base = world.git("rev-parse", "main")
    for words in (("task", "start", "Add it"), ("task", "add", "Add it"), ("task", "run")):
        world.rondel(*words)
    assert world.said.code != 0
    assert SAID[way] in world.said.err + world.said.out
    if way != "branch":
        assert world.git("-c", "core.fsmonitor=false", "rev-parse", "main") == base
        assert not (world.root / "made.txt").exists()
    world.rondel("status")
    assert not (tmp_path / "ran").exists()


def test_what_a_person_has_seen_is_not_said_again(tmp_path):
    world = world_with(tmp_path, "$G config user.name agent")
    for words in (("task", "start", "Add it"), ("task", "add", "Add it"), ("task", "run")):
        world.rondel(*words)
    assert "git config user.name was added" in world.said.err + world.said.out
    asked = world.asked
    world.rondel("resume")
    assert world.said.code == 0, world.said
    assert (world.root / "made.txt").exists()
    assert world.asked == asked
