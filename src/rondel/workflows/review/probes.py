"""Looking at the repository: the change between two commits, the project's standards, old quotations.

Everything goes through a `RepoReader`, within bounds whatever the size of the change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rondel.errors import GitError, RondelError
from rondel.model.refs import END
from rondel.model.workflow import RepoReader
from rondel.workflows.review.aggregate import QUOTE_MIN, solid_parts
from rondel.workflows.review.analysers.base import is_source
from rondel.workflows.review.change import (
    Change,
    Changed,
    Claim,
    FileDiff,
    Kind,
    claim_of,
    kind_of,
    parse_diff,
    short_of,
)
from rondel.workflows.review.markdown import cut, demoted
from rondel.workflows.review.target import Kind as TargetKind
from rondel.workflows.review.target import Pins, Target, pin, reviewed_paths

DIFF_MAX = 8_000_000  # characters of diff that are kept for a round
FILE_MAX = 1_000_000  # bytes of a file, before or after, that is still shown
COMMITS_MAX = 100
SINCE_MAX = 200_000
UNSHOWN_MAX = 1_000  # files that are not shown and of which the changed lines are known
_BATCH = 100
_BATCH_BYTES = 20_000_000
_ATTRIBUTES = ("linguist-generated", "linguist-vendored", "diff")
_PLAIN = ("-c", "core.quotePath=false", "-c", "diff.noprefix=false", "-c", "diff.mnemonicPrefix=false")
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "-M", "-U5", "--ignore-submodules=dirty")
_WORDS = {"A": "added", "M": "modified", "D": "deleted", "R": "renamed", "C": "copied", "T": "type-changed"}


def look_at_change(base: str, head: str, look: RepoReader) -> Change:
    """The change between two commits, within bounds whatever its size.

    Its base says what is generated, vendored or binary, by its attributes and by what is there: a
    change does not hide itself.
    """
    entries = list(_raw(base, head, look))
    counts = _numstat(base, head, look)
    attributes = _attributes(base, [entry.path for entry in entries], look)
    sizes = _sizes(entries, look)
    binary = [entry for entry in entries if counts.get(entry.path, (0, 0)) is None]
    counts |= dict.fromkeys(_as_text(binary, attributes, sizes, look), (0, 0))  # its diff has the numbers
    true = _true_claims(base, entries, look)
    files = [
        _in_short(
            entry,
            counts.get(entry.path, (0, 0)),
            kind_of(entry.path, attributes.get(entry.path), true.__contains__),
            is_large=_size(entry, sizes) > FILE_MAX,
        )
        for entry in entries
    ]
    diff, files, notes = _diff_within(base, head, files, look)
    files = _with_lines(base, head, files, {entry.path: _size(entry, sizes) for entry in entries}, look)
    commits = look.git(
        "log", "--no-color", "--format=%h %s", f"--max-count={COMMITS_MAX}", END, f"{base}..{head}"
    ).splitlines()
    total = int(look.git("rev-list", "--count", END, f"{base}..{head}").strip() or 0)
    return Change(tuple(files), tuple(commits), max(0, total - len(commits)), tuple(notes), diff)


def given_change(diff: str) -> Change:
    """The change that a diff itself is."""
    notes = []
    if len(diff) > DIFF_MAX:
        cut = diff.rfind("\ndiff --git ", 0, DIFF_MAX)
        diff = diff[: cut + 1] if cut > 0 else diff[:DIFF_MAX]
        notes.append(f"the diff was cut after {len(diff)} characters; the rest is not reviewed")
    files = parse_diff(diff)
    short = tuple(short_of(f) for f in files)
    shown = "\n".join(f.text for f, in_short in zip(files, short, strict=True) if in_short.kind is Kind.TEXT)
    return Change(short, notes=tuple(notes), diff=shown + "\n")


def is_empty(base: str, head: str, look: RepoReader) -> bool:
    """Whether nothing that counts differs between two commits."""
    return base == head or not look.git(
        *_DIFF, "--raw", "-z", END, base, head, "--", *reviewed_paths(base, head, look)
    ).strip("\0\n ")


def is_same(one: Pins, other: Pins, look: RepoReader) -> bool:
    """Whether two pinned changes are one: the same commits, or commits that differ in nothing that counts."""
    if (one.base, one.head) == (other.base, other.head):
        return True
    try:
        return is_empty(one.base, other.base, look) and is_empty(one.head, other.head, look)
    except GitError:
        return False


class _Entry(NamedTuple):
    """A line of `git diff --raw`."""

    modes: tuple[str, str]
    blobs: tuple[str, str]
    status: str
    path: str
    old_path: str | None


def _raw(base: str, head: str, look: RepoReader) -> Iterable[_Entry]:
    own = reviewed_paths(base, head, look)
    out = look.git(*_PLAIN, *_DIFF, "--raw", "--no-abbrev", "-z", END, base, head, "--", *own)
    fields = iter(out.split("\0"))
    for row in fields:
        match = re.fullmatch(r"\s*:(\d+) (\d+) ([0-9a-f]+) ([0-9a-f]+) (\w+)", row)
        if match:
            old = next(fields, "") if match[5][0] in "RC" else None
            status = _WORDS.get(match[5][:1], "modified")
            yield _Entry((match[1], match[2]), (match[3], match[4]), status, next(fields, ""), old)


def _numstat(base: str, head: str, look: RepoReader) -> dict[str, tuple[int, int] | None]:
    """Lines added and removed by path; None for a binary file."""
    own = reviewed_paths(base, head, look)
    out = look.git_with_attributes(base, *_PLAIN, *_DIFF, "--numstat", "-z", END, base, head, "--", *own)
    found: dict[str, tuple[int, int] | None] = {}
    fields = iter(out.split("\0"))
    for row in fields:
        match = re.fullmatch(r"\s*(\d+|-)\t(\d+|-)\t(.*)", row, re.DOTALL)
        if match:
            path = match[3] or (next(fields, ""), next(fields, ""))[1]
            found[path] = None if match[1] == "-" else (int(match[1]), int(match[2]))
    return found


def _attributes(base: str, paths: Sequence[str], look: RepoReader) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    if not paths:
        return found
    stdin = "".join(f"{path}\0" for path in paths)
    words = ("check-attr", "-z", "--stdin", *_ATTRIBUTES)
    fields = look.git_with_attributes(base, *words, stdin=stdin, check=False).split("\0")
    for path, name, value in zip(fields[::3], fields[1::3], fields[2::3], strict=False):
        found.setdefault(path, {})[name] = value
    return found


def _sizes(entries: Sequence[_Entry], look: RepoReader) -> dict[str, int]:
    """The size of each blob, in bytes."""
    blobs = sorted({blob for entry in entries for blob in entry.blobs if set(blob) != {"0"}})
    stdin = "".join(f"{blob}\n" for blob in blobs)
    out = look.git("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=stdin)
    rows = (line.split() for line in out.splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}  # noqa: PLR2004 - name and size


def _size(entry: _Entry, sizes: Mapping[str, int]) -> int:
    """The size of a file, before or after, whichever is larger."""
    return max(sizes.get(blob, 0) for blob in entry.blobs)


def _as_text(
    entries: Sequence[_Entry],
    attributes: Mapping[str, Mapping[str, str]],
    sizes: Mapping[str, int],
    look: RepoReader,
) -> set[str]:
    """Those of these binary files that are so only for a byte in them: source by name or first line."""
    able = [
        entry
        for entry in entries
        if attributes.get(entry.path, {}).get("diff") != "unset" and _size(entry, sizes) <= FILE_MAX
    ]
    scripts = _scripts([e.blobs[1] for e in able if not is_source(e.path)], sizes, look)
    return {e.path for e in able if is_source(e.path) or e.blobs[1] in scripts}


def _scripts(blobs: Sequence[str], sizes: Mapping[str, int], look: RepoReader) -> set[str]:
    """Those of these blobs that begin with `#!`."""
    found: set[str] = set()
    for batch in _batches(sorted({blob for blob in blobs if set(blob) != {"0"}}), sizes):
        out = look.git("cat-file", "--batch", stdin="".join(f"{blob}\n" for blob in batch))
        found |= set(re.findall(r"(?:^|\n)([0-9a-f]{40,64}) blob [0-9]++\n#!", out)) & set(batch)
    return found


def _batches(names: Sequence[str], sizes: Mapping[str, int]) -> Iterator[list[str]]:
    """Names a few at a time, so that what git says of them stays within bounds."""
    batch: list[str] = []
    size = 0
    for name in names:
        if batch and (len(batch) >= _BATCH or size + sizes.get(name, 0) > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(name)
        size += sizes.get(name, 0)
    if batch:
        yield batch


def _true_claims(base: str, entries: Sequence[_Entry], look: RepoReader) -> frozenset[Claim]:
    """What is true of paths: there are such files in the base."""
    if not any(claim_of(entry.path) for entry in entries):
        return frozenset()
    names = look.git("ls-tree", "-r", "-z", "--full-tree", "--name-only", END, base).split("\0")
    return frozenset(claim for name in names if (claim := claim_of(name)))


def _in_short(entry: _Entry, count: tuple[int, int] | None, kind: Kind, *, is_large: bool) -> Changed:
    if "160000" in entry.modes:
        kind = Kind.SUBMODULE
    elif count is None:
        kind = Kind.BINARY
    elif kind is Kind.TEXT and is_large:
        kind = Kind.LARGE
    added, removed = count or (0, 0)
    return Changed(entry.path, entry.status, added, removed, kind, entry.old_path)


def _with_lines(
    base: str, head: str, files: Sequence[Changed], sizes: Mapping[str, int], look: RepoReader
) -> list[Changed]:
    """The files, with the lines that the change wrote in text that is not shown."""
    hidden = {
        f.path: f
        for f in files
        if f.kind in (Kind.GENERATED, Kind.VENDORED, Kind.LARGE) and sizes.get(f.path, 0) <= FILE_MAX
    }
    wrote: dict[str, tuple[tuple[int, int], ...]] = {}
    for batch in _batches(list(hidden)[:UNSHOWN_MAX], sizes):
        wrote |= {d.path: d.wrote for d in _diff_of(base, head, [hidden[p] for p in batch], look, "-U0")}
    return [replace(f, wrote=wrote.get(f.path, ())) for f in files]


def _diff_within(
    base: str, head: str, files: Sequence[Changed], look: RepoReader
) -> tuple[str, list[Changed], list[str]]:
    """The diff of the text files, until it is large enough; files that say they are generated drop out."""
    texts = [f for f in files if f.kind is Kind.TEXT]
    kept: list[str] = []
    kinds: dict[str, Kind] = {}
    lines: dict[str, tuple[int, int]] = {}
    size = 0
    for at in range(0, len(texts), _BATCH):
        batch = texts[at : at + _BATCH]
        if size > DIFF_MAX:
            kinds |= {f.path: Kind.LARGE for f in batch}
            continue
        for file in _diff_of(base, head, batch, look):
            fits = size + len(file.text) <= DIFF_MAX
            lines[file.path] = file.counts
            if file.looks_generated() or not fits:
                kinds[file.path] = Kind.GENERATED if fits else Kind.LARGE
                continue
            kept.append(file.text)
            size += len(file.text) + 1
    notes = []
    if beyond := sum(kind is Kind.LARGE for kind in kinds.values()):
        notes.append(f"{beyond} files are not shown: the diff would be longer than {DIFF_MAX} characters")
    shown = [
        replace(f, kind=kinds.get(f.path, f.kind), added=added, removed=removed)
        for f in files
        for added, removed in [lines.get(f.path, (f.added, f.removed))]
    ]
    return "\n".join(kept) + "\n" * bool(kept), shown, notes


def _diff_of(
    base: str, head: str, files: Sequence[Changed], look: RepoReader, *options: str
) -> tuple[FileDiff, ...]:
    """The diffs of files that are text, whatever bytes are in them; what is no character is replaced."""
    wanted = {f.path for f in files}
    paths = [_pathspec(p) for f in files for p in (f.old_path, f.path) if p]
    words = (*_PLAIN, *_DIFF, "--text", *options, "--full-index", END, base, head, "--", *paths)
    found = parse_diff(look.git_with_attributes(base, *words).replace("\0", "\ufffd"))
    return tuple(file for file in found if file.path in wanted)


def _pathspec(path: str) -> str:
    """A path for git. Of a name that is not UTF-8 only a pattern is known; what else it finds is left out."""
    if "\ufffd" not in path:
        return f":(literal){path}"
    return ":(glob)" + re.sub(r"([*?\[\]\\])", r"\\\1", path).replace("\ufffd", "*")


def look_since(
    before: str, head: str, findings: Sequence[tuple[str, str, str]], look: RepoReader
) -> dict[str, object]:
    """What happened since an earlier round: the diff, and which quotations are still in their files.

    `findings` are (fingerprint, file, quotation). `present` holds None where nobody can know.
    """
    known = bool(before) and bool(
        look.git("rev-parse", "--verify", "-q", END, f"{before}^{{commit}}", check=False).strip()
    )
    paths = sorted({file for _, file, _ in findings if file})
    diff = ""
    if known and paths:
        diff = look.git(
            *_PLAIN, *_DIFF, END, before, head, "--", *(f":(literal){path}" for path in paths), check=False
        )
    present = {name: _present(head, file, quotation, look) for name, file, quotation in findings}
    touched = [f.path for f in parse_diff(diff)]
    return {"known": known, "touched": list(touched), "diff": diff[:SINCE_MAX], "present": present}


def look_for_quotes(head: str, quotes: Sequence[tuple[str, str]], look: RepoReader) -> list[str]:
    """The quotations that are in the file they are said to be from, whatever their white space."""
    found = []
    for file, quote in quotes:
        text = "".join(look.git("show", END, f"{head}:{file}", check=False).split()) if file else ""
        parts = solid_parts(quote)
        if parts and all(part in text for part in parts):
            found.append(quote)
    return found


def look_moved(target: Target, base: str, head: str, look: RepoReader) -> dict[str, object]:
    """Whether the target is something else by now than what a round pinned."""
    if target.kind not in (TargetKind.WORK, TargetKind.STAGED, TargetKind.RANGE):
        return {"moved": False}
    try:
        now = pin(target, look, dry=True)
    except RondelError as e:
        return {"moved": True, "words": f"it cannot be found any more ({e})"}
    if is_same(Pins(base, head, "", ""), now, look):
        return {"moved": False}
    words = f"{base[:12]}..{head[:12]} then, {now.base[:12]}..{now.head[:12]} now"
    return {"moved": True, "words": words}


def _present(head: str, file: str, quotation: str, look: RepoReader) -> bool | None:
    lines = ["".join(re.sub(r"^[+-]", "", line).split()) for line in quotation.splitlines()]
    anchor = max(lines, key=len, default="")
    if not file or len(anchor) < QUOTE_MIN:
        return None
    text = look.git("show", END, f"{head}:{file}", check=False)
    return anchor in "".join(text.split())


# -- standards -------------------------------------------------------------------------------

SIZE_MAX = 1_000_000  # bytes of a file that is read at all
SOURCE_MAX = 40_000
TOTAL_MAX = 120_000
NESTED_MAX = 20
SPECS_MAX = 40
FILES = (
    "AGENTS.md",
    "CLAUDE.md",
    ".cursorrules",
    ".windsurfrules",
    ".github/copilot-instructions.md",
    "CONTRIBUTING.md",
)
OPENSPEC = ("openspec/config.yaml", "openspec/project.md", "openspec/AGENTS.md")


@dataclass(frozen=True)
class Source:
    """One place that says how things are done here."""

    path: str
    text: str
    scope: str = ""  # the folder it is about, when that is not the whole repository


def look_at_standards(configured: str, base: str, look: RepoReader) -> tuple[Source, ...]:
    """The sources of this repository, the one that counts most first: `[review] context` of its settings.

    They are read at the `base` of the change: a change does not say by which standards it is
    reviewed. Without a base, which a diff in a file has not, they are read as they are.
    """
    there = files_at(base, look) if base else _here(look)
    found = [Source("rondel.toml", configured.strip())] if configured.strip() else []
    for name in FILES:
        found += there.source(name)
        if name in ("AGENTS.md", "CLAUDE.md"):
            nested = [p for p in there.named(rf".+/{re.escape(name)}") if not p.startswith("openspec/")]
            for path in nested[:NESTED_MAX]:  # it counts for its folder
                found += there.source(path, scope=path.rpartition("/")[0] + "/")
    for name in (
        *OPENSPEC,
        *there.named(r"openspec/(specs/.*/?spec|changes/[^/]+/proposal)\.md")[:SPECS_MAX],
    ):
        found += there.source(name)
    return tuple(found)


@dataclass(frozen=True)
class Files:
    """The repository's files, wherever they are read."""

    names: tuple[str, ...]  # sorted; of regular files
    content: Callable[[str], bytes | None]

    def named(self, pattern: str) -> list[str]:
        """Those whose path matches."""
        return [name for name in self.names if re.fullmatch(pattern, name, re.DOTALL)]

    def source(self, path: str, scope: str = "") -> Iterator[Source]:
        """The file as a source, where it says anything."""
        data = self.content(path)
        if data is not None and (text := data.decode(errors="replace").strip()):
            yield Source(path, text, scope)


