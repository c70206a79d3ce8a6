"""PROJECT: one repository and its sessions. Programs use it as commands do.

    from rondel import Project

    project = Project.find()
    started = project.start("review", target="main...topic")
    report = project.run(started)

What it gives are values: `SessionRef`, `Summary`, `Report`, the events of `watch`. Its parts are
`trust` (what the repository brings, and the person's word on it), `views` (what sessions show) and
`running` (where programs run, and what holds them).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from rondel.agents import roster
from rondel.agents.base import Agent, AgentSettings
from rondel.agents.workers import Workers
from rondel.config import Config
from rondel.engine import control
from rondel.engine.adoption import adopt, claims
from rondel.engine.driver import View as View
from rondel.engine.ledger import Ledger as Ledger
from rondel.engine.notes import RunningAction as RunningAction
from rondel.engine.report import REPORT
from rondel.engine.report import Report as Report
from rondel.engine.report import Stopped as Stopped
from rondel.engine.run import RunOptions, run
from rondel.engine.session import Session, new_identity
from rondel.errors import NeedsConsent, RondelError, UsageError
from rondel.installed import AnyWorkflow
from rondel.model.actions import Decide
from rondel.model.changes import Change, text
from rondel.model.decisions import DECIDED, answered
from rondel.model.identity import Identity
from rondel.model.outcomes import Usage
from rondel.model.outcomes import usage_json as usage_json
from rondel.model.snapshot import Snapshot
from rondel.model.summary import Problem, Summary, command_line
from rondel.model.times import stamp
from rondel.model.workflow import Given, SessionRef, Started
from rondel.processes.runner import printable as printable
from rondel.project import watching
from rondel.project.repository import Repository, now
from rondel.project.running import Running
from rondel.project.trust import Trust, brought_git, require_person
from rondel.project.views import Views
from rondel.project.watching import ActionFinished as ActionFinished
from rondel.project.watching import ActionStarted as ActionStarted
from rondel.project.watching import Event as Event
from rondel.project.watching import Heartbeat as Heartbeat
from rondel.project.watching import Noted as Noted
from rondel.project.watching import RunEnded as RunEnded
from rondel.project.watching import UnderWay as UnderWay
from rondel.project.watching import Waiting as Waiting
from rondel.repo.config import ask_about
from rondel.store import files, ours
from rondel.store.lease import Lease
from rondel.store.locks import locked
from rondel.store.ours import Restored
from rondel.trust import consents
from rondel.trust.doubts import WRITTEN_MEANWHILE
from rondel.trust.parts import Part as Part
from rondel.trust.seals import REMOVED, UNSEALED, Seals
from rondel.trust.sessions import BEGUN

SCHEMA_VERSION = 1
NOT_YET = (UNSEALED, REMOVED, WRITTEN_MEANWHILE)  # the problems of what counts after another adoption
ENDING_S = 2.0  # longer than a driver holds a session after it looked for the last time
Confirm = Callable[["Project", SessionRef], bool]


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
        self._repository = repository = Repository(root, workflows, trust)
        self._same = partial(Project, workflows=workflows, build=build, trust=trust)
        self.views = Views(repository)
        self.trust = Trust(repository, self.views)
        self.running = Running(repository, self.views, build)
        self.look = repository.look  # reads the repository: git, files, programs, the clock
        self.ask = Workers(lambda: (self.running.own_work_folder / "workers", self.running.box))
        repository.ask = self.ask
        self.confirm: Confirm = lambda _project, _ref: False  # asks the person whether to adopt a session
        self._put_back: dict[SessionRef, list[Restored]] = {}  # by adopting; the run that follows says so
        if (folders := consents.git_folders(root)) is not None:
            ask_about(folders[1].resolve(), lambda *words: repository.admits(brought_git(*words)))

    @classmethod
    def find(cls, start: Path | None = None) -> Project:
        """The project of the repository around a folder: the current one, where none is given."""
        try:
            cwd = (start or Path.cwd()).absolute()
        except FileNotFoundError:
            raise RondelError("the current folder is gone; change to one that is there") from None
        for folder in (cwd, *cwd.parents):
            if (folder / ".git").is_file() or (folder / ".git/HEAD").exists():
                return cls(folder)
        raise RondelError(f"{cwd} is not in a git repository; run `git init` there first")

    def home(self, workflow: str, *, new: bool = False) -> Project:
        """Where sessions of a workflow are kept, or `new` ones belong: mostly here.

        A worktree that was made for a session has none of its own: they are in the repository around it.
        """
        root = Path(self.workflow(workflow).home(str(self.root), new=new))
        if root == self.root:
            return self
        found = self._same(root)
        found.confirm = self.confirm
        return found

    # -- settings -----------------------------------------------------------------------------

    def workflow_names(self) -> list[str]:
        """The workflows in the order that they say themselves; each of them is loaded."""
        return self._repository.workflow_names()

    def workflow(self, name: str) -> AnyWorkflow:
        """A workflow by name; UsageError names those that there are."""
        return self._repository.workflow(name)

    @property
    def config(self) -> Config:
        """The settings of this repository, checked."""
        return self._repository.config

    def settings(self, workflow: str) -> Mapping[str, object]:
        """A workflow's own settings over its defaults."""
        return self._repository.settings(workflow)

    def settings_for(self, workflow: str, change: tuple[str, str] | None) -> Mapping[str, object]:
        """The same, as they count from now on for judging a change: those of its base."""
        return self._repository.settings_for(workflow, change)

    def given(self, workflow: str) -> Given:
        """What a workflow is given besides a session's files."""
        return self._repository.given(workflow)

    def write_settings(self, content: str) -> None:
        """Leave a `rondel.toml` where there is none."""
        if (self.root / "rondel.toml").exists():
            raise UsageError("rondel.toml is there already; it stays as it is")
        files.write(self.root / "rondel.toml", content.encode())

    # -- looking ------------------------------------------------------------------------------

    def sessions(self, workflow: str | None = None) -> list[SessionRef]:
        """The sessions of one workflow, or of all."""
        return self._repository.sessions(workflow)

    def ref(
        self, name: str | None = None, workflow: str | None = None, *, looking: bool = False
    ) -> SessionRef:
        """A session by any unique part of its name; without one, the only active one.

        Who is only `looking` may mean one that is over, where none is active.
        """
        return self.views.ref(name, workflow, looking=looking)

    def summary(self, ref: SessionRef) -> Summary:
        """A session in short, with what only the outside knows: running, paused."""
        return self.views.summary(ref)

    def status(self, ref: SessionRef) -> Summary:
        """Like `summary`, with what is seen only beside the other sessions: that one is a copy."""
        return self.views.status(ref)

    def survey(self) -> list[tuple[SessionRef, Summary]]:
        """Every session of every workflow, in one look at the disk."""
        return self.views.survey()

    def state(self, ref: SessionRef) -> Any:
        """What a session's files show, as a value of its workflow's."""
        return self.views.state(ref)

    def files(self, ref: SessionRef) -> Snapshot:
        """The files of a session, without decisions that count for nothing."""
        return self.views.files(ref)

    def artifacts(self, ref: SessionRef) -> list[str]:
        """The paths of a session's files."""
        return self.views.artifacts(ref)

    def waiting(self, ref: SessionRef) -> list[Decide]:
        """The questions a person must answer now; `decide` answers one."""
        return self.views.waiting(ref)

    def runtime(self, ref: SessionRef) -> Path:
        """Where a session's lease, journal and spools are, once it runs: in the person's state folder."""
        return self.views.runtime(ref)

    def session(self, ref: SessionRef) -> Session[Any]:
        """An open session, for whoever works below this class."""
        return self.views.session(ref)

    def is_known(self, ref: SessionRef) -> bool:
        """Whether this person began or adopted a session here; every other one is foreign."""
        return self._repository.is_known(ref)

    def is_recorded(self, ref: SessionRef) -> bool:
        """The same, whatever the environment says for this process."""
        return self._repository.is_recorded(ref)

    def heartbeat(self, ref: SessionRef) -> Heartbeat:
        """What the driver of a session last said: who works, since when, what it cost."""
        return watching.heartbeat(self.runtime(ref)) if self.is_recorded(ref) else Heartbeat()

    def spent(self, ref: SessionRef) -> Usage:
        """What a session cost so far, as its driver last said."""
        return self.heartbeat(ref).usage

    def watch(
        self,
        session: SessionRef | Started,
        *,
        after: int | None = 0,
        idle_s: float = 0.0,
        seconds: float | None = None,
    ) -> Iterator[Event]:
        """The events of a session as they come, until nobody drives it and nothing is new.

        It begins behind the position `after` of the journal: at its beginning, or, with None, at its end.
        A run that is about to begin elsewhere is waited for `idle_s`. After `seconds` it ends in any case;
        else a `RunEnded` is the last event.
        """
        ref = _ref_of(session)
        watched = watching.Watched(
            run=lambda: self.runtime(ref) if self.is_recorded(ref) else None,
            is_driven=lambda: self.views.driver(ref) is not None,
            waiting=lambda: self.waiting(ref),
            end=lambda: (self.summary(ref), self.views.last_report(ref)),
        )
        return watching.follow(watched, after, idle_s, seconds)

    # -- beginning, adopting --------------------------------------------------------------------

    def start(self, workflow: str, /, **options: object) -> Started:
        """Start a session of a workflow, or take one up again; `run` goes on with it.

        The options are those of the workflow's command: the fields of its `options`. Nothing is asked
        of an agent here, so nothing needs consent but what the workflow runs to begin.
        """
        flow = self.workflow(workflow)
        given = self._repository.options(workflow, options)
        home = self.home(workflow, new=True)
        if home is not self:
            raise UsageError(f"{workflow} sessions of {self.root} are kept in {home.root}; start it there")
        return flow.start(self, given)

    def claim(self, ref: SessionRef) -> None:
        """Record that a session is begun here, before anything is in its folder."""
        self._repository.forget_places()
        identity, known = new_identity(ref.workflow, self.look), self._repository.known.of(ref)
        known.refuse_driven()
        known.record(identity, BEGUN, now(), is_open=True)

    def create(self, ref: SessionRef, changes: Sequence[Change]) -> None:
        """Begin a session here: on record first, then its folder, its id and these files.

        The last of them is the one that its workflow knows a session by: cut off before that, there is none.
        """
        self.claim(ref)
        files.make_folder(self._repository.folder(ref))
        self.begin(ref, new=True)
        self.change(ref, changes)

    def begin(self, ref: SessionRef, lease: Lease | None = None, *, new: bool = False) -> Identity:
        """Give a session an identity, and record the branch it was begun on; a `new` one is begun here."""
        if new:
            self._repository.known.home(make=True)
        else:
            self.require_known(ref)
        return self.session(ref).begin(self.look, lease, new=new)

    def require_known(self, ref: SessionRef) -> None:
        """NeedsConsent where a session is foreign, and the person does not adopt it now.

        Whatever goes on with a session, counts it, decides in it or merges it comes through here.
        """
        if self.is_recorded(ref):
            return
        if not (self._repository.says_yes() or self.confirm(self, ref)):
            raise NeedsConsent(
                f"{ref.name} is foreign: it was not begun here, and what it says is done or decided may be "
                f"anybody's; `{command_line('status', ref.name)}` shows it, and adopting it makes it yours",
                then=command_line("adopt", ref.name),
            )
        self.adopt(ref)

    def adopt(self, ref: SessionRef) -> None:
        """Make a foreign session the person's own; what it says counts from now on."""
        require_person()
        self._repository.known.home(make=True)
        session = self.session(ref)
        session.check_version()
        self._put_back[ref] = adopt(session, self.look, now())

    def claims(self, ref: SessionRef) -> list[str]:
        """What a session says is done and decided, a line each: what a person adopts."""
        workflow, is_foreign = self.workflow(ref.workflow), not self.is_recorded(ref)
        there = self.artifacts(ref)
        return claims(ref, workflow, self.state(ref), self.files(ref), there, is_foreign=is_foreign)

    def seal(self, ref: SessionRef, path: str, data: bytes) -> bytes:
        """A decision of the person's with their seal, for a session of theirs."""
        return Seals(self._repository.known.of(ref)).sealed(path, data, self._repository.files(ref))

    # -- a person's changes -----------------------------------------------------------------------

    def hold(self, ref: SessionRef) -> Lease:
        """The right to say what a session is for and to drive it; Held when another process has it.

        Whatever a command changes before it drives, it changes with this in hand: a command
        that is refused has then changed nothing, and the driver at work keeps to what it was
        started for.
        """
        self.require_known(ref)
        session = self.session(ref)
        session.check_version()
        if copy := self.views.copy(ref):
            raise RondelError(copy.message)
        command = " ".join(sys.argv[:3])  # what the person typed, for whoever finds the session held
        lease = Lease.take(session.run, ref.name, folder=session.folder, command=command)
        if restored := self._put_back.pop(ref, ()):
            ours.note(session.folder, restored)
        return lease

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

    def ask_for(self, ref: SessionRef, request: Mapping[str, object], lease: Lease | None = None) -> str:
        """Write what a person asked for, before anything else, so that resuming needs no arguments."""
        with nullcontext(lease) if lease else self.hold(ref) as held:
            numbers = [int(n[8:-5]) for n in self.files(ref).names(".rondel") if _is_request(n)]
            path = f".rondel/request-{max(numbers, default=0) + 1}.json"
            body = {"schema_version": SCHEMA_VERSION, "at": stamp(now()), **request}
            held.check()
            self.change(ref, [text(path, json.dumps(body, indent=2, ensure_ascii=False))])
        return path

    def decide(
        self, ref: SessionRef, answer: str, *, path: str | None = None, comment: str = "", by: str = "person"
    ) -> Decide:
        """Answer what a session waits for. Of several who answer the same question, one does."""
        self.require_known(ref)
        # What one person sees and then writes, nobody else has written in between.
        with locked(ours.own(self._repository.folder(ref) / ours.HOME, is_folder=True)):
            question = answered(ref.name, self.waiting(ref), answer, path)
            shown = self.files(ref)
            decided = {path: shown.digest(path) for path in question.inputs}
            said = {"answer": answer, "by": by, "at": stamp(now()), "comment": comment}
            body = {**said, "question": question.question, DECIDED: decided}
            self.change(ref, [text(question.path, json.dumps(body, indent=2, ensure_ascii=False))])
            self.session(ref).note("decision", {"action": question.path, "answer": answer, "by": by})
        return question

    def pause(self, ref: SessionRef) -> bool:
        """Start nothing new in a session, let what is under way finish; whether a driver is there."""
        return self._control(ref, control.Word.PAUSE)

    def stop(self, ref: SessionRef) -> bool:
        """Start nothing new in a session, end what is under way; whether a driver is there."""
        return self._control(ref, control.Word.STOP)

    def _control(self, ref: SessionRef, word: control.Word) -> bool:
        self.require_known(ref)
        self.session(ref).check_version()
        control.leave(self._repository.folder(ref), word)
        self.change(ref, self.workflow(ref.workflow).control(self.state(ref), word.value, now()))
        return self.views.driver(ref) is not None

    def goes_on(self, ref: SessionRef) -> bool:
        """Whether a driver works on a session and will take in what was just changed.

        One that was about to end has ended by the time this says no.
        """
        end = time.monotonic() + ENDING_S
        while self.views.driver(ref) is not None:
            if time.monotonic() > end:
                return True
            time.sleep(0.05)
        return False

    # -- running --------------------------------------------------------------------------------

    def run(
        self,
        session: SessionRef | Started,
        *,
        view: View | None = None,
        agents_max: int | None = None,
        wait: bool = False,
        redo: bool = False,
        retry: bool = False,
        unpark: bool = False,
        say: Callable[[str], None] = lambda _: None,
        lease: AbstractContextManager[Any] | None = None,
    ) -> Report:
        """Go on with a session until nothing more can be done now; a lease that is given is released then.

        `wait` for a vendor's usage limit to pass, `redo` what is stale, `retry` what failed, `unpark` what
        is parked before its time. What a person should know goes to `say`, each event to the `view`.
        """
        ref = _ref_of(session)
        lease = session.lease if isinstance(session, Started) else lease
        self.require_known(ref)
        self.settings_for(ref.workflow, self.workflow(ref.workflow).judges(self.state(ref)))
        for name in self._repository.judged_otherwise():
            say(f"{name} is changed by what is reviewed: its settings count as they are at the change's base")
        self.trust.require(ref.workflow, ref)
        opened = self.session(ref)
        limits = self.config.limits
        if agents_max is not None:
            limits = limits.model_copy(update={"agents_max": agents_max})
        options = RunOptions(wait=wait, redo=redo, retry=retry, unpark=unpark, say=say)
        with lease or self.hold(ref) as held, closing(self.ask):
            return run(opened, self.running.tools, limits, options, held, view)

    def doctor(self, *, repair: bool = False) -> list[tuple[str, Problem]]:
        """What is wrong, each with its session; with `repair`, after repairing what can be repaired.

        In a foreign session nothing is repaired before it is adopted.
        """
        return self.views.doctor(self._may_repair, self.hold, repair=repair)

    def _may_repair(self, refs: Mapping[str, SessionRef], name: str, /, *files: str) -> bool:
        """Whether what is wrong with a session may be repaired: it is the person's, or gone."""
        try:
            if name in refs:
                self.require_known(refs[name])
                self.views.doubts(refs[name]).spare(files)
        except NeedsConsent:
            return False
        return True


def _ref_of(session: SessionRef | Started) -> SessionRef:
    return session.ref if isinstance(session, Started) else session


def _is_request(name: str) -> bool:
    return name.startswith("request-") and name.endswith(".json") and name[8:-5].isdigit()
