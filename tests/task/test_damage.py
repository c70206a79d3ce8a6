"""Documents that are damaged while a driver runs are put back, and the run goes on."""

from __future__ import annotations

import pytest
from task_support import settle_in

from rondel.testing.kills import undisturbed
from support.damage import cases, damaged_and_whole, points_of, sibling

pytestmark = pytest.mark.sweep

Six = sibling(__file__, "test_kill").Six

DOCUMENTS = ["workflow-session.json", ".task/*.json", ".rondel/request-*.json"]


def test_a_damaged_document_is_put_back_and_the_session_ends_as_if_nothing_had_happened(
    tmp_path, monkeypatch
):
    settle_in(tmp_path / "home", monkeypatch)
    calm = undisturbed(Six(tmp_path / "calm"))
    points = points_of(Six(tmp_path / "counted"))
    put_back = [
        damaged_and_whole(Six(tmp_path / str(number)), *case, calm)
        for number, case in enumerate(cases(DOCUMENTS, 3, points))
    ]
    assert any(put_back)
