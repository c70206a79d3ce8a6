"""The task workflow: a planned session of tasks and subtasks, run by dependency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from rondel.model.changes import Change
from rondel.model.consent import LOWER, ON, PERSON, Brought, Rule
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem, Summary, command_line
from rondel.model.workflow import (
    NOTHING_GIVEN,
    Edited,
    Given,
    Mark,
    Repairs,
    RepoReader,
    SessionRef,
    Started,
    Step,
    Workflow,
)
from rondel.workflows.task import files as on_disk
from rondel.workflows.task import layout
from rondel.workflows.task import read as reading
from rondel.workflows.task.schema import OPEN, TaskStatus
from rondel.workflows.task.state import SessionStatus, State
from rondel.workflows.task.steps import steps
from rondel.workflows.task.summarise import summary
from rondel.workflows.task.working import again

if TYPE_CHECKING:
    import click

    from rondel.project import Project

ROUNDS_TRIED = 20  # of work on a task, by which its mark is looked for


class TaskWorkflow(Workflow[State]):
    """One session per folder of `.workflow/`."""

    name: ClassVar[str] = "task"
    order: ClassVar[int] = 4
    options: ClassVar[type[on_disk.TaskOptions]] = on_disk.TaskOptions
    own_paths: ClassVar[tuple[str, ...]] = (f"{layout.HOME}/**",)
    unedited: ClassVar[tuple[str, ...]] = (f"{layout.HOME}/{layout.MARKER}*",)

    @override
    def sessions(self, repo: Snapshot) -> Iterable[SessionRef]:
        return reading.sessions(repo)

    @override
    def read(self, files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> State:
        """What a person allowed is theirs, and comes from their own folder."""
        return reading.read(files, ref, given.allowed(), given)

    @override
    def reread(
        self,
        state: State,
        files: Snapshot,
        ref: SessionRef,
        changed: frozenset[str],
        given: Given = NOTHING_GIVEN,
    ) -> State:
        allowed = given.allowed() if state.has_steps else state.allowed
        return reading.reread(state, files, changed, allowed, given)

    @override
    def steps(self, state: State) -> Iterable[Step[State]]:
        return steps(state)

    @override
    def changes_code(self, state: State | None) -> bool:
        """Proposing tasks changes no code."""
        return state is None or state.request.kind == "run"

    @override
    def brings(self, state: State | None, given: Given, look: RepoReader) -> Iterable[Brought]:
        return reading.old_checks(state.files, given) if state is not None else ()

    @override
    def target(self, state: State) -> str | None:
        return state.target or ""

    @override
    def edits(self, state: State) -> Iterable[Edited]:
        return _edits(state).values()

    @override
    def redo(self, state: State, actions: Sequence[str]) -> str:
        """A session that a person ended is over: nothing of it is done again by the way."""
        wanted = frozenset(actions)
        tasks = [task_id for task_id, edited in _edits(state).items() if edited.action in wanted]
        if state.session.status is SessionStatus.COMPLETED or not tasks:
            return ""
        return command_line("task", "reopen", tasks[0], *tasks[1:], "--session", state.ref.id)

    @override
    def control(self, state: State, word: str, at: datetime) -> Sequence[Change]:
        """To try again is to do anew the tasks that failed, of those that were asked for."""
        return again(state, at) if word == "retry" else ()

    @override
    def documents(self, state: State) -> Iterable[str]:
        return (layout.SESSION, *(task.file for task in state.tasks.values()))

    @override
    def marks(self, state: State) -> Iterable[Mark]:
        """How often a task was worked on may be lost, too."""
        for task in state.tasks.values():
            if task.mark is not None:
                yield from ((task.mark, ("task", task.id, str(n + 1))) for n in range(ROUNDS_TRIED))

    @override
    def summary(self, state: State) -> Summary:
        return summary(state)

    @override
    def uses(self, state: State, name: str) -> bool:
        """A task that is not over works in the copy of its latest round."""
        meant = (state.tasks.get(task_id) for task_id in (name, name.rpartition("-")[0]))
        return any(t is not None and t.status in OPEN and name == state.workspace_name(t.id) for t in meant)

    @override
    def artifact(self, state: State, number: int | None) -> str | None:
        return layout.TODO

    @override
    def doctor(self, root: str, *, repair: Repairs) -> Iterable[tuple[str, Problem]]:
        return on_disk.doctor(root, repair=repair)

    @override
    def settings(self) -> Mapping[str, object]:
        return {"trust_commands": False, "step_timeout_s": 600.0, "sandbox": False}

    @override
    def rules(self) -> Mapping[str, Rule]:
        return {"trust_commands": PERSON, "sandbox": ON, "step_timeout_s": LOWER}

    @override
    def start(self, project: Project, options: on_disk.TaskOptions) -> Started:
        return on_disk.start(project, options)

    @override
    def commands(self) -> click.Group:
        from rondel.workflows.task.commands import command

        return command


def _edits(state: State) -> dict[str, Edited]:
    """The edits that count as done, by their tasks."""
    found = {}
    for task in state.tasks.values():
        if task.commit and task.completed_by != "person" and task.status is TaskStatus.COMPLETED:
            path = layout.work_file(task.id, state.work_on(task.id).number)
            found[task.id] = Edited(path, task.commit, f"{task.id} {task.title}")
    return found
