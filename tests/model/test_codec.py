"""A document becomes a value, whoever wrote it; what does not fit is as if nobody had said it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from hypothesis import given
from hypothesis import strategies as st

from rondel.model.codec import Names, decode, encode, known, only, requests_in
from rondel.model.snapshot import FrozenSnapshot


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Part:
    name: str
    size: int = 1


@dataclass(frozen=True)
class Whole:
    number: int = 3
    share: float = 0.5
    is_new: bool = False
    colour: Colour = Colour.RED
    limit: int | None = None
    even: Annotated[int, only(lambda n: n % 2 == 0)] = 0
    parts: tuple[Part, ...] = ()
    words: dict[str, str] = field(default_factory=dict)
    names: Names = frozenset()


def test_what_does_not_fit_is_as_if_nobody_had_said_it():
    said = {
        "number": "5",
        "share": 2,
        "is_new": 1,
        "colour": "green",
        "limit": True,
        "even": 7,
        "parts": [{"name": "a", "size": "x"}, {"size": 2}, 4, {"name": "b", "size": 3}],
        "words": {"a": 1, "b": "c"},
        "names": ["z", 1, "y"],
        "more": [1],
    }
    assert decode(Whole, said) == Whole(
        share=2.0, parts=(Part("a"), Part("b", 3)), words={"b": "c"}, names=frozenset({"y", "z"})
    )
    assert known(Whole, said)["share"] == 2
    assert not {"number", "more", "even"} & set(known(Whole, said))


def test_without_a_field_that_it_needs_there_is_no_value():
    assert decode(Part, {"size": 2}) is None
    assert decode(Part, {"name": 2}) is None
    assert decode(Part, None) is None
    assert decode(Whole, [1]) == Whole()


def test_names_have_an_order_in_a_file():
    assert encode(Whole(names=frozenset("cab")))["names"] == ["a", "b", "c"]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from([*Whole.__annotations__, "more"]), anything))
def test_any_document_can_be_read_and_written_again(document):
    found = decode(Whole, document)
    assert isinstance(found, Whole)
    if found.share == found.share and abs(found.share) != float("inf"):
        assert decode(Whole, json.loads(json.dumps(encode(found)))) == found


def test_requests_come_in_the_order_of_their_numbers():
    names = ("request-10.json", "request-2.json", "request-x.json", "request-1.json.bak", "session.json")
    assert requests_in(FrozenSnapshot({f".rondel/{name}": "{}" for name in names})) == [2, 10]
