"""Whatever stands where one of our own belongs is put aside, said, and the session goes on."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
from harness import REF, project, repository, start
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.agents.base import Request
from rondel.engine.report import Report, Stopped
from rondel.errors import DamagedFile, RondelError
from rondel.store import disk
from rondel.store.journal import Journal
from rondel.testing.faults import in_child
from rondel.testing.kills import timeless
from rondel.testing.scripted import Scripted, run_of
from support.damage import SWEEP
from support.in_the_way import FOLDERS as OWN_FOLDERS
from support.in_the_way import (
    KINDS,
    OURS,
    is_found,
    is_in_the_way,
    is_untouched,
    put,
    spot,
    without_privileges,
)
from support.words import HastyDisk

DOCUMENTS = ("state.json", "log.txt", "round-1", "round-1/notes", "round-1/sum.json", "look.json", "final.md")
FOLDERS = ("round-1", "round-1/notes")
CASES = [
    *((path, kind) for path in OURS for kind in KINDS),
    *((path, kind) for path in DOCUMENTS for kind in ("folder with a file", "broken link", "pipe")),
    ("state.json", "file"),
]
UNKNOWN = (".rondel", ".rondel/request-1.json")  # at rest nobody knows what was asked for


LOGS = ("RUN/journal.jsonl", ".rondel/written.jsonl")


@pytest.fixture(autouse=True)
def _hasty(monkeypatch):
    monkeypatch.setattr(disk, "current", HastyDisk())


@pytest.fixture(scope="module")
def fresh(tmp_path_factory):
    made = repository(tmp_path_factory.mktemp("fresh"))
    start(made, width=2)
    return made


@pytest.fixture
def root(fresh, tmp_path):
    return shutil.copytree(fresh, tmp_path / "repo")


def shown(root: Path) -> dict[str, bytes]:
    session = root / REF.folder
    names = [p for p in session.rglob("*") if p.is_file() and ".rondel" not in p.parts]
    return timeless({str(p.relative_to(session)): p.read_bytes() for p in names})


def driven(root: Path, agent: Scripted, *, retry: bool = False) -> Report:
    """To the decision, and to the end."""
    report = project(root, agent).run(REF, retry=retry)
    if project(root).waiting(REF):
        project(root).decide(REF, "approve")
        report = project(root, agent).run(REF, retry=retry)
    return report


@pytest.fixture(scope="module")
def calm(fresh, tmp_path_factory):
    made = shutil.copytree(fresh, tmp_path_factory.mktemp("calm") / "repo")
    assert driven(made, Scripted()).exit_code == 0
    return shown(made)


@pytest.mark.parametrize(("path", "kind"), CASES)
def test_while_a_driver_runs_it_ends_as_if_nothing_had_happened(root, tmp_path, calm, path, kind):
    session, outside = root / REF.folder, tmp_path / "outside"
    done: list[str] = []

    def answer(request: Request) -> str:
        if request.action.endswith("notes/2.md") and not done:
            done.append(path)
            put(spot(session, path), kind, outside)
        return f"An answer to {request.action}.\n"

    report = driven(root, Scripted(answer))
    assert done
    if (path, kind) == (".rondel/control", "file"):  # a word that nobody can read means pause
        assert report.stopped is Stopped.PAUSED
        return
    assert report.exit_code == 0, report
    assert shown(root).items() >= (calm if path not in DOCUMENTS else {}).items()
    assert is_untouched(outside)
    if is_in_the_way(path, kind, FOLDERS):
        assert is_found(session, path, kind, outside)


@pytest.mark.parametrize(("path", "kind"), CASES)
def test_at_rest_the_next_run_ends_as_if_nothing_had_happened(root, tmp_path, calm, path, kind):
    session, outside = root / REF.folder, tmp_path / "outside"
    assert project(root).run(REF).exit_code == 3
    put(spot(session, path), kind, outside)
    project(root).summary(REF)
    if (path, kind) == ("state.json", "file"):  # a document that nobody can read is not ours to replace
        with pytest.raises(DamagedFile):
            driven(root, Scripted())
        return
    report = driven(root, Scripted())
    assert is_untouched(outside)
    if path in UNKNOWN:
        assert report.exit_code == 1
        assert "request-1.json" in report.message
    else:
        assert report.exit_code == 0, report
        assert shown(root).items() >= (calm if path not in DOCUMENTS else {}).items()
    if is_in_the_way(path, kind, FOLDERS):
        assert is_found(session, path, kind, outside)


UNREADABLE = [path for path in (*OURS, *DOCUMENTS) if path not in {*OWN_FOLDERS, *FOLDERS}]


@pytest.mark.parametrize("path", UNREADABLE)
def test_while_a_driver_runs_a_file_that_may_not_be_read_is_put_back(root, tmp_path, calm, path):
    session = root / REF.folder

    def answer(request: Request) -> str:
        place = spot(session, path)
        if request.action.endswith("notes/2.md") and place.is_file():
            place.chmod(0)
        return f"An answer to {request.action}.\n"

    with without_privileges():
        report = driven(root, Scripted(answer))
    assert report.exit_code == 0, report
    for one in (*session.rglob("*"), *run_of(session).rglob("*")):
        one.chmod(0o700)
    assert shown(root).items() >= calm.items()


@pytest.mark.parametrize("path", UNREADABLE)
def test_at_rest_a_file_that_may_not_be_read_is_named_and_left_alone(root, calm, path):
    assert project(root).run(REF).exit_code == 3
    place = spot(root / REF.folder, path)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.touch()
    before = place.read_bytes()
    place.chmod(0)
    with without_privileges():
        try:
            project(root).summary(REF)
            report = driven(root, Scripted())
        except RondelError as error:
            said = str(error)
        else:
            said = report.message
            assert report.exit_code in (0, 1, 3), report
            if report.exit_code == 0:
                return
    assert path.removeprefix("RUN/") in said, said
    assert place.read_bytes() == before
    place.chmod(0o600)
    assert driven(root, Scripted()).exit_code == 0
    assert shown(root).items() >= calm.items()


@pytest.mark.parametrize("path", ["RUN/journal.jsonl", "RUN", ".rondel/written.jsonl", ".rondel"])
def test_what_a_driver_knows_of_its_logs_is_there_again(root, path):
    session = root / REF.folder
    before: list[bytes] = []

    def answer(request: Request) -> str:
        if request.action.endswith("notes/2.md") and not before:
            before.extend(spot(session, log).read_bytes() for log in LOGS)
            put(spot(session, path), "empty folder", root)
        return f"An answer to {request.action}.\n"

    assert driven(root, Scripted(answer)).exit_code == 0
    for log, known in zip(LOGS, before, strict=True):
        assert spot(session, log).read_bytes().startswith(known)


@pytest.mark.parametrize("kind", ["broken link", "link to an outside folder", "pipe"])
@pytest.mark.parametrize("name", ["prompt.md", "reply.json", "reply.json.tmp"])
def test_what_stands_in_a_spool_is_put_aside(root, tmp_path, calm, name, kind):
    session, outside = root / REF.folder, tmp_path / "outside"
    begun = Scripted(lambda _: os._exit(9))
    assert in_child(lambda: driven(root, begun)) == 9
    (spool,) = (run_of(session) / "spool").glob("*1.md*/1")
    path = f"RUN/{spool.relative_to(run_of(session))}/{name}"
    put(spot(session, path), kind, outside)
    assert driven(root, Scripted()).exit_code == 0
    assert shown(root).items() >= calm.items()
    assert is_found(session, path, kind, outside)
    assert is_untouched(outside)


def test_what_somebody_noted_in_a_log_that_was_gone_is_kept(tmp_path):
    path = tmp_path / ".rondel/journal.jsonl"
    driver, person = Journal(path), Journal(path)
    driver.news()
    driver.keep()
    driver.add("started")
    path.unlink()
    person.add("changed")
    assert [event["kind"] for event in driver.news()] == ["changed"]
    driver.add("finished")
    kinds = [json.loads(line)["kind"] for line in path.read_text().splitlines()]
    assert kinds == ["started", "changed", "finished"]


def test_it_is_said_in_the_view_in_the_journal_and_in_status(root, tmp_path):
    session = root / REF.folder

    def answer(request: Request) -> str:
        if request.action.endswith("notes/2.md"):
            put(run_of(session) / "lease", "folder with a file", tmp_path)
        return f"An answer to {request.action}.\n"

    assert project(root, Scripted(answer)).run(REF).exit_code == 3
    (problem,) = project(root).summary(REF).problems
    assert (problem.rule, problem.file) == ("document-restored", ".rondel/lease")
    assert "a folder was there" in problem.message
    assert ".rondel/aside/.rondel__lease.damaged-1" in problem.message
    events = map(json.loads, (run_of(session) / "journal.jsonl").read_text().splitlines())
    assert [e["file"] for e in events if e["kind"] == "restored"] == [".rondel/lease"]


@settings(max_examples=400 if SWEEP else 25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    damages=st.lists(
        st.tuples(
            st.sampled_from([*OURS, *DOCUMENTS, ".rondel/request-2.json", ".rondel/decisions/round-1.json"]),
            st.sampled_from([*KINDS, "gone"]),
            st.integers(0, 3),  # before a run, or while the first, second or third is asked
        ),
        min_size=3,
        max_size=5,
    )
)
def test_whatever_is_damaged_a_run_ends_completed_or_with_words(fresh, tmp_path_factory, damages):
    """And once nobody damages it any more it is completed, if anybody still knows what was asked for."""
    folder = tmp_path_factory.mktemp("damaged")
    root, outside = shutil.copytree(fresh, folder / "repo"), folder / "outside"
    session = root / REF.folder
    asked: list[str] = []

    def strike(now: int) -> None:
        for path, kind, when in damages:
            led_out = any((session / one).is_symlink() for one in Path(path).parents)
            if when == now and not led_out:
                with suppress(OSError):  # something else that is damaged stands in the way of this one
                    put(spot(session, path), kind, outside)

    def answer(request: Request) -> str:
        asked.append(request.action)
        strike(len(asked))
        return f"An answer to {request.action}.\n"

    project(root).begin(REF, new=True)
    strike(0)
    at_rest = {(path, kind) for path, kind, when in damages if when == 0}
    # A person must mend a document that nobody can read, and that nobody knew before.
    with suppress(DamagedFile) if ("state.json", "file") in at_rest else nullcontext():
        assert driven(root, Scripted(answer)).message
        last = driven(root, Scripted(), retry=True)  # as the command after `next:` does
        is_unknown = "request-1.json: it is not there" in last.message
        assert is_unknown or last.stopped is Stopped.COMPLETED, last
        assert not is_unknown or any(path in UNKNOWN for path, _ in at_rest)
    project(root).summary(REF)
    assert is_untouched(outside)
