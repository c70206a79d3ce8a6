"""The cycle: four agents iterating on one task."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar

from rondel.model.actions import Action, Ask, Probe
from rondel.model.changes import Change
from rondel.model.consent import Brought
from rondel.model.outcomes import Outcome
from rondel.model.rules import CONSENT, HARMLESS, LOWER, OFF, ON, PATH, Rule
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem, Summary
from rondel.model.workflow import NOTHING_GIVEN, Edited, Given, Look, Mark, Repairs, SessionRef, Workflow
from rondel.workflows.cycle import apply as _apply
from rondel.workflows.cycle import layout, probes, prompting
from rondel.workflows.cycle.controls import control
from rondel.workflows.cycle.files import mend
from rondel.workflows.cycle.plan import plan
from rondel.workflows.cycle.read import read
from rondel.workflows.cycle.requests import SETTINGS, old_test, read_request
from rondel.workflows.cycle.results import ResultStatus
from rondel.workflows.cycle.state import State
from rondel.workflows.cycle.summary import summary
from rondel.workflows.cycle.values import mapping
from rondel.workflows.cycle.versions import archived, of_iteration

if TYPE_CHECKING:
    import click


class Cycle(Workflow[State]):
    """See `rondel.model.workflow.Workflow`."""

    name: ClassVar[str] = "cycle"
    order: ClassVar[int] = 3
    round_folder: ClassVar[str] = "iteration"
    own_paths: ClassVar[tuple[str, ...]] = (f"{layout.HOME}/**",)

    def sessions(self, repo: Snapshot) -> Iterable[SessionRef]:
        """See `Workflow`."""
        return layout.sessions(repo)

    def read(self, files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> State:
        """See `Workflow`."""
        return read(files, ref.id, given)

    def target(self, state: State) -> str | None:
        """See `Workflow`."""
        return state.target

    def edits(self, state: State) -> Iterable[Edited]:
        """See `Workflow`. What every iteration did: the next one builds on it."""
        for number in layout.iterations(state.files):
            folder = layout.part(number, "cd")
            for name in sorted(state.files.names(folder)):
                if name.endswith(".json") and layout.task_of(name) is not None:
                    result = mapping(state.files.json(f"{folder}/{name}"))
                    commit, counts = result.get("commit"), result.get("status") != ResultStatus.FAILED
                    if isinstance(commit, str) and commit and result.get("ended") == "done" and counts:
                        action = f"{folder}/{name.removesuffix('.json')}.md"
                        yield Edited(action, commit, f"{result.get('task')} {result.get('summary')}")

    def plan(self, state: State) -> Iterable[Action]:
        """See `Workflow`."""
        return plan(state)

    def prompt(self, state: State, ask: Ask) -> str:
        """See `Workflow`."""
        return prompting.prompt(state, ask)

    def check(self, state: State, ask: Ask, text: str) -> str | None:
        """See `Workflow`."""
        return prompting.check(state, ask, text)

    def begin(self, state: State, action: Action, at: datetime) -> Sequence[Change]:
        """See `Workflow`."""
        return _apply.begin(state, action, at)

    def apply(self, state: State, action: Action, outcome: Outcome) -> Sequence[Change]:
        """See `Workflow`."""
        return _apply.apply(state, action, outcome)

    def control(self, state: State, word: str, at: datetime) -> Sequence[Change]:
        """See `Workflow`."""
        return control(state, word, at)

    def probe(self, probe: Probe, look: Look) -> object:
        """See `Workflow`."""
        return probes.probe(probe, look)

    def changes_code(self, state: State | None) -> bool:
        """See `Workflow`."""
        return True

    def brings(self, state: State | None, given: Given, look: Look) -> Iterable[Brought]:
        """See `Workflow`."""
        if given.test.strip():
            return ()
        old = read_request(state.files).test if state is not None else ""
        branch = self.target(state) if state is not None else ""
        return [old_test(old)] if old.strip() else probes.brought(look, branch or "")

    def summary(self, state: State) -> Summary:
        """See `Workflow`."""
        return summary(state)

    def documents(self, state: State) -> Iterable[str]:
        """See `Workflow`."""
        return (layout.state_file(state.id), layout.LOG)

    def marks(self, state: State) -> Iterable[Mark]:
        """See `Workflow`."""
        for number in layout.iterations(state.files):
            end = mapping(state.files.json(layout.aggregate(number)))
            if "mark" in end:
                yield end["mark"], ("cycle", str(number), str(end.get("status")))

    def frozen(self, state: State) -> Iterable[str]:
        """See `Workflow`."""
        under_way = state.turn.number if state.turn else None
        return [f"{layout.PARTS}/iteration-{n}" for n in layout.iterations(state.files) if n != under_way]

    def looked_up(self, state: State) -> Iterable[str]:
        """See `Workflow`. What the commits of the iteration under way changed, and where they ended."""
        if (turn := state.turn) is None:
            return
        yield layout.built(turn.number)
        for view in turn.tasks:
            yield layout.task_changes(turn.number, view.task.id, view.number)

    def artifact(self, state: State, number: int | None) -> str | None:
        """See `Workflow`."""
        kept = archived(layout.SUMMARY, of_iteration(number) or "") if number else ""
        choices = (kept,) if state.files.exists(kept) else (layout.SUMMARY, layout.REQUIREMENTS)
        return next((path for path in choices if state.files.exists(path)), None)

    def doctor(self, root: str, *, repair: Repairs) -> Iterable[tuple[str, Problem]]:
        """See `Workflow`."""
        return mend(root, repair=repair)

    def settings(self) -> Mapping[str, object]:
        """See `Workflow`."""
        return SETTINGS

    def rules(self) -> Mapping[str, Rule]:
        """See `Workflow`."""
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

    def commands(self) -> click.Group:
        """See `Workflow`."""
        from rondel.workflows.cycle.commands import command

        return command
