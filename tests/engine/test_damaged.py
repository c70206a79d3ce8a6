"""A document that is damaged while a driver runs: put aside, put back, said; and the run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from harness import REF, project, repository, start
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small import SmallWorkflow

from rondel.agents.base import Request
from rondel.cli.screen import event_line
from rondel.engine.report import Stopped
from rondel.model.summary import Problem, Status
from rondel.model.workflow import NOTHING_GIVEN
from rondel.project import Project
from rondel.store import documents
from rondel.store.documents import Committed
from rondel.testing.scripted import Scripted, run_of
from support.damage import DAMAGES


@pytest.fixture
def root(tmp_path):
    made = repository(tmp_path / "repo")
    start(made, auto=True, width=1)
    return made


def meddling(root: Path, do: Callable[[Path], object], name: str = "state.json") -> Scripted:
    """An agent that does something to a document, once, before it answers."""
    done: list[bool] = []

    def answer(request: Request) -> str:
        if not done:
            done.append(True)
            do(root / REF.folder / name)
        return f"An answer to {request.action}.\n"

    return Scripted(answer)


@pytest.mark.parametrize("name", ["state.json", ".rondel/request-1.json"])
@pytest.mark.parametrize("how", DAMAGES)
def test_whatever_is_done_to_a_document_it_is_put_back_and_said(root, how, name):
    session = root / REF.folder
    (session / "state.json").write_text('{"theirs": ["kept", 1]}\n')
    agent = meddling(root, DAMAGES[how], name)
    assert project(root, agent).run(REF).exit_code == 0
    assert json.loads((session / "state.json").read_text()) == {
        "theirs": ["kept", 1],
        "phase": "final.md",
        "done": "yes",
    }
    lines = (run_of(session) / "journal.jsonl").read_text().splitlines()
    (said,) = [event for line in lines if (event := json.loads(line))["kind"] == "restored"]
    assert said["file"] == name
    aside = [p for p in (session / ".rondel/aside").glob("*") if ".rondel-tmp-" not in p.name]
    assert [".damaged-1" in p.name for p in aside] == ([] if how == "deleted" else [True])
    assert "put back as it was last known" in event_line("restored", said)
    (problem,) = project(root).summary(REF).problems
    assert problem.rule == "document-restored"
    assert problem.file == name
    assert how == "deleted" or aside[0].name in problem.message
    assert [p.rule for _, p in project(root).doctor()] == ["document-restored"]


def test_a_change_by_hand_that_reads_well_is_the_state_from_then_on(root):
    def by_hand(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text()), "mine": True}))

    assert project(root, meddling(root, by_hand)).run(REF).exit_code == 0
    state = json.loads((root / REF.folder / "state.json").read_text())
    assert state["mine"] is True
    assert state["done"] == "yes"
    assert project(root).summary(REF).problems == ()


def test_what_leaves_a_session_that_nobody_can_go_on_with_is_damage_too(root):
    (root / REF.folder / ".rondel/request-1.json").write_text(json.dumps({"width": 1, "auto": False}))
    topic = root / REF.folder / "topic.json"
    topic.write_text('{"topic": "tea"}\n')

    class Strict(SmallWorkflow):
        def documents(self, state):
            return (*super().documents(state), "topic.json")

        def read(self, files, ref, given=NOTHING_GIVEN):
            found = super().read(files, ref, given)
            known = "topic" in (files.json("topic.json") or {})
            return found if known else replace(found, problems=(Problem("none", "topic.json", "?"),))

    agent = meddling(root, lambda path: path.write_text('{"other": 1}\n'), "topic.json")
    there = Project(root, workflows={"small": Strict()}, build=lambda _: agent)
    assert there.run(REF).stopped is Stopped.WAITING
    assert topic.read_text() == '{"topic": "tea"}\n'
    (problem,) = project(root).summary(REF).problems
    assert "nothing can be read from it" in problem.message


def test_what_was_damaged_before_a_driver_came_stays_as_it_is(root):
    request = root / REF.folder / ".rondel/request-1.json"
    request.write_text("{ not json")
    agent = Scripted()
    report = project(root, agent).run(REF)
    assert report.stopped is Stopped.FAILED
    assert request.read_text() == "{ not json"
    assert project(root).summary(REF).status is Status.DAMAGED
    assert agent.seen == []


def test_the_next_run_says_nothing_of_what_the_one_before_put_back(root):
    project(root, meddling(root, DAMAGES["cut"])).run(REF)
    project(root).run(REF)
    assert project(root).summary(REF).problems == ()
    assert list((root / REF.folder / ".rondel/aside").glob("*.damaged-1")), "it is still there to look at"


def test_a_document_that_is_damaged_before_each_of_our_writes_is_put_back_each_time(root):
    (root / REF.folder / "state.json").write_text("{}")

    class Hostile(SmallWorkflow):
        def begin(self, state, action, at):
            (root / REF.folder / "state.json").write_text("[]")
            return super().begin(state, action, at)

    done = Project(root, workflows={"small": Hostile()}, build=lambda _: Scripted()).run(REF)
    assert done.exit_code == 0
    assert len(list((root / REF.folder / ".rondel/aside").glob("state.json.damaged-*"))) == 4


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200), good=st.dictionaries(st.text(max_size=5), st.integers(), max_size=3))
def test_any_bytes_are_either_a_document_or_put_back(tmp_path, data, good):
    known = Committed(tmp_path)
    before = json.dumps(good).encode()
    path = tmp_path / "state.json"
    path.write_bytes(before)
    known.remember("state.json", before)
    path.write_bytes(data)
    why = known.fault("state.json", data)
    try:
        is_document = isinstance(json.loads(data), dict)
    except (ValueError, RecursionError):
        is_document = False
    assert (why is None) == (is_document and (bool(json.loads(data)) or not good))
    if why is not None:
        done = known.restore("state.json", why)
        assert path.read_bytes() == before
        assert (tmp_path / done.aside).read_bytes() == data


@settings(deadline=None)
@given(
    kept=st.lists(st.binary(max_size=20).filter(lambda b: b"\n" not in b), max_size=5),
    torn=st.binary(max_size=20).filter(lambda b: b"\n" not in b),
    added=st.binary(max_size=20),
)
def test_a_log_may_grow_and_lose_a_torn_line_and_nothing_else(kept, torn, added):
    known = Committed(Path("/nowhere"))
    log = b"".join(line + b"\n" for line in kept)
    known.remember("x.ndjson", log + torn)
    assert known.fault("x.ndjson", log + added) is None
    assert known.fault("x.ndjson", log + torn + added) is None
    if log:
        assert known.fault("x.ndjson", log[:-1]) is not None


def test_what_is_remembered_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "BYTES_MAX", 100)
    known = Committed(tmp_path)
    for number in range(50):
        known.remember(f"{number}.json", b'{"a": 1234}')
        known.remember(f"{number}.json", b'{"a": 12345}')
    assert sum(f"{n}.json" in known for n in range(50)) == 100 // 12
    known.forget("0.json")
    known.remember("new.json", b'{"a": 12345}')
    assert "new.json" in known


def test_a_file_where_a_folder_belongs_is_put_aside_too(tmp_path):
    known = Committed(tmp_path)
    known.remember("a/b/c.json", b"{}")
    (tmp_path / "a").write_text("in the way")
    done = known.restore("a/b/c.json", "it is gone")
    assert (tmp_path / "a/b/c.json").read_bytes() == b"{}"
    assert done.aside == ""
    assert (tmp_path / ".rondel/aside/a.damaged-1").read_text() == "in the way"


def test_a_request_that_appears_while_a_run_goes_on_is_put_aside_and_changes_nothing(root):
    def ask_for_more(path: Path) -> None:
        path.write_text(json.dumps({"width": 5, "rounds_max": 9, "auto": True}))

    agent = meddling(root, ask_for_more, ".rondel/request-2.json")
    assert project(root, agent).run(REF).exit_code == 0
    session = root / REF.folder
    assert not (session / ".rondel/request-2.json").exists()
    (aside,) = (session / ".rondel/aside").glob("*request-2.json.refused-1")
    assert json.loads(aside.read_text())["width"] == 5
    assert '"refused"' in (run_of(session) / "journal.jsonl").read_text()


@pytest.mark.parametrize("name", [".rondel/session.json", ".rondel/request-1.json"])
def test_whose_a_session_is_and_what_it_is_for_do_not_change_while_a_run_goes_on(root, name):
    before = {}

    def change(path: Path) -> None:
        before["text"] = path.read_text()
        path.write_text(json.dumps({**json.loads(before["text"]), "adopted": True, "width": 7}))

    assert project(root, meddling(root, change, name)).run(REF).exit_code == 0
    assert (root / REF.folder / name).read_text() == before["text"]
