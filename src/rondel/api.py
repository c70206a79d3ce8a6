"""THE HALL: open, start, run, decide, watch. Every door goes through it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import platformdirs

from rondel import config as settings
from rondel.agents import reaper, roster
from rondel.agents.base import Agent
from rondel.agents.branches import Branches
from rondel.agents.restore import cut_short, restore
from rondel.agents.settings import AgentSettings
from rondel.agents.workspaces import Workspaces
from rondel.agents.worktrees import Worktrees
from rondel.engine import control
from rondel.engine.branch import Loss, loss_of, see_branch
from rondel.engine.driver import View
from rondel.engine.executor import LocalExecutor
from rondel.engine.explain import Origin, explain
from rondel.engine.ledger import usage_of
from rondel.engine.look import RepositoryLook
from rondel.engine.lost import lost
from rondel.engine.notes import HEARTBEAT
from rondel.engine.onto import move_onto, own_branch
from rondel.engine.perform import Tools
from rondel.engine.report import REPORT, Report, Stopped, last_report
from rondel.engine.run import Wish, run
from rondel.engine.session import Session, newer_documents, restored
from rondel.errors import ConfigError, GitError, MachineTrouble, NeedsConsent, RondelError, UsageError
from rondel.model.actions import Decide
from rondel.model.changes import Change, text
from rondel.model.commands import command_line
from rondel.model.consent import Brought, Everything
from rondel.model.digests import digest
from rondel.model.identity import IDENTITY, Identity, identity_of
from rondel.model.outcomes import NO_USAGE, Usage
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem, Status, Summary
from rondel.model.times import stamp
from rondel.model.workflow import NOTHING_GIVEN, Given, SessionRef, Workflow
from rondel.store import files, ours
from rondel.store.lease import Lease, holder
from rondel.store.locks import locked
from rondel.store.ours import RUN
from rondel.store.snapshot import DiskSnapshot
from rondel.trust import consents
from rondel.trust.parts import Part, brought_part

SCHEMA_VERSION = 1
ENDING_S = 2.0  # longer than a driver holds a session after it looked for the last time
AnyWorkflow = Workflow[Any]


def now() -> datetime:
    """The clock of every run."""
    return datetime.now(UTC)


@cache
def installed_workflows() -> dict[str, metadata.EntryPoint]:
    """Every workflow that is installed, by name; nothing is imported yet."""
    return {e.name: e for e in metadata.entry_points(group="rondel.workflows")}


class Hall:
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
        self.root = root
        self._given = workflows
        self._build = build
        self._loaded: dict[str, AnyWorkflow] = dict(workflows or {})
        self._givens: dict[str, Given] = {}
        self._trust = trust
        self.look = RepositoryLook(root, now, self.admits)
        self.asked = set[str]()  # digests of what the person was asked about in this process

    @classmethod
    def open(cls, cwd: Path) -> Hall:
        """The hall of the repository that `cwd` is in."""
        for folder in (cwd, *cwd.parents):
            if (folder / ".git").is_file() or (folder / ".git/HEAD").exists():
                return cls(folder)
        raise RondelError(f"{cwd} is not in a git repository; run `git init` there first")

    # -- what there is ------------------------------------------------------------------

    @cached_property
    def config(self) -> settings.Config:
        """The settings of this repository, checked."""
        names = frozenset(self.workflow_names())
        return settings.load(
            self.root,
            workflows=names,
            kinds=frozenset(roster.kinds()),
            detected=tuple(roster.detect()),
            defaults=lambda name: self.workflow(name).settings(),
            consents=self.consents.parts,
        )

    # -- consent ------------------------------------------------------------------------

    @cached_property
    def consents(self) -> consents.Consents:
        """What the person consented to in this repository."""
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
        for name in [workflow] if workflow else self.workflow_names():
            flow, state = self.workflow(name), self.state(ref) if ref else None
            parts += [self.part_of(one) for one in flow.brings(state, self.given(name), self.look)]
        return list({part.digest: part for part in parts}.values())

    def lacks_consent(self, workflow: str | None = None, ref: SessionRef | None = None) -> list[Part]:
        """What of that the person did not consent to."""
        return [part for part in self.brought(workflow, ref) if part.digest not in self.consents.parts]

    def needs_consent(self, workflow: str, ref: SessionRef | None = None) -> list[Part]:
        """What a run cannot do without: its agents, and, where it edits, set-up and tests."""
        flow, state = self.workflow(workflow), self.state(ref) if ref else None
        edits = flow.changes_code(state)
        settings = {p.digest: p for p in self.config.admitted.left_out}
        return [
            part
            for part in self.lacks_consent(workflow, ref)
            if part.digest not in settings or _is_needed(part, workflow, edits, flow.goes_without)
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
        """As it is now: another terminal may allow a command while a driver runs."""
        return consents.read(self.root, self._trust or os.environ.get(consents.VARIABLE)).commands

    def workflow_names(self) -> list[str]:
        """The workflows, the shipped ones first."""
        if self._given is not None:
            return list(self._given)
        order = ["review", "feature", "cycle", "task", "generate"]
        found = installed_workflows()
        return sorted(found, key=lambda n: (order.index(n) if n in order else len(order), n))

    def workflow(self, name: str) -> AnyWorkflow:
        """A workflow by name."""
        if name not in self._loaded:
            found = installed_workflows()
            if name not in found:
                raise UsageError(f"no workflow {name!r}; there are: {', '.join(self.workflow_names())}")
            self._loaded[name] = found[name].load()()
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
        )

    def sessions(self, workflow: str | None = None) -> list[SessionRef]:
        """The sessions of one workflow, or of all."""
        repo = DiskSnapshot(self.root)
        names = [workflow] if workflow else self.workflow_names()
        return [ref for name in names for ref in self.workflow(name).sessions(repo)]

    def find(self, name: str | None, workflow: str | None = None, *, looking: bool = False) -> SessionRef:
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
        return Session(self.root, ref, self.workflow(ref.workflow), self.given(ref.workflow))

    def files(self, ref: SessionRef) -> Snapshot:
        """The files of a session."""
        return DiskSnapshot(files.safe_join(self.root, ref.folder), ref.beside)

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
        return self._summary(ref, self.files(ref))

    def status(self, ref: SessionRef) -> Summary:
        """Like `summary`, with what is seen only beside the other sessions: that one is a copy."""
        return _with_problem(self.summary(ref), self._copy(ref))

    def _summary(self, ref: SessionRef, snapshot: Snapshot) -> Summary:
        flow = self.workflow(ref.workflow)
        state = flow.read(snapshot, ref, self.given(ref.workflow))
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
        if "run/" in there:
            found = replace(found, problems=(*found.problems, *restored(snapshot)))
        run = f"{self.root}/{ref.folder}/{RUN}"
        if "run/" in there and holder(run) is not None:
            problems = tuple(p for p in found.problems if not p.when_idle)
            return replace(found, status=Status.RUNNING, problems=problems)
        if found.status not in (Status.DAMAGED, Status.CANCELLED):
            found = _with_loss(found, self._loss(ref, state, snapshot))
        if found.status not in (Status.ACTIVE, Status.WAITING):
            return found
        if "control" in there:
            return replace(found, status=Status.PAUSED)
        return _with_report(found, last_report(snapshot)) if "run/" in there else found

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
        return last_report(self.files(ref))

    def document(self, ref: SessionRef) -> dict[str, object]:
        """The state document of a session, as its workflow defines it."""
        return self.workflow(ref.workflow).document(self.state(ref))

    def explain(self, ref: SessionRef) -> list[Origin]:
        """Why each produced file is reused or stale."""
        return explain(self.session(ref), self.config)

    def artifacts(self, ref: SessionRef) -> list[str]:
        """Every file of a session that is state, not runtime."""
        folder, snapshot = files.safe_join(self.root, ref.folder), self.files(ref)
        found = (Path(here, name) for here, _, names in os.walk(folder) for name in names)
        paths = [path.relative_to(folder).as_posix() for path in found]
        paths += [f"../{name}" for name in ref.beside if not name.startswith(".")]
        return sorted(p for p in paths if not p.startswith(f"{RUN}/") and snapshot.exists(p))

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
        marks = ("",) if number is None else (f"round-{number}/", f"iteration-{number}/")
        named = [p for p in there if name in p and any(m in p for m in marks)]
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
        """What is wrong, each with its session; with `repair`, after mending what can be mended."""
        found: list[tuple[str, Problem]] = [("", p) for p in self._cut_moves(repair=repair)]
        for name in self.workflow_names():
            found += self.workflow(name).doctor(str(self.root), repair=repair)
        known = {(s, p.rule, p.file) for s, p in found}
        for ref, summary in self.survey():
            for problem in summary.problems:
                if (ref.name, problem.rule, problem.file) not in known:
                    found.append((ref.name, problem))
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
        return _same_id(ref, [other for other, there in known if there and there.id == own.id])

    def waiting(self, ref: SessionRef) -> list[Decide]:
        """The questions a person must answer now."""
        flow = self.workflow(ref.workflow)
        return [a for a in flow.plan(self.state(ref)) if isinstance(a, Decide)]

    def details(self, ref: SessionRef) -> Sequence[str]:
        """Where a session is, in its workflow's own words."""
        return self.workflow(ref.workflow).details(self.state(ref), now())

    def heartbeat(self, ref: SessionRef) -> dict[str, object]:
        """What the driver of a session last said: who works, since when."""
        found = self.files(ref).json(f"{RUN}/{HEARTBEAT}")
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
        session = self.session(ref)
        wrote, kept = session.carry_out(changes, seen or {}, None)
        if changes:
            session.note("changed", {"files": wrote})
        for one in kept:
            session.note("kept", {"file": one.file, "aside": one.aside, "why": one.why})
        ours.remove(session.run / REPORT)  # it may wait for something else now

    def begin(self, ref: SessionRef, lease: Lease | None = None, *, new: bool = False) -> Identity:
        """Give a session an identity, and record the branch it was begun on; a `new` one is begun here."""
        return self.session(ref).begin(self.look, lease, new=new)

    def check_branch(self, ref: SessionRef) -> None:
        """GitError where a session's branch does not hold what counts as done: nobody completes that."""
        if (loss := self._loss(ref, self.state(ref), self.files(ref))) is not None:
            raise GitError(loss.words, then=loss.next)

    def see_branch(self, ref: SessionRef) -> list[str]:
        """See that a session's branch holds what counts as done; gives what had to be put right."""
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
        session = self.session(ref)
        session.check_version()
        if copy := self._copy(ref):
            raise RondelError(copy.message)
        return Lease.take(session.run, ref.name, command=_command())

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
        with self._one_at_a_time(ref):
            return self._decide(ref, answer, path, comment, by)

    def _decide(self, ref: SessionRef, answer: str, path: str | None, comment: str, by: str) -> Decide:
        question = answered(ref, self.waiting(ref), answer, path)
        body = {"answer": answer, "by": by, "at": stamp(now()), "comment": comment}
        self.change(ref, [text(question.path, json.dumps(body, indent=2, ensure_ascii=False))])
        self.session(ref).note("decision", {"action": question.path, "answer": answer, "by": by})
        return question

    def control(self, ref: SessionRef, word: str) -> bool:
        """Pause or stop from another terminal; whether a driver is there to hear it."""
        folder = files.safe_join(self.root, ref.folder)
        self.session(ref).check_version()
        control.leave(folder, control.Word(word))
        flow = self.workflow(ref.workflow)
        self.change(ref, flow.control(self.state(ref), word, now()))
        return holder(folder / RUN) is not None

    def goes_on(self, ref: SessionRef) -> bool:
        """Whether a driver works on a session and will take in what was just changed.

        One that was about to end has ended by the time this says no.
        """
        run = files.safe_join(self.root, ref.folder) / RUN
        end = time.monotonic() + ENDING_S
        while holder(run) is not None:
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
        self.require_consent(ref.workflow, ref)
        session = self.session(ref)
        limits = self.config.limits
        if agents_max is not None:
            limits = limits.model_copy(update={"agents_max": agents_max})
        wish = Wish(wait=wait, redo=redo, retry=retry, unpark=unpark, say=say)
        with lease or self.hold(ref) as held:
            return run(session, self._tools, limits, wish, held, view)

    def workspaces(self) -> Workspaces:
        """Where agents work in this repository."""
        return Workspaces(self.root, self._work_folder / f"{self.root.name}-{digest(str(self.root))[:8]}")

    @property
    def _work_folder(self) -> Path:
        root = self.config.workspaces.root
        return Path(root).expanduser() if root else Path(platformdirs.user_cache_dir("rondel")) / "workspaces"

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
        )

    def _changed(self, agent: AgentSettings) -> str:
        """Which file of an agent is not what it was when the settings were read; empty where none is."""
        if isinstance(self.consents.parts, Everything):  # yes to whatever it is, in this process
            return ""
        for part in self.config.admitted.parts:
            for path, before in part.files if part.name == f"agents.{agent.name}" else ():
                found = consents.lookup(self.root, path)
                if found is None or found.digest != before:
                    shows = command_line("trust")
                    return f"{path} of {part.name} has changed while this ran; `{shows}` shows it"
        return ""


