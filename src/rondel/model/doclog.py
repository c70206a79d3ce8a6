"""The log of a document: one line for each of its states, small where little changed.

A line holds the whole document, or what takes the one before to it. Whole documents come
back as soon as the patches since the last one would outgrow it, so the log grows with what
changed, not with the number of changes times the size, and its end is enough to read it.
Every line names the digest of the document it stands for; a chain that does not hold ends
where it breaks.

    {"sha": "…", "since": 0, "document": {…}}
    {"sha": "…", "from": "…", "since": 218, "patch": [["set", ["status"], "paused"], …]}

Operations: `set` at a path, `drop` a key, `add` items at the end of a list, `cut` a list to a length.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rondel.model import jsons
from rondel.model.changes import Document, Json
from rondel.model.names import digest

Path = list[str | int]
Operation = list[Json]


@dataclass(frozen=True)
class Logged:
    """What a log ends with. `broken`: its last line is not the state given here."""

    document: Document | None = None
    sha: str = ""  # of the last readable line, whether or not its document could be had
    broken: bool = False


def sha(document: Json) -> str:
    """What makes two documents the same, whatever the order of their keys."""
    return digest(json.dumps(document, ensure_ascii=True, sort_keys=True, separators=(",", ":")))


def line(last: str, old: Document, new: Document) -> str | None:
    """The line to add so that the log ends with `new`; None when it does already.

    `last` is the log's last line, empty when there is none; `old` is the document before.
    """
    before = _entry(last) or {}
    target = sha(new)
    if before.get("sha") == target:
        return None
    whole = _dump({"sha": target, "since": 0, "document": new})
    came_from = sha(old)
    since = before.get("since")
    if before.get("sha") != came_from or not isinstance(since, int):
        return whole
    patch = diff(old, new)
    size = since + len(_dump(patch))
    if size > len(whole):
        return whole
    return _dump({"sha": target, "from": came_from, "since": size, "patch": patch})


def last_sha(data: bytes | None) -> str:
    """The digest of the document a log ends with, from its last complete line alone; empty when unknown."""
    found = _entry(_last_line(data or b""))
    return str(found.get("sha", "")) if found else ""


def read(data: bytes | None) -> Logged:
    """The document a log ends with; a damaged line costs only what follows it up to the next whole one."""
    lines = (data or b"").decode(errors="replace").split("\n")[:-1]
    start = next((i for i in reversed(range(len(lines))) if _whole(lines[i]) is not None), None)
    if start is None:
        return Logged(broken=bool(lines))
    found = _whole(lines[start]) or {}
    document: Json = found["document"]
    at = str(found["sha"])
    for text in lines[start + 1 :]:
        entry = _entry(text)
        after = _patched(document, entry, at) if entry else None
        if entry is None or after is None:
            return Logged(_object(document), at, broken=True)
        document, at = after, str(entry["sha"])
    return Logged(_object(document), at)


def diff(old: Json, new: Json) -> list[Json]:
    """The operations that turn `old` into `new`."""
    return list(_diff(old, new, []))


def patched(document: Json, patch: list[Json]) -> Json:
    """`document` after the operations, which must fit it; the one given is not changed."""
    copy: Json = json.loads(json.dumps(document))
    for operation in patch:
        copy = _apply(copy, operation)
    return copy


def _diff(old: Json, new: Json, path: Path) -> Iterator[Operation]:
    if isinstance(old, dict) and isinstance(new, dict):
        yield from _diff_objects(old, new, path)
    elif isinstance(old, list) and isinstance(new, list):
        yield from _diff_lists(old, new, path)
    elif type(old) is not type(new) or old != new:  # true is not 1, and 1 is not 1.0
        yield ["set", [*path], new]


def _diff_objects(old: Document, new: Document, path: Path) -> Iterator[Operation]:
    for key in old:
        if key not in new:
            yield ["drop", [*path, key]]
    for key, value in new.items():
        if key in old:
            yield from _diff(old[key], value, [*path, key])
        else:
            yield ["set", [*path, key], value]


def _diff_lists(old: list[Json], new: list[Json], path: Path) -> Iterator[Operation]:
    for i, (before, after) in enumerate(zip(old, new, strict=False)):
        yield from _diff(before, after, [*path, i])
    if len(new) < len(old):
        yield ["cut", [*path], len(new)]
    elif len(new) > len(old):
        yield ["add", [*path], new[len(old) :]]


def _apply(document: Json, operation: Json) -> Json:
    """One operation; ValueError, KeyError, IndexError or TypeError when it does not fit."""
    match operation:
        case ["add", [*path], [*items]]:
            _list_at(document, path).extend(items)
        case ["cut", [*path], int(length)]:
            del _list_at(document, path)[length:]
        case ["set", [], value]:
            return value
        case ["set", [*path, key], value]:
            _at(document, path)[key] = value
        case ["drop", [*path, key]]:
            del _at(document, path)[key]
        case _:
            raise ValueError("not an operation")
    return document


def _at(document: Any, path: list[Any]) -> Any:
    for key in path:
        document = document[key]
    return document


def _list_at(document: Json, path: list[Any]) -> list[Json]:
    found = _at(document, path)
    if not isinstance(found, list):
        raise TypeError("not a list")
    return found


def _patched(document: Json, entry: Document, at: str) -> Json:
    """The document of a line, from the one before; None when the chain does not hold."""
    patch = entry.get("patch")
    if entry.get("from") != at or not isinstance(patch, list):
        return None
    try:
        after = patched(document, patch)
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return after if sha(after) == entry.get("sha") else None


def _whole(text: str) -> Document | None:
    """A line that holds a whole document and has not been tampered with."""
    if '"document":' not in text:
        return None
    entry = _entry(text)
    if entry is None or not isinstance(entry.get("document"), dict):
        return None
    return entry if sha(entry["document"]) == entry.get("sha") else None


def _entry(text: str) -> Document | None:
    try:
        value = jsons.load(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _last_line(data: bytes) -> str:
    end = data.rfind(b"\n")
    start = data.rfind(b"\n", 0, max(end, 0))
    return data[start + 1 : end].decode(errors="replace") if end >= 0 else ""


def _object(value: Json) -> Document | None:
    return value if isinstance(value, dict) else None


def _dump(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
