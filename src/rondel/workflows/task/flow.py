"""Flow: the steps of a task, one after the other, before its agent is asked."""

from __future__ import annotations

from rondel.model.actions import Access, Action, Decide, Derive, Run, Workspace
from rondel.model.cut import cut
from rondel.workflows.task import layout
from rondel.workflows.task.linked import with_session
from rondel.workflows.task.schema import Task
from rondel.workflows.task.state import NO_WORK, State, Try, TryStatus
from rondel.workflows.task.steps import OnError, Step, files_wanted
from rondel.workflows.task.variables import Variables, prepare

CONTINUE, SKIP, FAIL = "continue", "skip", "fail"
GIT_SETTINGS = {"safe.bareRepository": "explicit", "core.fsmonitor": "false"}
RETRIES_MAX = 2  # tries of a step that is retried once


def next_step(state: State, task: Task) -> Action | None:
    """The step that is due; None when all are done."""
    work = state.work.get(task.id, NO_WORK)
    for number, step in enumerate(task.steps, start=1):
        last = work.tries.get(number)
        if last is None:
            return _run(state, task, number, 1)
        if last.status is not TryStatus.FAILED or _skips(state, task, number, last):
            continue
        if step.on_error is OnError.RETRY and last.number < RETRIES_MAX:
            return _run(state, task, number, last.number + 1)
        if step.on_error is OnError.MANUAL:
            return _by_hand(state, task, number, last)
        return Derive(layout.task_file(task.id), title=f"{task.id} failed in step {number}")
    return None


def _answer(state: State, task: Task, number: int, last: Try) -> str:
    work = state.work.get(task.id, NO_WORK)
    path = layout.decision_file(task.id, work.number, number, last.number)
    return state.answers.get(path.rpartition("/")[2], "")


def _skips(state: State, task: Task, number: int, last: Try) -> bool:
    """Whether a person said that the task goes on without this step."""
    return task.steps[number - 1].on_error is OnError.MANUAL and _answer(state, task, number, last) == SKIP


def _by_hand(state: State, task: Task, number: int, last: Try) -> Action:
    """What a person said about a failed step: again, without it, or not at all."""
    answer = _answer(state, task, number, last)
    if answer == CONTINUE:
        return _run(state, task, number, last.number + 1)
    if answer == FAIL:
        return Derive(layout.task_file(task.id), title=f"{task.id} was given up in step {number}")
    work = state.work.get(task.id, NO_WORK)
    name = task.steps[number - 1].name
    return Decide(
        layout.decision_file(task.id, work.number, number, last.number),
        f"{task.id}: step {number} ({name}) failed: {cut(last.error, 300)}; continue runs it again",
        (CONTINUE, SKIP, FAIL),
        title=f"{task.id} step {number}",
    )


def workspace_name(state: State, task_id: str) -> str:
    """What the working copy of a task is called; each round of work has its own."""
    number = state.work.get(task_id, NO_WORK).number
    return task_id if number == 1 else f"{task_id}-{number}"


def workspace(state: State, task: Task) -> Workspace:
    """The working copy of a task: one for its steps and its agent together."""
    name = workspace_name(state, task.id)
    return Workspace(Access.WRITE, target=state.target, checks=state.request.checks, name=name)


def variables(state: State, task: Task, before: int | None = None) -> Variables:
    """What the references in a task's step, or in its texts, stand for."""
    work = state.work.get(task.id, NO_WORK)
    outputs: dict[str, str] = {}
    for number, step in enumerate(task.steps[: None if before is None else before - 1], start=1):
        last = work.tries.get(number)
        if step.output_to:
            text = state.files.text(layout.output_file(task.id, number, step.name)) if last else None
            kept = last is not None and last.status is TryStatus.DONE
            outputs[step.output_to] = (text or "").rstrip("\n") if kept else ""
    return Variables(task.properties, outputs)


def _run(state: State, task: Task, number: int, count: int) -> Action:
    """One try at a step. A step that cannot run at all is recorded as one that failed."""
    work = state.work.get(task.id, NO_WORK)
    path = layout.step_file(task.id, work.number, number, count)
    known = state.prepared.get(path)
    if known is None:
        known = state.prepared[path] = _prepared(state, task, number, path)
    return known


def _prepared(state: State, task: Task, number: int, path: str) -> Action:
    step: Step = task.steps[number - 1]
    values = variables(state, task, number)
    script = prepare(step.scripts, values) if not step.unusable else None
    if script is None or script.problem:
        return Derive(path, title=f"{task.id} step {number}")
    return Run(
        path,
        with_session(script.command, state.ref.folder),
        workspace=workspace(state, task),
        outputs=(layout.output_file(task.id, number, step.name),),
        env={**values.environment(), **git_environment()},
        stdin=script.stdin,
        timeout_s=state.request.step_timeout_s,
        collect=files_wanted(step.criteria),
        title=f"{task.id} step {number}: {step.name}",
        closed=bool(state.request.sandbox),
    )


def git_environment() -> dict[str, str]:
    """By what a step's git runs no program of a repository that a value may name."""
    found = {"GIT_CONFIG_COUNT": str(len(GIT_SETTINGS))}
    for number, (key, value) in enumerate(GIT_SETTINGS.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def problem(state: State, task: Task, number: int) -> str:
    """Why a step cannot run at all."""
    step = task.steps[number - 1]
    return step.unusable or prepare(step.scripts, variables(state, task, number)).problem
