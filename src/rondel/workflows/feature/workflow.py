"""The workflow `feature`: phases, each drafted and reviewed until it will do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from typing_extensions import override

from rondel.model.actions import Decide
from rondel.model.consent import HARMLESS, Brought, Rule
from rondel.model.names import is_safe_name
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Conclusion, Problem, Status, Summary, answering, command_line
from rondel.model.times import parse_time
from rondel.model.toolchain import brought_tests
from rondel.model.workflow import (
    NOTHING_GIVEN,
    Edited,
    Given,
    Repairs,
    RepoReader,
    SessionRef,
    Started,
    Step,
    Workflow,
)
from rondel.workflows.feature import layout, place
from rondel.workflows.feature.files import FeatureOptions, lost, mend, start
from rondel.workflows.feature.lint import Anomaly, without_stray_brace
from rondel.workflows.feature.meta import notes, records, stamped, title, word
from rondel.workflows.feature.phases import ABANDONED, ARTIFACTS, FINISH, IMPLEMENT, REVIEWED, VERIFY
from rondel.workflows.feature.read import Request, State, read
from rondel.workflows.feature.steps import steps
from rondel.workflows.feature.work import read_work

if TYPE_CHECKING:
    import click

    from rondel.project import Project

_FOLDER = re.compile(r"\d+-.+")
REPAIRS = {
    "invalid-json": "mend it by hand",
    "no-phases": "`rondel feature specify` begins to keep them",
    "unknown-status": "set `status` to active, completed or abandoned",
    "completed-without-time": "add `completed` with the time, or set `status` to active",
}
BY_HAND = "correct it in .meta.json, or leave it: what is due is derived all the same"


class Feature(Workflow[State]):
    """One feature per folder of `docs/features/`."""

    name = "feature"
    order = 2
    options = FeatureOptions
    round_folder = "iteration"
    own_paths = (f"{layout.FEATURES}/*/{layout.META}",)  # its documents are the person's, too

    def sessions(self, repo: Snapshot) -> Iterator[SessionRef]:
        """Every folder `{id}-{slug}` with a `.meta.json`."""
        for name in sorted(repo.names(layout.FEATURES)):
            plain = name.rstrip("/")
            folder = f"{layout.FEATURES}/{plain}"
            is_feature = name.endswith("/") and _FOLDER.fullmatch(plain) and is_safe_name(plain)
            if is_feature and repo.exists(f"{folder}/{layout.META}"):
                yield SessionRef(self.name, plain, folder)

    @override
    def read(self, files: Snapshot, ref: SessionRef, given: Given = NOTHING_GIVEN) -> State:
        return read(files, ref, given)

    @override
    def target(self, state: State) -> str | None:
        return state.branch

    @override
    def edits(self, state: State) -> Iterable[Edited]:
        """Once it has ended, its branch is the person's to delete or to use again."""
        work, asked = read_work(state.files, IMPLEMENT), state.request
        anew = asked is not None and asked.phase == IMPLEMENT and asked.how == "fresh"
        if anew and asked and (work.take is None or work.take.request < asked.number):
            return ()  # that has not begun yet
        return () if state.ended else work.edited

    @override
    def redo(self, state: State, actions: Sequence[str]) -> str:
        return command_line("feature", IMPLEMENT, state.ref.id, "--fresh", "--yes")

    @override
    def steps(self, state: State) -> Iterable[Step[State]]:
        return steps(state)

    @override
    def documents(self, state: State) -> Iterable[str]:
        return (layout.META,)

    @override
    def conclusion(self, state: State) -> Conclusion:
        return conclusion(state)

    @override
    def frozen(self, state: State) -> Iterable[str]:
        """A completed phase is redone by asking for it, not by the way."""
        return [f"{layout.PARTS}/{phase}" for phase in REVIEWED if phase in state.completed]

    @override
    def looked_up(self, state: State) -> Iterable[str]:
        """Where the phase under way begins, while nothing was made from there."""
        if state.work is not None and not state.work.rounds and not state.work.edits:
            yield layout.base(state.work.folder)

    @override
    def artifact(self, state: State, number: int | None) -> str | None:
        """The document of the latest phase that has one; of an iteration, its draft."""
        there = [p for p in ARTIFACTS if state.files.exists(ARTIFACTS[p])]
        if not there:
            return None
        if number is None:
            return ARTIFACTS[there[-1]]
        return layout.draft(read_work(state.files, there[-1]).folder, number)

    @override
    def doctor(self, root: str, *, repair: Repairs) -> Iterable[tuple[str, Problem]]:
        return [*mend(Path(root), repair), *lost(Path(root))]

    @override
    def changes_code(self, state: State | None) -> bool:
        """Phases before the implementation leave documents only."""
        return state is None or state.reaches(IMPLEMENT)

    @override
    def brings(self, state: State | None, given: Given, look: RepoReader) -> Iterable[Brought]:
        """What a session's own files say is to be run is no more trusted than they are."""
        if given.checks or not self.changes_code(state):
            return
        found = brought_tests(look, state.branch if state is not None else "")
        yield from found
        known = {one.text.partition("\n")[0] for one in found}
        works = [read_work(state.files, phase) for phase in (IMPLEMENT, VERIFY)] if state is not None else []
        for work in works:
            if work.base is not None and work.base.checks and work.base.checks not in known:
                yield Brought(f"tests recorded for {work.phase}", work.base.checks)

    @override
    def settings(self) -> Mapping[str, object]:
        return {"mode": "standard"}

    @override
    def rules(self) -> Mapping[str, Rule]:
        return {"mode": HARMLESS}

    @override
    def home(self, root: str, *, new: bool) -> str:
        return (place.owner(root) or root) if new else place.home_of_features(root)

    @override
    def start(self, project: Project, options: FeatureOptions) -> Started:
        return start(project, options)

    @override
    def commands(self) -> click.Group:
        from rondel.workflows.feature.commands import command

        return command

    @override
    def summary(self, state: State) -> Summary:
        decision = next((a for a in self.plan(state) if isinstance(a, Decide)), None)
        question = decision.question if decision else None
        done = [p for p in REVIEWED if p in state.completed]
        return Summary(
            title(state.meta, state.ref.id),
            _status(state, question),
            phase=_phase(state),
            done=len(done),
            total=len(REVIEWED),
            waiting_for=question,
            updated_at=_updated(state.meta),
            problems=tuple(_problem(state, a) for a in state.anomalies),
            next=_next(state, decision),
            state=_shown(state),
            foreign=state.foreign,
        )


