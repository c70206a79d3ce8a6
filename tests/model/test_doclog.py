from __future__ import annotations

import json

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.model import doclog

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
SCALARS = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


def log_of(documents: list[dict]) -> list[str]:
    lines: list[str] = []
    before: dict = {}
    for document in documents:
        line = doclog.line(lines[-1] if lines else "", before, document)
        if line is not None:
            lines.append(line)
        before = document
    return lines


def joined(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


@CALM
@given(DOCUMENTS, DOCUMENTS)
def test_the_difference_of_two_documents_turns_one_into_the_other(old, new):
    assert json.dumps(doclog.patched(old, doclog.diff(old, new)), sort_keys=True) == json.dumps(
        new, sort_keys=True
    )


@CALM
@given(st.lists(DOCUMENTS, min_size=1, max_size=12))
def test_a_log_always_ends_with_the_last_document(documents):
    found = doclog.read(joined(log_of(documents)))
    assert doclog.sha(found.document) == doclog.sha(documents[-1])
    assert not found.broken
    assert found.sha == doclog.last_sha(joined(log_of(documents)))


@CALM
@given(st.lists(DOCUMENTS, min_size=1, max_size=8), st.data())
def test_a_damaged_line_never_gives_a_document_that_never_was(documents, data):
    lines = log_of(documents)
    spot = data.draw(st.integers(0, len(lines) - 1))
    lines[spot] = data.draw(
        st.text(st.characters(exclude_characters="\n"), max_size=20) | st.just(lines[spot][:-3])
    )
    found = doclog.read(joined(lines))
    assert found.document is None or doclog.sha(found.document) in {doclog.sha(d) for d in documents}


@CALM
@given(st.binary(max_size=200))
def test_whatever_a_log_holds_it_is_read_without_an_exception(data):
    doclog.read(data)
    doclog.last_sha(data)


def test_a_log_grows_with_what_changed_and_not_with_the_size_of_the_document():
    big = {"specification": "x" * 50_000, "entries": []}
    documents = [{**big, "entries": [f"entry {i}" for i in range(n)]} for n in range(400)]
    size = len(joined(log_of(documents)))
    assert size < 3 * 50_000 + 400 * 400


def test_a_document_the_log_ends_with_is_not_added_again():
    lines = log_of([{"a": 1}, {"a": 2}])
    assert doclog.line(lines[-1], {"a": 1}, {"a": 2}) is None


def test_a_document_changed_by_others_is_logged_whole():
    lines = log_of([{"a": 1}])
    line = doclog.line(lines[-1], {"a": 7}, {"a": 7, "b": 1})
    assert json.loads(line)["document"] == {"a": 7, "b": 1}


def test_what_follows_a_broken_chain_is_given_up_and_said():
    lines = log_of([{"a": [1] * 50}, {"a": [1] * 50, "b": 1}, {"a": [1] * 50, "b": 2}])
    del lines[1]
    found = doclog.read(joined(lines))
    assert found.document == {"a": [1] * 50}
    assert found.broken
