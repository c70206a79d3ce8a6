"""Why was this reused? Each produced file, where it came from, and whether it is stale.

A file is stale when an input it was made from has changed since, or when its role now has
another agent or model. A file that a person edited is theirs: reported, never redone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from rondel.config import Config
from rondel.engine.ledger import Record
from rondel.engine.session import Session
from rondel.model.changes import Aside, Change

S = TypeVar("S")


@dataclass(frozen=True)
class Origin:
    """One produced file: its action, whether a person edited it, why it is stale."""

    action: str
    file: str
    reasons: tuple[str, ...] = ()
    edited: bool = False
    frozen: bool = False
    agent: str = ""

    @property
    def stale(self) -> bool:
        """Whether refreshing would redo it."""
        return bool(self.reasons) and not self.frozen

    @property
    def words(self) -> str:
        """What a person reads about it."""
        made = f"made by {self.agent}" if self.agent else "derived"
        if self.edited:
            made += ", edited since by a person"
        if not self.reasons:
            return f"reused: {made}; its inputs are unchanged"
        state = "finished, kept" if self.frozen else "kept" if self.edited else "stale"
        return f"{state}: {made}; {'; '.join(self.reasons)}"


def explain(session: Session[S], config: Config) -> list[Origin]:
    """Every file that an action left and that is still there, oldest first."""
    frozen = tuple(f.rstrip("/") + "/" for f in session.workflow.frozen(session.state))
    rows: list[Origin] = []
    for path, record in session.ledger.records.items():
        if not record.done or not session.files.exists(path):
            continue
        edited = path in record.files and session.files.digest(path) != record.files[path]
        closed = path.startswith(frozen) if frozen else False
        rows.append(Origin(path, path, _reasons(session, config, record), edited, closed, record.agent))
    return rows


def _reasons(session: Session[S], config: Config, record: Record) -> tuple[str, ...]:
    reasons = []
    for name, was in record.inputs.items():
        now = session.files.digest(name) or ""
        if now != was:
            reasons.append(f"input {name} is {'gone' if not now else 'new' if not was else 'changed'}")
    if record.role:
        agent = config.agent_for(record.role)
        if agent.name != record.agent:
            reasons.append(f"{record.role} is now {agent.name}, was {record.agent}")
        elif agent.model != record.model:
            now, was = (model or "its default" for model in (agent.model, record.model))
            reasons.append(f"the model of {agent.name} is now {now}, was {was}")
    return tuple(reasons)


def refresh(session: Session[S], config: Config) -> tuple[list[Change], list[str]]:
    """What to put aside so that the stale files and what depends on them are made again.

    Returns the changes, and words about stale files that stay because a person edited them.
    """
    origins = {o.action: o for o in explain(session, config)}
    redo = {a for a, o in origins.items() if o.stale and not o.edited}
    redone = {a for a, o in origins.items() if o.stale}
    while more := _dependants(session, origins, redone) - redone:
        redone |= more
        redo |= {a for a in more if not origins[a].edited}
    names = set(session.files.names(".rondel/aside"))
    changes: list[Change] = []
    for path in sorted(redo):
        flat = path.replace("/", "__")
        number = next(n for n in range(1, len(names) + 2) if f"{flat}.stale-{n}" not in names)
        names.add(f"{flat}.stale-{number}")
        changes.append(Aside(path, f".rondel/aside/{flat}.stale-{number}"))
    return changes, [f"{o.file} {o.words}" for a, o in origins.items() if a in redone and o.edited]


def _dependants(session: Session[S], origins: dict[str, Origin], redone: Iterable[str]) -> set[str]:
    """The actions that were made from a file that will be made again."""
    gone = set(redone)
    return {a for a, o in origins.items() if not o.frozen and gone & session.ledger.of(a).inputs.keys()}
