from __future__ import annotations

import json
import threading
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.store.journal import Journal
from rondel.testing.faults import points_of


def _at() -> datetime:
    return datetime(2026, 11, 15, 10, 0, tzinfo=UTC)


def test_an_event_is_one_line_with_time_epoch_and_kind_first(tmp_path: Path):
    journal = Journal(tmp_path / "run" / "journal.jsonl", epoch=3, clock=_at)
    journal.add("finished", action="final.md", tokens=12)
    line = (tmp_path / "run" / "journal.jsonl").read_text()
    assert line == (
        '{"at":"2026-11-15T10:00:00.000+00:00","epoch":3,"kind":"finished","action":"final.md","tokens":12}\n'
    )


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(), max_size=4))
def test_any_text_comes_back_and_never_breaks_a_line(texts: list[str], tmp_path: Path):
    path = tmp_path / "j"
    path.unlink(missing_ok=True)
    journal = Journal(path)
    for text in texts:
        journal.add("said", text=text)
    assert [event["text"] for event in journal.news()] == texts


def test_lines_that_are_no_events_are_skipped(tmp_path: Path):
    path = tmp_path / "j"
    path.write_bytes(b'{"kind":"a"}\nnot json\n[1]\n\xff\xfe\n{"kind":"b"}\n{"kind":"torn')
    journal = Journal(path)
    assert [event["kind"] for event in journal.news()] == ["a", "b"]


def test_a_journal_that_is_not_there_has_no_events(tmp_path: Path):
    assert Journal(tmp_path / "no" / "journal").news() == []


def test_a_torn_line_of_a_dead_driver_is_set_aside_by_the_next_event(tmp_path: Path):
    path = tmp_path / "j"
    path.write_text('{"kind":"a"}\n{"kind":"to')
    journal = Journal(path)
    journal.add("b")
    with path.open("a") as file:
        file.write("torn again")
    journal.add("c")
    assert [event["kind"] for event in journal.news()] == ["a", "b", "c"]
    assert [json.loads(line)["kind"] for line in path.open()] == ["a", "b", "c"]
    assert (tmp_path / "j.torn-1").read_text() == '{"kind":"to'
    assert (tmp_path / "j.torn-2").read_text() == "torn again"


def test_a_journal_deleted_under_the_driver_begins_again(tmp_path: Path):
    path = tmp_path / "j"
    journal = Journal(path)
    journal.add("a")
    path.unlink()
    journal.add("b")
    assert [event["kind"] for event in journal.news()] == ["b"]


def test_an_event_costs_the_same_operations_however_long_the_journal_is(tmp_path: Path):
    journal = Journal(tmp_path / "j")
    journal.add("first")
    short = points_of(lambda: journal.add("one"))
    (tmp_path / "j").write_text("\n".join(json.dumps({"kind": "x"}) for _ in range(5000)) + "\n")
    assert points_of(lambda: journal.add("one")) == short == ["open", "write", "write:half", "sync"]


def test_threads_take_turns(tmp_path: Path):
    journal = Journal(tmp_path / "j")

    def add() -> None:
        for _ in range(50):
            journal.add("x", text="y" * 10_000)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(journal.news()) == len((tmp_path / "j").read_text().splitlines()) == 200


def test_values_that_are_not_json_are_written_as_text(tmp_path: Path):
    journal = Journal(tmp_path / "j")
    journal.add("x", path=Path("/a"), at_time=_at())
    assert journal.news()[0]["path"] == "/a"


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(0, 2), st.booleans())))
def test_everybody_is_told_of_each_event_of_the_others_once_and_in_order(steps, tmp_path: Path):
    path = tmp_path / "j"
    path.unlink(missing_ok=True)
    journals = [Journal(path) for _ in range(3)]
    told = [[event["n"] for event in journal.news()] for journal in journals]
    said: list[list[int]] = [[], [], []]
    for number, (who, adds) in enumerate(steps):
        if adds:
            journals[who].add("said", n=number)
            said[who].append(number)
        else:
            told[who] += [event["n"] for event in journals[who].news()]
    for who, journal in enumerate(journals):
        told[who] += [event["n"] for event in journal.news()]
        assert told[who] == sorted(n for other in range(3) if other != who for n in said[other])
