"""A session in short: what `rondel status` says of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from rondel.model.actions import Decide
from rondel.model.marks import FOREIGN
from rondel.model.summary import OWN_WORDS, Problem, Status, Summary, answering, command_line
from rondel.workflows.task import ids, layout
from rondel.workflows.task.graph import can_still_run, derived_status
from rondel.workflows.task.proposing import proposing
from rondel.workflows.task.schema import Task, TaskStatus
from rondel.workflows.task.state import Claim, SessionStatus, State
from rondel.workflows.task.steps import questions

NAMED_MAX = 5


def summary(state: State) -> Summary:
    """The session in short."""
    open_ = list(questions(state)) if _runs(state) else []
    question = open_[0].question if open_ else None
    status, why = _status(state, question)
    changed = state.files.mtime(layout.SESSION)
    return Summary(
        title=state.session.project,
        status=status,
        phase=str(state.phase),
        done=state.frontier.completed,
        total=len(state.graph.leaves),
        waiting_for=question or why,
        updated_at=datetime.fromtimestamp(changed, UTC) if changed else None,
        problems=tuple(problems(state)),
        next=_next(state, open_),
        state=_document(state),
    )


def _runs(state: State) -> bool:
    return state.session.status is not SessionStatus.COMPLETED and state.request.kind == "run"


def _status(state: State, question: str | None) -> tuple[Status, str | None]:
    """The status, and what is wrong when something is."""
    if state.session.status is SessionStatus.COMPLETED:
        return Status.COMPLETED, None
    if not state.session.readable:
        return Status.DAMAGED, None
    if question:
        return Status.WAITING, None
    stands = _runs(state) and not _can_go_on(state)
    if stands and (stuck := stuck_leaves(state)):
        named = ", ".join(stuck[:NAMED_MAX]) + (" …" if len(stuck) > NAMED_MAX else "")
        return Status.FAILED, f"nothing more can run: {named}"
    if stands and (waits := waiting_leaves(state)):
        named = "; ".join(f"{t} waits for {', '.join(before)}" for t, before in waits.items())
        return Status.WAITING, f"{named}, and this run was not asked to do that"
    return (Status.ACTIVE if state.is_marked else Status.PAUSED), None


def _can_go_on(state: State) -> bool:
    leaves = [leaf for _, _, leaf in (*state.frontier.active, *state.frontier.ready)]
    return any(t not in state.unusable and state.selected(t) for t in leaves)


def stuck_leaves(state: State) -> list[str]:
    """The leaves that stand still until somebody helps, each with its reason."""
    found = []
    for leaf in state.graph.leaves:
        if not state.selected(leaf):
            continue
        task = state.tasks[leaf]
        if task.status is TaskStatus.BLOCKED:
            found.append(f"{leaf} is blocked ({task.error or 'no reason is recorded'})")
        elif task.status is not TaskStatus.COMPLETED and leaf in state.unusable:
            found.append(f"{leaf} cannot run ({state.unusable[leaf]})")
        elif task.status is TaskStatus.PENDING and not can_still_run(state.graph, state.tasks, leaf):
            found.append(f"{leaf} waits for {', '.join(_before(state, leaf)) or 'a task that is not there'}")
    return found + [f"{file} cannot be read" for t, file in state.unread.items() if state.selected(t)]


def waiting_leaves(state: State) -> dict[str, list[str]]:
    """The leaves that were asked for and wait for others, which were not; each with those others."""
    found = {
        leaf: [t for t in _before(state, leaf) if not state.selected(t)]
        for leaf in state.graph.leaves
        if state.tasks[leaf].status is TaskStatus.PENDING and state.selected(leaf)
    }
    return {leaf: before for leaf, before in found.items() if before}


def _before(state: State, leaf: str) -> list[str]:
    """Every leaf that is not completed and has to be before this one."""
    found: set[str] = set()
    left = [leaf]
    while left:
        needed = state.graph.needs[left.pop()] - found
        opened = [t for t in needed if state.tasks[t].status is not TaskStatus.COMPLETED]
        found.update(opened)
        left += opened
    return sorted(found - {leaf}, key=ids.order)


def _next(state: State, open_: Sequence[Decide]) -> str:
    if state.session.status is SessionStatus.COMPLETED:
        return ""
    if open_ and open_[0].path == layout.ALLOW:
        return command_line("task", "allow")
    if open_:
        return answering((), state.ref.name, open_)
    if not state.is_marked:
        return command_line("task", "resume", state.ref.id)
    if proposing(state) is not None:
        return command_line("resume", state.ref.name)
    if not state.names:
        return command_line("task", "plan", OWN_WORDS)
    if state.all_completed:
        return command_line("task", "complete")
    return _next_run(state)


def _next_run(state: State) -> str:
    """How the tasks go on, where some are open: all of them, or those that run only when they are named."""
    blocked = [t for t in state.graph.leaves if state.tasks[t].status is TaskStatus.BLOCKED]
    waits = waiting_leaves(state) if _runs(state) else {}
    if _can_go_on(state):
        return command_line("task", "run")
    if blocked or not (waits or state.unread):
        return command_line("task", "run", *blocked)
    if not waits:
        return command_line("doctor")
    named = {*waits, *(t for before in waits.values() for t in before)}
    return command_line("task", "run", *sorted(named, key=ids.order))


def problems(state: State) -> Iterable[Problem]:
    """Everything that the files show and should not."""
    for task_id, file in state.unread.items():
        words = f"{file} cannot be read: it is not a JSON object"
        same_id = ("--id", task_id) if ids.is_well_formed(task_id) else ()
        add = command_line("task", "add", OWN_WORDS, *same_id)
        repair = (
            "put back what `git log -- .workflow` or an editor has of it, or remove it and add the task "
            f"again: `{add}`"
        )
        yield Problem("task-unreadable", file, words, repair)
    yield from _of_session(state)
    yield from _not_taken(state)
    for task_id in state.claimed(Claim.FOREIGN):
        yield _foreign(state.tasks[task_id])
    for one in state.violations:
        yield Problem(one.rule, one.file, one.message)
    for task in state.tasks.values():
        yield from _of_task(state, task)


def _not_taken(state: State) -> Iterable[Problem]:
    """Answers that a person wrote for a plan, when something else had been asked for since."""
    asked = layout.proposal_file(state.request.number, state.request.kind, state.request.task_id)
    for name in sorted(state.files.names(layout.MANUAL)):
        stem = name.removesuffix(layout.RESPONSE).removeprefix("proposals.")
        if not name.startswith("proposals.") or not name.endswith(layout.RESPONSE):
            continue
        if stem not in state.proposals and not asked.endswith(f"/{stem}"):
            words = "this answer was not taken: something else was asked for before it was there"
            anew = command_line("task", "plan", OWN_WORDS)
            repair = f"`{anew}` asks again and names the file for it; remove this one when you do not need it"
            yield Problem("answer-not-taken", f"{layout.MANUAL}/{name}", words, repair, loud=True)


def _of_session(state: State) -> Iterable[Problem]:
    if state.session.problem:
        repair = "" if state.session.readable else "`rondel doctor --repair` writes it anew"
        yield Problem("session-file", layout.SESSION, state.session.problem, repair)
    if state.session.foreign:
        words = f"{layout.SESSION} says completed, and nobody ended the session; it goes on as it was"
        yield Problem(FOREIGN, layout.SESSION, words, "`rondel task complete` ends it", loud=True)
    if state.markers > 1 and state.is_marked:
        words = f"{state.markers} sessions have a marker; of yours the newest counts"
        yield Problem(
            "several-markers", layout.marker(state.ref.id), words, "`rondel doctor --repair` keeps it"
        )


def _of_task(state: State, task: Task) -> Iterable[Problem]:
    for note in task.notes:
        if note.rule == "shape":
            yield Problem(note.rule, task.file, note.message)
    is_leaf = task.id in state.graph.needs
    if task.status is TaskStatus.COMPLETED and is_leaf and state.summary_of(task.id) is None:
        words = f"{task.id} is completed, and there is no {layout.summary_file(task.id)}"
        yield Problem("summary-missing", task.file, words, "write it, or run the task again by its id")
    if task.status is TaskStatus.CONTAINER and task.id not in state.graph.children:
        yield Problem("hierarchy", task.file, f"{task.id} is a container without subtasks", "break it down")
    elif task.status is not TaskStatus.CONTAINER and task.id in state.graph.children:
        words = f"{task.id} has subtasks and is not a container"
        yield Problem("hierarchy", task.file, words, "`rondel doctor --repair` makes it one")


def _foreign(task: Task) -> Problem:
    words = f"{task.id} says completed, and Rondel did not complete it; it counts as pending"
    repair = f"`rondel task run` does it; if it is done, `rondel task complete {task.id} --reason WHY`"
    return Problem(FOREIGN, task.file, words, repair, loud=True)


def _document(state: State) -> dict[str, object]:
    """The session's document after reconciliation, and what is derived."""
    info = state.session
    return {
        "session_id": state.ref.id,
        "project": info.project,
        "type": str(info.complexity),
        "current_phase": str(state.phase),
        "status": str(state.status),
        "progress": {
            "completed_phases": list(info.completed_phases),
            "current_tasks": [leaf for _, _, leaf in state.frontier.active],
        },
        "active": state.is_marked,
        "tasks": [
            {
                "id": t,
                "title": state.tasks[t].title,
                "status": str(derived_status(state.graph, state.tasks, t)),
                "depends_on": list(state.tasks[t].depends_on),
                "error": state.tasks[t].error or None,
                "completed_elsewhere": state.claims.get(t) is Claim.FOREIGN,
            }
            for t in state.graph.order
        ],
    }
