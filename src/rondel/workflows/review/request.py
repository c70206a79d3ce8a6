"""What a person asked for: `.rondel/request-N.json`. A resumed run needs nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType

from rondel.model.changes import Document, Json
from rondel.model.snapshot import Snapshot
from rondel.model.workflow import Given
from rondel.workflows.review.layout import RONDEL
from rondel.workflows.review.target import Target, target_of
from rondel.workflows.review.team import TEAM, Reviewer, parse_team, reviewer_of

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
_NAME = re.compile(r"request-([0-9]+)\.json")


@dataclass(frozen=True)
class Request:
    """One request. `round` is the round it opened; 0 when nobody asked yet."""

    round: int = 0
    target: Target = field(default_factory=Target)
    team: tuple[Reviewer, ...] = ()
    mechanical: frozenset[str] = frozenset()  # roles that no model serves
    quick: bool = False
    prompt_max: int = 200_000
    refuters_max: int = 30
    carried: tuple[Mapping[str, object], ...] = ()  # open findings of the last round on the branch
    since: Mapping[str, str] = field(default_factory=dict)  # session, round and head they come from
    context: str = ""  # standards from the settings
    opened_at: str = ""

    def document(self) -> Document:
        """As JSON; `request_of` reads it back."""
        team: list[Json] = [r.document() for r in self.team]
        target: Document = {
            k: v for k, v in self.target.document().items() if isinstance(v, str | int | bool)
        }
        carried: list[Json] = [_plain(item) for item in self.carried]
        return {
            "schema_version": 1,
            "round": self.round,
            "opened_at": self.opened_at,
            "target": target,
            "team": team,
            "mechanical": [*sorted(self.mechanical)],
            "quick": self.quick,
            "prompt_max": self.prompt_max,
            "refuters_max": self.refuters_max,
            "context": self.context,
            "since": dict(self.since),
            "carried": carried,
        }


def _plain(value: object) -> Json:
    """A value as JSON has it."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def request_of(document: object) -> Request:
    """A request from its file. What is missing or wrong has its default."""
    if not isinstance(document, dict):
        return Request(team=_default_team())
    team = [r for item in _items(document.get("team")) if (r := reviewer_of(item)) is not None]
    since = document.get("since")
    return Request(
        round=_number(document.get("round"), 0),
        target=target_of(document.get("target")),
        team=tuple({r.name: r for r in team}.values()) or _default_team(),
        mechanical=frozenset(m for m in _items(document.get("mechanical")) if isinstance(m, str)),
        quick=document.get("quick") is True,
        prompt_max=max(PROMPT_MIN, _number(document.get("prompt_max"), 200_000)),
        refuters_max=_number(document.get("refuters_max"), 30),
        carried=tuple(c for c in _items(document.get("carried")) if isinstance(c, dict)),
        since={k: v for k, v in since.items() if isinstance(v, str)} if isinstance(since, dict) else {},
        context=str(document.get("context") or ""),
        opened_at=str(document.get("opened_at") or ""),
    )


@cache
def _default_team() -> tuple[Reviewer, ...]:
    return parse_team(TEAM, {})


def requests_in(files: Snapshot) -> tuple[tuple[int, str], ...]:
    """The number and the path of every request, oldest first."""
    found = [(int(m[1]), f"{RONDEL}/{name}") for name in files.names(RONDEL) if (m := _NAME.fullmatch(name))]
    return tuple(sorted(found))


def request_for(files: Snapshot, number: int) -> Request:
    """What was asked for a round: its last request; else the last of all, as a template."""
    last = None
    for _, path in reversed(requests_in(files)):
        found = request_of(files.json(path))
        if found.round == number:
            return found
        last = last or found
    if last is None:
        return request_of(None)
    return Request(**{**vars(last), "round": 0, "carried": (), "since": {}, "opened_at": ""})


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


def _items(value: object) -> Iterable[object]:
    return value if isinstance(value, list) else ()


def _number(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else default
