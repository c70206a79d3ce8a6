"""Prompts: templates filled once, within a configured size; whatever does not fit is said to be left out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence

from rondel.model import templates
from rondel.model.marks import is_theirs
from rondel.model.templates import prompt_text, without_gaps
from rondel.workflows.review import layout
from rondel.workflows.review.aggregate import Item
from rondel.workflows.review.change import Change, Changed, FileDiff
from rondel.workflows.review.markdown import cut, fenced, listed
from rondel.workflows.review.read import ReviewState
from rondel.workflows.review.report import carried_line, place_of
from rondel.workflows.review.result import Carried

_SHARES = {
    "requirements": 6,
    "standards": 6,
    "guidance": 8,
    "since": 8,
    "carried": 8,
    "change": 8,
    "findings": 3,
}
MARGIN = 200


def fill(name: str, slots: Mapping[str, str]) -> str:
    """A prompt with its slots filled; a diff keeps its empty lines."""
    filled = templates.fill(prompt_text("rondel.workflows.review", name), slots)
    return filled.strip() + "\n" if slots.get("diff") else without_gaps(filled)


def prompt(
    name: str, slots: Mapping[str, str], change: Change, size_max: int, only: Iterable[str] = ()
) -> str:
    """A prompt of at most `size_max` characters; the diff takes what the rest leaves."""
    bounded = {
        key: cut(text, size_max // _SHARES[key], key) if key in _SHARES else text
        for key, text in slots.items()
    }
    room = size_max - len(fill(name, {"diff": "", **bounded})) - MARGIN
    wanted = set(only)
    files = [f for f in change.diffs if not wanted or f.path in wanted]
    return cut(fill(name, bounded | {"diff": diff_block(files, room)}), size_max, "it")


def diff_block(files: Sequence[FileDiff], room: int) -> str:
    """The diff, and what of it is not there."""
    text, left_out = fit(files, max(0, room * 9 // 10))
    note = f"Left out because the prompt has a limited size:\n{listed(left_out)}" if left_out else ""
    note = cut(note, max(0, room - len(text) - MARGIN), "the list")
    shown = marked("diff", fenced(text, "diff")) if text else "The diff does not fit in here."
    return f"{shown}\n\n{note}".rstrip()


def fit(files: Sequence[FileDiff], size_max: int) -> tuple[str, list[str]]:
    """What of a diff goes into a prompt, and a line for each file that is not there, or not whole.

    As many whole files as fit, the small ones first, in the order of the diff; then hunks of others.
    """
    chosen: dict[int, str] = {}
    left_out: list[str] = []
    room = size_max
    for number, file in sorted(enumerate(files), key=lambda pair: len(pair[1].text)):
        shown = file.text
        if len(shown) + 1 > room:
            shown, missing = _hunks_that_fit(file, room)
            left_out.append(f"{file.path}: {missing} of {len(file.hunks)} hunks")
        if shown:
            chosen[number] = shown
        room -= len(shown) + 1
    return "\n".join(chosen[number] for number in sorted(chosen)), left_out


def _hunks_that_fit(file: FileDiff, room: int) -> tuple[str, int]:
    rows = list(file.head)
    used = sum(len(row) + 1 for row in rows) + 80
    taken = 0
    for hunk in file.hunks:
        if used + len(hunk.text) + 1 > room:
            break
        rows.append(hunk.text)
        used += len(hunk.text) + 1
        taken += 1
    missing = len(file.hunks) - taken
    if not taken:
        return "", missing
    return "\n".join((*rows, f"[{missing} more hunks of this file are left out]")), missing


def marked(name: str, text: str) -> str:
    """A text of others between marks; empty stays empty."""
    inner = re.sub(rf"</?{name}>", "", text.strip())
    return f"<{name}>\n{inner}\n</{name}>" if inner else ""


def about_change(state: ReviewState) -> dict[str, str]:
    """What everybody is told who is asked about the change."""
    label = state.pins.label if state.pins else "the change"
    # Our own context.md repeats what the other parts of a prompt say; a person's does not.
    context = state.files.text(layout.CONTEXT) if is_theirs(state.files, layout.CONTEXT) else None
    return {
        "change": change_block(state.change, label),
        "requirements": marked("requirements", state.files.text(layout.REQUIREMENTS) or ""),
        "context": marked("context", context or ""),
        "standards": marked("standards", state.files.text(layout.STANDARDS) or ""),
        "carried": carried_block(state.carried),
    }


def change_block(change: Change, label: str) -> str:
    """The change in short."""
    rows = [f"{label}: {change.size}", listed([f.line() for f in change.files])]
    if change.commits:
        rows.append("Commits:\n" + listed(change.commits, 50))
    if change.notes:
        rows.append(listed(change.notes))
    return marked("change", "\n\n".join(rows))


def unshown_block(files: Iterable[Changed]) -> str:
    """What a prompt for checks says of text that is not shown: its files, each with the changed lines."""
    lines = {file.path: [list(pair) for pair in file.wrote] for file in files if file.wrote}
    return fenced(json.dumps(lines), "unshown") if lines else ""


def carried_block(carried: Sequence[Carried]) -> str:
    """The open findings of earlier rounds, and what to answer."""
    if not carried:
        return ""
    rows = []
    for old in carried:
        f = old.finding
        rows.append(
            "\n".join((f"{carried_line(old)}", f.problem, fenced(f.evidence) if f.evidence else "")).strip()
        )
    return (
        "These findings of earlier rounds are open. Answer each in `carried`: fixed, still_open, refuted "
        "(with a quotation) or accepted. `fixed` counts only if the code has changed since.\n\n"
        + marked("carried", "\n\n".join(rows))
    )


def carried_form(carried: Sequence[Carried]) -> str:
    """The part of the answer's form that old findings need."""
    if not carried:
        return ""
    return (
        ',\n "carried": [{"finding": "C1", "answer": "fixed|still_open|refuted|accepted", "reason": "…", '
        '"evidence": "quoted code"}]'
    )


def findings_block(items: Sequence[Item], reviewer: str = "") -> str:
    """Findings for other eyes."""
    rows = []
    for item in items:
        f = item.finding
        own = " (yours)" if reviewer in item.supporters else ""
        rows.append(
            "\n".join(
                row
                for row in (
                    f"### {item.id}{own}: {f.title}",
                    f"{f.category.value}, {f.severity.value}, {place_of(f)}, by {', '.join(item.supporters)}"
                    + ("" if f.verified else "; the quotation was not found in the change"),
                    f.problem,
                    fenced(f.evidence) if f.evidence else "",
                    f"Suggested: {f.suggestion}" if f.suggestion else "",
                )
                if row
            )
        )
    return marked("findings", "\n\n".join(rows))
