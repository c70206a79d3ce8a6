"""A session of a newer Rondel is shown, and left alone with a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from harness import REF, project, repository, start
from hypothesis import given, settings
from hypothesis import strategies as st

from rondel.errors import NewerFile
from rondel.model.changes import Edit
from rondel.model.summary import Status
from rondel.model.versions import newer
from rondel.store import documents
from rondel.testing.kills import content
from rondel.testing.scripted import Scripted, run_of


@pytest.fixture
def root(tmp_path):
    made = repository(tmp_path / "repo")
    start(made, auto=True, width=1)
    return made


def put(root: Path, name: str, version: object) -> Path:
    path = root / REF.folder / name
    body = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**body, "schema_version": version}))
    return path


@pytest.mark.parametrize("name", ["state.json", ".rondel/request-1.json", ".rondel/session.json"])
def test_a_document_of_a_newer_version_is_neither_driven_nor_written(root, name):
    put(root, name, 2)
    before = content(root / REF.folder)
    agent = Scripted()
    words = rf"{name} is of a newer version .*upgrade Rondel"
    with pytest.raises(NewerFile, match=words):
        project(root, agent).run(REF)
    with pytest.raises(NewerFile, match=words):
        project(root, agent).change(REF, [Edit("state.json", lambda d: {**d, "x": 1})])
    with pytest.raises(NewerFile, match=words):
        project(root, agent).ask_for(REF, {"width": 2})
    with pytest.raises(NewerFile, match=words):
        project(root, agent).pause(REF)
    assert agent.seen == []
    assert content(root / REF.folder) == before
    summary = project(root).summary(REF)
    assert summary.status is Status.DAMAGED
    assert [(p.rule, p.file, p.repair) for p in summary.problems] == [
        ("newer-version", name, "upgrade Rondel")
    ]
    assert [(s, p.rule) for s, p in project(root).doctor(repair=True)] == [(REF.name, "newer-version")]
    assert [s.status for _, s in project(root).survey()] == [Status.DAMAGED]


def test_a_journal_of_a_newer_version_is_not_gone_on_with(root):
    project(root).begin(REF)
    run = run_of(root / REF.folder)
    run.mkdir(exist_ok=True)
    (run / "journal.jsonl").write_text('{"kind": "driver", "schema_version": 2}\n')
    agent = Scripted()
    with pytest.raises(NewerFile, match=r"its journal is of a newer version .*upgrade Rondel"):
        project(root, agent).run(REF)
    assert agent.seen == []
    assert (run / "journal.jsonl").read_text() == '{"kind": "driver", "schema_version": 2}\n'


@pytest.mark.parametrize("version", [1, 0, -1, True, "2", None, 1.5, [3]])
def test_a_version_that_is_known_or_none_stops_nobody(root, version):
    put(root, "state.json", version)
    assert project(root, Scripted()).run(REF).exit_code == 0


def test_a_document_that_becomes_newer_under_a_driver_is_not_written(root):
    seen = []

    def answer(request) -> str:
        seen.append(put(root, "state.json", 7))
        return f"An answer to {request.action}.\n"

    with pytest.raises(NewerFile):
        project(root, Scripted(answer)).run(REF)
    assert json.loads(seen[0].read_text())["schema_version"] == 7


def test_no_edit_touches_a_newer_document(tmp_path):
    path = tmp_path / "permissions.json"
    path.write_text('{"schema_version": 2}')
    with pytest.raises(NewerFile, match="upgrade Rondel"):
        documents.edit(path, lambda d: {**d, "x": 1})
    with pytest.raises(NewerFile, match="upgrade Rondel"):
        documents.load(path)
    assert path.read_text() == '{"schema_version": 2}'


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists), st.integers(1, 5))
def test_only_a_higher_whole_number_is_newer(version, known):
    higher = type(version) is int and version > known
    assert newer({"schema_version": version}, known) == (version if higher else None)
    assert newer(version, known) is None
