"""The workflow `generate`: code cycle by cycle from a profile, with approvals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from rondel.model.actions import Action, Ask
from rondel.model.changes import Change
from rondel.model.consent import Brought
from rondel.model.names import is_safe_name
from rondel.model.outcomes import Outcome
from rondel.model.rules import LOWER, Rule, ordered
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Summary
from rondel.model.workflow import NOTHING_GIVEN, Given, Look, SessionRef, Workflow
from rondel.workflows.generate import layout
from rondel.workflows.generate.apply import apply, check
from rondel.workflows.generate.models import FINAL, SCHEMA_VERSION
from rondel.workflows.generate.people import retry_failed
from rondel.workflows.generate.plan import plan
from rondel.workflows.generate.profiles.discover import (
    brought_profile,
    is_brought,
    is_installed,
    profile_names,
)
from rondel.workflows.generate.prompting import question
from rondel.workflows.generate.read import CHARS_MAX, ITERATIONS_MAX, State, read
from rondel.workflows.generate.status import summary

if TYPE_CHECKING:
    import click

GATE = ordered(("manual", "agent", "skip"), default="manual", together=("gate", "gates"))
OF_A_CYCLE = replace(LOWER, inherits=True)


class Generate(Workflow[State]):
    """One session per folder of `.aiwf/sessions/`."""

    name = "generate"
    order = 5
    round_folder = "iteration"
    own_paths = (".aiwf/**",)
    schema_version = SCHEMA_VERSION

    def sessions(self, repo: Snapshot) -> Iterator[SessionRef]:
        """Every folder with a `session.json`."""
        for name in sorted(repo.names(layout.SESSIONS)):
            plain = name.rstrip("/")
            folder = f"{layout.SESSIONS}/{plain}"
            if name.endswith("/") and is_safe_name(plain) and repo.exists(f"{folder}/{layout.SESSION}"):
                yield SessionRef(self.name, plain, folder)

    def read(self, files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> State:
        """See `Workflow`."""
        return read(files, ref, given)

    def plan(self, state: State) -> Iterable[Action]:
        """See `Workflow`."""
        return plan(state)

    def prompt(self, state: State, ask: Ask) -> str:
        """See `Workflow`."""
        return question(state, ask)

    def check(self, state: State, ask: Ask, text: str) -> str | None:
        """See `Workflow`."""
        return check(state, ask, text)

    def apply(self, state: State, action: Action, outcome: Outcome) -> Sequence[Change]:
        """See `Workflow`."""
        return apply(state, action, outcome)

    def brings(self, state: State | None, given: Given, look: Look) -> Iterable[Brought]:
        """See `Workflow`. A profile of the repository's; one of ours of the same name does without."""
        root, session = Path(look.root), state.session if state else None
        if state is None:
            names = [name for name in profile_names(root) if is_brought(name, root)]
        else:
            names = [session.profile_name] if session else []
        needed = (n for n in names if is_brought(n, root) and (state is None or not is_installed(n)))
        return [brought_profile(name) for name in needed]

    def control(self, state: State, word: str, at: datetime) -> Sequence[Change]:
        """See `Workflow`. A retry goes on with what ended for want of an answer."""
        return retry_failed(state, at) if word == "retry" and state.session is not None else ()

    def documents(self, state: State) -> Iterable[str]:
        """See `Workflow`."""
        return (layout.SESSION,)

    def frozen(self, state: State) -> Iterable[str]:
        """See `Workflow`. Every iteration before the current one, and the complete cycles."""
        for track in state.tracks:
            yield from (track.paths.iteration(n) for n in range(1, track.cycle.current_iteration))
            if track.cycle.status in FINAL and not state.flat:
                yield track.cycle.type

    def artifact(self, state: State, number: int | None) -> str | None:
        """See `Workflow`. The file of the stage that is due, of the current cycle."""
        if state.session is None:
            return None
        track = state.tracks[state.session.current_index]
        return track.file if number is None else track.paths.response(number, track.cycle.phase)

    def settings(self) -> Mapping[str, object]:
        """See `Workflow`."""
        return {
            "gate": "manual",
            "gates": {},
            "iterations_max": ITERATIONS_MAX,
            "context_chars_max": CHARS_MAX,
            "cycles": {},
        }

    def rules(self) -> Mapping[str, Rule]:
        """See `Workflow`."""
        return {
            "gate": GATE,
            "gates": GATE,  # each of its entries
            "gates.*": GATE,
            "iterations_max": LOWER,
            "context_chars_max": LOWER,
            "cycles": LOWER,  # each of its entries
            "cycles.*.iterations_max": OF_A_CYCLE,
            "cycles.*.context_chars_max": OF_A_CYCLE,
        }

    def commands(self) -> click.Group:
        """See `Workflow`."""
        from rondel.workflows.generate.commands import command

        return command

    def summary(self, state: State) -> Summary:
        """See `Workflow`."""
        return summary(state)
