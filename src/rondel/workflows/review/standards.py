"""The project's own standards: where they are written, in which order they count, and who said what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rondel.model.workflow import Look
from rondel.workflows.review.markdown import closed, demoted

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


def look_at_standards(configured: str, look: Look) -> tuple[Source, ...]:
    """The sources of this repository, the one that counts most first: `[review] context` of its settings."""
    found = [Source("rondel.toml", configured.strip())] if configured.strip() else []
    for name in FILES:
        found += _file(name, look)
        if name in ("AGENTS.md", "CLAUDE.md"):
            found += _nested(name, look)
    for name in OPENSPEC:
        found += _file(name, look)
    found += _specs(look)
    return tuple(found)


def _file(path: str, look: Look, scope: str = "") -> Iterator[Source]:
    data = look.file(path)
    if data is not None and (text := data.decode(errors="replace").strip()):
        yield Source(path, text, scope)


def _nested(name: str, look: Look) -> Iterator[Source]:
    """The files of that name in folders; they count for their folder."""
    listed = look.git("ls-files", "-z", "--", f":(glob)*/**/{name}", check=False).split("\0")
    for path in sorted(p for p in listed if p and not p.startswith("openspec/"))[:NESTED_MAX]:
        yield from _file(path, look, scope=path.rpartition("/")[0] + "/")


def _specs(look: Look) -> Iterator[Source]:
    patterns = (":(glob)openspec/specs/**/spec.md", ":(glob)openspec/changes/*/proposal.md")
    listed = sorted(p for p in look.git("ls-files", "-z", "--", *patterns, check=False).split("\0") if p)
    for path in listed[:SPECS_MAX]:
        yield from _file(path, look)


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
