"""Summaries: what a completed task tells those that come after it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from rondel.model.outcomes import Outcome
from rondel.model.times import stamp
from rondel.workflows.task.schema import Task

DONE, DECISIONS, NOTES = "What Was Done", "Decisions", "Notes for Future Tasks"
TEXT_MAX = 20_000
_HEADING = re.compile(r"^#{1,4}[ \t]++(.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Said:
    """What an agent said of its work."""

    done: str = ""
    decisions: str = ""
    notes: str = ""


def said(answer: str) -> Said:
    """The parts of an agent's last words; what stands under no known heading is what was done."""
    found: dict[str, list[str]] = {DONE: [], DECISIONS: [], NOTES: []}
    at, place = 0, DONE
    answer = answer[:TEXT_MAX]
    for heading in [*_HEADING.finditer(answer), None]:
        end = heading.start() if heading else len(answer)
        found[place].append(answer[at:end].strip())
        if heading:
            place, kept = _place(heading, place)
            at = heading.start() if kept else heading.end()
    parts = {name: "\n\n".join(t for t in texts if t) for name, texts in found.items()}
    return Said(parts[DONE], parts[DECISIONS], parts[NOTES])


def _place(heading: re.Match[str], now: str) -> tuple[str, bool]:
    """Which part a heading begins, and whether it stays in the text."""
    words = heading[1].lower()
    if re.search(r"\bnotes?\b|future|follow[- ]?up", words):
        return NOTES, False
    if "decision" in words:
        return DECISIONS, False
    if re.search(r"done|summary|implement", words):
        return DONE, False
    return now, True


def summary(task: Task, outcome: Outcome, checks: str | None) -> str:
    """The summary of a completed task."""
    words = said(outcome.text)
    facts = [f"- Agent: {outcome.agent}" if outcome.agent else ""]
    facts += [f"- Completed: {stamp(outcome.finished_at)}" if outcome.finished_at else ""]
    facts += [f"- Commit: {outcome.commit}" if outcome.commit else "- Commit: none, nothing was changed"]
    files = "\n".join(f"- `{path}`" for path in outcome.changed) or "No file was changed."
    passed = f"`{_code(checks)}` passed on the target branch." if checks and outcome.commit else ""
    sections = [
        (DONE, words.done or "The agent said nothing about it."),
        ("Files", files),
        (DECISIONS, words.decisions or "None were named."),
        ("Checks", passed or "No checks are configured, or nothing was changed."),
        (NOTES, words.notes or "None."),
    ]
    head = f"# Task Summary: {task.id} {task.title}\n\n" + "\n".join(f for f in facts if f)
    return head + "\n\n" + "\n\n".join(f"## {name}\n\n{body}" for name, body in sections) + "\n"


def declared_summary(task: Task, why: str, at: datetime, before: str) -> str:
    """The summary of a task that a person declared done; `before` is what was there of one."""
    head = f"# Task Summary: {task.id} {task.title}\n\n- Declared done by a person\n- Completed: {stamp(at)}"
    done = f"A person declared this task done; Rondel did not do it. The reason given: {why}"
    kept = f"\n\n## The summary that was there\n\n{before.strip()}" if before.strip() else ""
    return f"{head}\n\n## {DONE}\n\n{done}{kept}\n"


def _code(text: str) -> str:
    return " ".join(text.split()).replace("`", "'")[:300]
