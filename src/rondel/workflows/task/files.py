"""Files: what a person does to sessions and tasks. The one module that writes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rondel import paths
from rondel.errors import DamagedFile, Held, RondelError, UsageError
from rondel.model.changes import Aside, Change, Document, Edit, Write, json_file
from rondel.model.marks import signature
from rondel.model.names import slug
from rondel.model.summary import Problem, command_line
from rondel.model.times import stamp
from rondel.model.workflow import Apply, Claim, Repairs, SessionRef, Started, unclaimed
from rondel.store import disk, documents, files, ours
from rondel.store.changes import apply_in, remove_cut_off, write_ours
from rondel.store.snapshot import DiskSnapshot
from rondel.workflows.task import documents as views
from rondel.workflows.task import ids, layout
from rondel.workflows.task import read as reading
from rondel.workflows.task.schema import TaskStatus, new_task, with_status
from rondel.workflows.task.state import Complexity, Phase, SessionStatus, State
from rondel.workflows.task.validate import path_problem

if TYPE_CHECKING:
    from rondel.project import Project

TRIES = 100  # how often a race for a name is tried again
Changing = Callable[[Document], Document]


# -- sessions ---------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskOptions:
    """What a person or a program may say of a new session."""

    topic: str
    complexity: Complexity = Complexity.SIMPLE  # at least this


def start(project: Project, options: TaskOptions) -> Started:
    """A new session, which becomes the active one."""
    with others_at_rest(project):
        ref = create(
            project.root,
            options.topic,
            options.complexity,
            project.claim,
            project.is_known,
            project.change,
            project.is_recorded,
        )
    project.begin(ref, new=True)
    return Started(ref)


@contextmanager
def others_at_rest(project: Project, ref: SessionRef | None = None) -> Iterator[None]:
    """Nobody works on the active session while another one takes its place.

    There is one active session: whatever makes another one that pauses it. A run of it would
    come to its end as paused, without a word of why; so it is refused, as by any other command.
    """
    current_id = active(project.root, project.is_recorded)
    current = next((r for r in project.sessions("task") if r.id == current_id), None)
    is_at_rest = current is None or current == ref or not project.is_known(current)
    if is_at_rest or current is None or not paths.is_folder(project.runtime(current)):
        yield
        return
    try:
        lease = project.hold(current)
    except Held as e:
        stop = command_line("stop", current.name)
        raise Held(f"{e}. Another active session would pause it; wait for its end, or `{stop}`") from None
    with lease:
        yield


def create(
    root: Path,
    topic: str,
    complexity: Complexity = Complexity.SIMPLE,
    claim: Claim = unclaimed,
    is_known: Callable[[SessionRef], bool] = lambda _: True,
    apply: Apply | None = None,
    is_begun: Callable[[SessionRef], bool] = lambda _: False,
) -> SessionRef:
    """A new session, which becomes the active one. Its name has a number only when another has it.

    What is left of one that `is_begun` here, and was killed before it was there, goes.
    """
    topic = " ".join(topic.split())
    if not topic:
        raise UsageError('a session needs a topic: rondel task start "User auth"')
    name = f"{layout.PREFIX}{slug(topic)}"
    names = [name, *(f"{name}-{n:03d}" for n in range(2, 1000))]
    home = root / layout.HOME
    files.make_folder(home)
    with documents.locked(home):
        there = {ref.id for ref in reading.sessions(DiskSnapshot(root))}
        for left in names:
            if left not in there and is_begun(reading.ref_of(left)):
                remove_cut_off(home / left)
            if not paths.is_there(home / left):
                claim(reading.ref_of(left))  # before there is a folder: one that a kill leaves is known by it
                break
        folder = files.claim_folder(home, names)
        with files.whole_or_gone(folder):
            ours.keep_out_of_git(folder / ours.HOME)
            files.make_folder(folder / layout.TASKS)
            write_ours(folder, views.of_nothing(topic, complexity))
            begins = Edit(layout.SESSION, lambda _: template(folder.name, topic, complexity))
            apply_in(root, reading.ref_of(folder.name), [begins])
    switch(root, folder.name, is_known, apply)
    return reading.ref_of(folder.name)


def template(session_id: str, topic: str, complexity: Complexity = Complexity.SIMPLE) -> Document:
    """The document of a session that has just begun."""
    return {
        "session_id": session_id,
        "project": topic,
        "type": str(complexity),
        "current_phase": str(Phase.PLAN),
        "status": str(SessionStatus.ACTIVE),
        "progress": {"completed_phases": [], "current_tasks": []},
    }


def markers(root: Path) -> list[str]:
    """The sessions that have a marker, the newest first."""
    found = []
    home = root / layout.HOME
    for name in paths.names(home):
        if not name.startswith(layout.MARKER):
            continue
        try:
            found.append((paths.look(home / name).st_mtime_ns, name.removeprefix(layout.MARKER)))
        except FileNotFoundError:
            continue
    return [name for _, name in sorted(found, reverse=True)]


def active(root: Path, is_known: Callable[[SessionRef], bool] = lambda _: True) -> str | None:
    """The active session: of those with a marker that counts and a folder the newest."""
    there = [n for n in markers(root) if paths.is_folder(root / layout.HOME / n)]
    return next(iter(reading.counting(there, is_known)), None)


def switch(
    root: Path,
    session_id: str,
    is_known: Callable[[SessionRef], bool] = lambda _: True,
    apply: Apply | None = None,
) -> str | None:
    """Make a session the active one; returns the one that was.

    One rename: at no moment is there none, or two. In one that is not known nothing is written: that
    it is not the active one any more is said by the marker.
    """
    home = root / layout.HOME
    if not paths.is_folder(home / session_id):
        there = ", ".join(r.id for r in reading.sessions(DiskSnapshot(root))) or "none"
        raise UsageError(f"there is no session {session_id!r}; there are: {there}")
    before = _move_marker(home, session_id, is_known)
    if before is not None and before != session_id and is_known(reading.ref_of(before)):
        _set_status(root, before, SessionStatus.PAUSED, apply)
    _set_status(root, session_id, SessionStatus.ACTIVE, apply)
    return before


def _move_marker(home: Path, session_id: str, is_known: Callable[[SessionRef], bool]) -> str | None:
    """Give the newest marker that counts another name, or make the first one; one mover at a time."""
    new = home / layout.marker(session_id)
    with documents.locked(home):
        old = next(iter(reading.counting(markers(home.parent), is_known)), None)
        if old is None:
            files.write(new, b"")
        elif old != session_id:
            path = home / layout.marker(old)
            paths.touch(path)  # the newest marker counts
            disk.current.rename(os.fspath(path), os.fspath(new))
            disk.current.sync_folder(os.fspath(home))
    return old


def _set_status(root: Path, session_id: str, status: SessionStatus, apply: Apply | None) -> None:
    """Note a status; a completed session stays completed unless it is taken up again."""

    def change(body: Document) -> Document:
        if body and (status is SessionStatus.ACTIVE or body.get("status") != SessionStatus.COMPLETED):
            body["status"] = str(status)
        return body

    over = taken_up(root, session_id) if status is SessionStatus.ACTIVE else []
    try:
        (apply or partial(apply_in, root))(reading.ref_of(session_id), [*over, Edit(layout.SESSION, change)])
    except DamagedFile:
        return  # the marker says what is active; doctor mends the file


def pause(root: Path, session_id: str, apply: Apply | None = None) -> None:
    """A session that is not the active one any more."""
    _remove_marker(root, session_id)
    _set_status(root, session_id, SessionStatus.PAUSED, apply)


def taken_up(root: Path, session_id: str) -> list[Change]:
    """The person's word that a session is over, where there is one, counts no more: it is kept aside."""
    folder = root / layout.HOME / session_id
    if not paths.is_file(folder / layout.ENDED):
        return []
    return [Aside(layout.ENDED, ours.free_spot(folder, layout.ENDED, "replaced"))]


