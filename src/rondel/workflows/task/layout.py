"""Layout: the names of everything in a task session's folder."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from rondel.model.decisions import DECISIONS as DECISIONS
from rondel.model.names import folder_name

HOME = ".workflow"
PREFIX = "WFS-"
MARKER = ".active-"

SESSION = "workflow-session.json"
PLAN = "IMPL_PLAN.md"
TODO = "TODO_LIST.md"
TASKS = ".task"
SUMMARIES = ".summaries"
CHAT = ".chat"

REQUESTS = ".rondel"
PARTS = ".rondel/parts"
STEPS = f"{PARTS}/steps"
WORK = f"{PARTS}/work"
PROPOSALS = f"{PARTS}/proposals"
REPLACED = f"{PARTS}/replaced"
MANUAL = ".rondel/manual"  # what a person is asked, and their answers
RESPONSE = ".response.md"
ALLOW = f"{DECISIONS}/allow.json"
ENDED = f"{DECISIONS}/end.json"  # that a person ended the session

_TRY = re.compile(r"^(\d+)-(\d+)-(\d+)\.json$")
_ROUND = re.compile(r"^(\d+)\.json$")


def marker(session_id: str) -> str:
    """The file in `.workflow` that says a session is the active one."""
    return f"{MARKER}{session_id}"


def task_file(task_id: str) -> str:
    """Where a task is defined."""
    return f"{TASKS}/{task_id}.json"


def summary_file(task_id: str) -> str:
    """Where a task's summary is."""
    return f"{SUMMARIES}/{task_id}-summary.md"


def summary_names(task_id: str) -> tuple[str, ...]:
    """The names a task's summary may have, ours first."""
    return (f"{task_id}-summary.md", f"{task_id}.md")


def summary_among(summaries: AbstractSet[str], task_id: str) -> str | None:
    """The name of a task's summary, of those that are there."""
    return next((n for n in summary_names(task_id) if n in summaries), None)


def round_file(task_id: str, number: int) -> str:
    """Why a round of work on a task came to nothing: a conflict, a person who wants it done again."""
    return f"{WORK}/{task_id}/{number}.json"


def round_of(names: frozenset[str]) -> int:
    """The round of work that is due, from the names of those that came to nothing."""
    return 1 + max((int(found[1]) for n in names if (found := _ROUND.match(n))), default=0)


def work_file(task_id: str, number: int) -> str:
    """What the work on a task leaves. Each round is an action of its own, so that it is done anew."""
    return summary_file(task_id) if number == 1 else f"{WORK}/{task_id}/{number}.md"


def step_file(task_id: str, work_round: int, step: int, number: int) -> str:
    """What came of one try at a step; all are counted from 1."""
    return f"{STEPS}/{task_id}/{work_round}-{step}-{number}.json"


def step_try(name: str) -> tuple[int, int, int] | None:
    """The round, the step and the try that a step file's name names."""
    found = _TRY.match(name)
    return (int(found[1]), int(found[2]), int(found[3])) if found else None


def output_file(task_id: str, step: int, name: str) -> str:
    """Where the output of a step is kept."""
    return f"{CHAT}/analysis-{task_id}-{step}-{folder_name(name)[:60]}.md"


def decision_file(task_id: str, work_round: int, step: int, number: int) -> str:
    """Where a person's answer about a failed step is."""
    return f"{DECISIONS}/{task_id}-step-{work_round}-{step}-{number}.json"


def word_file(word: str, task_id: str, work_round: int) -> str:
    """Where a person's word about a whole task is: `complete` or `reopen`."""
    return f"{DECISIONS}/{word}-{task_id}-{work_round}.json"


def proposal_file(request: int, kind: str, task_id: str = "") -> str:
    """Where the planner's answer to a request is kept."""
    return f"{PROPOSALS}/{request}-{kind}{'-' + task_id if task_id else ''}.json"
