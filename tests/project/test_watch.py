"""`Project.watch`: what happens in a session, as events, whoever drives it."""

from __future__ import annotations

import itertools
import json
import threading
import time

import pytest
from harness import REF, project, repository, start

from rondel.agents.base import Reply
from rondel.model.outcomes import Ended
from rondel.model.summary import Status
from rondel.project import (
    ActionFinished,
    ActionStarted,
    Heartbeat,
    Noted,
    RunEnded,
    Stopped,
    Waiting,
    watching,
)
from rondel.testing.scripted import Scripted


@pytest.fixture
def root(tmp_path):
    made = repository(tmp_path / "repo")
    start(made)
    return made


def kinds(events) -> list[str]:
    return [type(event).__name__ for event in events]


def test_a_session_that_nobody_drives_shows_its_history_what_it_waits_for_and_its_end(root):
    here = project(root)
    assert here.run(REF).stopped is Stopped.WAITING
    events = list(here.watch(REF))
    started = [e for e in events if isinstance(e, ActionStarted)]
    finished = [e for e in events if isinstance(e, ActionFinished)]
    assert {e.action for e in started} <= {e.action for e in finished}
    assert all(e.agent for e in started if e.role)
    assert all(e.ended == Ended.DONE and e.files for e in finished)
    assert sum(e.usage.tokens for e in finished) == here.spent(REF).tokens > 0
    *_, waiting, end = events
    assert isinstance(waiting, Waiting)
    assert waiting.path == here.waiting(REF)[0].path
    assert isinstance(end, RunEnded)
    assert (end.summary.status, end.report.stopped) == (Status.WAITING, Stopped.WAITING)


def test_a_run_is_followed_while_it_goes_on(root):
    agent = Scripted(seconds=0.4)
    driver = threading.Thread(target=lambda: project(root, agent).run(REF))
    driver.start()
    seen = []
    for event in project(root).watch(REF, idle_s=20):
        seen.append((type(event), driver.is_alive()))
        if isinstance(event, Heartbeat) and event.actions:
            assert event.actions[0].action
    driver.join()
    assert (ActionStarted, True) in seen, "not only when it was over"
    assert any(kind is Heartbeat for kind, _ in seen)
    assert seen[-1][0] is RunEnded


def test_who_was_cut_off_goes_on_behind_the_last_event_and_sees_nothing_twice(root):
    here = project(root)
    here.run(REF)
    all_events = list(here.watch(REF))
    first = list(itertools.islice(here.watch(REF), 3))
    rest = list(here.watch(REF, after=first[-1].position))
    assert first + rest == all_events
    here.decide(REF, "approve")
    more = list(here.watch(REF, after=all_events[-1].position))
    assert {e.kind for e in more if isinstance(e, Noted)} == {"changed", "decision"}
    assert not any(isinstance(e, ActionStarted) for e in more)
    assert kinds(here.watch(REF, after=None)) == ["RunEnded"]


def test_it_ends_after_its_time_in_any_case(root):
    with project(root).hold(REF):  # somebody has it, and does nothing
        begun = time.monotonic()
        events = list(project(root).watch(REF, seconds=0.5))
        assert 0.5 <= time.monotonic() - begun < 5
    assert RunEnded not in map(type, events)


def test_a_long_journal_is_read_once_and_piece_by_piece(root, monkeypatch):
    here = project(root)
    here.run(REF)
    journal = here.runtime(REF) / "journal.jsonl"
    with journal.open("a") as file:
        for number in range(3000):
            file.write(json.dumps({"at": "2026-11-15T10:00:00Z", "kind": "far", "number": number}) + "\n")
        file.write(
            '{"kind": "far", "long": "' + "x" * 50_000 + '"}\nno event\n{"kind": "last"}\n{"kind": "torn'
        )
    monkeypatch.setattr(watching, "PIECE_MAX", 10_000)
    read = []
    pread = watching.os.pread
    monkeypatch.setattr(watching.os, "pread", lambda fd, n, at: read.append(n) or pread(fd, n, at))
    numbers = [e.fields["number"] for e in here.watch(REF) if isinstance(e, Noted) and "number" in e.fields]
    assert numbers == list(range(3000))
    assert max(read) <= 10_000
    assert sum(read) < 3 * journal.stat().st_size
    (last,) = (e for e in here.watch(REF) if isinstance(e, Noted) and e.kind == "last")
    assert next(here.watch(REF, after=last.position)).position == last.position


def test_a_journal_that_was_begun_anew_is_read_from_its_beginning(root):
    here = project(root)
    here.run(REF)
    events = list(here.watch(REF, after=10_000_000))
    assert kinds(events) == kinds(here.watch(REF))


def test_what_failed_is_an_event_too(root):
    here = project(root, Scripted(lambda _: Reply(Ended.FAILED, error="no network")))
    here.run(REF)
    finished = (e for e in here.watch(REF) if isinstance(e, ActionFinished))
    failed = next(e for e in finished if e.ended != Ended.DONE)
    assert (failed.ended, failed.error) == (Ended.FAILED, "no network")
