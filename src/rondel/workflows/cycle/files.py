"""The cycle's functions that touch files or the clock."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rondel.errors import RondelError, UsageError
from rondel.model.changes import Change, Edit, Write, json_file, touched_by
from rondel.model.names import digest, safe_name
from rondel.model.refs import is_branch
from rondel.model.summary import Problem
from rondel.model.times import offset
from rondel.model.workflow import Claim, Repairs, SessionRef, Started, unclaimed
from rondel.store import files as store
from rondel.store.changes import apply_in
from rondel.store.snapshot import DiskSnapshot
from rondel.workflows.cycle import layout, transitions
from rondel.workflows.cycle.documents import at_time
from rondel.workflows.cycle.layout import bump
from rondel.workflows.cycle.models import ITERATIONS_MAX, CycleState
from rondel.workflows.cycle.read import read
from rondel.workflows.cycle.rebuild import restore
from rondel.workflows.cycle.requests import CURRENT, EXTENSIONS, SETTINGS
from rondel.workflows.cycle.state import State

if TYPE_CHECKING:
    from rondel.project import Project

UTC_OFFSET_H = 8.0
TRIES = 20
SAID = ("max_iterations", "auto", "branch", "agents_max")  # of a start, over the settings
SIGNALS = {"paused": (False, "pause"), "failed": (False, "stop"), "running": (True, "continue")}


def new_cycle(
    description: str,
    *,
    title: str | None = None,
    max_iterations: int = ITERATIONS_MAX,
    utc_offset_h: float = UTC_OFFSET_H,
) -> CycleState:
    """The state of a new cycle, with an id of its own. Nothing is written."""
    words = _said(description)
    if max_iterations < 1:
        raise UsageError(f"max_iterations = {max_iterations} is not allowed; at least 1 iteration is needed")
    at = _now(utc_offset_h)
    document = transitions.initial(_cycle_id(at), words, title, max_iterations, at_time(at, at.tzinfo or UTC))
    return CycleState.model_validate(document)


def extend(state: CycleState, text: str) -> CycleState:
    """The state with the next iteration open for what the user adds; the one given stays as it is.

    The text goes into the task history, into the description under the marker of that
    iteration and to the requirements analyst as feedback; the requirements get their next
    minor version; the limit is raised where no iteration is left.
    """
    words = _said(text)
    document: dict[str, Any] = state.document()
    at = at_time(_now(UTC_OFFSET_H), offset(UTC_OFFSET_H))
    transitions.open_iteration(state.current_iteration + 1, at, [words])(document)
    document["updated_at"] = at
    requirements = document.get("requirements")
    if requirements:
        requirements["version"] = bump(requirements.get("version"))
    return CycleState.model_validate(document)


def check_control_signals(cycle_id: str, root: str | Path = ".") -> dict[str, object]:
    """Whether an agent of this cycle may go on: `{"continue": bool, "action": str}`, read fresh."""
    state = load(cycle_id, root)
    status = state.cycle.status.value if state.cycle else ""
    goes_on, action = SIGNALS.get(status, (False, "unknown"))
    return {"continue": goes_on, "action": action}


def rebuild_state(cycle_id: str, root: str | Path = ".") -> CycleState:
    """The state last committed, restored from the progress files where the state file is damaged.

    The damaged file is kept in the cycle's `coordination/`.
    """
    state = load(cycle_id, root)
    if state.cycle is None:
        there = ", ".join(ref.id for ref in layout.sessions(DiskSnapshot(Path(root)))) or "none"
        why = "; ".join(p.message for p in state.problems)
        raise RondelError(f"the state of cycle {cycle_id!r} cannot be rebuilt: {why}; there are: {there}")
    apply_in(Path(root), layout.ref(cycle_id), restore(state))
    return state.cycle


def repaired(root: str | Path, *, repair: Repairs) -> Iterator[tuple[str, Problem]]:
    """The cycles whose state file was damaged and is restored, each with its name."""
    for ref in layout.sessions(DiskSnapshot(Path(root))):
        state = load(ref.id, root)
        for problem in state.problems:
            if problem.rule == "state-damaged" and repair(ref.name, *touched_by(restore(state))):
                rebuild_state(ref.id, root)
                yield ref.name, replace(problem, repaired=True)


def load(cycle_id: str, root: str | Path = ".") -> State:
    """What the files of a cycle show now."""
    ref = layout.ref(safe_name(cycle_id, "the cycle id"))
    return read(DiskSnapshot(Path(root, ref.folder), ref.beside), cycle_id)


@dataclass(frozen=True)
class CycleOptions:
    """What a person or a program may say of a new cycle."""

    description: str
    title: str | None = None  # the first 100 characters of the description where there is none
    max_iterations: int | None = None
    auto: bool = False  # ask nobody: questions get their first option, blockers become issues
    branch: str | None = None  # where the work lands; a branch of its own where none is said
    agents_max: int | None = None


def start(project: Project, options: CycleOptions) -> Started:
    """A new cycle, with the settings of now and what is said here."""
    settings = project.settings("cycle")
    if not project.look.git("rev-parse", "--verify", "--quiet", "HEAD^{commit}", check=False).strip():
        raise UsageError("the repository has no commit yet; commit something first")
    if options.branch and not is_branch(options.branch):
        raise UsageError(
            f"--branch {options.branch!r} is no name that git allows for a branch; choose another"
        )
    said = {key: value for key in SAID if (value := getattr(options, key))}
    ref = create(
        project.root,
        options.description,
        title=options.title,
        settings={**settings, **said},
        claim=project.claim,
    )
    project.begin(ref, new=True)
    return Started(ref)


def create(
    root: Path,
    description: str,
    *,
    title: str | None,
    settings: Mapping[str, object],
    claim: Claim = unclaimed,
) -> SessionRef:
    """A new cycle on disk: what was asked first, then its state."""
    hours, limit = settings.get("utc_offset_h"), settings.get("max_iterations")
    utc_offset_h = float(hours) if isinstance(hours, int | float) else UTC_OFFSET_H
    state = new_cycle(
        description,
        title=title,
        max_iterations=limit if isinstance(limit, int) else ITERATIONS_MAX,
        utc_offset_h=utc_offset_h,
    )
    names = [state.cycle_id, *(_cycle_id(_now(utc_offset_h)) for _ in range(TRIES))]
    home = store.safe_join(root, layout.HOME)
    folder = store.claim_folder(home, (f"{name}{layout.PROGRESS}" for name in names))
    state.cycle_id = folder.name.removesuffix(layout.PROGRESS)
    ref = layout.ref(state.cycle_id)
    asked = {
        "schema_version": 1,
        "kind": "start",
        **{key: settings[key] for key in (*SETTINGS, "agents_max") if key in settings and key not in CURRENT},
        "description": state.description,
        **({"title": title} if title else {}),
        "created_at": state.created_at,
    }
    document = state.document()
    path = layout.state_file(state.cycle_id)
    changes: list[Change] = [
        json_file(".rondel/request-1.json", asked),
        Edit(path, lambda there: there or document, log=layout.LOG),
    ]
    with store.whole_or_gone(folder):
        claim(ref)
        apply_in(root, ref, changes)
    return ref


def added(text: str, at: datetime, max_iterations: int | None = None) -> Write:
    """What a person adds to the task, in a file of its own: two who say something at once lose nothing."""
    words = _said(text)
    moment = at.astimezone(UTC).strftime("%Y%m%dT%H%M%S%f")
    name = f"{moment}-{digest(words + secrets.token_hex(4))[:8]}.json"
    body = {"text": words, "at": at.isoformat()} | (
        {"max_iterations": max_iterations} if max_iterations else {}
    )
    return json_file(f"{EXTENSIONS}/{name}", body)


def _said(text: str) -> str:
    if not text.strip():
        raise UsageError("the text is empty; say what is to be done")
    return text.strip()


def _cycle_id(at: datetime) -> str:
    return f"cycle-v1-{at:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"


def _now(hours: float) -> datetime:
    return datetime.now(offset(hours))
