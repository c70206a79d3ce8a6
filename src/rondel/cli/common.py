"""What all commands share: the project of this folder, one way to print, one way to run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NoReturn, TypedDict, TypeVar, Unpack

import click
from rich.console import Console
from rich.markdown import Markdown

from rondel.cli import encoding
from rondel.cli.screen import PlainConsole, cost_json, live_view
from rondel.model.summary import Conclusion, Problem, Summary, command_line
from rondel.model.times import stamp
from rondel.model.workflow import SessionRef, Started
from rondel.project import SCHEMA_VERSION, Project, Report, Stopped

F = TypeVar("F", bound=Callable[..., object])
PIPE_WIDTH = 240
WAITS = 3  # for a person
NOT_APPROVED = 4

json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
agents_option = click.option("--agents-max", type=click.IntRange(min=1), help="How many agents at once.")
wait_option = click.option("--wait", is_flag=True, help="Wait for a vendor's usage limit to pass.")
fail_option = click.option(
    "--fail-on-changes/--no-fail-on-changes",
    "fail",
    default=None,
    help="Exit 4 when the verdict is not an approval; the default where CI is set.",
)
no_run_option = click.option("--no-run", is_flag=True, help="Only note it; do not go on.")
on_option = click.option("--on", "path", help="Which question, when several wait.")
json_list_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON list instead of text."
)


def options(*decorators: Callable[[F], F]) -> Callable[[F], F]:
    """Several options of a command as one decorator."""

    def decorate(command: F) -> F:
        for option in decorators:
            command = option(command)
        return command

    return decorate


def session_names(workflow: str | None = None) -> Callable[..., list[str]]:
    """The sessions of this folder, for shell completion: of one workflow by their ids."""

    def names(_ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        refs = find_project().sessions(workflow)
        return [name for ref in refs if incomplete in (name := ref.id if workflow else ref.name)]

    return names


# -- where ---------------------------------------------------------------------------------------


def find_project() -> Project:
    """The project of the repository around the current folder; it asks whoever is at the terminal."""
    found = Project.find()
    found.confirm = confirm_adoption
    return found


def is_terminal() -> bool:
    """Whether somebody is there who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm_adoption(project: Project, ref: SessionRef) -> bool:
    """Show what a foreign session says is done and decided, and ask whether it counts from now on."""
    if not is_terminal():
        return False
    say(f"{ref.name} was not begun here; what it says counts when you adopt it:", *project.claims(ref))
    return click.confirm(f"adopt {ref.name}?", err=True)


# -- printing ------------------------------------------------------------------------------------


def console(*, err: bool = False) -> Console:
    """Where a person reads. Colour only on a terminal, and never with NO_COLOR."""
    found = PlainConsole(err=err, soft_wrap=True)
    if not found.is_terminal:
        found.width = PIPE_WIDTH  # nothing is folded for a program that reads lines
    return found


def say(words: str, *below: str) -> None:
    """A line for a person, on standard error, and lines below it."""
    click.echo("\n  ".join((words, *below)), err=True)


def say_foreign(project: Project, ref: SessionRef) -> None:
    """Say of a session that is only shown that it is foreign."""
    if not project.is_known(ref):
        adopts = command_line("adopt", ref.name)
        say(f"{ref.name} is foreign: it was not begun here; `{adopts}` makes it yours")


def emit(body: Mapping[str, object]) -> None:
    """One JSON object on standard output, with its schema version first."""
    emit_json({"schema_version": SCHEMA_VERSION, **body})


def emit_json(body: object) -> None:
    """A JSON value on standard output; escaped where the terminal's charset would lose something."""
    click.echo(json.dumps(body, ensure_ascii=not encoding.is_unicode(), indent=2))


def answer(body: Mapping[str, object], lines: Iterable[str], *, as_json: bool) -> None:
    """What a command is asked for: for a program one object, for a person lines."""
    if as_json:
        emit(body)
        return
    for line in lines:
        click.echo(line)


def print_markdown(content: str) -> None:
    """A document for a person; as it is for a program that reads it."""
    screen = console()
    if content and screen.is_terminal:
        screen.print(Markdown(content, hyperlinks=False))
    elif content:
        click.echo(content, nl=False)


def problem_json(problem: Problem) -> dict[str, object]:
    """A problem, for a program."""
    return {"rule": problem.rule, "file": problem.file, "message": problem.message, "repair": problem.repair}


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


def states_json(project: Project, refs: Iterable[SessionRef]) -> dict[str, object]:
    """Sessions with their own state documents, for a program."""
    rows = [(ref, project.summary(ref)) for ref in refs]
    return {"sessions": [summary_json(project, ref, found) | {"state": found.state} for ref, found in rows]}


# -- running -------------------------------------------------------------------------------------


class How(TypedDict, total=False):
    """How a session is run."""

    as_json: bool
    fail: bool | None  # what the person said of verdicts that are no approval
    agents_max: int | None
    wait: bool
    refresh: bool  # redo what is stale
    retry: bool
    unpark: bool


def run_session(
    project: Project,
    session: SessionRef | Started,
    lease: AbstractContextManager[Any] | None = None,
    **how: Unpack[How],
) -> NoReturn:
    """Run a session and leave with the exit code that says how it ended."""
    ref = session.ref if isinstance(session, Started) else session
    conclude(project, ref, drive(project, session, lease, **how), **how)


