"""A text that is too long keeps its beginning and its end."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rondel.model.texts import cut


def test_the_end_of_a_test_run_is_kept():
    found = cut(f"the checks failed: {'.' * 9000}\n3 failed, 7 passed", 2000)
    assert found.startswith("the checks failed: ")
    assert found.endswith("3 failed, 7 passed")
    assert len(found) == 2000


@given(st.text(max_size=400), st.integers(20, 300))
def test_it_is_never_longer_than_that(text, size_max):
    found = cut(text, size_max)
    assert len(found) <= size_max
    assert found == text or len(text) > size_max
