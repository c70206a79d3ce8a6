"""PROJECT: one repository and its sessions. Every command goes through it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import platformdirs

from rondel import config as settings
from rondel import installed, paths
from rondel.agents import roster
from rondel.agents.base import Agent, AgentSettings
from rondel.agents.words import by_no_link, pinned, pinned_words, run_in
from rondel.agents.workers import Workers
from rondel.engine import control, kept
from rondel.engine.adoption import adopt, claims
from rondel.engine.branch import Loss, loss_of, move_onto, own_branch, see_branch
from rondel.engine.driver import View
from rondel.engine.executor import LocalExecutor
from rondel.engine.explain import Origin, explain
from rondel.engine.judged import at_base, touches
from rondel.engine.look import DiskReader
from rondel.engine.lost import lost
from rondel.engine.notes import HEARTBEAT
from rondel.engine.perform import Tools
from rondel.engine.report import REPORT, Report, Stopped, last_report
from rondel.engine.run import RunOptions, run
from rondel.engine.session import Session, new_identity, newer_documents, restored
from rondel.errors import ConfigError, GitError, MachineTrouble, NeedsConsent, RondelError, UsageError
from rondel.installed import AnyWorkflow
from rondel.model.actions import Decide
from rondel.model.changes import Change, text
from rondel.model.consent import Brought, Everything
from rondel.model.decisions import DECIDED
from rondel.model.identity import IDENTITY, Identity, identity_of
from rondel.model.jsons import parse_json
from rondel.model.names import digest
from rondel.model.outcomes import NO_USAGE, Usage, usage_of
from rondel.model.snapshot import Snapshot
from rondel.model.summary import FOREIGN_SESSION, Problem, Status, Summary, command_line
from rondel.model.times import stamp
from rondel.model.workflow import NOTHING_GIVEN, Given, SessionRef
from rondel.processes import reaper
from rondel.repo.branches import Branches
from rondel.repo.clone import object_folders
from rondel.repo.config import ask_about
from rondel.repo.git import Git
from rondel.repo.moves import cut_short, restore
from rondel.repo.workspaces import Conflict as Conflict
from rondel.repo.workspaces import Workspaces
from rondel.repo.worktrees import Worktrees
from rondel.sandbox.box import VARIABLE as SANDBOX_VARIABLE
from rondel.sandbox.box import Box, held, holds, own_places
from rondel.sandbox.box import mode as sandbox_mode
from rondel.sandbox.box import unclosable as unclosable
from rondel.sandbox.hosts import named
from rondel.store import files, ours
from rondel.store.changes import Written
from rondel.store.lease import NAME as LEASE
from rondel.store.lease import Lease, holder
from rondel.store.locks import locked
from rondel.store.ours import OLD_RUN, RECORD, RESTORED, Restored
from rondel.store.snapshot import DiskSnapshot
from rondel.trust import consents
from rondel.trust.consents import Consents
from rondel.trust.doubts import WRITTEN_MEANWHILE, Doubts
from rondel.trust.named import is_script
from rondel.trust.parts import Part, brought_part, key_name
from rondel.trust.seals import Believed, Seals
from rondel.trust.sessions import BEGUN, Sessions

SCHEMA_VERSION = 1
ENDING_S = 2.0  # longer than a driver holds a session after it looked for the last time
BESIDE_MAX = 500  # files beside the scripts of an agent
Confirm = Callable[["Project", SessionRef], bool]


def now() -> datetime:
    """The clock of every run."""
    return datetime.now(UTC)


class Project:
    """One repository and everything in it."""

    def __init__(
        self,
        root: Path,
        *,
        workflows: Mapping[str, AnyWorkflow] | None = None,
        build: Callable[[AgentSettings], Agent] = roster.build,
        trust: str | None = None,
    ) -> None:
        """`trust` is what the person says of all of the repository, as RONDEL_TRUST does."""
        self.root = root = root.resolve()  # once: from here on no link is followed
        self._given = workflows
        self._build = build
        self._loaded: dict[str, AnyWorkflow] = dict(workflows or {})
        self._givens: dict[str, Given] = {}
        self._trust = trust
        self._change: tuple[str, str] | None = None  # base and head of the change that is judged
        self._instead: Mapping[str, bytes] = {}  # the settings of a change's base, while it is judged
        self.look = DiskReader(root, now, self.admits, self._own_folder, self._own_paths)
        self.ask = Workers(lambda: (self._own_work_folder / "workers", self.box))
        self.asked = set[str]()  # digests of what the person was asked about in this process
        self.confirm: Confirm = lambda _project, _ref: False  # asks the person whether to adopt a session
        self._known = Sessions(root)
        if (folders := consents.git_folders(root)) is not None:
            ask_about(folders[1].resolve(), lambda *words: self.admits(brought_git(*words)))
        self._put_back: dict[SessionRef, list[Restored]] = {}  # by adopting; the run that follows says so

    @classmethod
    def find(cls, cwd: Path) -> Project:
        """The project of the repository that `cwd` is in."""
        for folder in (cwd, *cwd.parents):
            if (folder / ".git").is_file() or (folder / ".git/HEAD").exists():
                return cls(folder)
        raise RondelError(f"{cwd} is not in a git repository; run `git init` there first")

    # -- what there is ------------------------------------------------------------------

    @cached_property
    def config(self) -> settings.Config:
        """The settings of this repository, checked."""
        return self.read_config()

    def read_config(self, *, all_installed: bool = True) -> settings.Config:
        """The settings as they are now; see `settings.load`."""
        return settings.load(
            self.root,
            workflows=self._installed,
            kinds=frozenset(roster.kinds()),
            detected=tuple(roster.detect()),
            workflow=self.workflow,
            consents=self.consents.parts,
            all_installed=all_installed,
            instead=self._instead,
        )

    def settings_for(self, workflow: str, change: tuple[str, str] | None) -> Mapping[str, object]:
        """A workflow's settings, as they count from now on for judging a change: those of its base."""
        before = self._instead
        self._change = change
        self._instead = at_base(change, settings.REPOSITORY_FILES, self.look) if change else {}
        if self._instead != before:
            self._forget_settings()
            self.__dict__.pop("box", None)
        return self.settings(workflow)

    def _judged_otherwise(self) -> list[str]:
        """The files whose settings count as they are at a change's base, and are others now."""
        return [
            name
            for name, text in self._instead.items()
            if settings.settings_of(self.root / name, text) != settings.settings_of(self.root / name)
        ]

    # -- consent ------------------------------------------------------------------------

    @cached_property
    def consents(self) -> Consents:
        """What the person consented to in this repository."""
        return self._consents_now()

    def _consents_now(self) -> Consents:
        """As it is now: another terminal may say yes, or take it back, while a driver runs."""
        return consents.read(self.root, self._trust or os.environ.get(consents.VARIABLE))

    def admits(self, brought: Brought) -> bool:
        """Whether the person consented to something that the repository brings."""
        return self.part_of(brought).digest in self.consents.parts

    def part_of(self, brought: Brought) -> Part:
        """What the person consents to with something that the repository brings."""
        return brought_part(brought, lambda path: consents.lookup(self.root, path))

    def brought(self, workflow: str | None = None, ref: SessionRef | None = None) -> list[Part]:
        """Everything of the repository that counts only after consent: for a run, or for all."""
        parts = list(self.config.admitted.parts)
        if workflow:
            edits = self.workflow(workflow).changes_code(self.state(ref) if ref else None)
            parts = [p for p in parts if _concerns(p, workflow, self._installed, edits=edits)]
        else:  # no run needs these: a file whose filter does not run is named
            parts += [self.part_of(brought_git(*found)) for found in Git(self.root).brought().items()]
        for name in [workflow] if workflow else self.workflow_names():
            flow, given = self.workflow(name), _as_said(self.given(name), parts)
            for one in [ref] if workflow else [None, *self._under_way(name)]:
                state = self.state(one) if one else None
                parts += [self.part_of(found) for found in flow.brings(state, given, self.look)]
        return list({part.digest: part for part in parts}.values())

    def _under_way(self, workflow: str) -> list[SessionRef]:
        """The sessions that are not over: what they would run may be on their branches alone."""
        return [ref for ref in self.sessions(workflow) if not self.summary(ref).status.is_over]

    def lacks_consent(self, workflow: str | None = None, ref: SessionRef | None = None) -> list[Part]:
        """What of that the person did not consent to."""
        return [part for part in self.brought(workflow, ref) if part.digest not in self.consents.parts]

    def needs_consent(self, workflow: str, ref: SessionRef | None = None) -> list[Part]:
        """What a run cannot do without: its agents, and, where it edits, set-up and tests."""
        goes_without = self.workflow(workflow).goes_without
        settings = {p.digest for p in self.config.admitted.left_out}
        return [
            part
            for part in self.lacks_consent(workflow, ref)
            if part.digest not in settings or _is_needed(part, goes_without=goes_without)
        ]

    def require_consent(self, workflow: str, ref: SessionRef | None = None) -> None:
        """NeedsConsent where a run cannot do without something that the person did not consent to."""
        if missing := self.needs_consent(workflow, ref):
            names = ", ".join(part.name for part in missing)
            raise NeedsConsent(
                f"this repository brings what would run, and you have not consented to it: {names}\n"
                f"  `{command_line('trust')}` shows it\n  next: {command_line('trust', '--yes')}"
            )

    def consent(self, parts: Iterable[Part]) -> int:
        """Record that the person consents; how much of it is new."""
        _require_person()
        added = consents.give(self.root, parts, now())
        self._forget_settings()
        return added

    def allow(self, commands: Mapping[str, str]) -> int:
        """Record that the person allows commands of tasks, each by its digest; how many are new."""
        _require_person()
        added = consents.allow(self.root, commands, now())
        self._forget_settings()
        return added

    def revoke(self) -> int:
        """Take every consent in this repository back; how many there were."""
        count = consents.revoke(self.root)
        self._forget_settings()
        return count

    def _forget_settings(self) -> None:
        """Read settings and consents anew when they are next needed."""
        for name in ("consents", "config"):
            self.__dict__.pop(name, None)
        self._givens.clear()

    def _allowed(self) -> Container[str]:
        return self._consents_now().commands

    # -- foreign sessions -----------------------------------------------------------------

    def is_known(self, ref: SessionRef) -> bool:
        """Whether this person began or adopted a session here; every other one is foreign."""
        return self._says_yes() or self.is_recorded(ref)

    def is_recorded(self, ref: SessionRef) -> bool:
        """The same, whatever the environment says for this process."""
        return self._known.of(ref).knows(self._all_files(ref))

    def _own_folder(self, path: str) -> str:
        """The folder of the recorded session that a path belongs to, or a file beside it; empty for none."""
        for ref in self._places:
            above, beside = ref.folder.rpartition("/")[0], path.rpartition("/")
            is_beside = beside[0] == above and beside[2] in ref.beside
            if (is_beside or path.startswith(f"{ref.folder}/")) and self.is_recorded(ref):
                return path if is_beside else ref.folder
        return ""

    def _own_paths(self) -> tuple[str, ...]:
        """What workflows say is their own record in a repository."""
        return tuple(
            dict.fromkeys(p for name in self.workflow_names() for p in self.workflow(name).own_paths)
        )

    @cached_property
    def _places(self) -> list[SessionRef]:
        """Where sessions are; a change may name thousands of files below them."""
        return self.sessions()

    def claims(self, ref: SessionRef) -> list[str]:
        """What a session says is done and decided, a line each: what a person adopts."""
        workflow, is_foreign = self.workflow(ref.workflow), not self.is_recorded(ref)
        there = self.artifacts(ref)
        return claims(ref, workflow, self.state(ref), self.files(ref), there, is_foreign=is_foreign)

    def _says_yes(self) -> bool:
        """The person's word for this process counts as adoption, which the first change makes true."""
        return isinstance(self.consents.parts, Everything) and not os.environ.get(reaper.MARK)

    def claim(self, ref: SessionRef) -> None:
        """Record that a session is begun here, before anything is in its folder."""
        self.__dict__.pop("_places", None)
        identity = new_identity(ref.workflow, self.look)
        self._known.of(ref).refuse_driven()
        self._known.of(ref).record(identity, BEGUN, now(), is_open=True)

    def start(self, ref: SessionRef, changes: Sequence[Change]) -> None:
        """Begin a session here: on record first, then its folder, its id and these files.

        The last of them is the one that its workflow knows a session by: cut off before that, there is none.
        """
        self.claim(ref)
        files.make_folder(files.safe_join(self.root, ref.folder))
        self.begin(ref, new=True)
        self.change(ref, changes)

    def seal(self, ref: SessionRef, path: str, data: bytes) -> bytes:
        """A decision of the person's with their seal, for a session of theirs."""
        return Seals(self._known.of(ref)).sealed(path, data, self._all_files(ref))

    def require_known(self, ref: SessionRef) -> None:
        """NeedsConsent where a session is foreign, and the person does not adopt it now.

        Whatever goes on with a session, counts it, decides in it or merges it comes through here.
        """
        if self.is_recorded(ref):
            return
        if not (self._says_yes() or self.confirm(self, ref)):
            raise NeedsConsent(
                f"{ref.name} is foreign: it was not begun here, and what it says is done or decided may be "
                f"anybody's; `{command_line('status', ref.name)}` shows it, and adopting it makes it yours",
                then=command_line("adopt", ref.name),
            )
        self.adopt(ref)

    def adopt(self, ref: SessionRef) -> None:
        """Make a foreign session the person's own; what it says counts from now on."""
        _require_person()
        self._known.home(make=True)
        session = self.session(ref)
        session.check_version()
        self._put_back[ref] = adopt(session, self.look, now())

    def workflow_names(self) -> list[str]:
        """The workflows in the order that they say themselves; each of them is loaded."""
        return list(self._given) if self._given is not None else installed.in_order(self._installed)

    @property
    def _installed(self) -> frozenset[str]:
        return frozenset(self._given if self._given is not None else installed.workflows())

    def workflow(self, name: str) -> AnyWorkflow:
        """A workflow by name."""
        if name not in self._loaded:
            if name not in installed.workflows():
                raise UsageError(f"no workflow {name!r}; there are: {', '.join(self.workflow_names())}")
            self._loaded[name] = installed.workflow(name)
        return self._loaded[name]

    def settings(self, workflow: str) -> Mapping[str, object]:
        """A workflow's own settings over its defaults."""
        given = self.config.tables.get(workflow, {})
        defaults = self.workflow(workflow).settings()
        return settings.check_table(self.config.source, workflow, given, defaults)

    def given(self, workflow: str) -> Given:
        """What a workflow is given besides a session's files; nothing where the settings cannot be read."""
        if workflow not in self._givens:
            try:
                self._givens[workflow] = self._read_given(workflow)
            except ConfigError:
                return replace(NOTHING_GIVEN, allowed=self._allowed)
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
        )

    def sessions(self, workflow: str | None = None) -> list[SessionRef]:
        """The sessions of one workflow, or of all."""
        repo = DiskSnapshot(self.root)
        names = [workflow] if workflow else self.workflow_names()
        return [ref for name in names for ref in self.workflow(name).sessions(repo)]

    def ref(self, name: str | None, workflow: str | None = None, *, looking: bool = False) -> SessionRef:
        """A session by any unique part of its name; without one, the only active one.

        Who is only `looking` may mean one that is over, where none is active.
        """
        refs = self.sessions(workflow)
        if name:
            return _pick(refs, name)
        active = [r for r in refs if not self.summary(r).status.is_over]
        if looking and not active:
            active = refs
        if len(active) == 1:
            return active[0]
        what = f"{workflow} session" if workflow else "session"
        if not active:
            raise UsageError(f"there is no active {what} here; `rondel status` lists what there is")
        there = ", ".join(r.name for r in active)
        raise UsageError(f"several sessions {'are there' if looking else 'are active'}; name one of: {there}")

    # -- reading ------------------------------------------------------------------------

    def session(self, ref: SessionRef) -> Session[Any]:
        """An open session."""
        return Session(
            self.root, ref, self.workflow(ref.workflow), self.given(ref.workflow), self._known.of(ref)
        )

    def runtime(self, ref: SessionRef) -> Path:
        """Where a session's lease, journal and spools are, once it runs: in the person's state folder."""
        return self._known.of(ref).runtime

    def files(self, ref: SessionRef) -> Snapshot:
        """The files of a session, without decisions that count for nothing."""
        found = self._all_files(ref)
        seals = self._seals(ref, found)
        return Believed(found, seals, self._doubts(ref)) if seals else found

    def _all_files(self, ref: SessionRef) -> Snapshot:
        return DiskSnapshot(files.safe_join(self.root, ref.folder), ref.beside)

    def _doubts(self, ref: SessionRef) -> Doubts:
        """Which texts of a session do not count before the person has adopted them."""
        return Doubts(self.runtime(ref), ref.name, Written(files.safe_join(self.root, ref.folder)).ours)

    def _seals(self, ref: SessionRef, shown: Snapshot) -> Seals | None:
        """By what decisions count; None in a foreign session, which is shown with all that it says."""
        known = self._known.of(ref)
        return Seals(known) if known.knows(shown) else None

    def state(self, ref: SessionRef) -> Any:
        """What a session's files show."""
        return self.workflow(ref.workflow).read(self.files(ref), ref, self.given(ref.workflow))

    def survey(self) -> list[tuple[SessionRef, Summary]]:
        """Every session of every workflow, in one look at the disk."""
        repo = DiskSnapshot(self.root, once=True)
        found, same = [], defaultdict[str, list[SessionRef]](list)
        for name in self.workflow_names():
            for ref in self.workflow(name).sessions(repo):
                there = repo.below(ref.folder, ref.beside)
                found.append((ref, self._summary(ref, there)))
                if own := identity_of(there.json(IDENTITY)):
                    same[own.id].append(ref)
                repo.let_go(ref.folder)
        copies = {ref: copy for refs in same.values() for ref in refs if (copy := _same_id(ref, refs))}
        return [(ref, _with_problem(summary, copies.get(ref))) for ref, summary in found]

    def summary(self, ref: SessionRef) -> Summary:
        """A session in short, with what only the outside knows: running, paused."""
        return self._summary(ref, self._all_files(ref))

    def status(self, ref: SessionRef) -> Summary:
        """Like `summary`, with what is seen only beside the other sessions: that one is a copy."""
        return _with_problem(self.summary(ref), self._copy(ref))

    def _summary(self, ref: SessionRef, snapshot: Snapshot) -> Summary:
        seals = self._seals(ref, snapshot)
        if seals is None:
            found = self._summary_of(ref, snapshot, None, snapshot)
            return found if self._says_yes() else _as_foreign(ref, found)
        doubts = self._doubts(ref)
        found = self._summary_of(ref, snapshot, seals, Believed(snapshot, seals, doubts))
        found = replace(found, problems=(*found.problems, *self._uncounted(ref, snapshot, seals, doubts)))
        waits = any(problem.rule == WRITTEN_MEANWHILE for problem in found.problems)
        return replace(found, next=command_line("adopt", ref.name)) if waits else found

    def _uncounted(
        self, ref: SessionRef, snapshot: Snapshot, seals: Seals, doubts: Doubts
    ) -> Iterator[Problem]:
        """What does not count: decisions and texts that are nobody's, and answers to what is asked again."""
        yield from seals.problems(snapshot)
        if old := list(seals.outdated(snapshot)):
            asked = {question.path for question in self.waiting(ref)}
            yield from (problem for problem in old if problem.file in asked)
        if not doubts.is_idle:
            yield from doubts.problems(snapshot, paths.files_below(files.safe_join(self.root, ref.folder)))

    def _summary_of(
        self, ref: SessionRef, snapshot: Snapshot, seals: Seals | None, shown: Snapshot
    ) -> Summary:
        """The same from what is `shown` to the workflow; one that is not on record has no runtime here."""
        flow = self.workflow(ref.workflow)
        state = flow.read(shown, ref, self.given(ref.workflow))
        found = flow.summary(state)
        if found.status is Status.DAMAGED:  # nothing goes on before it is mended
            found = replace(found, next=command_line("doctor"))
        there = snapshot.names(ours.HOME)
        newer = newer_documents(snapshot, flow, state)
        if newer:
            return replace(found, status=Status.DAMAGED, problems=(*newer, *found.problems))
        if not there:  # nobody of ours was ever there
            return found
        if gone := lost(identity_of(snapshot.json(IDENTITY))):
            found = replace(
                found,
                problems=(*found.problems, *gone),
                foreign=(*found.foreign, "what was completed before its id was lost"),
            )
        run = self.runtime(ref)
        at_run = ours.names(run) if seals is not None else frozenset[str]()
        if seals is not None or self._says_yes():
            record = snapshot.data(RECORD) if RESTORED in there else None
            run_record = ours.view(run / RESTORED) if RESTORED in at_run else None
            found = replace(found, problems=(*found.problems, *restored(record, run_record)))
        folder = f"{self.root}/{ref.folder}" if "lock" in there else None
        if (folder or LEASE in at_run) and holder(run, folder) is not None:
            problems = tuple(p for p in found.problems if not p.when_idle)
            watches = command_line("watch", ref.name)
            return replace(found, status=Status.RUNNING, problems=problems, next=watches)
        if found.status not in (Status.DAMAGED, Status.CANCELLED):
            found = _with_loss(found, self._loss(ref, state, snapshot))
        if found.status not in (Status.ACTIVE, Status.WAITING):
            return found
        if "control" in there:
            return replace(found, status=Status.PAUSED)
        return _with_report(found, last_report(run)) if REPORT in at_run else found

    def _loss(self, ref: SessionRef, state: Any, snapshot: Snapshot) -> Loss | None:
        """What counts as done and is not on the session's branch. Where nobody can look, nothing is said."""
        identity = identity_of(snapshot.json(IDENTITY))
        if identity is None:
            return None
        with suppress(RondelError, MachineTrouble):
            return loss_of(ref, self.workflow(ref.workflow), state, identity, self._branches)
        return None

    @cached_property
    def _trees(self) -> Worktrees:
        """Who only looks, or puts right what was cut short, needs no settings and no folder for worktrees."""
        return Worktrees(self.root, Path(os.devnull))

    @cached_property
    def _branches(self) -> Branches:
        return Branches(self._trees)

    def last_report(self, ref: SessionRef) -> Report | None:
        """How the last run of a session ended, as far as anybody knows."""
        return last_report(self.runtime(ref)) if self.is_recorded(ref) else None

    def document(self, ref: SessionRef) -> dict[str, object]:
        """The state document of a session, as its workflow defines it."""
        return self.workflow(ref.workflow).document(self.state(ref))

    def explain(self, ref: SessionRef) -> list[Origin]:
        """Why each produced file is reused or stale."""
        return explain(self.session(ref), self.config)

    def artifacts(self, ref: SessionRef) -> list[str]:
        """Every file of a session that is state, not runtime."""
        folder, snapshot = files.safe_join(self.root, ref.folder), self.files(ref)
        there = paths.files_below(folder)
        there += [f"../{name}" for name in ref.beside if not name.startswith(".")]
        runtime = (f"{OLD_RUN}/", RECORD, ours.LOCK)
        return sorted(p for p in there if not p.startswith(runtime) and snapshot.exists(p))

    def artifact(self, ref: SessionRef, name: str | None, number: int | None = None) -> str | None:
        """The file that a person means: by its path, by a unique part of that, or the one that matters most.

        A path that is a file's own, in the session or in the repository, means that file and no other.
        """
        if name is None:
            found = self.workflow(ref.workflow).artifact(self.state(ref), number)
            if found is None and number is not None:
                raise UsageError(
                    f"{ref.name} has no round {number} to show; `{command_line('status', ref.name)}`"
                )
            return found
        whole = name.removeprefix("./").removeprefix(f"{ref.folder}/")
        there = self.artifacts(ref)
        if whole in there:
            return whole
        mark = "" if number is None else f"{self.workflow(ref.workflow).round_folder}-{number}/"
        named = [p for p in there if name in p and mark in p]
        ending = [p for p in named if p.endswith(f"/{name}")]
        match ending or named:
            case [path]:
                return path
            case []:
                raise UsageError(
                    f"{ref.name} has no file {name!r}; `{command_line('show', ref.name)}` lists them"
                )
            case several:
                raise UsageError(f"{name!r} may be any of: {', '.join(several[:10])}; say more of it")

    def doctor(self, *, repair: bool = False) -> list[tuple[str, Problem]]:
        """What is wrong, each with its session; with `repair`, after repairing what can be repaired.

        In a foreign session nothing is repaired before it is adopted.
        """
        found: list[tuple[str, Problem]] = [("", p) for p in self._cut_moves(repair=repair)]
        found += [("", p) for p in self._left_runtimes(repair=repair)]
        for name in self.workflow_names():
            refs = {ref.name: ref for ref in self.sessions(name)} if repair else {}
            repairs = partial(self._may_repair, refs) if repair else _repairs_nothing
            found += self.workflow(name).doctor(str(self.root), repair=repairs)
        found += [
            (ref.name, problem)
            for ref, summary in self.survey()
            if summary.status is Status.DAMAGED
            for problem in self._damaged(ref, repair=repair)
        ]
        known = {(s, p.rule, p.file) for s, p in found}
        for ref, summary in self.survey():
            for problem in summary.problems:
                if (ref.name, problem.rule, problem.file) not in known:
                    found.append((ref.name, problem))
        return found

    def _damaged(self, ref: SessionRef, *, repair: bool) -> list[Problem]:
        """The documents of a session that its last run left whole, and that cannot be read now."""
        if not self.is_known(ref):
            return []
        good = kept.last_good(self.runtime(ref), files.safe_join(self.root, ref.folder), ref.beside)
        found = list(kept.damaged(good, repair=False))
        if not found or not repair:
            return found
        with self.hold(ref):
            return list(kept.damaged(good, repair=True))

    def _may_repair(self, refs: Mapping[str, SessionRef], name: str) -> bool:
        """Whether what is wrong with a session may be repaired: it is the person's, or gone."""
        try:
            if name in refs:
                self.require_known(refs[name])
        except NeedsConsent:
            return False
        return True

    def _left_runtimes(self, *, repair: bool) -> list[Problem]:
        """Runtimes of sessions whose folders are gone."""
        found = []
        for left in self._known.left(now()):
            words = f"the runtime of {left.session}, whose folder is gone, was not used for {left.days} days"
            if repair:
                left.remove()
            mends = "" if repair else f"`{command_line('doctor', '--repair')}` removes it"
            found.append(Problem("runtime-left", str(left.run), words, mends, repaired=repair))
        return found

    def _cut_moves(self, *, repair: bool) -> list[Problem]:
        """Checkouts in which git was killed while it moved a branch for us."""
        rule, words = "cut-move", "git was cut off while it updated the files here"
        cut = [str(folder) for folder in cut_short(self._trees)]
        if not repair or not cut:
            mends = f"`{command_line('doctor', '--repair')}` puts them right; what you wrote since stays"
            return [Problem(rule, folder, words, mends) for folder in cut]
        try:
            done = {str(one.folder): one.words for one in restore(self._trees)}
        except RondelError as e:
            return [Problem(rule, folder, f"{words}: {e}") for folder in cut]
        return [
            Problem(rule, folder, done.get(folder, "the lock of the index is gone"), repaired=True)
            for folder in cut
        ]

    def _copy(self, ref: SessionRef) -> Problem | None:
        """That another session has the same id; None where none has."""
        own = identity_of(self.files(ref).json(IDENTITY))
        if own is None:
            return None
        known = (
            (other, identity_of(self.files(other).json(IDENTITY))) for other in self.sessions(ref.workflow)
        )
        same = [other for other, there in known if there and there.id == own.id]
        if self.is_recorded(ref) and not self._says_yes():  # a foreign copy stops nobody's own session
            same = [other for other in same if self.is_recorded(other)]
        return _same_id(ref, same)

    def waiting(self, ref: SessionRef) -> list[Decide]:
        """The questions a person must answer now."""
        flow = self.workflow(ref.workflow)
        return [a for a in flow.plan(self.state(ref)) if isinstance(a, Decide)]

    def details(self, ref: SessionRef) -> Sequence[str]:
        """Where a session is, in its workflow's own words."""
        return self.workflow(ref.workflow).details(self.state(ref), now())

    def heartbeat(self, ref: SessionRef) -> dict[str, object]:
        """What the driver of a session last said: who works, since when."""
        found = parse_json(ours.view(self.runtime(ref) / HEARTBEAT)) if self.is_recorded(ref) else None
        return found if isinstance(found, dict) else {}

    def spent(self, ref: SessionRef) -> Usage:
        """What a session cost so far, as its driver last said."""
        return usage_of(self.heartbeat(ref).get("usage")) or NO_USAGE

    # -- a person's changes ---------------------------------------------------------------

    def change(
        self, ref: SessionRef, changes: Sequence[Change], seen: Mapping[str, str | None] | None = None
    ) -> None:
        """Carry out changes for a person, also while a driver runs.

        `seen` names files that the changes rest on, by digest: one that is still so is replaced,
        and kept aside where somebody else wrote it.
        """
        self.require_known(ref)
        session = self.session(ref)
        wrote, kept = session.apply_changes(changes, seen or {}, None)
        if changes:
            session.note("changed", {"files": wrote})
        for one in kept:
            session.note("kept", {"file": one.file, "aside": one.aside, "why": one.why})
        ours.remove(session.run / REPORT)  # it may wait for something else now

    def begin(self, ref: SessionRef, lease: Lease | None = None, *, new: bool = False) -> Identity:
        """Give a session an identity, and record the branch it was begun on; a `new` one is begun here."""
        if new:
            self._known.home(make=True)
        else:
            self.require_known(ref)
        return self.session(ref).begin(self.look, lease, new=new)

    def check_branch(self, ref: SessionRef) -> None:
        """GitError where a session's branch does not hold what counts as done: nobody completes that."""
        if (loss := self._loss(ref, self.state(ref), self.files(ref))) is not None:
            raise GitError(loss.words, then=loss.next)

    def see_branch(self, ref: SessionRef) -> list[str]:
        """See that a session's branch holds what counts as done; gives what had to be put right."""
        self.require_known(ref)
        session, said = self.session(ref), list[str]()
        session.begin(self.look)
        asyncio.run(see_branch(session, self.workspaces(), lambda _, f: said.append(str(f["message"]))))
        return said

    def own_branch(self, ref: SessionRef) -> str | None:
        """Another name for a new session's branch, where a branch of that name holds somebody else's work."""
        wanted = self.workflow(ref.workflow).target(self.state(ref))
        found = own_branch(self.look, wanted) if wanted else wanted
        return found if found != wanted else None

    def move_onto(self, ref: SessionRef, branch: str, lease: Lease) -> list[str]:
        """Let a session's work go to another branch from now on; gives what that branch lacks of it."""
        lacking = move_onto(self.session(ref), branch, self.look, lease, self._branches)
        self.workspaces().accept(self.session(ref).begin(self.look, lease).id, branch)
        return lacking

    def hold(self, ref: SessionRef) -> Lease:
        """The right to say what a session is for and to drive it; Held when another process has it.

        Whatever a command changes before it drives, it changes with this in hand: a command
        that is refused has then changed nothing, and the driver at work keeps to what it was
        started for.
        """
        self.require_known(ref)
        session = self.session(ref)
        session.check_version()
        if copy := self._copy(ref):
            raise RondelError(copy.message)
        lease = Lease.take(session.run, ref.name, folder=session.folder, command=_command())
        if restored := self._put_back.pop(ref, ()):
            ours.note(session.folder, restored)
        return lease

    def ask_for(self, ref: SessionRef, request: Mapping[str, object], lease: Lease | None = None) -> str:
        """Write what a person asked for, before anything else, so that resuming needs no arguments."""
        with nullcontext(lease) if lease else self.hold(ref) as held:
            numbers = [int(n[8:-5]) for n in self.files(ref).names(".rondel") if _is_request(n)]
            path = f".rondel/request-{max(numbers, default=0) + 1}.json"
            body = {"schema_version": SCHEMA_VERSION, "at": stamp(now()), **request}
            held.check()
            self.change(ref, [text(path, json.dumps(body, indent=2, ensure_ascii=False))])
        return path

    def _one_at_a_time(self, ref: SessionRef) -> AbstractContextManager[None]:
        """What one person sees and then writes, nobody else has written in between."""
        return locked(ours.own(files.safe_join(self.root, ref.folder) / ours.HOME, is_folder=True))

    def decide(
        self, ref: SessionRef, answer: str, *, path: str | None = None, comment: str = "", by: str = "person"
    ) -> Decide:
        """Answer what a session waits for. Of several who answer the same question, one does."""
        self.require_known(ref)
        with self._one_at_a_time(ref):
            return self._decide(ref, answer, path, comment, by)

    def _decide(self, ref: SessionRef, answer: str, path: str | None, comment: str, by: str) -> Decide:
        question = answered(ref, self.waiting(ref), answer, path)
        shown = self.files(ref)
        decided = {path: shown.digest(path) for path in question.inputs}
        said = {"answer": answer, "by": by, "at": stamp(now()), "comment": comment}
        body = {**said, "question": question.question, DECIDED: decided}
        self.change(ref, [text(question.path, json.dumps(body, indent=2, ensure_ascii=False))])
        self.session(ref).note("decision", {"action": question.path, "answer": answer, "by": by})
        return question

    def control(self, ref: SessionRef, word: str) -> bool:
        """Pause or stop from another terminal; whether a driver is there to hear it."""
        self.require_known(ref)
        folder = files.safe_join(self.root, ref.folder)
        self.session(ref).check_version()
        control.leave(folder, control.Word(word))
        flow = self.workflow(ref.workflow)
        self.change(ref, flow.control(self.state(ref), word, now()))
        return holder(self.runtime(ref), folder) is not None

    def goes_on(self, ref: SessionRef) -> bool:
        """Whether a driver works on a session and will take in what was just changed.

        One that was about to end has ended by the time this says no.
        """
        run, folder = self.runtime(ref), files.safe_join(self.root, ref.folder)
        end = time.monotonic() + ENDING_S
        while holder(run, folder) is not None:
            if time.monotonic() > end:
                return True
            time.sleep(0.05)
        return False

    # -- running ------------------------------------------------------------------------

    def drive(
        self,
        ref: SessionRef,
        *,
        view: View | None = None,
        agents_max: int | None = None,
        wait: bool = False,
        redo: bool = False,
        retry: bool = False,
        unpark: bool = False,
        say: Callable[[str], None] = lambda _: None,
        lease: Lease | None = None,
    ) -> Report:
        """Go on with a session until nothing more can be done now; a lease that is given is released then."""
        self.require_known(ref)
        self.settings_for(ref.workflow, self.workflow(ref.workflow).judges(self.state(ref)))
        for name in self._judged_otherwise():
            say(f"{name} is changed by what is reviewed: its settings count as they are at the change's base")
        self.require_consent(ref.workflow, ref)
        session = self.session(ref)
        limits = self.config.limits
        if agents_max is not None:
            limits = limits.model_copy(update={"agents_max": agents_max})
        wish = RunOptions(wait=wait, redo=redo, retry=retry, unpark=unpark, say=say)
        with lease or self.hold(ref) as held, closing(self.ask):
            return run(session, self._tools, limits, wish, held, view)

    def workspaces(self) -> Workspaces:
        """Where agents work in this repository."""
        return Workspaces(self.root, self._own_work_folder, box=self.box)

    @property
    def sandbox_mode(self) -> str:
        """Whether programs are confined: as the person's settings or their environment say."""
        return sandbox_mode(self.config.sandbox.mode, os.environ.get(SANDBOX_VARIABLE))

    def unconfined(self) -> str:
        """Why nothing is confined here though nobody asked for that; said once per repository, then empty."""
        if self.sandbox_mode != "auto" or holds():
            return ""
        return held("auto") if consents.once(self.root, "no-sandbox") else ""

    @cached_property
    def box(self) -> Box | None:
        """What everything that runs here may reach; None where nothing is confined."""
        mode = self.sandbox_mode
        network = self.config.sandbox.network
        if mode == "none" or not holds(required=mode == "required", network=network):
            return None
        common = self._trees.common
        return Box(
            read=(*map(_own_path, self.config.sandbox.read), *self._git_settings()),
            write=tuple(map(_own_path, self.config.sandbox.write)),
            objects=tuple(object_folders(common)),
            hidden=(str(self.root), str(common), str(self._work_folder), *own_places()),
            cache=str(self._own_work_folder / "cache"),
            network=network,
            hosts=named(self.config.sandbox.hosts),
        )

    def _git_settings(self) -> list[str]:
        """The files of the person's own git settings: git does not work where it cannot read one of them."""
        words = ("config", "--global", "--includes", "--list", "--show-origin", "--name-only", "-z")
        fields = self.look.git(*words, check=False).split("\0")[::2]
        named = {f.removeprefix("file:") for f in fields if f.startswith("file:")}
        return sorted(str(path) for f in named if (path := Path(f).expanduser()).is_absolute())

    @property
    def _own_work_folder(self) -> Path:
        return self._work_folder / f"{self.root.name}-{digest(str(self.root))[:8]}"

    @property
    def _work_folder(self) -> Path:
        root = self.config.workspaces.root
        own = Path(root).expanduser() if root else Path(platformdirs.user_cache_dir("rondel")) / "workspaces"
        return own.resolve()

    def _tools(self) -> Tools:
        places = (self._work_folder, Path(tempfile.gettempdir()))
        return Tools(
            self.config,
            self.look,
            LocalExecutor(now),
            self.workspaces(),
            now,
            self._build,
            places,
            self._changed,
            self._replaced,
            self._scripts,
            self.box,
        )

    def _changed(self, agent: AgentSettings) -> str:
        """What is not as it was when the settings were read: a file of an agent, or the consent to it."""
        if isinstance(self.consents.parts, Everything):  # yes to whatever it is, in this process
            return ""
        admitted, shows = self.config.admitted, command_line("trust")
        counting = [part for part in admitted.parts if part not in admitted.left_out]
        for part in (part for part in counting if part.name == key_name(("agents", agent.name))):
            if part.digest not in self._consents_now().parts:
                return f"your yes to {part.name} was taken back while this ran; `{shows}` shows it"
            for path, before in part.files:
                found = consents.lookup(self.root, path)
                if found is None or found.digest != before:
                    return f"{path} of {part.name} has changed while this ran; `{shows}` shows it"
        return ""

    def _replaced(self, agent: AgentSettings, cwd: Path) -> str:
        """What of an agent's program a working copy brings that nobody consented to, in words.

        What the command runs from beside its settings is not looked for there. Every other file that the
        consent to it covers is as it was consented to; and what decides what a command runs is not what the
        change under review made of it.
        """
        if agent.kind == "command":
            words, scripts = pinned(agent.command, agent.beside)
        else:
            first, scripts = pinned_words(agent.command[:1], agent.beside)
            words = (*first, *agent.command[1:])
        pins = {str(place.relative_to(self.root)) for place in scripts if place.is_relative_to(self.root)}
        covered = {} if isinstance(self.consents.parts, Everything) else self._covered(agent)
        for path, before in covered.items():
            found = consents.lookup(cwd, path) if path not in pins else None
            if found is not None and found.digest != before:
                return _not_asked(agent, f"{path} is not as you consented to it")
        for path in run_in(words, cwd):
            if path not in covered and self._change and touches(self._change, path, cwd, self.look):
                return _not_asked(agent, f"the change under review brings its own {path}, which would be run")
        return ""

    def _scripts(self, agent: AgentSettings) -> tuple[str, ...]:
        """The scripts among the files that the consent to an agent covers, and what git tracks beside them.

        A working copy shows the latter to everybody; what is not tracked there may be a secret.
        """
        scripts = [path for path, sha in self._covered(agent).items() if is_script(path, sha)]
        if not scripts:
            return ()
        folders = {path.rpartition("/")[0] for path in scripts}
        specs = sorted(f":(top,literal){folder}" if folder else ":(top,glob)*" for folder in folders)
        listed = self.look.git("ls-files", "-z", "--", *specs, check=False).split("\0")
        beside = [path for path in listed if path and path.rpartition("/")[0] in folders][:BESIDE_MAX]
        return by_no_link((self.root / path for path in dict.fromkeys((*scripts, *beside))), self.root)

    def _covered(self, agent: AgentSettings) -> dict[str, str]:
        """The files of the repository that the person's consent to an agent covers, with their digests."""
        admitted, name = self.config.admitted, key_name(("agents", agent.name))
        counting = [part for part in admitted.parts if part not in admitted.left_out]
        return dict(file for part in counting if part.name == name for file in part.files)