def _here(look: RepoReader) -> Files:
    patterns = (*(f":(glob)**/{name}" for name in FILES), ":(glob)openspec/**")
    listed = look.git("ls-files", "-z", "--", *patterns, check=False).split("\0")
    return Files(tuple(sorted(filter(None, listed))), look.file)


def files_at(commit: str, look: RepoReader) -> Files:
    """The regular files of a commit."""
    rows = (row.partition("\t") for row in look.git("ls-tree", "-r", "-z", END, commit).split("\0"))
    blobs = {path: words.split()[2] for words, _, path in rows if words.startswith("100")}

    def content(path: str) -> bytes | None:
        blob = blobs.get(path)
        size = look.git("cat-file", "-s", END, blob, check=False).strip() if blob else ""
        if blob is None or not size.isdigit() or int(size) > SIZE_MAX:
            return None
        return look.git("cat-file", "blob", END, blob).encode()

    return Files(tuple(sorted(blobs)), content)


def render_standards(sources: tuple[Source, ...]) -> str:
    """`discovered-standards.md`: every source with its priority, within bounds."""
    if not sources:
        return (
            "# Discovered standards\n\nThe repository states none. "
            "Looked for: `rondel.toml` ([review] context), "
            + ", ".join(f"`{name}`" for name in FILES)
            + ", `openspec/`.\n"
        )
    rows = [
        f"| {n} | `{s.path}` | {s.scope or 'everything'} | {len(s.text)} |" for n, s in enumerate(sources, 1)
    ]
    head = (
        "# Discovered standards\n\n"
        "Highest priority first. Where two sources disagree, the one with the smaller number holds.\n\n"
        "| priority | source | applies to | characters |\n|---:|---|---|---:|\n" + "\n".join(rows)
    )
    parts = [head]
    room = TOTAL_MAX
    for number, source in enumerate(sources, 1):
        text = cut(source.text, min(SOURCE_MAX, room), f"`{source.path}`")
        room = max(0, room - len(text))
        parts.append(f"## {number}. `{source.path}`\n\n{demoted(text)}")
    return "\n\n".join(parts) + "\n"
