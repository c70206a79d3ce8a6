"""What analysers share: a changed file, a hit, and how a program is run on copies of files.

An analyser sees the content of changed files at the commit under review and nothing else of
the repository: no configuration of it is read, no code of it runs. Programs get copies in a
scratch folder under names that mean nothing.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib import import_module
from pathlib import Path, PurePosixPath
from typing import Protocol

from rondel.model import jsons
from rondel.model.names import is_safe_name
from rondel.workflows.review.findings import Category, Severity

TIMEOUT_S = 120.0
QUALITY, SECURITY, PERFORMANCE, RELIABILITY = "quality", "security", "performance", "reliability"
TYPES = (QUALITY, SECURITY, PERFORMANCE, RELIABILITY)


def _endings(text: str) -> frozenset[str]:
    return frozenset(f".{ending}" for ending in text.split())


# The endings of the languages that lizard measures, and of those that are run without it.
MEASURED = _endings(
    """
    c cc cpp cxx h hpp m mm java cs js jsx mjs cjs ts tsx vue swift py rb php scala go lua rs kt kts f90 f95
    gd sol erl zig pl pm r
    """
)
CODE = MEASURED | _endings("sh bash ksh zsh ps1 sql ex exs hs ml clj dart svelte")
# Text that people write and programs go by.
_TEXT = _endings(
    """
    pyi pyw html htm css scss less xml json yaml yml toml ini cfg conf env properties md rst txt tf hcl gradle
    groovy cmake mk bat cmd psm1 fish awk tcl vb fs jl nix proto graphql erb jsp twig service
    """
)
_TEXT_NAMES = frozenset(("makefile", "dockerfile", "jenkinsfile", "rakefile", "gemfile", "vagrantfile"))


def is_source(path: str) -> bool:
    """Whether a file is text by its name, whatever bytes are in it."""
    name = PurePosixPath(path)
    return name.suffix.lower() in CODE | _TEXT or name.name.lower() in _TEXT_NAMES


class Run(Protocol):
    """Runs a program: its status, standard output and standard error. Raises RondelError."""

    def __call__(
        self,
        argv: Sequence[str],
        *,
        stdin: str = "",
        timeout_s: float = TIMEOUT_S,
        shown: Sequence[str] = (),
    ) -> tuple[int, str, str]:
        """Run it to its end; besides the checkout it may read what is in the folders that are `shown`."""
        ...


@dataclass(frozen=True)
class ChangedFile:
    """A file of the change: its path, its bytes after the change, the lines the change wrote."""

    path: str
    data: bytes = field(repr=False)
    changed: frozenset[int] = field(repr=False)
    shown: bool = True  # whether reviewers see its diff

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines, split where git splits them."""
        return tuple(line.rstrip("\r") for line in self.data.decode(errors="replace").split("\n"))

    def line(self, number: int) -> str:
        """One line, counted from 1; empty beyond the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path).name

    @property
    def suffix(self) -> str:
        """The ending in lower case, with its dot."""
        return PurePosixPath(self.path).suffix.lower()

    @property
    def interpreter(self) -> str:
        """The program that the first line names: `bash`, `python3`."""
        words = self.line(1)[:200].removeprefix("#!").split() if self.line(1).startswith("#!") else []
        names = [PurePosixPath(word).name for word in words if not word.startswith("-") and "=" not in word]
        return next((name for name in names if name != "env"), "")

    @property
    def is_code(self) -> bool:
        """Whether it is something that runs, as far as its name and first line say."""
        return self.suffix in CODE or bool(self.interpreter)

    @cached_property
    def is_test(self) -> bool:
        """Whether its name says that it holds tests."""
        return bool(
            re.search(r"(^|/)(tests?|specs?|__tests__)/|(^|[/_.-])(test|spec|conftest)[_.-]", self.path)
        )

    def nearest(self, line: int) -> int:
        """The changed line closest to a line."""
        return min(self.changed, key=lambda n: (abs(n - line), n), default=line)


@dataclass(frozen=True)
class Hit:
    """Something an analyser found. `kinds` are the types of reviewers it is a finding for."""

    rule: str
    message: str
    path: str
    line: int
    category: Category
    severity: Severity
    kinds: frozenset[str]
    line_end: int | None = None
    suggestion: str = ""
    secret: bool = False  # the line must not be quoted as it is


@dataclass(frozen=True)
class Looked:
    """What an analyser found, in which files it looked, and what kept it from looking."""

    hits: tuple[Hit, ...] = ()
    covered: frozenset[str] = frozenset()
    trouble: str = ""


@dataclass(frozen=True)
class Analyser:
    """One analyser: for which reviewers, which files, and how it looks at them."""

    name: str
    kinds: frozenset[str]
    wants: Callable[[ChangedFile], bool]
    look: Callable[[Sequence[ChangedFile], Path, Run], Looked]


def copies(
    files: Iterable[ChangedFile], scratch: Path, suffix: str = "", *, orders: re.Pattern[str] | None = None
) -> dict[str, ChangedFile]:
    """Copies of files in a scratch folder, by the name a program is given.

    What `orders` finds is struck out in them: words by which a file tells the program not to report it.
    """
    placed = {}
    for number, file in enumerate(files):
        keep = file.name == "__init__.py" or not suffix
        ending = suffix or file.suffix
        name = file.name if keep and is_safe_name(file.name) else f"file{ending if ending.isascii() else ''}"
        folder = scratch / f"{number:04}"
        folder.mkdir(parents=True)
        (folder / name).write_bytes(_without(orders, file.data) if orders else file.data)
        placed[f"{number:04}/{name}"] = file
    return placed


def _without(orders: re.Pattern[str], data: bytes) -> bytes:
    """The same bytes, line by line as long; Latin-1 has a character for each byte."""
    return orders.sub(lambda found: "#" * len(found[0]), data.decode("latin-1")).encode("latin-1")


def original(name: object, placed: dict[str, ChangedFile]) -> ChangedFile | None:
    """The file that a program means by a path it prints."""
    parts = PurePosixPath(str(name).replace("\\", "/")).parts[-2:]
    return placed.get("/".join(parts))


# -- analysers of our own, each in a process of its own: whatever a file makes of a parser, it ends ----
#
# The process gets paths of copies and lines on its standard input and prints hits. It runs under the limits
# on time and memory of every program of `checks`; one that fails or is ended has looked at nothing.

Find = Callable[[Sequence[ChangedFile]], Iterable[Hit]]


def in_child(module: str) -> Callable[[Sequence[ChangedFile], Path, Run], Looked]:
    """How an analyser looks whose module has a function `find`."""

    def look(files: Sequence[ChangedFile], scratch: Path, run: Run) -> Looked:
        placed = copies(files, scratch)
        asked = [[file.path, str(scratch / at), sorted(file.changed)] for at, file in placed.items()]
        name = module.rpartition(".")[2]
        argv = [sys.executable, "-I", "-c", f"import {__name__} as base; base.main({name!r})"]
        status, out, err = run(argv, stdin=json.dumps(asked))
        hits = parse_hits(out)
        if status != 0 or hits is None:
            said = err.strip().rpartition("\n")[2][-200:]
            return Looked(trouble=f"{name} ended with status {status}: {said}")
        return Looked(hits, frozenset(file.path for file in files))

    return look


def parse_hits(out: str) -> tuple[Hit, ...] | None:
    """The hits that a process printed; None when it is not that."""
    try:
        return tuple(
            Hit(
                str(hit["rule"]),
                str(hit["message"]),
                str(hit["path"]),
                int(hit["line"]),
                Category(hit["category"]),
                Severity(hit["severity"]),
                frozenset(map(str, hit["kinds"])),
            )
            for hit in jsons.load(out)
        )
    except (ValueError, TypeError, KeyError):
        return None


def main(name: str) -> None:
    """Look at the files that standard input names, and print the hits."""
    find: Find = import_module(f"{__package__}.{name}").find
    asked = json.loads(sys.stdin.buffer.read())
    files = [ChangedFile(path, Path(copy).read_bytes(), frozenset(lines)) for path, copy, lines in asked]
    sys.stdout.write(json.dumps([{**asdict(hit), "kinds": sorted(hit.kinds)} for hit in find(files)]))
