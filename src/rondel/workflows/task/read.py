"""Reading: from the files of a session to its state. Total: bad data becomes a problem.

`reread` takes in a few changed files, so that a session of a thousand tasks costs no more
per task than one of ten.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace

from rondel.model.codec import decode, request_file, requests_in
from rondel.model.consent import Brought
from rondel.model.identity import IDENTITY, identity_of, was_cut_off
from rondel.model.marks import begun_here, mark
from rondel.model.snapshot import Snapshot
from rondel.model.workflow import NOTHING_GIVEN, Given, SessionRef
from rondel.workflows.task import graph as graphs
from rondel.workflows.task import layout
from rondel.workflows.task.schema import COMPLETION, OPEN, Task, TaskStatus, task_from, texts
from rondel.workflows.task.state import (
    NO_WORK,
    Claim,
    Complexity,
    Phase,
    Request,
    SessionInfo,
    SessionStatus,
    State,
    Try,
    TryStatus,
    Work,
    upgraded,
)
from rondel.workflows.task.validate import validate

_UNREAD = (
    ".rondel/run/",
    ".rondel/aside/",
    ".rondel/manual/",
    ".rondel/control",
    ".rondel/.gitignore",
    ".rondel/lock",
    ".rondel/restored.jsonl",
    ".rondel/written.jsonl",
)


def sessions(repo: Snapshot) -> list[SessionRef]:
    """The sessions of a repository, from names alone."""
    names = repo.names(layout.HOME)
    found = sorted(n.rstrip("/") for n in names if n.startswith(layout.PREFIX) and n.endswith("/"))
    markers = frozenset(n for n in names if n.startswith(layout.MARKER))
    return [ref_of(name, markers) for name in found if not _was_cut_off(repo, name, markers)]


def _was_cut_off(repo: Snapshot, name: str, markers: Container[str]) -> bool:
    """Whether a session was never there: its start was killed before its document was written."""
    folder = f"{layout.HOME}/{name}"
    is_there = layout.SESSION in repo.names(folder) or layout.marker(name) in markers
    return not is_there and not repo.names(f"{folder}/{layout.TASKS}") and was_cut_off(repo, folder)


def ref_of(session_id: str, markers: frozenset[str] = frozenset()) -> SessionRef:
    """The reference of a session; the markers are beside its folder."""
    beside = markers | {layout.marker(session_id)}
    return SessionRef("task", session_id, f"{layout.HOME}/{session_id}", beside)


def newest_marker(files: Snapshot, ref: SessionRef, given: Given) -> tuple[str, int]:
    """The session whose marker counts, and how many markers there are."""
    found = [(at, name) for name in ref.beside if (at := files.mtime(f"../{name}")) is not None]
    newest = [name.removeprefix(layout.MARKER) for _, name in sorted(found, reverse=True)]
    return next(iter(counting(newest, given.is_known)), ""), len(found)


def counting(marked: list[str], is_known: Callable[[SessionRef], bool]) -> list[str]:
    """Of sessions with a marker, those whose marker counts: the person's own, where there is one.

    A clone, a pull or another tool can bring a marker of any name. It takes nobody's place.
    """
    known = [name for name in marked if is_known(ref_of(name))] if len(marked) > 1 else []
    return known or marked


def read(
    files: Snapshot,
    ref: SessionRef,
    allowed: Container[str] = frozenset(),
    given: Given = NOTHING_GIVEN,
) -> State:
    """What the files show."""
    stated, doubles, unread = _tasks(files)
    begun = begun_here(files)
    touched = {n.rstrip("/") for f in (layout.STEPS, layout.WORK) for n in files.names(f)}
    work = {t: work_on(files, t) for t in touched if t in stated}
    summaries = files.names(layout.SUMMARIES)
    found = {t: _claim(one, summaries, begun, work.get(t, NO_WORK)) for t, one in stated.items()}
    tasks = {t: _counted(one, found[t]) for t, one in stated.items()}
    graph = graphs.build(tasks)
    violations = tuple(validate(tasks, graph, doubles, unread))
    by_file = {t.file: t.id for t in tasks.values()}
    stops: dict[str, str] = {}
    for one in violations:
        if one.stops and one.file in by_file:
            stops.setdefault(by_file[one.file], one.message)
    decisions = files.names(layout.DECISIONS)
    newest, markers = newest_marker(files, ref, given)
    session = _session(files, ref.id, begun, tasks, graph)
    return State(
        ref=ref,
        files=files,
        session=session,
        request=_with_settings(_request(files), given),
        identity=identity_of(files.json(IDENTITY)),
        tasks=tasks,
        graph=graph,
        frontier=graphs.frontier(graph, tasks),
        violations=violations,
        unusable=stops,
        summaries=summaries,
        begun=begun,
        claims={t: claim for t, claim in found.items() if claim and t in graph.needs},
        work=work,
        answers={n: a for n in decisions if (a := _answer(files, n))},
        proposals=files.names(layout.PROPOSALS),
        views=_views(files),
        allowed=allowed,
        is_marked=newest == ref.id,
        markers=markers,
        unread=unread,
        has_steps=any(t.steps for t in tasks.values()),
    )


def reread(
    state: State,
    files: Snapshot,
    changed: Iterable[str],
    allowed: Container[str] = frozenset(),
    given: Given = NOTHING_GIVEN,
) -> State:
    """The state after only these files changed."""
    for path in changed:
        after = _take_in(state, files, path)
        if after is None:
            return read(files, state.ref, allowed, given)
        state = after
    return replace(state, files=files, allowed=allowed)


def _take_in(state: State, files: Snapshot, path: str) -> State | None:
    """The state after one file changed; None when that changes more than a few of its values."""
    folder, _, name = path.rpartition("/")
    if folder == layout.TASKS:
        return _take_in_task(state, files, path)
    if folder == layout.SUMMARIES:
        found = state.summaries | {name} if files.exists(path) else state.summaries - {name}
        owner = name.removesuffix(".md").removesuffix("-summary")
        return _with_claim(replace(state, summaries=found), owner)
    if folder.startswith((f"{layout.STEPS}/", f"{layout.WORK}/")):
        task_id = folder.rpartition("/")[2]
        return _with_claim(replace(state, work={**state.work, task_id: work_on(files, task_id)}), task_id)
    if path in (layout.TODO, layout.PLAN):
        return replace(state, views=_views(files))
    if path == layout.SESSION:
        info = _session(files, state.ref.id, state.begun, state.tasks, state.graph)
        return replace(state, session=info)
    return state if folder == layout.CHAT or path.startswith(_UNREAD) else None


def _take_in_task(state: State, files: Snapshot, path: str) -> State | None:
    """One task's file changed: cheap when only its status did."""
    new = task_from(path, files.json(path))
    old = state.tasks.get(new.id) if new else None
    if new is None or old is None or not _differ_in_status_only(old, new):
        return None
    return _with_claim(replace(state, tasks={**state.tasks, new.id: new}), new.id, old.status)