def _not_asked(agent: AgentSettings, why: str) -> str:
    """What a person reads where a working copy would choose an agent's program."""
    return (
        f"agents.{agent.name} is not asked: in the working copy {why}. Name its program by its whole "
        "path, or by one beside the settings; or look at that file, check it out, and say yes to it "
        f"(`{command_line('trust')}`)"
    )


def _repairs_nothing(_session: str) -> bool:
    return False


def brought_git(name: str, keys: Mapping[str, str]) -> Brought:
    """A part of the repository's git configuration, as the person consents to it."""
    return Brought(name, "\n".join(f"{key} = {_one_line(value)}" for key, value in sorted(keys.items())))


def _one_line(value: str) -> str:
    return value if value.isprintable() else json.dumps(value)


def _own_path(path: str) -> str:
    """A path of the person's settings; `~` is their home folder."""
    return str(Path(path).expanduser())


def _require_person() -> None:
    """NeedsConsent where what asks was started by a driver: an agent does not say yes for the person."""
    if os.environ.get(reaper.MARK):
        raise NeedsConsent(
            "this was typed by something that Rondel started; only you can say yes, at a terminal"
        )


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


def answered(ref: SessionRef, questions: Sequence[Decide], answer: str, path: str | None) -> Decide:
    """The question, of those that a session waits for, which this answers; UsageError when none is."""
    due = [d for d in questions if path is None or d.path == path]
    if not due:
        raise UsageError(f"{ref.name} waits for no decision now; see `{command_line('status', ref.name)}`")
    if len(due) > 1:
        there = ", ".join(d.path for d in due)
        raise UsageError(f"{ref.name} waits for several decisions; name one with --on: {there}")
    question = due[0]
    if answer not in question.options:
        raise UsageError(
            f"{answer!r} is no answer to {question.path}; allowed: {', '.join(question.options)}"
        )
    return question


