"""Performing one action: from what is due to its outcome. Everything that waits is here."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from rondel import paths
from rondel.agents import roster
from rondel.agents.base import Agent, AgentSettings, Beat, Clocks, Reply, Request, cut_short, starts_programs
from rondel.config import Config
from rondel.engine.executor import REPAIR, Answer, Executor, in_one, kept_answer
from rondel.engine.ledger import ERROR_MAX
from rondel.engine.session import Session
from rondel.engine.spools import COLLECT_MAX, SHOWN, collect, copy_documents, is_collected, slot, spool_of
from rondel.errors import GitError, NeedsConsent, RondelError
from rondel.model.actions import SCRATCH, Access, Action, Ask, Derive, Probe, Run, Workspace
from rondel.model.identity import home
from rondel.model.jsons import parse_json
from rondel.model.names import digest, is_safe_name
from rondel.model.outcomes import NO_COMMIT, Ended, Outcome, Usage
from rondel.model.texts import cut
from rondel.model.trouble import NOT_RUN, machine, no_command
from rondel.model.workflow import RepoReader, Step
from rondel.processes import runner
from rondel.processes.runner import Reason
from rondel.repo.workspaces import ChecksFailed, Commit, Conflict, Unusable, Workspaces
from rondel.sandbox.box import Box, Confined, hint
from rondel.store import files, ours

S = TypeVar("S")
T = TypeVar("T")

GIT_PAUSES_S = (0.1, 0.5)
TAIL = 4000
MANUAL = "manual"  # the kind of agent that is a person
UNCHANGED = "unchanged"  # in a spool: the answer came without an edit
CHECKS_FAILED = "the checks failed after the edit"
TAMPERED = "the repository itself was changed"
SETTLED_S = 0.5
TAMPERED_NEXT = (
    "Nothing of this action was taken, and none of that runs in Rondel's own git. See what it is and undo it "
    "if it was not you (git config --local --list, ls .git/hooks); going on with the session accepts it"
)
TO_FIX = (CHECKS_FAILED, NO_COMMIT)  # how errors begin whose edit the next try goes on with


@dataclass(frozen=True)
class Tools:
    """What performing needs besides the session."""

    config: Config
    look: RepoReader
    executor: Executor
    workspaces: Workspaces
    clock: Callable[[], datetime]
    build: Callable[[AgentSettings], Agent] = roster.build
    places: tuple[Path, ...] = ()  # where actions write, besides the session's folder
    # what of an agent is not as the person consented to
    changed: Callable[[AgentSettings], str] = lambda _: ""
    # what of an agent's program a working copy would bring, in words
    replaced: Callable[[AgentSettings, Path], str] = lambda _settings, _cwd: ""
    # the scripts of the repository that the person's consent to an agent covers
    scripts: Callable[[AgentSettings], tuple[str, ...]] = lambda _: ()
    box: Box | None = None  # what everything that runs may reach; None confines nothing


@dataclass(frozen=True)
class Job(Generic[S]):
    """One try at a step."""

    step: Step[S]
    number: int  # of the try; names the spool
    agent: AgentSettings | None = None
    resume: str | None = None
    counted: dict[str, object] | None = None
    hint: str = ""  # what went wrong with the try before
    continues: bool = False  # goes on where a cut-off try stopped: the workspace is kept as it is
    paid: bool = False  # its answer was counted before

    @property
    def action(self) -> Action:
        """What is tried."""
        return self.step.action


class NotReady(Exception):
    """Nobody can be asked yet: there is no place to work in, or the agent is not what was consented to."""


class Performer(Generic[S]):
    """Performs the actions of one session."""

    def __init__(self, session: Session[S], tools: Tools) -> None:
        self._session = session
        self._tools = tools
        self._agents: dict[str, Agent] = {}
        self._shared = session.run / "scratch"  # of all who start no program and see no repository
        self._home_folder = session.run / "home"

    async def perform(self, job: Job[S], beat: Callable[[Beat], None]) -> tuple[Outcome, Reply | None]:
        """The outcome of an action, and the vendor's reply where there was one.

        MachineTrouble is no outcome: nothing can be said about the action then. Nor is trouble of the
        repository, or of the working copy to be made, a try: the next run tries the same again.
        """
        with machine("go on with", job.action.path):
            try:
                return await self._perform(job, beat)
            except (GitError, NotReady) as e:
                outcome = self._outcome(self._tools.clock(), Ended.FAILED, error=str(e))
                return replace(outcome, taken=False), None

    async def _perform(self, job: Job[S], beat: Callable[[Beat], None]) -> tuple[Outcome, Reply | None]:
        started = self._tools.clock()
        try:
            ours.clear_folder(self.spool(job.action.path, job.number))
            match job.action:
                case Ask():
                    return await self._ask(job, job.action, beat)
                case Run():
                    return await self._run(job, job.action), None
                case Probe():
                    look = self._tools.look
                    data = await asyncio.to_thread(job.step.look, look)
                    return self._outcome(started, data=data), None
                case Derive():
                    return self._outcome(started), None
                case _:
                    return self._outcome(started, Ended.WAITING, error=job.action.question), None
        except GitError:
            raise
        except NeedsConsent as e:  # nobody failed: it goes on when the person has said yes
            return self._outcome(started, Ended.WAITING, error=str(e)), None
        except RondelError as e:
            return self._outcome(started, Ended.FAILED, error=str(e)), None

    def _outcome(
        self, started: datetime, ended: Ended = Ended.DONE, *, error: str = "", data: object = None
    ) -> Outcome:
        return Outcome(ended, error=error, data=data, started_at=started, finished_at=self._tools.clock())

    # -- asking -------------------------------------------------------------------------

    async def _ask(self, job: Job[S], ask: Ask, beat: Callable[[Beat], None]) -> tuple[Outcome, Reply | None]:
        """Ask; send a wrong answer back once; take the edits over."""
        settings = job.agent or self._tools.config.agent_for(ask.role)
        agent = self._agent(settings)
        there = await self._taken_before(job, ask, settings)
        if there is not None:
            return there
        # An edit that was just taken over may have changed the program of the next agent to be asked.
        if why := await self._changed(agent, settings):
            raise NotReady(why)
        cwd = await self._workspace(ask, job.continues, job.number, scratch=starts_programs(agent))
        await self._require_own_program(settings, ask, cwd)
        state, workflow = self._session.state, self._session.workflow
        if workflow.step(state, ask.path) is None:  # the state changed since it was planned
            return self._outcome(self._tools.clock(), Ended.CANCELLED, error="it is not due any more"), None
        prompt = job.step.prompt(state) + job.hint
        request = self._request(job, ask, settings, prompt, cwd)
        if settings.kind == MANUAL and (why := self._not_the_persons(request)):
            return self._outcome(self._tools.clock(), Ended.WAITING, error=why), None
        await self._note_state(job, ask.workspace)
        answer = await self._tools.executor.submit(agent, request, beat)
        wrong = self._wrong(job, answer)
        if wrong:
            answer = await self._repair(agent, request, answer, wrong, beat)
            wrong = self._wrong(job, answer)
        outcome = replace(_of_answer(answer, settings), prompt=digest(prompt))
        if wrong:
            outcome = replace(outcome, ended=Ended.REJECTED, error=wrong)
        changed = await self._changed_state(job, ask.workspace) or self._tampered(job, answer)
        if changed:
            outcome = replace(outcome, ended=Ended.FAILED, error=changed, taken=False)
        elif outcome.ok and ask.workspace.access is Access.WRITE:
            try:
                outcome = await self._take_over(job, ask, cwd, outcome)
            except GitError as e:
                outcome = replace(outcome, ended=Ended.FAILED, error=str(e), taken=False)
        return outcome, answer.reply

    async def _changed(self, agent: Agent, settings: AgentSettings) -> str:
        """What of an agent is not as it was consented to; without a program there is little to read."""
        if starts_programs(agent):
            return await asyncio.to_thread(self._tools.changed, settings)
        return self._tools.changed(settings)

    async def _require_own_program(self, settings: AgentSettings, ask: Ask, cwd: Path) -> None:
        """NeedsConsent where the working copy would choose what is run as the agent."""
        if ask.workspace.access is Access.NONE:
            return
        if why := await asyncio.to_thread(self._tools.replaced, settings, cwd):
            raise NeedsConsent(why)

    async def _taken_before(
        self, job: Job[S], ask: Ask, settings: AgentSettings
    ) -> tuple[Outcome, Reply | None] | None:
        """An edit whose commit its target already holds is done, whoever noted it; so is none at all."""
        space = ask.workspace
        if space.access is not Access.WRITE:
            return None
        commit = None
        if space.target is not None:
            find = self._tools.workspaces.find
            commit = await _patiently(partial(find, self._owner, ask.path, space.target, self._since(space)))
        if commit is None:
            if not self._is_unchanged(ask, job.number):
                return None
            discard = self._tools.workspaces.discard
            await _patiently(partial(discard, self._owner, space.name or ask.path))
        answer = self._last(ask, settings, job.number)
        outcome = _of_answer(answer, settings) if answer else self._outcome(self._tools.clock())
        return _with_commit(
            replace(outcome, ended=Ended.DONE, error=""), commit
        ), answer.reply if answer else None

    def could_write(self, job: Job[S]) -> bool:
        """Whether a try starts a program that could write the session's own files."""
        action = job.action
        if self._tools.box is not None or not isinstance(action, Ask | Run):
            return False
        if job.agent is None or starts_programs(self._agent(job.agent)):
            return True
        edits = action.workspace.access is Access.WRITE
        return edits and bool(action.workspace.checks or self._tools.config.project.setup)

    def lost_sight(self, job: Job[S]) -> bool:
        """Whether a try that could write the session's files had its reaper killed: nobody saw it end."""
        spool = self.spool(job.action.path, job.number)
        return self.could_write(job) and any(map(runner.lost_sight, (spool, spool / REPAIR)))

    def is_complete(self, action: Action, agent: AgentSettings | None, number: int) -> bool:
        """Whether a try that a dead driver left has its whole answer in the spool."""
        ours.clear_folder(self.spool(action.path, number))
        if isinstance(action, Ask) and agent is not None:
            return self._find(action, agent, number) is not None and self._has_edit(action, number)
        if not isinstance(action, Run):
            return False
        spool = self.spool(action.path, number)
        whole = is_collected(spool, action.collect) or self.has_workspace(action)
        return whole and runner.answered(spool) is not None

    def is_done(self, action: Action, agent: AgentSettings | None, number: int) -> bool:
        """Whether a try of ours has an answer that will do; what failed while it was ended proves nothing."""
        if isinstance(action, Ask) and agent is not None:
            found = self._find(action, agent, number)
            return found is not None and found.reply.ended is Ended.DONE and self._has_edit(action, number)
        ended = runner.answered(self.spool(action.path, number)) if isinstance(action, Run) else None
        return ended is not None and ended.code == 0

    def has_workspace(self, action: Action) -> bool:
        """Whether the workspace that a try has left is there; of one that edits nothing, it always is."""
        if not isinstance(action, Ask | Run) or action.workspace.access is not Access.WRITE:
            return True
        return self._tools.workspaces.has(self._owner, action.workspace.name or action.path)

    def _has_edit(self, ask: Ask, number: int) -> bool:
        """Whether what an answered try edited is still there; an answer without it is none."""
        if self.has_workspace(ask) or self._is_unchanged(ask, number):
            return True
        space, find = ask.workspace, self._tools.workspaces.find
        return find(self._owner, ask.path, space.target, self._since(space)) is not None

    def _is_unchanged(self, ask: Ask, number: int) -> bool:
        return paths.is_file(self.spool(ask.path, number) / UNCHANGED)

    @property
    def _owner(self) -> str:
        """Whose the worktrees and commits are: the session's id, which no other session has."""
        return self._session.identity.id

    def _since(self, space: Workspace) -> str | None:
        """The commit after which an edit must have come to be one of this session."""
        return space.base or self._session.identity.base

    def usage_in_spool(self, path: str, number: int) -> Usage | None:
        """What an answered try cost, from its spool alone; None when no answer is there."""
        spool = self.spool(path, number)
        first, second = kept_answer(spool), kept_answer(spool / REPAIR)
        if first is None:
            return None
        return first.reply.usage + second.reply.usage if second else first.reply.usage

    def _find(self, ask: Ask, settings: AgentSettings, number: int) -> Answer | None:
        spool = self.spool(ask.path, number)
        request = self._request(Job(Step(ask), number), ask, settings, "", spool)
        return self._tools.executor.find(self._agent(settings), request)

    def _last(self, ask: Ask, settings: AgentSettings, number: int) -> Answer | None:
        """The answer that counts: the second one, where the first was sent back."""
        first, second = self._find(ask, settings, number), kept_answer(self.spool(ask.path, number) / REPAIR)
        return _both(first, second) if first and second else first

    def _agent(self, settings: AgentSettings) -> Agent:
        if settings.name not in self._agents:
            self._agents[settings.name] = self._tools.build(settings)
        return self._agents[settings.name]

    def _wrong(self, job: Job[S], answer: Answer) -> str | None:
        if answer.reply.ended is not Ended.DONE:
            return None
        return job.step.check(self._session.state, answer.reply.text)

    async def _repair(
        self, agent: Agent, request: Request, answer: Answer, wrong: str, beat: Callable[[Beat], None]
    ) -> Answer:
        """One more answer, after the exact words of what was wrong with the first."""
        reply = answer.reply
        short = (
            f"Your answer cannot be used: {wrong}\n\nAnswer again, in full, in the form you were asked for.\n"
        )
        again = replace(
            request,
            prompt=short
            if reply.vendor_session
            else f"{request.prompt}\n\n---\n\nYou answered:\n\n{reply.text}\n\n{short}",
            spool=request.spool / REPAIR,
            resume=reply.vendor_session,
            counted=reply.raw_usage,
        )
        return _both(answer, await self._tools.executor.submit(agent, again, beat))

    def _request(self, job: Job[S], ask: Ask, settings: AgentSettings, prompt: str, cwd: Path) -> Request:
        session, manual = self._session, settings.kind == MANUAL
        return Request(
            prompt=prompt,
            role=ask.role,
            session=session.ref.name,
            action=ask.path,
            attempt=job.number,
            cwd=cwd,
            spool=self.spool(ask.path, job.number),
            home=self._home_folder,
            access=ask.workspace.access,
            clocks=settings.clocks,
            resume=job.resume,
            counted=job.counted or {},
            box=self._tools.box,
            scripts=self._tools.scripts(settings),
            prompt_file=self._manual(ask.path, ask.prompt_file, "prompt") if manual else None,
            reply_file=self._manual(ask.path, ask.reply_file, "response") if manual else None,
        )

    def _not_the_persons(self, request: Request) -> str:
        """Why the reply file is not taken for the person's answer; empty where it is."""
        session = self._session
        reply, prompt = (
            os.path.relpath(p, session.folder) for p in (request.reply_file, request.prompt_file) if p
        )
        session.doubts.spare([prompt])  # the agent itself writes it
        if not session.is_doubted(reply):
            return ""
        return next(f"{p.file} {p.message}: {p.repair}" for p in session.doubted() if p.file == reply)

    def _manual(self, path: str, given: str | None, what: str) -> Path:
        return ours.place_of(self._session.folder, given or f".rondel/manual/{_flat(path)}.{what}.md")

    def spool(self, path: str, number: int) -> Path:
        """The folder of one try's output."""
        return spool_of(self._session.run, path, number)

    def place(self, action: Action) -> str:
        """Where a person sees what became of an action: what was said, and its edit where there is one."""
        tries = self.spool(action.path, self._session.ledger.of(action.path).tries)
        maybe = (tries, in_one(tries), tries.parent, self._session.folder)
        found = next((place for place in maybe if paths.is_there(place)), tries)
        root = self._session.root
        said = str(found.relative_to(root) if found.is_relative_to(root) else found)
        space = action.workspace if isinstance(action, Ask | Run) else SCRATCH
        if space.access is not Access.WRITE:
            return said
        tree = self._tools.workspaces.place(self._owner, space.name or action.path)
        return f"{said}, working copy {tree}" if tree else said

    # -- workspaces ---------------------------------------------------------------------

    async def _workspace(
        self, action: Ask | Run, continues: bool, number: int, *, scratch: bool = True
    ) -> Path:
        """The folder an action works in. Where none can be made, nobody has tried anything.

        Who sees no repository has a folder of its own, or without `scratch` one for all such.
        """
        try:
            if action.workspace.access is Access.NONE:
                place = self.spool(action.path, number) / "scratch" if scratch else self._shared
                return ours.own(place, is_folder=True)
            return await self._make_workspace(action, continues)
        except RondelError as e:
            raise NotReady(str(e)) from e

    async def _make_workspace(self, action: Ask | Run, continues: bool) -> Path:
        space = action.workspace
        base = space.base or await self._home(space.target)
        trees = self._tools.workspaces
        if space.access is Access.READ:
            return await _patiently(partial(trees.read, base))
        return await _patiently(
            partial(
                trees.write,
                self._owner,
                space.name or action.path,
                base,
                setup=self._tools.config.project.setup,
                keep=continues or space.name is not None,
                hide=self._session.ref.folder,
                shared=space.name is not None,
            )
        )

    async def _home(self, target: str | None) -> str:
        """Where the work goes, or the session was begun: HEAD may be somewhere else meanwhile."""
        identity, trees = self._session.identity, self._tools.workspaces
        if target and trees.has_branch(target):
            return f"refs/heads/{target}"
        branch = target or identity.branch
        return await asyncio.to_thread(home, self._tools.look, branch, identity.base) or "HEAD"

    async def _take_over(self, job: Job[S], ask: Ask, cwd: Path, outcome: Outcome) -> Outcome:
        """Make the edits one commit and put it on top of its target.

        A GitError is about the repository as it is now, and the next run tries the same again.
        What is wrong with the edit itself is an outcome: the next try hears of it.
        """
        trees = self._tools.workspaces
        title = ask.title or ask.path
        commit = await _patiently(partial(trees.commit, cwd, self._owner, ask.path, title))
        if isinstance(commit, Unusable):
            error = f"{NO_COMMIT}: {commit.problem}\nThe work on {ask.path} is in {cwd}."
            return replace(outcome, ended=Ended.FAILED, error=error)
        if commit is None:
            note = self.spool(ask.path, job.number) / UNCHANGED
            await asyncio.to_thread(
                files.write, ours.own(note), b""
            )  # without its workspace nothing else says it
            await _patiently(partial(trees.remove, cwd))
            return outcome
        if ask.workspace.target is None:
            return _with_commit(outcome, commit)
        result = await _patiently(partial(trees.integrate, cwd, ask.workspace.target, ask.workspace.checks))
        if isinstance(result, Conflict):
            error = f"the edit does not go on top of {ask.workspace.target}: {', '.join(result.files)}"
            return replace(
                _with_commit(outcome, commit), ended=Ended.CONFLICT, error=error, conflicts=result.files
            )
        if isinstance(result, ChecksFailed):
            error = f"{CHECKS_FAILED}: {result.output[-TAIL:]}"
            return replace(_with_commit(outcome, commit), ended=Ended.FAILED, error=error)
        await _patiently(partial(trees.remove, cwd))
        return _with_commit(outcome, result)

    # -- what nobody may change ---------------------------------------------------------

    def _state_note(self, job: Job[S]) -> Path:
        return self._session.run / "repository" / f"{slot(job.action.path)}-{job.number}.json"

    async def _note_state(self, job: Job[S], space: Workspace) -> None:
        """Keep how the repository is before an edit; a try that goes on has its note already."""
        if space.access is Access.WRITE and not paths.is_file(note := self._state_note(job)):
            await self._write_state(note, await _patiently(self._tools.workspaces.state))

    async def _write_state(self, note: Path, state: Mapping[str, str]) -> None:
        data = json.dumps(state, indent=1, sort_keys=True).encode()
        await asyncio.to_thread(files.write, ours.own(note), data)

    async def _changed_state(self, job: Job[S], space: Workspace) -> str:
        """What an edit changed that is not its own, in words; said once, then a person knows of it."""
        before = (
            parse_json(files.read(self._state_note(job)) or b"") if space.access is Access.WRITE else None
        )
        if not isinstance(before, dict):
            return ""
        trees = self._tools.workspaces
        after = await _patiently(trees.state)
        if await _patiently(partial(trees.differences, before, after)):
            # git writes a log, then the branch: what is changed stays so
            await asyncio.sleep(SETTLED_S)
            after = await _patiently(trees.state)
        found = await _patiently(partial(trees.differences, before, after))
        if found:
            await self._write_state(self._state_note(job), after)
        return f"{TAMPERED} while {job.action.path} was at work: {found}. {TAMPERED_NEXT}" if found else ""

    def _tampered(self, job: Job[S], answer: Answer) -> str:
        """What its agent changed that is the person's, in words; said once, then a person knows of it."""
        words = answer.reply.tampered
        is_said = self._session.ledger.of(job.action.path).untaken == (job.number, cut(words, ERROR_MAX))
        return "" if is_said else words

    # -- running ------------------------------------------------------------------------

    async def _run(self, job: Job[S], run: Run) -> Outcome:
        """Run a command under the reaper; its output is in the spool and in the outcome."""
        started = self._tools.clock()
        spool = self.spool(run.path, job.number)
        exit_ = runner.finished(spool)
        if exit_ is not None and is_collected(spool, run.collect):
            cwd = spool  # the workspace has done what it was for, and may be gone
        else:
            cwd = await self._workspace(run, job.continues, job.number)
        argv = ("bash", "-c", run.command) if isinstance(run.command, str) else run.command
        env = runner.clean_env(("HOME",), dict(run.env))
        env |= {
            "RONDEL_SESSION": self._session.ref.name,
            "RONDEL_ACTION": run.path,
            "RONDEL_ATTEMPT": str(job.number),
            "RONDEL_SESSION_DIR": str(self._session.folder),
        }
        wall = run.timeout_s or Clocks.wall_s
        if exit_ is None:
            await self._note_state(job, run.workspace)
            child = runner.Child(
                argv=argv, cwd=cwd, env=env, spool=spool, stdin=run.stdin.encode(), wall_s=wall, idle_s=wall
            )
            exit_ = await self._run_child(child, run)
        text = _read(spool / "out")
        collected = await asyncio.to_thread(collect, spool, cwd, run.collect)
        changed = await self._changed_state(job, run.workspace)
        if changed:
            return replace(self._outcome(started, Ended.FAILED, error=changed), taken=False)
        own = run.workspace.access is Access.WRITE and run.workspace.name is None
        if own and exit_.reason is not Reason.CANCELLED:
            await _patiently(partial(self._tools.workspaces.discard, self._owner, run.path))
        outcome = Outcome(
            Ended.DONE,
            text=text,
            started_at=started,
            finished_at=self._tools.clock(),
            exit_code=exit_.code if exit_.code is not None else 128 + (exit_.signal or 0),
            files=collected,
        )
        cut = cut_short(exit_, Clocks(wall, wall), spool)
        if cut is not None:
            return replace(outcome, ended=cut.ended, error=cut.error)
        return outcome if exit_.code == 0 else self._refused(run, spool, outcome)

    def _refused(self, run: Run, spool: Path, outcome: Outcome) -> Outcome:
        """The failure of a command with another status than 0, in its own words."""
        words = runner.printable(_read(spool / "err")[-TAIL:].strip() or outcome.text[-TAIL:].strip())
        if run.setting and outcome.exit_code in NOT_RUN and not outcome.files:
            raise no_command(run.setting, run.command, words)
        if self._tools.box and (more := hint(words, "none" if run.closed else self._tools.box.network)):
            words = f"{words}\n{more}"
        return replace(outcome, ended=Ended.FAILED, error=f"status {outcome.exit_code}: {words}")

    async def _run_child(self, child: runner.Child, run: Run) -> runner.Exit:
        """Run a command in its box, where of the session it sees a copy of the documents."""
        box = self._tools.box
        if box is None:
            if run.closed:
                raise NotReady(f"{run.title or run.path} is to run in a sandbox, and there is none here")
            return await runner.run(child)
        if run.closed:
            box = replace(box, network="none")
        copy = child.spool / SHOWN
        await asyncio.to_thread(copy_documents, self._session.folder, copy)
        writes = run.workspace.access is not Access.READ
        try:
            return await runner.run(
                replace(
                    child,
                    env={**child.env, "RONDEL_SESSION_DIR": str(copy)},
                    confined=Confined(box, writes=writes, shown=(str(copy),)),
                )
            )
        finally:
            await asyncio.to_thread(paths.remove_folder, copy)


