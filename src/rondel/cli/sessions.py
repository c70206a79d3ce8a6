"""The commands that serve every workflow: status, watch, run, pause, approve, show."""

from __future__ import annotations

import sys
from collections import deque
from contextlib import nullcontext
from typing import TypedDict, Unpack

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markdown import Markdown
from rich.text import Text

from rondel.cli.common import (
    How,
    agents_option,
    answer,
    console,
    emit,
    fail_option,
    find_project,
    json_option,
    no_run_option,
    on_option,
    options,
    run_session,
    say,
    say_foreign,
    session_names,
    summary_json,
    wait_option,
)
from rondel.cli.encoding import write_as_is
from rondel.cli.screen import clock, cost, cost_json, table
from rondel.errors import UsageError
from rondel.model.summary import Status, Summary, command_line
from rondel.model.workflow import SessionRef
from rondel.project import Project, UnderWay

WATCH_S = 1.0
session_argument = click.argument("session", required=False, shell_complete=session_names())


@click.command()
@session_argument
@json_option
@click.option("--explain", is_flag=True, help="Say for each produced file why it is reused or stale.")
def status(session: str | None, as_json: bool, explain: bool) -> None:
    """Show every session of every workflow, or one."""
    project = find_project()
    if session:
        ref = project.ref(session)
        _show_one(project, ref, as_json=as_json, explain=explain)
        return
    rows = project.survey()
    if as_json:
        found_json = (
            summary_json(project, ref, found) | _files(project, ref, explain) for ref, found in rows
        )
        emit({"sessions": list(found_json)})
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


def _show_one(project: Project, ref: SessionRef, *, as_json: bool, explain: bool) -> None:
    found = project.status(ref)
    if as_json:
        state = project.workflow(ref.workflow).document(project.state(ref))
        entry = summary_json(project, ref, found) | {"state": state, "usage": cost_json(project.spent(ref))}
        emit({"sessions": [entry | _files(project, ref, explain)]})
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
    last = project.views.last_report(ref) if found.status is Status.FAILED else None
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
            for o in project.views.explain(ref)
        ]
    }


def _print_origins(project: Project, ref: SessionRef) -> None:
    for origin in project.views.explain(ref):
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
    project = find_project()
    ref = project.ref(session, looking=True)
    screen = console()
    live = Live(console=screen, auto_refresh=False) if screen.is_terminal and not once else None
    with live or nullcontext():
        while True:
            view = _watch_view(screen, project, ref)
            live.update(view, refresh=True) if live else screen.print(view)
            if once or project.summary(ref).status is not Status.RUNNING:
                return
            # A second, or less where the run comes to its end.
            deque(project.watch(ref, after=None, seconds=WATCH_S), maxlen=0)


def _watch_view(screen: Console, project: Project, ref: SessionRef) -> RenderableType:
    found = project.summary(ref)
    beat = project.heartbeat(ref)
    progress = f" {found.done}/{found.total}" if found.total else ""
    spent = cost(beat.usage)
    head = f"{ref.name}: {found.status.value}, {found.phase}{progress}" + (f", {spent}" if spent else "")
    view: list[RenderableType] = [Text(head, style="bold")]
    if found.is_foreign:
        view.append(Text("foreign: it was not begun or adopted here"))
    if found.edits_lost:
        view.append(Text(found.edits_lost.message))
    shown = [_watch_row(row) for row in beat.actions] if found.status is Status.RUNNING else []
    if shown:
        view.append(table(screen, ("action", "agent", "for", "last output", "tokens"), shown))
    elif found.status is not Status.RUNNING:
        view.append(Text(f"nobody works on it{f'; next: {found.next}' if found.next else ''}"))
    return Group(*view, *map(Text, project.views.details(ref)))


def _watch_row(row: UnderWay) -> tuple[str, ...]:
    quiet = f"{clock(row.last_output_s)} ago"
    said = f"{quiet}: {row.last}" if row.last else quiet
    return row.action, row.agent, clock(row.elapsed_s), said, str(row.tokens or "")


