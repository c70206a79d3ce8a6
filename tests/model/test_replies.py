from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rondel.model.markdown import REPLY_MAX, Fenced, fenced_json

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=8,
)


@given(
    JSON, st.sampled_from(["```json\n%s\n```", "Here it is:\n\n```json\n%s\n```\nDone.", "~~~json\n%s\n~~~"])
)
def test_a_fenced_value_comes_out_as_it_went_in(value: object, frame: str):
    assert fenced_json(frame.replace("%s", json.dumps(value))) == Fenced(value)


@given(JSON)
def test_a_reply_that_is_json_and_nothing_else_will_do(value: object):
    assert fenced_json(json.dumps(value)).value == value


@given(st.text())
@example("```json\n{\n```")
@example("```json")
@example("```" * 50)
@example("[" * 5000)
@example("```json\n" + "[" * 100_000 + "\n```")
@example('```json\n{"a": NaN}\n```')
@example("```json\n" + "9" * 5000 + "\n```")
def test_any_text_gives_a_value_or_words(text: str):
    found = fenced_json(text)
    assert found.value is None or not found.error


def test_the_last_block_counts():
    assert fenced_json("```json\n1\n```\nNo, rather:\n```json\n2\n```").value == 2


def test_a_draft_that_does_not_parse_does_not_hide_the_one_that_does():
    assert fenced_json('```json\n{broken\n```\n```json\n{"a": 1}\n```').value == {"a": 1}
    assert fenced_json('```json\n{"a": 1}\n```\n```\n[ERROR] a log\n```').value == {"a": 1}


@pytest.mark.parametrize("fence", ["```json", "```", "~~~json"])
def test_what_was_taken_back_is_no_answer_even_if_the_new_one_does_not_parse(fence: str):
    found = fenced_json(f'```json\n{{"approved": true}}\n```\nNo, rather:\n{fence}\n{{"approved": fal')
    assert found.value is None
    assert "does not parse" in found.error


def test_blocks_in_other_languages_are_no_answer():
    assert fenced_json("```python\n1\n```").error == "there is no fenced ```json block in the answer"


def test_line_ends_of_other_systems_are_read():
    assert fenced_json('```json\r\n{"a": 1}\r\n```\r\n').value == {"a": 1}


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_what_is_not_json_is_refused_by_name(word: str):
    assert f"{word} is not JSON" in fenced_json(f"```json\n[{word}]\n```").error


def test_the_words_name_the_place_so_that_the_author_can_act():
    assert "line 1 column" in fenced_json('```json\n{"a" 1}\n```').error


def test_a_reply_beyond_the_limit_is_not_read():
    assert str(REPLY_MAX) in fenced_json("x" * (REPLY_MAX + 1)).error


@pytest.mark.timeout(60)  # far from it: what grows with the square of the length takes minutes
@pytest.mark.parametrize(
    "text", ["```\n" * 20_000, "`" * 100_000, "```json\n" + " " * 200_000, "~~~ x\n" * 20_000]
)
def test_no_reply_holds_the_reader_up(text: str):
    fenced_json(text)
