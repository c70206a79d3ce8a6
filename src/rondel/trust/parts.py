"""Parts: what a person consents to, one by one. Each has a digest over all that it would run.

That is its values and the content of the repository's files that these name, with the programs
that those name in turn: a script that is changed is another part. Where a command computes which
file it runs, every script of the repository is part of it. What a program loads by itself is not.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rondel.model.consent import Brought
from rondel.model.names import digest
from rondel.trust.named import PROGRAM, Lookup, Named, is_untold, named_files

SHOWN_MAX = 200  # files of one part
_PLAIN_KEY = re.compile(r"[\w.-]+", re.ASCII)
_PLAIN_NAME = re.compile(r"[\w ./@+-]+")
_PLAIN_PATH = re.compile(r"""[^\s"'()\\]+""")
UNTOLD = "names files that cannot be told: every script of the repository is part of it"


@dataclass(frozen=True)
class Part:
    """One thing that a repository brings and that counts only after consent."""

    name: str  # `agents.mine`, `project.test`, `profile wide`
    lines: tuple[str, ...]  # what it is, for a person
    files: tuple[tuple[str, str], ...] = ()  # the repository's files that it names, with their digests
    is_spare: bool = False  # it is harmless, and would only replace what the person said themselves

    @cached_property
    def digest(self) -> str:
        """What a consent is to."""
        return digest(json.dumps(["rondel consent", self.name, self.lines, self.files]))

    @property
    def shown(self) -> tuple[str, ...]:
        """Everything that the digest covers, line by line; of very many files the rest in one."""
        first, rest = self.files[:SHOWN_MAX], self.files[SHOWN_MAX:]
        more = [f"and {len(rest)} more files (sha256 {digest(json.dumps(rest))[:12]})"] if rest else []
        return (
            *self.lines,
            *(f"file {_quoted(path, _PLAIN_PATH)} ({_shown(sha)})" for path, sha in first),
            *more,
        )


def _shown(sha: str) -> str:
    words = f"sha256 {sha[:12]}" if sha else "not readable"
    return f"{words}, a program" if sha.endswith(PROGRAM) else words


def key_name(key: Iterable[str]) -> str:
    """A setting's path for a person: a word of it that is not plain is a JSON string, and forges no line."""
    return ".".join(_quoted(word, _PLAIN_KEY) for word in key)


def _quoted(text: str, plain: re.Pattern[str]) -> str:
    return text if plain.fullmatch(text) and text.isprintable() else json.dumps(text)


def part(name: str, values: Mapping[str, object], look: Lookup) -> Part:
    """A part of the settings: its values, and the files that they name."""
    lines = [f"{key} = {_plain(value)}" for key, value in values.items()]
    commands = _texts([value for key, value in values.items() if not key.startswith(("env", "pass_env"))])
    named = named_files(_texts(list(values.values())), look, untold=any(map(is_untold, commands)))
    return Part(name, (*lines, *_untold(named)), tuple(named.files.items()))


def brought_part(brought: Brought, look: Lookup) -> Part:
    """A part that is not of the settings: its text, and its files."""
    found = {path: there for path in brought.files if (there := look(path)) is not None}
    lines = brought.text.split("\n")
    named = named_files(lines, look, untold=any(map(is_untold, lines)))
    files = {path: there.digest for path, there in found.items() if not there.is_folder}
    for folder in (path for path, there in found.items() if there.is_folder):
        files |= dict(found[folder].inner(lambda inner, _: not inner.endswith(".md")))
    return Part(
        _quoted(brought.name, _PLAIN_NAME),
        (*lines, *_untold(named)),
        tuple(sorted((dict(named.files) | files).items())),
    )


def _untold(named: Named) -> tuple[str, ...]:
    return (UNTOLD,) if named.is_untold else ()


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


def difference(old: Sequence[str], new: Sequence[str]) -> list[str]:
    """The lines that changed, each behind a `-` or a `+`."""
    return [line for line in difflib.ndiff(list(old), list(new)) if line[:2] in ("- ", "+ ")]
