"""Quoting: a value in a bash command stays one piece of text, wherever its reference stands.

`compile_command` replaces each `[name]` by the expansion of a shell variable, written for
the quotes it stands in. The shell never parses what an expansion gives, so a value cannot
become code, whatever it holds; were the quotes misjudged, the text would arrive changed,
not executed. Where a shell or a program would evaluate the text again, the command is
refused (see `hazards`).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING, NamedTuple

from rondel.workflows.task.bash import (
    Quote,
    Reference,
    Tree,
    ancestors,
    descendants,
    parse,
    quote,
    word,
)
from rondel.workflows.task.brackets import REFERENCE, Place, is_reference
from rondel.workflows.task.hazards import Option, inspect

if TYPE_CHECKING:
    from tree_sitter import Node

VARIABLE = "RONDEL_VAR_"
_AROUND = {
    Quote.NONE: '"${%s}"',
    Quote.SINGLE: "'\"${%s}\"'",
    Quote.ANSI: "'\"${%s}\"$'",
    Quote.DOUBLE: "${%s}",
    Quote.HERE: "${%s}",
}
_UNREADABLE = "cannot be read as bash, so no value can be put into it; write it more simply"


class Script(NamedTuple):
    """A command that is ready for bash once the variables of `names` are set, in their order."""

    text: str
    names: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    options: frozenset[Option] = frozenset()  # values that must not begin with `-`


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


def compile_command(
    command: str, known: Container[str], first: int = 0, exported: Container[str] = ()
) -> Script:
    """`command` for bash, its references to `known` names replaced by expansions.

    The variables are numbered from `first`. `exported` are values that the command finds in its
    environment: they may stand anywhere but where text is evaluated.
    """
    found = [Reference(m.start(), m.end(), m[1]) for m in REFERENCE.finditer(command)]
    if not found and not _mentions(command, exported):
        return Script(command)
    tree = parse(command, found)
    if tree is None:
        return _unreadable(command, found, known)
    meant = [r for r in found if _is_meant(command, tree, r, known)]
    unknown = [
        f"there is no variable [{r.name}]; write \\[{r.name}] where the brackets are meant as they stand"
        for r in meant
        if r.name not in known
    ]
    if unknown:
        return Script(command, problems=tuple(dict.fromkeys(unknown)))
    tree = parse(command, meant)
    if tree is None:
        return _unreadable(command, meant, known)
    report = inspect(tree, exported)
    if report.problems:
        return Script(command, problems=report.problems)
    names = tuple(dict.fromkeys(r.name for r in meant))
    variables = {name: f"{VARIABLE}{first + number}" for number, name in enumerate(names)}
    return Script(_rewritten(command, tree, variables), names, (), report.options)


def _mentions(command: str, exported: Container[str]) -> bool:
    """Whether a command uses a variable of its environment that holds a value."""
    bare = r"|\b(\w+)" if re.search(r"\(\(|\$\[|\[\[|\$\{!|\b(let|printenv)\b", command) else ""
    found = re.findall(rf"\$\{{?\W?(\w+){bare}", command)
    return any(name in exported for names in found for name in ([names] if not bare else names))


def _unreadable(command: str, found: list[Reference], known: Container[str]) -> Script:
    """Without a tree nothing of a known name can be left in: it may be a value."""
    names = [r.name for r in found if r.name in known]
    return Script(command, problems=(f"the command with [{names[0]}] {_UNREADABLE}",) if names else ())


def _is_meant(command: str, tree: Tree, reference: Reference, known: Container[str]) -> bool:
    """Whether brackets stand for a value, and are not bash or a comment."""
    node = tree.at(reference)
    above = list(ancestors(node))
    if any(n.type == "comment" for n in above):
        return False
    found = REFERENCE.match(command, reference.start)
    if found is None:
        return False
    bare = quote(node) is Quote.NONE
    whole = word(node)
    return is_reference(
        Place(
            command,
            found,
            bare=bare,
            word_start=whole.start_byte if bare else None,
            in_array=bare and any(n.type == "array" for n in above),
            in_pattern=any(_is_pattern(tree, n, whole) for n in above),
            in_code=any(_is_code(tree, n) for n in above),
        ),
        known,
    )


def _is_pattern(tree: Tree, above: Node, whole: Node) -> bool:
    """Whether bash expects a pattern in a part of this node: [[ … ]] and case."""
    if above.type == "test_command":
        return tree.of(above).startswith("[[")
    return above.type == "case_item" and whole in above.children_by_field_name("value")


def _is_code(tree: Tree, above: Node) -> bool:
    """Whether names are variables in a node: ${…} and arithmetic."""
    if above.type in ("expansion", "arithmetic_expansion", "subscript"):
        return True
    return above.type == "compound_statement" and tree.of(above).startswith("((")


def _rewritten(command: str, tree: Tree, variables: dict[str, str]) -> str:
    edits = list(_edits(tree, variables))
    taken = {e.start for e in edits}
    for node in descendants(tree.root):
        if not tree.within(node):
            continue
        if node.type == "heredoc_redirect":
            edits += [e for e in _here(tree, node) if e.start not in taken]
        elif node.type == "command_substitution" and tree.of(node).startswith("`"):
            edits += [
                _Edit(node.start_byte, node.start_byte + 1, "$("),
                _Edit(node.end_byte - 1, node.end_byte, "\n)"),
            ]
    text = command
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _edits(tree: Tree, variables: dict[str, str]) -> Iterator[_Edit]:
    for reference in tree.references:
        around = _AROUND[quote(tree.at(reference))]
        yield _Edit(reference.start, reference.end, around % variables[reference.name])


def _here(tree: Tree, redirect: Node) -> Iterator[_Edit]:
    """A quoted here-document becomes one in which the shell expands, all else in it escaped."""
    parts = {child.type: child for child in redirect.children}
    start, body, end = (parts.get(f"heredoc_{part}") for part in ("start", "body", "end"))
    if start is None or body is None or end is None or not tree.within(body):
        return
    if not re.search(r"['\"\\]", tree.of(start)):
        return
    closing = f"{VARIABLE}END"
    while closing in tree.of(body):
        closing += "_"
    yield _Edit(start.start_byte, start.end_byte, closing)
    yield _Edit(end.start_byte, end.end_byte, closing)
    for found in re.finditer(r"[\\$`]", tree.of(body)):
        at = body.start_byte + found.start()
        yield _Edit(at, at + 1, f"\\{found[0]}")
