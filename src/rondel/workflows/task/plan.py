"""Planning: everything that is due now, the longest chain first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rondel.model.actions import Access, Action, Ask, Decide, Derive, Workspace
from rondel.workflows.task import flow, layout, trust
from rondel.workflows.task.focus import Occupied
from rondel.workflows.task.schema import Task
from rondel.workflows.task.state import NO_WORK, Claim, SessionStatus, State
from rondel.workflows.task.views import is_drawn

NAMED_MAX = 5  # commands that one question names
LINE_MAX = 120
KINDS = ("plan", "breakdown", "replan")


def plan(state: State) -> Iterator[Action]:
    """What is due. Whatever ends may be the moment to draw the documents again."""
    for action in _due_now(state):
        if isinstance(action, Decide):
            yield action
        else:
            yield replace(action, outputs=(*action.outputs, layout.TODO, layout.PLAN))


def _due_now(state: State) -> Iterator[Action]:
    if state.session.status is not SessionStatus.COMPLETED:
        yield from proposing(state)
        if state.request.kind == "run":
            yield from _work(state)
    if not is_drawn(state):
        yield Derive(layout.TODO, title="generated documents")


def proposing(state: State) -> Iterator[Action]:
    """The proposal that was asked for last, while it is not there."""
    request = state.request
    if request.kind not in KINDS:
        return
    path = layout.proposal_file(request.number, request.kind, request.task_id)
    if path.rpartition("/")[2] not in state.proposals:
        space = Workspace(Access.READ, base=request.base) if request.base else Workspace()
        title = f"{request.kind} {request.task_id}".strip()
        yield Ask(path, "task.planner", workspace=space, title=title)


def _work(state: State) -> Iterator[Action]:
    """The due actions of each leaf that may be worked on now.

    Leaves under way come first. A leaf that is ready waits while another one works in the
    same places.
    """
    for leaf in state.claimed(Claim.SUMMARY):
        yield Derive(layout.task_file(leaf), title=f"{leaf} has a summary")
    for leaf in state.claimed(Claim.SET_BACK):
        if state.selected(leaf):
            yield Derive(layout.task_file(leaf), title=f"{leaf} is to be done again")
    occupied = Occupied()
    for _, _, leaf in state.front.active:
        if _is_settled_first(state, leaf) or not state.selected(leaf):
            continue
        action = _due(state, state.tasks[leaf])
        if action is not None and not isinstance(action, Decide):
            occupied.take(state.tasks[leaf].focus_paths)
            yield action
    for _, _, leaf in state.front.ready:
        task = state.tasks[leaf]
        if _is_settled_first(state, leaf) or not state.selected(leaf) or occupied.overlaps(task.focus_paths):
            continue
        action = _due(state, task)
        if action is not None and not isinstance(action, Decide):
            occupied.take(task.focus_paths)
            yield action
    yield from questions(state)


def _is_settled_first(state: State, leaf: str) -> bool:
    """Whether something must be written down before it is known what is due of a leaf."""
    return state.claims.get(leaf) in (Claim.SUMMARY, Claim.SET_BACK)


def questions(state: State) -> Iterator[Decide]:
    """What only a person can say: how a failed step goes on, and which commands may run."""
    for task in _with_steps(state):
        action = _due(state, task) if not _is_settled_first(state, task.id) else None
        if isinstance(action, Decide):
            yield action
    waits = commands_waiting(state)
    if waits:
        words = "; ".join(f"{w.task_id} step {w.step}: {_short(w.command)}" for w in waits[:NAMED_MAX])
        more = f" and {len(waits) - NAMED_MAX} more" if len(waits) > NAMED_MAX else ""
        yield Decide(layout.ALLOW, f"not yet allowed: {words}{more}; `rondel task allow` asks", ("allow",))


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= LINE_MAX else f"{line[: LINE_MAX - 1]}…"


def _due(state: State, task: Task) -> Action | None:
    """The next action of a leaf; None when it cannot go on by itself."""
    if task.id in state.unusable or trust.waiting(task, state.allowed):
        return None
    due = flow.next_step(state, task)
    return due if due is not None else _ask(state, task)


def _ask(state: State, task: Task) -> Ask:
    work = state.work.get(task.id, NO_WORK)
    path = layout.work_file(task.id, work.number)
    summary = layout.summary_file(task.id)
    return Ask(
        path,
        f"task.{task.agent}",
        workspace=flow.workspace(state, task),
        outputs=() if path == summary else (summary,),
        title=f"{task.id}: {task.title}",
    )


def commands_waiting(state: State) -> list[trust.Waiting]:
    """The commands that a person must allow before the leaves that are due can run."""
    return trust.waiting_in([t for t in _with_steps(state) if t.id not in state.unusable], state.allowed)


def _with_steps(state: State) -> list[Task]:
    """The leaves with steps that a person asked for and that are under way or ready."""
    if not state.has_steps:
        return []
    leaves = (state.tasks[leaf] for _, _, leaf in (*state.front.active, *state.front.ready))
    return [task for task in leaves if task.steps and state.selected(task.id)]
