"""What a person asked for: the change and the team. `.rondel/request-N.json` is all that a resumed run needs.

A persona is a Markdown file; those that come with Rondel are in `reviewers/`, a repository's
own in `.ocr/reviewers/` and win over ours of the same name. `principal:2` is two reviewers
with one persona: `principal-1` and `principal-2`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from rondel.errors import UsageError
from rondel.model.changes import Document
from rondel.model.codec import Names, decode, only, request_file, requests_in
from rondel.model.snapshot import Snapshot
from rondel.model.workflow import Given
from rondel.workflows.review.layout import PERSONAS, is_reviewer
from rondel.workflows.review.target import Target

SETTINGS: Mapping[str, object] = MappingProxyType(
    {
        "team": "",  # principal:2,quality:2; with no model at hand the reviewers that `checks` can be
        "context": "",  # standards of this project, in words
        "prompt_max": 200_000,  # characters of one prompt
        "refuters_max": 30,  # findings per round that go to a refuter
        "rounds_max": 0,  # rounds per session; 0: no limit
    }
)
LEAD = "review.lead"
REFUTER = "review.refuter"
PROMPT_MIN = 4_000


@dataclass(frozen=True)
class Request:
    """One request. `round` is the round it opened; 0 when nobody asked yet."""

    schema_version: int = 1
    round: int = 0
    opened_at: str = ""
    target: Target = field(default_factory=Target)
    team: tuple[Reviewer, ...] = ()
    mechanical: Names = frozenset()  # roles that no model serves
    quick: bool = False
    prompt_max: Annotated[int, Field(ge=0)] = 200_000
    refuters_max: Annotated[int, Field(ge=0)] = 30
    context: str = ""  # standards from the settings
    since: Mapping[str, str] = field(default_factory=dict)  # session, round and head they come from
    carried: tuple[dict[str, Any], ...] = ()  # open findings of the last round on the branch


def request_of(document: object) -> Request:
    """A request from its file. What is missing or wrong has its default."""
    found = decode(Request, document) or Request()
    team = tuple({r.name: replace(r, type=r.name.rpartition("-")[0]) for r in found.team}.values())
    return replace(found, team=team or _default_team(), prompt_max=max(PROMPT_MIN, found.prompt_max))


@cache
def _default_team() -> tuple[Reviewer, ...]:
    return parse_team(TEAM, {})


def request_for(files: Snapshot, number: int) -> Request:
    """What was asked for a round: its last request; else the last of all, as a template."""
    last = None
    for one in reversed(requests_in(files)):
        found = request_of(files.json(request_file(one)))
        if found.round == number:
            return found
        last = last or found
    if last is None:
        return request_of(None)
    return replace(last, round=0, carried=(), since={}, opened_at="")


def with_settings(request: Request, given: Given, answered: Iterable[str]) -> Request:
    """A request with the settings as they are now, for all that is not done yet.

    Who answered already did so as the agent they were then.
    """
    if given.kind_of is None:
        return request
    done = frozenset(f"review.reviewer.{name}" for name in answered)
    due = {LEAD, REFUTER, *(r.role for r in request.team)} - done
    return replace(
        request,
        mechanical=(request.mechanical & done) | {role for role in due if given.kind_of(role) == "checks"},
        prompt_max=max(PROMPT_MIN, _number(given.settings.get("prompt_max"), request.prompt_max)),
        refuters_max=_number(given.settings.get("refuters_max"), request.refuters_max),
        context=str(given.settings.get("context") or request.context),
    )


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default


# -- what is asked for now -----------------------------------------------------------------


@dataclass(frozen=True)
class ReviewOptions:
    """What a person asked for on the command line."""

    target: Target = field(default_factory=Target)
    given: str = ""  # the diff of a DIFF target
    team: str | None = None
    one_offs: tuple[str, ...] = ()
    requirements: str | None = None
    quick: bool = False
    again: bool = False  # a new round though nothing changed
    restart: bool = False  # put an unfinished round aside
    settings: Mapping[str, object] = field(default_factory=dict)
    personas: Mapping[str, str] = field(default_factory=dict)  # the repository's own
    kind_of: Callable[[str], str] = lambda _: "checks"  # which kind of agent has a role

    @property
    def changes_the_team(self) -> bool:
        """Whether a resumed round must look different."""
        return self.team is not None or bool(self.one_offs)


def team_of(options: ReviewOptions) -> tuple[Reviewer, ...]:
    """Who is to review; UsageError where there can be no such team."""
    by_checks = options.kind_of("review.reviewer") == "checks"
    usual = CHECKS if by_checks else TEAM
    if options.quick:
        usual = CHECKS_QUICK if by_checks else QUICK
    configured = options.settings.get("team")
    text = options.team or (configured if isinstance(configured, str) and not options.quick else "") or usual
    return parse_team(text, options.personas, options.one_offs)


def request_from(
    options: ReviewOptions, number: int, carried: tuple[Document, ...], since: Mapping[str, str], now: str
) -> Request:
    """The request for a round; `carried` are the open findings it must answer, from the round `since`."""
    team, settings = team_of(options), options.settings
    roles = [LEAD, REFUTER, *(r.role for r in team)]
    return Request(
        round=number,
        target=options.target,
        team=team,
        mechanical=frozenset(role for role in roles if options.kind_of(role) == "checks"),
        quick=options.quick,
        prompt_max=_number(settings.get("prompt_max"), 200_000),
        refuters_max=_number(settings.get("refuters_max"), 30),
        carried=carried,
        since=since,
        context=str(settings.get("context") or ""),
        opened_at=now,
    )


# -- reviewers -------------------------------------------------------------------------------

TEAM = "principal:2,quality:2"
QUICK = "principal:1,quality:1"
CHECKS = "quality:1,security:1,performance:1,reliability:1"
CHECKS_QUICK = "quality:1,security:1"
ONE_OFF = "ephemeral"
EACH_MAX = 9
TEAM_MAX = 24
PERSONA_MAX = 20_000
_TYPE = re.compile(r"[a-z0-9][a-z0-9-]{0,58}")


@dataclass(frozen=True)
class Reviewer:
    """One seat of the team. `persona` is empty for one of ours, which is looked up by its type."""

    name: Annotated[str, only(is_reviewer)]  # principal-1
    type: str = ""  # principal
    persona: str = ""

    @property
    def role(self) -> str:
        """Who answers for it is decided by this role."""
        return f"review.reviewer.{self.name}"


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
