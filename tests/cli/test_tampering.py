"""An agent that changes the repository itself: nothing of it runs in our git, and the person hears of it."""

import json
from pathlib import Path

import pytest

from rondel.repo.workspaces import Workspaces
from rondel.sandbox.box import Box
from support.world import SETTINGS, WORK, World

WAYS = {  # what an agent does in the person's own repository: its path is no secret
    "filter": "$G config filter.x.clean {evil}; echo '* filter=x' > .gitattributes",
    "fsmonitor": "$G config core.fsmonitor {evil}",
    "hook": "cp {evil} {root}/.git/hooks/post-checkout",
    "include": "$G config include.path {cfg}",
    "attributes": "mkdir -p {root}/.git/info; echo '* text' > {root}/.git/info/attributes",
    "branch": "cd {linked}; git update-ref refs/heads/main $(git commit-tree -m evil HEAD^{{tree}})",
    "deleted": "$G branch -q -D release; $G tag -d v1 > /dev/null; $G update-ref -d refs/stash",
    "all tags": "$G tag | xargs $G tag -d > /dev/null; $G update-ref -d refs/heads/release",
    "moved": "$G update-ref refs/heads/release $($G commit-tree -m evil HEAD^{{tree}}); $G tag -f v1 release",
}
SAID = {
    "filter": "git config filter.x.clean was added",
    "fsmonitor": "git config core.fsmonitor was added",
    "hook": "the hook post-checkout was added",
    "include": "git config include.path was added",
    "attributes": "info/attributes was added",
    "branch": "a move of the branch main, which is checked out in",
    "deleted": "the branch release was removed; the ref refs/stash was removed; the tag v1 was removed",
    "all tags": "the branch release was removed; the tag v1 was removed",
    "moved": "the branch release was moved, and not forward; the tag v1 was moved, and not forward",
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
    for name in ("refs/heads/release", "refs/tags/v1", "refs/remotes/origin/old", "refs/remotes/origin/new"):
        world.git("update-ref", name, "HEAD")
    world.git("update-ref", "refs/stash", "HEAD")
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


HONEST = """
cd {linked}
echo more > more.txt; git add more.txt; git commit -q -m more
git update-ref refs/heads/release HEAD
git branch -q topic; git tag v2; git tag v1 -f HEAD > /dev/null
git update-ref -d refs/remotes/origin/old
git update-ref refs/remotes/origin/new $(git commit-tree -m forced HEAD^{{tree}})
git update-ref refs/rondel/kept/x HEAD
cd - > /dev/null
"""


def test_what_a_person_commits_fetches_and_pushes_meanwhile_stops_nobody(tmp_path):
    world = world_with(tmp_path, HONEST)
    for words in (("task", "start", "Add it"), ("task", "add", "Add it"), ("task", "run")):
        world.rondel(*words)
    assert world.said.code == 0, world.said
    assert (world.root / "made.txt").exists()
    assert world.git("rev-parse", "release", "v1") == world.git("rev-parse", "topic", "topic")


def test_where_the_sandbox_holds_refs_are_the_persons_to_change(tmp_path):
    """No agent reaches them there; what was noted before the sandbox was switched on is no matter."""
    world = World(tmp_path, "task")
    world.git("branch", "release")
    loose, held = (Workspaces(world.root, tmp_path / "spaces", box=box) for box in (None, Box()))
    before, confined = loose.state(), held.state()
    assert loose.differences(before, confined) == loose.differences(confined, before) == ""
    world.git("branch", "-D", "release")
    assert loose.differences(before, loose.state()) == "the branch release was removed"
    assert held.differences(confined, held.state()) == held.differences(before, held.state()) == ""


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
