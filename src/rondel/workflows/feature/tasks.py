"""The tasks of a `tasks.md`, in order. Tolerant: a list nobody can read is one task."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from rondel.model.names import slug

TASKS_MAX = 500
_NUMBER = r"[\[(]?(t?\d+(?:[.-]\d+)*[a-z]?)[\])]?(?=[\s:.)\u2013\u2014-]|$)[\s:.)\u2013\u2014-]*(.*)$"
_WORDED = re.compile(r"(?im)^(#{2,6})[ \t]+task[ \t]+" + _NUMBER)
_NUMBERED = re.compile(r"(?im)^(#{2,6})[ \t]+" + _NUMBER)
_BOX = re.compile(r"(?m)^[-*+][ \t]+\[[ xX]\][ \t]+(.+)$")
_HEADING = re.compile(r"(?m)^(#{1,6})[ \t]")


@dataclass(frozen=True)
class Task:
    """One task. `key` is its name in paths: the same as long as its number is."""

    key: str
    title: str
    text: str


def parse_tasks(document: str) -> tuple[Task, ...]:
    """The tasks: headings `Task 1.2: …`, else numbered headings, else boxes to tick, else all as one.

    Of headings of several depths the deepest are the tasks; the others group them.
    """
    document = document.replace("\r\n", "\n")
    heads = list(_WORDED.finditer(document)) or list(_NUMBERED.finditer(document))
    if heads:
        depth = max(len(head.group(1)) for head in heads)
        return _named(
            (head.group(2), head.group(3), _section(document, head))
            for head in heads
            if len(head.group(1)) == depth
        )
    boxes = list(_BOX.finditer(document))
    if boxes:
        ends = [box.start() for box in boxes[1:]] + [len(document)]
        return _named(
            (str(n), box.group(1), document[box.start() : end])
            for n, (box, end) in enumerate(zip(boxes, ends, strict=True), 1)
        )
    return _named([("1", "the whole feature", document)]) if document.strip() else ()


def _section(document: str, head: re.Match[str]) -> str:
    for following in _HEADING.finditer(document, head.end()):
        if len(following.group(1)) <= len(head.group(1)):
            return document[head.start() : following.start()]
    return document[head.start() :]


def _named(found: Iterable[tuple[str, str, str]]) -> tuple[Task, ...]:
    tasks: list[Task] = []
    keys: set[str] = set()
    for number, title, text in islice(found, TASKS_MAX):
        key = slug(number, length_max=20, fallback="task")
        while key in keys:
            key += "x"
        keys.add(key)
        tasks.append(Task(key, title.strip(" #\t") or f"task {number}", text.strip()))
    return tuple(tasks)
