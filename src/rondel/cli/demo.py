"""`rondel demo`: the workflows on a scratch repository, with no tokens."""

import click

from rondel.api import Hall
from rondel.cli import demo_review


@click.command()
def command() -> None:
    """Show the workflows on a scratch repository, with no tokens."""
    demo_review.demo(Hall.open, click.echo)