async def _patiently(work: Callable[[], T]) -> T:
    """Work with git in a thread; again after a moment where another git was in the way."""
    for pause_s in GIT_PAUSES_S:
        try:
            return await asyncio.to_thread(work)
        except GitError:
            await asyncio.sleep(pause_s)
    return await asyncio.to_thread(work)


def _flat(path: str) -> str:
    """An action's path as a file name that a person can read and type."""
    name = path.removeprefix(".rondel/parts/").replace("/", ".").removesuffix(".md")
    return name if is_safe_name(name) else slot(path)


def _of_answer(answer: Answer, settings: AgentSettings) -> Outcome:
    reply = answer.reply
    return Outcome(
        reply.ended,
        text=reply.text,
        error=reply.error,
        usage=reply.usage,
        started_at=answer.started_at,
        finished_at=answer.finished_at,
        agent=settings.name,
        model=reply.model or settings.model,
        until=reply.until,
        exit_code=reply.exit_code,
    )


def _both(first: Answer, second: Answer) -> Answer:
    """The second answer, for what both cost, and with what either changed that is the person's."""
    total = first.reply.usage + second.reply.usage
    tampered = "; ".join(filter(None, (first.reply.tampered, second.reply.tampered)))
    reply = replace(second.reply, usage=total, tampered=tampered)
    return Answer(reply, first.started_at, second.finished_at)


def _with_commit(outcome: Outcome, commit: Commit | None) -> Outcome:
    if commit is None:
        return outcome
    return replace(outcome, commit=commit.id, changed=commit.changed)


def _read(path: Path) -> str:
    try:
        return paths.beginning(path, COLLECT_MAX).decode(errors="replace")
    except OSError:
        return ""
