"""Documents that are damaged while a driver runs are put back, and the run goes on."""

from __future__ import annotations

import pytest

from support.damage import cases, damaged_and_whole, points_of, sibling

pytestmark = pytest.mark.sweep

killing = sibling(__file__, "test_kill_anywhere")
calm, make = killing.calm, killing.make  # fixtures
DOCUMENTS = ["state.json", "rounds/round-1/round-meta.json", ".rondel/request-*.json"]


def test_a_damaged_document_is_put_back_and_the_review_ends_as_if_nothing_had_happened(tmp_path, make, calm):
    points = points_of(make(tmp_path / "counted"))
    put_back = [
        damaged_and_whole(make(tmp_path / str(number)), *case, calm)
        for number, case in enumerate(cases(DOCUMENTS, 5, points))
    ]
    assert any(put_back)
