"""Kill it anywhere; start it again: it goes on, nothing is lost, nothing is paid for twice."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from harness import REF, ScriptedAgent, content, die_at, hall, in_child, repository, start
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.api import Hall
from rondel.store import disk

POINTS_MAX = 2000


def one_run(root: Path, calls: Path, die: int | None = None) -> int:
    """Run until the end or until it dies; a person rejects the first round and approves the second."""

    def work() -> int:
        agent = ScriptedAgent(calls=calls)
        if die is not None:
            disk.point = die_at(die)
        here = hall(root, agent)
        while here.drive(REF).exit_code == 3:
            answer_as_a_person(here)
        return 0

    return in_child(work)


def answer_as_a_person(here: Hall) -> None:
    for question in here.waiting(REF):
        here.decide(REF, "reject" if "round-1" in question.path else "approve", path=question.path)


def comparable(files: dict[str, bytes]) -> dict[str, bytes]:
    """Decisions carry the moment they were made; everything else must be the same to the byte."""
    out = dict(files)
    for path in files:
        if path.startswith(".rondel/decisions/"):
            out[path] = str(json.loads(files[path])["answer"]).encode()
    return out


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    root = repository(folder / "repo")
    start(root)
    assert one_run(root, folder / "calls") == 0
    return comparable(content(root)), Counter((folder / "calls").read_text().split())


def check_after_death_at(point: int, folder: Path, undisturbed) -> bool:
    """Die at a point, go on, compare. False when there is no such point any more."""
    files, calls = undisturbed
    root = repository(folder / "repo")
    start(root)
    died = one_run(root, folder / "calls", die=point)
    done_before = set(content(root))
    paid_before = (
        Counter((folder / "calls").read_text().split()) if (folder / "calls").exists() else Counter()
    )
    assert died in (0, -9)
    assert one_run(root, folder / "calls") == 0
    assert comparable(content(root)) == files
    paid = Counter((folder / "calls").read_text().split())
    assert paid == calls, "an answer was paid for twice"
    for path in done_before & set(paid):
        assert paid[path] == paid_before[path], f"{path} was there, and was asked for again"
    assert not list((root / REF.folder).rglob(".rondel-tmp-*"))
    return died == -9


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_a_death_at_every_single_point_changes_nothing(part, tmp_path, undisturbed):
    for point in range(part + 1, POINTS_MAX, 8):
        if not check_after_death_at(point, tmp_path / str(point), undisturbed):
            assert point > 50
            return
    pytest.fail("the run never came to its end")


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(points=st.lists(st.integers(min_value=1, max_value=120), min_size=2, max_size=5))
def test_deaths_at_random_points_one_after_the_other_change_nothing(points, tmp_path_factory, undisturbed):
    files, calls = undisturbed
    folder = tmp_path_factory.mktemp("random")
    root = repository(folder / "repo")
    start(root)
    for point in points:
        assert one_run(root, folder / "calls", die=point) in (0, -9)
    assert one_run(root, folder / "calls") == 0
    assert comparable(content(root)) == files
    assert Counter((folder / "calls").read_text().split()) == calls
