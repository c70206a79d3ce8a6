"""The power goes; the machine comes back with what was made durable; the session goes on."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

import pytest
from harness import REF, ScriptedAgent, content, hall, in_child, repository, start
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_kill_anywhere import answer_as_a_person, comparable

from rondel.store import disk
from support.power import PowerDisk


def run_to_the_end(root: Path, calls: Path) -> int:
    """All the way: a person rejects the first round and approves the second."""
    here = hall(root, ScriptedAgent(calls=calls))
    while here.drive(REF).exit_code == 3:
        answer_as_a_person(here)
    return 0


def run_until_the_power_goes(root: Path, calls: Path, number: int, left: Path) -> bool:
    """Stop at the fault point of that number; `left` is what a machine would find afterwards."""

    def work() -> int:
        mine = disk.current = PowerDisk(root)
        passed = 0

        def point(_operation: str, _path: str) -> None:
            nonlocal passed
            passed += 1
            if passed == number:
                mine.crash(left)
                os.kill(os.getpid(), signal.SIGKILL)

        disk.point = point
        status = run_to_the_end(root, calls)
        mine.crash(left)
        return status

    status = in_child(work)
    assert status in (0, -signal.SIGKILL)
    return status != 0


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("undisturbed")
    root = repository(folder / "repo")
    start(root)
    assert in_child(lambda: run_to_the_end(root, folder / "calls")) == 0
    return comparable(content(root)), Counter((folder / "calls").read_text().split())


def lines(path: Path) -> Counter[str]:
    return Counter(path.read_text().split()) if path.exists() else Counter()


def check_after_power_loss_at(number: int, folder: Path, undisturbed) -> bool:
    files, calls = undisturbed
    root = repository(folder / "repo")
    start(root)
    died = run_until_the_power_goes(root, folder / "before", number, folder / "left")
    there = set(content(folder / "left"))
    assert in_child(lambda: run_to_the_end(folder / "left", folder / "after")) == 0
    assert comparable(content(folder / "left")) == files, f"after point {number}"
    asked_again = there & set(lines(folder / "after"))
    assert asked_again == set(), f"these were durable before point {number}"
    assert set(lines(folder / "before") + lines(folder / "after")) == set(calls)
    assert not list((folder / "left" / REF.folder).rglob(".rondel-tmp-*"))
    return died


@pytest.mark.slow
def test_a_power_loss_at_every_third_point_loses_nothing_that_was_finished(tmp_path: Path, undisturbed):
    number = 1
    while check_after_power_loss_at(number, tmp_path / str(number), undisturbed):
        number += 3
    assert number > 50


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(number=st.integers(1, 150))
def test_a_power_loss_at_a_random_point_loses_nothing_that_was_finished(
    number: int, tmp_path_factory: pytest.TempPathFactory, undisturbed
):
    check_after_power_loss_at(number, tmp_path_factory.mktemp("power"), undisturbed)
