"""Documents that are damaged while a driver runs are put back, and the run goes on."""

from __future__ import annotations

import pytest

from rondel.testing.kills import undisturbed
from support.damage import cases, damaged_and_whole, points_of, sibling

pytestmark = pytest.mark.sweep

Cycles = sibling(__file__, "test_kill").Cycles


def test_a_damaged_document_is_put_back_and_the_session_ends_as_if_nothing_had_happened(tmp_path):
    calm = undisturbed(Cycles(tmp_path / "calm"))
    points = points_of(Cycles(tmp_path / "counted"))
    put_back = [
        damaged_and_whole(Cycles(tmp_path / str(number)), *case, calm)
        for number, case in enumerate(cases(["session.json", ".rondel/request-*.json"], 2, points))
    ]
    assert any(put_back)
