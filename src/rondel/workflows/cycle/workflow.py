"""The cycle: four agents iterating on one task."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from rondel.model.actions import Decide
from rondel.model.changes import Aside, Change
from rondel.model.consent import CONSENT, HARMLESS, LOWER, OFF, ON, PATH, Brought, Rule
from rondel.model.jsons import mapping
from rondel.model.snapshot import Snapshot
from rondel.model.summary import OWN_WORDS, Problem, Status, Summary, command_line
from rondel.model.times import parse_time
from rondel.model.workflow import (
    NOTHING_GIVEN,
    Edited,
    Given,
    Mark,
    Repairs,
    RepoReader,
    SessionRef,
    Step,
    Workflow,
)
from rondel.workflows.cycle import layout, transitions
from rondel.workflows.cycle.files import repaired
from rondel.workflows.cycle.measure import brought
from rondel.workflows.cycle.models import CycleState
from rondel.workflows.cycle.read import read
from rondel.workflows.cycle.rebuild import closing_parts, restore
from rondel.workflows.cycle.requests import SETTINGS, old_test, read_request
from rondel.workflows.cycle.results import ResultStatus
from rondel.workflows.cycle.state import Iteration, Stage, State, TaskView
from rondel.workflows.cycle.steps import steps

STATUS = {"paused": Status.PAUSED, "completed": Status.COMPLETED, "failed": Status.FAILED}

if TYPE_CHECKING:
    import click


class Cycle(Workflow[State]):
    """One cycle per state file of `.workflow/.cycle/`."""

    name: ClassVar[str] = "cycle"
    order: ClassVar[int] = 3
    round_folder: ClassVar[str] = "iteration"
    own_paths: ClassVar[tuple[str, ...]] = (f"{layout.HOME}/**",)

    @override
    def sessions(self, repo: Snapshot) -> Iterable[SessionRef]:
        return layout.sessions(repo)

    @override
    def read(self, files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> State:
        return read(files, ref.id, given)

    @override
    def steps(self, state: State) -> Iterable[Step[State]]:
        return steps(state)

    @override
    def target(self, state: State) -> str | None:
        return state.target

    @override
    def edits(self, state: State) -> Iterable[Edited]:
        """What every iteration did: the next one builds on it."""
        for number in layout.iterations(state.files):
            folder = layout.part(number, "cd")
            for name in sorted(state.files.names(folder)):
                if name.endswith(".json") and layout.task_of(name) is not None:
                    result = mapping(state.files.json(f"{folder}/{name}"))
                    commit, counts = result.get("commit"), result.get("status") != ResultStatus.FAILED
                    if isinstance(commit, str) and commit and result.get("ended") == "done" and counts:
                        action = f"{folder}/{name.removesuffix('.json')}.md"
                        yield Edited(action, commit, f"{result.get('task')} {result.get('summary')}")

    @override
    def control(self, state: State, word: str, at: datetime) -> Sequence[Change]:
        if state.cycle is None:
            return ()
        if word in ("resume", "retry"):
            return _resume(state, at, retry=word == "retry")
        verb = "stopped" if word == "stop" else "paused"
        pause = transitions.pause(
            f"{verb} by a person at {state.time(at)}; `{command_line('cycle', 'resume', state.id)}` goes on"
        )
        return [*restore(state), state.edit(at, pause)]

    @override
    def changes_code(self, state: State | None) -> bool:
        return True

    @override
    def brings(self, state: State | None, given: Given, look: RepoReader) -> Iterable[Brought]:
        if given.test.strip():
            return ()
        old = read_request(state.files).test if state is not None else ""
        branch = state.target if state is not None else ""
        return [old_test(old)] if old.strip() else brought(look, branch)

    @override
    def summary(self, state: State) -> Summary:
        cycle = state.cycle
        if cycle is None:
            return Summary(state.id, Status.DAMAGED, problems=state.problems)
        due = [step.action for step in steps(state)]
        questions = [a.question for a in due if isinstance(a, Decide)]
        status = STATUS.get(cycle.status, Status.ACTIVE)
        waiting = None
        if questions and len(questions) == len(due):
            status, waiting = Status.WAITING, "; ".join(questions)
        elif cycle.status == "failed":
            waiting = cycle.failure_reason
        done, total = _progress(cycle, state.iteration)
        follows = _next(state, cycle, waits=bool(waiting))
        return Summary(
            title=cycle.title,
            status=status,
            phase=cycle.current_phase.value,
            done=done,
            total=total,
            waiting_for=waiting,
            updated_at=parse_time(cycle.updated_at),
            problems=state.problems,
            next=follows,
            state={**state.document, "branch": state.target, "next": follows},
        )

    @override
    def documents(self, state: State) -> Iterable[str]:
        return (layout.state_file(state.id), layout.LOG)

    @override
    def marks(self, state: State) -> Iterable[Mark]:
        for number in layout.iterations(state.files):
            end = mapping(state.files.json(layout.aggregate(number)))
            if "mark" in end:
                yield end["mark"], closing_parts(number, str(end.get("status")))

    @override
    def frozen(self, state: State) -> Iterable[str]:
        under_way = state.iteration.number if state.iteration else None
        return [f"{layout.PARTS}/iteration-{n}" for n in layout.iterations(state.files) if n != under_way]

    @override
    def looked_up(self, state: State) -> Iterable[str]:
        """What the commits of the iteration under way changed, and where they ended."""
        if (iteration := state.iteration) is None:
            return
        yield layout.built(iteration.number)
        for view in iteration.tasks:
            yield layout.task_changes(iteration.number, view.task.id, view.number)

    @override
    def artifact(self, state: State, number: int | None) -> str | None:
        kept = layout.archived(layout.SUMMARY, layout.of_iteration(number) or "") if number else ""
        choices = (kept,) if state.files.exists(kept) else (layout.SUMMARY, layout.REQUIREMENTS)
        return next((path for path in choices if state.files.exists(path)), None)

    @override
    def doctor(self, root: str, *, repair: Repairs) -> Iterable[tuple[str, Problem]]:
        return repaired(root, repair=repair)

    @override
    def settings(self) -> Mapping[str, object]:
        return SETTINGS

    @override
    def rules(self) -> Mapping[str, Rule]:
        return {
            "max_iterations": LOWER,
            "auto": OFF,
            "branch": CONSENT,
            "utc_offset_h": HARMLESS,
            "tests_required": ON,
            "test_timeout_s": LOWER,
            "junit": PATH,
            "coverage": PATH,
        }

    @override
    def commands(self) -> click.Group:
        from rondel.workflows.cycle.commands import command

        return command


def _progress(cycle: CycleState, iteration: Iteration | None) -> tuple[int, int]:
    """Steps of the iteration under way: two analyses, the plan, its tasks, tests, validation."""
    if iteration is None:
        return len(set(cycle.completed_phases)), 4
    done = (
        iteration.has_requirements,
        iteration.has_exploration,
        iteration.plan is not None,
        iteration.tests is not None,
    )
    return sum(done) + iteration.done + iteration.has_validation, 5 + len(iteration.tasks)


def _next(state: State, cycle: CycleState, *, waits: bool) -> str:
    """The command a person would type now."""
    name = state.id
    if state.pending_decisions and waits:
        return command_line("cycle", "decide", name, state.pending_decisions[0].id, "--option", "1")
    if state.open_blockers and waits:
        return command_line("cycle", "unblock", name, state.open_blockers[0].id)
    if cycle.status == "completed" and not state.extensions:
        return f"git merge {shlex.quote(state.target)}"
    if cycle.status == "failed" and state.iteration is None and not state.extensions:
        return command_line("cycle", "extend", name, OWN_WORDS)
    return command_line("cycle", "resume", name)


def _resume(state: State, at: datetime, *, retry: bool) -> Sequence[Change]:
    """What rests goes on; with `retry` also what failed because an agent gave no answer."""
    status = state.cycle.status if state.cycle else None
    if status == "paused":
        return [*restore(state), state.edit(at, transitions.resume(retry=False))]
    if status == "failed" and retry and state.iteration is not None:
        failed = [
            v for v in state.iteration.tasks if v.stage is Stage.FAILED and v.result.get("ended") == "failed"
        ]
        again = [change for view in failed for change in _put_aside(state, state.iteration, view)]
        return [*restore(state), *again, state.edit(at, transitions.resume(retry=True))]
    return ()


def _put_aside(state: State, iteration: Iteration, view: TaskView) -> list[Change]:
    """A task that got no answer is due again once what it left is out of the way."""
    folder = layout.part(iteration.number, "cd/failed")
    taken = state.files.names(folder)
    number = next(n for n in range(1, len(taken) + 2) if f"{view.task.id}.{n}.md" not in taken)
    paths = (
        layout.task(iteration.number, view.task.id, view.number),
        layout.task_result(iteration.number, view.task.id, view.number),
    )
    return [Aside(path, f"{folder}/{view.task.id}.{number}.{path.rpartition('.')[2]}") for path in paths]
