"""What `[name]` stands for in the commands and texts of a task, and how its value gets there.

A name is the output of an earlier step, or a property of the task, also by a dotted path. In a
command `compile_command` replaces each reference by the expansion of a shell variable, written for
the quotes it stands in. The shell never parses what an expansion gives, so a value cannot become
code, whatever it holds; were the quotes misjudged, the text would arrive changed, not executed.
Where a shell or a program would evaluate the text again, the command is refused (see `hazards`).
A value travels on the standard input of the script, so its size is bounded by nothing and it never
stands in a process list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rondel.workflows.task.bash import Quote, Reference, Tree, ancestors, descendants, parse, quote, word
from rondel.workflows.task.hazards import Option, inspect
from rondel.workflows.task.programs import PROPERTIES

if TYPE_CHECKING:
    from tree_sitter import Node

EXPORTED = PROPERTIES  # lists are separated by spaces
ALWAYS = (
    *EXPORTED,
    *("inherited", "inherited.from", "inherited.context", "shared_context"),
)  # what every task has, if only empty
ENVIRONMENT_MAX = 32_000  # bytes of one environment variable; the system allows 128 KB
# What may become an option: also behind what `read` and `xargs` take away, or as a pattern for a file name.
_BEGINS_A_WORD = re.compile(r"(^|[\s\\'\"])([-*?\[]|[+@!]\()")
_LEAVES = re.compile(r"(^|[\s/])\.\.(/|\s|$)")
INDEX_DIGITS = 9  # of a place in a list
REFERENCE = re.compile(r"\[([A-Za-z_][\w-]*(?:\.[\w-]+)*)\]")
VARIABLE = "RONDEL_VAR_"
_AROUND = {
    Quote.NONE: '"${%s}"',
    Quote.SINGLE: "'\"${%s}\"'",
    Quote.ANSI: "'\"${%s}\"$'",
    Quote.DOUBLE: "${%s}",
    Quote.HERE: "${%s}",
}
_UNREADABLE = "cannot be read as bash, so no value can be put into it; write it more simply"
_PAIR_MAX = 2
_ENDS_WORD = " \t\n;&|<>()"


@dataclass(frozen=True)
class Variables:
    """The names a task's steps may refer to, and what they stand for."""

    properties: Mapping[str, object]
    outputs: Mapping[str, str]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.value(name) is not None

    def value(self, name: str, separator: str = " ") -> str | None:
        """What a name stands for; None for an unknown one. Outputs come before properties."""
        if name in self.outputs:
            return clean(self.outputs[name])
        found: object = self.properties
        for part in name.split("."):
            found = _member(found, part)
            if found is None:
                return "" if name in ALWAYS else None
        return clean(as_text(found, separator))

    def environment(self) -> dict[str, str]:
        """The properties as environment variables; lists are separated by spaces."""
        values = {name: self.value(name) or "" for name in EXPORTED}
        return {n: v for n, v in values.items() if len(v.encode()) <= ENVIRONMENT_MAX}

    def fill(self, text: str) -> str:
        """A text for an agent, its references replaced; what is unknown stays as it stands."""

        def replace(found: re.Match[str]) -> str:
            value = self.value(found[1], ", ")
            return found[0] if value is None else value

        return REFERENCE.sub(replace, text)


def _member(value: object, name: str) -> object:
    if isinstance(value, Mapping):
        return value.get(name)
    if isinstance(value, list) and name.isdecimal() and len(name) <= INDEX_DIGITS and int(name) < len(value):
        return value[int(name)]
    return None


