"""The power goes; the machine comes back with what was made durable; the session goes on."""

from __future__ import annotations

import signal
from copy import copy
from pathlib import Path

import pytest
from harness import REF, Rounds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.store import disk
from rondel.testing.faults import die_at, in_child
from rondel.testing.kills import Undisturbed, content, undisturbed
from rondel.testing.scripted import asked
from support.kills import swept_alone
from support.power import PowerDisk


def run_until_the_power_goes(trial: Rounds, number: int, left: Path) -> bool:
    """Stop at the fault point of that number; `left` is what a machine would find afterwards."""

    def work() -> int:
        mine = disk.current = PowerDisk(trial.root)
        die_at(number, before=lambda: mine.crash(left))
        status = trial.drive()
        mine.crash(left)
        return status

    status = in_child(work)
    assert status in (0, -signal.SIGKILL)
    return status != 0


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return undisturbed(Rounds(tmp_path_factory.mktemp("undisturbed")))


def check_after_power_loss_at(number: int, folder: Path, calm: Undisturbed) -> bool:
    before = Rounds(folder)
    after = copy(before)
    after.root, after.session = folder / "left", folder / "left" / REF.folder
    died = run_until_the_power_goes(before, number, after.root)
    there = set(content(after.session))
    assert in_child(after.drive) == 0
    assert after.shown() == calm.shown, f"after point {number}"
    asked_again = there & set(asked(after.session))
    assert asked_again == set(), f"these were durable before point {number}"
    assert set(asked(before.session) + asked(after.session)) == set(calm.paid)
    assert not list(after.session.rglob(".rondel-tmp-*"))
    return died


@swept_alone(parts=1, stride=3)
def test_a_power_loss_at_points_all_through_a_run_loses_nothing_that_was_finished(
    points: range, tmp_path: Path, calm: Undisturbed
):
    last = next(n for n in points if not check_after_power_loss_at(n, tmp_path / str(n), calm))
    assert last > 50


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(number=st.integers(1, 150))
def test_a_power_loss_at_a_random_point_loses_nothing_that_was_finished(
    number: int, tmp_path_factory: pytest.TempPathFactory, calm: Undisturbed
):
    check_after_power_loss_at(number, tmp_path_factory.mktemp("power"), calm)
