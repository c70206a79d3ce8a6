"""`rondel adopt`: what a foreign session says is done and decided, and the person's word on it."""

from __future__ import annotations

import sys

import click

from rondel.cli.common import emit, here, is_terminal, json_option, say
from rondel.cli.sessions import session_argument
from rondel.errors import NothingToDo, UsageError
from rondel.model.summary import command_line
from rondel.model.workflow import SessionRef
from rondel.project import Project
from rondel.trust.doubts import WRITTEN_MEANWHILE
from rondel.trust.seals import REMOVED, UNSEALED

WAITS = 3
NOT_YET = (UNSEALED, REMOVED, WRITTEN_MEANWHILE)  # what counts after another adoption


@click.command()
@session_argument
@click.option("--yes", "-y", is_flag=True, help="Adopt it as it is listed, without asking.")
@json_option
def command(session: str | None, yes: bool, as_json: bool) -> None:
    """Make a session that was not begun here yours: what it says is done and decided counts from then on.

    Lists its rounds, completed work and decisions with who gave them first. A session of a
    colleague, of another tool or of an older version then goes on where it stopped. What was
    under way elsewhere is asked for again.
    """
    project = here()
    ref = named_or_only_foreign(project, session)
    lines = project.claims(ref)
    if project.is_recorded(ref):
        lines += [f"does not count yet: {p.file}" for p in project.summary(ref).problems if p.rule in NOT_YET]
    if not as_json:
        for line in lines:
            click.echo(line)
    if not yes and not (is_terminal() and click.confirm(f"adopt {ref.name}?", err=True)):
        if as_json:
            emit({"session": ref.name, "adopted": False, "claims": lines})
        say(f"{ref.name} is not adopted\n  next: {command_line('adopt', ref.name, '--yes')}")
        sys.exit(WAITS)
    project.adopt(ref)
    if as_json:
        emit({"session": ref.name, "adopted": True, "claims": lines})
        return
    say(f"{ref.name} is yours")
    if follows := project.summary(ref).next:
        say(f"  next: {follows}")


def named_or_only_foreign(project: Project, name: str | None) -> SessionRef:
    """The session that is meant; without a name, the only one that is foreign or waits for adoption."""
    if name:
        ref = project.ref(name)
        if not _waits(project, ref):
            raise NothingToDo(f"{ref.name} is yours already")
        return ref
    refs = [ref for ref in project.sessions() if _waits(project, ref)]
    if not refs:
        raise NothingToDo("no session here is foreign, and none of yours waits for adoption")
    if len(refs) > 1:
        raise UsageError(f"several sessions can be adopted; name one of: {', '.join(r.name for r in refs)}")
    return refs[0]


def _waits(project: Project, ref: SessionRef) -> bool:
    """Whether a session, or something in it, counts only after adoption."""
    return not project.is_recorded(ref) or any(p.rule in NOT_YET for p in project.summary(ref).problems)
