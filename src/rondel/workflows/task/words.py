"""Words: what a program may be given as its words and on its standard input, by its name.

A plain program takes values everywhere; a guarded one with options that run nothing; an interpreter beside a
program that is written out; one that runs what it is given takes none. A program that is not known takes
values as arguments and on its standard input: what it does with them is its own matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from rondel.workflows.task import programs
from rondel.workflows.task.bash import Input, Word


def base(text: str) -> str:
    """A program's name without its folder and its version: /usr/bin/python3.11 is python."""
    name = text.rpartition("/")[2].lower()
    return name if name in programs.NUMBERED else re.sub(r"(?<![-\d.])[-\d.]++$", "", name) or name


def program_name(words: Sequence[Word]) -> str:
    """The name of the program that is run in the end; empty where it is not known."""
    last = base(words[0].text or "") if words else ""
    if last not in programs.PREFIXES:
        return last
    rest, _ = behind_prefix(words)
    return program_name(rest)


def known(name: str) -> bool:
    """Whether a name has a meaning here, so that no function may have it."""
    return any(name in table for table in programs.KNOWN)


def is_setting(variable: str) -> bool:
    """Whether bash or programs read a variable of this name to know what to do."""
    return programs.SETTINGS.fullmatch(variable) is not None


# -- what a command is, by its words ----------------------------------------------------------


def behind_prefix(words: Sequence[Word]) -> tuple[Sequence[Word], str]:
    """The command that a prefix runs, and what is wrong with the words before it."""
    name = base(words[0].text or "")
    flags, valued, operands = programs.PREFIXES[name]
    takes_word = re.compile(f"-[{valued or '-'}]")
    takes_none = re.compile(f"-[{flags or '-'}]+|-[{valued or '-'}][\\w.:=+{{}}%@-]+")
    at = 1
    while at < len(words) and words[at].text != "--":
        text = words[at].text or ""
        if takes_word.fullmatch(text):
            at += 2
        elif takes_none.fullmatch(text) or (name in ("env", "sudo") and re.match(r"\w+=", words[at].head)):
            at += 1
        elif words[at].head.startswith("-"):
            return (), f"an option of {name} that is not known"
        else:
            break
    at += operands + (words[at : at + 1] != [] and words[at].text == "--")
    if any(word.many for word in words[1:at]):
        return (), f"a word of {name} that may become several"
    return words[at:], ""


def shell_script(words: Sequence[Word]) -> int | None:
    """The word that is the script of `bash -c`; None where there is none that is written out."""
    for at in range(1, len(words)):
        text = words[at].text
        if text is None:
            return None
        if words[at - 1].text in ("-o", "+o", "-O"):
            continue
        if re.fullmatch(r"-[eulxfnv]*c", text):
            following = words[at + 1 : at + 2]
            return at + 1 if following and following[0].text is not None else None
        if not re.fullmatch(r"[-+][euxfnvol]+|-O|--(norc|noprofile|posix|login)", text):
            return None
    return None


def prints_its_words(words: Sequence[Word]) -> bool:
    """Whether a command prints its words as they are: `echo WORD`, `printf %s WORD`."""
    name = words[0].text if words else ""
    if name == "echo":
        return not any(w.head.startswith("-") and w.text != "-n" for w in words[1:])
    return (
        name == "printf"
        and len(words) > 1
        and re.fullmatch(r"(%s|[^%\\]|\\[nt0])*", words[1].text or "%") is not None
    )


def variables_set(words: Sequence[Word]) -> Iterator[tuple[str, bool]]:
    """The variables that a command sets, and whether to what it reads."""
    name = program_name(words)
    texts = [w.text or "" for w in words[1:]]
    if name in ("read", "mapfile", "readarray"):
        names = [t for t in texts if programs.NAME.fullmatch(t)]
        yield from ((n, True) for n in names or ["REPLY" if name == "read" else "MAPFILE"])
    elif name == "getopts" or (name == "printf" and texts[:1] == ["-v"]):
        yield from ((t, False) for t in texts[1:2])


def cuts_what_it_reads(words: Sequence[Word]) -> bool:
    """Whether `read` takes more or less than whole lines."""
    texts = [w.text for w in words]
    return (
        any(t is None or re.match(r"-\w*[nNkdi]", t) for t in texts)
        and texts[-3:-1] != ["-d", ""]
        and "" not in texts
    )


def writes(words: Sequence[Word]) -> bool:
    """Whether a command writes what it reads into a file."""
    name = program_name(words)
    return name in programs.WRITERS and (
        name != "sort" or any(w.head.startswith(("-o", "--o")) for w in words)
    )


def made(words: Sequence[Word]) -> _Made:
    """Which words of a command name what it reads, and the files or folders that it makes of that.

    None stands for one whose name is not written out.
    """
    name = programs.SAME.get(program_name(words), program_name(words))
    find = _MAKES.get(name)
    first = next((n for n, w in enumerate(words) if base(w.text or "") == program_name(words)), 0)
    return find(words, first + 1) if find is not None else ((), ())


_Words = Sequence[Word]
_Made = tuple[Sequence[int], Sequence[str | None]]


