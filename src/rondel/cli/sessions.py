"""The commands that serve every workflow: status, watch, run, pause, approve, show."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypedDict, TypeVar, Unpack

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markdown import Markdown
from rich.text import Text

from rondel.cli.common import (
    agents_option,
    console,
    emit,
    fail_option,
    here,
    json_option,
    no_run_option,
    run_session,
    say,
    say_foreign,
    wait_option,
)
from rondel.cli.encoding import write_as_is
from rondel.cli.live import clock, cost, cost_json, number
from rondel.cli.tables import table
from rondel.errors import UsageError
from rondel.model.summary import Problem, Status, Summary, command_line
from rondel.model.times import stamp
from rondel.model.workflow import SessionRef
from rondel.project import Project

F = TypeVar("F", bound=Callable[..., object])
WATCH_S = 1.0


def _name_of(_ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The sessions of this folder, for shell completion."""
    return [ref.name for ref in here().sessions() if incomplete in ref.name]


session_argument = click.argument("session", required=False, shell_complete=_name_of)


@click.command()
@session_argument
@json_option
@click.option("--explain", is_flag=True, help="Say for each produced file why it is reused or stale.")
def status(session: str | None, as_json: bool, explain: bool) -> None:
    """Show every session of every workflow, or one."""
    project = here()
    if session:
        ref = project.ref(session)
        _show_one(project, ref, as_json=as_json, explain=explain)
        return
    rows = project.survey()
    if as_json:
        emit(
            {
                "sessions": [
                    summary_json(project, ref, found) | _files(project, ref, explain) for ref, found in rows
                ]
            }
        )
        return
    if not rows:
        first = next(iter(project.workflow_names()), "")
        say(f"no sessions here yet; start one with `rondel {first}` or another workflow")
    _print_table(rows)
    for ref, found in rows:
        if found.status is Status.WAITING and found.waiting_for:
            click.echo(f"{ref.name} waits for: {found.waiting_for}")
        if found.edits_lost:
            click.echo(f"{ref.name}: {found.edits_lost.message}; next: {found.next}")
    for ref, _ in rows if explain else ():
        click.echo(ref.name)
        _print_origins(project, ref)


def summary_json(project: Project, ref: SessionRef, found: Summary) -> dict[str, object]:
    """A session in short, for a program."""
    return {
        "session": ref.name,
        "workflow": ref.workflow,
        "id": ref.id,
        "title": found.title,
        "status": found.status.value,
        "phase": found.phase,
        "progress": {"done": found.done, "total": found.total},
        "waiting_for": found.waiting_for,
        "path": ref.folder,
        "runtime": str(project.runtime(ref)),
        "updated_at": stamp(found.updated_at) if found.updated_at else None,
        "problems": [problem_json(p) for p in found.problems],
        "foreign": found.is_foreign,
        "not_made_by_rondel": list(found.foreign),
    }


def problem_json(problem: Problem) -> dict[str, object]:
    """A problem, for a program."""
    return {"rule": problem.rule, "file": problem.file, "message": problem.message, "repair": problem.repair}


def _show_one(project: Project, ref: SessionRef, *, as_json: bool, explain: bool) -> None:
    found = project.status(ref)
    if as_json:
        spent_json = {"usage": cost_json(project.spent(ref))}
        entry = summary_json(project, ref, found) | {"state": project.document(ref)} | spent_json
        entry |= _files(project, ref, explain)
        emit({"sessions": [entry]})
        return
    _print_table([(ref, found)])
    for problem in found.problems:
        click.echo(f"  {problem.rule}: {problem.file}: {problem.message}")
        if problem == found.edits_lost:
            click.echo(f"    {problem.repair}")
    if found.foreign:
        click.echo(f"  not made by Rondel: {', '.join(found.foreign)}")
    if found.waiting_for:
        click.echo(f"  waits for: {found.waiting_for}")
    last = project.last_report(ref) if found.status is Status.FAILED else None
    for line in (line for line in last.details if line != found.waiting_for) if last else ():
        click.echo(f"  {line}")
    if spent := cost(project.spent(ref)):
        click.echo(f"  cost so far: {spent}")
    if found.next:
        click.echo(f"  next: {found.next}")
    if explain:
        _print_origins(project, ref)


