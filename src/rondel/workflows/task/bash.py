"""Bash: a command as a tree, read by tree-sitter's grammar, and as words that may hold values.

A reference `[name]` is no bash, so it is masked by letters of the same length before the text is
read: whatever stands at a place in the tree stands at the same place in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum, auto
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

DEPTH_MAX = 150  # of a tree; nobody writes that, and a reader of trees must not run out of stack
BYTES_MAX = 8_000  # for twice as much text that is no bash, the parser takes four times as long
EXPANSIONS = frozenset(("simple_expansion", "expansion"))
_SUBSTITUTIONS = ("command_substitution", "process_substitution")
_ON_ONE_LINE = frozenset(
    (
        *("command", "concatenation", "declaration_command", "unset_command"),
        *("variable_assignments", "file_redirect"),
    )
)
_WORDS = frozenset(("word", "number", "variable_name", "file_descriptor", "test_operator", "extglob_pattern"))
_LIST = re.compile(r"\$@|\$\{@|\$\{!?\w+\[@\]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_DOUBLE = re.compile(r'\\([$`"\\\n])')
_BROKEN_WORD = re.compile(r"[^\s;&|<>()]\\\n\S")  # the grammar makes two of it, bash one


class Quote(Enum):
    """The quotes a reference stands in."""

    NONE = auto()
    SINGLE = auto()
    ANSI = auto()
    DOUBLE = auto()
    HERE = auto()


_QUOTES = {
    "raw_string": Quote.SINGLE,
    "ansi_c_string": Quote.ANSI,
    "string": Quote.DOUBLE,
    "heredoc_body": Quote.HERE,
}


@dataclass(frozen=True)
class Reference:
    """A value's place in a text."""

    start: int
    end: int
    name: str


@dataclass(frozen=True)
class Tree:
    """A command as a tree. `text` has letters where its references stand."""

    text: str
    root: Node
    references: tuple[Reference, ...]

    def of(self, node: Node) -> str:
        """The text of a node."""
        return self.text[node.start_byte : node.end_byte]

    def within(self, node: Node) -> list[Reference]:
        """The references in a node."""
        return [r for r in self.references if node.start_byte <= r.start and r.end <= node.end_byte]

    def at(self, reference: Reference) -> Node:
        """The smallest node that a reference stands in."""
        return self.root.descendant_for_byte_range(reference.start, reference.end) or self.root


def parse(text: str, references: Sequence[Reference]) -> Tree | None:
    """A command as a tree; None where it is no bash that the grammar knows."""
    if len(text) > BYTES_MAX:
        return None
    masked = "".join(char if char.isascii() else "x" for char in text)
    for reference in references:
        letters = "R" + "x" * (reference.end - reference.start - 2) + "R"
        masked = masked[: reference.start] + letters + masked[reference.end :]
    if "\0" in masked or _BROKEN_WORD.search(masked):
        return None
    root = _parser().parse(masked.encode()).root_node
    if root.has_error or _is_deep(root) or any(_spans_lines(masked, node) for node in descendants(root)):
        return None
    return Tree(masked, root, tuple(references))


@cache
def _parser() -> Parser:
    # Imported when the first command with a reference is read: every other command starts without it.
    import tree_sitter  # noqa: PLC0415
    import tree_sitter_bash  # noqa: PLC0415

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _is_deep(root: Node) -> bool:
    level = [root]
    for _ in range(DEPTH_MAX):
        level = [child for node in level for child in node.children]
        if not level:
            return False
    return True


def _spans_lines(text: str, node: Node) -> bool:
    """Whether one simple command has words on two lines: the grammar joins them before a backslash."""
    if node.type in _WORDS:
        return "\n" in text[node.start_byte : node.end_byte].replace("\\\n", "")
    if node.type not in _ON_ONE_LINE:
        return False
    gaps = (text[a.end_byte : b.start_byte] for a, b in pairwise(node.children))
    return any("\n" in gap.replace("\\\n", "") for gap in gaps)


def descendants(node: Node) -> Iterator[Node]:
    """A node and everything below it, from left to right."""
    yield node
    for child in node.children:
        yield from descendants(child)


def ancestors(node: Node) -> Iterator[Node]:
    """A node and everything above it."""
    here: Node | None = node
    while here is not None:
        yield here
        here = here.parent


def quote(node: Node) -> Quote:
    """The quotes that surround a place."""
    for above in ancestors(node):
        if above.type in _QUOTES:
            return _QUOTES[above.type]
        if above.type in _SUBSTITUTIONS:
            break
    return Quote.NONE


def word(node: Node) -> Node:
    """The whole word that a place belongs to."""
    found = node
    for above in ancestors(node):
        if above.type in ("concatenation", "string", "word", *_QUOTES):
            found = above
        elif above.type in _SUBSTITUTIONS:
            break
    return found


def literal(tree: Tree, node: Node) -> str | None:
    """What a word is, its quotes removed; None where the shell may put something else in its place."""
    if tree.within(node) or is_pattern(tree, node):
        return None
    if node.type in ("concatenation", "command_name"):
        parts = [literal(tree, child) for child in node.children]
        return None if None in parts else "".join(filter(None, parts))
    text = tree.of(node)
    if node.type == "raw_string":
        return text[1:-1]
    if node.type == "ansi_c_string":
        return text[2:-1] if "\\" not in text else None
    if node.type == "string":
        static = all(child.type in ('"', "string_content", "$") for child in node.children)
        return _ESCAPED_IN_DOUBLE.sub(_unescaped, text[1:-1]) if static else None
    if node.type in _WORDS or not node.is_named:
        return _ESCAPED.sub(_unescaped, text) if not node.named_children else None
    return None


