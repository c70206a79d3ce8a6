from __future__ import annotations

import json
import multiprocessing
import os
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.errors import DamagedFile, RondelError
from rondel.model import doclog
from rondel.store import documents, locks
from rondel.testing.faults import in_child
from support.lines import read_lines

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.text(), JSON, max_size=8)


def _count_up(path: Path, times: int) -> None:
    for _ in range(times):
        documents.edit(path, lambda d: {**d, "n": d.get("n", 0) + 1}, log=path.parent / "log")


def test_sixteen_processes_with_a_hundred_edits_each_make_sixteen_hundred(tmp_path: Path):
    path = tmp_path / "state.json"
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_count_up, args=(path, 100)) for _ in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 16
    assert documents.load(path) == {"n": 1600}
    log = (tmp_path / "log").read_bytes()
    assert log.count(b"\n") == 1600
    assert doclog.read(log).document == {"n": 1600}
    assert sorted(os.listdir(tmp_path)) == ["log", "state.json"]


def test_threads_do_not_lose_each_others_edits_either(tmp_path: Path):
    threads = [threading.Thread(target=_count_up, args=(tmp_path / "s.json", 25)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert documents.load(tmp_path / "s.json") == {"n": 100}


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=DOCUMENTS, key=st.text(), value=JSON)
def test_fields_nobody_knows_stay_and_so_does_their_order(
    document: documents.Document, key: str, value: documents.Json, tmp_path: Path
):
    path = tmp_path / "state.json"
    path.write_text(json.dumps(document))
    documents.edit(path, lambda d: {**d, key: value})
    found = json.loads(path.read_bytes())
    assert list(found.items()) == list({**document, key: value}.items())
    assert documents.load(path) == found


@pytest.mark.parametrize("text", ["\ud800", "é漢字🎡", 'quotes " and \\ and \x00'])
def test_any_text_comes_back_as_it_was_and_readable_text_is_readable_in_the_file(text: str, tmp_path: Path):
    path = tmp_path / "state.json"
    documents.edit(path, lambda d: {**d, "title": text})
    assert documents.load(path)["title"] == text
    if text.isprintable():
        assert text in path.read_text()


def test_a_document_is_indented_and_ends_in_a_newline(tmp_path: Path):
    documents.edit(tmp_path / "s.json", lambda _: {"a": [1], "ä": None})
    assert (tmp_path / "s.json").read_text() == '{\n  "a": [\n    1\n  ],\n  "ä": null\n}\n'


def test_a_document_that_is_not_changed_is_not_written(tmp_path: Path):
    path = tmp_path / "s.json"
    path.write_text('{"b":1,   "a":2}')
    before = path.stat()
    assert documents.edit(path, lambda d: {**d, "a": 2}) == {"b": 1, "a": 2}
    assert path.stat().st_ino == before.st_ino
    assert os.listdir(tmp_path) == ["s.json"]


@pytest.mark.parametrize("old", [{"a": 1}, {"a": 1.0}, {"a": [1]}])
def test_true_in_place_of_one_is_a_change(old: documents.Document, tmp_path: Path):
    path = tmp_path / "s.json"
    path.write_text(json.dumps(old))
    documents.edit(path, lambda _: {"a": True})
    assert documents.load(path)["a"] is True


def test_a_change_made_in_place_is_seen(tmp_path: Path):
    def change(document: documents.Document) -> documents.Document:
        document["x"] = 1
        return document

    documents.edit(tmp_path / "s.json", change)
    assert documents.load(tmp_path / "s.json") == {"x": 1}


def test_a_change_that_raises_changes_nothing(tmp_path: Path):
    def change(document: documents.Document) -> documents.Document:
        document["x"] = 1
        raise RondelError("no")

    (tmp_path / "s.json").write_text("{}")
    with pytest.raises(RondelError, match="no"):
        documents.edit(tmp_path / "s.json", change)
    assert (tmp_path / "s.json").read_text() == "{}"
    documents.edit(tmp_path / "s.json", lambda d: {**d, "free": "again"})


DAMAGED = [b"", b"{", b"[1]", b"null", b'"x"', b"\xff\xfe\xff", b'{"a": 1} x', b"[" * 100_000, b"1" * 5000]


@pytest.mark.parametrize("data", DAMAGED, ids=lambda d: repr(d[:10]))
def test_a_damaged_document_is_named_and_never_overwritten(data: bytes, tmp_path: Path):
    path = tmp_path / "s.json"
    path.write_bytes(data)
    with pytest.raises(DamagedFile, match=r"s\.json"):
        documents.load(path)
    with pytest.raises(DamagedFile, match=r"s\.json.*fix it, or move it away"):
        documents.edit(path, lambda _: {"x": 1}, log=tmp_path / "log")
    assert path.read_bytes() == data
    assert os.listdir(tmp_path) == ["s.json"]


def test_no_document_is_an_empty_one(tmp_path: Path):
    assert documents.load(tmp_path / "s.json") == {}
    documents.edit(tmp_path / "s.json", lambda d: d)
    assert os.listdir(tmp_path) == []


def test_the_log_ends_with_what_the_document_shows_and_has_each_state_once_after_a_crash(tmp_path: Path):
    path, log = tmp_path / "s.json", tmp_path / "log"
    documents.edit(path, lambda d: {**d, "x": 1}, log=log)
    path.unlink()  # as if the driver had died between the log and the document
    documents.edit(path, lambda d: {**d, "x": 1}, log=log)
    documents.edit(path, lambda d: {**d, "x": 2}, log=log)
    assert doclog.read(log.read_bytes()).document == {"x": 2}
    assert len(read_lines(log)) == 2


def test_what_a_person_changed_by_hand_gets_into_the_log_with_the_next_edit(tmp_path: Path):
    path, log = tmp_path / "s.json", tmp_path / "log"
    documents.edit(path, lambda d: {**d, "x": 1}, log=log)
    path.write_text('{"x": 5}')
    documents.edit(path, lambda d: d, log=log)
    assert path.read_text() == '{"x": 5}'
    assert doclog.read(log.read_bytes()).document == {"x": 5}


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states=st.lists(DOCUMENTS, min_size=1, max_size=5))
def test_the_log_gives_back_every_document(states: list[documents.Document], tmp_path: Path):
    path, log = tmp_path / "s.json", tmp_path / "log"
    for number, state in enumerate(states):
        documents.edit(path, lambda _, new={**state, "number": number}: new, log=log)
        assert doclog.sha(doclog.read(log.read_bytes()).document) == doclog.sha(documents.load(path))


