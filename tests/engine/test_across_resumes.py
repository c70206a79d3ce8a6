"""What holds over all runs of a session: attempts, seconds, usage, answers that are paid for already."""

from __future__ import annotations

import os
import signal
import threading
import time
from datetime import UTC, datetime, timedelta

import pytest
from harness import REF, project, repository, start

from rondel.agents.base import Beat, Reply, Request
from rondel.engine.ledger import Ledger
from rondel.engine.report import Stopped, last_report
from rondel.engine.session import Session
from rondel.model.outcomes import Ended, Usage
from rondel.store.lease import Lease
from rondel.testing.faults import die_at, in_child
from rondel.testing.scripted import Scripted, paid

NOTE = "round-1/notes/1.md"


@pytest.fixture
def root(tmp_path):
    return repository(tmp_path / "repo")


def at(minutes: float) -> str:
    return (datetime(2026, 11, 15, tzinfo=UTC) + timedelta(minutes=minutes)).isoformat()


def test_the_time_a_person_takes_between_two_runs_is_no_time_of_the_session():
    ledger = Ledger(
        [
            {"kind": "driver", "at": at(0), "epoch": 1},
            {"kind": "finished", "at": at(1), "epoch": 1, "action": "a"},
            {"kind": "changed", "at": at(600), "epoch": 0, "files": {}},
            {"kind": "retry", "at": at(601), "epoch": 0, "action": "a"},
            {"kind": "driver", "at": at(602), "epoch": 2},
            {"kind": "decision", "at": at(602.5), "epoch": 0},
            {"kind": "finished", "at": at(603), "epoch": 2, "action": "a"},
        ]
    )
    assert ledger.seconds == 120


def test_an_action_that_is_made_again_has_all_its_attempts(root):
    start(root, width=1)
    fails = [True]

    def once(_: Request) -> Reply | str:
        return Reply(Ended.FAILED, error="no") if fails and fails.pop() else "Yes.\n"

    project(root, Scripted(once)).run(REF)
    for name in (NOTE, "round-1/sum.json"):
        (root / REF.folder / name).unlink()
    fails.append(True)
    assert project(root, Scripted(once)).run(REF).stopped is Stopped.WAITING


def test_what_one_vendor_session_had_counted_is_not_taken_off_another():
    finished = {"kind": "finished", "action": "a", "try": 1, "ended": "failed", "raw_usage": {"total": 900}}
    ledger = Ledger(
        [
            {"kind": "started", "action": "a", "try": 1, "agent": "x"},
            {"kind": "vendor", "action": "a", "session": "s1", "agent": "x"},
            finished,
            {"kind": "started", "action": "a", "try": 2, "agent": "x"},
            {"kind": "vendor", "action": "a", "session": "s2", "agent": "x"},
            {"kind": "cutoff", "action": "a", "try": 2},
        ]
    )
    record = ledger.of("a")
    assert (record.vendor_session, record.raw_usage) == ("s2", {})


def test_what_a_vendor_session_had_counted_is_kept_when_its_next_run_is_stopped(root):
    """Parked, resumed, stopped by us, resumed: each run pays only for itself."""
    start(root, auto=True, width=1)

    class Cumulative(Scripted):
        async def run(self, request, beat):
            beat(Beat(vendor_session="v-1"))
            return await super().run(request, beat)

    later = datetime.now(UTC) + timedelta(hours=1)
    parked = Reply(Ended.PARKED, until=later, vendor_session="v-1", raw_usage={"total": 900})
    assert project(root, Cumulative(lambda _: parked)).run(REF).exit_code == 6
    slow = Cumulative(seconds=30)

    def stop() -> None:
        while not slow.seen:
            time.sleep(0.01)
        project(root).stop(REF)

    thread = threading.Thread(target=stop, daemon=True)
    thread.start()
    assert project(root, slow).run(REF, unpark=True).exit_code == 3
    thread.join()
    last = Cumulative()
    assert project(root, last).run(REF).exit_code == 0
    for agent in (slow, last):
        assert (agent.seen[0].resume, agent.seen[0].counted) == ("v-1", {"total": 900})


@pytest.mark.parametrize("until", [None, datetime(2020, 1, 1, tzinfo=UTC)])
def test_a_usage_limit_without_a_time_to_come_is_not_asked_again_and_again(root, until):
    start(root, auto=True, width=1)
    agent = Scripted(lambda _: Reply(Ended.PARKED, error="limit", until=until))
    report = project(root, agent).run(REF)
    assert (report.stopped, report.exit_code) == (Stopped.PARKED, 6)
    assert report.until > datetime.now(UTC)
    assert len(agent.seen) == 1


def test_an_answer_that_is_paid_for_is_taken_although_the_budget_is_spent(root):
    start(root, auto=True, width=2)
    (root / "rondel.toml").write_text("[limits]\nagents_max = 1\ntokens_max = 250\n")

    class Dying(Scripted):
        async def run(self, request, beat):
            reply = await super().run(request, beat)
            if request.action.endswith("2.md"):
                os.kill(os.getpid(), signal.SIGKILL)
            return reply

    costly = lambda _: Reply(Ended.DONE, "Paid.\n", usage=Usage(120, 0))  # noqa: E731
    assert in_child(lambda: project(root, Dying(costly)).run(REF).exit_code) == -signal.SIGKILL
    (root / "rondel.toml").write_text("[limits]\nagents_max = 1\ntokens_max = 200\n")
    again = Scripted()
    assert project(root, again).run(REF).stopped is Stopped.LIMIT
    assert again.seen == []
    assert (root / REF.folder / "round-1/notes/2.md").read_text() == "Paid.\n"


