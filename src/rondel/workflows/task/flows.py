"""Flows: where in a command a value may get to: variables, standard input, files, the words of a program.

Nothing here depends on the order in which commands run: what a variable may hold somewhere it may hold
everywhere. What a program prints may hold whatever the program was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple

from rondel.workflows.task import bash, programs
from rondel.workflows.task import words as rules
from rondel.workflows.task.bash import EXPANSIONS, NONE, Held, How, Taint, Tree, Word, changed

if TYPE_CHECKING:
    from tree_sitter import Node


ARGUMENTS, CONTENT, NAMES = "@", "<files>", "<names>"  # what `$1`, files and the names of files may hold
_ROUNDS_MAX = 50
DEPTH_MAX = 3  # of scripts within scripts
_PLAIN_EXPANSION = re.compile(r"\$\w+|\$[@*]|\$\{(\w+|[@*])(\[[^]]*\])?(\}|:?[-+=?])")
_OTHERS_OF_BASH = re.compile(r"_|BASH_\w+|OPTARG|COPROC|COMP_\w+|DIRSTACK|HIST\w*")
_NOWHERE = re.compile(r"/dev/(null|stdout|stderr|tty)|[012]|-")
_DATA_FILE = re.compile(r"[\w.-]*\.(txt|md|log|csv|tsv|rst|out)")
_LISTING = re.compile(r"(ls|dir|vdir|find|fd|tree|rg|grep|du)\b|git .*(ls-files|ls-tree|diff|status)")
# These print their words as they are, if at all.
_SEARCHING = frozenset(("grep", "egrep", "fgrep", "rg", "find", "fd", "ls", "dirname"))
_SHOWS_VARIABLES = frozenset(
    ("env", "printenv", "set", "declare", "typeset", "export", "local", "readonly", "compgen")
)


class Assignment(NamedTuple):
    """One way in which a variable gets what it holds."""

    variable: str
    taint: Callable[[], Taint]
    values: tuple[Node, ...] | None  # None: nothing is known of its text


Asked = Callable[["Flow", "Node"], Taint]


def _remembered(ask: Asked) -> Asked:
    """Answer once in a round; a question that needs its own answer (a recursive function) gets all values."""

    @wraps(ask)
    def answer(flow: Flow, node: Node) -> Taint:
        key = (ask.__name__, node.id)
        if key not in flow.answers:
            flow.answers[key] = flow.everything()
            flow.answers[key] = ask(flow, node)
        return flow.answers[key]

    return answer


@dataclass
class Flow:
    """What of a script may hold which values. `fed` is what its standard input may hold."""

    tree: Tree
    outer: Mapping[str, Taint] = field(default_factory=dict)
    fed: Taint = NONE
    of_outer: frozenset[str] = frozenset()  # variables that an outer script assigned
    is_bash: bool = True
    written: frozenset[str] = frozenset()  # files of plain text that hold a value
    any_file: bool = False  # any file at all may hold one
    depth: int = 0  # of a script within a script

    def __post_init__(self) -> None:
        self.nodes = list(bash.descendants(self.tree.root))
        self.answers: dict[tuple[str, int], Taint] = {}
        self.held: dict[str, Taint] = dict(self.outer)
        self.functions = self._functions()
        self.calls = [(node, *bash.command(self.tree, node)) for node in self.nodes if node.type == "command"]
        self._exports = False
        self.assignments = [*self._assignments()]
        self.assigned = frozenset(a.variable for a in self.assignments)
        self.splits_by = How.CHANGED if self._has_own_ifs() else How.WORDS
        values = [self.tree.of(v) for a in self.assignments for v in a.values or ()]
        self._has_pattern = any(re.search(r"[*?\[]", value) for value in values)
        self._settle()

    # -- the whole script ------------------------------------------------------------------

    def _settle(self) -> None:
        for _ in range(_ROUNDS_MAX):
            before = (dict(self.held), self.written, self.any_file)
            self.answers.clear()
            self._exports = any(n.type == "declaration_command" and self.sources(n) for n in self.nodes)
            for assignment in self.assignments:
                self._add(assignment.variable, assignment.taint())
            self._files()
            if before == (self.held, self.written, self.any_file):
                return
        for assignment in self.assignments:
            self._add(assignment.variable, self.everything())
        self.any_file = True

    def _add(self, variable: str, taint: Taint) -> None:
        if taint:
            self.held[variable] = self.held.get(variable, NONE) | taint

    def everything(self) -> Taint:
        """Every value that the script has, changed in any way."""
        found = {h.name for t in self.held.values() for h in t} | {r.name for r in self.tree.references}
        return frozenset(Held(name, How.CHANGED) for name in found | {h.name for h in self.fed})

    def _functions(self) -> frozenset[str]:
        names = [n.child_by_field_name("name") for n in self.nodes if n.type == "function_definition"]
        return frozenset(self.tree.of(name) for name in names if name is not None)

    def _has_own_ifs(self) -> bool:
        """Whether words are split by other letters than blanks, but for `IFS= read`."""
        return any(
            n.type == "variable_assignment"
            and self.tree.of(n).startswith("IFS")
            and not re.match(r"IFS=\s+read\b", self.tree.text[n.start_byte :])
            for n in self.nodes
        )

    # -- words ---------------------------------------------------------------------------

    @_remembered
    def argument(self, part: Node) -> Taint:
        """The values in a word of a command, which is split where it is in no quotes."""
        is_many = bash.is_many(self.tree, part)
        found = changed(self.sources(part), self.splits_by if is_many else How.WHOLE)
        piped = [n for n in bash.descendants(part) if n.type == "process_substitution"]
        found |= frozenset(h for pipe in piped for h in self.within(pipe))
        if bash.is_pattern(self.tree, part) or (is_many and (found or self._has_pattern)):
            found |= changed(self.held.get(NAMES, NONE))
        return found

    def beginning(self, part: Node) -> Taint:
        """The values that a word, or one that it is split into, may begin with."""
        if bash.is_many(self.tree, part):
            return self.argument(part)
        found: set[Held] = set()
        for piece in bash.pieces(part):
            if piece.type in (*EXPANSIONS, "command_substitution"):
                found |= self.sources(piece)
                continue
            at = piece.start_byte
            for reference in self.tree.within(piece):
                if _has_text(self.tree.text[at : reference.start]):
                    return frozenset(found)
                found.add(Held(reference.name, How.WHOLE))
                at = reference.end
            if _has_text(self.tree.text[at : piece.end_byte]):
                break
        return frozenset(found)

    # -- what holds what -----------------------------------------------------------------

    def sources(self, node: Node) -> Taint:
        """The values that may be in what the shell makes of a node."""
        if node.type in EXPANSIONS:
            return self._expanded(node)
        if node.type == "command_substitution":
            return frozenset(h for child in node.named_children for h in self.printed(child))
        if node.type in ("process_substitution", "arithmetic_expansion"):
            return NONE  # the name of a pipe; a number
        inner = [r for child in node.children for r in self.tree.within(child)]
        own = {Held(r.name, How.WHOLE) for r in self.tree.within(node) if r not in inner}
        return frozenset(own).union(*(self.sources(child) for child in node.children))

    def _expanded(self, node: Node) -> Taint:
        text = self.tree.of(node)
        if text.startswith("${#"):
            return NONE  # a length
        name = re.match(r"\$\{?!?(\w+|[@*#?$!-])", text)
        found = self.variable(name[1]) if name is not None else self.everything()
        if not _PLAIN_EXPANSION.match(text):
            found = changed(found)
        return found.union(*(self.sources(child) for child in node.named_children))

    def variable(self, name: str) -> Taint:
        """The values that a variable may hold."""
        if re.fullmatch(r"\d+|[@*]", name):
            return self.held.get(ARGUMENTS, NONE)
        found = self.held.get(name, NONE)
        return found | self.everything() if _OTHERS_OF_BASH.fullmatch(name) else found

    @_remembered
    def within(self, node: Node) -> Taint:
        """Every value that anything in a node has to do with."""
        found = {r.name for r in self.tree.within(node)}
        for part in bash.descendants(node):
            if part.type in EXPANSIONS:
                found |= {h.name for h in self._expanded(part)}
            elif part.type == "declaration_command" or (
                part.type == "command_name" and self._shows_variables(self.tree.of(part))
            ):
                found |= {h.name for h in self.everything()}
        return frozenset(Held(name, How.CHANGED) for name in found)

    def _shows_variables(self, name: str) -> bool:
        shows = name in self.functions or name in _SHOWS_VARIABLES
        return shows or (self._exports and not rules.known(rules.base(name)))

    @_remembered
    def printed(self, node: Node) -> Taint:
        """The values that may be in what a command prints."""
        if node.type == "redirected_statement" and (body := node.child_by_field_name("body")) is not None:
            node = body if body.type == "command" else node
        if node.type == "pipeline":
            return self.printed(node.named_children[-1])
        if node.type != "command":
            return self.within(node) | changed(self.fed_to(node)) | changed(self._content(node))
        parts, words = bash.command(self.tree, node)
        name = words[0].text if words and words[0].text not in self.functions else None
        found = self.fed_to(node)
        if self.is_bash and rules.prints_its_words(words) and not bash.redirects(node):
            return changed(found.union(*(self.argument(p) for p in parts[1:])), How.WORDS)
        if name == "cat" and len(words) == 1:
            return changed(found, How.WORDS)
        is_listing = name is None or _LISTING.match(self.tree.of(node)) is not None
        listed = self.held.get(NAMES, NONE) if is_listing else NONE
        own = self.within(node)
        if name in _SEARCHING and not re.search(r"\s(-\w*r|--repl|-printf)", self.tree.of(node)):
            own = changed(NONE.union(*(self.argument(p) for p in parts[1:])), How.WORDS)
        return own | changed(found | self._content(node) | listed)

    def _content(self, node: Node) -> Taint:
        """What a command may read from files."""
        text = self.tree.of(node)
        if self.any_file or re.search(r"[$*?`]|\b(rg|grep|find)\b", text):
            return self.held.get(CONTENT, NONE)
        return self.held.get(CONTENT, NONE) if any(file in text for file in self.written) else NONE

    # -- standard input ------------------------------------------------------------------

    @_remembered
    def fed_to(self, node: Node) -> Taint:
        """The values that the standard input of a node may hold."""
        here: Node | None = node
        while here is not None:
            found = self._redirected_into(here, node)
            above = here.parent
            if found is None and above is not None and above.type == "pipeline":
                found = self._piped_into(above, here)
            if found is None and here.type == "process_substitution" and self.tree.of(here).startswith(">"):
                found = self.everything()
            if found is None and here.type == "function_definition":
                name = self.tree.of(here.child_by_field_name("name") or here)
                found = NONE
                for call, _, words in self.calls:
                    if words and words[0].text == name:
                        found |= self.fed_to(call)
            if found is not None:
                return found
            here = above
        return self.everything() if self._is_redirected_for_good("<") else self.fed

    def _redirected_into(self, node: Node, of: Node) -> Taint | None:
        found = None
        for redirect in bash.redirects(node):
            if redirect.start_byte <= of.start_byte < redirect.end_byte:
                return None  # what stands in a redirection does not read from it
            if redirect.type in ("herestring_redirect", "heredoc_redirect"):
                found = changed(self.sources(redirect), How.WORDS)
            elif redirect.type == "file_redirect" and "<" in bash.operator(self.tree, redirect):
                found = self._read_from(redirect)
        return found

    def _read_from(self, redirect: Node) -> Taint:
        target = redirect.child_by_field_name("destination")
        if target is None or "&" in bash.operator(self.tree, redirect):
            return self.everything()
        if target.type == "process_substitution":
            return frozenset(h for child in target.named_children for h in self.printed(child))
        return changed(self._content(redirect))

    def _piped_into(self, pipeline: Node, member: Node) -> Taint | None:
        before = [n for n in pipeline.named_children if n.end_byte <= member.start_byte]
        if before:
            return self.printed(before[-1])
        above = pipeline.parent
        if above is None or above.type != "heredoc_redirect" or above.parent is None:
            return None
        body = above.parent.child_by_field_name("body")
        if body is not None and self.tree.of(body) == "cat":
            return changed(self.sources(above), How.WORDS)
        return self.within(above.parent)

    def _is_redirected_for_good(self, sign: str) -> bool:
        """Whether `exec` with a redirection but without a command changes what the script reads or writes."""
        return any(
            sign in bash.operator(self.tree, redirect)
            for node, _, words in self.calls
            if [w.text for w in words] == ["exec"] and node.parent is not None
            for redirect in bash.redirects(node.parent)
        )

    # -- files ---------------------------------------------------------------------------

    def _files(self) -> None:
        for node in self.nodes:
            for redirect in bash.redirects(node):
                if redirect.type == "file_redirect" and ">" in bash.operator(self.tree, redirect):
                    body = node.child_by_field_name("body") or node
                    is_exec = self.tree.of(body) == "exec"
                    found = self.everything() if is_exec else self.printed(body) | self.within(body)
                    targets = redirect.children_by_field_name("destination")[:1]
                    if not any(t.type == "process_substitution" for t in targets):
                        self._write(found, [bash.literal(self.tree, t) for t in targets])
        for node, parts, words in self.calls:
            self._files_of(node, parts, words)

    def _files_of(self, node: Node, parts: list[Node], words: list[Word]) -> None:
        name = rules.program_name(words)
        given = self.fed_to(node) | self.held.get(CONTENT, NONE)
        if name in ("tee", "sponge"):
            self._write(given, [w.text for w in words[1:] if not w.head.startswith("-")])
        elif rules.writes(words):
            self._add(NAMES, NONE.union(*(self.argument(part) for part in parts)))
            self._write(given, [None])
            self._make(parts, words)
        elif name == "git":
            self._make(parts, words)
        elif programs.writes_files(name, words):
            self._write(self.within(node) | given, [None])
        elif name in programs.SHELLS:
            self._nested_files(node, parts, words)

    def _make(self, parts: list[Node], words: list[Word]) -> None:
        """A file that is made of what a value names holds whatever that holds."""
        sources, targets = rules.made(words)
        taint = changed(NONE.union(*(self.argument(parts[n]) for n in sources)))
        again = any(self.written.intersection((words[n].text or "").split("/")) for n in sources)
        for target in targets if taint or again else ():
            name = (target or "").rstrip("/").rpartition("/")[2]
            if re.fullmatch(r"[\w.+@-]*\w", name):
                self.written |= {name}
            elif target is None or not _NOWHERE.fullmatch(target):
                self._add(CONTENT, taint)
                self.any_file = True

    def _nested_files(self, node: Node, parts: list[Node], words: list[Word]) -> None:
        at = next((n for n, w in enumerate(words) if rules.base(w.text or "") in programs.SHELLS), 0)
        script = rules.shell_script(words[at:])
        tree = bash.parse(words[at + script].text or "", ()) if script is not None else None
        if tree is not None and self.depth < DEPTH_MAX:
            given = NONE.union(*(self.argument(p) for p in parts))
            inner = self.nested(tree, given, self.fed_to(node), is_bash=False)
            self.written |= inner.written
            self.any_file |= inner.any_file
            self._add(CONTENT, inner.held.get(CONTENT, NONE))

    def _write(self, taint: Taint, targets: Iterable[str | None]) -> None:
        files = [t for t in targets if t is None or not _NOWHERE.fullmatch(t)]
        if not taint or not files:
            return
        self._add(CONTENT, changed(taint))
        for file in files:
            name = (file or "").rpartition("/")[2]
            if _DATA_FILE.fullmatch(name):
                self.written |= {name}
            else:
                self.any_file = True

    # -- variables -----------------------------------------------------------------------

    def _assignments(self) -> Iterator[Assignment]:
        for node in self.nodes:
            if node.type == "variable_assignment" and not bash.is_arithmetic(self.tree, node.parent):
                name, value = node.child_by_field_name("name"), node.child_by_field_name("value")
                variable = re.split(r"[\[+]", self.tree.of(name or node), maxsplit=1)[0]
                yield self._assignment(variable, (value,) if value is not None else ())
            elif node.type == "for_statement":
                yield from self._loop(node)
            elif node.type == "expansion" and (found := re.match(r"\$\{(\w+):?=", self.tree.of(node))):
                yield self._assignment(found[1], tuple(node.named_children[1:]))
        for node, parts, words in self.calls:
            yield from self._assignments_of(node, parts, words)

    def _loop(self, node: Node) -> Iterator[Assignment]:
        variable = self.tree.of(node.child_by_field_name("variable") or node)
        values = tuple(node.children_by_field_name("value"))
        if values and node.children[0].type != "select":
            yield self._assignment(variable, values)
        else:
            yield Assignment(variable, self.everything, None)
            yield Assignment("REPLY", self.everything, None)

    def _assignments_of(self, node: Node, parts: list[Node], words: list[Word]) -> Iterator[Assignment]:
        for variable, is_read in rules.variables_set(words):
            yield Assignment(variable, self._reading(node, words) if is_read else self.everything, None)
        for part, each in zip(parts, words, strict=True):
            found = re.match(r"(\w+)=", each.head)
            if found is not None and words[0].text in ("env", "sudo"):
                yield self._assignment(found[1], (part,))
        if rules.program_name(words) in {*self.functions, "set"}:
            yield Assignment(ARGUMENTS, self._arguments(parts), None)

    def _assignment(self, variable: str, values: tuple[Node, ...]) -> Assignment:
        def taint() -> Taint:
            is_list = len(values) != 1 or values[0].parent is None or values[0].parent.type == "for_statement"
            parts = [p for v in values for p in (v.named_children if v.type == "array" else [v])]
            get = self.argument if is_list or parts != [*values] else self.sources
            return NONE.union(*(get(part) for part in parts))

        return Assignment(variable, taint, values)

    def _arguments(self, parts: list[Node]) -> Callable[[], Taint]:
        return lambda: NONE.union(*(self.argument(part) for part in parts[1:]))

    def _reading(self, node: Node, words: list[Word]) -> Callable[[], Taint]:
        prefix = self.tree.text[node.start_byte :]
        splits = re.match(r"(IFS=\s+)?(read|mapfile|readarray)\b", prefix) is None
        cuts = splits or rules.cuts_what_it_reads(words)
        return lambda: changed(self.fed_to(node), How.CHANGED if cuts else How.WORDS)

    def nested(self, tree: Tree, given: Taint, fed: Taint, *, is_bash: bool) -> Flow:
        """The flow of a script for another shell, which has our variables, these arguments and this input."""
        return replace(
            self,
            tree=tree,
            outer={**self.held, ARGUMENTS: given},
            fed=fed,
            of_outer=self.of_outer | self.assigned,
            is_bash=is_bash,
            depth=self.depth + 1,
        )


def _has_text(text: str) -> bool:
    """Whether a piece of a word is more than quotes."""
    return re.search(r"[^$'\"]", text) is not None
