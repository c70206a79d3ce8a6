"""Flows: where in a command a value may get to: variables, standard input, files, the words of a program.

Nothing here depends on the order in which commands run: what a variable may hold somewhere it may hold
everywhere. What a program prints may hold whatever the program was given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import TYPE_CHECKING, NamedTuple

from rondel.workflows.task import bash, programs
from rondel.workflows.task import words as rules
from rondel.workflows.task.bash import EXPANSIONS, NONE, Held, How, Input, Taint, Tree, Word, changed

if TYPE_CHECKING:
    from tree_sitter import Node

    from rondel.workflows.task.programs import Program


# What `$1`, files, the names of files, and a repository of git may hold.
ARGUMENTS, CONTENT, NAMES, GIT = "@", "<files>", "<names>", "<git>"
_ROUNDS_MAX = 50
DEPTH_MAX = 3  # of scripts within scripts
_PLAIN_EXPANSION = re.compile(r"\$\w+|\$[@*]|\$\{(\w+|[@*])(\[[^]]*\])?(\}|:?[-+=?])")
_OTHERS_OF_BASH = re.compile(r"_|BASH_\w+|OPTARG|COPROC|COMP_\w+|DIRSTACK|HIST\w*")
_NOWHERE = re.compile(r"/dev/(null|stdout|stderr|tty)|[012]|-")
_DATA_FILE = re.compile(
    r"(?!test|CMakeLists|meson|conan|requirements|constraints)[\w.-]*\.(txt|md|log|csv|tsv|out|tar|tgz|gz|zip|bak)"
)
_MENTION = re.compile(
    r"(?=\$\{?(\w+))|(?i:env)\w{0,30}+\W{1,3}(\w+)"
)  # of a variable, in a text that is code elsewhere
_LISTING = re.compile(r"(ls|dir|vdir|find|fd|tree|rg|grep|du)\b|git .*(ls-files|ls-tree|diff|status)")
# These print the names of files that they find, if at all.
_SEARCHING = re.compile(
    r"(find|fd|ls|dirname)\b(?!.*\s-printf)|(grep|egrep|fgrep|rg)\b(?=.*\s(-\w*l|--files))"
)
_RECURSIVE = re.compile(
    r"(e|f|z|r)?grep|rg|fd|fdfind|find|tar|git|rsync|zip|diff|xargs|bash|sh|dash|env|du|tree"
)
_SHOWS_VARIABLES = frozenset(
    ("env", "printenv", "set", "declare", "typeset", "export", "local", "readonly", "compgen")
)


class Assignment(NamedTuple):
    """One way in which a variable gets what it holds."""

    variable: str
    taint: Callable[[], Taint]
    values: tuple[Node, ...] | None  # None: nothing is known of its text
    exported: bool = False  # a program finds it in its environment


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
    by_git: bool = False  # git took files from where a value says
    made: frozenset[str] = frozenset()  # files that commands write, whatever they hold
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
        self.exported = frozenset(self._exported())
        self.splits_by = How.CHANGED if self._has_own_ifs() else How.WORDS
        values = [self.tree.of(v) for a in self.assignments for v in a.values or ()]
        self._has_pattern = any(re.search(r"[*?\[]", value) for value in values)
        self.has_option = any(re.search(r"(^|[\s('\"])-", value) for value in values)
        self._settle()

    # -- the whole script ------------------------------------------------------------------

    def _settle(self) -> None:
        for _ in range(_ROUNDS_MAX):
            before = (dict(self.held), self.written, self.any_file, self.by_git, self.made)
            self.answers.clear()
            self._exports = any(n.type == "declaration_command" and self.sources(n) for n in self.nodes)
            for assignment in self.assignments:
                self._add(assignment.variable, assignment.taint())
            self._files()
            if before == (self.held, self.written, self.any_file, self.by_git, self.made):
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
        if not node.children:
            own |= self._mentioned(self.tree.of(node))
        return frozenset(own).union(*(self.sources(child) for child in node.children))

    def _mentioned(self, text: str) -> Taint:
        """The values of variables that a text names, which may be code for another program."""
        names = {name for found in _MENTION.findall(text) for name in found if name in self.held}
        return changed(NONE.union(*(self.held[name] for name in names)))

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
        return shows or (self._exports and not programs.is_known(name))

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
        if name is not None and rules.prints_a_number(words):
            return NONE
        is_listing = name is None or _LISTING.match(self.tree.of(node)) is not None
        listed = self.held.get(NAMES, NONE) if is_listing else NONE
        own = self.within(node)
        if name is not None and _SEARCHING.match(self.tree.of(node)):
            own = changed(NONE.union(*(self.argument(p) for p in parts[1:])), How.WORDS)
        if rules.name_of(words) == "git" and _git_shows_state(words):
            own |= self.held.get(GIT, NONE)
        if name in ("pwd", "realpath", "readlink"):
            own |= self.held.get("PWD", NONE)
        return own | changed(found | self._content(node) | listed)

    def _content(self, node: Node) -> Taint:
        """What a node may read from files."""
        held = self.held.get(CONTENT, NONE)
        commands = [n for n in bash.descendants(node) if n.type == "command"] if held else []
        if not held or (commands and not any(map(self._reads_values, commands))):
            return NONE
        text = self.tree.of(node)
        fine = not commands and not self.any_file and not re.search(r"[$*?`]", text)
        return NONE if fine and not any(file in text for file in self.written) else held

    def _reads_values(self, node: Node) -> bool:
        """Whether a command may read a file that holds a value: it is not known to read only other ones."""
        _, words = bash.command(self.tree, node)
        program = rules.read(words).program if words and words[0].text is not None else None
        if self.any_file or program is None or program.runs_code or _RECURSIVE.fullmatch(program.name):
            return True
        given = Input(reaches=False, written=self.written, any_file=False)
        return any(w.text is None or given.is_written(w) for w in words)

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
        command = rules.last(words)
        if not command or command[0].text is None:
            return
        own = parts[len(parts) - len(command) :]
        name, line = programs.base(command[0].text), rules.read(command)
        if name in programs.SHELLS:
            self._nested_files(node, own, command)
        if name == "find" and (inner := rules.find_exec(command)) is not None:
            run = rules.read(command[inner[0] : inner[1]] or command[:1])
            found = changed(NONE.union(*(self.argument(part) for part in own)) | self._content(node))
            is_known = run.program is not None and not run.program.runs_code and not run.writes_anywhere
            self._write(
                found, [*(p.text for p in run.places if p.role == ">"), *(() if is_known else (None,))]
            )
        targets = {p.at: p.text for p in line.places if p.role == ">"}
        named = NONE.union(*(self.argument(part) for part in own))
        given = self.fed_to(node) | self._content(node)
        given |= changed(NONE.union(*(self.argument(p) for n, p in enumerate(own) if n not in targets)))
        told = NONE.union(*(self.argument(own[p.at]) for p in line.places if p.role == "^"))
        if line.program is not None and {"^", "^*"} & {*line.program.operands} and len(own) < len(parts):
            told |= self.fed_to(node)  # by xargs
        anywhere = line.writes_anywhere or bool(told) or rules.may_write(name, line)
        self._write(given, targets.values())
        if anywhere and name == "git" and not line.writes_anywhere:
            self.by_git = True
        elif anywhere:
            self._write(given | changed(named), [None])
        if targets or anywhere or any(p.role == "+" for p in line.places):
            self._add(NAMES, named)
            self.made |= {
                base for w in command[1:] if (base := (w.text or "").rstrip("/").rpartition("/")[2])
            }
        if name == "git" and line.program is not None and not _git_only_shows(line.program):
            self._add(GIT, changed(named | given | self.held.get(CONTENT, NONE)))

    def _nested_files(self, node: Node, parts: list[Node], words: Sequence[Word]) -> None:
        script = rules.shell_script(words)
        tree = bash.parse(words[script].text or "", ()) if script is not None else None
        if tree is not None and self.depth < DEPTH_MAX:
            given = NONE.union(*(self.argument(p) for p in parts))
            inner = self.nested(tree, given, self.fed_to(node), is_bash=False)
            self.written |= inner.written
            self.any_file |= inner.any_file
            self.by_git |= inner.by_git
            self.made |= inner.made
            self._add(CONTENT, inner.held.get(CONTENT, NONE))

    def _write(self, taint: Taint, targets: Iterable[str | None]) -> None:
        files = [t for t in targets if t is None or not _NOWHERE.fullmatch(t)]
        self.made |= {(file or "").rpartition("/")[2] for file in files} - {""}
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
                above = node.parent
                exported = above is not None and above.type == "command" and above.child_by_field_name("name")
                assignment = self._assignment(variable, (value,) if value is not None else ())
                yield assignment._replace(exported=bool(exported))
            elif node.type == "for_statement":
                yield from self._loop(node)
            elif node.type == "expansion" and (found := re.match(r"\$\{(\w+):?=", self.tree.of(node))):
                yield self._assignment(found[1], tuple(node.named_children[1:]))
        for node, parts, words in self.calls:
            yield from self._assignments_of(node, parts, words)

    def _exported(self) -> Iterator[str]:
        """The variables that a declaration makes known to programs."""
        yield from self.of_outer
        for node in self.nodes:
            text = self.tree.of(node)
            if node.type == "declaration_command" and re.match(r"export\b|\w+ (-\w+ )*-\w*x", text):
                yield from re.findall(r"\w+", text)

    def _loop(self, node: Node) -> Iterator[Assignment]:
        variable = self.tree.of(node.child_by_field_name("variable") or node)
        values = tuple(node.children_by_field_name("value"))
        if values and node.children[0].type != "select":
            yield self._assignment(variable, values)
        else:
            yield Assignment(variable, self.everything, None)
            yield Assignment("REPLY", self.everything, None)

    def _assignments_of(self, node: Node, parts: list[Node], words: list[Word]) -> Iterator[Assignment]:
        for variable, is_read in rules.sets(words):
            yield Assignment(variable, self._reading(node, words) if is_read else self.everything, None)
        rest: Sequence[Word] = words
        while rest and rest[0].text is not None:
            line, start = rules.read(rest), len(words) - len(rest)
            for place in line.places:
                if place.role == "env":
                    variable = rest[place.at].head.partition("=")[0]
                    yield self._assignment(variable, (parts[start + place.at],))._replace(exported=True)
            rest = rest[line.inner :] if line.inner is not None else ()
        if rules.name_of(words) in {*self.functions, "set"}:
            yield Assignment(ARGUMENTS, self._arguments(parts), None)
        if rules.name_of(words) in ("cd", "pushd"):
            yield Assignment("PWD", self._arguments(parts), None)
            yield Assignment("OLDPWD", self._arguments(parts), None)

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

    def given(self, words: Sequence[Word], fed: Taint) -> Input:
        """What a command may get besides its words."""
        is_git = rules.name_of(words) == "git"
        keeps = self.held.get(CONTENT, NONE) | (self.held.get(GIT, NONE) if is_git else NONE)
        any_file = self.any_file or (self.by_git and not is_git)
        return Input(bool(fed or keeps), self.written, any_file, self.made)

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


def _git_only_shows(program: Program) -> bool:
    """Whether a subcommand of git leaves nothing in the repository."""
    return not program.runs_code and program.name not in ("git branch", "git tag")


def _git_shows_state(words: Sequence[Word]) -> bool:
    """Whether a git command prints more than the name of a commit."""
    texts = [w.text for w in words]
    return "rev-parse" not in texts or "--abbrev-ref" in texts or None in texts


# -- arithmetic: bash evaluates every name in it, and what the name holds, so only numbers may stand there --


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
