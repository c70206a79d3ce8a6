"""Quoting: a value in a bash command stays one piece of text, wherever its reference stands.

`compile_command` replaces each `[name]` by the expansion of a shell variable, written for
the quotes it stands in. The shell never parses what an expansion gives, so a value cannot
become code, whatever it holds; were the quotes misjudged, the text would arrive changed,
not executed. What a shell does evaluate again is refused (see `hazards`), except a plain
script for another shell, which reads the variable from its environment.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable

from rondel.workflows.task.brackets import REFERENCE, Place, is_reference, is_word, references
from rondel.workflows.task.hazards import ARITHMETIC, Command, Evaluated, evaluated, evaluated_here
from rondel.workflows.task.script import (
    AROUND,
    VARIABLE,
    HereDocument,
    Level,
    Names,
    Quote,
    Script,
    backticks,
    closing_brace,
    delimiter,
    pipeline,
)

_PLAIN_DOUBLE = re.compile(r'[^"\\$`]*"')
_BLANK = " \t"


def compile_command(command: str, known: Container[str], first: int = 0) -> Script:
    """`command` for bash, its references to `known` names replaced by expansions.

    The variables are numbered from `first`.
    """
    names = Names(known, first)
    text = _compile(command, names)
    return Script(text, tuple(names.numbers), frozenset(names.exported), tuple(names.problems))


def _compile(text: str, names: Names) -> str:
    scanner = _Scanner(text, names)
    scanner.commands(None)
    return "".join(scanner.out)


class _Scanner:
    """Reads a script once, from left to right, and writes it again with expansions."""

    def __init__(self, text: str, names: Names, readers: Iterable[Command] = ()) -> None:
        self.text = text
        self.names = names
        self.readers = readers  # of the here-document that this text is
        self.at = 0
        self.out: list[str] = []
        self.here: list[HereDocument] = []
        self.level = Level()

    def _next_is(self, what: str) -> bool:
        return self.text.startswith(what, self.at)

    def _after(self, offset: int = 1) -> str:
        return self.text[self.at + offset : self.at + offset + 1]

    def _take(self, count: int = 1) -> str:
        taken = self.text[self.at : self.at + count]
        self.at += len(taken)
        self.out.append(taken)
        return taken

    # -- commands -----------------------------------------------------------------------

    def commands(self, until: str | None, *, is_array: bool = False) -> None:
        """A list of commands up to `until`, which is taken too."""
        outer, self.level = self.level, Level(is_array)
        if is_array:
            self.level.command.add("array")
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == until and not self._ends_pattern():
                self._end_word()
                self._end_command("")
                self._take()
                break
            self._one(char)
        self._end_word()
        self._end_command("")
        self.level = outer

    def _ends_pattern(self) -> bool:
        if self.level.cases:
            self._end_word()
        return self.level.in_pattern

    def _one(self, char: str) -> None:
        """The next thing outside all quotes."""
        if char in _BLANK:
            self._end_word()
            self._take()
        elif char == "#" and self.level.word_start is None:
            end = self.text.find("\n", self.at)
            self._take((end if end >= 0 else len(self.text)) - self.at)
        elif char == "\n":
            self._end_word()
            self._end_command(char)
            self._take()
            self._here_bodies()
        elif char in ";&|()<>" and self.level.command.is_condition:
            self._end_word()
            self._take()
        elif char in ";&|":
            self._separator(char)
        elif char in "()":
            self._parenthesis(char)
        elif char in "<>":
            self._redirection()
        else:
            self._in_word(char)

    def _separator(self, char: str) -> None:
        self._end_word()
        if self._next_is("&>"):
            self.level.command.redirect = self._take(2)
            return
        cases = self.level.cases
        if char == ";" and cases[-1:] == ["body"] and self._after() in (";", "&") and self._after():
            cases[-1] = "pattern"
        doubled = self._after() == char
        self._end_command("" if char == "|" and not doubled else char)
        self._take(2 if doubled else 1)

    def _parenthesis(self, char: str) -> None:
        if self.level.in_pattern:
            self._end_word()
            if char == ")":
                self.level.cases[-1] = "body"
            self._take()
        elif char == "(" and self.level.word_start is not None and self.text[self.at - 1] == "=":
            self._take()
            self.commands(")", is_array=True)
        elif self._next_is("((") and self.level.word_start is None:
            self._take(2)
            self._arithmetic("))")
        else:
            self._end_word()
            self._end_command(char)
            self._take()
            if char == "(":
                self.commands(")")

    def _redirection(self) -> None:
        if self._after() == "(":
            self._begin_word()
            self._take(2)
            self.commands(")")
            return
        start = self.level.word_start
        if start is not None and self.text[start : self.at].isdigit():
            self.level.word_start = None
        self._end_word()
        if self._next_is("<<<"):
            self.level.command.redirect = self._take(3)
        elif self._next_is("<<"):
            self._here_operator()
        else:
            self.level.command.redirect = self._take(2 if self._after() in (">", "&", "|") else 1)

    # -- words --------------------------------------------------------------------------

    def _begin_word(self) -> None:
        if self.level.word_start is None:
            self.level.word_start = self.at

    def _end_word(self) -> None:
        """The word before this place is whole; it may be the command's name, or end a `[[`."""
        level = self.level
        if level.word_start is None:
            return
        word = self.text[level.word_start : self.at]
        level.word_start = None
        if level.in_pattern:
            if word == "esac":
                level.cases.pop()
        elif level.cases[-1:] == ["head"] and word == "in":
            level.cases[-1] = "pattern"
            self._end_command("in")
        else:
            self._add_word(word)

    def _add_word(self, word: str) -> None:
        self.level.add(word)
        self.names.integers |= self.level.command.declares_integers
        if word == "]]" and self.level.command.is_condition:
            self._end_command("]]")

    def _end_command(self, separator: str) -> None:
        """The command before this place is whole; without a separator its pipeline goes on."""
        for words in self.level.next_command(piped=not separator):
            self.names.problem(words)

    def _in_word(self, char: str) -> None:
        """The next piece of a word outside all quotes."""
        self._begin_word()
        if char == "\\":
            self._take(2)
        elif char == "'":
            self._single()
        elif char == '"':
            self._double()
        elif char == "`":
            self._backticks(Quote.NONE)
        elif char == "$":
            self._dollar(Quote.NONE)
        elif char == "[":
            self.bracket(Quote.NONE)
        else:
            self._take()

    def _single(self) -> None:
        end = self.text.find("'", self.at + 1)
        end = end if end >= 0 else len(self.text)
        if self._begins_script():
            self._script(self.text[self.at + 1 : end], end + 1)
            return
        self._take()
        while self.at < end:
            if self.text[self.at] == "[":
                self.bracket(Quote.SINGLE)
            else:
                self._take()
        self._take()

    def _ansi(self) -> None:
        self._take(2)
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                self._take(2)
            elif char == "[":
                self.bracket(Quote.ANSI)
            elif self._take() == "'":
                return

    def _double(self) -> None:
        plain = _PLAIN_DOUBLE.match(self.text, self.at + 1)
        if plain and self._begins_script():
            self._script(plain[0][:-1], plain.end())
            return
        self._take()
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self._take()
                return
            self.expanding(char, Quote.DOUBLE)

    def expanding(self, char: str, quote: Quote) -> None:
        """The next piece of a text in which the shell expands."""
        if char == "\\":
            self._take(2)
        elif char == "$":
            self._dollar(quote)
        elif char == "`":
            self._backticks(quote)
        elif char == "[":
            self.bracket(quote)
        else:
            self._take()

    # -- what the shell expands ---------------------------------------------------------

    def _dollar(self, quote: Quote) -> None:
        after = self._after()
        if self._next_is("$(("):
            self._take(3)
            self._arithmetic("))")
        elif after == "(":
            self._take(2)
            self.commands(")")
        elif after == "{":
            self._parameter()
        elif after == "[":
            self._take()
            self._note_in_arithmetic()
            self._take()
            self._arithmetic("]")
        elif after == "'" and quote is Quote.NONE:
            self._ansi()
        elif after == '"' and quote is Quote.NONE:
            self._take()
            self._double()
        else:
            self._take(2 if after and (is_word(after) or after in "@*#?-$!") else 1)

    def _parameter(self) -> None:
        """`${…}`, verbatim: its subscripts and patterns are bash."""
        end = closing_brace(self.text, self.at + 2)
        inner = self.text[self.at + 2 : end]
        rest = re.sub(r"^[!#]?\w*(\[[^]]*\])?", "", inner)
        for name in references(rest):
            if name in self.names.known:
                self.names.problem(
                    f"[{name}] stands inside ${{…}}; assign it to a variable of the shell first"
                )
        self._take(end + 1 - self.at)

    def _arithmetic(self, closing: str) -> None:
        """Arithmetic, verbatim: the shell evaluates the text of a variable there, so no value may enter."""
        depth = 0
        while self.at < len(self.text):
            char = self.text[self.at]
            if depth == 0 and self._next_is(closing):
                self._take(len(closing))
                return
            if char == "[" and not is_word(self.text[self.at - 1]):
                self._note_in_arithmetic()
            depth += (char in "([") - (char in ")]")
            if char == "$":
                self._dollar(Quote.DOUBLE)
            elif char == "`":
                self._backticks(Quote.DOUBLE)
            else:
                self._take()

    def _note_in_arithmetic(self) -> None:
        found = REFERENCE.match(self.text, self.at)
        if found and found[1] in self.names.known:
            self.names.refuse(found[1], ARITHMETIC)

    def _backticks(self, quote: Quote) -> None:
        """`…`, written as $(…) where a reference stands in it."""
        end, inner = backticks(self.text, self.at, quote)
        if not references(self.text[self.at + 1 : end]):
            self._take(end + 1 - self.at)
            return
        self.at = end + 1
        self.out.append(f"$({_compile(inner, self.names)}\n)")

    # -- here-documents -----------------------------------------------------------------

    def _here_operator(self) -> None:
        strips_tabs = self._next_is("<<-")
        self._take(3 if strips_tabs else 2)
        while self._after(0) and self._after(0) in _BLANK:
            self._take()
        raw, meant = delimiter(self.text, self.at)
        spot = len(self.out)
        self._take(len(raw))
        readers = [self.level.command, *pipeline(self.text[self.at :].partition("\n")[0])]
        self.here.append(HereDocument(meant, meant != raw, strips_tabs, spot, readers))

    def _here_bodies(self) -> None:
        pending, self.here = self.here, []
        for document in pending:
            self._here_body(document)

    def _here_body(self, document: HereDocument) -> None:
        """One body, up to and with the line of its delimiter."""
        end, closing = document.end(self.text, self.at)
        body = self.text[self.at : end]
        self.at = end + len(closing or "")
        if not document.quoted:
            body = self._expanded(body, document)
        elif references(body) and closing is not None:
            closing = f"{VARIABLE}END"
            while closing in body:
                closing += "_"
            body = self._unquoted(body, document)
            self.out[document.spot] = closing
        self.out.append(body + (closing or ""))

    def _expanded(self, body: str, document: HereDocument) -> str:
        """A body in which the shell expands."""
        scanner = _Scanner(body, self.names, document.commands)
        while scanner.at < len(body):
            scanner.expanding(body[scanner.at], Quote.HERE)
        return "".join(scanner.out)

    def _unquoted(self, body: str, document: HereDocument) -> str:
        """A body in which the shell does not expand, for a here-document in which it does."""
        scanner = _Scanner(body, self.names, document.commands)
        while scanner.at < len(body):
            stop = body.find("[", scanner.at)
            stop = stop if stop >= 0 else len(body)
            scanner.out.append(re.sub(r"([\\$`])", r"\\\1", body[scanner.at : stop]))
            scanner.at = stop
            if stop < len(body):
                scanner.bracket(Quote.HERE)
        return "".join(scanner.out)

    # -- references ---------------------------------------------------------------------

    def bracket(self, quote: Quote) -> None:
        """`[`: a reference, or bash."""
        found = REFERENCE.match(self.text, self.at)
        if found is None or not is_reference(self._place(found, quote), self.names.known):
            self._take()
            return
        name = found[1]
        if name not in self.names.known:
            self.names.problem(
                f"there is no variable [{name}]; write \\[{name}] where the brackets are meant as they stand"
            )
        elif (reason := self._evaluated(quote)) is not None:
            self.names.refuse(name, reason)
        self.level.command.names.append(name)
        self.at = found.end()
        self.out.append(AROUND[quote] % self.names.variable(name))

    def _evaluated(self, quote: Quote) -> Evaluated | None:
        level = self.level
        if quote is Quote.HERE:
            return evaluated_here(self.readers)
        if level.is_array or level.in_pattern:
            return None
        word = "" if level.word_start is None else self.text[level.word_start : self.at]
        return evaluated(level.command, word, integers=self.names.integers)

    def _place(self, found: re.Match[str], quote: Quote) -> Place:
        level = self.level
        bare = quote is Quote.NONE
        start = level.word_start if bare else None
        return Place(
            self.text,
            found,
            bare=bare,
            word_start=start,
            in_array=bare and level.is_array,
            in_pattern=level.command.is_condition or level.in_pattern,
        )

    def _begins_script(self) -> bool:
        """Whether the quote here begins a word that is a script for another shell."""
        return self.level.word_start == self.at and self.level.command.expects_script

    def _script(self, inner: str, end: int) -> None:
        """A script in quotes: its references become expansions of the other shell's environment."""
        own = self.names.nested()
        compiled = _compile(inner, own)
        self.names.export(own, compiled)
        self.at = end
        self.out.append("'" + compiled.replace("'", "'\\''") + "'")
