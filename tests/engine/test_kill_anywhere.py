"""Kill it anywhere; start it again: it goes on, nothing is lost, nothing is paid for twice."""

from __future__ import annotations

import pytest
from harness import Rounds
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.testing.kills import killed_and_resumed, undisturbed
from support.kills import swept


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    return undisturbed(Rounds(tmp_path_factory.mktemp("undisturbed")))


@swept(parts=2, stride=8)
def test_a_death_at_every_single_point_changes_nothing(share, tmp_path, calm):
    share.sweep(Rounds, tmp_path, calm, least=50, apart=8)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(points=st.lists(st.integers(min_value=1, max_value=270), min_size=2, max_size=5))
def test_deaths_at_random_points_one_after_the_other_change_nothing(points, tmp_path_factory, calm):
    killed_and_resumed(Rounds(tmp_path_factory.mktemp("random")), points, calm)
