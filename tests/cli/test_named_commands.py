"""Every command that a message names is one that can be typed: its words, its options, what it needs."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.cli.main import root
from rondel.model.actions import Decide
from rondel.model.summary import OWN_WORDS, answering, command_line

SOURCE = Path(__file__).parents[2] / "src/rondel"
ANY = "1"  # stands for a value that is not known here: as good a name as a number


def strings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Every text of a module that a person may read, with `ANY` for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        parts = (p.value if isinstance(p, ast.Constant) else ANY for p in node.values)
        yield node.lineno, "".join(str(p) for p in parts)
        nested = [p.value for p in node.values if isinstance(p, ast.FormattedValue)]
    else:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        nested = list(ast.iter_child_nodes(node))
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(node):
            nested.remove(node.body[0])
    for inner in nested:
        yield from strings(inner)


def built(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Every command line that a module builds."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "command_line":
            words = []
            for word in call.args:
                if isinstance(word, ast.Constant):
                    words.append(str(word.value))
                elif not isinstance(word, ast.Starred):
                    words.append(ANY)
            yield call.lineno, shlex.join(["rondel", *words])


def named() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        if path.name == "commands.py" and path.parent.name == "model":
            continue
        tree = ast.parse(path.read_text())
        found = [(n, c) for n, text in strings(tree) for c in re.findall(r"`(rondel [^`]+)`", text)]
        for line, command in sorted({*found, *built(tree)}):
            yield f"{path.relative_to(SOURCE)}:{line}", command


def parse(command: str) -> None:
    """As the command line would; what is not known here may be any value."""
    words, group, path = shlex.split(command)[1:], root, "rondel"
    while isinstance(group, click.Group):
        ctx = click.Context(group, info_name=path)
        there = group.list_commands(ctx)
        first = words[0] if words else ""
        if first == ANY and first not in there:
            return  # the command itself is filled in
        if first not in there and "start" in there and path.endswith("review"):
            words, first = ["start", *words], "start"
        assert first in there, f"{path} has no command {first!r}"
        group, words, path = group.get_command(ctx, first), words[1:], f"{path} {first}"
    group.make_context(path, words)


@pytest.mark.parametrize(("where", "command"), list(named()))
def test_a_command_that_a_message_names_can_be_typed(where, command):
    try:
        parse(command)
    except click.ClickException as e:
        pytest.fail(f"{where}: `{command}`: {e.format_message()}")


def test_what_is_wrong_with_a_command_is_found():
    assert len(list(named())) > 60
    for wrong in (
        "rondel no",
        "rondel task no",
        "rondel resume --no",
        "rondel cycle start",
        "rondel show a b c",
    ):
        with pytest.raises((AssertionError, click.ClickException)):
            parse(wrong)


@given(st.lists(st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0"))))
def test_a_shell_takes_a_command_line_as_its_words(words):
    words = [w for w in words if w != OWN_WORDS]
    assert shlex.split(command_line(*words)) == ["rondel", *words]


@given(
    st.lists(st.sampled_from([("approve", "reject"), ("reject",), ("continue", "fresh")]), min_size=1),
    st.sampled_from([(), ("generate",)]),
)
def test_the_command_that_answers_gives_an_answer_that_the_question_takes(kinds, group):
    questions = [Decide(f".rondel/decisions/{n}", "?", options) for n, options in enumerate(kinds)]
    command = answering(group, "generate:a b", questions)
    parse(command)
    words = shlex.split(command)
    given_ = words[words.index("--option") + 1] if "--option" in words else words[1 + len(group)]
    assert given_ in questions[0].options
    assert ("--on" in words) == (len(questions) > 1)
