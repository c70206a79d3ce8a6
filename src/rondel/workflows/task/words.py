"""Words: what each word of a command is for its program, by the table, and whether a value may be there."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from rondel.workflows.task import programs
from rondel.workflows.task.bash import Input, Word, taints
from rondel.workflows.task.programs import PROGRAMS, SHELLS, Program, base, names

_ROLES = {":": "_", "?": "_", "tree": "^"}  # of an option's argument; the others are their own
_SET_OPTION = re.compile(r"[-+][euxfvCETh]*o?")
_SET_NAMES = names("pipefail errexit nounset noglob xtrace verbose noclobber errtrace functrace")
_SHOPT = names(
    "-s -u -q nullglob failglob dotglob globstar extglob nocaseglob nocasematch inherit_errexit lastpipe"
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_UNARY = re.compile(r"-[a-hknoprstuwxzGLNOS]")
_BINARY = re.compile(r"==?|!=|<|>|-(eq|ne|lt|le|gt|ge|nt|ot|ef)")
_NO_OPTIONS = names("cd echo : true false test [ return exit shift")
_BUNDLES = names("tar gtar bsdtar")  # which take options without a dash


class Place(NamedTuple):
    """A word that is no option by itself, and what it is for its program."""

    at: int
    role: str  # as in the table
    option: str = ""  # whose argument it is
    text: str | None = None  # what is written out there


@dataclass
class Line:
    """A command by the table."""

    program: Program | None
    places: list[Place] = field(default_factory=list)
    problem: str = ""  # why no value may be on this line
    inner: int | None = None  # where the command begins that it runs
    writes_anywhere: bool = False

    def code(self) -> Place | None:
        """The program that stands on the line."""
        return next((p for p in self.places if p.role == "code"), None)


def read(words: Sequence[Word]) -> Line:
    """The words of a command, each with its role; the first is written out."""
    return _Reader(words).line


class _Reader:
    """Reads a command from left to right, through its subcommands."""

    def __init__(self, words: Sequence[Word]) -> None:
        self.words = words
        self.line = Line(PROGRAMS.get(base(words[0].text or "")))
        self.operands: list[int] = []
        self.options_end = False
        if self.line.program is not None:
            self._all(self.line.program)

    def _all(self, program: Program) -> None:
        at = 1
        while at < len(self.words) and self.line.inner is None and self.line.program is not None:
            at = self._next(self.line.program, at)
        if self.line.program is not None:
            self._operand_roles(self.line.program)
        self.line.writes_anywhere |= program.writes_anywhere

    def _next(self, program: Program, at: int) -> int:
        word = self.words[at]
        if self.options_end or program.name in _NO_OPTIONS:
            return self._operand(program, at)
        if word.text == "--":
            self.options_end = program.operands != ("sub",) and not program.passes_options_on
            return at + 1
        if re.match(r"\w+=", word.head) and program.name in ("env", "sudo"):
            self.line.places.append(Place(at, "env", text=word.text))
            return at + 1
        is_bundle = program.name in _BUNDLES and at == 1 and not word.head.startswith("-")
        if is_bundle or (word.head.startswith("-") and word.text != "-"):
            text = word.head if word.text is None else word.text
            if is_bundle and re.search("[fCXbN].", text):
                self._refuse(program, text)
            return self._option(program, at, "-" * is_bundle + text)
        if word.head.startswith("+") and program.name in SHELLS and not self.operands:
            self._refuse(program, word.head)
        if word.is_computed and program.is_guarded:
            self._problem(f"{program.name}, with a word that is not written out")
        return self._operand(program, at)

    def _refuse(self, program: Program, option: str) -> int:
        return self._problem(
            f"{program.name} {option}, an option that is not known to be harmless beside a value"
        )

    def _problem(self, what: str) -> int:
        self.line.problem = self.line.problem or what
        return 1

    # -- options -----------------------------------------------------------------------------

    def _option(self, program: Program, at: int, head: str) -> int:
        """The place behind an option and its arguments."""
        if head.startswith("--") or program.has_whole_options:
            name, equals, _ = head.partition("=")
            kind = program.options.get(name)
            if kind is None or (equals and kind in ("", "^")) or (not equals and self.words[at].text is None):
                return at + self._refuse(program, name)
            return self._argument(program, at, name, kind, len(name) + 1 if equals else None)
        if re.fullmatch(r"-\d+", head) and self.words[at].text is not None:
            return at + 1
        for place, letter in enumerate(head[1:], start=1):
            name = f"-{letter}"
            kind = program.options.get(name, "" if place > 1 and letter.isdecimal() else None)
            if kind is None:
                return at + self._refuse(program, name)
            self.line.writes_anywhere |= kind == "^"
            if kind not in ("", "^"):
                has_more = place + 1 < len(head) or self.words[at].text is None
                return self._argument(program, at, name, kind, place + 1 if has_more else None)
        return at + (1 if self.words[at].text is not None and head != "-" else self._refuse(program, head))

    def _argument(self, program: Program, at: int, name: str, kind: str, attached: int | None) -> int:
        """The place behind an option's argument, which stands in the same word or is the next one."""
        self.line.writes_anywhere |= kind == "^"
        if kind in ("", "^") or (kind == "?" and attached is None):
            return at + 1
        if attached is not None and kind == "code" and program.name in SHELLS:
            return at + self._refuse(program, self.words[at].head)  # there `-ce` is `-c -e`
        role = _ROLES.get(kind, kind)
        place = at if attached is not None else at + 1
        if place >= len(self.words):
            return place
        word = self.words[place]
        text = word.text[attached:] if word.text is not None and attached is not None else word.text
        if word.many and word.taint and program.is_guarded:
            self._problem(f"{program.name} {name}, whose argument may become several words")
        if role == "pair":
            self.line.places += [
                Place(place, "!", name),
                *([Place(place + 1, "_", name)] * (place + 1 < len(self.words))),
            ]
            return place + 2
        if role == "sub":
            return self._subcommand(program, place, text, is_module=True)
        self.line.places.append(Place(place, role, name, text))
        if role == "code" and program.operands[0] == "script":
            self.line.places += [Place(n, "_") for n in range(place + 1, len(self.words))]
            return len(self.words)
        return place + 1

    # -- operands ----------------------------------------------------------------------------

    def _operand(self, program: Program, at: int) -> int:
        number = len(self.operands)
        role = program.operands[number] if number < len(program.operands) else ""
        if role == "code" and self.line.code() is not None:
            role = "_"
        if role == "sub":
            return self._subcommand(program, at, self.words[at].text)
        if role == "command":
            self.line.inner = at
            return at
        self.operands.append(at)
        if role == "script":
            self.line.places += [Place(n, "_") for n in range(at + 1, len(self.words))]
            return len(self.words)
        return at + 1

    def _subcommand(self, program: Program, at: int, text: str | None, *, is_module: bool = False) -> int:
        """Go on by the line of the subcommand; of `python -m NAME` by that of a program of that name."""
        name = f"{program.name} {'-m ' if is_module else ''}{text or ''}".rstrip()
        known = (text or "") if is_module and text in _MODULES else name
        self.line.program = PROGRAMS.get(known) if text else None
        if self.line.program is None:
            self._problem(f"{name}, which is not known to take a value as data")
            return len(self.words)
        self.line.writes_anywhere |= self.line.program.writes_anywhere
        return at + 1

    def _operand_roles(self, program: Program) -> None:
        wanted = list(program.operands)
        if wanted[0] == "code" and self.line.code() is not None:
            wanted = wanted[1:]
        if wanted[-1] == ">" and any(p.role == ">" for p in self.line.places):
            wanted[-1] = "_"  # `cp -t TO FROM`
        several = next((n for n, role in enumerate(wanted) if role.endswith("*")), None)
        if several is not None:
            missing = len(self.operands) - len(wanted) + 1
            wanted[several : several + 1] = [wanted[several].rstrip("*")] * max(missing, 0)
        fixed = several if several is not None else len(wanted)
        for number, at in enumerate(self.operands):
            word, role = self.words[at], wanted[number] if number < len(wanted) else "!"
            text = word.text
            if role == "dd":
                role, text = (">", text[3:] if text else None) if word.head.startswith("of=") else ("_", text)
            if word.many and number < fixed and len(program.operands) > 1:
                self._problem(f"{program.name}, with a word that may become several")
            self.line.places.append(Place(at, role, text=text))