def test_a_thread_may_edit_in_a_folder_it_has_locked(tmp_path: Path):
    with documents.locked(tmp_path), documents.locked(tmp_path):
        documents.edit(tmp_path / "a.json", lambda d: {**d, "x": 1})
        documents.edit(tmp_path / "b.json", lambda d: {**d, "x": 1})
    assert sorted(os.listdir(tmp_path)) == ["a.json", "b.json"]


def test_a_folder_kept_locked_is_an_error_that_says_so_and_not_a_hang(tmp_path: Path):
    def other() -> None:
        with (
            pytest.raises(RondelError, match="locked by another process"),
            locks.locked(tmp_path, wait_s=0.05),
        ):
            pass

    with documents.locked(tmp_path):
        assert in_child(other) == 0
    assert in_child(lambda: _count_up(tmp_path / "s.json", 1)) == 0


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path):
    read_end, write_end = os.pipe()
    with documents.locked(tmp_path):
        pid = os.fork()
        if pid == 0:
            os.read(read_end, 1)  # alive until the parent says so
            os._exit(0)
    try:
        with locks.locked(tmp_path, wait_s=0.05):
            pass
    finally:
        os.write(write_end, b"x")
        os.waitpid(pid, 0)
        os.close(read_end)
        os.close(write_end)