def as_text(value: object, separator: str = " ") -> str:
    """A JSON value as text: a list of plain values is separated, anything deeper is JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and not any(isinstance(v, list | dict) for v in value):
        return separator.join(as_text(v) for v in value)
    return json.dumps(value, ensure_ascii=False)


def clean(text: str) -> str:
    """A text that a shell can hold: without NUL, and without half characters."""
    return text.replace("\0", "").encode(errors="replace").decode()


@dataclass(frozen=True)
class Prepared:
    """A script for `bash -c` and its standard input, or why it cannot run."""

    command: str = ""
    stdin: str = ""
    problem: str = ""


def prepare(commands: tuple[str, ...], variables: Variables) -> Prepared:
    """Commands, each in a shell of its own, the next only after the success of the one before."""
    names: list[str] = []
    scripts: list[Script] = []
    for command in commands:
        script = compile_command(command, variables, first=len(names), exported=EXPORTED)
        names += script.names
        scripts.append(script)
    problems = [p for s in scripts for p in s.problems]
    problems += [w for s in scripts for o in sorted(s.options) if (w := _taken_for_option(o, variables))]
    if problems:
        return Prepared(problem="; ".join(dict.fromkeys(problems)))
    values = [variables.value(name) or "" for name in names]
    return Prepared(_head(len(names)) + _body(scripts), "".join(f"{v}\0" for v in values))


def _taken_for_option(option: Option, variables: Variables) -> str:
    """Why a value cannot stand where a program would take it for an option; empty when it can."""
    value = variables.value(option.name) or ""
    if option.stays:
        return f"[{option.name}] leaves the folder before it, for {option.program}" * bool(
            _LEAVES.search(value)
        )
    begins = _BEGINS_A_WORD.search(value) is not None if option.splits else value.startswith("-")
    if not begins:
        return ""
    what = "or has a pattern in it, " if option.splits else ""
    return (
        f'[{option.name}] begins with "-", {what}and {option.program} would take it for an option; '
        "put -- before it"
    )


def _head(count: int) -> str:
    """The lines that set the variables from the standard input."""
    if not count:
        return ""
    lines = [f"IFS= read -r -d '' {VARIABLE}{n}" for n in range(count)]
    return "\n".join([*lines, "exec </dev/null", ""])


def _body(scripts: list[Script]) -> str:
    if len(scripts) == 1:
        return scripts[0].text
    return " || exit\n".join(f"(\n{script.text}\n)" for script in scripts)


# -- one command ------------------------------------------------------------------------


class Script(NamedTuple):
    """A command that is ready for bash once the variables of `names` are set, in their order."""

    text: str
    names: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    options: frozenset[Option] = frozenset()  # values that must not begin with `-`


class _Replacement(NamedTuple):
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
    problems, options = inspect(tree, exported)
    if problems:
        return Script(command, problems=problems)
    names = tuple(dict.fromkeys(r.name for r in meant))
    variables = {name: f"{VARIABLE}{first + number}" for number, name in enumerate(names)}
    return Script(_rewritten(command, tree, variables), names, (), options)


def _mentions(command: str, exported: Container[str]) -> bool:
    """Whether a command uses a variable of its environment that holds a value."""
    bare = r"|\b(\w+)" if re.search(r"\(\(|\$\[|\[\[|\$\{!|\b(let|printenv)\b", command) else ""
    found = re.findall(rf"(?=\$\{{?\W?(\w+))|(?i:env)\w*\W{{1,3}}(\w+){bare}", command)
    return any(name in exported for names in found for name in names)


def _unreadable(command: str, found: list[Reference], known: Container[str]) -> Script:
    """Without a tree nothing of a known name can be left in: it may be a value."""
    names = [r.name for r in found if r.name in known]
    return Script(command, problems=(f"the command with [{names[0]}] {_UNREADABLE}",) if names else ())


def _is_meant(command: str, tree: Tree, reference: Reference, known: Container[str]) -> bool:
    """Whether brackets stand for a value, and are not bash or a comment.

    A known name is a reference everywhere but where bash wants a subscript. An unknown one is
    taken for a mistake, and not for bash, unless it can only be a pattern, a subscript or a link.
    """
    node = tree.at(reference)
    above = list(ancestors(node))
    head, rest = command[: reference.start], command[reference.end :]
    is_escaped = (len(head) - len(head.rstrip("\\"))) % 2 == 1
    if is_escaped or any(n.type == "comment" for n in above):
        return False
    before, after, name = head[-1:], rest[:1], reference.name
    if any(_is_code(tree, n) for n in above) and _is_word(before):
        return False
    whole, is_bare = word(node), quote(node) is Quote.NONE
    if is_bare and _is_subscript(
        head[whole.start_byte :], rest, in_array=any(n.type == "array" for n in above)
    ):
        return False
    if name in known:
        return True
    if "-" in name or _is_word(before) or before in ("]", ")", "$"):
        return False
    if not is_bare:
        return _could_be_quoted(name, before, after)
    ends = not after or after in _ENDS_WORD
    alone = ends and whole.start_byte == reference.start
    return not any(_is_pattern(tree, n, whole) for n in above) and (alone or not _is_class(name))


def _is_subscript(head: str, rest: str, *, in_array: bool) -> bool:
    """Whether this is a subscript on the left side of an assignment, or in an array."""
    if in_array and rest.startswith("="):
        return True
    return re.fullmatch(r"\w+", head) is not None and re.match(r"\+?=", rest) is not None


def _could_be_quoted(name: str, before: str, after: str) -> bool:
    """Not a link, and not a set of characters in a regular expression."""
    repeated = after != "" and after in "*+{"
    expression = _is_class(name) and (before == "^" or repeated)
    idiom = len(name) <= _PAIR_MAX and _is_word(after)  # grep '[s]shd'
    return not expression and not idiom and after != "("


def _is_class(name: str) -> bool:
    """Whether a name reads like a set of characters: one or two of them, or ascending ones."""
    return len(name) <= _PAIR_MAX or all(a < b for a, b in pairwise(name))


def _is_word(char: str) -> bool:
    """Whether a character may be part of a name."""
    return char.isalnum() or char == "_"


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
                _Replacement(node.start_byte, node.start_byte + 1, "$("),
                _Replacement(node.end_byte - 1, node.end_byte, "\n)"),
            ]
    text = command
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _edits(tree: Tree, variables: dict[str, str]) -> Iterator[_Replacement]:
    for reference in tree.references:
        around = _AROUND[quote(tree.at(reference))]
        yield _Replacement(reference.start, reference.end, around % variables[reference.name])


def _here(tree: Tree, redirect: Node) -> Iterator[_Replacement]:
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
    yield _Replacement(start.start_byte, start.end_byte, closing)
    yield _Replacement(end.start_byte, end.end_byte, closing)
    for found in re.finditer(r"[\\$`]", tree.of(body)):
        at = body.start_byte + found.start()
        yield _Replacement(at, at + 1, f"\\{found[0]}")
