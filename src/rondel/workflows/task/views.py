"""Views: when the generated documents are drawn again, and how."""

from __future__ import annotations

from rondel.model.changes import Change, Document, Edit, text
from rondel.model.digests import digest
from rondel.workflows.task import documents, layout
from rondel.workflows.task.state import Phase, State

OFTEN = 100  # a session of more tasks draws its list once for each such part of it


def is_drawn(state: State) -> bool:
    """Whether the documents show what the task files say."""
    todo, plan = _texts(state)
    shown = (state.views.todo, state.views.plan) == (digest(todo), digest(plan))
    return shown and not session_differs(state)


def due_now(state: State) -> bool:
    """Whether a task that ends is the moment to draw; a large session does not draw for each one."""
    total = len(state.graph.leaves)
    every = max(1, total // OFTEN)
    return state.front.completed % every == 0 or total - state.front.completed <= OFTEN // 4


def _texts(state: State) -> tuple[str, str]:
    topic, complexity = state.session.project, state.session.complexity
    key = f"{complexity} {topic}"
    if key not in state.texts:
        state.texts[key] = documents.plan(topic, complexity, state.tasks, state.graph)
    return documents.todo_list(topic, state.tasks, state.graph, state.summaries), state.texts[key]


def draw(state: State) -> list[Change]:
    """The changes that make the documents show what the task files say."""
    todo, plan = _texts(state)
    wanted = [(layout.TODO, todo, state.views.todo), (layout.PLAN, plan, state.views.plan)]
    changes: list[Change] = [text(path, new, view=True) for path, new, old in wanted if digest(new) != old]
    if session_differs(state):
        changes.append(Edit(layout.SESSION, lambda body: with_progress(body, state)))
    return changes


def session_differs(state: State) -> bool:
    """Whether the session's document does not show its phase, size and current tasks."""
    info = state.session
    return info.readable and (
        info.phase != state.phase
        or info.completed_phases != completed_phases(state.phase)
        or info.current_tasks != current_tasks(state)
        or info.stored_complexity is not info.complexity
    )


def completed_phases(phase: Phase) -> tuple[str, ...]:
    """The phases before this one."""
    order = list(Phase)
    return tuple(str(p) for p in order[: order.index(phase)])


def current_tasks(state: State) -> tuple[str, ...]:
    """The tasks that are worked on."""
    return tuple(leaf for _, _, leaf in state.front.active)


def with_progress(body: Document, state: State) -> Document:
    """The session's document with its phase, size and progress, and everything else as it was."""
    progress = body.get("progress")
    body["type"] = str(state.session.complexity)
    body["current_phase"] = str(state.phase)
    body["progress"] = {
        **(progress if isinstance(progress, dict) else {}),
        "completed_phases": list(completed_phases(state.phase)),
        "current_tasks": list(current_tasks(state)),
    }
    return body
