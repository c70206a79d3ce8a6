"""The work on a task: what its agent is asked, and how the task ends.

Completed, blocked, or due again: a task's own file is written last, its status is the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from rondel.model import templates
from rondel.model.actions import Ask, Derive
from rondel.model.changes import Aside, Change, Document, Edit, Json, Write, json_file, text
from rondel.model.jsons import pretty
from rondel.model.outcomes import NO_COMMIT, Ended, Outcome
from rondel.model.templates import prompt_text
from rondel.model.texts import cut
from rondel.model.times import stamp
from rondel.model.workflow import Step
from rondel.workflows.task import documents, ids, layout
from rondel.workflows.task.read import completion_mark
from rondel.workflows.task.schema import Task, TaskStatus, with_status
from rondel.workflows.task.state import State
from rondel.workflows.task.variables import Variables, as_text, clean

ROUNDS_MAX = 3  # how often a task is done anew because others changed what it changed
ERROR_MAX = 2000
SUMMARY_MAX = 8_000
SUMMARIES_MAX = 60_000
OUTPUT_MAX = 20_000
NO_REPORT = "there is no report; say what was done, what was decided and what others need to know"


def work(state: State, task: Task) -> Step[State]:
    """What its agent is asked for: the task itself."""
    number = state.work_on(task.id).number
    path, summary = layout.work_file(task.id, number), layout.summary_file(task.id)
    ask = Ask(
        path,
        f"task.{task.agent}",
        workspace=state.workspace(task),
        outputs=() if path == summary else (summary,),
        title=f"{task.id}: {task.title}",
    )

    def prompt(state: State) -> str:
        return work_prompt(state, state.tasks.get(task.id, task))

    def check(_state: State, answer: str) -> str | None:
        return None if answer.strip() else NO_REPORT

    write = of_task(task.id, partial(_worked, path))
    return Step(ask, write, prompt, check, begin=partial(begun, task.id))


def _worked(path: str, state: State, task: Task, outcome: Outcome) -> list[Change]:
    """What came of the work on a task."""
    number = state.work_on(task.id).number
    if outcome.ok:
        summary = layout.summary_file(task.id)
        words = text(summary, clean(documents.summary(task, outcome, state.request.checks)))
        own = [text(path, clean(outcome.text))] if path != summary else []
        return [*own, *completed(state, task, words, by="rondel", commit=outcome.commit)]
    if outcome.ended is Ended.CONFLICT and number < ROUNDS_MAX:
        return [_round_ended(task.id, number, outcome.error, outcome.finished_at)]
    return blocked(state, task, outcome.error)


def of_task(
    task_id: str, write: Callable[[State, Task, Outcome], Sequence[Change]]
) -> Callable[[State, Outcome], Sequence[Change]]:
    """What a step leaves of a task, as that is when the step ends; nothing where it is gone meanwhile."""

    def write_now(state: State, outcome: Outcome) -> Sequence[Change]:
        task = state.tasks.get(task_id)
        return write(state, task, outcome) if task is not None else ()

    return write_now


# -- what the agent is asked ------------------------------------------------------------


def work_prompt(state: State, task: Task) -> str:
    """What the agent of a leaf is asked: its execution context, and what came before."""
    done = state.work_on(task.id)
    values = state.variables(task)
    context = {"task": task.document, "workflow": {"session": state.ref.id, "phase": str(state.phase)}}
    return fill(
        "work",
        {
            "id": task.id,
            "title": task.title,
            "context": pretty(context),
            "approach": _approach(task, values) or "None is written; decide for yourself.",
            "acceptance": _list(values.fill(a) for a in task.acceptance) or "- The requirements are met.",
            "steps": _outputs(task, values) or "There were none.",
            "changed": _list(f"`{p}`" for p in done.changed)
            or "Look with `git status`: they may have changed files.",
            "before": _summaries(state, task) or "There are none.",
            "again": f"\n## The round before\n\n{done.conflict}\n" if done.conflict else "",
        },
    )


def _approach(task: Task, values: Variables) -> str:
    """The texts of the implementation approach, their references filled in."""
    given = task.properties.get("flow_control")
    approach = given.get("implementation_approach") if isinstance(given, Mapping) else None
    entries = approach if isinstance(approach, list) else [approach]
    parts = []
    for number, entry in enumerate(entries, start=1):
        if isinstance(entry, Mapping):
            lines = [f"### {number}. {entry.get('title', 'Approach')}"] if len(entries) > 1 else []
            for name, value in entry.items():
                if value and name not in ("step", "title", "depends_on", "command"):
                    lines.append(f"{str(name).replace('_', ' ').capitalize()}:\n{_items(value, values)}")
            parts.append("\n\n".join(lines))
    return "\n\n".join(parts)


def _items(value: object, values: Variables) -> str:
    if isinstance(value, list):
        return _list(values.fill(as_text(v)) for v in value)
    return values.fill(as_text(value))


def _outputs(task: Task, values: Variables) -> str:
    """What was done before the agent was asked, and what came of it."""
    parts = []
    for number, step in enumerate(task.steps, start=1):
        shown = values.outputs.get(step.output_to or "", "")
        body = f"\n\n[{step.output_to}]:\n\n{_quoted(_cut(shown, OUTPUT_MAX))}" if step.output_to else ""
        parts.append(f"{number}. {step.action}{body}")
    return "\n\n".join(parts)


def _summaries(state: State, task: Task) -> str:
    """The summaries of what this task depends on, as far as there is room."""
    parts, size = [], 0
    for other in sorted(state.graph.needs.get(task.id, ()), key=ids.order):
        name = state.summary_of(other)
        found = state.files.text(f"{layout.SUMMARIES}/{name}") if name else None
        if found is None:
            continue
        short = _cut(found, SUMMARY_MAX)
        size += len(short)
        if size > SUMMARIES_MAX:
            parts.append(f"More is in {layout.HOME}/{state.ref.id}/{layout.SUMMARIES}.")
            break
        parts.append(_quoted(short))
    return "\n\n".join(parts)


def fill(name: str, values: Mapping[str, str]) -> str:
    """A prompt of this workflow with its slots filled."""
    return templates.fill(load(name), values)


def load(name: str) -> str:
    """A text of this workflow's prompts."""
    return prompt_text("rondel.workflows.task", name)