def complete(root: Path, session_id: str, apply: Apply | None = None) -> None:
    """A session is over, by the person's word. What is unfinished stays as it is."""

    def change(body: Document) -> Document:
        body["status"] = str(SessionStatus.COMPLETED)
        return body

    changes: list[Change] = [_end_word(root, session_id), Edit(layout.SESSION, change)]
    (apply or partial(apply_in, root))(reading.ref_of(session_id), changes)
    _remove_marker(root, session_id)


def _end_word(root: Path, session_id: str) -> Write:
    word: Document = {"answer": "complete", "by": "person", "at": stamp(datetime.now(UTC))}
    word["mark"] = signature(DiskSnapshot(root / layout.HOME / session_id), layout.ENDED)
    return json_file(layout.ENDED, word)


def _remove_marker(root: Path, session_id: str) -> None:
    home = root / layout.HOME
    with documents.locked(home):
        if paths.is_there(home / layout.marker(session_id)):
            disk.current.unlink(os.fspath(home / layout.marker(session_id)))
            disk.current.sync_folder(os.fspath(home))


def state_of(root: Path, ref: SessionRef) -> State:
    """What a session's files show."""
    return reading.read(DiskSnapshot(root / ref.folder, ref.beside), ref)


# -- tasks ------------------------------------------------------------------------------


