"""Applying: which files an outcome leaves. A task's own file is the last one: its status is the commit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from rondel.model.actions import Action, Derive, Run
from rondel.model.changes import Aside, Change, Document, Edit, Json, Write, text
from rondel.model.cut import cut
from rondel.model.outcomes import NO_COMMIT, Ended, Outcome
from rondel.model.times import stamp
from rondel.workflows.task import flow, layout
from rondel.workflows.task.proposals import proposal
from rondel.workflows.task.read import completion_mark
from rondel.workflows.task.schema import Task, TaskStatus, with_status
from rondel.workflows.task.state import NO_WORK, Claim, State, TryStatus
from rondel.workflows.task.steps import OnError, unmet
from rondel.workflows.task.summaries import declared_summary, summary
from rondel.workflows.task.variables import clean
from rondel.workflows.task.views import draw, due_now, with_progress

ROUNDS_MAX = 3  # how often a task is done anew because others changed what it changed
ERROR_MAX = 2000


def begin(state: State, action: Action) -> Sequence[Change]:
    """A leaf that is begun is active."""
    task = task_of(state, action)
    if task is None or task.status is not TaskStatus.PENDING or isinstance(action, Derive):
        return ()
    after = _with(state, task, TaskStatus.ACTIVE)
    changes: list[Change] = [_status(task, TaskStatus.ACTIVE)]
    if due_now(after) and after.session.readable:
        changes.append(Edit(layout.SESSION, lambda body: with_progress(body, after)))
    return changes


def apply(state: State, action: Action, outcome: Outcome) -> Sequence[Change]:
    """The files to leave."""
    if action.path == layout.TODO:
        return draw(state)
    if action.path.startswith(f"{layout.PROPOSALS}/"):
        return _proposed(state, action.path, outcome) if outcome.ok else ()
    task = task_of(state, action)
    if task is None:
        return ()
    if action.path.startswith(f"{layout.STEPS}/"):
        return _step(state, task, action, outcome)
    if isinstance(action, Derive):
        return _settled(state, task, outcome)
    return _worked(state, task, action, outcome)


def _settled(state: State, task: Task, outcome: Outcome) -> list[Change]:
    """What follows from what its files claim, else from what came of its steps."""
    claim = state.claims.get(task.id)
    if claim is Claim.SUMMARY:
        return _completed(state, task)
    if claim is Claim.SET_BACK and outcome.finished_at:
        return reopened(state, task.id, outcome.finished_at, "set to pending by hand")
    return _blocked(state, task, _why(state, task))


def task_of(state: State, action: Action) -> Task | None:
    """The task that an action belongs to."""
    return task_at(state, action.path)


def task_at(state: State, path: str) -> Task | None:
    """The task that the action with this path belongs to."""
    folder, _, name = path.rpartition("/")
    if folder == layout.TASKS:
        return state.tasks.get(name.removesuffix(".json"))
    if folder == layout.SUMMARIES:
        return state.tasks.get(name.removesuffix("-summary.md"))
    if folder.startswith((f"{layout.STEPS}/", f"{layout.WORK}/")):
        return state.tasks.get(folder.rpartition("/")[2])
    return None


def _with(state: State, task: Task, status: TaskStatus, error: str = "") -> State:
    """The state as it will be with another status of one task."""
    tasks = {**state.tasks, task.id: replace(task, status=status, error=error)}
    return replace(state, tasks=tasks, front=state.front.moved(state.graph, task.id, task.status, tasks))


def _status(
    task: Task, status: TaskStatus, error: str = "", completion: Mapping[str, Json] | None = None
) -> Edit:
    def change(body: Document) -> Document:
        return with_status(body, task.inner, status, error, completion or {})

    return Edit(task.file, change)


def _completed(state: State, task: Task, words: Write | None = None, **facts: Json) -> list[Change]:
    """A task is completed: its summary and the documents show it, then its file says it.

    In a session that was begun here the file says it with the engine's mark: without that
    mark nobody's `completed` counts. In another one it says more than that only of an edit: which commit
    it is, so that its loss is seen.
    """
    after = _with(state, task, TaskStatus.COMPLETED)
    if words is not None:
        after = replace(after, summaries=after.summaries | {words.path.rpartition("/")[2]})
    drawn = draw(after) if due_now(after) else []
    completion: dict[str, Json] = dict(facts) if facts.get("commit") else {}
    if state.begun is not None:
        number = state.work.get(task.id, NO_WORK).number
        completion = {**facts, "mark": completion_mark(state.begun, task.id, number)}
    shown = [words] if words is not None else []
    return [*shown, *drawn, _status(task, TaskStatus.COMPLETED, completion=completion)]


def _blocked(state: State, task: Task, error: str) -> list[Change]:
    """A task has failed; the others go on."""
    words = cut(clean(error), ERROR_MAX) or "it failed, and nothing says why"
    after = _with(state, task, TaskStatus.BLOCKED, words)
    return [*draw(after), _status(task, TaskStatus.BLOCKED, words)]


def _why(state: State, task: Task) -> str:
    """What a task failed of: its last failed step."""
    tries = state.work.get(task.id, NO_WORK).tries
    failed = [(n, t) for n, t in tries.items() if t.status is TryStatus.FAILED]
    if not failed:
        return "it was given up"
    number, last = failed[-1]
    return f"step {number} ({task.steps[number - 1].name}): {last.error}"


def _step(state: State, task: Task, action: Action, outcome: Outcome) -> list[Change]:
    """What came of a step, and what that means for its task."""
    found = layout.step_try(action.path.rpartition("/")[2])
    if found is None or found[1] > len(task.steps):
        return []
    _, number, count = found
    step = task.steps[number - 1]
    error = _step_error(state, task, number, action, outcome)
    status = TryStatus.DONE
    if error is not None:
        status = TryStatus.SKIPPED if step.on_error is OnError.SKIP else TryStatus.FAILED
    changes: list[Change] = []
    if isinstance(action, Run):
        changes.append(Write(layout.output_file(task.id, number, step.name), clean(outcome.text).encode()))
    record = {
        "step": step.name,
        "status": str(status),
        "exit_code": outcome.exit_code,
        "error": error or "",
        "changed": list(outcome.changed),
        "finished_at": stamp(outcome.finished_at) if outcome.finished_at else None,
    }
    changes.append(text(action.path, json.dumps(record, indent=2, ensure_ascii=False)))
    tried = step.on_error is OnError.RETRY and count >= flow.RETRIES_MAX
    if status is TryStatus.FAILED and (tried or step.on_error is OnError.FAIL):
        changes += _blocked(state, task, f"step {number} ({step.name}): {error}")
    return changes


def _step_error(state: State, task: Task, number: int, action: Action, outcome: Outcome) -> str | None:
    """Why a step did not succeed; None when it did."""
    if isinstance(action, Derive):
        return flow.problem(state, task, number) or "it cannot run"
    if outcome.ended not in (Ended.DONE, Ended.FAILED) or outcome.exit_code is None:
        return cut(clean(outcome.error), ERROR_MAX) or str(outcome.ended)
    missed = unmet(task.steps[number - 1].criteria, outcome.exit_code, outcome.text, outcome.files)
    if missed is None:
        return None
    said = f": {cut(clean(outcome.error), ERROR_MAX)}" if outcome.error else ""
    return f"{missed}{said}"


def _worked(state: State, task: Task, action: Action, outcome: Outcome) -> list[Change]:
    """What came of the work on a task."""
    work = state.work.get(task.id, NO_WORK)
    if outcome.ok:
        path = layout.summary_file(task.id)
        words = text(path, clean(summary(task, outcome, state.request.checks)))
        own = [text(action.path, clean(outcome.text))] if action.path != path else []
        return [*own, *_completed(state, task, words, by="rondel", commit=outcome.commit)]
    if outcome.ended is Ended.CONFLICT and work.number < ROUNDS_MAX:
        return [round_ended(task.id, work.number, outcome.error, outcome.finished_at)]
    return _blocked(state, task, outcome.error)


def round_ended(task_id: str, number: int, why: str, at: datetime | None) -> Change:
    """The record that a round of work came to nothing, so that the next one is due."""
    body = {"error": cut(clean(why), ERROR_MAX), "at": stamp(at) if at else None}
    return text(layout.round_file(task_id, number), json.dumps(body, indent=2, ensure_ascii=False))


def reopened(state: State, task_id: str, at: datetime, why: str) -> list[Change]:
    """The changes that make a task due again, from its first step; what it left is kept aside."""
    task = state.tasks[task_id]
    work = state.work.get(task_id, NO_WORK)
    old = [n for n in layout.summary_names(task_id) if n in state.summaries]
    return [
        *(Aside(f"{layout.SUMMARIES}/{n}", f"{layout.REPLACED}/{work.number}-{n}") for n in old),
        round_ended(task_id, work.number, why, at),
        _status(task, TaskStatus.PENDING),
    ]


def again(state: State, at: datetime) -> list[Change]:
    """The changes that make due again what failed of the tasks that a run is for.

    A task that was blocked without an error was blocked by a person, and waits to be named.
    """
    if state.request.kind != "run":
        return []
    leaves = [t for t in state.graph.leaves if state.selected(t)]
    failed = [t for t in leaves if state.tasks[t].status is TaskStatus.BLOCKED and state.tasks[t].error]
    return [c for t in failed for c in _again(state, state.tasks[t], at)]


def _again(state: State, task: Task, at: datetime) -> list[Change]:
    """A new round of work; or the same, where a person may have fixed its edit, which is taken then."""
    if task.error.startswith(NO_COMMIT):
        return [_status(task, TaskStatus.PENDING)]
    return reopened(state, task.id, at, f"tried again after: {task.error}")


def declared(state: State, task_id: str, at: datetime, why: str) -> list[Change]:
    """The changes that make a task completed by a person's word: the word itself, then its summary."""
    task = state.tasks[task_id]
    work = state.work.get(task_id, NO_WORK)
    old = [n for n in layout.summary_names(task_id) if n in state.summaries]
    before = "\n\n".join(state.files.text(f"{layout.SUMMARIES}/{n}") or "" for n in old)
    words = text(layout.summary_file(task_id), clean(declared_summary(task, why, at, before)))
    return [
        _word("complete", task_id, work.number, at, why),
        *(Aside(f"{layout.SUMMARIES}/{n}", f"{layout.REPLACED}/{work.number}-{n}") for n in old),
        *_completed(state, task, words, by="person", at=stamp(at)),
    ]