def _list(items: Iterable[str]) -> str:
    return "\n".join(f"- {item}" for item in items)


def _quoted(body: str) -> str:
    return "\n".join(f"> {line}" for line in body.splitlines())


def _cut(body: str, length_max: int) -> str:
    return body if len(body) <= length_max else f"{body[:length_max]}\n… ({len(body)} characters in all)"


# -- how a task's status changes --------------------------------------------------------


def begun(task_id: str, state: State, _at: datetime) -> Sequence[Change]:
    """A leaf that is begun is active."""
    task = state.tasks.get(task_id)
    if task is None or task.status is not TaskStatus.PENDING:
        return ()
    after = _with(state, task, TaskStatus.ACTIVE)
    changes: list[Change] = [_status(task, TaskStatus.ACTIVE)]
    if documents.due_now(after) and after.session.readable:
        changes.append(Edit(layout.SESSION, lambda body: documents.with_progress(body, after)))
    return changes


def completed(state: State, task: Task, words: Write | None = None, **facts: Json) -> list[Change]:
    """A task is completed: its summary and the documents show it, then its file says it.

    In a session that was begun here the file says it with the engine's mark: without that
    mark nobody's `completed` counts. In another one it says more than that only of an edit: which commit
    it is, so that its loss is seen.
    """
    after = _with(state, task, TaskStatus.COMPLETED)
    if words is not None:
        after = replace(after, summaries=after.summaries | {words.path.rpartition("/")[2]})
    drawn = documents.draw(after) if documents.due_now(after) else []
    completion: dict[str, Json] = dict(facts) if facts.get("commit") else {}
    if state.begun is not None:
        number = state.work_on(task.id).number
        completion = {**facts, "mark": completion_mark(state.begun, task.id, number)}
    shown = [words] if words is not None else []
    return [*shown, *drawn, _status(task, TaskStatus.COMPLETED, completion=completion)]


def blocked(state: State, task: Task, error: str) -> list[Change]:
    """A task has failed; the others go on."""
    words = cut(clean(error), ERROR_MAX) or "it failed, and nothing says why"
    after = _with(state, task, TaskStatus.BLOCKED, words)
    return [*documents.draw(after), _status(task, TaskStatus.BLOCKED, words)]


def reopened(state: State, task_id: str, at: datetime, why: str) -> list[Change]:
    """The changes that make a task due again, from its first step; what it left is kept aside."""
    number = state.work_on(task_id).number
    return [
        *_put_aside(state, task_id),
        _round_ended(task_id, number, why, at),
        _status(state.tasks[task_id], TaskStatus.PENDING),
    ]


