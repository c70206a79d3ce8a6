"""The loop: start what is due; as soon as one action ends, write its files and plan again.

Kill it anywhere. What is in the files is done; what is complete in a spool is taken from
there; the rest is due again.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from rondel.agents.base import AgentSettings, Beat, Reply
from rondel.config import Limits
from rondel.engine import control, notes, report, spools
from rondel.engine.branch import see_branch
from rondel.engine.ledger import Ledger, Record
from rondel.engine.limits import UnderWay, fullness, hold, shortage
from rondel.engine.notes import RunningAction
from rondel.engine.perform import TO_FIX, Job, Performer, Tools
from rondel.engine.report import Report, Stopped
from rondel.engine.session import Session
from rondel.errors import GitError, MachineTrouble
from rondel.model.actions import Action, Ask, Decide, Derive, Run
from rondel.model.changes import Change
from rondel.model.outcomes import NO_COMMIT, Ended, Outcome, usage_json
from rondel.model.summary import Problem, Status, Summary
from rondel.model.times import stamp
from rondel.model.trouble import machine
from rondel.model.workflow import Step
from rondel.processes import runner
from rondel.repo.git import Calls, GitStopped, calls
from rondel.store.changes import Kept
from rondel.store.lease import Lease

S = TypeVar("S")

TICK_S = 1.0
REFRESH_SHARE = 20  # looking at the disk may take a twentieth of the time
REPEATS_MAX = 10  # how often one run may do the same action: more is a workflow that does not move
SPARE_THREADS = 16  # for looking at the repository, which no limit counts
TOGETHER_MAX = 64  # files that are written together: each is open until all are there
PARKED_S = 60  # for how long an action is parked when its vendor named no time to come
PARKED_DAYS_MAX = 31  # a vendor's limit of a month is the longest that is known
RETRIED = (Ended.FAILED, Ended.TIMED_OUT)
UNRECORDED = (Ended.WAITING, Ended.PARKED, Ended.CANCELLED)


class _End(NamedTuple):
    """How an action under way came to its end, and the changes that are to be made for it."""

    flight: RunningAction[Any]
    outcome: Outcome
    reply: Reply | None
    changes: Sequence[Change]


class View(Protocol):
    """Who watches a run."""

    def event(self, kind: str, fields: dict[str, object]) -> None:
        """Something was noted in the journal."""
        ...

    def tick(self, flights: list[RunningAction[Any]], ledger: Ledger, summary: Summary) -> None:
        """Time went by."""
        ...


class Driver(Generic[S]):
    """Drives one session until nothing more can be done now."""

    def __init__(
        self, session: Session[S], tools: Tools, lease: Lease, *, limits: Limits, view: View | None = None
    ) -> None:
        self._session = session
        self._performer = Performer(session, tools)
        self._tools = tools
        self._lease = lease
        self._limits = limits
        self._view = view
        self._flights: dict[str, RunningAction[S]] = {}
        self._held: dict[str, tuple[Stopped, str]] = {}
        self._stuck: dict[str, str] = {}  # edits that git would not take; the next run tries again
        self._failures: dict[str, str] = {}  # what came to nothing in this run, and where to look
        self._waits: dict[str, str] = {}  # answers only a person can give; not asked for again in this run
        self._repeats: Counter[str] = Counter()
        self._refreshed = (time.monotonic(), 0.0)
        self._ticked = 0.0
        self._word: control.Word | None = None
        self._said: set[Problem] = set()  # that this run met and said
        self._interrupted = False
        self._gits = Calls()
        self._trouble: MachineTrouble | None = None
        self._unseen = False  # whether a program may still be at work whose reaper was killed
        self._lost = ""  # what the branch does not hold any more
        self._short: str | None = None  # what the machine has too little of; None: not looked at

    def interrupt(self) -> None:
        """End what is under way and stop."""
        self._interrupted = True
        self._gits.end()
        for flight in self._flights.values():
            flight.task.cancel()

    async def drive(self) -> Report:
        """Run until nothing more can be done now."""
        # A thread for each action: while some wait for their turn at the branch, the others go on.
        threads = ThreadPoolExecutor(self._limits.agents_max + SPARE_THREADS)
        asyncio.get_running_loop().set_default_executor(threads)
        self._session.journal.epoch = self._lease.epoch
        calls.set(self._gits)
        try:
            going = await self._go(self._take_up)
            while going and not self._interrupted:
                going = await self._go(self._turn)
        finally:
            await self._end_flights()
            await self._go(self._last_sign)
            self._session.let_go()
        ended = self._report()
        if not self._lost:  # that is seen by whoever looks, for as long as it is so
            report.leave(self._session.run, ended)
        return ended

    async def _go(self, step: Callable[[], Awaitable[bool]]) -> bool:
        """One step; whether there is another one.

        When the machine refuses something, nothing more is started; what is under way, and paid
        for, may still end.
        """
        try:
            with machine("go on with", self._session.ref.name):
                return await step()
        except GitStopped:  # the report says by what
            return False
        except MachineTrouble as e:
            self._trouble = self._trouble or e
            return bool(self._flights)

    async def _take_up(self) -> bool:
        """What a dead driver left is ended and counted."""
        self._note("driver", identity=self._session.identity.document())
        self._session.guard(self._say)
        for done in await asyncio.to_thread(self._tools.workspaces.restore):
            self._note("put-right", message=done.words)
        runner.end_leftovers(self._session.run / "spool")
        self._session.watch_no_more()  # of a driver that died: what was written since waits for the person
        await self._sweep()
        self._settle_open_tries()
        self._say_problems(self._session.workflow.summary(self._session.state))
        self._lease.take_up()
        return True

    async def _turn(self) -> bool:
        """Start what is due and wait for one to end; False when nothing is under way."""
        if self._trouble is None and await self._holds():
            self._start_due()
            if not self._flights:
                await self._sweep()
                self._session.refresh()  # a person may have answered, or added work, meanwhile
                self._start_due()
        if self._flights:
            await self._wait()
            return True
        if self._trouble is None:
            await asyncio.to_thread(spools.tidy, self._session.run / "spool", self._session.ledger)
        return False

    async def _holds(self) -> bool:
        """Whether the session's branch holds what counts as done: nobody works with one that does not."""
        if self._session.workflow.target(self._session.state):  # git takes a moment, in which we may die
            self._flush()
        try:
            await see_branch(self._session, self._tools.workspaces, self._say)
            self._lost = ""
        except GitError as e:
            self._lost = str(e)
        return not self._lost

    async def _last_sign(self) -> bool:
        self._flush()
        self._heartbeat()
        return False

    async def _sweep(self) -> None:
        """Remove the workspaces that are not needed any more."""
        state, workflow, owner = self._session.state, self._session.workflow, self._session.identity.id

        def is_over(session: str, key: str) -> bool:
            return session == owner and not workflow.uses(state, key)

        await asyncio.to_thread(self._tools.workspaces.sweep, is_over)

    # -- starting -----------------------------------------------------------------------

    def _start_due(self) -> None:
        """Start everything that is due and that limits allow. What is asked is asked after this."""
        before = frozenset(self._flights)
        try:
            self._start_all()
        finally:
            self._note_starts(before)

    def _note_starts(self, before: Container[str]) -> None:
        """All that starts together is on record, durably, or nothing of it begins."""
        new = [flight for path, flight in self._flights.items() if path not in before]
        try:
            self._flush(also=bool(new))
        except BaseException:
            for flight in new:
                flight.task.cancel()
            raise

    def _start_all(self) -> None:
        self._held.clear()
        self._short = None
        self._word = control.read(self._session.folder)
        if self._word is control.Word.STOP:
            for flight in self._flights.values():
                flight.task.cancel()
        self._session.hear()
        heard = True  # nobody said anything in between
        for step in self._session.workflow.steps(self._session.state):
            action = step.action
            if action.path in self._flights:
                continue
            if not heard and self._session.hear_notes():
                self._start_all()
                return
            heard = False
            if self._word is not None:
                self._held[action.path] = (Stopped.PAUSED, "")
                return
            if doubted := self._doubted():  # going on could pay for what a person has just written
                self._held[action.path] = (Stopped.WAITING, doubted)
                return
            if isinstance(action, Ask | Run) and self._busy() >= self._limits.agents_max:
                return
            reason = self._reason_to_hold(action)
            if reason is None:
                self._start(step)
                self._word = control.read(self._session.folder)
            else:
                self._held[action.path] = reason

    def _doubted(self) -> str:
        """Whose text waits for the person's word, in words; empty where none does."""
        return "; ".join(f"{p.file} {p.message}: {p.repair}" for p in self._session.doubted())

    def _busy(self) -> int:
        return sum(isinstance(f.job.action, Ask | Run) for f in self._flights.values())

    def _reason_to_hold(self, action: Action) -> tuple[Stopped, str] | None:
        """Why an action that is due does not start; None when it does."""
        record = self._session.ledger.of(action.path)
        if isinstance(action, Decide):
            return Stopped.WAITING, action.question
        if action.path in self._stuck:
            return Stopped.FAILED, f"{self._failure(action)}: {self._stuck[action.path]}"
        if action.path in self._waits:
            return Stopped.WAITING, self._waits[action.path]
        if record.parked_until and record.parked_until > self._tools.clock():
            return Stopped.PARKED, f"{_named(action)} is parked until {stamp(record.parked_until)}"
        attempts_max = self._attempts_max(action)
        if record.failures >= attempts_max:
            times = f"failed {record.failures} times" if record.failures > 1 else "failed"
            return Stopped.FAILED, f"{self._failure(action, times)}: {record.last_error}"
        if record.cutoffs >= self._limits.cutoffs_max:
            words = f"was cut off {record.cutoffs} times, because the process that ran it ended"
            return Stopped.FAILED, self._failure(action, words)
        if self._repeats[action.path] >= REPEATS_MAX:
            words = f"is due again after it was done {REPEATS_MAX} times"
            return Stopped.FAILED, self._failure(action, words)
        if isinstance(action, Run) and action.exclusive and self._runs(action.exclusive):
            return Stopped.IDLE, ""
        agent = self._agent_for(action)
        if agent is not None and self._answered(action, record, agent) is None:
            return self._reason_not_to_ask(agent)
        return None

    def _reason_not_to_ask(self, agent: AgentSettings) -> tuple[Stopped, str] | None:
        short = self._shortage()
        if short is not None:
            return Stopped.MACHINE, short
        return hold(self._limits, self._session.ledger, agent.name, self._asked())

    def _shortage(self) -> str | None:
        """What is short; looked at once for all that starts together."""
        if self._short is None:
            places = (self._session.folder, *self._tools.places)
            self._short = shortage(places, self._limits.free_mb_min) or ""
        return self._short or None

    def _fullness(self) -> str | None:
        return fullness((self._session.folder, *self._tools.places), self._limits.free_mb_min)

    def _failure(self, action: Action, words: str = "failed") -> str:
        """What a person is told of an action that came to nothing: which it is, and where to look."""
        return f"{_named(action)} {words} (see {self._performer.place(action)})"

    def _asked(self) -> list[UnderWay]:
        flights = self._flights.values()
        return [UnderWay(f.job.agent.name, f.beat.tokens) for f in flights if f.job.agent is not None]

    def _agent_for(self, action: Action) -> AgentSettings | None:
        return self._tools.config.agent_for(action.role) if isinstance(action, Ask) else None

    def _answered(self, action: Action, record: Record, agent: AgentSettings | None) -> int | None:
        """The try whose answer is there and still answers: it is paid for already.

        It was complete when its driver died; or its edit could not be committed, and a person who
        goes on may have put that right.
        """
        number = record.open_try
        if number is None and not record.failures and record.last_error.startswith(NO_COMMIT):
            number = record.tries
        holds = (
            number is not None
            and (agent is None or agent.name == record.agent)
            and self._performer.is_complete(action, agent, number)
            and self._inputs_hold(action, record)
        )
        return number if holds else None

    def _attempts_max(self, action: Action) -> int:
        if isinstance(action, Run):
            return action.attempts_max
        return self._limits.attempts_max if isinstance(action, Ask) else 1

    def _runs(self, word: str) -> bool:
        return any(
            isinstance(f.job.action, Run) and f.job.action.exclusive == word for f in self._flights.values()
        )

    def _start(self, step: Step[S]) -> None:
        session, action = self._session, step.action
        session.look_again(action.inputs)
        seen = {p: self._fresh_digest(p) for p in (action.path, *_outputs(action))}
        inputs = {p: session.files.digest(p) or "" for p in action.inputs}
        job = self._job(step, inputs)
        begin = step.begin(session.state, self._tools.clock())
        if begin:
            self._flush()
            session.apply_changes(begin, {}, self._lease)
        if self._performer.could_write(job):
            session.watch()
        flight_key = action.path
        now = time.monotonic()
        task = asyncio.create_task(self._performer.perform(job, lambda beat: self._beat(flight_key, beat)))
        self._flights[flight_key] = RunningAction(job, task, seen, inputs, now, now)

    def _fresh_digest(self, path: str) -> str | None:
        self._session.files.forget(path)
        return self._session.files.digest(path)

    def _job(self, step: Step[S], inputs: dict[str, str]) -> Job[S]:
        """The next try at a step; a try that was complete when its driver died is taken up again."""
        action = step.action
        record = self._session.ledger.of(action.path)
        agent = self._agent_for(action)
        answered = self._answered(action, record, agent)
        if answered is not None:
            self._gather("recovered", action=action.path, title=action.title, **{"try": answered})
            return Job(step, answered, agent, continues=True, paid=record.open_try is None)
        if record.open_try is not None:
            usage = self._performer.usage_in_spool(action.path, record.open_try)
            if usage is None:
                kind = "cutoff" if self._lease.after_death else "dropped"
                self._gather(kind, action=action.path, **{"try": record.open_try})
            else:
                paid: dict[str, object] = {"try": record.open_try, "usage": usage_json(usage)}
                self._gather("outdated", action=action.path, **paid)
        goes_on = (
            agent is not None and record.vendor_session is not None and record.vendor_agent == agent.name
        )
        hint = _hint(record) if self._performer.has_workspace(action) else ""
        job = Job(
            step,
            record.tries + 1,
            agent,
            resume=record.vendor_session if goes_on else None,
            counted=dict(record.raw_usage) if goes_on else None,
            hint=hint,
            continues=goes_on or bool(hint),
        )
        if not isinstance(action, Derive):
            self._gather("started", **notes.started_fields(job, inputs))
        return job

    def _inputs_hold(self, action: Action, record: Record) -> bool:
        """Whether a recovered answer still answers: its inputs are what they were."""
        ours = {action.path, *_outputs(action)}
        return all((self._fresh_digest(p) or "") == d for p, d in record.inputs.items() if p not in ours)

    def _settle_open_tries(self) -> None:
        """Count what a dead driver's finished tries cost, where their files are already there."""
        open_paths = {p for p, r in self._session.ledger.records.items() if r.open_try is not None}
        if not open_paths:
            return
        due = {a.path for a in self._session.workflow.plan(self._session.state)}
        for path in sorted(p for p in open_paths - due if self._session.files.exists(p)):
            record = self._session.ledger.of(path)
            usage = self._performer.usage_in_spool(path, record.open_try or 0)
            fields: dict[str, object] = {"action": path, "ended": Ended.DONE, "why": "its files were there"}
            if usage is not None:
                fields["usage"] = usage_json(usage)
            self._note("finished", **fields)

    # -- waiting ------------------------------------------------------------------------

    async def _wait(self) -> None:
        """Wait until one action ends or a second went by, then take in what happened."""
        self._flush()
        tasks = [f.task for f in self._flights.values()]
        done, _ = await asyncio.wait(tasks, timeout=TICK_S, return_when=asyncio.FIRST_COMPLETED)
        ended = [self._flights.pop(p) for p, f in tuple(self._flights.items()) if f.task in done]
        self._finish(ended)
        self._end_watch(ended)
        self._look_at_the_disk()
        if time.monotonic() - self._ticked >= TICK_S:
            self._ticked = time.monotonic()
            self._heartbeat()

    def _look_at_the_disk(self) -> None:
        at, cost = self._refreshed
        begin = time.monotonic()
        if begin - at > max(TICK_S, REFRESH_SHARE * cost):
            self._session.refresh()
            self._refreshed = (time.monotonic(), time.monotonic() - begin)

    def _beat(self, path: str, beat: Beat) -> None:
        flight = self._flights.get(path)
        if flight is None:
            return
        if beat.vendor_session and beat.vendor_session != flight.beat.vendor_session and flight.job.agent:
            self._note("vendor", action=path, session=beat.vendor_session, agent=flight.job.agent.name)
        flight.beat = beat
        flight.last_at = time.monotonic()

    async def _end_flights(self) -> None:
        """End what is under way; what was complete is kept."""
        self._tools.workspaces.close()
        self._gits.end()
        for flight in self._flights.values():
            flight.task.cancel()
        if self._flights:
            await asyncio.wait([flight.task for flight in self._flights.values()])
        calls.set(None)  # what is looked up from here on is for the notes about them
        ended = list(self._flights.values())
        self._flights.clear()
        for flight in ended:
            try:
                self._finish_cancelled(flight)
            except MachineTrouble as e:
                self._trouble = self._trouble or e
        self._end_watch(ended)

    def _end_watch(self, ended: Sequence[RunningAction[S]]) -> None:
        """Watch no more once nobody is at work who could write; of a killed reaper's child nobody knows."""
        self._unseen = self._unseen or any(self._performer.lost_sight(flight.job) for flight in ended)
        at_work = any(self._performer.could_write(flight.job) for flight in self._flights.values())
        if not at_work and not self._unseen:
            self._session.watch_no_more()

    # -- finishing ----------------------------------------------------------------------

    def _finish(self, ended: Sequence[RunningAction[S]]) -> None:
        """Leave the files of actions and note their ends; what each left alone is written together."""
        waiting: list[_End] = []
        try:
            for flight in ended:
                end = self._end(flight)
                if end is None:
                    continue
                is_expected = self._session.expect(end.changes)
                if is_expected:
                    waiting.append(end)
                if not is_expected or len(waiting) >= TOGETHER_MAX:
                    self._leave(waiting, together=True)
                if not is_expected:
                    self._leave([end])
        finally:
            self._leave(waiting, together=True)

    def _end(self, flight: RunningAction[S]) -> _End | None:
        """How an action ended and what it is to leave; None where that is all there is to note."""
        if flight.task.cancelled():
            self._finish_cancelled(flight)
            return None
        try:
            outcome, reply = flight.task.result()
            outcome = replace(outcome, inputs=flight.inputs)
        except MachineTrouble as e:
            self._trouble = self._trouble or e
            self._finish_cancelled(flight, str(e))
            return None
        short = self._fullness() if outcome.ended in RETRIED else None
        if short is not None:  # what failed for want of room is no attempt
            self._trouble = self._trouble or MachineTrouble(f"{flight.job.action.path} failed: {short}")
            paid = reply is not None and reply.ended is Ended.DONE  # its edit or its checks failed
            why = f"{short} ({outcome.error})"
            outcome = replace(outcome, ended=Ended.CANCELLED, error=why, taken=outcome.taken and not paid)
        if outcome.ended is Ended.PARKED:
            outcome = _parked(outcome, self._tools.clock())
        action = flight.job.action
        record = self._session.ledger.of(action.path)
        if not outcome.taken:
            self._stuck[action.path] = f"{action.path}: {outcome.error}"
        final = outcome.ended not in RETRIED or record.failures + 1 >= self._attempts_max(action)
        changes: Sequence[Change] = ()
        self._failures.pop(action.path, None)
        if not outcome.ok and outcome.ended not in UNRECORDED and final:
            self._failures[action.path] = self._failure(action)
        if outcome.taken and outcome.ended not in UNRECORDED and final:
            self._session.look_again(flight.inputs)
            changes = flight.job.step.write(self._session.state, outcome)
            self._repeats[action.path] += 1
        if outcome.ended is Ended.WAITING:
            self._waits[action.path] = outcome.error
        return _End(flight, outcome, reply, changes)

    def _leave(self, ends: list[_End], *, together: bool = False) -> None:
        """Leave the files of these and note that they ended; `together` they are one new file each."""
        changes = [change for end in ends for change in end.changes]
        # What is doubted gives way to the answer that was waited for, and is kept aside.
        seen = {
            p: d
            for end in ends
            if end.changes
            for p, d in end.flight.seen.items()
            if not self._session.is_doubted(p)
        }
        these = tuple(ends)
        ends.clear()  # whatever happens, nobody does it again
        wrote: dict[str, str] = {}
        kept: Sequence[Kept] = ()
        if changes:
            wrote, kept = self._session.apply_changes(changes, seen, self._lease, together=together)
        for end in these:
            own = {c.path: wrote[c.path] for c in end.changes if c.path in wrote} if together else wrote
            self._gather("finished", **notes.finished_fields(end.flight, end.outcome, end.reply, own))
            self._note_refused(end.flight, end.reply)
        for one in kept:
            self._gather("kept", file=one.file, aside=one.aside, why=one.why)

    def _note_refused(self, flight: RunningAction[S], reply: Reply | None) -> None:
        """Say which hosts an agent could not reach, also where its answer is there all the same."""
        if reply is not None and reply.refused and not flight.job.paid:
            self._gather("unreached", action=flight.job.action.path, message=reply.refused)

    def _finish_cancelled(self, flight: RunningAction[S], why: str = "ended by us") -> None:
        """Note that it came to nothing here; an answer that was complete is taken by the next run."""
        job = flight.job
        done = self._performer.is_done(job.action, job.agent, job.number)
        outcome = Outcome(Ended.CANCELLED, error=why, taken=not done)
        self._note("finished", **notes.finished_fields(flight, outcome, None, {}))

    def _note(self, kind: str, **fields: object) -> None:
        self._say(kind, fields)

    def _say(self, kind: str, fields: dict[str, object]) -> None:
        self._lease.check()
        self._session.note(kind, fields)
        if self._view is not None:
            self._view.event(kind, fields)

    def _gather(self, kind: str, **fields: object) -> None:
        """Note something that is durable with what ends or starts at the same time: before anybody waits."""
        self._session.note(kind, fields, waits=True)
        if self._view is not None:
            self._view.event(kind, fields)

    def _flush(self, *, also: bool = False) -> None:
        """What was gathered is in the journal, durably; `also` asks for the lease where nothing was."""
        if also or self._session.journal.is_waiting:
            self._lease.check()
            self._session.journal.flush()

    def _heartbeat(self) -> None:
        """Leave a sign of life for other terminals. Runtime only: it may be lost."""
        self._lease.check()
        ledger = self._session.ledger
        notes.leave_heartbeat(self._session.run, self._flights, ledger, self._tools.clock())
        if self._view is not None:
            summary = self._session.workflow.summary(self._session.state)
            self._say_problems(summary)
            self._view.tick(list(self._flights.values()), ledger, summary)

    def _say_problems(self, summary: Summary) -> None:
        """Say once what somebody wrote and does not count, so that nobody believes it did."""
        session = self._session
        for problem in (*summary.problems, *session.seals.problems(session.files), *session.doubted()):
            if problem.loud and problem not in self._said:
                self._said.add(problem)
                self._note("problem", file=problem.file, rule=problem.rule, message=problem.message)

    # -- the end ------------------------------------------------------------------------

    def _report(self) -> Report:
        """Why nothing more can be done now, worst reason first."""
        if self._interrupted:
            return Report(Stopped.INTERRUPTED, "interrupted")
        if self._trouble is not None:
            return Report(Stopped.MACHINE, str(self._trouble))
        held = self._held.values()
        summary = self._session.workflow.summary(self._session.state)
        if summary.status is Status.CANCELLED:
            return Report(Stopped.CANCELLED, f"{self._session.ref.name} was given up; there is nothing to do")
        if self._word is not None and summary.status is not Status.COMPLETED:
            word = "paused" if self._word is control.Word.PAUSE else "stopped"
            return Report(Stopped.PAUSED, word)
        if self._lost:
            return Report(Stopped.FAILED, self._lost, (self._lost,))
        for stopped in (Stopped.MACHINE, Stopped.FAILED, Stopped.LIMIT, Stopped.PARKED, Stopped.WAITING):
            details = tuple(dict.fromkeys(words for s, words in held if s is stopped))
            if details:
                return Report(
                    stopped, details[0], details, self._earliest() if stopped is Stopped.PARKED else None
                )
        return report.of_summary(summary, self._session.ref.folder, tuple(self._failures.values()))

    def _earliest(self) -> datetime | None:
        times = [r.parked_until for p in self._held if (r := self._session.ledger.of(p)).parked_until]
        return min((t for t in times if t), default=None)


def _parked(outcome: Outcome, now: datetime) -> Outcome:
    """An action waits for a time to come that a person would wait for; any other is no answer."""
    if outcome.until is None or outcome.until <= now:
        return replace(outcome, until=now + timedelta(seconds=PARKED_S))
    if outcome.until <= now + timedelta(days=PARKED_DAYS_MAX):
        return outcome
    asked = f"it asked to be parked until {stamp(outcome.until)}, and {PARKED_DAYS_MAX} days are the most"
    error = ": ".join(filter(None, (asked, outcome.error)))
    return replace(outcome, ended=Ended.FAILED, error=error, until=None)


def _named(action: Action) -> str:
    return f"{action.title} ({action.path})" if action.title else action.path


def _outputs(action: Action) -> tuple[str, ...]:
    return () if isinstance(action, Decide) else action.outputs


def _hint(record: Record) -> str:
    if not record.last_error.startswith(TO_FIX):
        return ""
    return f"\n\n## Your last try\n\nYour edit is still in the working folder. {record.last_error}\nFix it.\n"