def _command() -> str:
    """What the person typed, for whoever finds the session held."""
    return " ".join(sys.argv[:3])


def _with_loss(found: Summary, loss: Loss | None) -> Summary:
    """What its branch does not hold any more, and what leads on from there."""
    if loss is None:
        return found
    return replace(found, problems=(*found.problems, loss.problem), next=loss.next)


def _with_report(found: Summary, report: Report | None) -> Summary:
    """What the last run said it could not go on without."""
    if report is None or found.waiting_for:
        return found
    if report.stopped is Stopped.FAILED:
        return replace(found, status=Status.FAILED, waiting_for=report.message)
    if report.stopped in (Stopped.WAITING, Stopped.PARKED, Stopped.LIMIT, Stopped.MACHINE):
        return replace(found, status=Status.WAITING, waiting_for=report.message)
    return found


def _as_foreign(ref: SessionRef, found: Summary) -> Summary:
    """A session that was not begun here: shown as it is, and nothing goes on before it is adopted."""
    adopts = command_line("adopt", ref.name)
    foreign = Problem(
        FOREIGN_SESSION,
        IDENTITY,
        "it is foreign: not begun or adopted here, so nothing goes on with it and nothing of it counts",
        f"`{adopts}` lists what it says is done and decided, and makes it yours",
    )
    then = found.next if found.status in (Status.COMPLETED, Status.CANCELLED) else adopts
    return replace(found, problems=(foreign, *found.problems), next=then)