def test_an_answer_of_another_agent_is_not_read_as_this_one_s(root):
    start(root, auto=True, width=1)

    class Dying(Scripted):
        async def run(self, request, beat):
            await super().run(request, beat)
            os.kill(os.getpid(), signal.SIGKILL)

    in_child(lambda: project(root, Dying(lambda _: "event: a vendor's stream")).run(REF).exit_code)
    (root / "rondel.toml").write_text(
        '[agents.other]\nkind = "mock"\nscript = "x.json"\n[roles]\ndefault = "other"\n'
    )
    other = Scripted(name="other")
    assert project(root, other).run(REF).exit_code == 0
    assert [r.action for r in other.seen] == [NOTE, "final.md"]


def test_what_the_driver_before_noted_last_is_known_to_the_next(root, monkeypatch):
    """It ends while the next one already waits for the lease."""
    start(root, auto=True, width=1)
    take = Lease.take

    def late(*args: object, **kw: object) -> Lease:
        before = Session(root, REF, here.workflow("small"))
        before.note("started", {"action": NOTE, "try": 7})
        before.note("finished", {"action": NOTE, "try": 7, "ended": "failed"})
        return take(*args, **kw)

    agent = Scripted()
    here = project(root, agent)
    monkeypatch.setattr(Lease, "take", late)
    here.run(REF)
    assert agent.seen[0].attempt == 8


def test_a_run_that_was_killed_does_not_leave_the_report_of_the_one_before(root):
    start(root, auto=True, width=1)
    project(root, Scripted(lambda _: Reply(Ended.FAILED, error="no"))).run(REF)
    assert project(root).summary(REF).status == "failed"

    class Dying(Scripted):
        async def run(self, request, beat):
            os.kill(os.getpid(), signal.SIGKILL)

    in_child(lambda: project(root, Dying()).run(REF, retry=True).exit_code)
    assert last_report(project(root).runtime(REF)) is None
    assert project(root).summary(REF).status == "active"


def test_a_pause_that_comes_with_the_last_answer_does_not_hide_that_it_is_done(root):
    start(root, auto=True, width=1)

    def answer(request: Request) -> str:
        if request.action == "final.md":
            project(root).pause(REF)
        return "Done.\n"

    report = project(root, Scripted(answer)).run(REF)
    assert (report.stopped, report.exit_code) == (Stopped.COMPLETED, 0)


@pytest.mark.parametrize(("word", "said"), [("pause", "paused"), ("stop", "stopped")])
def test_the_report_says_what_was_asked_for(root, word, said):
    start(root, auto=True, width=2)
    (root / "rondel.toml").write_text("[limits]\nagents_max = 1\n")

    def answer(_: Request) -> str:
        getattr(project(root), word)(REF)
        return "Done.\n"

    assert project(root, Scripted(answer)).run(REF).message == said


def test_an_approval_that_comes_while_the_driver_ends_is_taken_in(root, monkeypatch):
    start(root, width=1)
    here = project(root)
    sweeps = []

    def sweep(*_: object) -> None:
        sweeps.append(1)
        if len(sweeps) == 2:  # the first is at the start
            project(root).decide(REF, "approve")

    monkeypatch.setattr("rondel.repo.workspaces.Workspaces.sweep", sweep)
    assert here.run(REF).exit_code == 0
    assert not here.goes_on(REF)


def test_asks_that_cost_nothing_do_not_make_the_next_one_look_cheap(root):
    start(root, auto=True, width=4)
    (root / "rondel.toml").write_text("[limits]\nagents_max = 1\nattempts_max = 9\nusd_max = 1.2\n")
    free = [Reply(Ended.FAILED, error="no")] * 8
    agent = Scripted(lambda _: free.pop() if free else Reply(Ended.DONE, "Yes.\n", usage=Usage(usd=1.0)))
    assert project(root, agent).run(REF).stopped is Stopped.LIMIT
    assert len(agent.seen) == 9


def dies_when(root, operation: str, agent: Scripted) -> None:
    """A driver that is killed at the first such point of the first note."""

    def doomed() -> None:
        die_at(1, counts=lambda what, path: what == operation and path.endswith(NOTE))
        project(root, agent).run(REF)

    assert in_child(doomed) == -signal.SIGKILL


def test_a_dead_driver_s_answer_that_is_of_no_use_any_more_is_counted_all_the_same(root):
    start(root, auto=True, width=1)
    dies_when(root, "answered", Scripted())
    (root / REF.folder / "topic.md").write_text("fish\n")
    assert project(root).run(REF).exit_code == 0
    session = project(root).session(REF)
    answers = paid(session.folder)
    assert answers[NOTE] == 2, "asked again: it was about something else"
    assert session.ledger.usage.tokens == 110 * answers.total()
    assert session.ledger.of(NOTE).cutoffs == 0


def test_both_answers_of_a_repair_are_counted_when_their_driver_died_after_the_file_was_there(root):
    start(root, auto=True, width=1)
    wrong = ["1 is no letter\n"]

    def dying(request: Request) -> Reply | str:
        return wrong.pop() if wrong and request.action == NOTE else "Yes.\n"

    def doomed() -> None:
        die_at(1, counts=lambda what, path: what == "sync-folder" and path.endswith("round-1/notes"))
        project(root, Scripted(dying)).run(REF)

    assert in_child(doomed) == -signal.SIGKILL
    assert (root / REF.folder / NOTE).exists()
    assert project(root).run(REF).exit_code == 0
    session = project(root).session(REF)
    assert session.ledger.usage.tokens == 110 * 3, "two for the note, one for the end"
