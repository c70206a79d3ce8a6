"""What a repository brings that can run, redirect or loosen, and what of it a run needs consent for."""

from __future__ import annotations

import json
import os
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from rondel.errors import NeedsConsent
from rondel.model.consent import Brought
from rondel.model.summary import command_line
from rondel.model.workflow import Given, SessionRef
from rondel.processes import reaper
from rondel.project.repository import Repository, now
from rondel.project.views import Views
from rondel.repo.git import Git
from rondel.trust import consents
from rondel.trust.parts import Part, difference


class Trust:
    """The person's word on what one repository brings."""

    def __init__(self, repository: Repository, views: Views) -> None:
        self._repository = repository
        self._views = views
        self._asked = set[str]()  # digests of what the person was asked about in this process

    def brought(self, workflow: str | None = None, ref: SessionRef | None = None) -> list[Part]:
        """Everything of the repository that counts only after consent: for a run, or for all."""
        repository = self._repository
        parts = list(repository.config.admitted.parts)
        if workflow:
            state = self._views.state(ref) if ref else None
            edits = repository.workflow(workflow).changes_code(state)
            parts = [p for p in parts if _concerns(p, workflow, repository.installed, edits=edits)]
        else:  # no run needs these: a file whose filter does not run is named
            found = Git(repository.root).brought().items()
            parts += [repository.part_of(brought_git(*words)) for words in found]
        for name in [workflow] if workflow else repository.workflow_names():
            flow, given = repository.workflow(name), _as_said(repository.given(name), parts)
            for one in [ref] if workflow else [None, *self._under_way(name)]:
                state = self._views.state(one) if one else None
                parts += [repository.part_of(more) for more in flow.brings(state, given, repository.look)]
        return list({part.digest: part for part in parts}.values())

    def _under_way(self, workflow: str) -> list[SessionRef]:
        """The sessions that are not over: what they would run may be on their branches alone."""
        refs = self._repository.sessions(workflow)
        return [ref for ref in refs if not self._views.summary(ref).status.is_over]

    def is_given(self, part: Part) -> bool:
        """Whether the person consented to it."""
        return part.digest in self._repository.consents.parts

    def lacking(self, workflow: str | None = None, ref: SessionRef | None = None) -> list[Part]:
        """What the person did not consent to."""
        return [part for part in self.brought(workflow, ref) if not self.is_given(part)]

    def left_out(self) -> list[str]:
        """What of the settings does not count, for want of consent; also where an agent is not installed."""
        return [part.name for part in self._repository.read_config(all_installed=False).admitted.left_out]

    def not_asked(self, workflow: str, ref: SessionRef | None = None) -> list[Part]:
        """What of that they were not asked about in this process; from now on they were."""
        missing = [part for part in self.lacking(workflow, ref) if part.digest not in self._asked]
        self._asked.update(part.digest for part in missing)
        return missing

    def needed(self, workflow: str, ref: SessionRef | None = None) -> list[Part]:
        """What a run cannot do without: its agents, and, where it edits, set-up and tests."""
        goes_without = self._repository.workflow(workflow).goes_without
        settings = {p.digest for p in self._repository.config.admitted.left_out}
        return [
            part
            for part in self.lacking(workflow, ref)
            if part.digest not in settings or _is_needed(part, goes_without=goes_without)
        ]

    def require(self, workflow: str, ref: SessionRef | None = None) -> None:
        """NeedsConsent where a run cannot do without something that the person did not consent to."""
        if missing := self.needed(workflow, ref):
            names = ", ".join(part.name for part in missing)
            raise NeedsConsent(
                f"this repository brings what would run, and you have not consented to it: {names}\n"
                f"  `{command_line('trust')}` shows it\n  next: {command_line('trust', '--yes')}"
            )

    def shown(self, parts: Iterable[Part]) -> Iterable[str]:
        """Parts for a person, a line each: what would run, or what changed since it was consented to."""
        for part in parts:
            before = self._repository.consents.before.get(part.name)
            yield part.name if before is None else f"{part.name}, changed:"
            lines = part.shown if before is None else difference(before, part.shown)
            yield from (f"  {line}" for line in lines)

    def give(self, parts: Iterable[Part | Brought]) -> int:
        """Record that the person consents; how much of it is new."""
        require_person()
        part_of = self._repository.part_of
        found = [part if isinstance(part, Part) else part_of(part) for part in parts]
        added = consents.give(self._repository.root, found, now())
        self._repository.forget()
        return added

    def allow(self, commands: Mapping[str, str]) -> int:
        """Record that the person allows commands, each by its digest; how many are new."""
        require_person()
        added = consents.allow(self._repository.root, commands, now())
        self._repository.forget()
        return added

    def revoke(self) -> int:
        """Take every consent in this repository back; how many there were."""
        count = consents.revoke(self._repository.root)
        self._repository.forget()
        return count


def require_person() -> None:
    """NeedsConsent where what asks was started by a driver: an agent does not say yes for the person."""
    if os.environ.get(reaper.MARK):
        raise NeedsConsent(
            "this was typed by something that Rondel started; only you can say yes, at a terminal"
        )


def brought_git(name: str, keys: Mapping[str, str]) -> Brought:
    """A part of the repository's git configuration, as the person consents to it."""
    return Brought(name, "\n".join(f"{key} = {_one_line(value)}" for key, value in sorted(keys.items())))


def _one_line(value: str) -> str:
    return value if value.isprintable() else json.dumps(value)


def _as_said(given: Given, parts: Iterable[Part]) -> Given:
    """The same where the settings say how to test and are not admitted yet: no other test is looked for."""
    said = {part.name: part.lines[0] for part in parts if part.name.startswith("project.")}
    test = given.test or said.get("project.test", "")
    return replace(given, test=test, checks=given.checks or said.get("project.checks", "") or test)


def _concerns(part: Part, workflow: str, workflows: Container[str], *, edits: bool) -> bool:
    """Whether a part of the settings has a say in a run of a workflow: the tests have none in a review."""
    first, _, rest = part.name.partition(".")
    if first == "roles":
        return rest.split(".")[0] in ("default", workflow)
    if first in ("project", "workspaces"):
        return edits
    return first == workflow or first not in workflows


def _is_needed(part: Part, *, goes_without: bool) -> bool:
    """Whether a run that a part of the settings has a say in cannot do without it."""
    if part.is_spare:
        return False
    return part.name.startswith("project.") or (part.name.startswith("roles.") and not goes_without)