def add(
    root: Path,
    ref: SessionRef,
    title: str,
    *,
    kind: str = "feature",
    agent: str | None = None,
    parent: str | None = None,
    requirements: Sequence[str] = (),
    focus_paths: Sequence[str] = (),
    acceptance: Sequence[str] = (),
    depends_on: Sequence[str] = (),
    apply: Apply | None = None,
    wanted: str | None = None,
) -> str:
    """A new task under the next free id, or the one that is `wanted`; nobody else gets the same one."""
    title = " ".join(title.split())
    state = state_of(root, ref)
    if wanted is not None:
        _check_id(state, wanted, parent)
        parent = ids.parent_of(wanted)
    _check_new(state, title, parent, focus_paths, depends_on)
    taken, write = set(state.names), apply or partial(apply_in, root)
    for _ in range(TRIES):
        task_id = wanted or (ids.next_sub(parent, taken) if parent else ids.next_main(taken))
        body = new_task(
            task_id,
            title,
            kind=kind,
            agent=agent,
            requirements=requirements,
            focus_paths=focus_paths,
            acceptance=acceptance,
            depends_on=depends_on,
        )
        context = body["context"]
        if parent and isinstance(context, dict):
            context["parent"] = parent
        new = _New(body)
        write(ref, [Edit(layout.task_file(task_id), new)])
        if new.made:
            if parent:
                above = state.tasks[parent]
                write(ref, [Edit(above.file, _as_container(above.inner))])
            return task_id
        if wanted is not None:
            raise UsageError(f"there is a task {wanted} already")
        taken.add(task_id)
    raise RondelError(f"no free id among {len(taken)} tasks")


def _check_id(state: State, wanted: str, parent: str | None) -> None:
    if not ids.is_well_formed(wanted):
        raise UsageError(f"--id {wanted!r} is no id of a task; they are IMPL-1, IMPL-2, IMPL-2.1")
    if parent is not None and parent != ids.parent_of(wanted):
        raise UsageError(f"{wanted} is no subtask of {parent}; leave out --parent, the id says it")
    found = ids.finder([*state.tasks, *state.unread])(wanted)
    if found is not None and found in state.unread:
        raise UsageError(f"{state.unread[found]} is there and cannot be read; remove it first")
    if found is not None:
        raise UsageError(f"there is a task {found} already")


def _check_new(
    state: State, title: str, parent: str | None, focus_paths: Sequence[str], depends_on: Sequence[str]
) -> None:
    if not title:
        raise UsageError("a task needs a title")
    there = ", ".join(state.graph.order) or "none"
    for other in (*depends_on, *([parent] if parent else ())):
        if other not in state.tasks:
            raise UsageError(f"there is no task {other!r}; there are: {there}")
    if parent and (parent in state.graph.parent or ids.parent_of(parent)):
        raise UsageError(f"{parent} is a subtask; there are two levels and no third")
    if parent and state.tasks[parent].status in (TaskStatus.COMPLETED, TaskStatus.ACTIVE):
        raise UsageError(f"{parent} is {state.tasks[parent].status}; add a task beside it")
    for path in focus_paths:
        wrong = path_problem(path)
        if wrong:
            raise UsageError(wrong)


@dataclass
class _New:
    """Makes a new document; it is not `made` when there is one already."""

    body: Document
    made: bool = False

    def __call__(self, old: Document) -> Document:
        self.made = not old
        return old or self.body


def _as_container(inner: tuple[str, ...] = ()) -> Changing:
    return lambda body: with_status(body, inner, TaskStatus.CONTAINER)


# -- doctor -----------------------------------------------------------------------------

Fix = Callable[[], None]


