"""One repository: its workflows, its settings as they count, whose its sessions are, what is consented to."""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from dataclasses import MISSING, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from rondel import config as settings
from rondel import installed
from rondel.agents import roster
from rondel.engine.judged import at_base
from rondel.engine.look import DiskReader
from rondel.errors import ConfigError, UsageError
from rondel.installed import AnyWorkflow
from rondel.model.consent import Brought, Everything
from rondel.model.snapshot import Snapshot
from rondel.model.workers import AskProgram, ask_nobody
from rondel.model.workflow import NOTHING_GIVEN, Given, SessionRef
from rondel.processes import reaper
from rondel.store import files
from rondel.store.snapshot import DiskSnapshot
from rondel.trust import consents
from rondel.trust.consents import Consents
from rondel.trust.parts import Part, brought_part
from rondel.trust.sessions import Sessions


def now() -> datetime:
    """The clock of every run."""
    return datetime.now(UTC)


class Repository:
    """What the other parts of a project rest on. Nothing here writes."""

    def __init__(self, root: Path, workflows: Mapping[str, AnyWorkflow] | None, trust: str | None) -> None:
        """`workflows` are instead of those installed; `trust` is said as RONDEL_TRUST would."""
        self.root = root
        self.known = Sessions(root)
        self.look = DiskReader(root, now, self.admits, self._own_folder, self.own_paths)
        self.ask: AskProgram = ask_nobody  # runs programs of the repository that answer questions
        self.change: tuple[str, str] | None = None  # base and head of the change that is judged
        self._workflows = workflows
        self._loaded: dict[str, AnyWorkflow] = dict(workflows or {})
        self._givens: dict[str, Given] = {}
        self._trust = trust
        self._instead: Mapping[str, bytes] = {}  # the settings of a change's base, while it is judged

    # -- workflows and settings -----------------------------------------------------------

    def workflow_names(self) -> list[str]:
        """The workflows in the order that they say themselves; each of them is loaded."""
        return list(self._workflows) if self._workflows is not None else installed.in_order(self.installed)

    @property
    def installed(self) -> frozenset[str]:
        """The names of the workflows. None is loaded."""
        return frozenset(self._workflows if self._workflows is not None else installed.workflows())

    def workflow(self, name: str) -> AnyWorkflow:
        """A workflow by name."""
        if name not in self._loaded:
            if name not in self.installed:
                raise UsageError(f"no workflow {name!r}; there are: {', '.join(self.workflow_names())}")
            self._loaded[name] = installed.workflow(name)
        return self._loaded[name]

    def own_paths(self) -> tuple[str, ...]:
        """What workflows say is their own record in a repository."""
        return tuple(
            dict.fromkeys(p for name in self.workflow_names() for p in self.workflow(name).own_paths)
        )

    def unedited(self) -> tuple[str, ...]:
        """What no edit of an agent's holds: see `Workflow.unedited`."""
        return tuple(dict.fromkeys(p for name in self.workflow_names() for p in self.workflow(name).unedited))

    @cached_property
    def config(self) -> settings.Config:
        """The settings of this repository, checked."""
        return self.read_config()

    def read_config(self, *, all_installed: bool = True) -> settings.Config:
        """The settings as they are now; see `settings.load`."""
        return settings.load(
            self.root,
            workflows=self.installed,
            kinds=frozenset(roster.kinds()),
            detected=tuple(roster.detect()),
            workflow=self.workflow,
            consents=self.consents.parts,
            all_installed=all_installed,
            instead=self._instead,
        )

    def settings(self, workflow: str) -> Mapping[str, object]:
        """A workflow's own settings over its defaults."""
        given = self.config.tables.get(workflow, {})
        defaults = self.workflow(workflow).settings()
        return settings.check_table(self.config.source, workflow, given, defaults)

    def settings_for(self, workflow: str, change: tuple[str, str] | None) -> Mapping[str, object]:
        """A workflow's settings, as they count from now on for judging a change: those of its base."""
        before = self._instead
        self.change = change
        self._instead = at_base(change, settings.REPOSITORY_FILES, self.look) if change else {}
        if self._instead != before:
            self.forget()
        return self.settings(workflow)

    def judged_otherwise(self) -> list[str]:
        """The files whose settings count as they are at a change's base, and are others now."""
        return [
            name
            for name, text in self._instead.items()
            if settings.settings_of(self.root / name, text) != settings.settings_of(self.root / name)
        ]

    def given(self, workflow: str) -> Given:
        """What a workflow is given besides a session's files; nothing where the settings cannot be read."""
        if workflow not in self._givens:
            try:
                self._givens[workflow] = self._read_given(workflow)
            except ConfigError:
                return replace(NOTHING_GIVEN, allowed=self._allowed, is_known=self.is_recorded)
        return self._givens[workflow]

    def _read_given(self, workflow: str) -> Given:
        config = self.config
        self.settings(workflow)  # checks them
        return Given(
            config.tables.get(workflow, {}),
            test=config.project.test,
            checks=config.project.checks or config.project.test,
            sandbox=config.workspaces.sandbox,
            kind_of=lambda role: config.agent_for(role).kind,
            admits=self.admits,
            allowed=self._allowed,
            ask=self.ask,
            is_known=self.is_recorded,
        )

    def options(self, workflow: str, given: Mapping[str, object]) -> Any:
        """What a workflow's `start` is given, from names and values; UsageError says what is wrong."""
        kind = self.workflow(workflow).options
        if kind is None:
            raise UsageError(f"no program can start a {workflow} session; see `rondel {workflow} --help`")
        known = {f.name: f.default is MISSING and f.default_factory is MISSING for f in fields(kind)}
        if unknown := [name for name in given if name not in known]:
            raise UsageError(f"{workflow} has no option {unknown[0]!r}; there are: {', '.join(known)}")
        if missing := [name for name, is_needed in known.items() if is_needed and name not in given]:
            raise UsageError(f"{workflow} needs the option {missing[0]!r}; there are: {', '.join(known)}")
        try:
            return TypeAdapter(kind).validate_python(dict(given))
        except ValidationError as e:
            wrong = e.errors()[0]
            name = ".".join(map(str, wrong["loc"]))
            raise UsageError(f"{workflow}: the option {name} = {wrong['input']!r}: {wrong['msg']}") from e

    def forget(self) -> None:
        """Read settings and consents anew when they are next needed."""
        for name in ("consents", "config"):
            self.__dict__.pop(name, None)
        self._givens.clear()

    # -- what the person consented to -------------------------------------------------------

    @cached_property
    def consents(self) -> Consents:
        """What the person consented to in this repository."""
        return self.consents_now()

    def consents_now(self) -> Consents:
        """As it is now: another terminal may say yes, or take it back, while a driver runs."""
        return consents.read(self.root, self._trust or os.environ.get(consents.VARIABLE))

    def _allowed(self) -> Container[str]:
        return self.consents_now().commands

    def admits(self, brought: Brought) -> bool:
        """Whether the person consented to something that the repository brings."""
        return self.part_of(brought).digest in self.consents.parts

    def part_of(self, brought: Brought) -> Part:
        """What the person consents to with something that the repository brings."""
        return brought_part(brought, lambda path: consents.lookup(self.root, path))

    # -- whose sessions these are -------------------------------------------------------------

    def sessions(self, workflow: str | None = None) -> list[SessionRef]:
        """The sessions of one workflow, or of all."""
        repo = DiskSnapshot(self.root)
        names = [workflow] if workflow else self.workflow_names()
        return [ref for name in names for ref in self.workflow(name).sessions(repo)]

    def folder(self, ref: SessionRef) -> Path:
        """A session's folder, which leads out of the repository by no link."""
        return files.safe_join(self.root, ref.folder)

    def files(self, ref: SessionRef) -> Snapshot:
        """All files of a session, whether they count or not."""
        return DiskSnapshot(self.folder(ref), ref.beside)

    def says_yes(self) -> bool:
        """The person's word for this process counts as adoption, which the first change makes true."""
        return isinstance(self.consents.parts, Everything) and not os.environ.get(reaper.MARK)

    def is_known(self, ref: SessionRef) -> bool:
        """Whether this person began or adopted a session here; every other one is foreign."""
        return self.says_yes() or self.is_recorded(ref)

    def is_recorded(self, ref: SessionRef) -> bool:
        """The same, whatever the environment says for this process."""
        return self.known.of(ref).knows(self.files(ref))

    def _own_folder(self, path: str) -> str:
        """The folder of the recorded session that a path belongs to, or a file beside it; empty for none."""
        for ref in self._places:
            above, beside = ref.folder.rpartition("/")[0], path.rpartition("/")
            is_beside = beside[0] == above and beside[2] in ref.beside
            if (is_beside or path.startswith(f"{ref.folder}/")) and self.is_recorded(ref):
                return path if is_beside else ref.folder
        return ""

    @cached_property
    def _places(self) -> list[SessionRef]:
        """Where sessions are; a change may name thousands of files below them."""
        return self.sessions()

    def forget_places(self) -> None:
        """There is one session more."""
        self.__dict__.pop("_places", None)
