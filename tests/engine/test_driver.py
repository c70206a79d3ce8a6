"""What the loop promises: limits, attempts, parking, control, repair, a person's edits."""

from __future__ import annotations

import asyncio
import errno
import json
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from harness import REF, git, project, repository, start

from rondel.agents.base import Beat, Reply, Request
from rondel.engine.report import Stopped
from rondel.errors import RondelError
from rondel.model.changes import text
from rondel.model.names import digest
from rondel.model.outcomes import Ended, Usage
from rondel.model.times import parse_time, stamp
from rondel.store import disk
from rondel.testing.kills import content
from rondel.testing.scripted import Scripted, plain, run_of


@pytest.fixture
def root(tmp_path):
    return repository(tmp_path / "a folder with 'quotes' and spaces")


def configure(root: Path, text: str) -> None:
    (root / "rondel.toml").write_text(text)


def journal(root: Path) -> list[dict]:
    lines = (run_of(root / REF.folder) / "journal.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_a_whole_session_ends_with_its_commit_file(root):
    start(root, auto=True)
    report = project(root).run(REF)
    assert report.stopped is Stopped.COMPLETED
    assert report.exit_code == 0
    assert (root / REF.folder / "final.md").read_text().startswith("An answer")


def test_a_decision_waits_with_status_3_and_nothing_else_runs_meanwhile(root):
    start(root)
    here = project(root)
    report = here.run(REF)
    assert (report.stopped, report.exit_code) == (Stopped.WAITING, 3)
    assert report.details == ("Is round 1 good?",)
    here.decide(REF, "approve")
    assert here.run(REF).exit_code == 0


def test_what_is_done_is_never_asked_for_again(root):
    start(root, auto=True)
    project(root).run(REF)
    agent = Scripted()
    assert project(root, agent).run(REF).exit_code == 0
    assert agent.seen == []


def test_a_missing_file_alone_is_asked_for_again(root):
    start(root)
    project(root).run(REF)
    (root / REF.folder / "round-1/notes/2.md").unlink()
    (root / REF.folder / "round-1/sum.json").unlink()
    agent = Scripted()
    project(root, agent).run(REF)
    assert agent.actions == ["round-1/notes/2.md"]


def test_the_journal_can_be_deleted_and_nothing_is_lost_but_history(root):
    start(root)
    project(root).run(REF)
    before = content(root / REF.folder)
    for name in ("journal.jsonl", "heartbeat.json"):
        (run_of(root / REF.folder) / name).unlink()
    agent = Scripted()
    assert project(root, agent).run(REF).exit_code == 3
    assert agent.seen == []
    assert content(root / REF.folder) == before


def failing(times: int):
    left = {}

    def answer(request: Request) -> Reply | str:
        left.setdefault(request.action, times)
        if left[request.action]:
            left[request.action] -= 1
            return Reply(Ended.FAILED, error="the model is on fire")
        return "Fine after all.\n"

    return answer


def test_a_failed_ask_is_tried_again_up_to_its_limit(root):
    start(root, auto=True)
    agent = Scripted(failing(1))
    assert project(root, agent).run(REF).exit_code == 0
    assert [r.attempt for r in agent.seen if r.action == "final.md"] == [1, 2]


def test_attempts_hold_across_resumes_and_a_person_can_grant_new_ones(root):
    start(root, auto=True, width=1)
    agent = Scripted(failing(3))
    first = project(root, agent).run(REF)
    assert (first.stopped, first.exit_code) == (Stopped.FAILED, 1)
    assert "the model is on fire" in first.message
    assert len(agent.seen) == 2
    assert project(root, agent).run(REF).exit_code == 1
    assert len(agent.seen) == 2, "resuming alone gives no new attempt"
    assert project(root, agent).run(REF, retry=True).exit_code == 1, "the next action has its own attempts"
    assert (root / REF.folder / "round-1/notes/1.md").exists()


def test_one_failure_in_a_fan_out_keeps_the_other_answers(root):
    start(root, auto=True, width=4)

    def answer(request: Request) -> Reply | str:
        if request.action.endswith("/3.md"):
            return Reply(Ended.FAILED, error="no")
        return "Yes.\n"

    agent = Scripted(answer)
    assert project(root, agent).run(REF).exit_code == 1
    good = Scripted()
    assert project(root, good).run(REF, retry=True).exit_code == 0
    assert [r.action for r in good.seen] == ["round-1/notes/3.md", "final.md"]


def test_a_usage_limit_parks_the_action_and_is_no_attempt(root):
    start(root, auto=True, width=1)
    until = datetime.now(UTC) + timedelta(hours=1)
    agent = Scripted(lambda _: Reply(Ended.PARKED, error="limit", until=until))
    for _ in range(4):
        report = project(root, agent).run(REF)
        assert (report.stopped, report.exit_code) == (Stopped.PARKED, 6)
        assert report.until is not None
    assert len(agent.seen) == 1, "a parked action is not asked before its time"


@pytest.mark.parametrize("until", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00", "in 40 days"])
def test_nobody_is_parked_for_longer_than_a_person_would_wait(root, until):
    """A time that is past is none, and one that is too far away is a failure that says so."""
    start(root, auto=True, width=1)
    at = parse_time(until) or datetime.now(UTC) + timedelta(days=40)
    agent = Scripted(lambda _: Reply(Ended.PARKED, error="limit", until=at))
    report = project(root, agent).run(REF)
    if at < datetime.now(UTC):
        assert report.stopped is Stopped.PARKED
        return
    assert (report.stopped, len(agent.seen)) == (Stopped.FAILED, 2)
    assert f"it asked to be parked until {stamp(at)}, and 31 days are the most: limit" in report.message


def test_a_parked_action_goes_on_after_its_time(root):
    start(root, auto=True, width=1)
    until = datetime.now(UTC) + timedelta(seconds=1)
    replies = [Reply(Ended.PARKED, error="limit", until=until)]
    agent = Scripted(lambda _: replies.pop() if replies else "Now.\n")
    assert project(root, agent).run(REF, wait=True).exit_code == 0


def spending(usage: Usage):
    return lambda _: Reply(Ended.DONE, "Costly.\n", usage=usage)


@pytest.mark.parametrize("limit", ["tokens_max = 250", "usd_max = 2.5"])
def test_a_budget_stops_at_a_safe_boundary_and_holds_across_resumes(root, limit):
    start(root, auto=True, width=6)
    configure(root, f"[limits]\nagents_max = 1\n{limit}\n")
    agent = Scripted(spending(Usage(90, 10, 0, 1.0)))
    for _ in range(3):
        report = project(root, agent).run(REF)
        assert (report.stopped, report.exit_code) == (Stopped.LIMIT, 6)
        assert limit.partition(" ")[0] in report.message
    assert len(agent.seen) == 2
    assert len(list((root / REF.folder / "round-1/notes").iterdir())) == 2, "what was paid for is kept"


def test_agents_at_once_cannot_pass_a_budget_together(root):
    start(root, auto=True, width=12)
    configure(root, "[limits]\nagents_max = 8\ntokens_max = 500\n")
    agent = Scripted(spending(Usage(90, 10)), seconds=0.05)
    report = project(root, agent).run(REF)
    assert (report.stopped, len(agent.seen)) == (Stopped.LIMIT, 5)
    assert "tokens_max = 500" in report.message


def test_never_more_agents_at_once_than_allowed(root):
    start(root, auto=True, width=9)
    configure(root, "[limits]\nagents_max = 3\n")
    now, most, lock = 0, 0, threading.Lock()

    class Counting(Scripted):
        async def run(self, request, beat):
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
            try:
                return await super().run(request, beat)
            finally:
                now -= 1

    assert project(root, Counting(seconds=0.05)).run(REF).exit_code == 0
    assert most == 3


def test_a_session_has_a_wall_clock_too(root):
    start(root, auto=True, width=30)
    configure(root, "[limits]\nagents_max = 1\nseconds_max = 0.3\n")
    report = project(root, Scripted(seconds=0.1)).run(REF)
    assert (report.stopped, report.exit_code) == (Stopped.LIMIT, 6)


def test_a_wrong_answer_is_sent_back_once_with_the_exact_words(root):
    start(root, auto=True, width=1)
    replies = ["123 is no letter\n", "Better.\n"]
    agent = Scripted(lambda _: replies.pop(0) if replies else "End.\n")
    assert project(root, agent).run(REF).exit_code == 0
    assert "it does not begin with a letter" in agent.seen[1].prompt
    assert (root / REF.folder / "round-1/notes/1.md").read_text() == "Better.\n"


def test_a_second_wrong_answer_is_no_answer(root):
    start(root, auto=True, width=1)
    agent = Scripted(lambda _: "12345\n")
    report = project(root, agent).run(REF)
    assert report.exit_code == 1
    assert not (root / REF.folder / "round-1/notes/1.md").exists()
    assert len(agent.seen) == 4, "two attempts, each repaired once"


def test_a_repair_goes_on_in_the_vendors_own_session(root):
    start(root, auto=True, width=1)

    def answer(request: Request) -> Reply:
        text = "Good.\n" if request.resume else "1\n"
        return Reply(Ended.DONE, text, vendor_session="v-1")

    agent = Scripted(answer)
    project(root, agent).run(REF)
    assert agent.seen[1].resume == "v-1"
    assert "You answered" not in agent.seen[1].prompt


def test_what_another_terminal_changes_is_seen_before_the_next_action(root):
    """However shortly before: what was noted in the journal is looked for before each action."""
    start(root, auto=True, width=2)

    def answer(request: Request) -> str:
        if request.action.endswith("notes/1.md"):
            project(root).change(REF, [text("round-1/notes/2.md", "Written by hand.")])
        return plain(request)

    agent = Scripted(answer)
    assert project(root, agent).run(REF, agents_max=1).exit_code == 0
    assert agent.actions == ["round-1/notes/1.md", "final.md"]


def in_background(work) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def wait_for(condition, seconds: float = 10) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


@pytest.mark.parametrize(("word", "finished"), [("pause", True), ("stop", False)])
def test_pause_lets_what_is_under_way_finish_and_stop_ends_it(root, word, finished):
    start(root, auto=True, width=4)
    configure(root, "[limits]\nagents_max = 1\n")
    agent = Scripted(seconds=0.4 if finished else 30)
    here = project(root, agent)
    say = in_background(lambda: (wait_for(lambda: agent.seen), getattr(project(root), word)(REF)))
    report = here.run(REF)
    say.join()
    assert (report.stopped, report.exit_code) == (Stopped.PAUSED, 3)
    assert len(agent.seen) == 1, "nothing new was started"
    assert (root / REF.folder / "round-1/notes/1.md").exists() is finished
    assert project(root).summary(REF).status == "paused"
    quick = Scripted()
    assert project(root, quick).run(REF).exit_code == 0
    assert len(quick.seen) == (4 if finished else 5)


def test_what_was_ended_by_us_is_no_attempt(root):
    start(root, auto=True, width=1)
    for _ in range(4):
        agent = Scripted(seconds=30)
        say = in_background(lambda a=agent: (wait_for(lambda: a.seen), project(root).stop(REF)))
        assert project(root, agent).run(REF).exit_code == 3
        say.join()
    assert project(root).run(REF).exit_code == 0


def test_a_person_who_edits_a_file_while_its_answer_comes_keeps_it(root):
    start(root, auto=True, width=1)
    note = root / REF.folder / "round-1/notes/1.md"

    def answer(request: Request) -> str:
        if request.action.endswith("1.md"):
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text("Mine.\n")
        return "Theirs.\n"

    assert project(root, Scripted(answer)).run(REF).exit_code == 0
    assert note.read_text() == "Mine.\n"
    aside = list((root / REF.folder / ".rondel/aside").iterdir())
    assert [p.read_text() for p in aside] == ["Theirs.\n"]
    assert any(e["kind"] == "kept" for e in journal(root))


def test_a_person_who_writes_the_file_themselves_has_done_the_action(root):
    start(root, auto=True, width=2)
    note = root / REF.folder / "round-1/notes/1.md"
    note.parent.mkdir(parents=True)
    note.write_text("Mine.\n")
    agent = Scripted()
    assert project(root, agent).run(REF).exit_code == 0
    assert "round-1/notes/1.md" not in [r.action for r in agent.seen]
    assert note.read_text() == "Mine.\n"


def test_a_field_of_a_document_that_nobody_here_knows_stays(root):
    start(root, auto=True)
    (root / REF.folder / "state.json").write_text('{"zebra": [1, {"a": null}], "phase": "old", "ape": 1.50}')
    project(root).run(REF)
    state = json.loads((root / REF.folder / "state.json").read_text())
    assert list(state)[:3] == ["zebra", "phase", "ape"]
    assert state["zebra"] == [1, {"a": None}]


def test_an_answer_that_cannot_be_written_is_not_lost(root, monkeypatch):
    """The disk says no when the answer comes: the next run takes it from the spool."""
    start(root, auto=True, width=1)

    class Refusing(disk.Disk):
        def rename(self, old: str, new: str) -> None:
            if new.endswith("round-1/notes/1.md"):
                raise PermissionError(errno.EACCES, "no", new)
            super().rename(old, new)

    with monkeypatch.context() as patched:
        patched.setattr(disk, "current", Refusing())
        with pytest.raises(RondelError, match="round-1"):
            project(root, Scripted(lambda _: "Paid for.\n")).run(REF)
    again = Scripted()
    assert project(root, again).run(REF).exit_code == 0
    assert [r.action for r in again.seen] == ["final.md"]
    assert (root / REF.folder / "round-1/notes/1.md").read_text() == "Paid for.\n"


def test_what_it_cost_is_noted_with_every_answer(root):
    start(root, auto=True, width=1)
    project(root, Scripted(spending(Usage(7, 3, 1, 0.5)))).run(REF)
    finished = [e for e in journal(root) if e["kind"] == "finished" and "usage" in e]
    assert [e["usage"]["input_tokens"] for e in finished] == [7, 7]
    assert {e["usage"]["usd"] for e in finished} == {0.5}


def test_the_journal_says_how_a_file_came_about(root):
    start(root, auto=True, width=1)
    configure(root, '[agents.m]\nkind = "mock"\nscript = "x"\nmodel = "large"\n[roles]\ndefault = "m"\n')
    agent = Scripted()
    project(root, agent).run(REF)
    began, ended = (
        next(e for e in journal(root) if e["kind"] == kind and e["action"] == "final.md")
        for kind in ("started", "finished")
    )
    assert (began["agent"], began["model"], began["role"]) == ("m", "large", "small.closer")
    assert set(began["inputs"]) == {"round-1/sum.json"}
    asked = next(r for r in agent.seen if r.action == "final.md")
    assert ended["prompt"] == digest(asked.prompt)
    assert ended["files"] == {"final.md": ended["result"]}
    assert {"usage", "seconds", "at"} <= set(ended)


def test_the_heartbeat_says_who_works_since_when_and_what_it_cost(root):
    start(root, auto=True, width=2)
    configure(root, "[limits]\nagents_max = 1\n")
    found = []

    class Watched(Scripted):
        async def run(self, request, beat):
            beat(Beat(tokens=7, text="reading"))
            if request.action.endswith("2.md"):
                await asyncio.sleep(2.2)
                found.append(project(root).heartbeat(REF))
            return await super().run(request, beat)

    project(root, Watched(spending(Usage(90, 10, 0, 0.5)))).run(REF)
    (row,) = found[0].actions
    assert (row.action, row.agent) == ("round-1/notes/2.md", "manual")
    assert (row.last, row.tokens) == ("reading", 7)
    assert row.elapsed_s >= row.last_output_s > 0
    assert found[0].usage == Usage(90, 10, 0, 0.5)


@pytest.mark.parametrize(
    ("answer", "status", "words"),
    [
        (lambda _: Reply(Ended.WAITING, error="write the answer into x.md"), "waiting", "x.md"),
        (lambda _: Reply(Ended.FAILED, error="no such model"), "failed", "no such model"),
    ],
)
def test_status_says_later_what_the_last_run_could_not_go_on_without(root, answer, status, words):
    start(root, auto=True, width=1)
    project(root, Scripted(answer)).run(REF)
    found = project(root).summary(REF)
    assert found.status == status
    assert words in found.waiting_for
    project(root).run(REF, retry=True)
    assert project(root).summary(REF).status == "completed"


def test_a_pause_is_nothing_to_commit(root):
    start(root)
    project(root).begin(REF)
    git(root, "add", "-A")
    git(root, "commit", "-qm", "a session")
    project(root).pause(REF)
    assert (root / REF.folder / ".rondel/control").exists()
    assert git(root, "status", "--porcelain", "-uall") == ""
