"""The task workflow: a planned session of tasks and subtasks, run by dependency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from rondel.model.actions import Action, Ask
from rondel.model.changes import Change
from rondel.model.commands import command_line
from rondel.model.consent import Brought
from rondel.model.outcomes import Outcome
from rondel.model.rules import LOWER, ON, PERSON, Rule
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem, Summary
from rondel.model.workflow import NOTHING_GIVEN, Edited, Given, Look, Mark, Repairs, SessionRef, Workflow
from rondel.workflows.task import apply as applying
from rondel.workflows.task import files as on_disk
from rondel.workflows.task import flow, layout, prompts
from rondel.workflows.task import plan as planning
from rondel.workflows.task import read as reading
from rondel.workflows.task.proposals import proposal
from rondel.workflows.task.schema import OPEN, TaskStatus
from rondel.workflows.task.state import NO_WORK, SessionStatus, State
from rondel.workflows.task.summarise import summary

if TYPE_CHECKING:
    import click

ROUNDS_TRIED = 20  # of work on a task, by which its mark is looked for


class TaskWorkflow(Workflow[State]):
    """See `rondel.model.workflow.Workflow`."""

    name: ClassVar[str] = "task"
    order: ClassVar[int] = 4
    own_paths: ClassVar[tuple[str, ...]] = (f"{layout.HOME}/**",)

    def sessions(self, repo: Snapshot) -> Iterable[SessionRef]:
        """See `Workflow`."""
        return reading.sessions(repo)

    def read(self, files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> State:
        """See `Workflow`. What a person allowed is theirs, and comes from their own folder."""
        return reading.read(files, ref, given.allowed(), given)

    def reread(
        self,
        state: State,
        files: Snapshot,
        ref: SessionRef,
        changed: frozenset[str],
        given: Given = NOTHING_GIVEN,
    ) -> State:
        """See `Workflow`."""
        allowed = given.allowed() if state.has_steps else state.allowed
        return reading.reread(state, files, changed, allowed, given)

    def changes_code(self, state: State | None) -> bool:
        """See `Workflow`. Proposing tasks changes no code."""
        return state is None or state.request.kind == "run"

    def brings(self, state: State | None, given: Given, look: Look) -> Iterable[Brought]:
        """See `Workflow`."""
        return reading.old_checks(state.files, given) if state is not None else ()

    def target(self, state: State) -> str | None:
        """See `Workflow`."""
        return state.target or ""

    def edits(self, state: State) -> Iterable[Edited]:
        """See `Workflow`."""
        for task in state.tasks.values():
            if task.commit and task.completed_by != "person" and task.status is TaskStatus.COMPLETED:
                number = state.work.get(task.id, NO_WORK).number
                yield Edited(layout.work_file(task.id, number), task.commit, f"{task.id} {task.title}")

    def redo(self, state: State, actions: Sequence[str]) -> str:
        """See `Workflow`. A session that a person ended is over: nothing of it is done again by the way."""
        tasks = [task.id for path in actions if (task := applying.task_at(state, path)) is not None]
        if state.session.status is SessionStatus.COMPLETED or not tasks:
            return ""
        return command_line("task", "reopen", tasks[0], *tasks[1:], "--session", state.ref.id)

    def plan(self, state: State) -> Iterable[Action]:
        """See `Workflow`."""
        return planning.plan(state)

    def prompt(self, state: State, ask: Ask) -> str:
        """See `Workflow`."""
        task = applying.task_of(state, ask)
        return prompts.work_prompt(state, task) if task else prompts.proposal_prompt(state)

    def check(self, state: State, ask: Ask, text: str) -> str | None:
        """See `Workflow`."""
        if ask.path.startswith(f"{layout.PROPOSALS}/"):
            return proposal(state, state.request.kind, text).error or None
        return (
            None
            if text.strip()
            else "there is no report; say what was done, what was decided and what others need to know"
        )

    def begin(self, state: State, action: Action, at: datetime) -> Sequence[Change]:
        """See `Workflow`."""
        return applying.begin(state, action)

    def apply(self, state: State, action: Action, outcome: Outcome) -> Sequence[Change]:
        """See `Workflow`."""
        return applying.apply(state, action, outcome)

    def control(self, state: State, word: str, at: datetime) -> Sequence[Change]:
        """See `Workflow`. To try again is to do anew the tasks that failed, of those that were asked for."""
        return applying.again(state, at) if word == "retry" else ()

    def documents(self, state: State) -> Iterable[str]:
        """See `Workflow`."""
        return (layout.SESSION, *(task.file for task in state.tasks.values()))

    def marks(self, state: State) -> Iterable[Mark]:
        """See `Workflow`. How often a task was worked on may be lost, too."""
        for task in state.tasks.values():
            if task.mark is not None:
                yield from ((task.mark, ("task", task.id, str(n + 1))) for n in range(ROUNDS_TRIED))

    def summary(self, state: State) -> Summary:
        """See `Workflow`."""
        return summary(state)

    def uses(self, state: State, name: str) -> bool:
        """See `Workflow`. A task that is not over works in the copy of its latest round."""
        return any(
            t in state.tasks and state.tasks[t].status in OPEN and name == flow.workspace_name(state, t)
            for t in (name, name.rpartition("-")[0])
        )

    def artifact(self, state: State, number: int | None) -> str | None:
        """See `Workflow`."""
        return layout.TODO

    def doctor(self, root: str, *, repair: Repairs) -> Iterable[tuple[str, Problem]]:
        """See `Workflow`."""
        return on_disk.doctor(root, repair=repair)

    def settings(self) -> Mapping[str, object]:
        """See `Workflow`."""
        return {"trust_commands": False, "step_timeout_s": 600.0, "sandbox": False}

    def rules(self) -> Mapping[str, Rule]:
        """See `Workflow`."""
        return {"trust_commands": PERSON, "sandbox": ON, "step_timeout_s": LOWER}

    def commands(self) -> click.Group:
        """See `Workflow`."""
        from rondel.workflows.task.commands import command

        return command