def _round_ended(task_id: str, number: int, why: str, at: datetime | None) -> Change:
    """The record that a round of work came to nothing, so that the next one is due."""
    body = {"error": cut(clean(why), ERROR_MAX), "at": stamp(at) if at else None}
    return json_file(layout.round_file(task_id, number), body)


def _put_aside(state: State, task_id: str) -> list[Change]:
    """The summaries of a task, kept under the number of the round that left them."""
    number = state.work_on(task_id).number
    old = [n for n in layout.summary_names(task_id) if n in state.summaries]
    return [Aside(f"{layout.SUMMARIES}/{n}", f"{layout.REPLACED}/{number}-{n}") for n in old]


def _with(state: State, task: Task, status: TaskStatus, error: str = "") -> State:
    """The state as it will be with another status of one task."""
    tasks = {**state.tasks, task.id: replace(task, status=status, error=error)}
    frontier = state.frontier.moved(state.graph, task.id, task.status, tasks)
    return replace(state, tasks=tasks, frontier=frontier)


def _status(
    task: Task, status: TaskStatus, error: str = "", completion: Mapping[str, Json] | None = None
) -> Edit:
    def change(body: Document) -> Document:
        return with_status(body, task.inner, status, error, completion or {})

    return Edit(task.file, change)


# -- what its files say, where the engine did not say it ----------------------------------


def adopt_summary(task_id: str) -> Step[State]:
    """A task with a summary is completed, in a session that was not begun here."""
    action = Derive(layout.task_file(task_id), title=f"{task_id} has a summary")
    return Step(action, of_task(task_id, lambda state, task, _: completed(state, task)))


def set_back(task_id: str) -> Step[State]:
    """A completed task whose file says pending is done again."""

    def write(state: State, task: Task, outcome: Outcome) -> Sequence[Change]:
        at = outcome.finished_at
        return reopened(state, task.id, at, "set to pending by hand") if at else ()

    action = Derive(layout.task_file(task_id), title=f"{task_id} is to be done again")
    return Step(action, of_task(task_id, write))


# -- what a person says -------------------------------------------------------------------


def again(state: State, at: datetime) -> list[Change]:
    """The changes that make due again what failed of the tasks that a run is for.

    A task that was blocked without an error was blocked by a person, and waits to be named.
    """
    if state.request.kind != "run":
        return []
    leaves = [state.tasks[t] for t in state.graph.leaves if state.selected(t)]
    failed = [task for task in leaves if task.status is TaskStatus.BLOCKED and task.error]
    return [c for task in failed for c in tried_again(state, task, at)]


def tried_again(state: State, task: Task, at: datetime) -> list[Change]:
    """A new round of work; or the same, where a person may have fixed its edit, which is taken then."""
    if task.error.startswith(NO_COMMIT):
        return [_status(task, TaskStatus.PENDING)]
    return reopened(state, task.id, at, f"tried again after: {task.error}")


def declared(state: State, task_id: str, at: datetime, why: str) -> list[Change]:
    """The changes that make a task completed by a person's word: the word itself, then its summary."""
    task = state.tasks[task_id]
    old = [n for n in layout.summary_names(task_id) if n in state.summaries]
    before = "\n\n".join(state.files.text(f"{layout.SUMMARIES}/{n}") or "" for n in old)
    words = text(layout.summary_file(task_id), clean(documents.declared_summary(task, why, at, before)))
    return [
        _word("complete", state, task_id, at, why),
        *_put_aside(state, task_id),
        *completed(state, task, words, by="person", at=stamp(at)),
    ]


def reopened_by_person(state: State, task_id: str, at: datetime, why: str) -> list[Change]:
    """The changes that make a task due again by a person's word, which is kept."""
    words = f"reopened by a person: {why}" if why else "reopened by a person"
    return [_word("reopen", state, task_id, at, why), *reopened(state, task_id, at, words)]


def _word(word: str, state: State, task_id: str, at: datetime, why: str) -> Write:
    """A person's word about a task, recorded as a decision."""
    body = {"answer": word, "by": "person", "at": stamp(at), "comment": cut(clean(why), ERROR_MAX)}
    return json_file(layout.word_file(word, task_id, state.work_on(task_id).number), body)