def _to_the_last(words: _Words, first: int) -> _Made:
    """`cp FROM… TO`, `cp -t TO FROM…`."""
    if folder := _after(words, "-t", "--target-directory"):
        return range(first, len(words)), folder
    return range(first, len(words) - 1), [words[-1].text]


def _by_option(*options: str, else_here: bool) -> Callable[[_Words, int], _Made]:
    """`curl -o TO FROM`; without the option it is a file here, or none."""

    def find(words: _Words, first: int) -> _Made:
        return range(first, len(words)), _after(words, *options) or ([None] if else_here else [])

    return find


def _downloaded(words: _Words, first: int) -> _Made:
    named = any(re.match(r"-\w*O|--remote-name", w.head) for w in words[first:])
    return range(first, len(words)), [*_after(words, "-o", "--output"), *([None] if named else [])]


def _unpacked(words: _Words, first: int) -> _Made:
    letters = words[first].head if len(words) > first else ""
    unpacks = any(re.match(r"-\w*x|--(ex|get)", w.head) for w in words[first:]) or re.match(r"\w*x", letters)
    return (range(first, len(words)), _after(words, "-C", "--directory") or [None]) if unpacks else ((), ())


def _converted(words: _Words, first: int) -> _Made:
    """`dd if=FROM of=TO`."""
    targets = [w.text.removeprefix("of=") if w.text else None for w in words if w.head.startswith("of=")]
    return [n for n in range(first, len(words)) if not words[n].head.startswith("of=")], targets


def _cloned(words: _Words, first: int) -> _Made:
    at = next((n for n in range(first, len(words)) if words[n].text == "clone"), None)
    return ((), ()) if at is None else (range(at + 1, len(words)), [words[-1].text])


def _after(words: Sequence[Word], *options: str) -> list[str | None]:
    """What options say, as a word of its own or in the same; None for what is not written out."""
    found: list[str | None] = []
    for before, word in pairwise((*words, Word("", ""))):
        for option in options:
            short = not option.startswith("--")
            own = re.fullmatch(rf"-\w*{option[1:]}", before.text or "") if short else before.text == option
            start = option if short else f"{option}="
            if own:
                found.append(word.text)
            elif before.head.startswith(start):
                found.append(before.text.removeprefix(start) if before.text else None)
    return found


_MAKES: dict[str, Callable[[_Words, int], _Made]] = {
    **dict.fromkeys(("cp", "mv", "ln", "link", "install", "rsync"), _to_the_last),
    **dict.fromkeys(("split", "csplit"), _by_option(else_here=True)),
    "curl": _downloaded,
    "wget": _by_option("-O", "--output-document", "-P", "--directory-prefix", else_here=True),
    "unzip": _by_option("-d", else_here=True),
    "sort": _by_option("-o", "--output", else_here=False),
    "tar": _unpacked,
    "dd": _converted,
    "git": _cloned,
}


# -- what may not be ---------------------------------------------------------------------------


def problem(words: Sequence[Word], given: Input) -> str:
    """Why this command may not be given values as it is; empty where it may."""
    words = _module_as_program(words)
    path = words[0].text or ""
    name = base(path)
    name = programs.SAME.get(name, name)
    if given.written.intersection(path.split("/")) or path.startswith(("/proc/", "/dev/")):
        return f"{path}, which may be anything"
    rule = _RULES.get(name)
    if rule is not None:
        return rule(words)
    if name in programs.PLAIN:
        return _copies(name, words)
    if given.any_file and name not in programs.READERS_OF_CODE:
        return f"{name}, which may run a file that a value was written to"
    if name in programs.SHELLS | programs.LANGUAGES | programs.READERS_OF_CODE:
        return programs.interpreter_problem(name, words, given)
    if name in ("source", "."):
        return programs.script_file(name, words[1:], given)
    has_value = bool(given.fed or given.written) or any(w.taint for w in words)
    has_script = any("$" in (w.text or "") for w in words[1:])  # which may use a variable that holds a value
    if name in programs.OF_BASH or (name in programs.RUN_WHAT_THEY_GET and (has_value or has_script)):
        return f"{name}, which runs what it is given"
    if has_value and (ran := _runs_by_subcommand(name, words)):
        return f"{name} {ran}, which runs what it is given"
    if name in programs.GUARDED:
        return _guarded(name, words) if has_value else ""
    return _unknown(name, words)


def _runs_by_subcommand(name: str, words: Sequence[Word]) -> str:
    """The word by which a program runs what it is given: `uv run` a program that is not written out."""
    runs = programs.SUBCOMMANDS_THAT_RUN.get(name, frozenset())
    at = next((n for n, w in enumerate(words) if n and w.text in runs), None)
    if at is None:
        return ""
    program = next((w for w in words[at + 1 :] if not w.head.startswith("-")), None)
    is_named = words[at].text in ("run", "exec") and program is not None and program.text is not None
    return "" if is_named else words[at].text or ""


