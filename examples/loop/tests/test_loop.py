"""A loop is decided without a disk, and survives being killed anywhere."""

import subprocess
from pathlib import Path

import pytest
from rondel_loop.workflow import Loop

from rondel.agents.base import Request
from rondel.model.snapshot import FrozenSnapshot
from rondel.model.workflow import SessionRef
from rondel.project import Project
from rondel.testing.kills import Trial, killed_and_resumed, undisturbed
from rondel.testing.scripted import Scripted

REF = SessionRef("loop", "rain", "loops/rain")


def due(**files: str) -> list[str]:
    there = {path.replace("__", "/") + ".md": text for path, text in files.items()}
    return [action.path for action in Loop().plan(Loop().read(FrozenSnapshot(there), REF))]


def test_work_is_judged_and_done_again_until_the_judge_is_content():
    first = {"goal": "Rain", "round-1__work": "Wet"}
    assert due(goal="Rain") == ["round-1/work.md"]
    assert due(**first) == ["round-1/judgement.md"]
    assert due(**first, **{"round-1__judgement": "No: too short"}) == ["round-2/work.md"]
    assert due(**first, **{"round-1__judgement": "Yes."}) == []


def test_it_ends_after_the_last_round():
    rounds = {f"round-{n}__{what}": "no" for n in (1, 2, 3) for what in ("work", "judgement")}
    assert due(goal="Rain", **rounds) == []


def answer(request: Request) -> str:
    """The judge is content with the second round."""
    if "judgement" not in request.action:
        return f"The rain, for {request.action}"
    return "yes" if "round-2" in request.action else "no: it is too short"


class Rain(Trial):
    """Two rounds."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "repo"
        self.root.mkdir(parents=True)
        for words in ("init -q -b main", "commit -q --allow-empty -m start"):
            config = ("-c", "user.name=t", "-c", "user.email=t@localhost")
            subprocess.run(["git", *config, *words.split()], cwd=self.root, check=True)
        started = self.project().start("loop", name="rain", goal="A poem on rain")
        self.session = self.root / started.ref.folder

    def project(self) -> Project:
        return Project(self.root, workflows={"loop": Loop()}, build=lambda _: Scripted(answer))

    def drive(self) -> int:
        return self.project().run(REF).exit_code


@pytest.fixture(autouse=True, scope="module")
def own_state(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        patch.setenv("RONDEL_TRUST", "yes")
        yield


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    return undisturbed(Rain(tmp_path_factory.mktemp("undisturbed")))


@pytest.mark.parametrize("point", [1, 9, 20, 33, 47, 60, 75, 90])
def test_killed_anywhere_it_goes_on_and_asks_nothing_twice(point, tmp_path, calm):
    assert killed_and_resumed(Rain(tmp_path), [point], calm)


def test_killed_again_and_again_it_ends_as_if_nothing_had_happened(tmp_path, calm):
    assert killed_and_resumed(Rain(tmp_path), [30, 25, 20], calm)
