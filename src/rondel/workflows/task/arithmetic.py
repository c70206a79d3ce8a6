"""Arithmetic: bash evaluates every name in it, and what the name holds, so only numbers may stand there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rondel.workflows.task.bash import EXPANSIONS
from rondel.workflows.task.flows import Flow

if TYPE_CHECKING:
    from tree_sitter import Node

_NUMBER = re.compile(r"-?\d+|\{-?\d+\.\.-?\d+\}")
_OF_BASH = frozenset(
    ("#", "?", "$", "!", "RANDOM", "SECONDS", "LINENO", "UID", "EUID", "PPID", "EPOCHSECONDS")
)
_VARIABLE = re.compile(r"\$\{?(\w+|[#?$!])\}?")
_COUNTING = re.compile(
    r"\$\(([^;&\n]*\|\s*)?(wc -[lwcm]( *<\s*[\w./$\"-]+)?|seq( \d+)+|nproc|date \+%s)\s*\)"
)


class Numbers:
    """The variables of a script that can hold nothing but a number."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self._known = flow.assigned - {name for name, taint in flow.held.items() if taint}
        before = None
        while before != self._known:
            before = self._known
            self._known -= {
                a.variable
                for a in flow.assignments
                if a.values is None or not all(self._is_number(value) for value in a.values)
            }

    def _is_number(self, node: Node) -> bool:
        text = self._flow.tree.of(node)
        if node.type in ("array", "string"):
            return text in ("()", '""') or (
                bool(node.named_children) and all(map(self._is_number, node.named_children))
            )
        if node.type == "command_substitution":
            return _COUNTING.fullmatch(text) is not None
        variable = _VARIABLE.fullmatch(text)
        if variable is not None:
            return variable[1] in self._known or variable[1] in _OF_BASH - self._flow.assigned
        plain = node.type == "arithmetic_expansion" or text.startswith("${#") or _NUMBER.fullmatch(text)
        return bool(plain) and not self._flow.tree.within(node)

    def has(self, variable: str) -> bool:
        """Whether arithmetic may use a variable: a number, or one that only the environment sets."""
        elsewhere = variable not in self._flow.assigned | self._flow.of_outer
        return variable in self._known or (elsewhere and not self._flow.variable(variable))

    def stranger(self, node: Node) -> str:
        """What in a piece of arithmetic is not known to be a number; empty where all is."""
        text = self._flow.tree.of(node)
        if self._flow.tree.within(node):
            return "a value"
        if node.type in EXPANSIONS:
            name = _VARIABLE.fullmatch(text)
            fine = name is not None and not name[1].isdecimal() and self.has(name[1])
            return "" if fine or text.startswith("${#") else text
        if node.type == "command_substitution":
            return "" if self._is_number(node) else text
        if node.children:
            return next(filter(None, map(self.stranger, node.children)), "")
        return next((n for n in re.findall(r"(?<!\w)[^\W\d]\w*", text) if not self.has(n)), "")
