"""The workflow `generate`: code cycle by cycle from a profile, with approvals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from typing_extensions import override

from rondel.model.actions import Decide
from rondel.model.changes import Change
from rondel.model.consent import LOWER, Brought, Rule, ordered
from rondel.model.names import is_safe_name
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Status, Summary, answering, command_line
from rondel.model.times import parse_time
from rondel.model.workflow import NOTHING_GIVEN, Given, RepoReader, SessionRef, Started, Step, Workflow
from rondel.workflows.generate import layout
from rondel.workflows.generate.files import GenerateOptions, start
from rondel.workflows.generate.models import (
    FINAL,
    SCHEMA_VERSION,
    CycleState,
    WorkflowState,
    WorkflowStatus,
)
from rondel.workflows.generate.profiles.discover import (
    brought_profile,
    is_brought,
    is_installed,
    profile_names,
)
from rondel.workflows.generate.read import CHARS_MAX, ITERATIONS_MAX, State, read
from rondel.workflows.generate.steps import steps
from rondel.workflows.generate.transitions import retry_failed

MARKS = {
    WorkflowStatus.COMPLETED: "✓",
    WorkflowStatus.IN_PROGRESS: "→",
    WorkflowStatus.ERROR: "✗",
    WorkflowStatus.CANCELLED: "-",
    WorkflowStatus.SKIPPED: "-",
}

if TYPE_CHECKING:
    import click

    from rondel.project import Project

GATE = ordered(("manual", "agent", "skip"), default="manual", together=("gate", "gates"))
OF_A_CYCLE = replace(LOWER, inherits=True)


class Generate(Workflow[State]):
    """One session per folder of `.aiwf/sessions/`."""

    name = "generate"
    order = 5
    options = GenerateOptions
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

    @override
    def read(self, files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> State:
        return read(files, ref, given)

    @override
    def steps(self, state: State) -> Iterable[Step[State]]:
        return steps(state)

    @override
    def brings(self, state: State | None, given: Given, look: RepoReader) -> Iterable[Brought]:
        """A profile of the repository's; one of ours of the same name does without."""
        if state is None:
            names = list(profile_names(look.root))
        else:
            names = [state.session.profile_name] if state.session else []
        brought = (n for n in names if is_brought(n, look.root))
        return [brought_profile(n) for n in brought if state is None or not is_installed(n)]

    @override
    def control(self, state: State, word: str, at: datetime) -> Sequence[Change]:
        """A retry goes on with what ended for want of an answer."""
        return retry_failed(state, at) if word == "retry" and state.session is not None else ()

    @override
    def documents(self, state: State) -> Iterable[str]:
        return (layout.SESSION,)

    @override
    def frozen(self, state: State) -> Iterable[str]:
        """Every iteration before the current one, and the complete cycles."""
        for view in state.views:
            yield from (view.paths.iteration(n) for n in range(1, view.cycle.current_iteration))
            if view.cycle.status in FINAL and not state.flat:
                yield view.cycle.type

    @override
    def artifact(self, state: State, number: int | None) -> str | None:
        """The file of the stage that is due, of the current cycle."""
        if state.session is None:
            return None
        view = state.views[state.session.current_index]
        return view.file if number is None else view.paths.response(number, view.cycle.phase)

    @override
    def settings(self) -> Mapping[str, object]:
        return {
            "gate": "manual",
            "gates": {},
            "iterations_max": ITERATIONS_MAX,
            "context_chars_max": CHARS_MAX,
            "cycles": {},
        }

    @override
    def rules(self) -> Mapping[str, Rule]:
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

    @override
    def start(self, project: Project, options: GenerateOptions) -> Started:
        return start(project, options)

    @override
    def commands(self) -> click.Group:
        from rondel.workflows.generate.commands import command

        return command

    @override
    def summary(self, state: State) -> Summary:
        session = state.session
        if session is None:
            return Summary(state.ref.id, Status.DAMAGED, problems=state.problems, state=dict(state.raw))
        open_ = [a for a in self.plan(state) if isinstance(a, Decide)]
        question = open_[0].question if open_ else None
        failed = next((c for c in session.cycles if c.status is WorkflowStatus.ERROR), None)
        if failed is not None and not state.due:
            question = f"{failed.type}: {failed.last_error}"
        status, command = _standing(state, session, open_)
        context = session.context
        title = " ".join(str(context[k]) for k in ("entity", "scope") if context.get(k)) or state.ref.id
        return Summary(
            f"{session.profile_name}: {title}",
            status,
            phase="complete" if session.status is WorkflowStatus.COMPLETED else session.current.stage_name,
            done=sum(c.status in FINAL for c in session.cycles),
            total=len(session.cycles),
            waiting_for=question,
            updated_at=parse_time(session.updated_at),
            problems=state.problems,
            next=command,
            state=dict(state.raw) if state.flat else _shown(session),
            foreign=state.foreign,
        )


def _standing(state: State, session: WorkflowState, open_: Sequence[Decide]) -> tuple[Status, str]:
    """How the session stands, and the command that goes on with it."""
    name = state.ref.id
    match session.status:
        case WorkflowStatus.COMPLETED:
            return Status.COMPLETED, command_line("generate", "apply", name) if state.code else ""
        case WorkflowStatus.CANCELLED | WorkflowStatus.SKIPPED:
            return Status.CANCELLED, ""
        case WorkflowStatus.ERROR if not state.due:
            return Status.FAILED, command_line("generate", "retry", name)
        case _ if open_:
            return Status.WAITING, answering(("generate",), name, open_)
        case _:
            return Status.ACTIVE, command_line("generate", "run", name)


def _shown(session: WorkflowState) -> dict[str, object]:
    """The document, and what follows from it: the session's status, phase and stage."""
    current = session.current
    return {
        **session.model_dump(mode="json"),
        "status": session.status.value,
        "phase": current.phase.value,
        "stage": current.stage.value,
        "pending": [c.type for c in session.cycles if c.pending],
        "stale": [c.type for c in session.cycles if c.stale],
    }


def status_text(session: WorkflowState) -> str:
    """Where a session stands, cycle by cycle."""
    lines = [
        f"Session: {session.session_id}",
        f"Cycle: {session.current_index + 1}/{len(session.cycles)} ({session.current.type})",
        f"Phase: {session.current.stage_name}",
        f"Status: {session.status.name}",
        "",
        "Cycles:",
        *(f"  {_cycle_line(cycle)}" for cycle in session.cycles),
    ]
    return "\n".join(lines) + "\n"


def _cycle_line(cycle: CycleState) -> str:
    """One cycle: its mark, its type, how it stands; stale stands beside that."""
    mark = " " if cycle.pending else MARKS[cycle.status]
    word = "pending" if cycle.pending else cycle.status.value.replace("_", " ")
    return f"[{mark}] {cycle.type} ({word}{', stale' if cycle.stale else ''})"