def _with_problem(found: Summary, problem: Problem | None) -> Summary:
    return replace(found, problems=(*found.problems, problem)) if problem else found


def _same_id(ref: SessionRef, refs: Iterable[SessionRef]) -> Problem | None:
    """That a session shares its id with another one of `refs`, since one is a copy of the other.

    Both would find the same commits as their own. Which one is the copy only a person knows.
    """
    other = next((other for other in refs if other.folder != ref.folder), None)
    if other is None:
        return None
    return Problem(
        "same-id",
        IDENTITY,
        f"{ref.folder} and {other.folder} have the same id, so one is a copy of the other, and both would "
        f"claim the same commits; `rm COPY/{IDENTITY}`, with the copy's folder for COPY, makes it a "
        "session of its own",
    )


def _pick(refs: Iterable[SessionRef], name: str) -> SessionRef:
    found = list(refs)
    for match in (
        [r for r in found if name in (r.name, r.id)],
        [r for r in found if r.id.startswith(f"{name}-") or r.id.endswith(f"-{name}")],
        [r for r in found if name in r.name],
        # As a terminal shows a name whose letters it does not have.
        [r for r in found if "?" in name and fnmatchcase(r.name, f"*{name}*")],
    ):
        if len(match) == 1:
            return match[0]
        if match:
            raise UsageError(f"{name!r} may be any of: {', '.join(r.name for r in match)}; say more of it")
    there = ", ".join(r.name for r in found[:10]) or "none"
    raise UsageError(f"no session {name!r}; there are: {there}")


def _is_request(name: str) -> bool:
    return name.startswith("request-") and name.endswith(".json") and name[8:-5].isdigit()
