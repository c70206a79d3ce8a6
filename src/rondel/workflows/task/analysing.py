"""The steps of a task, one after the other, before its agent is asked.

Their commands come from files that anybody may have written, so a person allows each one first.
A permission is the digest of a command's text; a changed command asks again. Permissions are
kept in the person's own state folder (see `rondel.trust`), never in the repository.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from rondel.model.actions import Decide, Derive, Run
from rondel.model.changes import Change, Write, json_file
from rondel.model.names import digest
from rondel.model.outcomes import Ended, Outcome
from rondel.model.texts import cut
from rondel.model.times import stamp
from rondel.model.workflow import Step
from rondel.workflows.task import layout
from rondel.workflows.task.preanalysis import OnError, files_wanted, unmet
from rondel.workflows.task.schema import Task
from rondel.workflows.task.state import State, Try, TryStatus
from rondel.workflows.task.variables import clean, prepare
from rondel.workflows.task.working import ERROR_MAX, begun, blocked, of_task

CONTINUE, SKIP, FAIL = "continue", "skip", "fail"
GIT_SETTINGS = {"safe.bareRepository": "explicit", "core.fsmonitor": "false"}
RETRIES_MAX = 2  # tries of a step that is retried once

# $1 is the session's folder in the repository, $2 the command. A working copy has no untracked
# files, and committed ones as they were: the session is linked into it for as long as the command
# runs, unless its path leads out of the working copy.
_WITH_SESSION = """\
mkdir -p "${1%/*}"
if [ "$(cd -P "${1%/*}" && pwd)" = "$(pwd -P)/${1%/*}" ]; then
  rm -rf "$1" && ln -sn "$RONDEL_SESSION_DIR" "$1" && made=1
fi
bash -c "$2"
status=$?
if [ -n "${made-}" ]; then
  rm -f "$1"
  git --literal-pathspecs ls-files -z -- "$1" | git checkout-index --force -z --stdin
  rmdir "${1%/*}" 2>/dev/null
fi
exit "$status"
"""


def next_step(state: State, task: Task) -> Step[State] | None:
    """The step that is due; None when all are done."""
    tries = state.work_on(task.id).tries
    for number, step in enumerate(task.steps, start=1):
        last = tries.get(number)
        if last is None:
            return _try(state, task, number, 1)
        if last.status is not TryStatus.FAILED:
            continue
        if step.on_error is OnError.RETRY and last.number < RETRIES_MAX:
            return _try(state, task, number, last.number + 1)
        if step.on_error is not OnError.MANUAL:
            return _given_up(task.id, f"{task.id} failed in step {number}")
        if (due := _by_hand(state, task, number, last)) is not None:
            return due
    return None


def _by_hand(state: State, task: Task, number: int, last: Try) -> Step[State] | None:
    """What a person said about a failed step: again, not at all, or (None) that the task goes on without."""
    path = layout.decision_file(task.id, state.work_on(task.id).number, number, last.number)
    answer = state.answers.get(path.rpartition("/")[2], "")
    if answer == SKIP:
        return None
    if answer == CONTINUE:
        return _try(state, task, number, last.number + 1)
    if answer == FAIL:
        return _given_up(task.id, f"{task.id} was given up in step {number}")
    name = task.steps[number - 1].name
    question = f"{task.id}: step {number} ({name}) failed: {cut(last.error, 300)}; continue runs it again"
    return Step(Decide(path, question, (CONTINUE, SKIP, FAIL), title=f"{task.id} step {number}"))


def _given_up(task_id: str, title: str) -> Step[State]:
    """A task whose step failed for good is blocked."""

    def write(state: State, task: Task, _outcome: Outcome) -> Sequence[Change]:
        return blocked(state, task, _why(state, task))

    return Step(Derive(layout.task_file(task_id), title=title), of_task(task_id, write))


def _why(state: State, task: Task) -> str:
    """What a task failed of: its last failed step."""
    tries = state.work_on(task.id).tries
    failed = [(n, t) for n, t in tries.items() if t.status is TryStatus.FAILED]
    if not failed:
        return "it was given up"
    number, last = failed[-1]
    return f"step {number} ({task.steps[number - 1].name}): {last.error}"


# -- one try ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _OneTry:
    """Which try at which step, both counted from 1, and the file that it leaves."""

    path: str
    step: int
    count: int


def _try(state: State, task: Task, number: int, count: int) -> Step[State]:
    """One try at a step. To find out what it runs is costly, and done once."""
    path = layout.step_file(task.id, state.work_on(task.id).number, number, count)
    known = state.prepared.get(path)
    if known is None:
        known = state.prepared[path] = _prepared(state, task, _OneTry(path, number, count))
    return known


def _prepared(state: State, task: Task, one: _OneTry) -> Step[State]:
    step = task.steps[one.step - 1]
    values = state.variables(task, one.step)
    script = prepare(step.scripts, values) if not step.unusable else None
    title = f"{task.id} step {one.step}"
    if script is None or script.problem:
        return Step(Derive(one.path, title=title), of_task(task.id, partial(_unusable, one)))
    run = Run(
        one.path,
        ("bash", "-c", _WITH_SESSION, "bash", state.ref.folder, script.command),
        workspace=state.workspace(task),
        outputs=(layout.output_file(task.id, one.step, step.name),),
        env={**values.environment(), **git_environment()},
        stdin=script.stdin,
        timeout_s=state.request.step_timeout_s,
        collect=files_wanted(step.criteria),
        title=f"{title}: {step.name}",
        closed=bool(state.request.sandbox),
    )
    return Step(run, of_task(task.id, partial(_tried, one)), begin=partial(begun, task.id))


def git_environment() -> dict[str, str]:
    """By what a step's git runs no program of a repository that a value may name."""
    found = {"GIT_CONFIG_COUNT": str(len(GIT_SETTINGS))}
    for number, (key, value) in enumerate(GIT_SETTINGS.items()):
        found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return found


def _unusable(one: _OneTry, state: State, task: Task, outcome: Outcome) -> Sequence[Change]:
    """A step that cannot run at all is recorded as one that failed."""
    if one.step > len(task.steps):
        return ()
    step = task.steps[one.step - 1]
    problem = step.unusable or prepare(step.scripts, state.variables(task, one.step)).problem
    return _recorded(one, state, task, outcome, problem or "it cannot run")


def _tried(one: _OneTry, state: State, task: Task, outcome: Outcome) -> Sequence[Change]:
    """What a step printed, and what came of it."""
    if one.step > len(task.steps):
        return ()
    step = task.steps[one.step - 1]
    output = Write(layout.output_file(task.id, one.step, step.name), clean(outcome.text).encode())
    return [output, *_recorded(one, state, task, outcome, _error(step.criteria, outcome))]


def _error(criteria: str, outcome: Outcome) -> str | None:
    """Why a step did not succeed; None when it did."""
    said = cut(clean(outcome.error), ERROR_MAX)
    if outcome.ended not in (Ended.DONE, Ended.FAILED) or outcome.exit_code is None:
        return said or str(outcome.ended)
    missed = unmet(criteria, outcome.exit_code, outcome.text, outcome.files)
    return f"{missed}: {said}" if missed is not None and outcome.error else missed


def _recorded(one: _OneTry, state: State, task: Task, outcome: Outcome, error: str | None) -> list[Change]:
    """The record of a try, and what it means for its task."""
    step = task.steps[one.step - 1]
    status = TryStatus.DONE
    if error is not None:
        status = TryStatus.SKIPPED if step.on_error is OnError.SKIP else TryStatus.FAILED
    record = {
        "step": step.name,
        "status": str(status),
        "exit_code": outcome.exit_code,
        "error": error or "",
        "changed": list(outcome.changed),
        "finished_at": stamp(outcome.finished_at) if outcome.finished_at else None,
    }
    changes: list[Change] = [json_file(one.path, record)]
    was_last = step.on_error is OnError.RETRY and one.count >= RETRIES_MAX
    if status is TryStatus.FAILED and (was_last or step.on_error is OnError.FAIL):
        changes += blocked(state, task, f"step {one.step} ({step.name}): {error}")
    return changes


# -- permissions ------------------------------------------------------------------------


@dataclass(frozen=True)
class Waiting:
    """A command that nobody has allowed yet."""

    task_id: str
    step: str
    command: str

    @property
    def digest(self) -> str:
        """What a permission for it is: every character of its text makes it another command."""
        return digest(f"rondel task command\n{self.command}")


def waiting(task: Task, allowed: Container[str]) -> list[Waiting]:
    """The commands of a task that are not allowed."""
    usable = [step for step in task.steps if not step.unusable]
    found = [Waiting(task.id, step.name, command) for step in usable for command in step.commands]
    return [one for one in found if one.digest not in allowed]


def waiting_in(tasks: Iterable[Task], allowed: Container[str]) -> list[Waiting]:
    """The commands of several tasks that are not allowed, each once."""
    found: dict[str, Waiting] = {}
    for task in tasks:
        for one in waiting(task, allowed):
            found.setdefault(one.command, one)
    return list(found.values())