def _differ_in_status_only(old: Task, new: Task) -> bool:
    if TaskStatus.CONTAINER in (old.status, new.status) and old.status is not new.status:
        return False
    if any(n.rule == "status" for n in (*old.notes, *new.notes)) or old.inner != new.inner:
        return False
    return _without_status(old) == _without_status(new)


def _without_status(task: Task) -> dict[str, object]:
    body = dict(task.document)
    if not task.inner:
        body.pop("status", None)
        meta = body.get("meta")
        if isinstance(meta, dict):
            body["meta"] = {k: v for k, v in meta.items() if k not in ("error", COMPLETION)}
    return body


def _with_claim(state: State, task_id: str, before: TaskStatus | None = None) -> State:
    """The state with what is claimed of a task seen again; `before` is the status it had."""
    task = state.tasks.get(task_id)
    if task is None or task_id not in state.graph.needs:
        return state
    claim = _claim(task, state.summaries, state.begun, state.work_on(task_id))
    claims = {t: c for t, c in state.claims.items() if t != task_id}
    tasks = {**state.tasks, task_id: _counted(task, claim)}
    return replace(
        state,
        tasks=tasks,
        claims=claims if claim is None else {**claims, task_id: claim},
        frontier=state.frontier.moved(state.graph, task_id, before or task.status, tasks),
    )


def _claim(task: Task, summaries: frozenset[str], begun: str | None, work: Work) -> Claim | None:
    """What is claimed of a task that the engine did not say.

    In a session that was begun here a summary alone says nothing, since anybody can write one.
    """
    named = layout.summary_among(summaries, task.id) is not None
    if begun is None:
        return Claim.SUMMARY if named and task.stated in OPEN else None
    ours = task.mark == completion_mark(begun, task.id, work.number)
    if task.stated is TaskStatus.COMPLETED and not ours:
        return Claim.FOREIGN
    return Claim.SET_BACK if task.stated is TaskStatus.PENDING and (named or ours) else None


def _counted(task: Task, claim: Claim | None) -> Task:
    """The task with the status that counts."""
    status = TaskStatus.PENDING if claim is Claim.FOREIGN else task.stated
    return task if task.status is status else replace(task, status=status)


def completion_mark(begun: str, task_id: str, number: int) -> str:
    """The mark of a task that was completed in a round of work."""
    return mark(begun, "task", task_id, str(number))


def _tasks(files: Snapshot) -> tuple[dict[str, Task], list[Task], dict[str, str]]:
    """The tasks by id, those whose id another one has, and the files that cannot be read."""
    tasks: dict[str, Task] = {}
    doubles: list[Task] = []
    unread: dict[str, str] = {}
    for name in sorted(files.names(layout.TASKS)):
        if name.startswith(".") or not name.endswith(".json"):
            continue
        path = f"{layout.TASKS}/{name}"
        task = task_from(path, files.json(path))
        if task is None:
            unread[name.removesuffix(".json")] = path
        elif task.id not in tasks:
            tasks[task.id] = task
        elif path == layout.task_file(task.id):
            doubles.append(tasks[task.id])
            tasks[task.id] = task
        else:
            doubles.append(task)
    return tasks, doubles, unread


