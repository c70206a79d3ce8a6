"""The command `rondel loop`."""

from __future__ import annotations

import click

from rondel.cli.common import here, json_option, run_session, wait_option
from rondel.cli.groups import Commands
from rondel.errors import UsageError
from rondel.model.changes import text
from rondel.model.names import is_safe_name
from rondel.model.workflow import SessionRef
from rondel.project import Project
from rondel_loop.workflow import FOLDER, GOAL


@click.group(cls=Commands)
def command() -> None:
    """Let an agent work until a judge is content."""


@command.command()
@click.argument("name")
@click.argument("goal")
@wait_option
@json_option
def start(name: str, goal: str, wait: bool, as_json: bool) -> None:
    """Begin a loop, and run it: what is wanted is GOAL, in the folder loops/NAME."""
    project = here()
    run_session(project, begin(project, name, goal), as_json=as_json, wait=wait)


def begin(project: Project, name: str, goal: str) -> SessionRef:
    """A new session."""
    ref = SessionRef("loop", name, f"{FOLDER}/{name}")
    if not is_safe_name(name) or ref in project.sessions("loop"):
        raise UsageError(f"{name!r} is no name for a new loop; choose another one")
    project.start(ref, [text(GOAL, goal)])
    return ref
