"""Groups of commands, in which one that is not there is answered with those that are."""

from __future__ import annotations

from difflib import get_close_matches

import click

from rondel.errors import UsageError


class Commands(click.Group):
    """A group that helps whoever mistyped."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that is meant."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            names = self.list_commands(ctx)
            alike = get_close_matches(args[0], names, n=3)
            hint = f"did you mean {' or '.join(alike)}?" if alike else f"there are: {', '.join(names)}"
            raise UsageError(f"no command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)