def _session(
    files: Snapshot, session_id: str, begun: str | None, tasks: Mapping[str, Task], graph: graphs.Graph
) -> SessionInfo:
    """What the session's document says. Of one that was begun here only a person's word ends it."""
    info = session_info(files.json(layout.SESSION), session_id, tasks, len(graph.parent))
    word = files.json(layout.ENDED)
    signed = isinstance(word, dict) and begun is not None and word.get("mark") == mark(begun, layout.ENDED)
    if info.status is not SessionStatus.COMPLETED or begun is None or signed:
        return info
    return replace(info, status=SessionStatus.ACTIVE, foreign=True)


def session_info(value: object, session_id: str, tasks: Mapping[str, Task], subtasks: int) -> SessionInfo:
    """What the session's document says; what it does not say is taken from the rest."""
    body = value if isinstance(value, dict) else {}
    topic = session_id.removeprefix(layout.PREFIX).replace("-", " ")
    project = body.get("project") if isinstance(body.get("project"), str) else body.get("title")
    kind, status = body.get("type"), body.get("status")
    known = next((s for s in SessionStatus if s == status), None)
    wrong = []
    if not isinstance(value, dict):
        wrong.append(
            f"{layout.SESSION} cannot be read" if value is None else f"{layout.SESSION} is no object"
        )
    elif known is None:
        wrong.append(f"status is {status!r}, not one of {', '.join(SessionStatus)}; read as active")
    stored = next((c for c in Complexity if c == kind), None)
    given = body.get("progress")
    progress = given if isinstance(given, dict) else {}
    return SessionInfo(
        project=project if isinstance(project, str) and project else topic,
        complexity=upgraded(stored or Complexity.SIMPLE, len(tasks), 2 if subtasks else 1),
        stored_complexity=stored,
        phase=str(body.get("current_phase", Phase.PLAN)),
        status=known or SessionStatus.ACTIVE,
        current_tasks=texts(progress.get("current_tasks")),
        completed_phases=texts(progress.get("completed_phases")),
        problem="; ".join(wrong),
        readable=isinstance(value, dict),
    )


def _request(files: Snapshot) -> Request:
    number = max(requests_in(files), default=0)
    found = decode(Request, files.json(request_file(number))) if number else None
    return replace(found or Request(), number=number)


def _with_settings(request: Request, given: Given) -> Request:
    """The request with the settings as they are now; sessions of the version before kept those of then.

    A command that only the session knows came with the repository, and needs consent.
    """
    old = request.checks if request.checks and given.admits(_old(request.checks)) else None
    seconds = given.settings.get("step_timeout_s")
    confined = given.sandbox or given.settings.get("sandbox")
    return replace(
        request,
        checks=given.checks or old,
        sandbox="asked for" if confined else request.sandbox,
        step_timeout_s=float(seconds) if isinstance(seconds, int | float) else request.step_timeout_s,
    )


def old_checks(files: Snapshot, given: Given) -> list[Brought]:
    """The tests that a session of the version before kept, where the settings have none."""
    checks = _request(files).checks
    return [_old(checks)] if checks and not given.checks else []


def _old(checks: str) -> Brought:
    return Brought("tests that the session names", checks)


def work_on(files: Snapshot, task_id: str) -> Work:
    """How far the work on a task is."""
    number = layout.round_of(files.names(f"{layout.WORK}/{task_id}"))
    latest: dict[int, int] = {}
    for name in files.names(f"{layout.STEPS}/{task_id}"):
        found = layout.step_try(name)
        if found and found[0] == number:
            latest[found[1]] = max(latest.get(found[1], 0), found[2])
    tries: dict[int, Try] = {}
    changed: tuple[str, ...] = ()
    for step, count in sorted(latest.items()):
        body = files.json(layout.step_file(task_id, number, step, count))
        body = body if isinstance(body, dict) else {}
        status = body.get("status")
        tries[step] = Try(
            count,
            next((s for s in TryStatus if s == status), TryStatus.FAILED),
            str(body.get("error", "")),
        )
        changed = texts(body.get("changed")) or changed
    before = files.json(layout.round_file(task_id, number - 1)) if number > 1 else None
    conflict = str(before.get("error", "")) if isinstance(before, dict) else ""
    return Work(number, tries, changed, conflict) if tries or number > 1 else NO_WORK


def _answer(files: Snapshot, name: str) -> str:
    body = files.json(f"{layout.DECISIONS}/{name}")
    answer = body.get("answer") if isinstance(body, dict) else None
    return answer if isinstance(answer, str) else ""


def _views(files: Snapshot) -> tuple[str | None, str | None]:
    return files.digest(layout.TODO), files.digest(layout.PLAN)