_MODULES = names("pytest json.tool venv mypy ruff black isort coverage")


# -- what a command does with what it gets -----------------------------------------------------


def last(words: Sequence[Word]) -> Sequence[Word]:
    """The command that is run in the end, behind `env`, `timeout` and the like."""
    while words and words[0].text is not None:
        inner = read(words).inner
        if inner is None:
            return words
        words = words[inner:]
    return words


def name_of(words: Sequence[Word]) -> str:
    """The name of the program that is run in the end; empty where it is not known."""
    found = last(words)
    return base(found[0].text or "") if found else ""


def shell_script(words: Sequence[Word]) -> int | None:
    """The word that is the script of `bash -c`; None where there is none that is written out."""
    line = read(words)
    code = line.code() if base(words[0].text or "") in SHELLS and not line.problem else None
    return code.at if code is not None and code.text is not None else None


def find_exec(words: Sequence[Word]) -> tuple[int, int] | None:
    """Where the command of `find -exec` begins and ends."""
    for at, each in enumerate(words):
        if each.text in ("-exec", "-execdir", "-ok", "-okdir"):
            ends = [n for n in range(at + 1, len(words)) if words[n].text in (";", "+")]
            return at + 1, ends[0] if ends else len(words)
    return None


def prints_its_words(words: Sequence[Word]) -> bool:
    """Whether a command prints its words as they are: `echo WORD`, `printf %s WORD`."""
    name = words[0].text if words else ""
    if name == "echo":
        return not any(w.head.startswith("-") and w.text != "-n" for w in words[1:])
    is_format = len(words) > 1 and re.fullmatch(r"(%s|[^%\\]|\\[nt0])*", words[1].text or "%") is not None
    return name == "printf" and is_format


