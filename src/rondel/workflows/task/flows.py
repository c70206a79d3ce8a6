"""Flows: which values a piece of a command may hold, also by way of a variable of the shell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from rondel.workflows.task.bash import Tree, descendants, literal

if TYPE_CHECKING:
    from tree_sitter import Node

Names = frozenset[str]
NONE: Names = frozenset()
_READING = frozenset(("read", "mapfile", "readarray", "getopts", "select"))
_POSITIONAL = re.compile(r"[0-9@*_]+|REPLY|MAPFILE|OPTARG|COPROC|BASH_ARGV|BASH_REMATCH")
_ARGUMENTS = "@"  # stands for all that a script, a function or the shell itself fills in
_ROUNDS_MAX = 50


@dataclass
class Flow:
    """What the variables of a script may hold: the names of references, by variable."""

    tree: Tree
    outer: Mapping[str, Names] = field(default_factory=dict)
    held: dict[str, Names] = field(default_factory=dict)

    def __post_init__(self) -> None:
        everything = frozenset(r.name for r in self.tree.references)
        self.held = dict(self.outer)
        self.held[_ARGUMENTS] = self.held.get(_ARGUMENTS, NONE) | everything
        steps = list(self._steps(self.tree.root))
        for _ in range(_ROUNDS_MAX):
            before = dict(self.held)
            for variable, given in steps:
                self._add(variable, self.sources(given) if given is not None else self._everything())
            if before == self.held:
                return
        for variable, _ in steps:
            self._add(variable, self._everything())

    def _everything(self) -> Names:
        return frozenset(chain.from_iterable(self.held.values()))

    def _add(self, variable: str, names: Names) -> None:
        if names:
            self.held[variable] = self.held.get(variable, NONE) | names

    def _steps(self, root: Node) -> Iterator[tuple[str, Node | None]]:
        """Each way in which a variable gets what it holds; None: from anywhere."""
        for node in descendants(root):
            if node.type == "variable_assignment":
                name = node.child_by_field_name("name")
                if name is not None:
                    yield self._variable(name), node.child_by_field_name("value") or name
            elif node.type == "for_statement":
                name = node.child_by_field_name("variable")
                for given in node.children_by_field_name("value"):
                    if name is not None:
                        yield self.tree.of(name), given
            elif node.type == "command":
                yield from self._commands(node)

    def _commands(self, node: Node) -> Iterator[tuple[str, Node | None]]:
        name = node.child_by_field_name("name")
        words = [literal(self.tree, a) for a in node.children_by_field_name("argument")]
        plain = literal(self.tree, name) if name is not None else None
        if plain in _READING or (plain == "printf" and "-v" in words):
            for word in words:
                if word and re.fullmatch(r"\w+", word):
                    yield word, None

    def _variable(self, name: Node) -> str:
        return re.split(r"[\[+]", self.tree.of(name), maxsplit=1)[0]

    def variable(self, name: str) -> Names:
        """The values that a variable may hold."""
        return self.held.get(_ARGUMENTS if _POSITIONAL.fullmatch(name) else name, NONE)

    def sources(self, node: Node) -> Names:
        """The values that may be in what the shell makes of a node."""
        found = {r.name for r in self.tree.within(node)}
        for part in descendants(node):
            if part.type in ("simple_expansion", "expansion"):
                found |= self._expanded(part)
        return frozenset(found)

    def _expanded(self, part: Node) -> Names:
        if self.tree.of(part).startswith("${#"):
            return NONE  # a length
        for child in part.named_children:
            name = child.child_by_field_name("name") if child.type == "subscript" else child
            if name is not None and name.type in ("variable_name", "special_variable_name"):
                return self.variable(self.tree.of(name))
        return NONE

    def evaluated(self, node: Node) -> Names:
        """The values that are evaluated where a node is arithmetic: there each word is a variable."""
        if node.type in ("simple_expansion", "expansion"):
            return self.sources(node)
        found = {r.name for r in self.tree.within(node)}
        for child in node.children:
            found |= self.evaluated(child)
        if not node.children:
            words = re.findall(r"[^\W\d]\w*", self.tree.of(node))
            found |= {name for word in words for name in self.variable(word)}
        return frozenset(found)
