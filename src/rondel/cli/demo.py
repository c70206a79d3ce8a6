"""`rondel demo`: the workflows on a scratch repository, with no tokens."""

import click


@click.command()
def command() -> None:
    """Show the workflows on a scratch repository, with no tokens."""
