"""Hazards: the places of a command where a shell or another program evaluates its text again.

A value there would be code, however it is quoted, so it is refused there: itself, and a variable
of the shell that may hold it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rondel.workflows.task import programs
from rondel.workflows.task.bash import Reference, Tree, descendants, literal, parse, word
from rondel.workflows.task.flows import NONE, Flow, Names
from rondel.workflows.task.programs import Word

if TYPE_CHECKING:
    from tree_sitter import Node

_COMPARING = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_NAMING = frozenset(("-v", "-R"))
_EXPANDING = frozenset(("simple_expansion", "expansion", "command_substitution", "process_substitution"))
_OWN = re.compile(r"[^$'\"]")  # text besides quotes
_NESTED_MAX = 5
_WHERE = frozenset(
    (
        *("command", "command_name", "array", "case_statement", "case_item", "test_command", "subscript"),
        *("binary_expression", "unary_expression", "negated_expression", "parenthesized_expression"),
        *("herestring_redirect", "heredoc_redirect", "file_redirect", "declaration_command", "unset_command"),
        *(
            "expansion",
            "simple_expansion",
            "arithmetic_expansion",
            "ternary_expression",
            "compound_statement",
        ),
        *("c_style_for_statement", "postfix_expression"),
    )
)  # what of these is not for values is refused by its own rule


class Option(NamedTuple):
    """A value that stands at the beginning of a word which a program may take for an option."""

    name: str
    program: str
    splits: bool  # each word of the value would be one of the command's


@dataclass
class Report:
    """What is wrong with a command, and what depends on its values."""

    problems: tuple[str, ...] = ()
    options: frozenset[Option] = frozenset()


def inspect(tree: Tree, exported: Container[str]) -> Report:
    """Look at every place of a command where a value may stand."""
    variables = set(re.findall(r"\w+", tree.text))
    outer = {name: frozenset((name,)) for name in variables if name in exported}
    found = _Inspection(tree, Flow(tree, outer))
    found.all()
    return Report(tuple(dict.fromkeys(found.problems)), frozenset(found.options))


@dataclass
class _Inspection:
    tree: Tree
    flow: Flow
    depth: int = 0
    problems: list[str] = field(default_factory=list)
    options: set[Option] = field(default_factory=set)

    def _refuse(self, names: Names, what: str, advice: str) -> None:
        self.problems += [f"[{name}] stands in {what}; {advice}" for name in sorted(names)]

    def all(self) -> None:
        """Every value where it stands, and every node by its kind."""
        for reference in self.tree.references:
            if not self._may_stand(reference):
                self._refuse(
                    frozenset((reference.name,)), "a place where bash takes no value", "use it as an argument"
                )
        for node in descendants(self.tree.root):
            look = getattr(self, f"_{node.type}", None)
            if look is not None:
                look(node)

    def _may_stand(self, reference: Reference) -> bool:
        """Whether a value stands in a word of a command, right of an assignment, in a list or a text."""
        whole = word(self.tree.at(reference))
        above = whole.parent
        if above is None or whole.type in ("variable_name", "heredoc_start", "heredoc_end"):
            return False
        if above.type == "variable_assignment":
            return whole != above.child_by_field_name("name")
        if above.type in ("for_statement", "select_statement"):
            return whole != above.child_by_field_name("variable")
        return above.type in _WHERE

    # -- simple commands ----------------------------------------------------------------

    def _command(self, node: Node) -> None:
        parts, words = self._words(node)
        for at, part in enumerate(parts):
            names = self.flow.evaluated(part) if words[0].plain == "let" else self.flow.sources(part)
            what = programs.code(words, at) if names else ""
            if what:
                self._refuse(names, f"{what}, which evaluates it", "pass it as an argument of its own")
            elif names and (takes := programs.takes_as_option(words, at)) not in self._functions():
                self._may_be_option(part, takes)
        script = programs.script_word(words, only_bash=True)
        if script is not None and words[script].literal is not None:
            given = frozenset(n for part in parts[script + 1 :] for n in self.flow.sources(part))
            self._script(words[script].plain, given)

    def _functions(self) -> frozenset[str]:
        """The functions of the script, whose arguments are looked at where they are used; and nothing."""
        found = re.findall(r"([\w-]+)\s*\(\)|function\s+([\w-]+)", self.tree.text)
        return frozenset(("", *(name for pair in found for name in pair)))

    def _words(self, node: Node) -> tuple[list[Node], list[Word]]:
        """The words of a command, and of the here-document's line where the grammar puts them."""
        name = node.child_by_field_name("name")
        parts = [*([name] if name is not None else ()), *node.children_by_field_name("argument")]
        above = node.parent
        if above is not None and above.type == "redirected_statement":
            for redirect in above.children_by_field_name("redirect"):
                if redirect.type == "file_redirect":  # the grammar takes `>&2 a b` for one target
                    parts += redirect.children_by_field_name("destination")[1:]
                elif redirect.type == "heredoc_redirect":
                    parts += redirect.children_by_field_name("argument")
        return parts, [self._word(part) for part in parts]

    def _word(self, part: Node) -> Word:
        plain = literal(self.tree, part)
        return Word(plain, plain if plain is not None else self._head(part), bool(self.flow.sources(part)))

    def _head(self, part: Node) -> str:
        """What is known of a word's beginning: up to its first value or expansion."""
        text = self.tree.of(part)
        stops = [r.start - part.start_byte for r in self.tree.within(part)]
        stops += [m.start() for m in re.finditer(r"[$`]|<\(", text)]
        return re.sub(r"[\\'\"]", "", text[: min(stops, default=len(text))])

    def _may_be_option(self, part: Node, takes: str) -> None:
        """Note the values that a word may begin with: those before its first letter of its own."""
        for piece in _pieces(part):
            if piece.type in _EXPANDING:
                splits = piece.parent is None or piece.parent.type != "string"
                self.options |= {Option(name, takes, splits) for name in self.flow.sources(piece)}
                continue
            at = piece.start_byte
            for reference in self.tree.within(piece):
                if _OWN.search(self.tree.text[at : reference.start]):
                    return
                self.options.add(Option(reference.name, takes, splits=False))
                at = reference.end
            if _OWN.search(self.tree.text[at : piece.end_byte]):
                return

    def _script(self, text: str, given: Names) -> None:
        """A script for another shell, which finds values in its arguments and its environment."""
        held: Mapping[str, Names] = {**self.flow.held, "@": given | self.flow.held.get("@", NONE)}
        if not any(held.values()):
            return
        inner = parse(text, ())
        if inner is None or self.depth >= _NESTED_MAX:
            self._refuse(given, "a command for a script that cannot be read", "write the script more simply")
            return
        nested = _Inspection(inner, Flow(inner, held), self.depth + 1)
        nested.all()
        self.problems += nested.problems
        self.options |= nested.options

    # -- what the shell itself evaluates -------------------------------------------------

    def _arithmetic(self, node: Node) -> None:
        self._refuse(
            self.flow.evaluated(node), "arithmetic, which evaluates it", "compare it as text instead"
        )

    _arithmetic_expansion = _arithmetic

    def _c_style_for_statement(self, node: Node) -> None:
        for part in node.children:
            if part.type not in ("do_group", "compound_statement"):
                self._arithmetic(part)

    def _compound_statement(self, node: Node) -> None:
        if self.tree.of(node).startswith("(("):
            self._arithmetic(node)

    def _subscript(self, node: Node) -> None:
        index = node.child_by_field_name("index")
        if index is not None and self.tree.of(index) not in ("@", "*"):
            self._arithmetic(index)

    def _expansion(self, node: Node) -> None:
        text = self.tree.of(node)
        names = frozenset(r.name for r in self.tree.within(node))
        self._refuse(names, "${…}", "assign it to a variable of the shell first")
        held = self.flow.sources(node)
        if re.match(r"\$\{!\w+\}", text) or text.endswith("@P}"):
            self._refuse(held - names, f"{text}, which evaluates it", "write it without")
        if re.match(r"\$\{\w+(\[[^]]*\])?:[^-+=?]", text):
            for part in node.named_children[1:]:
                self._arithmetic(part)

    def _simple_expansion(self, node: Node) -> None:
        names = frozenset(r.name for r in self.tree.within(node))
        self._refuse(names, "the name of a variable", "write it without $")

    def _test_command(self, node: Node) -> None:
        for part in descendants(node):
            operator = part.child_by_field_name("operator")
            word = self.tree.of(operator) if operator is not None else ""
            if word in _NAMING or (word in _COMPARING and self.tree.of(node).startswith("[[")):
                names = self.flow.evaluated(part) if word in _COMPARING else self.flow.sources(part)
                self._refuse(names, f"a test by {word}, which evaluates it", "compare it as text instead")

    def _declaration_command(self, node: Node) -> None:
        words = [self.tree.of(child) for child in node.children]
        options = "".join(text[1:] for text in words if re.match(r"[-+]\w", text))
        strange = bool(set("in") & set(options))
        for child in node.children[1:]:
            is_assignment = child.type == "variable_assignment"
            if strange or not is_assignment or self._is_list(child, options):
                advice = "leave out the option" if is_assignment else f"write {words[0]} NAME=[…]"
                self._refuse(self.flow.sources(child), f"{words[0]}, which evaluates it", advice)
            if strange and is_assignment:
                self._arithmetic(child)

    def _is_list(self, assignment: Node, options: str) -> bool:
        """Whether bash would read a value as the list of an array: `declare -a x=VALUE` expands it again."""
        name, value = assignment.child_by_field_name("name"), assignment.child_by_field_name("value")
        if name is None or value is None or value.type == "array":
            return False
        variable = re.escape(self.tree.of(name))
        arrays = re.search(rf"\b{variable}\+?=\(|-\w*[aA]\w*\s+{variable}\b|\b{variable}\[", self.tree.text)
        return bool(set("aA") & set(options)) or arrays is not None

    def _variable_assignment(self, node: Node) -> None:
        name = node.child_by_field_name("name")
        value = node.child_by_field_name("value")
        what = programs.settings_of_programs(self.tree.of(name)) if name is not None else ""
        if what and value is not None:
            self._refuse(self.flow.sources(value), what, "set it yourself")
        if name is not None and value is not None and self.tree.of(name) in self._integers():
            self._refuse(
                self.flow.sources(value), "an assignment to an integer, which evaluates it", "leave out -i"
            )

    def _integers(self) -> frozenset[str]:
        """The variables that are declared as integers somewhere."""
        return frozenset(re.findall(r"(?:declare|typeset|local)\s+-\w*i\w*\s+(\w+)", self.tree.text))

    def _unset_command(self, node: Node) -> None:
        self._refuse(self.flow.sources(node), "unset, which evaluates it", "name the variable yourself")

    # -- redirections and pipes ----------------------------------------------------------

    def _file_redirect(self, node: Node) -> None:
        for target in node.children_by_field_name("destination")[:1]:
            if target.type == "process_substitution":
                continue
            names = self.flow.sources(target) - self._environment()
            self._refuse(
                names, "the target of a redirection", "name the file yourself, or use a program (tee)"
            )

    def _environment(self) -> Names:
        return frozenset(n for n in self.flow.outer if n not in {r.name for r in self.tree.references})

    def _pipeline(self, node: Node) -> None:
        given: Names = NONE
        if node.parent is not None and node.parent.type == "heredoc_redirect":
            given = self.flow.sources(node.parent)
        for member in node.named_children:
            self._reads(member, given)
            given |= self.flow.sources(member)

    def _redirected_statement(self, node: Node) -> None:
        body = node.child_by_field_name("body")
        texts = [c for c in node.children if c.type.endswith("_redirect")]
        given = frozenset(n for text in texts for n in self.flow.sources(text))
        if body is not None:
            self._reads(body, given)
        self._written_files(node)

    def _written_files(self, node: Node) -> None:
        """A file into which a value was written is not run by the same command."""
        names = self.flow.sources(node)
        for redirect in node.children_by_field_name("redirect") if names else ():
            for target in redirect.children_by_field_name("destination")[:1]:
                self._runs(literal(self.tree, target) or "", names)

    def _runs(self, file: str, names: Names) -> None:
        for node in descendants(self.tree.root) if file else ():
            if node.type == "command":
                _, words = self._words(node)
                same = [w for w in words if w.plain.removeprefix("./") == file.removeprefix("./")]
                if same and programs.runs_file(words, same[0]):
                    self._refuse(names, f"{file}, which is run", "write it into a file that nothing runs")

    def _herestring_redirect(self, node: Node) -> None:
        if node.parent is not None and node.parent.type == "command":
            self._reads(node.parent, self.flow.sources(node))

    def _reads(self, reader: Node, given: Names) -> None:
        """Whether anything in `reader` takes its standard input for code, or for words of a command."""
        for node in descendants(reader) if given else ():
            if node.type != "command":
                continue
            _, words = self._words(node)
            name = programs.name(words) or "exec"
            if programs.reads_code(words) or [w.plain for w in words] == ["exec"]:
                self._refuse(given, f"what {name} reads and runs", "pass it as an argument of its own")
            elif name == "xargs" and not any(word.plain == "--" for word in words[2:]):
                self.options |= {Option(value, name, splits=True) for value in given}

    def _command_substitution(self, node: Node) -> None:
        if self.tree.of(node).startswith("`") and "\\" in self.tree.of(node):
            names = frozenset(r.name for r in self.tree.within(node))
            self._refuse(names, "backticks with a backslash", "write $(…)")


def _pieces(part: Node) -> list[Node]:
    """A word in its pieces, those of a string by themselves."""
    if part.type in ("concatenation", "string", "command_name"):
        return [piece for child in part.children for piece in _pieces(child)]
    return [part]