def _require_person() -> None:
    """NeedsConsent where what asks was started by a driver: an agent does not say yes for the person."""
    if os.environ.get(reaper.MARK):
        raise NeedsConsent(
            "this was typed by something that Rondel started; only you can say yes, at a terminal"
        )


def _is_needed(part: Part, workflow: str, edits: bool, goes_without: bool) -> bool:
    """Whether a run of a workflow cannot do without a part of the settings."""
    if part.name.startswith("roles."):
        first = part.name.split(".")[1]
        return first in ("default", workflow) and not goes_without
    return part.name.startswith("project.") and edits


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


def _with_problem(found: Summary, problem: Problem | None) -> Summary:
    return replace(found, problems=(*found.problems, problem)) if problem else found


def _same_id(ref: SessionRef, refs: Iterable[SessionRef]) -> Problem | None:
    """That a session shares its id with another one of `refs`, since one is a copy of the other.

    Both would find the same commits as their own. Which one is the copy only a person knows.
    """
    other = next((other for other in refs if other.folder != ref.folder), None)
    if other is None:
        return None
    made = " ".join(f"COPY/{path}" for path in (IDENTITY, RUN))
    return Problem(
        "same-id",
        IDENTITY,
        f"{ref.folder} and {other.folder} have the same id, so one is a copy of the other, and both would "
        f"claim the same commits; `rm -r {made}`, with the copy's folder for COPY, makes it a session of "
        "its own",
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
