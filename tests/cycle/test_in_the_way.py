"""Whatever stands where one of a cycle's own belongs is put aside, and the cycle comes to its end."""

from __future__ import annotations

import json

import pytest
from cycle_answers import answer
from cycle_repo import Repo
from test_running import QUICK

from rondel.engine.report import Stopped
from rondel.project import Project
from rondel.store import disk
from rondel.testing.scripted import Scripted
from rondel.workflows.cycle.files import create
from support.in_the_way import OURS, is_found, is_in_the_way, is_untouched, put, share, spot
from support.words import HastyDisk

pytestmark = pytest.mark.sweep

DOCUMENTS = ("coordination", "coordination/state.ndjson", "coordination/timeline.md", "ra", "ep", "cd", "vas")
FOLDERS = ("coordination", "ra", "ep", "cd", "vas")
CASES = share([*OURS, *DOCUMENTS, "../ID.json"], 6)
GONE = (".rondel", "empty folder")  # with it goes what the other tasks were planned from


@pytest.fixture
def scene(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "current", HastyDisk())
    repo = Repo(tmp_path)
    repo.configure(QUICK)
    test = json.loads(QUICK.partition("test = ")[2])
    return repo, create(repo.root, "Add subtraction", title=None, settings={"test": test, "auto": True})


def ended(repo) -> bool:
    return repo.state["status"] == "completed" and "sub" in repo.built("calc.py")


@pytest.mark.parametrize(("path", "kind"), dict.fromkeys([GONE, *CASES]))
@pytest.mark.parametrize("when", ["while a driver runs", "at rest"])
def test_it_ends_as_if_nothing_had_happened(scene, tmp_path, path, kind, when):
    repo, ref = scene
    project = Project(repo.root, build=lambda _: Scripted(said))
    project.begin(ref, new=True)
    folder, outside = repo.progress, tmp_path / "outside"
    met: list[str] = []

    def said(request):
        if "/cd" in request.role or request.role.endswith(".cd"):
            if not met and when == "at rest":
                project.pause(ref)
            elif not met:
                put(spot(folder, path.replace("ID", ref.id)), kind, outside)
            met.append(path)
        return answer(request)

    report = project.run(ref)
    if when == "at rest":
        assert report.stopped is Stopped.PAUSED
        put(spot(folder, path.replace("ID", ref.id)), kind, outside)
        project.summary(ref)
        report = project.run(ref)
    assert met
    assert is_untouched(outside)
    if (path, kind, when) == (".rondel/control", "file", "while a driver runs"):
        assert report.stopped is Stopped.PAUSED
        return
    assert report.exit_code == 0, report
    assert ended(repo)
    assert not is_in_the_way(path, kind, FOLDERS) or is_found(folder, path, kind, outside)
