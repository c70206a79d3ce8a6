"""Which words of a command line are run where it is started: programs by a path, and scripts. Pure."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rondel.model.deciding import DECIDES

INSTALLED = dict.fromkeys(("npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"), ("node_modules",))
_SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "fish")
_INTERPRETERS = (*_SHELLS, "source", ".", "node", "tsx", "ts-node", "ruby", "perl", "php", "lua")
_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_TOKEN = re.compile(r"[;|&\n()]+|[^\s;|&()]+")
_PREFIXES = re.compile(
    r"(env|exec|nice|nohup|time|timeout|sudo|command|builtin|xargs|eval|then|do|else|elif|if|while|until|!"
    r"|-.*|[\d.]+[smhd]?|\w+=.*)"
)
_IN_SHELL = re.compile(r"-\w*c")
_IN_PYTHON = re.compile(r"-\w*[mc]")
# Where words may mean something else; `~/` at the beginning of one does not.
_NOT_PLAIN = re.compile(r"[^\w./+@%,:=;|&()\s~-]|(?<=\S)~|~(?!/)|\b(cd|pushd|popd)\b")

IsThere = Callable[[str], bool]


@dataclass(frozen=True)
class Ran:
    """What a command line runs: its programs by name, and words that are files of its folder."""

    programs: tuple[str, ...]
    files: tuple[re.Match[str], ...]
    loads: bool  # a Python that takes modules from the folder it is started in


def ran(line: str, is_there: IsThere) -> Ran:
    """What of a command line is run. `is_there` says whether a relative word is a file of the folder."""
    programs, files, loads = list[str](), list[re.Match[str]](), False
    due, by = True, ""  # whether a program comes next; the interpreter that waits for its script
    for token in _TOKEN.finditer(line):
        word = token[0].strip("\"'{}")
        if token[0][0] in ";|&\n()":
            due, by = True, ""
        elif by and _PYTHON.fullmatch(by) and _IN_PYTHON.match(word):
            loads, due, by = True, False, ""
        elif by in _SHELLS and _IN_SHELL.fullmatch(word):
            due, by = True, ""
        elif by:
            if is_there(word):
                files.append(token)
            if is_there(word) or word.startswith(("/", "~/", "$")):
                due, by = False, ""
        elif due and word and not _PREFIXES.fullmatch(word):
            name = word.rpartition("/")[2]
            programs.append(name)
            due, by = False, name if name in _INTERPRETERS or _PYTHON.fullmatch(name) else ""
            if "/" in word and is_there(word):
                files.append(token)
    return Ran(tuple(programs), tuple(files), loads)


def is_line(words: tuple[str, ...]) -> bool:
    """Whether a command is one line for a shell."""
    return len(words) == 1 and len(words[0].split()) > 1


Pinned = tuple[tuple[str, ...], tuple[Path, ...]]  # a command, and the files that it runs by their full paths


def pinned(words: tuple[str, ...], beside: Path | None) -> Pinned:
    """A command whose scripts are those beside its settings."""
    return _pinned_line(words[0], beside) if is_line(words) else pinned_words(words, beside)


def pinned_words(words: tuple[str, ...], beside: Path | None) -> Pinned:
    """A list of words, of which the first that names a file beside the settings is that file."""
    for n, word in enumerate(words):
        place = _beside(beside, word) if beside is not None else None
        if place is not None:
            return (*words[:n], str(place), *words[n + 1 :]), (place,)
    return words, ()


def _pinned_line(line: str, beside: Path | None) -> Pinned:
    """A line for a shell, whose every script that is run is the one beside the settings.

    Up to where a shell may read words otherwise: at quotes, variables, and a change of folder.
    """
    if beside is None:
        return (line,), ()
    odd = _NOT_PLAIN.search(line)
    found = ran(line, lambda word: _beside(beside, word) is not None).files
    plain = [token for token in found if odd is None or token.end() <= odd.start()]
    places = [(token, place) for token in plain if (place := _beside(beside, token[0])) is not None]
    for token, place in reversed(places):
        line = f"{line[: token.start()]}{shlex.quote(str(place))}{line[token.end() :]}"
    return (line,), tuple(place for _, place in places)


def _beside(folder: Path, word: str) -> Path | None:
    """The file beside the settings that a word names: from there, by its whole path, or by `~/`."""
    above = folder.absolute()
    whole = Path(word).expanduser() if word.startswith("~/") else Path(word)
    if whole.is_absolute() and not whole.is_relative_to(above):
        return None
    name = str(whole.relative_to(above)) if whole.is_absolute() else word
    return (above / name).absolute() if _is_in(above, name) else None


def by_no_link(files: Iterable[Path], beside: Path | None) -> tuple[str, ...]:
    """Those of the files below a folder that no link in it leads to: a link names something else."""
    if beside is None:
        return ()
    real = Path(os.path.realpath(beside))
    places = ((place, os.path.relpath(place, beside.absolute())) for place in files)
    return tuple(str(place) for place, name in places if os.path.realpath(place) == str(real / name))


def run_in(words: tuple[str, ...], folder: Path) -> Iterator[str]:
    """The paths in a folder that decide what a command runs there."""
    found = ran(" ".join(words), lambda word: _is_in(folder, word))
    names = [
        name
        for program in found.programs
        for name in (*DECIDES.get(program, ()), *INSTALLED.get(program, ()))
    ]
    names += [token[0].strip("\"'{}") for token in found.files]
    yield from dict.fromkeys(name for name in names if (folder / name).exists())


def loads_modules(words: tuple[str, ...]) -> bool:
    """Whether a command is a Python that would take modules from the folder that it is started in."""
    return ran(" ".join(words), lambda _: False).loads


def _is_in(folder: Path, word: str) -> bool:
    """Whether a relative word names a file in a folder."""
    try:
        return not Path(word).is_absolute() and (folder / word).is_file()
    except (OSError, ValueError):
        return False
