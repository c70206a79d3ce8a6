"""One filler for every template: a slot that nobody fills is an error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.errors import RondelError
from rondel.model.templates import fill, without_gaps


@given(st.text(max_size=100))
def test_what_is_put_into_a_prompt_is_never_looked_at_again(text):
    assert fill("a {{x}} b {{y}}", {"x": text, "y": "{{x}}"}) == f"a {text} b {{{{x}}}}"


def test_a_slot_may_have_spaces_and_dashes_and_be_made_when_it_is_needed():
    def never() -> str:
        raise AssertionError

    assert fill("{{ a-b }}{{c}}", {"a_b": "1", "c": lambda: "2", "d": never}) == "12"


def test_a_slot_that_nobody_fills_is_an_error():
    with pytest.raises(RondelError, match="the slot 'y'"):
        fill("{{x}} {{y}}", {"x": "1"})
    with pytest.raises(RondelError, match="give it with -c y"):
        fill("{{y}}", {}, lambda name: f"give it with -c {name}=…")


def test_an_empty_slot_leaves_no_gap():
    assert without_gaps("a\n\n\n\nb\n\n") == "a\n\nb\n"
