"""The change under review: what it touches, and what of its diff goes into a prompt.

Generated, vendored, binary and oversized files are named with their size, never pasted. What a
change says of its own files counts for nothing: one is generated or vendored where there were such
files at its place before. A prompt has a configured size; whatever does not fit is said to be left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import translate
from functools import cached_property
from typing import NamedTuple

from rondel.model.changes import Document, Json
from rondel.workflows.review.diffs import FileDiff, parse_diff

LISTED_MAX = 200
_VENDORED = re.compile(
    r"(^|/)(vendor|vendored|third[_-]party|node_modules|bower_components|Pods|site-packages)/"
)
_GENERATED = (
    *("*.lock", "*-lock.json", "*-lock.yaml", "*.lock.json", "go.sum", "*.lockb", "gradle.lockfile"),
    *("*.min.js", "*.min.css", "*.bundle.js", "*.map", "*.snap"),
    *("*_pb2.py", "*_pb2.pyi", "*_pb2_grpc.py", "*.pb.go", "*.pb.cc", "*.pb.h", "*.g.dart", "*.g.cs"),
    *("*.generated.*", "*_generated.*", "zz_generated*"),
)
_GENERATED_NAME = re.compile("|".join(f"(?P<p{n}>{translate(p)})" for n, p in enumerate(_GENERATED)))


class Kind(StrEnum):
    """How a changed file is shown to reviewers: TEXT is pasted, all others are only named."""

    TEXT = "text"
    BINARY = "binary"
    GENERATED = "generated"
    VENDORED = "vendored"
    SUBMODULE = "submodule"
    LARGE = "large"


@dataclass(frozen=True)
class Changed:
    """One changed file in short."""

    path: str
    status: str  # added, modified, deleted, renamed, copied, type-changed
    added: int = 0
    removed: int = 0
    kind: Kind = Kind.TEXT
    old_path: str | None = None
    wrote: tuple[tuple[int, int], ...] = ()  # of text that is not shown: the lines of the change, from and to

    def document(self) -> Document:
        """As JSON; `changed_of` reads it back."""
        lines: list[Json] = [[first, last] for first, last in self.wrote]
        return {
            "path": self.path,
            "status": self.status,
            "added": self.added,
            "removed": self.removed,
            "kind": self.kind.value,
            "old_path": self.old_path,
            **({"wrote": lines} if lines else {}),
        }

    @property
    def is_shown(self) -> bool:
        """Whether reviewers see its diff."""
        return self.kind is Kind.TEXT

    def line(self) -> str:
        """As one line for people and agents."""
        moved = f" (from {self.old_path})" if self.old_path else ""
        why = "" if self.is_shown else f" [{self.kind.value}, not shown]"
        return " ".join(f"{self.path}{moved}: {self.status}, +{self.added} -{self.removed}{why}".splitlines())


def changed_of(document: object) -> Changed | None:
    """A changed file from a part; None when it is not one."""
    if not isinstance(document, dict) or not isinstance(document.get("path"), str):
        return None
    numbers = {k: v if isinstance(v := document.get(k), int) else 0 for k in ("added", "removed")}
    kind, old = document.get("kind"), document.get("old_path")
    return Changed(
        document["path"],
        str(document.get("status", "modified")),
        kind=Kind(kind) if kind in set(Kind) else Kind.TEXT,
        old_path=old if isinstance(old, str) else None,
        wrote=tuple(_ranges(document.get("wrote"))),
        **numbers,
    )


def _ranges(value: object) -> Iterable[tuple[int, int]]:
    for item in _items(value):
        match item:
            case [int(first), int(last)]:
                yield first, last


class Claim(NamedTuple):
    """What a path says of its file, and for which place: the same there before is what makes it true."""

    kind: Kind
    folder: str
    pattern: str = ""


def claim_of(path: str) -> Claim | None:
    """Whether a path says that its file is vendored or generated."""
    if found := _VENDORED.search(path):
        return Claim(Kind.VENDORED, path[: found.end()])
    folder, _, name = path.rpartition("/")
    match = _GENERATED_NAME.match(name)
    return Claim(Kind.GENERATED, folder, match.lastgroup or "") if match else None


def kind_of(
    path: str,
    attributes: Mapping[str, str] | None = None,
    is_true: Callable[[Claim], bool] = lambda _: True,
) -> Kind:
    """What a path says about its file, where that is true; `.gitattributes` (linguist) has the last word."""
    said = attributes or {}
    if said.get("linguist-vendored") in ("set", "true"):
        return Kind.VENDORED
    if said.get("linguist-generated") in ("set", "true"):
        return Kind.GENERATED
    if said.get("linguist-generated") in ("unset", "false"):
        return Kind.TEXT
    claim = claim_of(path)
    return claim.kind if claim and is_true(claim) else Kind.TEXT


def short_of(file: FileDiff) -> Changed:
    """What a diff shows of a file, in short. It was there before where a line of it is shown that was."""
    there = file.status == "modified" and file.has_before
    kind = Kind.BINARY if file.binary else kind_of(file.path, is_true=lambda _: there)
    if kind is Kind.TEXT and file.looks_generated():
        kind = Kind.GENERATED
    wrote = () if kind is Kind.TEXT else file.wrote
    return Changed(file.path, file.status, *file.counts, kind, file.old_path, wrote)


@dataclass(frozen=True)
class Fitted:
    """What of a diff goes into a prompt, and what does not."""

    text: str
    left_out: tuple[str, ...] = ()  # one line per file that is not there, or not whole

    def note(self) -> str:
        """What was left out, in words; empty when nothing was."""
        if not self.left_out:
            return ""
        return "Left out because the prompt has a limited size:\n" + listed(self.left_out)


def fit(files: Sequence[FileDiff], size_max: int) -> Fitted:
    """As many whole files as fit, the small ones first, in the order of the diff; then hunks of others."""
    chosen: dict[int, str] = {}
    left_out: list[str] = []
    room = size_max
    for number, file in sorted(enumerate(files), key=lambda pair: len(pair[1].text)):
        shown = file.text
        if len(shown) + 1 > room:
            shown, missing = _hunks_that_fit(file, room)
            left_out.append(f"{file.path}: {missing} of {len(file.hunks)} hunks")
        if shown:
            chosen[number] = shown
        room -= len(shown) + 1
    return Fitted("\n".join(chosen[number] for number in sorted(chosen)), tuple(left_out))


def _hunks_that_fit(file: FileDiff, room: int) -> tuple[str, int]:
    rows = list(file.head)
    used = sum(len(row) + 1 for row in rows) + 80
    taken = 0
    for hunk in file.hunks:
        if used + len(hunk.text) + 1 > room:
            break
        rows.append(hunk.text)
        used += len(hunk.text) + 1
        taken += 1
    missing = len(file.hunks) - taken
    if not taken:
        return "", missing
    return "\n".join((*rows, f"[{missing} more hunks of this file are left out]")), missing


def listed(lines: Sequence[str], lines_max: int = LISTED_MAX) -> str:
    """Lines as a Markdown list of bounded length."""
    rows = [f"- {line}" for line in lines[:lines_max]]
    if len(lines) > lines_max:
        rows.append(f"- … and {len(lines) - lines_max} more")
    return "\n".join(rows)


@dataclass(frozen=True)
class Change:
    """The change of a round: what it touches, its commits, and the diff that may be shown."""

    files: tuple[Changed, ...] = ()
    commits: tuple[str, ...] = ()
    commits_more: int = 0
    notes: tuple[str, ...] = ()
    diff: str = field(default="", repr=False)

    @cached_property
    def diffs(self) -> tuple[FileDiff, ...]:
        """The diff by file."""
        return parse_diff(self.diff)

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Every changed path."""
        return tuple(f.path for f in self.files)

    @cached_property
    def unshown(self) -> tuple[Changed, ...]:
        """The files whose diff no reviewer sees."""
        return tuple(f for f in self.files if not f.is_shown)

    def file(self, path: str | None) -> FileDiff | None:
        """The diff of one file, where it is shown."""
        return self._by_path.get(path) if path else None

    @cached_property
    def _by_path(self) -> dict[str, FileDiff]:
        return {f.path: f for f in self.diffs}

    @property
    def size(self) -> str:
        """In words: `3 files, +10 -2`."""
        added, removed = sum(f.added for f in self.files), sum(f.removed for f in self.files)
        return f"{len(self.files)} file{'s' * (len(self.files) != 1)}, +{added} -{removed}"

    def document(self) -> Document:
        """As JSON without the diff, which is a file of its own."""
        files: list[Json] = [f.document() for f in self.files]
        return {
            "schema_version": 1,
            "size": self.size,
            "files": files,
            "commits": list(self.commits),
            "commits_more": self.commits_more,
            "notes": list(self.notes),
        }


def change_of(document: object, diff: str) -> Change:
    """A change from its part and its diff."""
    if not isinstance(document, dict):
        return Change(diff=diff)
    more = document.get("commits_more")
    return Change(
        tuple(f for item in _items(document.get("files")) if (f := changed_of(item)) is not None),
        tuple(str(c) for c in _items(document.get("commits"))),
        more if isinstance(more, int) else 0,
        tuple(str(n) for n in _items(document.get("notes"))),
        diff,
    )


def _items(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()