def drive(
    project: Project,
    session: SessionRef | Started,
    lease: AbstractContextManager[Any] | None = None,
    **how: Unpack[How],
) -> Report:
    """Run a session with a live view, and say how it ended.

    Whoever types a command that goes on wants what failed to be tried again. Whoever answers a
    question does not say so (`retry=False`): what failed beside it is not paid for once more.
    A command that says something first that the run is for has the lease already, and gives it.
    """
    ref = session.ref if isinstance(session, Started) else session
    as_json = how.get("as_json", False)
    ask_consent(project, ref.workflow, ref)
    project.trust.require(ref.workflow, ref)
    _say_who_works(project, ref)
    if words := project.running.unconfined():
        say(f"sandbox: {words}")
    with live_view(ref.name, quiet=as_json) as view:
        report = project.run(
            session,
            view=view,
            agents_max=how.get("agents_max"),
            wait=how.get("wait", False),
            redo=how.get("refresh", False),
            retry=how.get("retry", True),
            unpark=how.get("unpark", False),
            say=say,
            lease=lease,
        )
    if not as_json:
        _say_report(ref, report, follows(ref, report, project.summary(ref)))
    return report


def conclude(project: Project, ref: SessionRef, report: Report, **how: Unpack[How]) -> NoReturn:
    """Say what a session came to, and leave with the exit code that says it.

    The same for every command that runs a session: what there is to say is its workflow's.
    """
    found = project.workflow(ref.workflow).conclusion(project.state(ref))
    code = _exit_code(report, found, how.get("fail"))
    if how.get("as_json"):
        emit(_report_json(project, ref, report, found, code))
    else:
        print_markdown(found.document)
        for line in found.lines:
            click.echo(line)
    for note in found.notes:
        say(note)
    sys.exit(code)


def _exit_code(report: Report, conclusion: Conclusion, fail: bool | None) -> int:
    """4 when the verdict is not an approval of Rondel's and somebody must notice."""
    strict = bool(os.environ.get("CI")) if fail is None else fail
    refused = report.exit_code == 0 and strict and conclusion.approved is False
    return NOT_APPROVED if refused else report.exit_code


def _report_json(
    project: Project, ref: SessionRef, report: Report, conclusion: Conclusion, code: int
) -> dict[str, object]:
    return {
        "session": ref.name,
        "stopped": report.stopped.value,
        "message": report.message,
        "details": list(report.details),
        "until": report.until.isoformat() if report.until else None,
        "exit_code": code,
        "usage": cost_json(project.spent(ref)),
        "next": follows(ref, report, project.summary(ref)) or None,
        **conclusion.fields,
    }


def follows(ref: SessionRef, report: Report, found: Summary) -> str:
    """The command that leads on after a run that ended so; empty where a command alone does not."""
    match report.stopped:
        case Stopped.LIMIT:  # a setting has to change first
            return ""
        case Stopped.PARKED:
            return command_line("resume", ref.name, "--wait")
        case Stopped.INTERRUPTED | Stopped.MACHINE:
            return command_line("resume", ref.name)
        case Stopped.COMPLETED | Stopped.IDLE | Stopped.WAITING | Stopped.CANCELLED:
            return found.next
    return found.next or command_line("resume", ref.name)


def ask_consent(project: Project, workflow: str, ref: SessionRef | None = None) -> None:
    """Show what a run would execute of the repository, and ask; say what is left out where nobody answers.

    What a run cannot do without is not said here: it is refused with its name.
    """
    missing = project.trust.not_asked(workflow, ref)
    if not missing:
        return
    if is_terminal():
        words = "this repository brings what can run, redirect or loosen; it counts when you say yes to it:"
        say(words, *project.trust.shown(missing))
        if click.confirm("say yes to all of it? It is asked again when it changes", err=True):
            project.trust.give(missing)
            return
    needed = {part.digest for part in project.trust.needed(workflow, ref)}
    if names := [part.name for part in missing if part.digest not in needed]:
        how = f"`{command_line('trust')}` shows it, `{command_line('trust', '--yes')}` says yes"
        say(f"left out, for want of your consent: {', '.join(names)} ({how})")


def _say_who_works(project: Project, ref: SessionRef) -> None:
    """Where nothing is configured, say what was taken instead."""
    config = project.config
    if config.roles:
        return
    agent = config.agent_for(f"{ref.workflow}.default")
    is_found = agent.name in config.detected
    how = "found on the PATH" if is_found else "no agent is installed or configured"
    written = (project.root / "rondel.toml").exists()
    choose = "[roles] in rondel.toml chooses" if written else "`rondel init` writes a rondel.toml to choose"
    say(f"agents: {agent.name} ({how}; {choose})")


def _say_report(ref: SessionRef, report: Report, command: str) -> None:
    lines = report.details or ((report.message,) if report.message and report.message != command else ())
    how = report.stopped.value
    if report.stopped is Stopped.IDLE:
        how = "this run is done" if command else "nothing more is due"
    say(f"{ref.name}: {how}", *lines)
    if command:
        say(f"  next: {command}")
    if report.stopped is Stopped.LIMIT:
        goes_on = command_line("resume", ref.name)
        say(f"  raise the limit in rondel.toml, then `{goes_on}` goes on; everything so far is kept")
