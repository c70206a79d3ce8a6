"""What all commands share: the project of this folder, one way to print, one way to run."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn, TypedDict, Unpack

import click
from rich.console import Console
from rich.markdown import Markdown

from rondel.cli import encoding
from rondel.cli.live import cost_json, live_view
from rondel.cli.screen import PlainConsole
from rondel.engine.report import Report, Stopped
from rondel.errors import RondelError
from rondel.model.summary import Conclusion, Summary, command_line
from rondel.model.workflow import SessionRef
from rondel.project import SCHEMA_VERSION, Project
from rondel.store.lease import Lease
from rondel.trust.parts import Part, difference

PIPE_WIDTH = 240
NOT_APPROVED = 4
NOTHING_SAID = Conclusion()

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
json_list_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON list instead of text."
)


def console(*, err: bool = False) -> Console:
    """Where a person reads. Colour only on a terminal, and never with NO_COLOR."""
    found = PlainConsole(err=err, soft_wrap=True)
    if not found.is_terminal:
        found.width = PIPE_WIDTH  # nothing is folded for a program that reads lines
    return found


def say(words: str) -> None:
    """One line for a person, on standard error."""
    click.echo(words, err=True)


def here() -> Project:
    """The project of the repository around the current folder."""
    try:
        found = Project.find(Path.cwd())
    except FileNotFoundError:
        raise RondelError("the current folder is gone; change to one that is there") from None
    found.confirm = confirm_adoption
    return found


def project_at(root: Path) -> Project:
    """The project of another repository."""
    found = Project(root)
    found.confirm = confirm_adoption
    return found


def is_terminal() -> bool:
    """Whether somebody is there who can be asked."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def confirm_adoption(project: Project, ref: SessionRef) -> bool:
    """Show what a foreign session says is done and decided, and ask whether it counts from now on."""
    if not is_terminal():
        return False
    say(f"{ref.name} was not begun here; what it says counts when you adopt it:")
    for line in project.claims(ref):
        say(f"  {line}")
    return click.confirm(f"adopt {ref.name}?", err=True)


def say_foreign(project: Project, ref: SessionRef) -> None:
    """Say of a session that is only shown that it is foreign."""
    if not project.is_known(ref):
        adopts = command_line("adopt", ref.name)
        say(f"{ref.name} is foreign: it was not begun here; `{adopts}` makes it yours")


def emit(body: dict[str, object]) -> None:
    """One JSON object on standard output, with its schema version first."""
    emit_json({"schema_version": SCHEMA_VERSION, **body})


def emit_json(body: object) -> None:
    """A JSON value on standard output; escaped where the terminal's charset would lose something."""
    click.echo(json.dumps(body, ensure_ascii=not encoding.is_unicode(), indent=2))


