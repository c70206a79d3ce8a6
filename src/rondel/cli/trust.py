"""`rondel trust`: what a repository brings that can run, and the person's word on it."""

from __future__ import annotations

from collections.abc import Sequence

import click

from rondel.cli.common import emit, here, json_option, say, shown_parts
from rondel.errors import UsageError
from rondel.model.summary import command_line
from rondel.project import Project
from rondel.trust.parts import Part


@click.command()
@click.option("--yes", "-y", is_flag=True, help="Say yes to everything that is shown, as it is now.")
@click.option(
    "--revoke", is_flag=True, help="Take back every yes in this repository, to commands of tasks too."
)
@json_option
def command(yes: bool, revoke: bool, as_json: bool) -> None:
    """Show what this repository brings that can run, redirect or loosen; say yes to it, or take that back.

    A yes is to exactly what is shown, with the content of the files that it names, and is kept
    in your own state folder. What changes later is asked about again. RONDEL_TRUST=yes in the
    environment says yes for one process, RONDEL_TRUST=all also to the commands of tasks.
    """
    if yes and revoke:
        raise UsageError("--yes and --revoke are two answers; give one of them")
    project = here()
    if revoke:
        say(f"taken back: {project.revoke()}")
        return
    parts = project.brought()
    missing = [part for part in parts if part.digest not in project.consents.parts]
    if not as_json:
        _print_parts(project, parts, missing)
    added = project.consent(missing) if yes and missing else 0
    if as_json:
        _emit_parts(project, parts)
    elif not parts:
        say("nothing here needs your consent")
    elif yes:
        say(f"you said yes to {added} more" if missing else "you had said yes to all of it")
    elif missing:
        say(f"next: {command_line('trust', '--yes')}")


def _print_parts(project: Project, parts: Sequence[Part], missing: Sequence[Part]) -> None:
    for part in parts:
        if part not in missing:
            click.echo(f"{part.name}: you said yes")
    for line in shown_parts(project, missing):
        click.echo(line)
    for key in project.config.admitted.refused:
        click.echo(f"{key}: does not count; only your own settings say it, or yours are stricter")


def _emit_parts(project: Project, parts: Sequence[Part]) -> None:
    known = project.consents.parts
    rows = [
        {"name": p.name, "digest": p.digest, "consented": p.digest in known, "shown": list(p.shown)}
        for p in parts
    ]
    emit({"parts": rows, "refused": list(project.config.admitted.refused)})