def _unescaped(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def is_pattern(tree: Tree, node: Node) -> bool:
    """Whether a word is a pattern, a list in braces or a home folder outside all quotes."""
    if node.type == "brace_expression":
        return True
    parts = node.children if node.type in ("concatenation", "command_name") else [node]
    bare = "".join(_ESCAPED.sub("x", tree.of(p)) if p.type in _WORDS else "x" for p in parts)
    if any(p.type == "brace_expression" for p in parts) or bare.startswith("~"):
        return True
    return bare not in ("[", "]") and re.search(r"[*?\[]|^[^{]*+\{(?s:.)*?(?:,|\.\.)", bare) is not None


def redirects(node: Node) -> list[Node]:
    """The redirections of a node itself."""
    return [child for child in node.children if child.type.endswith("_redirect")]


def is_arithmetic(tree: Tree, node: Node | None) -> bool:
    """Whether names are variables in a node, and assignments are of numbers."""
    return node is not None and (
        node.type == "c_style_for_statement"
        or (node.type == "compound_statement" and tree.of(node).startswith("(("))
    )


def operator(tree: Tree, redirect: Node) -> str:
    """The sign of a redirection."""
    return "".join(tree.of(c) for c in redirect.children if not c.is_named)


def pieces(part: Node) -> list[Node]:
    """A word in its pieces, those of a string by themselves."""
    if part.type in ("concatenation", "string", "command_name", "translated_string"):
        return [piece for child in part.children for piece in pieces(child)]
    return [part]


# -- the words of a command, and what is known of the values in them ----------------------


class How(IntEnum):
    """What became of a value on its way: it is whole, only split into words, or changed in any way."""

    WHOLE = 0
    WORDS = 1
    CHANGED = 2


class Held(NamedTuple):
    """A value that may be somewhere."""

    name: str
    how: How


Taint = frozenset[Held]
NONE: Taint = frozenset()


def changed(taint: Iterable[Held], how: How = How.CHANGED) -> Taint:
    """The same values, no less changed than that."""
    return frozenset(Held(held.name, max(held.how, how)) for held in taint)


@dataclass(frozen=True)
class Word:
    """A word of a command."""

    text: str | None  # what it is; None where the shell puts something in its place
    head: str  # what is known of its beginning
    many: bool = False  # it may become none or several
    taint: Taint = NONE  # the values in it
    first: Taint = NONE  # the values that it may begin with
    is_computed: bool = False  # it may be an option that is not written out


def taints(words: Iterable[Word]) -> Taint:
    """The values in any of these words."""
    return NONE.union(*(w.taint for w in words))


class Input(NamedTuple):
    """What a command may read besides its words."""

    reaches: bool  # its standard input, or something that it keeps or reads, may hold a value
    written: frozenset[str]  # files of plain text that hold a value
    any_file: bool  # any file may hold one
    made: frozenset[str] = frozenset()  # files that the script itself writes, whatever they hold

    def is_written(self, word: Word) -> bool:
        """Whether a word may name a file that holds a value."""
        if word.text is None:
            return bool(self.written)
        return bool(self.written.intersection(re.split(r"[/=:,]", word.text)))


def command(tree: Tree, node: Node) -> tuple[list[Node], list[Word]]:
    """The words of a command, and of the here-document's line where the grammar puts them."""
    name = node.child_by_field_name("name")
    parts = [*([name] if name is not None else ()), *node.children_by_field_name("argument")]
    above = node.parent
    found = redirects(node)
    if above is not None and above.type == "redirected_statement":
        found += redirects(above)
    for redirect in found:
        if redirect.type == "file_redirect":  # the grammar takes `>&2 a b` for one target
            parts += redirect.children_by_field_name("destination")[1:]
        elif redirect.type == "heredoc_redirect":
            parts += redirect.children_by_field_name("argument")
    parts = [p for p in parts if not _is_descriptor(tree, p)]
    return parts, [Word(literal(tree, part), _head(tree, part), is_many(tree, part)) for part in parts]


def _is_descriptor(tree: Tree, part: Node) -> bool:
    """Whether the grammar takes the number of a redirection for a word: `sh 0< file`."""
    return tree.of(part).isdecimal() and tree.text[part.end_byte : part.end_byte + 1] in ("<", ">")


def _head(tree: Tree, part: Node) -> str:
    """What is known of a word's beginning: up to its first value or expansion."""
    text = tree.of(part)
    stops = [r.start - part.start_byte for r in tree.within(part)]
    stops += [m.start() for m in re.finditer(r"[$`*?{]|<\(", text)]
    return re.sub(r"[\\'\"]", "", text[: min(stops, default=len(text))])


def is_many(tree: Tree, part: Node) -> bool:
    """Whether a word may become none or several."""
    return is_pattern(tree, part) or any(
        n.type in (*EXPANSIONS, "command_substitution")
        and (not _in_quotes(n) or _LIST.match(tree.of(n)) is not None)
        for n in descendants(part)
    )


def _in_quotes(node: Node) -> bool:
    """Whether an expansion gives one word: it stands in double quotes or a text, not in a list."""
    return node.parent is not None and quote(node.parent) in (Quote.DOUBLE, Quote.HERE)
