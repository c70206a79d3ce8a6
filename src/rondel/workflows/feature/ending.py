"""The end of a feature: what stands in its way, and the files it leaves."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from rondel.model.changes import Aside, Change, Document, Edit
from rondel.workflows.feature import layout, stamps
from rondel.workflows.feature.closing import signed
from rondel.workflows.feature.phases import FINISH, IMPLEMENT
from rondel.workflows.feature.read import State
from rondel.workflows.feature.work import read_work

_OPEN_BOX = re.compile(r"(?m)^[ \t]*[-*+][ \t]+\[ \][ \t]+(.+)$")


def unfinished(state: State) -> list[str]:
    """The tasks that are not done: those nobody carried out, or whose box is not ticked."""
    document = state.files.text(layout.TASKS)
    if document is None:
        return []
    work = read_work(state.files, IMPLEMENT)
    if work.base is not None:
        return [f"{task.key}: {task.title}" for task in work.open_tasks]
    if IMPLEMENT in state.completed:
        return [box.group(1).strip() for box in _OPEN_BOX.finditer(document)]
    return [f"{task.key}: {task.title}" for task in work.tasks]


def ending(
    state: State, status: str, at: datetime, *, worktree_gone: bool, reason: str = ""
) -> Sequence[Change]:
    """The history is put away, where it is kept; then the status is set, which is the commit."""

    def change(meta: Document) -> Document:
        after = stamps.ended(meta, status, at, reason)
        return {**after, "worktree": None} if worktree_gone else after

    changes: list[Change] = []
    if state.files.exists(layout.HISTORY):
        changes.append(Aside(layout.HISTORY, _free(state)))
    folder = layout.folder(FINISH, 1)
    return (*changes, *signed(state, FINISH, folder, at), Edit(layout.META, change))


def _free(state: State) -> str:
    """A name for the history that no earlier one has."""
    stem = layout.HISTORY_KEPT.removesuffix(".md")
    number = 1
    while state.files.exists(f"{stem}-{number}.md"):
        number += 1
    return f"{stem}-{number}.md"


def kept_history(state: State) -> str | None:
    """The history as it stands, or as it was put away at the end."""
    parts: list[str] = []
    number = 1
    while (text := state.files.text(f"{layout.HISTORY_KEPT.removesuffix('.md')}-{number}.md")) is not None:
        parts.append(text)
        number += 1
    now = state.files.text(layout.HISTORY)
    return "\n".join([*parts, now] if now is not None else parts) or None
