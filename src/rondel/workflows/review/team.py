"""Reviewers: who they are and how they look at a change.

A persona is a Markdown file; those that come with Rondel are in `reviewers/`, a repository's
own in `.ocr/reviewers/` and win over ours of the same name. `principal:2` is two reviewers
with one persona: `principal-1` and `principal-2`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from rondel.errors import UsageError
from rondel.model.changes import Document
from rondel.model.snapshot import Snapshot
from rondel.workflows.review.layout import PERSONAS, is_reviewer

TEAM = "principal:2,quality:2"
QUICK = "principal:1,quality:1"
CHECKS = "quality:1,security:1,performance:1,reliability:1"
ONE_OFF = "ephemeral"
EACH_MAX = 9
TEAM_MAX = 24
PERSONA_MAX = 20_000
_TYPE = re.compile(r"[a-z0-9][a-z0-9-]{0,58}")


@dataclass(frozen=True)
class Reviewer:
    """One seat of the team. `persona` is empty for one of ours, which is looked up by its type."""

    name: str  # principal-1
    type: str  # principal
    persona: str = ""

    @property
    def role(self) -> str:
        """Who answers for it is decided by this role."""
        return f"review.reviewer.{self.name}"

    def document(self) -> Document:
        """As JSON; `reviewer_of` reads it back."""
        return {"name": self.name, "type": self.type, "persona": self.persona}


def reviewer_of(document: object) -> Reviewer | None:
    """A reviewer from a request; None when it is not one."""
    if not isinstance(document, dict):
        return None
    name, persona = document.get("name"), document.get("persona")
    if not isinstance(name, str) or not is_reviewer(name):
        return None
    return Reviewer(name, name.rpartition("-")[0], persona if isinstance(persona, str) else "")


@cache
def shipped_personas() -> Mapping[str, str]:
    """The personas that come with Rondel, by type."""
    folder = resources.files("rondel.workflows.review") / "reviewers"
    return {
        entry.name.removesuffix(".md"): entry.read_text(encoding="utf-8")
        for entry in sorted(folder.iterdir(), key=lambda e: e.name)
        if entry.name.endswith(".md")
    }


def own_personas(repo: Snapshot) -> dict[str, str]:
    """The repository's own personas, by type."""
    found = {}
    for name in sorted(repo.names(PERSONAS)):
        kind = name.removesuffix(".md")
        text = repo.text(f"{PERSONAS}/{name}") if name.endswith(".md") and _TYPE.fullmatch(kind) else None
        if text and text.strip():
            found[kind] = text.strip()[:PERSONA_MAX]
    return found


def parse_team(text: str, own: Mapping[str, str], one_offs: Iterable[str] = ()) -> tuple[Reviewer, ...]:
    """The team that `principal:2,security:1` names, and one-off reviewers described in a sentence."""
    known = {*shipped_personas(), *own}
    team: dict[str, Reviewer] = {}
    for item in (part.strip() for part in text.split(",")):
        if not item:
            continue
        kind, _, count = item.partition(":")
        kind = kind.strip().lower()
        if kind not in known:
            raise UsageError(f"no reviewer {kind!r}; there are: {', '.join(sorted(known))}")
        if not re.fullmatch(r"\s*+[1-9]?\s*+", count):
            raise UsageError(f"{item!r}: the number of {kind} reviewers must be 1 to {EACH_MAX}")
        for k in range(1, int(count.strip() or 1) + 1):
            name = f"{kind}-{k}"
            team[name] = Reviewer(name, kind, own.get(kind, ""))
    for k, described in enumerate((d.strip() for d in one_offs if d.strip()), 1):
        persona = f"# One-off reviewer\n\nYou are {described[:PERSONA_MAX]}\n"
        team[f"{ONE_OFF}-{k}"] = Reviewer(f"{ONE_OFF}-{k}", ONE_OFF, persona)
    if not team:
        raise UsageError(f"the team is empty; name reviewers, e.g. {TEAM}")
    if len(team) > TEAM_MAX:
        raise UsageError(f"the team has {len(team)} reviewers; at most {TEAM_MAX} are useful")
    return tuple(team.values())


def persona_of(reviewer: Reviewer) -> str:
    """How a reviewer looks at things. One without a persona anywhere is a careful generalist."""
    return reviewer.persona or shipped_personas().get(
        reviewer.type, f"# {reviewer.type} reviewer\n\nYou review with the eyes of: {reviewer.type}.\n"
    )
