"""What several agents leave alike: a file over its former version, a remark, a failure."""

from __future__ import annotations

import json
from collections.abc import Sequence

from rondel.model.changes import Aside, Change, Edit, Write
from rondel.model.outcomes import Outcome
from rondel.workflows.cycle import layout, transitions
from rondel.workflows.cycle.documents import Doc, Step
from rondel.workflows.cycle.plan import in_order
from rondel.workflows.cycle.results import ResultStatus, parse_phase_result, status_of
from rondel.workflows.cycle.routing import addressed
from rondel.workflows.cycle.state import Found, State, Turn
from rondel.workflows.cycle.versions import archived

BEFORE = "before"


def json_file(path: str, value: object) -> Write:
    """A JSON file, readable for people."""
    return Write(
        path, (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")
    )


def publish(state: State, new: Write, former: str | None) -> list[Change]:
    """A new version of an agent's file; the former one, as it stands, goes into `history/` first."""
    old = state.files.data(new.path)
    if old is None or (old == new.data and former is None):
        return [new]
    spot = archived(new.path, former or BEFORE)
    return [Write(spot, old), new] if state.files.data(spot) in (None, old) else [new]


def edit_plan(state: State, *steps: Step) -> list[Change]:
    """The plan's own file, in step with the state. What a person broke there stays for them to mend."""
    if not isinstance(state.files.json(layout.PLAN), dict):
        return []

    def change(document: Doc) -> Doc:
        for step in steps:
            step(document)
        return document

    return [Edit(layout.PLAN, change)]


def restore(state: State) -> list[Change]:
    """The state file as it must be, and the log with it; what was damaged is kept aside."""
    if in_order(state) or state.cycle is None:
        return []
    path = layout.state_file(state.id)
    changes: list[Change] = []
    if state.found is not Found.FILE and state.files.mtime(path) is not None:
        taken = state.files.names(layout.DAMAGED)
        name = f"{state.id}.json.{'refused' if state.found is Found.REFUSED else 'damaged'}"
        number = next(n for n in range(1, len(taken) + 2) if f"{name}-{n}" not in taken)
        changes.append(Aside(path, f"{layout.DAMAGED}/{name}-{number}"))
    document = state.document
    changes.append(Edit(path, lambda there: there or document, log=layout.LOG))
    return changes


def refused(outcome: Outcome) -> bool:
    """Whether there is no answer to go on with: none came, or its author says it failed."""
    result = parse_phase_result(outcome.text)
    return not outcome.ok or result is None or status_of(result) in (None, ResultStatus.FAILED)


def agent_failed(state: State, turn: Turn, agent: str, outcome: Outcome) -> Sequence[Change]:
    """Without this agent's answer the cycle cannot go on: it fails, and a resume asks again."""
    result = parse_phase_result(outcome.text) or {}
    words = outcome.error or str(result.get("summary", "")) or "it gave no usable answer"
    error = " ".join(words.split())[:1000]
    at = state.time(outcome.finished_at)
    return [
        state.edit(
            outcome.finished_at,
            transitions.fail_agent(agent, turn.number, at, error),
            transitions.fail(f"{agent} failed in iteration {turn.number}: {error}"),
        )
    ]


def notes(issues: Sequence[str], source: str, default: str, at: str) -> list[dict[str, str]]:
    """What an agent remarked, for the one it concerns; it holds nothing up."""
    found = []
    for words in issues:
        issue = addressed(words, source)
        target = default if issue.target == source else issue.target
        found.append(transitions.feedback(source, target, issue.text, "clarification", at))
    return found
