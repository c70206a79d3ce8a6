"""The help of all commands together: one word for one thing, in every command."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import click

from rondel.cli.main import root

SHARED = ("--json", "--wait", "--agents-max", "--no-run", "--max-iterations", "--dry-run", "--yes")
LISTS = {"lint", "validate"}  # their output is a list, as other tools expect it


def commands(
    group: click.Group, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        found = group.get_command(ctx, name)
        assert found is not None
        yield (*path, name), found
        if isinstance(found, click.Group):
            yield from commands(found, (*path, name))


def options() -> Iterator[tuple[tuple[str, ...], click.Option]]:
    for path, command in commands(root):
        yield from ((path, p) for p in command.params if isinstance(p, click.Option))


def test_an_option_is_spelt_and_typed_alike_wherever_it_is():
    shapes: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for _, option in options():
        for name in set(option.opts) & set(SHARED):
            shapes[name].add((repr(option.type), *option.opts))
    assert {name: len(found) for name, found in shapes.items()} == dict.fromkeys(shapes, 1)


def test_what_is_the_same_is_said_in_the_same_words():
    words: dict[str, set[str | None]] = defaultdict(set)
    for path, option in options():
        for name in set(option.opts) & {"--json", "--wait", "--agents-max", "--no-run"}:
            if path[-1] not in LISTS:
                words[name].add(option.help)
    assert {name: len(found) for name, found in words.items()} == dict.fromkeys(words, 1)


def test_every_command_and_every_option_is_explained_in_a_sentence():
    for path, command in commands(root):
        text = command.get_short_help_str(500)
        assert text, path
        assert text[0].isupper(), path
    for path, option in options():
        assert option.help, (path, option.opts)
        assert option.help.endswith((".", "…")), (path, option.opts, option.help)
        assert option.help[0].isupper(), (path, option.opts, option.help)


def test_every_way_of_running_agents_can_wait_for_a_usage_limit():
    having = {path for path, option in options() if "--wait" in option.opts}
    for path in (("run",), ("resume",), ("cycle", "start"), ("task", "run"), ("generate", "run")):
        assert path in having
    assert ("feature", "run") in having
    assert ("review", "start") in having