def _files(project: Project, ref: SessionRef, explain: bool) -> dict[str, object]:
    """Why each produced file is reused or stale, for a program that asked."""
    if not explain:
        return {}
    return {
        "files": [
            {"file": o.file, "stale": o.stale, "edited": o.edited, "reasons": list(o.reasons)}
            for o in project.explain(ref)
        ]
    }


def _print_origins(project: Project, ref: SessionRef) -> None:
    for origin in project.explain(ref):
        click.echo(f"  {origin.file}  {origin.words}")


def _more_problems(found: Summary) -> bool:
    """Whether there is a problem that has no mark of its own."""
    return len(found.problems) > found.is_foreign


def _print_table(rows: list[tuple[SessionRef, Summary]]) -> None:
    shown = []
    for ref, found in rows:
        progress = f"{found.done}/{found.total}" if found.total else ""
        # One clock for all: workflows keep their times in different zones.
        updated = f"{found.updated_at.astimezone():%Y-%m-%d %H:%M}" if found.updated_at else ""
        mark = " (not made by Rondel)" if found.foreign and found.status is Status.COMPLETED else ""
        mark += " (foreign)" if found.is_foreign else ""
        mark += " (edits lost)" if found.edits_lost else " (!)" if _more_problems(found) else ""
        shown.append((ref.name, found.status.value + mark, found.phase, progress, updated))
    screen = console()
    if shown:
        screen.print(table(screen, ("session", "status", "phase", "progress", "updated"), shown))


@click.command()
@session_argument
@click.option("--once", is_flag=True, help="Show it once and leave.")
def watch(session: str | None, once: bool) -> None:
    """Follow a session that runs in another terminal."""
    project = here()
    ref = project.ref(session, looking=True)
    screen = console()
    if once or not screen.is_terminal:
        screen.print(_watch_view(screen, project, ref))
        while not once and project.summary(ref).status is Status.RUNNING:
            time.sleep(WATCH_S)
            screen.print(_watch_view(screen, project, ref))
        return
    with Live(console=screen, auto_refresh=False) as live:
        while True:
            live.update(_watch_view(screen, project, ref), refresh=True)
            if project.summary(ref).status is not Status.RUNNING:
                return
            time.sleep(WATCH_S)


