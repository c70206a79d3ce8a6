"""`session.json` as it is read and changed: a change touches one cycle, and what follows from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from pydantic import ValidationError

from rondel.errors import UsageError
from rondel.model.changes import Document, Edit
from rondel.model.digests import digest
from rondel.model.summary import Problem
from rondel.model.times import stamp
from rondel.workflows.generate.cycles import dependants, validate_cycles
from rondel.workflows.generate.layout import SESSION
from rondel.workflows.generate.models import (
    FINAL,
    Artifact,
    CycleConfig,
    CycleState,
    WorkflowPhase,
    WorkflowState,
    WorkflowStatus,
)

Change = Callable[[CycleState], None]
DAMAGED = "mend it by hand; nothing in it was changed"


def parse(document: object) -> tuple[WorkflowState | None, Problem | None]:
    """The session a document describes, or what is wrong with it."""
    try:
        return WorkflowState.model_validate(document), None
    except ValidationError as e:
        return None, invalid(e)


def invalid(error: ValidationError) -> Problem:
    """The first thing that is wrong with a document."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return Problem("session-invalid", SESSION, f"{where or 'it'}: {first['msg']}", DAMAGED)


def wrong_cycles(state: WorkflowState) -> str:
    """Why the cycles of a document are none that a profile may declare; empty when they are."""
    try:
        validate_cycles([CycleConfig(c.type, c.scope, c.depends_on) for c in state.cycles])
    except UsageError as e:
        return str(e)
    return ""


def edit_cycle(index: int, position: tuple[object, ...], change: Change, at: datetime) -> Edit:
    """Change one cycle where it still stands at `position`; else leave the document as it is."""

    def edit(document: Document) -> Document:
        state, _ = parse(document)
        if state is None or index >= len(state.cycles) or state.cycles[index].position != position:
            return document
        before = state.cycles[index].outputs_hash
        cycle = state.cycles[index].model_copy(deep=True)
        change(cycle)
        state.cycles[index] = cycle
        if cycle.status is WorkflowStatus.COMPLETED and before not in (None, cycle.outputs_hash):
            mark_stale(state, cycle.type)
        return dumped(document, state, at)

    return Edit(SESSION, edit)


def edit_session(change: Callable[[WorkflowState], None], at: datetime) -> Edit:
    """Change the session as a person asked."""

    def edit(document: Document) -> Document:
        state, _ = parse(document)
        if state is None:
            return document
        change(state)
        return dumped(document, state, at)

    return Edit(SESSION, edit)


def dumped(document: Document, state: WorkflowState, at: datetime) -> Document:
    """The document with the state in it: which cycle is due follows from the cycles."""
    open_ = [n for n, c in enumerate(state.cycles) if c.status not in FINAL]
    state.current_cycle_index = open_[0] if open_ else len(state.cycles) - 1
    state.updated_at = stamp(at)
    return {**document, **state.model_dump(mode="json")}


def mark_stale(state: WorkflowState, name: str) -> None:
    """Mark what was begun on a cycle's old outputs; nothing of it is redone unasked."""
    names = dependants(state.cycles, name)
    for cycle in state.cycles:
        if cycle.type in names and cycle.iterations and cycle.status is not WorkflowStatus.SKIPPED:
            cycle.stale = True


def newest(artifacts: Iterable[Artifact]) -> dict[str, Artifact]:
    """The newest version of each generated file, by its path in `code/`.

    Where the code was generated anew, what was there before does not count any more; a
    revision replaces only the files it gives.
    """
    found = list(artifacts)
    begins = max((a.iteration for a in found if a.phase == WorkflowPhase.GENERATE), default=0)
    out: dict[str, Artifact] = {}
    for artifact in sorted(found, key=lambda a: a.iteration):
        if artifact.iteration >= begins:
            out[artifact.path.partition("/code/")[2] or artifact.path.removeprefix("code/")] = artifact
    return dict(sorted(out.items()))


def outputs_hash(artifacts: Iterable[Artifact]) -> str:
    """One digest of everything a cycle gives to others."""
    return digest("\n".join(f"{a.sha256} {name}" for name, a in newest(artifacts).items()))