def _status(state: State, question: str | None) -> Status:
    if state.damaged:
        return Status.DAMAGED
    if state.ended:
        return Status.CANCELLED if state.meta.get("status") == ABANDONED else Status.COMPLETED
    return Status.WAITING if question else Status.ACTIVE


def _next(state: State, decision: Decide | None) -> str:
    if state.ended or state.damaged:
        return ""
    if decision is not None:
        return answering((), state.ref.name, [decision])
    if state.work is not None and state.work.phase in state.partial:
        return command_line("resume", state.ref.name)
    due = state.suggested
    return command_line("feature", due, state.ref.id, *(("--continue",) if due in state.partial else ()))


def _phase(state: State) -> str:
    if state.ended:
        return word(state.meta, "status") if state.meta.get("status") == ABANDONED else FINISH
    return state.due or FINISH


def _updated(meta: Mapping[str, object]) -> datetime | None:
    times = [meta.get("created"), meta.get("completed")]
    for record in records(meta).values():
        times += [stamped(record, "started"), stamped(record, "completed")]
    return max((at for at in map(parse_time, times) if at), default=None)


def _problem(state: State, anomaly: Anomaly) -> Problem:
    repair = REPAIRS.get(anomaly.rule, BY_HAND)
    if anomaly.rule == "invalid-json" and without_stray_brace(state.files.data(layout.META) or b""):
        repair = "one brace is too many: `rondel doctor --repair` takes it away"
    return Problem(anomaly.rule, layout.META, anomaly.message, repair)


def _shown(state: State) -> dict[str, object]:
    """The document itself, and what follows from it."""
    return {
        **state.meta,
        "currentPhase": state.current,
        "next": None if state.ended else state.due,
        "notMadeByRondel": list(state.foreign),
        "partial": [p for p in (*REVIEWED, FINISH) if p in state.partial],
        "limit": state.limit,
        "artifacts": state.artifacts,
        "tasks": _tasks(state),
    }


def _tasks(state: State) -> dict[str, int]:
    if IMPLEMENT not in records(state.meta):
        return {}
    work = read_work(state.files, IMPLEMENT)
    return {"done": len(work.tasks) - len(work.open_tasks), "total": len(work.tasks)}


def conclusion(state: State) -> Conclusion:
    """What became of the phases of the last request; concerns and what others did are no approval."""
    if state.request is None:
        return Conclusion()
    done = [p for p in REVIEWED if p in state.completed and _asked_for(state, state.request, p)]
    concerns = {p: found for p in done if (found := notes(records(state.meta)[p]))}
    foreign = [p for p in done if p in state.foreign]
    return Conclusion(
        approved=not concerns and not foreign if done else None,
        lines=tuple(_line(state, p) for p in done),
        fields={
            "completed": done,
            "not_made_by_rondel": foreign,
            "concerns": {p: list(found) for p, found in concerns.items()},
        },
    )


def _asked_for(state: State, request: Request, phase: str) -> bool:
    """Whether a completed phase is what the request came to."""
    if request.phase:
        return phase == request.phase
    if request.before is not None:
        return phase not in request.before
    take = read_work(state.files, phase).take  # a request of the version before does not say
    return take is not None and take.request == request.number


def _line(state: State, phase: str) -> str:
    message = state.files.text(layout.complete(read_work(state.files, phase).folder)) or "Phase complete"
    return f"{phase}: {message.strip()}{made_by(state, phase)}"


def made_by(state: State, phase: str) -> str:
    """Who did a completed phase, where that was not Rondel."""
    return ", not made by Rondel" if phase in state.foreign else ""
