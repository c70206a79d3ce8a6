"""The project's own standards: where they are written, in which order they count, and who said what."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rondel.model.refs import END
from rondel.model.workflow import Look
from rondel.workflows.review.markdown import closed, demoted

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


def look_at_standards(configured: str, base: str, look: Look) -> tuple[Source, ...]:
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


def _here(look: Look) -> Files:
    patterns = (*(f":(glob)**/{name}" for name in FILES), ":(glob)openspec/**")
    listed = look.git("ls-files", "-z", "--", *patterns, check=False).split("\0")
    return Files(tuple(sorted(filter(None, listed))), look.file)


def files_at(commit: str, look: Look) -> Files:
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
        text = _cut(source, min(SOURCE_MAX, room))
        room = max(0, room - len(text))
        parts.append(f"## {number}. `{source.path}`\n\n{demoted(text)}")
    return "\n\n".join(parts) + "\n"


def _cut(source: Source, size_max: int) -> str:
    if len(source.text) <= size_max:
        return source.text
    rest = len(source.text) - size_max
    return f"{closed(source.text[:size_max])}\n\n[{rest} more characters of `{source.path}` are left out]"