_going_on = options(
    click.option("--onto", metavar="BRANCH", help="Let its work go to this branch from now on."),
    click.option("--refresh", is_flag=True, help="Redo stale files and what depends on them."),
    click.option("--retry", "unpark", is_flag=True, help="Ask parked agents again, too, before their time."),
    fail_option,
    wait_option,
    agents_option,
    json_option,
    session_argument,
)


def _go_on(session: str | None, onto: str | None, going: How) -> None:
    project = find_project()
    ref = project.ref(session)
    with project.hold(ref) as lease:
        for line in project.running.move_onto(ref, onto, lease) if onto else ():
            say(line)
        run_session(project, ref, lease=lease, **going)


@click.command()
@_going_on
def run(session: str | None, onto: str | None, **going: Unpack[How]) -> None:
    """Go on with a session, on the branch it was begun on; what failed is tried again."""
    _go_on(session, onto, going)


@click.command()
@_going_on
def resume(session: str | None, onto: str | None, **going: Unpack[How]) -> None:
    """Go on with a session that was paused, stopped, killed or parked, or in which something failed."""
    _go_on(session, onto, going)


@click.command()
@session_argument
def pause(session: str | None) -> None:
    """Start nothing new in a session; let what is under way finish."""
    project = find_project()
    leave_word(project, project.ref(session), at_once=False)


@click.command()
@session_argument
def stop(session: str | None) -> None:
    """Start nothing new in a session; end what is under way."""
    project = find_project()
    leave_word(project, project.ref(session), at_once=True)


def leave_word(project: Project, ref: SessionRef, *, at_once: bool) -> None:
    """Pause or stop a session, and say what that does, what goes on and what to type after."""
    under_way = project.stop(ref) if at_once else project.pause(ref)
    if not under_way:
        say(f"{ref.name}: no driver works on it; nothing starts until it is resumed")
    elif not at_once:
        say(f"{ref.name}: paused; nothing new starts, and what is under way goes on to its end")
    else:
        say(f"{ref.name}: stopping; what is under way is ended, and what is finished is kept")
    follows = command_line("resume", ref.name) if under_way else project.summary(ref).next
    if follows:
        say(f"  next: {follows}")


_answering = options(no_run_option, on_option, json_option, session_argument)


@click.command()
@_answering
@click.option(
    "--option",
    "said",
    default="approve",
    show_default=True,
    help="The answer, where there are more than two.",
)
@click.option("--comment", default="", help="Why.")
def approve(session: str | None, said: str, **how: Unpack[_Answering]) -> None:
    """Answer what a session waits for, and go on."""
    _decide(session, said, **how)


@click.command()
@_answering
@click.option("--feedback", "comment", default="", help="What should be different.")
def reject(session: str | None, **how: Unpack[_Answering]) -> None:
    """Refuse what a session waits for, and go on."""
    _decide(session, "reject", **how)


class _Answering(TypedDict):
    """What the options of answering say."""

    comment: str
    path: str | None
    as_json: bool
    no_run: bool


def _decide(session: str | None, said: str, **how: Unpack[_Answering]) -> None:
    project = find_project()
    ref = project.ref(session)
    question = project.decide(ref, said, path=how["path"], comment=how["comment"])
    say(f"{ref.name}: {said}: {question.question}")
    if not how["no_run"]:
        if not project.goes_on(ref):
            run_session(project, ref, as_json=how["as_json"], retry=False)
        say(f"{ref.name}: its driver goes on; `{command_line('watch', ref.name)}` follows it")
    body = {"session": ref.name, "question": question.question, "answer": said}
    answer(body, (), as_json=how["as_json"])


@click.command()
@session_argument
@click.argument("artifact", required=False)
@click.option(
    "--round", "number", type=click.IntRange(min=1), help="Which round; the last complete one by default."
)
@click.option("--raw", is_flag=True, help="Print the file as it is.")
def show(session: str | None, artifact: str | None, number: int | None, raw: bool) -> None:
    """Show a file of a session, rendered; without ARTIFACT the one that matters most."""
    project = find_project()
    ref = project.ref(session, looking=True)
    say_foreign(project, ref)
    path = project.views.artifact(ref, artifact, number)
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
