"""Parts: what a person consents to, one by one. Each has a digest over all that it would run.

That is its values and the content of the repository's files that these name, with the programs
that those name in turn: a script that is changed is another part. Where a command computes which
file it runs, every script of the repository is part of it. What a program loads by itself is not.
"""

from __future__ import annotations

import difflib
import json
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rondel.model.consent import Brought
from rondel.model.digests import digest

SHOWN_MAX = 200  # files of one part
CALLED_MAX = 500  # files that scripts of one part name
PROGRAM = " x"  # after the digest of a file that may be executed
WORDS_MAX = 2000
STANDS_FOR = {  # programs, and the files that say what they run
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), ("package.json",)),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    "rake": ("Rakefile",),
    "invoke": ("tasks.py",),
}
ALL = "**"  # every file of the repository, as a path
UNTOLD = "names files that cannot be told: every script of the repository is part of it"
_SCRIPT = re.compile(r"\.(sh|bash|zsh|py|js|mjs|cjs|ts|rb|pl|php|lua)$")
_SHELL_SCRIPT = re.compile(r"\.(sh|bash|zsh)$")
_COMPUTED = re.compile(r"[$`*?\[]")
_KNOWN = re.compile(r"\$(PWD\b|\{PWD\}|\(git rev-parse --show-toplevel\))")  # this folder
_INTERPRETERS = (
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "source",
    ".",
    "node",
    "deno",
    "ruby",
    "perl",
    "php",
    "lua",
)
_PREFIXES = re.compile(
    r"(env|exec|nice|nohup|time|timeout|sudo|command|builtin|xargs|eval|then|do|else|elif|if|while|until|!"
    r"|-.*|[\d.]+[smhd]?|\w+=.*)"
)
_BREAKS = re.compile(r"[\s\"'`;|&<>(){}$=,:@]+")


Wanted = Callable[[str, bool], bool]  # a file by its path, and whether it may be executed
Inner = Callable[[Wanted], Iterable[tuple[str, str]]]


@dataclass(frozen=True)
class Found:
    """What is at a path of the repository: the digest of a file, or that it is a folder."""

    digest: str = ""
    is_folder: bool = False
    inner: Inner = lambda _: ()  # those files below a folder that are wanted, with their digests
    text: str = ""  # of a file that is short enough to be a script


Lookup = Callable[[str], Found | None]  # what is at a path, relative to the repository's folder


@dataclass(frozen=True)
class Part:
    """One thing that a repository brings and that counts only after consent."""

    name: str  # `agents.mine`, `project.test`, `profile wide`
    lines: tuple[str, ...]  # what it is, for a person
    files: tuple[tuple[str, str], ...] = ()  # the repository's files that it names, with their digests

    @cached_property
    def digest(self) -> str:
        """What a consent is to."""
        return digest(json.dumps(["rondel consent", self.name, self.lines, self.files]))

    @property
    def shown(self) -> tuple[str, ...]:
        """Everything that the digest covers, line by line; of very many files the rest in one."""
        first, rest = self.files[:SHOWN_MAX], self.files[SHOWN_MAX:]
        more = [f"and {len(rest)} more files (sha256 {digest(json.dumps(rest))[:12]})"] if rest else []
        return (*self.lines, *(f"file {path} ({_shown(sha)})" for path, sha in first), *more)


def _shown(sha: str) -> str:
    words = f"sha256 {sha[:12]}" if sha else "not readable"
    return f"{words}, a program" if sha.endswith(PROGRAM) else words


def part(name: str, values: Mapping[str, object], look: Lookup) -> Part:
    """A part of the settings: its values, and the files that they name."""
    lines = [f"{key} = {_plain(value)}" for key, value in values.items()]
    commands = _texts([value for key, value in values.items() if not key.startswith("env")])
    untold = any(map(is_untold, commands))
    files = named_files(_texts(list(values.values())), look, untold=untold)
    return Part(name, (*lines, *([UNTOLD] if untold else [])), tuple(files))


