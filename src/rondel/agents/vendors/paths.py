"""The paths that the settings of a vendor's CLI name: of hooks, status lines, helpers and servers."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Iterator

from rondel.model import jsons

LENGTH_MAX = 20_000  # of a text in which paths are looked for
_QUOTED = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_OUTPUT = re.compile(r"""(?:>>?\|?|\btee(?:\s+-\w+)*\s)\s*(?:"[^"]*"|'[^']*'|[^\s;|&<>()]+)""")
_WORD = re.compile(r"""[^\s"'`;|&<>()=,{}\[\]]+""")
_HOME = re.compile(r"\$\{HOME\}|\$HOME\b|(?<![\w/.~])~(?=/)")
_FOLDER = re.compile(r"\$\{?(?:CLAUDE_CONFIG_DIR|CODEX_HOME)\b\}?")
_FILES_OF_A_TOOL = re.compile(r"(?:Read|Edit|Write|MultiEdit|NotebookEdit)\(")  # which it may change, or not
_WRITTEN = (".log", ".jsonl", ".db", ".sqlite", ".sqlite3", ".lock", ".pid", ".csv", ".tmp")


def strings_of(data: bytes, suffix: str) -> list[str]:
    """Every text in a settings file; of one that cannot be parsed, whatever stands in quotes."""
    text = data.decode(errors="replace")
    try:
        value: object = tomllib.loads(text) if suffix == ".toml" else jsons.load(text)
    except (ValueError, RecursionError):
        return _QUOTED.findall(text)
    return list(_strings(value))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from _strings(one)


def named_in(text: str, folder: str, home: str) -> Iterator[str]:
    """The paths that a command, or another text of a settings file, names; `folder` is where that file is.

    Not those that a command only writes to, by their place in it or by their name.
    """
    if len(text) > LENGTH_MAX or "\0" in text or _FILES_OF_A_TOOL.match(text):
        return
    read = _OUTPUT.sub(" ", _FOLDER.sub(lambda _: folder, _HOME.sub(lambda _: home, text)))
    for word in dict.fromkeys((read.strip(), *_words(read), *_WORD.findall(read))):
        path = word.removeprefix("file://").removeprefix("file:")
        if path.startswith(("/", "./", "../")) and not path.endswith(_WRITTEN):
            yield os.path.normpath(os.path.join(folder, path))  # noqa: PTH118


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return []
