"""The change under review: what it touches, and its unified diff as values.

Generated, vendored, binary and oversized files are named with their size, never pasted. What a
change says of its own files counts for nothing: one is generated or vendored where there were such
files at its place before. Reading a diff is total: what is not one is left out, and a line inside a
hunk is content, whatever it looks like.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from fnmatch import translate
from functools import cached_property
from typing import NamedTuple

from rondel.model.changes import Document, Json
from rondel.model.jsons import items
from rondel.workflows.review.markdown import counted

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
        shown = {name: value for name, value in asdict(self).items() if name != "wrote"}
        return {**shown, "wrote": [[first, last] for first, last in self.wrote]} if self.wrote else shown

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
        wrote=tuple(_ranges(document)),
        **numbers,
    )


def _ranges(document: object) -> Iterable[tuple[int, int]]:
    for item in items(document, "wrote"):
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
        return f"{counted(len(self.files), 'file')}, +{added} -{removed}"

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
        tuple(f for item in items(document, "files") if (f := changed_of(item)) is not None),
        tuple(map(str, items(document, "commits"))),
        more if isinstance(more, int) else 0,
        tuple(map(str, items(document, "notes"))),
        diff,
    )


# -- a unified diff as values: its files, their hunks, the numbers of their lines ------------

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_MARKED_LINES = 6
_MARKS = re.compile(r"@generated\b|\bCode generated .{0,80}DO NOT EDIT|<auto-generated", re.IGNORECASE)


@dataclass(frozen=True)
class Hunk:
    """Lines of a diff that belong together, with their numbers after the change."""

    header: str
    start: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """As in the diff."""
        return "\n".join((self.header, *self.lines))

    def numbered(self) -> Iterator[tuple[int, str]]:
        """Each line with its number after the change; a removed one has that of the next."""
        number = self.start
        for line in self.lines:
            yield number, line
            if not line.startswith(("-", "\\")):
                number += 1


@dataclass(frozen=True)
class FileDiff:
    """The diff of one file."""

    path: str
    head: tuple[str, ...]  # the lines before the first hunk
    hunks: tuple[Hunk, ...] = ()
    old_path: str | None = None
    status: str = "modified"
    binary: bool = False

    @cached_property
    def text(self) -> str:
        """As in the diff, without a final newline."""
        return "\n".join((*self.head, *(hunk.text for hunk in self.hunks)))

    @cached_property
    def added_lines(self) -> frozenset[int]:
        """The numbers of the lines that the change wrote."""
        return frozenset(n for h in self.hunks for n, line in h.numbered() if line.startswith("+"))

    @property
    def counts(self) -> tuple[int, int]:
        """How many lines the change wrote, and how many it removed."""
        lines = [line[:1] for hunk in self.hunks for line in hunk.lines]
        return lines.count("+"), lines.count("-")

    @property
    def wrote(self) -> tuple[tuple[int, int], ...]:
        """The same as ranges, each from its first line to its last."""
        found: list[tuple[int, int]] = []
        for number in sorted(self.added_lines):
            if found and found[-1][1] == number - 1:
                found[-1] = (found[-1][0], number)
            else:
                found.append((number, number))
        return tuple(found)

    def lines_around(self, count: int) -> frozenset[int]:
        """The numbers of the new lines that a diff with `count` lines around each change shows."""
        found: set[int] = set()
        for hunk in self.hunks:
            rows = [row for row in hunk.numbered() if not row[1].startswith("\\")]
            for at, (_, line) in enumerate(rows):
                if line.startswith(("+", "-")):
                    beside = rows[max(0, at - count) : at + count + 1]
                    found |= {number for number, text in beside if not text.startswith("-")}
        return frozenset(found)

    def near(self, line: int | None, around: int = 0) -> str:
        """The code at a line of the new file, as far as the diff shows it."""
        if line is None:
            return ""
        kept = [
            text[1:]
            for hunk in self.hunks
            for number, text in hunk.numbered()
            if abs(number - line) <= around and not text.startswith(("-", "\\"))
        ]
        return "\n".join(kept)

    @property
    def has_before(self) -> bool:
        """Whether the diff shows a line that was there before the change."""
        return any(line.startswith(("-", " ")) for hunk in self.hunks for line in hunk.lines)

    def looks_generated(self) -> bool:
        """Whether its first lines say that a program wrote it, before the change and after it."""
        first = [line for hunk in self.hunks[:1] if hunk.start <= 1 for line in hunk.lines]
        sides = ([line for line in first if not line.startswith(mark)] for mark in ("+", "-"))
        return self.status == "modified" and all(
            any(_MARKS.search(line) for line in side[:_MARKED_LINES]) for side in sides
        )


def parse_diff(text: str) -> tuple[FileDiff, ...]:
    """The files of a unified diff. Total: what is not a diff is left out."""
    return tuple(file for part in _parts(text) if (file := _file(part)) is not None)


def _parts(text: str) -> Iterator[list[str]]:
    """The lines of each file. Inside a hunk a line is content, whatever it looks like."""
    part: list[str] = []
    old_left = new_left = 0
    git = False
    for line in text.split("\n"):
        inside_hunk = old_left > 0 or new_left > 0
        if inside_hunk and line[:1] in ("+", "-", " ", "\\", ""):
            old_left -= line[:1] in ("-", " ", "")
            new_left -= line[:1] in ("+", " ", "")
        elif line.startswith("diff --git ") or (
            line.startswith("--- ") and not git and any(row.startswith("@@") for row in part)
        ):
            yield part
            part = []
            git = line.startswith("diff --git ")
            old_left = new_left = 0
        elif match := _HUNK.match(line):
            old_left = int(match[2] or 1) if match[2] != "0" else 0
            new_left = int(match[4] or 1) if match[4] != "0" else 0
        part.append(line)
    yield part


def _file(lines: Sequence[str]) -> FileDiff | None:
    first = next((i for i, line in enumerate(lines) if _HUNK.match(line)), len(lines))
    head = tuple(lines[:first])
    names = _names(head)
    if names is None:
        return None
    old, new = names
    extended = "\n".join(head)
    status = next(
        (word for mark, word in _STATUS.items() if re.search(mark, extended, re.MULTILINE)), "modified"
    )
    moved = old if status in ("renamed", "copied") and old != new else None
    path = (new or old) if status != "deleted" else (old or new)
    binary = bool(re.search(r"^(Binary files |GIT binary patch)", extended, re.MULTILINE))
    clean = tuple(line for line in head if line)
    return FileDiff(path, clean, tuple(_hunks(lines[first:])), moved, status, binary) if path else None


_STATUS = {
    r"^(new file mode|--- /dev/null)": "added",
    r"^(deleted file mode|\+\+\+ /dev/null)": "deleted",
    r"^rename to ": "renamed",
    r"^copy to ": "copied",
}


def _names(head: Sequence[str]) -> tuple[str, str] | None:
    """The path before and after; empty for /dev/null."""
    said: dict[str, str] = {}
    for line in head:
        for mark, key in _NAMES.items():
            if line.startswith(mark):
                name = line[len(mark) :]
                said[key] = unquote(name) if name.startswith('"') else name.split("\t", 1)[0].rstrip("\r")
    if "from" in said and "to" in said:
        return said["from"], said["to"]
    if "old" in said and "new" in said:
        return _side(said["old"], "a/"), _side(said["new"], "b/")
    for line in head:
        if line.startswith("diff --git "):
            return _twice(line.removeprefix("diff --git "))
    return None


_NAMES = {
    "--- ": "old",
    "+++ ": "new",
    "rename from ": "from",
    "rename to ": "to",
    "copy from ": "from",
    "copy to ": "to",
}


def _side(name: str, prefix: str) -> str:
    return "" if name == "/dev/null" else name.removeprefix(prefix)


def _twice(names: str) -> tuple[str, str] | None:
    """`a/x b/x`: the only form without `---` and `+++` that names one file twice."""
    if names.startswith('"'):
        first, _, second = names[1:].partition('" "')
        return unquote(f'"{first}"').removeprefix("a/"), unquote(f'"{second}').removeprefix("b/")
    half = (len(names) - 1) // 2
    first, second = names[:half], names[half + 1 :]
    if first.removeprefix("a/") == second.removeprefix("b/"):
        return first.removeprefix("a/"), second.removeprefix("b/")
    return None


def unquote(name: str) -> str:
    r"""A path as git writes it: `"a\303\244\n"` has its bytes in C notation."""
    if not (len(name) > 1 and name.startswith('"') and name.rstrip().endswith('"')):
        return name.rstrip("\r")
    body = name.rstrip()[1:-1]
    plain = re.sub(
        rb"\\([0-7]{3}|.)",
        lambda m: bytes([int(m[1], 8) & 255]) if len(m[1]) > 1 else _ESCAPES.get(m[1], m[1]),
        body.encode(),
    )
    return plain.decode(errors="replace")


_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


def _hunks(lines: Sequence[str]) -> Iterator[Hunk]:
    header, start, body = "", 0, list[str]()
    left_old = left_new = 0
    for line in lines:
        match = _HUNK.match(line) if left_old <= 0 and left_new <= 0 else None
        if match:
            if header:
                yield Hunk(header, start, tuple(body))
            header, start, body = line, int(match[3]), []
            left_old, left_new = int(match[2] or 1), int(match[4] or 1)
        elif header and (left_old > 0 or left_new > 0 or line.startswith("\\")):
            body.append(line)
            left_old -= line[:1] in ("-", " ", "")
            left_new -= line[:1] in ("+", " ", "")
    if header:
        yield Hunk(header, start, tuple(body))
