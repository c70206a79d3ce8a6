"""The command `rondel loop`."""

from __future__ import annotations

import click

from rondel.cli.common import find_project, json_option, run_session, wait_option
from rondel.cli.groups import Commands


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
    project = find_project()
    run_session(project, project.start("loop", name=name, goal=goal), as_json=as_json, wait=wait)