def report_json(
    project: Project,
    ref: SessionRef,
    report: Report,
    conclusion: Conclusion = NOTHING_SAID,
    code: int | None = None,
) -> dict[str, object]:
    """How a run ended, for a program; `code` is the status that the command ends with."""
    return {
        "session": ref.name,
        "stopped": report.stopped.value,
        "message": report.message,
        "details": list(report.details),
        "until": report.until.isoformat() if report.until else None,
        "exit_code": report.exit_code if code is None else code,
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


class Driving(TypedDict, total=False):
    """How a session is driven."""

    agents_max: int | None
    wait: bool
    refresh: bool  # redo what is stale
    retry: bool
    unpark: bool
    lease: Lease | None


def drive(project: Project, ref: SessionRef, *, as_json: bool = False, **how: Unpack[Driving]) -> Report:
    """Run a session with a live view, and say how it ended.

    Whoever types a command that goes on wants what failed to be tried again. Whoever answers a
    question does not say so (`retry=False`): what failed beside it is not paid for once more.
    A command that says something first that the run is for has the lease already, and gives it.
    """
    ask_consent(project, ref.workflow, ref)
    project.require_consent(ref.workflow, ref)
    _say_who_works(project, ref)
    if words := project.unconfined():
        say(f"sandbox: {words}")
    with live_view(ref.name, quiet=as_json) as view:
        report = project.drive(
            ref,
            view=view,
            agents_max=how.get("agents_max"),
            wait=how.get("wait", False),
            redo=how.get("refresh", False),
            retry=how.get("retry", True),
            unpark=how.get("unpark", False),
            say=say,
            lease=how.get("lease"),
        )
    if not as_json:
        _say_report(ref, report, follows(ref, report, project.summary(ref)))
    return report


def ask_consent(project: Project, workflow: str, ref: SessionRef | None = None) -> None:
    """Show what a run would execute of the repository, and ask; say what is left out where nobody answers.

    What a run cannot do without is not said here: it is refused with its name.
    """
    missing = [part for part in project.lacks_consent(workflow, ref) if part.digest not in project.asked]
    if not missing:
        return
    project.asked.update(part.digest for part in missing)
    if is_terminal():
        say("this repository brings what can run, redirect or loosen; it counts when you say yes to it:")
        for line in shown_parts(project, missing):
            say(f"  {line}")
        if click.confirm("say yes to all of it? It is asked again when it changes", err=True):
            project.consent(missing)
            return
    needed = {part.digest for part in project.needs_consent(workflow, ref)}
    if names := [part.name for part in missing if part.digest not in needed]:
        how = f"`{command_line('trust')}` shows it, `{command_line('trust', '--yes')}` says yes"
        say(f"left out, for want of your consent: {', '.join(names)} ({how})")


def shown_parts(project: Project, parts: Iterable[Part]) -> Iterator[str]:
    """Parts for a person: what would run, or what changed since it was last consented to."""
    for part in parts:
        before = project.consents.before.get(part.name)
        yield part.name if before is None else f"{part.name}, changed:"
        lines = part.shown if before is None else difference(before, part.shown)
        yield from (f"  {line}" for line in lines)


def run_session(
    project: Project,
    ref: SessionRef,
    *,
    as_json: bool = False,
    fail: bool | None = None,
    **how: Unpack[Driving],
) -> NoReturn:
    """Run a session and leave with the exit code that says how it ended."""
    conclude(project, ref, drive(project, ref, as_json=as_json, **how), as_json=as_json, fail=fail)


def conclude(
    project: Project, ref: SessionRef, report: Report, *, as_json: bool, fail: bool | None
) -> NoReturn:
    """Say what a session came to, and leave with the exit code that says it.

    The same for every command that runs a session: what there is to say is its workflow's. `fail`
    is what the person said of verdicts that are no approval.
    """
    found = project.workflow(ref.workflow).conclusion(project.state(ref))
    code = exit_code(report, found, fail)
    if as_json:
        emit(report_json(project, ref, report, found, code))
    else:
        print_markdown(found.document)
        for line in found.lines:
            click.echo(line)
    for note in found.notes:
        say(note)
    sys.exit(code)


def exit_code(report: Report, conclusion: Conclusion, fail: bool | None) -> int:
    """4 when the verdict is not an approval of Rondel's and somebody must notice."""
    strict = bool(os.environ.get("CI")) if fail is None else fail
    refused = report.exit_code == 0 and strict and conclusion.approved is False
    return NOT_APPROVED if refused else report.exit_code


def print_markdown(content: str) -> None:
    """A document for a person; as it is for a program that reads it."""
    screen = console()
    if content and screen.is_terminal:
        screen.print(Markdown(content, hyperlinks=False))
    elif content:
        click.echo(content, nl=False)


def _say_who_works(project: Project, ref: SessionRef) -> None:
    """Where nothing is configured, say what was taken instead."""
    if project.config.roles:
        return
    agent = project.config.agent_for(f"{ref.workflow}.default")
    how = (
        "found on the PATH"
        if agent.name in project.config.detected
        else "no agent is installed or configured"
    )
    written = (project.root / "rondel.toml").exists()
    choose = "[roles] in rondel.toml chooses" if written else "`rondel init` writes a rondel.toml to choose"
    say(f"agents: {agent.name} ({how}; {choose})")


def _say_report(ref: SessionRef, report: Report, command: str) -> None:
    lines = report.details or ((report.message,) if report.message and report.message != command else ())
    how = report.stopped.value
    if report.stopped is Stopped.IDLE:
        how = "this run is done" if command else "nothing more is due"
    say(f"{ref.name}: {how}")
    for line in lines:
        say(f"  {line}")
    if command:
        say(f"  next: {command}")
    if report.stopped is Stopped.LIMIT:
        goes_on = command_line("resume", ref.name)
        say(f"  raise the limit in rondel.toml, then `{goes_on}` goes on; everything so far is kept")
