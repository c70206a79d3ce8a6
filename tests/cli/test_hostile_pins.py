"""A session whose documents name options of git where commits and branches are meant: none becomes one."""

import json
import re
from pathlib import Path

import pytest

from support.world import GOOD, World

BRANCHES = ("main", "change", "feature/001-add-it")
UNFINISHED = {  # which agent has no answer, so that the session stops there
    "review": "review.reviewer*",
    "feature": "feature.implement",
    "cycle": "cycle.cd",
    "task": "task.*",
    "generate": "generate.*",
}
KEYS = ("base", "head", "branch", "target", "onto", "commit")


@pytest.mark.parametrize("workflow", list(UNFINISHED))
def test_no_document_of_a_session_gives_git_an_option(tmp_path, workflow):
    world = World(tmp_path, workflow)
    world.answer([rule for rule in GOOD if rule["role"] != UNFINISHED[workflow]])
    world.begin()
    if workflow == "feature":
        world.rondel("feature", "implement", "001-add-it")
    victim = tmp_path / "victim"
    victim.write_text("mine\n")
    changed = [path for path in world.session.rglob("*.json") if poisoned(path, f"--output={victim}")]
    assert changed or workflow == "generate"
    for name in ("change.json", "since.json", "run"):  # it is looked at again
        for found in world.session.rglob(name):
            remove(found)
    world.answer(GOOD)
    name = f"{workflow}:{world.session.name.removesuffix('.progress').removeprefix('WFS-')}"
    for words in (("status",), ("resume", name), ("resume",), ("status", "--json")):
        world.rondel(*words)
    if workflow == "review":
        for words in (("review",), ("review", "post", "--dry-run"), ("review", "compare")):
            world.rondel(*words)
    assert victim.read_text() == "mine\n"


def poisoned(path: Path, word: str) -> bool:
    """Put the word wherever a document names a commit or a branch; whether it did."""
    text = path.read_text()
    try:
        found = json.loads(text)
    except ValueError:
        return False
    path.write_text(json.dumps(_poisoned(found, word)))
    return json.loads(path.read_text()) != found


def _poisoned(value: object, word: str, key: str = "") -> object:
    match value:
        case dict():
            return {k: _poisoned(v, word, k) for k, v in value.items()}
        case list():
            return [_poisoned(v, word) for v in value]
        case str() if re.fullmatch(r"[0-9a-f]{40}", value) or value in BRANCHES:
            return word
        case str() if key in KEYS:
            return word
    return value


def remove(path: Path) -> None:
    if path.is_dir():
        for inside in path.iterdir():
            remove(inside)
        path.rmdir()
    else:
        path.unlink()
