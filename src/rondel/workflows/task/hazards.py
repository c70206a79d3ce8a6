"""Hazards: the places of a command where a shell or another program evaluates its text again.

A value there would be code, however it is quoted. The author of a command is trusted (a
person allowed it); the value is not. So this looks for honest mistakes, not for disguises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

_STAYS = frozenset(
    ("if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "coproc", "function")
)
_PREFIXES = frozenset(
    (
        "exec",
        "command",
        "builtin",
        "env",
        "sudo",
        "doas",
        "nohup",
        "nice",
        "ionice",
        "setsid",
        "timeout",
        "stdbuf",
        "xargs",
        "parallel",
        "watch",
    )
)
_SHELLS = frozenset(("bash", "sh", "dash", "zsh", "ksh", "ash", "mksh", "rbash", "busybox", "su", "runuser"))
_LANGUAGES = re.compile(
    r"^(python[\d.]*|perl|ruby|node|nodejs|php|lua[\d.]*|osascript|Rscript|pwsh|bun|deno)$"
)
_SCRIPT_OPTION = re.compile(r"-\w*[cEer]|--eval|--print|-p")
_PROGRAMS = frozenset(("awk", "gawk", "mawk", "nawk", "sed", "gsed"))
_EVALUATING = frozenset(
    (
        "eval",
        "let",
        "unset",
        "read",
        "mapfile",
        "readarray",
        "trap",
        "getopts",
        "alias",
        "bind",
        "compgen",
        "complete",
        "enable",
        "wait",
    )
)
_DECLARING = frozenset(("declare", "typeset", "local", "readonly", "export"))
_COMPARING = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v", "-R"))
_ASSIGNMENT = re.compile(r"^\w+(\[[^]]*\])?\+?=")
_NUMBER = re.compile(r"^\d+(\.\d+)?[smhd]?$")


@dataclass(frozen=True)
class Evaluated:
    """A place where a value would be evaluated, why, and what to write instead."""

    where: str
    why: str
    advice: str


ARITHMETIC = Evaluated("arithmetic", "which evaluates it", "compare it as text instead")
_NAME = Evaluated("the place of a command's name", "which would run it", "name the command itself")
_INTEGER = Evaluated("an assignment to an integer", "which evaluates it", "leave out -i")
_SCRIPT = Evaluated(
    "a script for another shell",
    "which would be code there",
    "pass it as an argument: bash -c '… \"$1\" …' bash […]",
)


@dataclass
class Command:
    """One simple command as far as it was read."""

    words: list[str] = field(default_factory=list)
    redirect: str = ""  # the operator whose file or text is the next word
    expects_name: bool = True  # the next word is the command's own name
    names: list[str] = field(default_factory=list)  # the references in it

    def add(self, word: str) -> None:
        """Take in one more whole word."""
        if self.redirect:
            self.redirect = ""
        elif not self.expects_name:
            self.words.append(word)
        elif not self.words:
            if word not in _STAYS and not _ASSIGNMENT.match(word):
                self._take_name(word)
        elif word.startswith("-") or _NUMBER.match(word) or _ASSIGNMENT.match(word):
            self.words.append(word)
        else:
            self._take_name(word)

    def _take_name(self, word: str) -> None:
        self.words.append(word)
        self.expects_name = _plain(word) in _PREFIXES

    @property
    def is_condition(self) -> bool:
        """Whether this is `[[ … ]]`."""
        return self.words[:1] == ["[["]

    @property
    def declares_integers(self) -> bool:
        """Whether a variable gets the attribute that makes its assignments arithmetic."""
        return bool(self.words) and _plain(self.words[0]) in _DECLARING and _has_option(self.words[1:], "i")

    @property
    def expects_script(self) -> bool:
        """Whether the next word is a script for another shell."""
        return (
            len(self.words) > 1
            and re.fullmatch(r"-\w*c", self.words[-1]) is not None
            and any(_plain(w) in _SHELLS for w in self.words[:-1])
        )

    @property
    def reads_script(self) -> bool:
        """Whether its standard input is code: a shell or an interpreter without a file or a script."""
        plain = [_plain(w) for w in self.words]
        name = next((w for w in plain if w not in _PREFIXES and not w.startswith("-")), "")
        if name not in _SHELLS and not _LANGUAGES.match(name):
            return False
        rest = plain[plain.index(name) + 1 :]
        return all(w.startswith("-") and not _is_script_option(name, w) for w in rest) or rest[:1] == ["-s"]

    def problems(self, piped: list[str]) -> list[str]:
        """What only the whole command shows; `piped` are the references earlier in its pipeline."""
        found = []
        comparing = [w for w in self.words if w in _COMPARING]
        if self.is_condition and comparing:
            found += [
                f"[{name}] stands beside {comparing[0]} in [[ … ]], which evaluates it; use [ … ] instead"
                for name in self.names
            ]
        if piped and (self.reads_script or self._fills_in_a_script()):
            found += [f"[{name}] is piped into {self.words[0]}, which would run it" for name in piped]
        return found

    def _fills_in_a_script(self) -> bool:
        """Whether this is `xargs -I{} sh -c '… {} …'`."""
        plain = [_plain(w) for w in self.words]
        return plain[:1] in (["xargs"], ["parallel"]) and bool(_SHELLS & set(plain)) and "{}" in plain[-1]


def evaluated(command: Command, word: str, *, integers: bool) -> Evaluated | None:
    """Why a value must not stand in the word that begins with `word`; None when it may."""
    if command.redirect:
        return _SCRIPT if command.redirect == "<<<" and command.reads_script else None
    if command.is_condition:
        return None
    assigns = _ASSIGNMENT.match(word) is not None
    if command.expects_name:
        if assigns:
            return _INTEGER if integers else None
        return _NAME
    if command.expects_script:
        return _SCRIPT
    words = [_plain(w) for w in command.words]
    name = next((w for w in words if w not in _PREFIXES), words[0])
    return _by_name(name, words, word, assigns=assigns)


def evaluated_here(readers: Iterable[Command]) -> Evaluated | None:
    """Why a value must not stand in a here-document for these commands; None when it may."""
    return _SCRIPT if any(command.reads_script for command in readers) else None


def _by_name(name: str, words: list[str], word: str, *, assigns: bool) -> Evaluated | None:
    """What the command of this name does with the value."""
    if _takes_a_script(name, words, word):
        return Evaluated(f"a script of {name}", "which would be code there", "pass it as an argument")
    last = words[-1]
    declares = name in _DECLARING and (not assigns or any(_has_option(words, o) for o in "inaA"))
    tests = name in ("test", "[") and last in ("-v", "-R")
    if name in _EVALUATING or declares or tests or (name == "printf" and last == "-v"):
        advice = f"write {name} NAME=[…]" if declares else "assign it to a variable first"
        return Evaluated(f"an argument of {name}", "which evaluates it", advice)
    return None


def _takes_a_script(name: str, words: list[str], word: str) -> bool:
    """Whether the next word is code in another language, or for another machine's shell."""
    if name in _PROGRAMS:
        return _is_program_of(words, word)
    if name == "ssh":
        return len([w for w in words if not w.startswith("-")]) > 1
    return any(_LANGUAGES.match(w) for w in words[:-1]) and _SCRIPT_OPTION.fullmatch(words[-1]) is not None


def _is_program_of(words: list[str], word: str) -> bool:
    """Whether the next word of awk or sed is its program and not a file or a variable."""
    last = words[-1]
    if last in ("-e", "--expression"):
        return True
    with_value = {"-v", "-F", "-f", "--file"}
    if last in with_value or word.startswith("-") or {"-f", "--file"} & set(words):
        return False
    given = [w for before, w in pairwise(words) if before not in with_value]
    return all(w.startswith("-") for w in given)


def _is_script_option(name: str, word: str) -> bool:
    option = re.compile(r"-\w*c") if name in _SHELLS else _SCRIPT_OPTION
    return option.fullmatch(word) is not None


def _has_option(words: list[str], letter: str) -> bool:
    return any(re.match(rf"^[-+]\w*{letter}", w) for w in words)


def _plain(word: str) -> str:
    """A word without its quotes, and a program's name without its folder."""
    bare = re.sub(r"[\\'\"]", "", word)
    return bare if " " in bare else bare.rpartition("/")[2]