def _module_as_program(words: Sequence[Word]) -> Sequence[Word]:
    """`python -m pip …` is `pip …`, where a program of that name is known here."""
    if base(words[0].text or "") not in ("python", "pypy"):
        return words
    for at, word in enumerate(words[1:-1], start=1):
        if word.text is None or not word.text.startswith("-"):
            return words
        if re.fullmatch(r"-[A-Za-z]*m", word.text):
            module = (words[at + 1].text or "").partition(".")[0]
            is_program = module in {*programs.RUN_WHAT_THEY_GET, *programs.SUBCOMMANDS_THAT_RUN}
            is_program |= module in programs.GUARDED
            return [Word(module, module), *words[at + 2 :]] if is_program else words
    return words


def _copies(name: str, words: Sequence[Word]) -> str:
    """A copy of an interpreter would run under another name."""
    runs = programs.SHELLS | programs.LANGUAGES | programs.RUN_WHAT_THEY_GET | programs.PREFIXES.keys()
    copied = [w.text for w in words[1:] if "/" in (w.text or "") and base(w.text or "") in runs]
    return f"{name} of {copied[0]}" if copied and (name in programs.WRITERS or name in ("cat", "tee")) else ""


def _guarded(name: str, words: Sequence[Word]) -> str:
    """All options are known to run nothing, and none is computed."""
    rest = list(words[1:])
    while name == "git" and rest and rest[0].text in ("-C", "--no-pager", "-P"):
        rest = rest[2 if rest[0].text == "-C" else 1 :]
    first = rest[0].text if rest else ""
    if name == "git" and first not in programs.GIT_COMMANDS:
        return "git, with a command that is not known to run nothing"
    if name in ("tar", "npm", "docker") and (
        first is None or any(w.text in programs.NPM_RUNS for w in _subcommand(rest))
    ):
        return f"{name}, whose first word is not known to run nothing"
    for word in rest:
        if word.text == "--":
            break
        if word.text is None and not word.taint and word.many:
            return f"{name}, with a word that is not written out"
        option = re.match(r"--[\w-]+|-\w+", word.head)
        if option is not None and not _is_allowed(name, option[0]):
            return f"{name} {option[0]}, which is not known to run nothing"
    return _unknown(name, rest) if name in ("docker", "npm") else ""


def _subcommand(words: Sequence[Word]) -> Sequence[Word]:
    """The first word that is no option; behind options, which may take a word of their own, the first two."""
    plain = [w for w in words if not w.head.startswith("-")]
    return plain[: 2 if words and words[0].head.startswith("-") else 1]


def _is_allowed(name: str, option: str) -> bool:
    allowed = programs.GUARDED[name].split()
    if option in allowed or re.fullmatch(r"-\d+", option):
        return True
    letters = {a[1] for a in allowed if re.fullmatch(r"-\w", a)}
    if option.startswith("--"):
        return False
    return option[1] in letters if name in programs.ATTACHED else set(option[1:]) <= letters


def _unknown(name: str, words: Sequence[Word]) -> str:
    """An option whose name says that it runs something gets no value."""
    for before, word in pairwise(words):
        option = programs.OPTION_THAT_RUNS.match(word.head)
        if word.taint and (option is not None or programs.OPTION_THAT_RUNS.fullmatch(before.text or "")):
            return f"{name} {option[0] if option is not None else before.text}, which may run it"
    return ""


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
        known_one = (
            word.text in programs.SET_NAMES if named else programs.SET_OPTION.fullmatch(word.text or "")
        )
        if not known_one and (named or word.head.startswith(("-", "+"))):
            return "set, with an option that is not known"
    return ""


def _shopt(words: Sequence[Word]) -> str:
    return (
        "" if all(w.text in programs.SHOPT for w in words[1:]) else "shopt, with an option that is not known"
    )


def _printf(words: Sequence[Word]) -> str:
    first, second = [*words[1:3], Word("", ""), Word("", "")][:2]
    if first.text == "-v":
        return "" if programs.NAME.fullmatch(second.text or "") else "printf -v, which evaluates it"
    is_format = not first.many and (not first.head.startswith("-") or first.text == "--")
    return (
        "" if is_format and (first.text is not None or first.taint) else "a format of printf that is computed"
    )


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
        case [operator, _] if programs.UNARY.fullmatch(operator):
            return ""
        case [_, operator, _] if programs.BINARY.fullmatch(operator):
            return ""
    return "[ … ] that is more than one comparison (join several by &&)"


_RULES = {
    "read": _names_variables,
    "mapfile": _names_variables,
    "readarray": _names_variables,
    "wait": _names_variables,
    "getopts": _names_variables,
    "set": _set,
    "shopt": _shopt,
    "printf": _printf,
    "test": test,
    "[": test,
}


def takes_as_option(words: Sequence[Word], at: int) -> str:
    """The program that would take word `at` for an option, did it begin with `-`; else empty."""
    name = base(words[0].text or "")
    given = words[1:at]
    if name in programs.NO_OPTIONS or any(w.text == "--" for w in given):
        return ""
    if name == "printf" and any(not w.head.startswith("-") for w in given):
        return ""
    if name in programs.SHELLS and (script := shell_script(words)) is not None and at > script:
        return ""
    return name or "the command"
