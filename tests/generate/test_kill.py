"""Kill it anywhere, between two files of a cycle's completion too: it goes on, and pays nothing twice."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from pathlib import Path

import pytest
from generate_scene import FAIL, FULL, PASS, Scene, begin, engineer, hall, place, repo
from harness import ScriptedAgent, die_at, in_child
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.store import disk, files
from rondel.workflows.generate.models import WorkflowState

POINTS_MAX = 3000
TIMES = re.compile(r'"(?:at|created_at|updated_at|started_at|completed_at)": "[^"]*"')
SMALL = {**FULL, "scope": "domain"}


def answer(request) -> str:
    """Two cycles: the domain needs one revision; then the tests."""
    kind, iteration, phase = place(request)
    if phase == "review":
        return FAIL if (kind, iteration) == ("domain", 1) else PASS
    return engineer(request)


def session(folder: Path):
    root = repo(folder / "repo")
    return root, begin(root, context=SMALL, request={"gate": "skip", "gates": {"domain.review": "manual"}})


def die_between_files(number: int):
    """A hook that ends this process before that change of what the session's folder shows."""
    count = 0

    def point(operation: str, path: str) -> None:
        nonlocal count
        if operation in ("rename", "link", "unlink") and "/.rondel/run" not in str(path):
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)

    return point


def one_run(root: Path, ref, calls: Path, die: int | None = None, how=die_at) -> int:
    def work() -> int:
        files._swept.clear()  # a process of its own has swept nothing yet
        if die is not None:
            disk.point = how(die)
        here = hall(root, ScriptedAgent(answer, calls=calls))
        while here.drive(ref).exit_code == 3:
            for question in here.waiting(ref):
                first = "prompt-1" in question.path and "iteration-1" in question.path
                here.decide(ref, "reject" if first else "approve", path=question.path, comment="shorter")
        return 0

    return in_child(work)


def content(root: Path, ref) -> dict[str, bytes]:
    """Every file of the session that is state, less its times and its name."""
    folder = root / ref.folder
    return {
        str(p.relative_to(folder)): TIMES.sub("", p.read_text()).replace(ref.id, "ID").encode()
        for p in sorted(folder.rglob("*"))
        if p.is_file() and ".rondel/run" not in str(p) and ".torn-" not in p.name
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    root, ref = session(folder)
    assert one_run(root, ref, folder / "calls") == 0
    return content(root, ref), Counter((folder / "calls").read_text().split())


def consistent(root: Path, ref) -> None:
    """A complete cycle has all of its files; one that is not complete gives nothing to others."""
    path = root / ref.folder / "session.json"
    state = WorkflowState.model_validate(json.loads(path.read_text()))
    for cycle in state.cycles:
        if cycle.status == "completed":
            assert cycle.artifacts
            assert cycle.iterations[-1].verdict == "PASS"
        for artifact in cycle.artifacts:
            assert (root / ref.folder / artifact.path).is_file()
        if cycle.pending:
            assert state.cycles[0].status != "completed" or cycle.type == "tests"


def check_after_death_at(point: int, folder: Path, undisturbed) -> bool:
    expected, calls = undisturbed
    root, ref = session(folder)
    died = one_run(root, ref, folder / "calls", die=point, how=die_between_files)
    assert died in (0, -9)
    consistent(root, ref)
    assert one_run(root, ref, folder / "calls") == 0
    assert content(root, ref) == expected
    assert Counter((folder / "calls").read_text().split()) == calls, "an answer was paid for twice"
    assert not list((root / ref.folder).rglob(".rondel-tmp-*"))
    return died == -9


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_a_death_between_any_two_files_changes_nothing(part, tmp_path, undisturbed):
    for point in range(part + 1, POINTS_MAX, 4):
        if not check_after_death_at(point, tmp_path / str(point), undisturbed):
            assert point > 40
            return
    pytest.fail("the run never came to its end")


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(points=st.lists(st.integers(min_value=1, max_value=300), min_size=2, max_size=4))
def test_deaths_at_random_points_one_after_the_other_change_nothing(points, tmp_path_factory, undisturbed):
    expected, calls = undisturbed
    folder = tmp_path_factory.mktemp("random")
    root, ref = session(folder)
    for point in points:
        assert one_run(root, ref, folder / "calls", die=point) in (0, -9)
        consistent(root, ref)
    assert one_run(root, ref, folder / "calls") == 0
    assert content(root, ref) == expected
    assert Counter((folder / "calls").read_text().split()) == calls


def test_a_cycle_is_complete_in_one_step(tmp_path):
    """Whoever looks while it runs sees a cycle complete with its verdict, or not complete."""
    seen = []

    def looking(request):
        body = json.loads((scene.folder / "session.json").read_text())
        seen.append([c["status"] for c in body["cycles"]])
        kind = place(request)[0]
        assert all(c["completed_at"] for c in body["cycles"] if c["status"] == "completed")
        assert body["cycles"][body["current_cycle_index"]]["type"] == kind
        return answer(request)

    scene = Scene(tmp_path / "repo", looking, context=SMALL)
    assert scene.drive().exit_code == 0
    assert ["completed", "in_progress"] in seen
