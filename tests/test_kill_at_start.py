"""A start that is killed has happened or has not: nothing is damaged, and the same command works again."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from rondel.testing.faults import die_anywhere_at, die_at, in_child
from support import follow
from support.kills import MARKS, points
from support.world import FOLDERS, GENERATE, SETTINGS, World

STARTS: dict[str, tuple[str, ...]] = {
    "review": ("review",),
    "feature": ("feature", "start", "Add it"),
    "hotfix": ("feature", "start", "Add it", "--mode", "hotfix"),
    "with a worktree": ("feature", "start", "Add it", "--worktree"),
    "cycle": ("cycle", "start", "Add it", "--no-run"),
    "task": ("task", "start", "Add it"),
    "generate": ("generate", "init", *GENERATE, "--auto"),
}
NAMES = {"task": "WFS-add-it", "feature": "001-add-it"}
GO_ON: dict[str, list[tuple[str, ...]]] = {
    "review": [("review", "show")],
    "feature": [("feature", "specify")],
    "cycle": [("resume",)],
    "task": [("task", "add", "More"), ("task", "run")],
    "generate": [("generate", "run")],
}


class Beginner(World):
    """Somebody who said nothing of trust: what is not on record as theirs is foreign."""

    def __init__(self, folder: Path, start: str) -> None:
        folder.mkdir(parents=True)
        super().__init__(folder, STARTS[start][0])
        own = self.folder / "home/.config/rondel/config.toml"
        own.parent.mkdir(parents=True)
        script = json.dumps(str(self.root / "script.json"))
        own.write_text(SETTINGS.replace('"script.json"', script))
        (self.root / "rondel.toml").unlink()
        self.more_env = {"RONDEL_TRUST": ""}
        self.start = STARTS[start]

    @property
    def sessions(self) -> list[str]:
        """The sessions that the person sees, none of which is said to be damaged."""
        code, said = self.typed("status", "--json")
        assert code == 0, said
        found = json.loads(said)["sessions"]
        assert [s for s in found if s["status"] == "damaged" or s["problems"]] == []
        code, said = self.typed("doctor")
        assert (code, "nothing wrong was found" in said) == (0, True), said
        return [s["session"] for s in found]

    @property
    def folders(self) -> list[str]:
        return sorted(path.name for path in self.root.glob(FOLDERS[self.workflow]))

    def type_all(self, *commands: tuple[str, ...]) -> None:
        for words in commands:
            code, said = self.typed(*words)
            assert code in (0, 3), (words, said)


def killed(start: str, folder: Path, number: int, die) -> bool:
    """Kill a start, look, type it again, and go on with what is there. Whether it died."""
    world = Beginner(folder, start)

    def doomed() -> int:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        follow.base = None  # where this dies nothing may be moved aside
        die(number)
        return world.typed(*world.start)[0]

    died = in_child(doomed) != 0
    seen = world.sessions
    assert len(seen) <= 1
    world.type_all(world.start)
    (name,) = [n for n in world.sessions if n not in seen] or seen
    own = NAMES.get(world.workflow)
    if own and not seen:
        assert (name, world.folders) == (f"{world.workflow}:{own}", [own]), "as if it had not been typed"
    (first, *rest) = GO_ON[world.workflow]
    session = (name.partition(":")[2],) if first[0] in ("feature", "generate", "resume") else ()
    world.type_all((*first, *session), *rest)
    world.type_all(*(("status", left) for left in seen))
    if seen and seen != [name] and world.workflow != "task":
        world.type_all(("resume", *seen))
    return died


def die_between_files(number: int) -> None:
    """Before the change of that number in what the repository shows."""
    die_at(number, counts=lambda operation, path: operation in {"mkdir", "rename"} and "/repo/" in path)


@pytest.mark.sweep
@pytest.mark.parametrize("start", STARTS)
def test_a_start_that_is_killed_between_two_files_is_typed_again(start, tmp_path):
    for number in points(stride=3):
        if not killed(start, tmp_path / str(number), number, die_between_files):
            assert number > 5, "there are more files than that"
            return
        if start == "review" and number > 12:  # what comes after is its run
            return


@pytest.mark.parametrize(("start", "document"), [("task", "IMPL_PLAN.md"), ("feature", "spec.md")])
def test_what_somebody_wrote_where_a_start_was_killed_stays(start, document, tmp_path):
    world = Beginner(tmp_path / "it", start)

    def doomed() -> int:
        follow.base = None
        last = {"task": "/workflow-session.json", "feature": "/.meta.json"}[start]
        die_at(1, counts=lambda operation, path: operation == "rename" and path.endswith(last))
        return world.typed(*world.start)[0]

    assert in_child(doomed) != 0
    (left,) = world.root.glob(FOLDERS[start])
    (left / document).write_text("mine\n")
    assert world.sessions == []
    world.type_all(world.start)
    assert (left / document).read_text() == "mine\n"
    assert len(world.sessions) == 1


@pytest.mark.parametrize("start", [pytest.param(start, marks=MARKS) for start in STARTS])
def test_a_start_that_is_killed_anywhere_is_typed_again(start, tmp_path):
    for number in points(stride=24):
        if not killed(start, tmp_path / str(number), number, die_anywhere_at):
            assert number > 60, "there are more points to die at than that"
            return
        if start == "review" and number > 200:
            return
