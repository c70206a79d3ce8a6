"""Documents that are damaged while a driver runs are put back, and the run goes on."""

from __future__ import annotations

import pytest

from rondel.testing.kills import undisturbed
from support.damage import cases, damaged_and_whole, points_of, sibling

pytestmark = pytest.mark.sweep

Phases = sibling(__file__, "test_kill").Phases


def test_a_damaged_document_is_put_back_and_the_feature_ends_as_if_nothing_had_happened(tmp_path):
    calm = undisturbed(Phases(tmp_path / "calm"))
    points = points_of(Phases(tmp_path / "counted"))
    put_back = [
        damaged_and_whole(Phases(tmp_path / str(number)), *case, calm)
        for number, case in enumerate(cases([".meta.json", ".rondel/request-*.json"], 1, points))
    ]
    assert any(put_back)