def prints_a_number(words: Sequence[Word]) -> bool:
    """Whether a command prints nothing but one number: `wc -l` of its standard input."""
    texts = [w.text or "?" for w in words]
    return texts[0] == "wc" and re.fullmatch(r"-[lwcm]", " ".join(texts[1:])) is not None


def sets(words: Sequence[Word]) -> list[tuple[str, bool]]:
    """The variables that a command sets, and whether to what it reads."""
    found = last(words)
    name, texts = name_of(words), [w.text or "" for w in found[1:]]
    if name in ("read", "mapfile", "readarray"):
        names = [t for t in texts if _NAME.fullmatch(t)]
        return [(n, True) for n in names or ["REPLY" if name == "read" else "MAPFILE"]]
    if name == "getopts" or (name == "printf" and texts[:1] == ["-v"]):
        return [(t, False) for t in texts[1:2]]
    return []


def cuts_what_it_reads(words: Sequence[Word]) -> bool:
    """Whether `read` takes more or less than whole lines."""
    texts = [w.text for w in words]
    cuts = any(t is None or re.match(r"-\w*[nNkdi]", t) for t in texts)
    return cuts and texts[-3:-1] != ["-d", ""] and "" not in texts


def may_write(name: str, line: Line) -> bool:
    """Whether a program that stands on the line writes files."""
    code = line.code()
    return code is not None and "awk" in name and ">" in (code.text or ">")


# -- what may not be ---------------------------------------------------------------------------


def problem(words: Sequence[Word], given: Input) -> str:
    """Why this command may not stand in a script that has values; empty where it may."""
    path = words[0].text or ""
    name = base(path)
    rule = _RULES.get(name)
    if rule is not None:
        return rule(words)
    if name in programs.BUILTINS:
        return f"{name}, which may evaluate what it is given"
    line = read(words)
    program = line.program
    if name in given.made:
        return f"{name}, a file that the same command writes"
    runs = program is None or program.runs_code or name == "git"
    if runs and (given.any_file or given.is_written(words[0])):
        return f"{name}, which may run a file that a value was written to"
    if not given.reaches and not taints(words):
        return _reads_its_program(name, line)
    if program is None and not line.problem and programs.is_own(path):
        return ""
    if program is None or line.problem:
        return line.problem or f"{name}, which is not known to take a value as data"
    wrong = (_wrong(name, words[p.at], p, given) for p in line.places)
    return next(filter(None, wrong), "") or _reads_its_program(name, line)


def _reads_its_program(name: str, line: Line) -> str:
    """An interpreter without a script reads its standard input."""
    if line.program is None or line.program.operands[0] != "script" or line.problem:
        return ""
    has_one = any(p.role in ("script", "code") for p in line.places)
    return "" if has_one else f"{name}, which reads its program from its standard input"