def reopened_by_person(state: State, task_id: str, at: datetime, why: str) -> list[Change]:
    """The changes that make a task due again by a person's word, which is kept."""
    work = state.work.get(task_id, NO_WORK)
    words = f"reopened by a person: {why}" if why else "reopened by a person"
    return [_word("reopen", task_id, work.number, at, why), *reopened(state, task_id, at, words)]


def _word(word: str, task_id: str, number: int, at: datetime, why: str) -> Write:
    """A person's word about a task, recorded as a decision."""
    body = {"answer": word, "by": "person", "at": stamp(at), "comment": cut(clean(why), ERROR_MAX)}
    return text(layout.word_file(word, task_id, number), json.dumps(body, indent=2, ensure_ascii=False))


def _proposed(state: State, path: str, outcome: Outcome) -> Sequence[Change]:
    """The tasks of a proposal, then the proposal itself: it is the commit.

    A task that is planned anew is kept aside by the engine, to the byte.
    """
    request = state.request
    found = proposal(state, request.kind, outcome.text)
    if found.error or not found.tasks:
        return ()
    changes: list[Change] = []
    for task_id, body in found.tasks.items():
        old = state.tasks.get(task_id)
        if old is not None and request.kind == "replan" and outcome.finished_at:
            changes += reopened(state, task_id, outcome.finished_at, "planned anew")[:-1]
        place = layout.task_file(task_id) if old is None else old.file
        changes.append(text(place, json.dumps(body, indent=2, ensure_ascii=False)))
    record = {"kind": request.kind, "tasks": list(found.tasks), "answer": clean(outcome.text)}
    return [*changes, text(path, json.dumps(record, indent=2, ensure_ascii=False))]