def brought_part(brought: Brought, look: Lookup) -> Part:
    """A part that is not of the settings: its text, and its files."""
    found = {path: there for path in brought.files if (there := look(path)) is not None}
    lines = brought.text.split("\n")
    untold = any(map(is_untold, lines))
    named = dict(named_files(lines, look, untold=untold))
    files = {path: there.digest for path, there in found.items() if not there.is_folder}
    for folder in (path for path, there in found.items() if there.is_folder):
        files |= dict(found[folder].inner(lambda *_: True))
    shown = (*lines, *([UNTOLD] if untold else []))
    return Part(brought.name, shown, tuple(sorted((named | files).items())))


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, Sequence):
        for inner in value:
            yield from _texts(inner)


def named_files(texts: Iterable[str], look: Lookup, *, untold: bool = False) -> list[tuple[str, str]]:
    """The files of the repository that command lines name, however they are written: path and digest.

    A word may be a path from the repository's folder, one behind `$PWD/` or a `cd`, a folder
    that Python runs or that holds scripts, or a module. Too many are no harm: they are only asked
    about again. With `untold`, and where there are too many words to look for, every script is one.
    """
    words = _words(texts)
    untold = untold or len(words) > WORDS_MAX
    words = words[:WORDS_MAX]
    words += [name for word in words for name in STANDS_FOR.get(word.rpartition("/")[2], ())]
    found: dict[str, Found] = {}
    folders: dict[str, Found] = {}
    for path in dict.fromkeys(p for word in words for p in _paths(word)):
        if (there := look(path)) is not None:
            (folders if there.is_folder else found)[path] = there
    for folder in folders:
        for path in ("__main__.py", "index.js", *(p for word in words for p in _paths(word))):
            inner = look(f"{folder}/{path}")
            if inner is not None and not inner.is_folder:
                found[f"{folder}/{path}"] = inner
    _add_called(found, look)
    files = {path: there.digest for path, there in found.items()}
    for there in folders.values():
        files |= dict(there.inner(_is_program))
    if untold and (whole := look(ALL)) is not None:
        files |= dict(whole.inner(lambda path, runs: runs or _SCRIPT.search(path) is not None))
    return sorted(files.items())


def _words(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(w for text in texts for w in (text, *_BREAKS.split(text)) if w))


def is_script(path: str, sha: str) -> bool:
    """Whether a file of a part, by its path and digest, is a program or a shell script."""
    return _is_program(path, sha.endswith(PROGRAM))


def _is_program(path: str, runs: bool) -> bool:
    return runs or _SHELL_SCRIPT.search(path) is not None


def _add_called(found: dict[str, Found], look: Lookup) -> None:
    """The programs that scripts name, from the repository's folder or from their own, and so on."""
    todo = list(found)
    while todo and len(found) < CALLED_MAX:
        script = todo.pop()
        words = [w for w in _words([found[script].text]) if "/" in w or "." in w][:WORDS_MAX]
        own = posixpath.dirname(script)
        for path in dict.fromkeys(p for word in words for p in _paths(word)):
            for place in dict.fromkeys((path, posixpath.normpath(posixpath.join(own, path)))):
                there = look(place) if place not in found else None
                if there is not None and not there.is_folder and is_script(place, there.digest):
                    found[place] = there
                    todo.append(place)


def is_untold(command: str) -> bool:
    """Whether a command line computes which program or script it runs, so that nobody can tell which."""
    runs = True  # the next word is a program, or what an interpreter runs
    for word in re.findall(r"[;|&\n]+|[^\s;|&]+", _KNOWN.sub(".", command)):
        plain = word.strip("\"'(){}")
        name = plain.rpartition("/")[2]
        computed = _COMPUTED.search(plain) is not None
        if word[0] in ";|&\n":
            runs = True
        elif computed and (runs or _SCRIPT.search(plain)) and not re.fullmatch(r"\w+=.*", plain):
            return True
        elif runs and plain:
            runs = name in _INTERPRETERS or name.startswith("python") or bool(_PREFIXES.fullmatch(plain))
    return False


def _paths(word: str) -> list[str]:
    """Where in the repository the file of this word may be."""
    plain = word.lstrip("/").removeprefix("./")
    _, _, below = plain.partition("/")
    module = plain.replace(".", "/")
    paths = [word, plain, below, f"{module}.py", f"{module}/__main__.py"] if plain.strip("./") else []
    return list(dict.fromkeys(map(posixpath.normpath, filter(None, paths))))


def difference(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """The lines that changed, each behind a `-` or a `+`."""
    return [line for line in difflib.ndiff(list(old), list(new)) if line[:2] in ("- ", "+ ")]
