"""Hazards: a command takes values only if nothing in it can turn text into code.

The rules say what is known to be harmless: a program that is named, arithmetic over numbers, scripts that are
written out. What is not known is refused, whether or not a value would get there.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from rondel.workflows.task import bash, programs
from rondel.workflows.task import words as rules
from rondel.workflows.task.bash import (
    NONE,
    Held,
    How,
    Input,
    Reference,
    Taint,
    Tree,
    Word,
    changed,
    taints,
    word,
)
from rondel.workflows.task.flows import ARGUMENTS, DEPTH_MAX, NAMES, Flow, Numbers
from rondel.workflows.task.programs import PROGRAMS

if TYPE_CHECKING:
    from tree_sitter import Node

_COMPARING = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
_HOME = re.compile(r'(?:~|"?\$(?:HOME|\{HOME\}))(/[\w./+-]+)"?')
_WHERE = frozenset(
    (
        *("command", "command_name", "array", "case_statement", "case_item", "test_command", "subscript"),
        *("binary_expression", "unary_expression", "negated_expression", "parenthesized_expression"),
        *("herestring_redirect", "heredoc_redirect", "file_redirect", "declaration_command", "unset_command"),
        *("expansion", "simple_expansion", "arithmetic_expansion", "ternary_expression"),
        *("compound_statement", "c_style_for_statement", "postfix_expression"),
    )
)  # what of these is not for values is refused by its own rule
_ADVICE = "give it as an argument to a program or a script file that is named there"
_PREFIXES = frozenset(name for name, p in PROGRAMS.items() if p.operands[-1] == "command" and not p.runs_code)
_TRANSFORMS = re.compile(r"@[QULu]\}$")


class Option(NamedTuple):
    """A value that stands at the beginning of a word which a program may take for an option."""

    name: str
    program: str
    splits: bool  # each word of the value would be one of the command's
    stays: bool = False  # the value names a file below a folder that is written out


def inspect(tree: Tree, exported: Container[str]) -> tuple[tuple[str, ...], frozenset[Option]]:
    """What is wrong with a command that takes values, and which of them may not begin with `-`."""
    variables = set(re.findall(r"\w+", tree.text))
    outer = {name: frozenset((Held(name, How.WHOLE),)) for name in variables if name in exported}
    names = frozenset(r.name for r in tree.references) or frozenset(outer)
    found = _Inspection(tree, Flow(tree, outer), names)
    found.all()
    return tuple(dict.fromkeys(found.problems)), frozenset(found.options)


@dataclass
class _Inspection:
    tree: Tree
    flow: Flow
    names: frozenset[str]  # all values of the whole command
    problems: list[str] = field(default_factory=list)
    options: set[Option] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.numbers = Numbers(self.flow)

    def _refuse(self, taint: Iterable[Held], what: str, advice: str = _ADVICE) -> None:
        names = {h.name for h in taint}
        self.problems += [f"[{name}] stands in {what}; {advice}" for name in sorted(names)]

    def _refuse_script(self, taint: Iterable[Held], what: str, advice: str = _ADVICE) -> None:
        """The command as a whole takes no value because of this, wherever its values stand."""
        names = {h.name for h in taint} or self.names
        self.problems += [f"[{n}] stands in a command with {what}; {advice}" for n in sorted(names)[:1]]

    def all(self) -> None:
        """Every value where it stands, every variable, and every node by its kind."""
        for reference in self.tree.references:
            if not self._may_stand(reference):
                at = (Held(reference.name, How.WHOLE),)
                self._refuse(at, "a place where bash takes no value", "use it as an argument")
        self._settings()
        for node in self.flow.nodes:
            look = getattr(self, f"_on_{node.type}", None)
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
        if above.type == "for_statement":
            return whole != above.child_by_field_name("variable")
        return above.type in _WHERE

    def _settings(self) -> None:
        for assignment in self.flow.assignments:
            name, taint = assignment.variable, assignment.taint()
            written = Input(reaches=False, written=self.flow.written, any_file=False)
            texts = [bash.literal(self.tree, value) for value in assignment.values or ()]
            names_file = any(written.is_written(Word(text, "")) for text in texts)
            if name == ARGUMENTS or (name in ("PWD", "OLDPWD") and assignment.values is None):
                continue
            if programs.is_evaluated(name) and not set(texts) <= {"", "cat", "true", ":"}:
                what = f"{name}, whose text bash or programs run"
                self._refuse_script(taint, what, "write the command without it")
            elif (taint or names_file) and not programs.may_hold(
                name, exported=assignment.exported or name in self.flow.exported
            ):
                what = f"{name}, a variable that bash or programs may read"
                self._refuse_script(taint, what, "use a name in small letters, and do not export it")

    # -- simple commands ----------------------------------------------------------------

    def _on_command(self, node: Node) -> None:
        parts, words = bash.command(self.tree, node)
        full = [
            replace(w, taint=self.flow.argument(p), first=self.flow.beginning(p))
            for p, w in zip(parts, words, strict=True)
        ]
        full = [replace(w, is_computed=self._is_computed(w)) for w in full]
        if full and full[0].text is None and not self.flow.assigned & {"HOME"}:
            home = _HOME.fullmatch(self.tree.of(parts[0]))
            full[0] = replace(full[0], text=f"~{home[1]}" if home else None)
        self._run(full, self.flow.fed_to(node))

    def _is_computed(self, each: Word) -> bool:
        """Whether a word may be an option by what the script puts into a variable."""
        is_own = each.many and not each.taint
        return each.text is None and not each.head and (is_own or self.flow.has_option)

    def _run(self, words: Sequence[Word], fed: Taint) -> None:
        if not words:
            return
        if words[0].text is None:
            what = "the name of a command" if words[0].taint else "a name that is not written out"
            self._refuse_script(words[0].taint, f"{what} for a command", "write the name of the program")
            return
        name = programs.base(words[0].text)
        if words[0].text in self.flow.functions:
            return  # its arguments are looked at where they are used
        if name == "command" and len(words) > 1 and re.fullmatch(r"-p?[vV]", words[1].text or ""):
            return
        inner = rules.read(words).inner
        if inner is not None:
            self._prefix(name, words, inner, fed)
        elif name in programs.SHELLS and (at := rules.shell_script(words)) is not None:
            self._script(words[at].text or "", taints(words[at + 1 :]), fed, is_bash=name == "bash")
        elif name == "trap":
            self._trap(words)
        elif name == "let":
            self._let(words)
        elif name == "find" and (run := rules.find_exec(words)) is not None:
            self._find(words, run, fed)
        else:
            self._program(words, fed)

    def _program(self, words: Sequence[Word], fed: Taint) -> bool:
        """Whether a program may get these words and this standard input."""
        what = rules.problem(words, self.flow.given(words, fed))
        if what:
            self._refuse_script(fed | taints(words), what)
            return False
        self._options(words)
        line = rules.read(words)
        for place in line.places:
            names = [h.name for h in words[place.at].taint] if place.role == "/" else []
            self.options |= {Option(n, words[0].text or "", splits=False, stays=True) for n in names}
        if line.program is None:  # a script of one's own, which may run the program that is named to it
            named = (n for n, w in enumerate(words[1:], start=1) if _is_interpreter(w))
            at = next(named, len(words))
            if fed or taints(words[at:]):
                self._run(words[at:], fed)
        return True

    def _options(self, words: Sequence[Word]) -> None:
        for at, each in enumerate(words):
            takes = rules.takes_as_option(words, at) if at and each.first else ""
            for held in each.first if takes else ():
                if held.how is How.CHANGED:
                    self._refuse((held,), f"a word of {takes} that may begin with -", "put -- before it")
                else:
                    self.options.add(Option(held.name, takes, held.how is How.WORDS))

    def _prefix(self, name: str, words: Sequence[Word], inner: int, fed: Taint) -> None:
        before, rest = words[:inner], words[inner:]
        if any(w.many for w in before[1:]) or (
            rules.read(words).problem and (name in _PREFIXES or fed or taints(words))
        ):
            what = f"{name}, with words that are not known before its command"
            self._refuse_script(taints(words), what, "write it out")
        elif self._program(before, fed) and name == "xargs":
            self._xargs(before, rest, fed)
        else:
            self._run(rest, fed)

    def _xargs(self, before: Sequence[Word], rest: Sequence[Word], fed: Taint) -> None:
        """The command gets what xargs reads as words, or in the place of a word of its own."""
        texts = [w.text or "" for w in before]
        read = changed(fed, How.WORDS) | (
            self.flow.everything() if any(t.startswith("-a") for t in texts) else NONE
        )
        if any(t.startswith(("-d", "--d")) for t in texts):
            read = changed(read)
        place = next((t[2:] or texts[n + 1] for n, t in enumerate(texts) if t.startswith("-I")), None)
        if place is None:
            self._run([*rest, Word(None, "", many=True, taint=read, first=read)], fed)
        else:
            self._run([_replaced(w, place, read) for w in rest], fed)

    def _find(self, words: Sequence[Word], inner: tuple[int, int], fed: Taint) -> None:
        start, end = inner
        given = taints(words[start:end])
        self._refuse(given, "what find runs", "use find … | while read, or a script file")
        self._run([*words[: start - 1], *words[end + 1 :]], fed)
        names = changed(self.flow.held.get(NAMES, NONE))
        self._run([_replaced(w, "{}", names) for w in words[start:end]], fed)

    def _trap(self, words: Sequence[Word]) -> None:
        if any(w.text is None for w in words):
            self._refuse_script(taints(words), "trap, whose command is not written out")
        elif len(words) > 1 and words[1].text not in ("-", ""):
            held = self.flow.held.get(ARGUMENTS, NONE)
            self._script(words[1].text or "", held, self.flow.everything(), is_bash=True)

    def _let(self, words: Sequence[Word]) -> None:
        names = re.findall(r"[^\W\d]\w*", " ".join(w.text or "?" for w in words[1:]))
        if any(w.text is None for w in words) or not all(self.numbers.has(n) for n in names):
            self._refuse_script(taints(words), "let over more than numbers")

    def _script(self, text: str, given: Taint, fed: Taint, *, is_bash: bool) -> None:
        """A script for another shell, which finds values in its arguments, its input and its environment."""
        inner = bash.parse(text, ())
        if inner is None or self.flow.depth >= DEPTH_MAX:
            self._refuse_script(given, "a script that cannot be read", "write the script more simply")
            return
        nested = _Inspection(inner, self.flow.nested(inner, given, fed, is_bash=is_bash), self.names)
        nested.all()
        self.problems += nested.problems
        self.options |= nested.options

    # -- what the shell itself evaluates -------------------------------------------------

    def _arithmetic(self, node: Node) -> None:
        unknown = self.numbers.stranger(node)
        if unknown:
            what = f"arithmetic, where {unknown} is not known to be a number"
            self._refuse_script(self.flow.within(node), what, "compare it as text instead")

    _on_arithmetic_expansion = _arithmetic

    def _on_c_style_for_statement(self, node: Node) -> None:
        for part in node.children:
            if part.type not in ("do_group", "compound_statement"):
                self._arithmetic(part)

    def _on_compound_statement(self, node: Node) -> None:
        if self.tree.of(node).startswith("(("):
            self._arithmetic(node)

    def _on_subscript(self, node: Node) -> None:
        index, name = node.child_by_field_name("index"), node.child_by_field_name("name")
        if index is None or self.tree.of(index) in ("@", "*"):
            return
        maps = re.findall(r"(?:declare|local|typeset) -A (\w+)", self.tree.text)
        if name is None or self.tree.of(name) not in maps or bash.literal(self.tree, index) is None:
            self._arithmetic(index)

    def _on_expansion(self, node: Node) -> None:
        text = self.tree.of(node)
        names = [Held(r.name, How.WHOLE) for r in self.tree.within(node)]
        self._refuse(names, "${…}", "assign it to a variable of the shell first")
        if re.match(r"\$\{!", text) and not re.fullmatch(r"\$\{!\w+\[[@*]\]\}", text):
            self._refuse_script(
                self.flow.within(node), f"{text}, a variable whose name is computed", "name it"
            )
        if re.search(r"@\w\}$", text) and not _TRANSFORMS.search(text):
            self._refuse_script(self.flow.within(node), f"{text}, which evaluates it", "write it without")
        if re.match(r"\$\{(\w+|[@*])(\[[^]]*\])?:[^-+=?]", text):
            for part in node.named_children[1:]:
                self._arithmetic(part)

    def _on_simple_expansion(self, node: Node) -> None:
        names = [Held(r.name, How.WHOLE) for r in self.tree.within(node)]
        self._refuse(names, "the name of a variable", "write it without $")

    def _on_test_command(self, node: Node) -> None:
        if not self.tree.of(node).startswith("[["):
            parts = [*_operands(node)]
            words = [Word("[", "["), *(self._word(part) for part in parts)]
            what = rules.test(words)
            if what:
                self._refuse_script(taints(words), what, "write it otherwise")
            return
        for part in bash.descendants(node):
            operator = part.child_by_field_name("operator")
            sign = self.tree.of(operator) if operator is not None else ""
            if sign in _COMPARING:
                for operand in part.children:
                    if operand != operator:
                        self._arithmetic(operand)
            elif sign in ("-v", "-R") and not re.fullmatch(
                r"\w+", bash.literal(self.tree, part.children[-1]) or ""
            ):
                self._refuse_script(self.flow.within(part), f"a test by {sign}, which evaluates it")

    def _word(self, part: Node) -> Word:
        text = bash.literal(self.tree, part)
        return Word(text, text or "", bash.is_many(self.tree, part), self.flow.argument(part))

    def _on_declaration_command(self, node: Node) -> None:
        command = self.tree.of(node.children[0])
        options = "".join(self.tree.of(c)[1:] for c in node.children if self.tree.of(c)[:1] in ("-", "+"))
        for child in node.children[1:]:
            text = self.tree.of(child)
            if child.type == "variable_assignment":
                if self.flow.sources(child) and self._is_list(child, options):
                    self._refuse(self.flow.sources(child), f"{command} of a list", "write NAME=(VALUE)")
            elif not re.fullmatch(r"[-+][aAfFglprux]+|--|\w+", text):
                advice = f"write {command} NAME=VALUE, without -i and -n"
                self._refuse_script(self.flow.within(child), f"{command} {text}, which evaluates it", advice)

    def _is_list(self, assignment: Node, options: str) -> bool:
        """Whether bash would read a value as the list of an array: `declare -a x=VALUE` expands it again."""
        name, value = assignment.child_by_field_name("name"), assignment.child_by_field_name("value")
        if name is None or value is None or value.type == "array":
            return False
        variable = re.escape(self.tree.of(name))
        arrays = (
            rf"\b{variable}\+?=\(|-\w*[aA]\w*\s+(\w+\s+)*{variable}\b|\b{variable}\["
            rf"|(mapfile|readarray)\b.*\b{variable}\b"
        )
        return bool(set("aA") & set(options)) or re.search(arrays, self.tree.text) is not None

    def _on_unset_command(self, node: Node) -> None:
        for child in node.children[1:]:
            if not re.fullmatch(r"-[fv]|\w+", self.tree.of(child)):
                self._refuse_script(self.flow.within(node), "unset, which evaluates it", "name the variable")

    def _on_function_definition(self, node: Node) -> None:
        name = self.tree.of(node.child_by_field_name("name") or node)
        if programs.is_known(name) or not re.fullmatch(r"[\w-]+", name):
            self._refuse_script(NONE, f"a function {name}", "give it a name that no program has")

    # -- redirections and texts ------------------------------------------------------------

    def _on_file_redirect(self, node: Node) -> None:
        for target in node.children_by_field_name("destination")[:1]:
            mine = {r.name for r in self.tree.references}
            names = [h for h in self.flow.sources(target) if h.name in mine or h.name not in self.flow.outer]
            advice = "name the file yourself, or use a program (tee)"
            self._refuse(names, "the target of a redirection", advice)

    def _on_heredoc_body(self, node: Node) -> None:
        start = next((c for c in (node.parent or node).children if c.type == "heredoc_start"), None)
        is_read = start is not None and not re.search(r"['\"\\]", self.tree.of(start))
        if is_read and re.search(r"`|\$\[", self.tree.of(node)):  # which the grammar does not see there
            self._refuse_script(self.flow.within(node), "` or $[ in a text", "write $(…) before it")

    def _on_subshell(self, node: Node) -> None:
        if self.tree.text[max(node.start_byte - 1, 0) : node.start_byte + 2].count("(") > 1:
            what = "(( where the grammar reads commands and bash arithmetic"
            self._refuse_script(NONE, what, "write it as a line of its own")

    def _on_array(self, node: Node) -> None:
        for child in node.named_children:
            if re.match(r"\[(?!\d+\]=)", self.tree.of(child)) and "=" in self.tree.of(child):
                self._refuse_script(self.flow.within(child), "a list with [name]=…", "assign each by itself")

    def _on_command_substitution(self, node: Node) -> None:
        if self.tree.of(node).startswith("`") and "\\" in self.tree.of(node):
            self._refuse_script(self.flow.within(node), "backticks with a backslash", "write $(…)")


def _operands(node: Node) -> Iterable[Node]:
    """The words between the brackets of a test."""
    for child in node.children:
        if child.type.endswith("_expression"):
            yield from _operands(child)
        elif child.type not in ("[", "]"):
            yield child


def _replaced(each: Word, place: str, taint: Taint) -> Word:
    """A word in which a program puts something in the place of `place`."""
    at = (each.text or "").find(place) if place else -1
    if at < 0:
        return each
    head = (each.text or "")[:at]
    return Word(None, head, taint=each.taint | taint, first=NONE if head else taint)


def _is_interpreter(each: Word) -> bool:
    program = PROGRAMS.get(programs.base(each.text or ""))
    return program is not None and program.operands[0] in ("script", "code")
