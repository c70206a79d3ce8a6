"""Requests and documents as values: a dataclass says what a document holds; this reads and writes it.

Whoever wrote a document, reading it is total. A value of another type than its field's is as if nobody had
said it: the field has its default, a list goes without the item. What nobody here knows is passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, PlainSerializer, TypeAdapter, ValidationError

from rondel.model.changes import Document
from rondel.model.jsons import mapping
from rondel.model.snapshot import Snapshot

T = TypeVar("T")
Names = Annotated[frozenset[str], PlainSerializer(sorted)]  # in a file they have an order
Path = tuple[str | int, ...]
_ROOT: Path = ()
_REQUEST = re.compile(r"request-(\d{1,9})\.json")


def decode(kind: type[T], document: object) -> T | None:
    """The value in a document; None where it lacks a field that has no default."""
    found: T | None = _decoded(kind, document)[0]
    return found


def known(kind: type, document: object) -> Document:
    """What a document says that fits the fields of a value."""
    fields = _decoded(kind, document)[1]
    return {name: value for name, value in fields.items() if name in kind.__annotations__}


def encode(value: object) -> Document:
    """A value as the document that `decode` reads."""
    kind: Any = type(value)
    found: Document = _adapter(kind).dump_python(value, mode="json")
    return found


def only(is_good: Callable[[T], bool]) -> AfterValidator:
    """For a field's type: a value that is not good is as if nobody had said it."""

    def checked(value: T) -> T:
        if not is_good(value):
            raise ValueError("it cannot be used")
        return value

    return AfterValidator(checked)


def request_file(number: int) -> str:
    """Where what a person asked for is kept."""
    return f".rondel/request-{number}.json"


def requests_in(files: Snapshot) -> list[int]:
    """The numbers of a session's requests, oldest first."""
    return sorted(int(found[1]) for name in files.names(".rondel") if (found := _REQUEST.fullmatch(name)))


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _decoded(kind: Any, document: object) -> tuple[Any, Document]:
    """The value, and what of the document it was made of.

    It is read as JSON, where alone pydantic is strict about texts and numbers and takes a list for a tuple.
    """
    adapter = _adapter(kind)
    held: object = dict(mapping(document))
    while isinstance(held, dict):
        text = json.dumps(held, ensure_ascii=False).encode("utf-8", "replace")
        try:
            return adapter.validate_json(text, strict=True), held
        except ValidationError as error:
            faults = error.errors(include_url=False, include_input=False, include_context=False)
            held = _without(held, {_place(held, (*fault["loc"],)) for fault in faults})
    return None, {}


def _place(document: object, where: Path) -> Path:
    """What is to go for a fault: the value, or what lacks it. Beyond that, a place names types."""
    place = _ROOT
    for part in where:
        inner = dict(enumerate(document)) if isinstance(document, list) else document
        if not isinstance(inner, dict) or part not in inner:
            break
        place, document = (*place, part), inner[part]
    return place


def _without(value: object, places: Iterable[Path]) -> object:
    """A value without what is at these places; None where it goes as a whole."""
    if _ROOT in (gone := frozenset(places)):
        return None
    below: dict[str | int, set[Path]] = {}
    for part, *rest in gone:
        below.setdefault(part, set()).add((*rest,))
    if isinstance(value, dict):
        return {k: _without(v, below.get(k, ())) for k, v in value.items() if _ROOT not in below.get(k, ())}
    if isinstance(value, list):
        return [_without(v, below.get(i, ())) for i, v in enumerate(value) if _ROOT not in below.get(i, ())]
    return value
