"""A foreign session is shown as what it is by every command that looks, and goes on by none."""

from __future__ import annotations

import pytest
from test_beside_a_driver import FOUND
from test_sessions import tree

from rondel.project import Project
from support.world import BEGIN, GOOD, World

EVERYWHERE = [
    ("status",),
    ("status", "{}"),
    ("status", "{}", "--json"),
    ("status", "{}", "--explain"),
    ("watch", "{}", "--once"),
    ("show", "{}"),
    ("doctor",),
]
LOOKING: dict[str, list[tuple[str, ...]]] = {
    "review": [
        ("review", "show", "--session", "{}"),
        ("review", "show", "--session", "{}", "--json"),
        ("review", "progress", "--session", "{}"),
        ("review", "history", "--all"),
        ("review", "history", "--all", "--json"),
        ("review", "resolve"),
        ("review", "post", "--dry-run", "--session", "{}"),
    ],
    "feature": [
        ("feature", "status"),
        ("feature", "status", "{}"),
        ("feature", "status", "{}", "--json"),
        ("feature", "history", "{}"),
    ],
    "cycle": [
        ("cycle", "status", "{}"),
        ("cycle", "status", "{}", "--json"),
        ("cycle", "timeline", "{}"),
        ("cycle", "timeline", "{}", "--json"),
    ],
    "task": [
        ("task", "sessions"),
        ("task", "sessions", "--json"),
        ("task", "validate"),
        ("task", "validate", "--json"),
        ("task", "allow"),
    ],
    "generate": [
        ("generate", "status"),
        ("generate", "status", "{}"),
        ("generate", "status", "{}", "--json"),
        ("generate", "apply", "{}", "--dry-run"),
    ],
}
COUNTING: dict[str, list[tuple[str, ...]]] = {
    "review": [
        ("review", "accept", "F1", "--session", "{}"),
        ("review", "close", "--session", "{}"),
        ("review", "post", "--session", "{}"),
    ],
    "feature": [
        ("feature", "check", "design", "{}"),
        ("feature", "check", "design", "{}", "--json"),
        ("feature", "finish", "{}", "--keep"),
        ("feature", "design", "{}"),
    ],
    "cycle": [
        ("cycle", "extend", "{}", "More"),
        ("cycle", "feedback", "{}", "More", "--to", "ra"),
        ("cycle", "block", "{}", "No key"),
        ("cycle", "pause", "{}"),
        ("cycle", "resume", "{}"),
        ("cycle", "rebuild", "{}"),
    ],
    "task": [
        ("task", "add", "More"),
        ("task", "todo"),
        ("task", "reopen", "IMPL-1"),
        ("task", "complete"),
        ("task", "pause"),
        ("task", "run"),
    ],
    "generate": [
        ("generate", "apply", "{}", "--yes"),
        ("generate", "run", "{}"),
        ("generate", "retry", "{}"),
    ],
}
# What is about no session that is there: it begins one, or reads what the person names.
NONE = {"start", "init", "parse", "lint", "schema", "profile", "profiles"}
# The same as one that is listed, by another name or with other words.
LIKE = {
    "review": {"compare"},  # needs two rounds; the session is found as by `show`
    "feature": {"run", "brainstorm", "specify", "create-plan", "create-tasks", "implement", "verify"},
    "cycle": {"decide", "unblock", "stop"},
    "task": {"plan", "breakdown", "replan", "resume", "switch"},
    "generate": {"approve", "reject", "skip", "cancel"},
}


@pytest.fixture
def world(tmp_path, request):
    """A repository with a session that somebody else began: their state folder is not ours."""
    made = World(tmp_path, request.param, more_env={"XDG_STATE_HOME": str(tmp_path / "theirs")})
    made.answer([{"role": "review.reviewer*", "reply": FOUND}, *GOOD])
    for words in BEGIN[made.workflow]:
        code, said = made.typed(*words)
        assert code == 0, said
    (made.root / "rondel.toml").unlink()  # nothing but the session is to be asked about
    made.more_env = {"XDG_STATE_HOME": str(tmp_path / "ours"), "RONDEL_TRUST": "no"}
    return made


@pytest.mark.parametrize("world", LOOKING, indirect=True)
def test_a_foreign_session_is_named_so_by_whoever_looks_and_counts_for_nobody(world):
    (ref,) = Project(world.root).sessions(world.workflow)
    before = tree(world.root)
    for words in (*EVERYWHERE, *LOOKING[world.workflow]):
        code, said = world.typed(*(word.format(ref.id) for word in words))
        assert code in (0, 1, 3), (words, said)
        assert "foreign" in said, (words, said)
    for words in COUNTING[world.workflow]:
        code, said = world.typed(*(word.format(ref.id) for word in words))
        assert code == 3, (words, said)
        assert f"rondel adopt {ref.name}" in said, (words, said)
        assert "proceed" not in said
    assert tree(world.root) == before


@pytest.mark.parametrize("workflow", LOOKING)
def test_every_command_of_a_workflow_is_among_those_that_look_or_count(workflow, tmp_path):
    there = set(Project(tmp_path).workflow(workflow).commands().commands)
    listed = {words[1] for words in (*LOOKING[workflow], *COUNTING[workflow])}
    assert there - NONE == listed | LIKE[workflow]
