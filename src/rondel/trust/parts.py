"""Parts: what a person consents to, one by one. Each has a digest over all that it would run.

That is its values and the content of the repository's files that these name: a script that is
changed is another part. What a program loads by itself is not covered.
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

FILES_MAX = 200  # of one part
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
_BREAKS = re.compile(r"[\s\"'`;|&<>(){}$=,:@]+")


@dataclass(frozen=True)
class Found:
    """What is at a path of the repository: the digest of a file, or that it is a folder."""

    digest: str = ""
    is_folder: bool = False
    inner: Callable[[], Iterable[tuple[str, str]]] = tuple  # the files below a folder, with their digests


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
        """Everything that the digest covers, line by line."""
        return (
            *self.lines,
            *(f"file {path} (sha256 {sha[:12] or 'not readable'})" for path, sha in self.files),
        )


def part(name: str, values: Mapping[str, object], look: Lookup) -> Part:
    """A part of the settings: its values, and the files that they name."""
    lines = tuple(f"{key} = {_plain(value)}" for key, value in values.items())
    return Part(name, lines, tuple(named_files(_texts(list(values.values())), look)))


def brought_part(brought: Brought, look: Lookup) -> Part:
    """A part that is not of the settings: its text, and its files."""
    found = {path: there for path in brought.files if (there := look(path)) is not None}
    named = dict(named_files(brought.text.split("\n"), look))
    files = {path: there.digest for path, there in found.items() if not there.is_folder}
    for folder in (path for path, there in found.items() if there.is_folder):
        files |= dict(found[folder].inner())
    return Part(brought.name, tuple(brought.text.split("\n")), tuple(sorted((named | files).items())))


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


def named_files(texts: Iterable[str], look: Lookup) -> list[tuple[str, str]]:
    """The files of the repository that command lines name, however they are written: path and digest.

    A word may be a path from the repository's folder, one behind `$PWD/` or a `cd`, a folder
    that Python runs, or a module. Too many are no harm: they are only asked about again.
    """
    words = list(dict.fromkeys(w for text in texts for w in (text, *_BREAKS.split(text)) if w))[:WORDS_MAX]
    words += [name for word in words for name in STANDS_FOR.get(word.rpartition("/")[2], ())]
    found: dict[str, str] = {}
    folders: list[str] = []
    for word in words:
        for path in _paths(word):
            there = look(path)
            if there is None:
                continue
            if there.is_folder:
                folders.append(path)
            else:
                found[path] = there.digest
    for folder in folders[:FILES_MAX]:
        for path in ("__main__.py", "index.js", *(p for word in words for p in _paths(word))):
            inner = look(f"{folder}/{path}")
            if inner is not None and not inner.is_folder:
                found[f"{folder}/{path}"] = inner.digest
    return sorted(found.items())[:FILES_MAX]


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