def _wrong(name: str, word: Word, place: Place, given: Input) -> str:
    """Why a word may not be what it is."""
    if place.role == "code":
        return programs.code_problem(name, place.text)
    if place.role == "script":
        if place.text is None or place.text.startswith(("-", "/dev/", "/proc/")):
            return f"{name}, whose script is not a file that is written out"
        return f"{name}, which may run a file that a value was written to" if given.is_written(word) else ""
    if place.role == "/" and given.is_written(word):
        return f"{name}, which may run a file that a value was written to"
    if place.role == "!" and "%output" in (place.text or ""):
        return f"{name} {place.option} with %output, which writes a file"  # a format of curl
    if not word.taint or word.text is not None:
        return ""
    if place.role == "!":
        return f"{name} {place.option}".rstrip() + ", where it is not known to be data"
    return (
        f"{name}, which runs the file that it names (write a folder before it)"
        if place.role == "/" and "/" not in word.head
        else ""
    )


# -- commands of bash with a form of their own ---------------------------------------------------


def _names_variables(words: Sequence[Word]) -> str:
    """`read`, `mapfile`, `getopts`, `wait`: every word is written out."""
    name = words[0].text
    for word in words[1:]:
        if word.text is None or "[" in word.text or (re.match(r"-\w*[CpcE]", word.text) and name != "read"):
            return f"{name}, with a word that is not written out"
    return ""


def _set(words: Sequence[Word]) -> str:
    for before, word in pairwise(words):
        if word.text == "--":
            return ""
        named = before is not words[0] and (before.text or "").endswith("o")
        is_known = word.text in _SET_NAMES if named else _SET_OPTION.fullmatch(word.text or "")
        if not is_known and (named or word.head.startswith(("-", "+"))):
            return "set, with an option that is not known"
    return ""


def _shopt(words: Sequence[Word]) -> str:
    return "" if all(w.text in _SHOPT for w in words[1:]) else "shopt, with an option that is not known"


def _printf(words: Sequence[Word]) -> str:
    first, second = [*words[1:3], Word("", ""), Word("", "")][:2]
    if first.text == "-v":
        return "" if _NAME.fullmatch(second.text or "") else "printf -v, which evaluates it"
    is_format = not first.many and (not first.head.startswith("-") or first.text == "--")
    fine = is_format and (first.text is not None or first.taint)
    return "" if fine else "a format of printf that is computed"


def test(words: Sequence[Word]) -> str:
    """`[ … ]` is one comparison, whose operator is written out and whose words stay single."""
    rest = [w for w in words[1:] if w.text != "]"]
    if not any(w.taint for w in rest):
        names = any(w.text in ("-v", "-R") or (w.many and w is rest[0]) for w in rest)
        unknown = any(w.text is None or "[" in w.text for w in rest)
        return "[ … ] that may name a variable by a computed text" if names and unknown else ""
    if any(w.many for w in rest):
        return "[ … ] without quotes around it"
    texts = [w.text or "" for w in rest[1 if rest[0].text == "!" else 0 :]]
    match texts:
        case [_]:
            return ""
        case [operator, _] if _UNARY.fullmatch(operator):
            return ""
        case [_, operator, _] if _BINARY.fullmatch(operator):
            return ""
    return "[ … ] that is more than one comparison (join several by &&)"


_RULES = {
    **dict.fromkeys(("read", "mapfile", "readarray", "wait", "getopts"), _names_variables),
    **dict.fromkeys(("test", "["), test),
    "set": _set,
    "shopt": _shopt,
    "printf": _printf,
}


def takes_as_option(words: Sequence[Word], at: int) -> str:
    """The program that would take word `at` for an option, did it begin with `-`; else empty."""
    name = base(words[0].text or "")
    given = words[1:at]
    program = read(words).program
    passes_on = program is not None and program.passes_options_on
    if name in _NO_OPTIONS or (any(w.text == "--" for w in given) and not passes_on):
        return ""
    if name == "printf" and any(not w.head.startswith("-") for w in given):
        return ""
    if name in SHELLS and (script := shell_script(words)) is not None and at > script:
        return ""
    return name or "the command"