@dataclass(frozen=True)
class _Fault:
    """Something that is wrong with a session, the file of it that its repair writes, and the repair."""

    session: str
    problem: Problem
    fix: Fix
    file: str = layout.SESSION
    newer: str = ""  # the session that takes its place: if that is somebody else's, it does not


def doctor(root: str, *, repair: Repairs) -> list[tuple[str, Problem]]:
    """What is wrong with markers, session files and the hierarchy; repaired where `repair` says so."""
    found: list[tuple[str, Problem]] = []
    home = Path(root)
    for fault in [*_markers(home), *_sessions(home)]:
        if done := all(map(repair, filter(None, [fault.newer]))) and repair(fault.session, fault.file):
            fault.fix()
        words = f"{fault.problem.repair}: `rondel doctor --repair` does it"
        found.append((fault.session, replace(fault.problem, repair=words, repaired=done)))
    return found


def _markers(root: Path) -> Iterator[_Fault]:
    """Markers of sessions that are gone, and more than one."""
    alive = []
    for name in markers(root):
        file = f"{layout.HOME}/{layout.marker(name)}"
        if not paths.is_folder(root / layout.HOME / name):
            words = f"the active session {name} is not there"
            problem = Problem("marker-orphaned", file, words, "remove the marker")
            yield _Fault(f"task:{name}", problem, partial(_remove_marker, root, name))
            continue
        alive.append(name)
        if name != alive[0]:
            words = f"{alive[0]} has a newer marker"
            problem = Problem("several-markers", file, words, f"pause {name}")
            fix = partial(pause, root, name)
            yield _Fault(f"task:{name}", problem, fix, newer=f"task:{alive[0]}")


def _sessions(root: Path) -> Iterator[_Fault]:
    for ref in reading.sessions(DiskSnapshot(root)):
        state = state_of(root, ref)
        folder = root / ref.folder
        if not state.session.readable:
            words = f"{layout.SESSION} is missing or damaged"
            problem = Problem("session-file", layout.SESSION, words, "write it anew from what the tasks show")
            yield _Fault(ref.name, problem, partial(_rewrite_session, folder, state))
        for path, words, change in _hierarchy(state):
            problem = Problem("hierarchy", path, words, "mend it")
            yield _Fault(ref.name, problem, partial(_fix, folder, path, change), path)


def _rewrite_session(folder: Path, state: State) -> None:
    _keep(folder, layout.SESSION, move=True)
    body = template(state.ref.id, state.session.project, state.session.complexity)
    body["current_phase"] = str(state.phase)
    body["status"] = str(SessionStatus.ACTIVE if state.is_marked else SessionStatus.PAUSED)
    _edit(folder, layout.SESSION, lambda _: body)


def _fix(folder: Path, path: str, change: Changing) -> None:
    _keep(folder, path, move=False)
    _edit(folder, path, change)


def _hierarchy(state: State) -> Iterator[tuple[str, str, Changing]]:
    """Parents and subtasks that do not know each other."""
    for parent_id in state.graph.children:
        task = state.tasks[parent_id]
        if task.status is not TaskStatus.CONTAINER:
            yield task.file, f"{parent_id} has subtasks and is not a container", _as_container(task.inner)
    missing = {p for t in state.tasks if (p := ids.parent_of(t)) is not None and t not in state.graph.parent}
    for parent_id in sorted(missing, key=ids.order):
        words = f"{parent_id} has subtasks and no file"
        yield layout.task_file(parent_id), words, partial(_made_parent, parent_id)
    for task in state.tasks.values():
        above = ids.parent_of(task.id)
        if above is not None and task.parent is None and not task.inner:
            yield task.file, f"{task.id} does not name its parent {above}", partial(_with_parent, above)


def _made_parent(parent_id: str, body: Document) -> Document:
    return body or _as_container()(new_task(parent_id, f"Tasks under {parent_id}"))


def _with_parent(parent_id: str, body: Document) -> Document:
    context = body.get("context")
    body["context"] = {**(context if isinstance(context, dict) else {}), "parent": parent_id}
    return body


def _keep(folder: Path, path: str, *, move: bool) -> None:
    """Keep what is about to be replaced, under a name that says so."""
    if not paths.is_file(folder / path):
        return
    if move:
        ours.put_aside(folder, folder / path, path, "replaced")
    else:
        ours.keep_aside(folder, path, "replaced")


def _edit(folder: Path, path: str, change: Changing) -> None:
    documents.edit(ours.document(folder, path), change)
