"""The commands of the task workflow: `rondel task …`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from rondel import paths
from rondel.cli.common import (
    WAITS,
    answer,
    emit,
    emit_json,
    find_project,
    json_list_option,
    json_option,
    run_session,
    say,
    say_foreign,
    wait_option,
)
from rondel.cli.groups import Commands
from rondel.errors import NothingToDo, RondelError, UsageError
from rondel.model.codec import request_file, requests_in
from rondel.model.identity import Identity, home
from rondel.model.refs import branch_in
from rondel.model.summary import OWN_WORDS, Status, command_line
from rondel.model.texts import visible
from rondel.model.workflow import SessionRef
from rondel.project import Project
from rondel.workflows.task import files, ids, layout
from rondel.workflows.task.analysing import Waiting, waiting_in
from rondel.workflows.task.documents import draw
from rondel.workflows.task.graph import derived_status
from rondel.workflows.task.schema import OPEN, TaskStatus, TaskType
from rondel.workflows.task.state import Complexity, State
from rondel.workflows.task.validate import DEPENDS_ON
from rondel.workflows.task.working import declared, reopened_by_person, tried_again

TEXT_MAX = 200_000


@click.group(name="task", cls=Commands)
def command() -> None:
    """Plan a session of tasks and run them by their dependencies.

    A session is a folder .workflow/WFS-<topic>. Without --session a command means the
    active one.
    """


session_option = click.option("-s", "--session", help="The session; any unique part of its name will do.")


def _session(project: Project, name: str | None) -> SessionRef:
    """The session that is meant: the one that is named, else the active one."""
    if name is None:
        current = files.active(project.root, project.is_recorded)
        refs = project.sessions("task")
        if current is not None:
            return next(r for r in refs if r.id == current)
        begin = command_line("task", "start", OWN_WORDS)
        if not refs:
            raise UsageError(f"there is no task session; `{begin}` begins one")
        there = ", ".join(r.id for r in refs)
        switch = command_line("task", "switch", refs[-1].id)
        raise UsageError(f"no task session is active; `{begin}` begins one, `{switch}` takes it up: {there}")
    return project.ref(name, "task")


def _found(name: str | None) -> tuple[Project, SessionRef, State]:
    """The project here, the session that is meant, and what its files show."""
    project = find_project()
    ref = _session(project, name)
    return project, ref, _state(project, ref)


def _state(project: Project, ref: SessionRef) -> State:
    state: State = project.state(ref)
    return state


def _redraw(project: Project, ref: SessionRef) -> None:
    """Make the generated documents show what the task files say."""
    project.change(ref, draw(_state(project, ref)))


# -- sessions -----------------------------------------------------------------------------


@command.command()
@click.argument("topic")
@click.option(
    "--complexity", type=click.Choice([c.value for c in Complexity]), default="simple", help="At least this."
)
@json_option
def start(topic: str, complexity: str, as_json: bool) -> None:
    """Start a session and make it the active one."""
    project = find_project()
    ref = project.start("task", topic=topic, complexity=complexity).ref
    answer({"session": ref.name, "path": ref.folder}, [ref.id], as_json=as_json)
    if not as_json:
        say(f'{ref.folder} is there; `rondel task plan "…"` or `rondel task add "…"` fills it')


@command.command()
@json_option
def sessions(as_json: bool) -> None:
    """List the task sessions; * is the active one."""
    project = find_project()
    rows = [(ref, _state(project, ref)) for ref in project.sessions("task")]
    if as_json:
        found = [
            {
                "id": r.id,
                "status": str(s.status),
                "active": s.is_marked,
                "phase": str(s.phase),
                "edits_lost": project.summary(r).edits_lost is not None,
                "foreign": not project.is_known(r),
            }
            for r, s in rows
        ]
        emit({"sessions": found})
        return
    if not rows:
        say(f"no task sessions here yet; `{command_line('task', 'start', 'TOPIC')}` starts one")
    for ref, state in rows:
        done = f"{state.frontier.completed}/{len(state.graph.leaves)}"
        mark = "*" if state.is_marked else " "
        status = f"{state.status}{' (edits lost)' if project.summary(ref).edits_lost else ''}"
        status += "" if project.is_known(ref) else " (foreign)"
        click.echo(f"{mark} {ref.id}  {status}  {state.phase}  {done}  {state.session.project}")


@command.command()
@click.argument("name")
def switch(name: str) -> None:
    """Make another session the active one."""
    project = find_project()
    ref = project.ref(name, "task")
    project.require_known(ref)
    with files.others_at_rest(project, ref):
        before = files.switch(project.root, ref.id, project.is_known, project.change)
    paused = f"; {before} is paused" if before and before != ref.id else ""
    say(f"{ref.id} is active{paused}")


def _switch(project: Project, ref: SessionRef) -> str | None:
    """Make a session the active one, also one that is over; returns the one that was."""
    if ended := files.taken_up(project.root, ref.id):
        project.change(ref, ended)
    return files.switch(project.root, ref.id, project.is_known)


@command.command()
@click.argument("name", required=False)
def pause(name: str | None) -> None:
    """Pause a session: start nothing new; what is under way ends first."""
    project = find_project()
    ref = _session(project, name)
    if project.pause(ref):
        say("the run under way starts nothing new; what is under way ends first")
    files.pause(project.root, ref.id, project.change)
    say(f"{ref.id} is paused; `{command_line('task', 'resume', ref.id)}` goes on")


@command.command()
@click.argument("name", required=False)
@json_option
def resume(name: str | None, as_json: bool) -> None:
    """Make a session the active one and go on with what was asked for last."""
    project = find_project()
    ref = _session(project, name or _only_paused(project))
    with project.hold(ref) as lease:
        with files.others_at_rest(project, ref):
            files.switch(project.root, ref.id, project.is_known, project.change)
        if _state(project, ref).request.kind:
            jobs = _jobs_asked_for(project, ref)
            run_session(project, ref, as_json=as_json, agents_max=jobs, lease=lease)
    say(f"{ref.id} is active; nothing was asked of it yet: `rondel task run` runs its tasks")


def _only_paused(project: Project) -> str | None:
    """The session that is meant where none is active: the one that is not over, if there is only one."""
    if files.active(project.root, project.is_recorded) is not None:
        return None
    found = [r for r in project.sessions("task") if not project.summary(r).status.is_over]
    return found[0].id if len(found) == 1 else None


def _jobs_asked_for(project: Project, ref: SessionRef) -> int | None:
    number = max(requests_in(project.files(ref)), default=0)
    body = project.files(ref).json(request_file(number))
    jobs = body.get("jobs") if isinstance(body, dict) else None
    return jobs if isinstance(jobs, int) and jobs > 0 else None


@command.command()
@click.argument("name", required=False, metavar="[SESSION | TASK]")
@click.option("--reason", default="", help="Of a task: why it is done. It is kept with your word.")
@session_option
def complete(name: str | None, reason: str, session: str | None) -> None:
    """End a session; or declare one TASK done, which Rondel did not do.

    Unfinished tasks of a session are named, and stay as they are. A task is completed by your
    word: the reason is recorded, its summary says so, and what waits for it may run.
    """
    project = find_project()
    if name is not None and ids.numbers(name) is not None:
        _declare(project, _session(project, session), name, reason)
        return
    if reason:
        raise UsageError("--reason is for one task: rondel task complete IMPL-1 --reason WHY")
    ref = _session(project, name or session)
    state = _state(project, ref)
    open_tasks = [t for t in state.graph.leaves if state.tasks[t].status is not TaskStatus.COMPLETED]
    with project.hold(ref):
        project.running.check_branch(ref)
        files.complete(project.root, ref.id, project.change)
    say(f"{ref.id} is completed")
    for task_id in open_tasks:
        task = state.tasks[task_id]
        say(f"  unfinished: {task_id} ({task.status}) {task.title}")


def _declare(project: Project, ref: SessionRef, task_id: str, reason: str) -> None:
    """A task is done because a person says so."""
    state = _state(project, ref)
    leaf = _one_leaf(project, ref, state, task_id)
    if state.tasks[leaf].status is TaskStatus.COMPLETED:
        raise NothingToDo(f"{leaf} is completed already; `rondel task reopen {leaf}` makes it due again")
    if not reason.strip():
        raise UsageError(f"say why it is done: rondel task complete {leaf} --reason WHY")
    project.change(ref, declared(state, leaf, project.look.at, reason.strip()))
    _redraw(project, ref)
    say(f"{leaf} is completed by your word; {layout.summary_file(leaf)} says so")


@command.command()
@click.argument("task_ids", nargs=-1, required=True)
@click.option("--reason", default="", help="Why; it is kept, and whoever works on it again reads it.")
@session_option
def reopen(task_ids: tuple[str, ...], reason: str, session: str | None) -> None:
    """Make completed or blocked tasks pending again, to be done anew; their summaries are kept aside."""
    project, ref, state = _found(session)
    leaves = [_one_leaf(project, ref, state, task_id) for task_id in task_ids]
    for leaf in leaves:
        if state.tasks[leaf].stated in OPEN and leaf not in state.claims:
            raise NothingToDo(f"{leaf} is {state.tasks[leaf].status}; `rondel task run {leaf}` runs it")
    for leaf in dict.fromkeys(leaves):
        project.change(ref, reopened_by_person(state, leaf, project.look.at, reason.strip()))
        say(f"{leaf} is pending again; `rondel task run {leaf}` does it anew")
    _redraw(project, ref)


def _one_leaf(project: Project, ref: SessionRef, state: State, task_id: str) -> str:
    """The one task that is meant, which nobody works on now."""
    found = ids.finder(state.graph.order)(task_id) or task_id
    _known(state, found)
    if found in state.graph.children:
        under = ", ".join(state.graph.children[found])
        raise UsageError(f"{found} has subtasks; name one of these: {under}")
    works = project.summary(ref).status is Status.RUNNING
    if works and state.tasks[found].stated is TaskStatus.ACTIVE:
        raise UsageError(f"{found} is being worked on; `rondel stop {ref.name}` first")
    return found


# -- tasks ----------------------------------------------------------------------------------


@command.command()
@click.argument("title")
@click.option("--depends-on", multiple=True, metavar="ID", help="A task that must be completed first.")
@click.option(
    "--focus", "focus_paths", multiple=True, metavar="PATH", help="A folder or file that the task is about."
)
@click.option("--requirement", "requirements", multiple=True, help="What must be true afterwards.")
@click.option("--acceptance", multiple=True, help="How to tell that it is done.")
@click.option(
    "--type",
    "kind",
    type=click.Choice([t.value for t in TaskType]),
    default="feature",
    show_default=True,
    help="What kind of work it is.",
)
@click.option("--agent", help="The agent, by name; otherwise chosen by type and title.")
@click.option("--parent", metavar="ID", help="Make it a subtask of this task.")
@click.option(
    "--id",
    "wanted",
    metavar="ID",
    help="Its id, for a task whose file was lost: others wait for that id, and work done under it counts.",
)
@session_option
@json_option
def add(title: str, session: str | None, as_json: bool, **asked: Any) -> None:
    """Add one task."""
    project, ref, _ = _found(session)
    project.require_known(ref)
    task_id = files.add(project.root, ref, title, apply=project.change, **asked)
    _redraw(project, ref)
    path = f"{ref.folder}/{layout.task_file(task_id)}"
    answer({"session": ref.name, "task": task_id, "path": path}, [task_id], as_json=as_json)


@command.command()
@click.argument("text", required=False)
@click.option(
    "--from", "source", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A specification."
)
@session_option
@json_option
def plan(text: str | None, source: Path | None, session: str | None, as_json: bool) -> None:
    """Let an agent propose tasks; they are checked before a file is written."""
    project, ref, _ = _found(session)
    parts = [text or "", _text_of(source) if source else ""]
    wanted = "\n\n".join(p for p in parts if p.strip()) or _state(project, ref).session.project
    _propose(project, ref, {"kind": "plan", "text": wanted}, as_json=as_json)


@command.command()
@click.argument("task_id")
@click.argument("text", required=False, default="")
@session_option
@json_option
def breakdown(task_id: str, text: str, session: str | None, as_json: bool) -> None:
    """Let an agent divide a task into subtasks."""
    project, ref, state = _found(session)
    task = _known(state, task_id)
    if task_id in state.graph.parent:
        raise UsageError(f"{task_id} is a subtask; there are two levels and no third")
    if task in (TaskStatus.COMPLETED, TaskStatus.ACTIVE):
        raise UsageError(f"{task_id} is {task}; only a task that has not begun can be divided")
    _propose(project, ref, {"kind": "breakdown", "task_id": task_id, "text": text}, as_json=as_json)


@command.command()
@click.argument("task_id")
@click.argument("text")
@session_option
@json_option
def replan(task_id: str, text: str, session: str | None, as_json: bool) -> None:
    """Let an agent write a task anew; it is then due again."""
    project, ref, state = _found(session)
    _known(state, task_id)
    if task_id in state.graph.children:
        raise UsageError(
            f"{task_id} has subtasks; plan one of these anew: {', '.join(state.graph.children[task_id])}"
        )
    _propose(project, ref, {"kind": "replan", "task_id": task_id, "text": text}, as_json=as_json)


def _known(state: State, task_id: str) -> TaskStatus:
    if task_id in state.unread:
        raise RondelError(
            f"{state.ref.folder}/{state.unread[task_id]} cannot be read; `rondel doctor` says more"
        )
    if task_id not in state.tasks:
        there = ", ".join(state.graph.order) or "none"
        raise UsageError(f"there is no task {task_id!r}; there are: {there}")
    return derived_status(state.graph, state.tasks, task_id)


def _propose(project: Project, ref: SessionRef, request: dict[str, object], *, as_json: bool) -> None:
    with project.hold(ref) as lease:
        known = project.begin(ref, lease)
        base = home(project.look, known.onto or known.branch, known.base)
        project.ask_for(ref, {**request, "base": base}, lease)
        run_session(project, ref, as_json=as_json, lease=lease)


@command.command()
@click.argument("task_ids", nargs=-1)
@click.option("-j", "--jobs", type=click.IntRange(1, 256), help="How many tasks at once.")
@wait_option
@session_option
@json_option
def run(task_ids: tuple[str, ...], jobs: int | None, wait: bool, session: str | None, as_json: bool) -> None:
    """Run every task whose dependencies are completed, or only those named.

    A task that failed is tried again from its first step; one that a person blocked only when
    it is named.
    """
    project, ref, _ = _found(session)
    for task_id in task_ids:
        _known(_state(project, ref), task_id)
    _need_sandbox(project)
    with project.hold(ref) as lease:
        _refuse_unusable(_state(project, ref), task_ids)
        _say_where(project, ref, project.begin(ref, lease))
        project.running.check_branch(ref)
        _reopen(project, ref, task_ids)
        state = _state(project, ref)
        _refuse_nothing(state, task_ids)
        if project.settings("task")["trust_commands"]:
            _allow(project, _commands(state))
        project.ask_for(ref, {"kind": "run", "tasks": list(task_ids), "jobs": jobs}, lease)
        run_session(project, ref, as_json=as_json, agents_max=jobs, wait=wait, lease=lease)


def _reopen(project: Project, ref: SessionRef, task_ids: tuple[str, ...]) -> None:
    """Make named tasks that failed due again."""
    state = _state(project, ref)
    for task_id in task_ids:
        _known(state, task_id)
        for leaf in state.graph.leaves_of(task_id):
            task = state.tasks[leaf]
            named = state.summary_of(leaf) is not None
            if task.status is TaskStatus.BLOCKED or (task.status is TaskStatus.COMPLETED and not named):
                project.change(ref, tried_again(state, task, project.look.at))


def _open_leaves(state: State, task_ids: tuple[str, ...]) -> list[str]:
    """The leaves that are asked for and not done."""
    wanted = {leaf for t in task_ids for leaf in state.graph.leaves_of(t)} or set(state.graph.leaves)
    return [
        t for t in state.graph.leaves if t in wanted and state.tasks[t].status is not TaskStatus.COMPLETED
    ]


def _refuse_unusable(state: State, task_ids: tuple[str, ...]) -> None:
    """Say before anything is changed which tasks cannot run as they are.

    One that only depends on a task that is not there holds nobody else up: the others run.
    """
    wanted = _open_leaves(state, task_ids)
    wrong = [t for t in wanted if t in state.unusable]
    lost = {f.file for f in state.violations if f.rule == DEPENDS_ON} - {
        f.file for f in state.violations if f.stops and f.rule != DEPENDS_ON
    }
    goes_on = len(wrong) < len(wanted) and all(state.tasks[t].file in lost for t in wrong)
    if wrong and (task_ids or not goes_on):
        listed = "\n  ".join(f"{t}: {state.unusable[t]}" for t in wrong)
        raise RondelError(f"nothing was run, because these cannot:\n  {listed}")


def _refuse_nothing(state: State, task_ids: tuple[str, ...]) -> None:
    """Say that there is nothing to run."""
    if not state.names:
        raise NothingToDo('there are no tasks; `rondel task plan "…"` or `rondel task add "…"`')
    if not _open_leaves(state, task_ids) and not state.unread:
        raise NothingToDo("every task is completed; `rondel task complete` ends the session")


def _say_where(project: Project, ref: SessionRef, known: Identity) -> None:
    """Say where the work goes when that is not where HEAD is; there must be a branch for it to go to."""
    target = _state(project, ref).target
    if target is None:
        raise UsageError(
            f"{ref.name} was begun on no branch; name the one that its work should go to: "
            f"`rondel run {ref.name} --onto BRANCH`"
        )
    here_now = branch_in(project.look.git("symbolic-ref", "--quiet", "HEAD", check=False))
    if here_now != target:
        chosen = "as you chose" if known.onto else "where the session was begun"
        say(f"the work goes to {target}, {chosen}; HEAD is on {here_now or 'no branch'}")


def _need_sandbox(project: Project) -> None:
    """UsageError where steps are to run without a network, and nothing here can hold them to that."""
    if not (project.settings("task")["sandbox"] or project.config.workspaces.sandbox):
        return
    if why := project.running.unclosable():
        raise UsageError(f"a sandbox is asked for ([task] sandbox), and there is none: {why}")


# -- permissions, checks, documents -----------------------------------------------------------


def _commands(state: State) -> list[Waiting]:
    """The commands of tasks that are not completed and that nobody has allowed."""
    tasks = [state.tasks[t] for t in state.graph.order if state.tasks[t].status is not TaskStatus.COMPLETED]
    return waiting_in(tasks, state.allowed)


def _allow(project: Project, commands: list[Waiting]) -> int:
    return project.trust.allow({one.digest: one.command for one in commands})


@command.command()
@click.option("--all", "everything", is_flag=True, help="Allow what is listed without asking.")
@session_option
def allow(everything: bool, session: str | None) -> None:
    """List the commands of task files that are not yet allowed, and ask.

    A permission is for the exact text of a command in this repository. It is kept in your
    own state folder.
    """
    project, ref, _ = _found(session)
    say_foreign(project, ref)
    found = _commands(_state(project, ref))
    if not found:
        say("every command is allowed")
        return
    for one in found:
        click.echo(f"{one.task_id} {_visible(one.step)}:\n    {_visible(one.command)}")
    if not everything and not sys.stdin.isatty():
        say(f"{len(found)} commands are not allowed; `rondel task allow --all` allows what is listed here")
        sys.exit(WAITS)
    if everything or click.confirm(f"Allow these {len(found)} commands?"):
        say(f"allowed: {_allow(project, found)}")
        say(f"next: {project.summary(ref).next}")
    else:
        sys.exit(WAITS)


def _visible(text: str) -> str:
    """A text in which nothing can hide, each line below the other."""
    return visible(text).replace("\n", "\n    ")


@command.command()
@session_option
@json_list_option
def validate(session: str | None, as_json: bool) -> None:
    """Check the task files against the integrity rules."""
    project, ref, state = _found(session)
    say_foreign(project, ref)
    found = [
        {"file": f, "rule": "required-fields", "message": f"{f} cannot be read: it is not a JSON object"}
        for f in state.unread.values()
    ]
    found += [{"file": f.file, "rule": f.rule, "message": f.message} for f in state.violations]
    summary = project.summary(ref)
    lost = summary.edits_lost
    found += [{"file": lost.file, "rule": lost.rule, "message": lost.message}] if lost else []
    if as_json:
        emit_json(found)
    else:
        for one in found:
            click.echo(f"{one['file']}: {one['rule']}: {_visible(one['message'])}")
        for task in state.tasks.values():
            for note in (n for n in task.notes if n.rule == "shape"):
                say(f"note: {task.file}: {_visible(note.message)}")
        if not found:
            say(f"{len(state.tasks)} tasks, no rule is broken")
        if lost:
            say(f"next: {summary.next}")
    sys.exit(1 if found else 0)


def _text_of(source: Path) -> str:
    """A file that the person names."""
    try:
        return paths.read_elsewhere(source).decode(errors="replace")[:TEXT_MAX]
    except OSError as e:
        raise UsageError(f"cannot read {str(source)!r}: {e.strerror}") from e


@command.command()
@session_option
def todo(session: str | None) -> None:
    """Draw the list of tasks anew and print it."""
    project, ref, _ = _found(session)
    _redraw(project, ref)
    click.echo(paths.read(project.root / ref.folder / layout.TODO).decode(errors="replace"), nl=False)
    if lost := project.summary(ref).edits_lost:
        say(f"{ref.name}: {lost.message}; `{command_line('status', ref.name)}` says what to do")
