"""Whatever stands where one of a task session's own belongs is put aside, and the tasks get done."""

from __future__ import annotations

import pytest
from task_support import (
    REPORT,
    Scripted,
    git,
    project,
    repository,
    run,
    session,
    statuses,
    task,
    task_id,
    write_file,
)

from rondel.engine.report import Stopped
from rondel.store import disk
from support.in_the_way import OURS, is_found, is_in_the_way, is_untouched, put, share, spot
from support.words import HastyDisk

pytestmark = pytest.mark.sweep

DOCUMENTS = (".summaries", ".task", "TODO_LIST.md", "IMPL_PLAN.md", ".summaries/IMPL-2-summary.md")
FOLDERS = (".summaries", ".task")
CASES = share([*OURS, *DOCUMENTS], 8)


@pytest.fixture
def scene(tmp_path, monkeypatch):
    monkeypatch.setattr(disk, "current", HastyDisk())
    root = repository(tmp_path / "repo")
    ref = session(root, [task("IMPL-1"), task("IMPL-2", depends_on=["IMPL-1"])])
    project(root).begin(ref, new=True)
    return root, ref


def done(root, ref) -> bool:
    subjects = [s.split(":")[0] for s in git(root, "log", "--format=%s").splitlines()]
    return set(statuses(root, ref).values()) == {"completed"} and subjects[:2] == ["IMPL-2", "IMPL-1"]


@pytest.mark.parametrize(("path", "kind"), CASES)
def test_while_a_driver_runs_every_task_gets_done_once(scene, tmp_path, path, kind):
    root, ref = scene
    folder, outside = root / ref.folder, tmp_path / "outside"
    met: list[str] = []

    def answer(request) -> str:
        if task_id(request) == "IMPL-2" and not met:
            met.append(path)
            put(spot(folder, path), kind, outside)
        write_file(request, f"{task_id(request)}.txt", "x\n")
        return REPORT

    report = run(project(root, Scripted(answer)), ref)
    assert met
    if (path, kind) == (".rondel/control", "file"):
        assert report.stopped is Stopped.PAUSED
        return
    assert report.exit_code == 0, report
    assert done(root, ref)
    assert is_untouched(outside)
    assert not is_in_the_way(path, kind, FOLDERS) or is_found(folder, path, kind, outside)


@pytest.mark.parametrize(("path", "kind"), CASES)
def test_at_rest_the_next_run_does_every_task_once(scene, tmp_path, path, kind):
    root, ref = scene
    folder, outside = root / ref.folder, tmp_path / "outside"

    def answer(request) -> str:
        write_file(request, f"{task_id(request)}.txt", "x\n")
        return REPORT

    assert run(project(root, Scripted(answer)), ref, only=("IMPL-1",)).stopped is not Stopped.FAILED
    put(spot(folder, path), kind, outside)
    project(root).summary(ref)
    report = run(project(root, Scripted(answer)), ref)
    assert is_untouched(outside)
    if path == ".task":  # its tasks are gone, and nobody knows them
        assert report.stopped is not Stopped.COMPLETED
        return
    assert report.exit_code == 0, report
    assert done(root, ref)
    assert not is_in_the_way(path, kind, FOLDERS) or is_found(folder, path, kind, outside)
