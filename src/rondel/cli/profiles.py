"""The doors of `generate`'s profiles: which there are, what one is for, a new one."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from rondel.cli.common import emit, here, json_option, say
from rondel.cli.groups import Commands
from rondel.errors import UsageError
from rondel.paths import is_bytecode
from rondel.workflows.generate.files import new_profile
from rondel.workflows.generate.layout import PROFILES
from rondel.workflows.generate.profiles.discover import (
    brought_profile,
    is_brought,
    load_profile,
    profile_names,
)


@click.command()
@json_option
def profiles(as_json: bool) -> None:
    """List the profiles: installed ones, and those in .aiwf/profiles/."""
    found = profile_names(here().root)
    if as_json:
        emit({"profiles": [{"name": name, "from": place} for name, place in found.items()]})
        return
    for name, place in found.items():
        click.echo(f"{name}  {place}")


@click.group(cls=Commands)
def profile() -> None:
    """Look at a profile, or make one."""


@profile.command("show")
@click.argument("name")
@click.option(
    "-c", "--context", "pairs", multiple=True, metavar="KEY=VALUE", help="A context, to see its cycles."
)
def show(name: str, pairs: tuple[str, ...]) -> None:
    """Show what a profile is for, and its cycles for a context; of one of the repository, its files."""
    root = here().root
    if is_brought(name, root):
        _show_files(name, root)
        return
    found = load_profile(name, root)
    click.echo(f"{name}: {found.description or 'no description'}")
    click.echo(f"from {profile_names(root)[name]}")
    if wanted := found.check_context(context_of(pairs)):
        click.echo(wanted)
    context: dict[str, object] = {"scope": "full", "with_tests": True, **context_of(pairs)}
    try:
        cycles = found.get_cycles(context)
    except ValueError as e:
        raise UsageError(f"profile {name}: {e}; give one with -c scope=…") from e
    for cycle in cycles:
        after = f" after {', '.join(cycle.depends_on)}" if cycle.depends_on else ""
        size = len(found.standards(cycle.scope, context))
        click.echo(f"  {cycle.type} (scope {cycle.scope}){after}, standards of {size} characters")


def _show_files(name: str, root: Path) -> None:
    """What is known of a profile of the repository without running it: only looking runs nothing."""
    click.echo(f"{name}: a program of this repository")
    click.echo(f"from {profile_names(root)[name]}")
    folder = root / PROFILES / name
    for path in sorted(p for p in folder.rglob("*") if p.is_file() and not is_bytecode(p)):
        click.echo(f"  {path.relative_to(folder)}, {path.stat().st_size} bytes")
    click.echo("its cycles are known when a session is started with it")


@profile.command("new")
@click.argument("name")
def new(name: str) -> None:
    """Make a working profile in .aiwf/profiles/, with tests."""
    hall = here()
    folder = new_profile(hall.root, name).relative_to(hall.root)
    hall.consent([hall.part_of(brought_profile(name))])  # it is ours, as long as nobody changes it
    click.echo(str(folder))
    test = f"cd {shlex.quote(str(folder))} && python -m unittest test_profile.py"
    say(f"edit its prompts and standards; test it with `{test}`")


def context_of(pairs: tuple[str, ...]) -> dict[str, str]:
    """`-c bounded-context=x` as the key `bounded_context`."""
    found: dict[str, str] = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        name = key.strip().replace("-", "_")
        if not sign or not name.isidentifier():
            raise UsageError(f"-c {pair!r} is not KEY=VALUE")
        if name in found:
            raise UsageError(f"-c {key} is given twice")
        found[name] = value
    return found