def _watch_view(screen: Console, project: Project, ref: SessionRef) -> RenderableType:
    found = project.summary(ref)
    beat = project.heartbeat(ref)
    progress = f" {found.done}/{found.total}" if found.total else ""
    spent = cost(project.spent(ref))
    head = f"{ref.name}: {found.status.value}, {found.phase}{progress}" + (f", {spent}" if spent else "")
    view: list[RenderableType] = [Text(head, style="bold")]
    if found.is_foreign:
        view.append(Text("foreign: it was not begun or adopted here"))
    if found.edits_lost:
        view.append(Text(found.edits_lost.message))
    rows = beat.get("actions") if found.status is Status.RUNNING else None
    shown = [_watch_row(row) for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    if shown:
        view.append(table(screen, ("action", "agent", "for", "last output", "tokens"), shown))
    elif found.status is not Status.RUNNING:
        view.append(Text(f"nobody works on it{f'; next: {found.next}' if found.next else ''}"))
    return Group(*view, *map(Text, project.details(ref)))


def _watch_row(row: dict[str, object]) -> tuple[str, ...]:
    quiet = f"{clock(number(row.get('last_output_s')))} ago"
    said = f"{quiet}: {row.get('last')}" if row.get("last") else quiet
    elapsed = clock(number(row.get("elapsed_s")))
    return str(row.get("action")), str(row.get("agent")), elapsed, said, str(row.get("tokens") or "")


def _going_on(command: F) -> F:
    """The options of going on with a session."""
    for option in (
        click.option("--onto", metavar="BRANCH", help="Let its work go to this branch from now on."),
        click.option("--refresh", is_flag=True, help="Redo stale files and what depends on them."),
        click.option(
            "--retry", "unpark", is_flag=True, help="Ask parked agents again, too, before their time."
        ),
        fail_option,
        wait_option,
        agents_option,
        json_option,
        session_argument,
    ):
        command = option(command)
    return command


class _Going(TypedDict):
    """What the options of going on say."""

    agents_max: int | None
    as_json: bool
    fail: bool | None
    refresh: bool
    unpark: bool
    wait: bool


def _go_on(session: str | None, onto: str | None, going: _Going) -> None:
    project = here()
    ref = project.ref(session)
    with project.hold(ref) as lease:
        for line in project.move_onto(ref, onto, lease) if onto else ():
            say(line)
        run_session(project, ref, lease=lease, **going)


@click.command()
@_going_on
def run(session: str | None, onto: str | None, **going: Unpack[_Going]) -> None:
    """Go on with a session, on the branch it was begun on; what failed is tried again."""
    _go_on(session, onto, going)


@click.command()
@_going_on
def resume(session: str | None, onto: str | None, **going: Unpack[_Going]) -> None:
    """Go on with a session that was paused, stopped, killed or parked, or in which something failed."""
    _go_on(session, onto, going)


@click.command()
@session_argument
def pause(session: str | None) -> None:
    """Start nothing new in a session; let what is under way finish."""
    _control(session, "pause")


@click.command()
@session_argument
def stop(session: str | None) -> None:
    """Start nothing new in a session; end what is under way."""
    _control(session, "stop")


def _control(session: str | None, word: str) -> None:
    project = here()
    leave_word(project, project.ref(session), word)


def leave_word(project: Project, ref: SessionRef, word: str) -> None:
    """Pause or stop a session, and say what that does, what goes on and what to type after."""
    under_way = project.control(ref, word)
    if not under_way:
        say(f"{ref.name}: no driver works on it; nothing starts until it is resumed")
    elif word == "pause":
        say(f"{ref.name}: paused; nothing new starts, and what is under way goes on to its end")
    else:
        say(f"{ref.name}: stopping; what is under way is ended, and what is finished is kept")
    follows = command_line("resume", ref.name) if under_way else project.summary(ref).next
    if follows:
        say(f"  next: {follows}")


def _answering(command: F) -> F:
    """The options of answering a question."""
    for option in (
        no_run_option,
        click.option("--on", "path", help="Which question, when several wait."),
        json_option,
        session_argument,
    ):
        command = option(command)
    return command


@click.command()
@_answering
@click.option(
    "--option",
    "answer",
    default="approve",
    show_default=True,
    help="The answer, where there are more than two.",
)
@click.option("--comment", default="", help="Why.")
def approve(
    session: str | None, as_json: bool, path: str | None, no_run: bool, answer: str, comment: str
) -> None:
    """Answer what a session waits for, and go on."""
    _answer(session, answer, comment, path, as_json=as_json, no_run=no_run)


@click.command()
@_answering
@click.option("--feedback", "comment", default="", help="What should be different.")
def reject(session: str | None, as_json: bool, path: str | None, no_run: bool, comment: str) -> None:
    """Refuse what a session waits for, and go on."""
    _answer(session, "reject", comment, path, as_json=as_json, no_run=no_run)


def _answer(
    session: str | None, answer: str, comment: str, path: str | None, *, as_json: bool, no_run: bool
) -> None:
    project = here()
    ref = project.ref(session)
    question = project.decide(ref, answer, path=path, comment=comment)
    say(f"{ref.name}: {answer}: {question.question}")
    goes_on = not no_run and project.goes_on(ref)
    if goes_on:
        say(f"{ref.name}: its driver goes on; `{command_line('watch', ref.name)}` follows it")
    if not no_run and not goes_on:
        run_session(project, ref, as_json=as_json, retry=False)
    if as_json:
        emit({"session": ref.name, "question": question.question, "answer": answer})


@click.command()
@click.argument("session", required=False, shell_complete=_name_of)
@click.argument("artifact", required=False)
@click.option(
    "--round", "number", type=click.IntRange(min=1), help="Which round; the last complete one by default."
)
@click.option("--raw", is_flag=True, help="Print the file as it is.")
def show(session: str | None, artifact: str | None, number: int | None, raw: bool) -> None:
    """Show a file of a session, rendered; without ARTIFACT the one that matters most."""
    project = here()
    ref = project.ref(session, looking=True)
    say_foreign(project, ref)
    path = project.artifact(ref, artifact, number)
    if path is None:
        for name in project.artifacts(ref):
            click.echo(name)
        return
    body = project.files(ref).text(path)
    if body is None:
        raise UsageError(f"{path} of {ref.name} cannot be read as text")
    if raw or not sys.stdout.isatty() or not path.endswith(".md"):
        text = body if body.endswith("\n") else f"{body}\n"
        as_is = raw and not sys.stdout.isatty()  # for a file; whatever else reads this may be a terminal
        write_as_is(sys.stdout, text) if as_is else click.echo(text, nl=False)
    else:
        console().print(Markdown(body, hyperlinks=False))
