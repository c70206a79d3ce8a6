"""The process dies at every single point of every operation: nothing is half done for anybody to see."""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.model.changes import Append, Aside, Change, Edit, Write
from rondel.store import documents, files, logs
from rondel.store.changes import write_changes
from rondel.store.journal import Journal
from rondel.store.lease import Lease, holder
from rondel.store.snapshot import DiskSnapshot
from rondel.testing.faults import in_child, killed_at, points_of

Tree = dict[str, bytes]


def tree(folder: Path) -> Tree:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def state(folder: Path) -> Tree:
    """What a reader takes for state: everything but temporary files."""
    return {path: data for path, data in tree(folder).items() if files.TEMP not in path}


@dataclass(frozen=True)
class Case:
    before: Tree
    work: Callable[[Path], object]

    def prepare(self, folder: Path) -> Path:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for path, data in self.before.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        return folder


BIG = b"new " * 5000
CASES = {
    "a new file": Case({}, lambda f: files.write(f / "a", BIG)),
    "a replaced file": Case({"a": b"old"}, lambda f: files.write(f / "a", BIG)),
    "a first line": Case({}, lambda f: logs.append_line(f / "log", "line", again=False)),
    "a further line": Case({"log": b"one\n"}, lambda f: logs.append_line(f / "log", "two", again=False)),
    "a document": Case(
        {"s.json": b'{"x": 1}'},
        lambda f: documents.edit(f / "s.json", lambda d: {**d, "y": 2}, log=f / "deep" / "s.ndjson"),
    ),
    "a file moved aside": Case({"a": b"draft"}, lambda f: write_changes(f, [Aside("a", "old/a")])),
    "a folder moved aside": Case({"a/b": b"draft"}, lambda f: write_changes(f, [Aside("a", "a.old")])),
    "the changes of an action": Case(
        {"state.json": b'{"phase": 1}', "spec.md": b"draft 1"},
        lambda f: write_changes(
            f,
            [
                Aside("spec.md", "spec.rejected-1.md"),
                Write("spec.md", b"draft 2"),
                Append("timeline.md", "one"),
                Append("timeline.md", "two"),
                Write(".rondel/parts/deep/er/review.json", b"{}"),
                Edit("state.json", lambda d: {**d, "phase": 2}, log="coordination/state.ndjson"),
            ],
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_kill_at_any_point_leaves_old_or_new_and_going_on_ends_where_no_kill_would(
    name: str, tmp_path: Path
):
    case = CASES[name]
    undisturbed = case.prepare(tmp_path / "undisturbed")
    case.work(undisturbed)
    goal = tree(undisturbed)
    for number in itertools.count(1):
        folder = case.prepare(tmp_path / "killed")
        died = killed_at(number, lambda: case.work(folder))  # noqa: B023 - carried out before the next turn
        for path, data in state(folder).items():
            whole = data in (case.before.get(path), goal.get(path))
            assert whole or _is_torn_log(path, data, goal), f"{path} after point {number}"
        assert in_child(lambda: case.work(folder)) == 0  # noqa: B023
        left = {p: d for p, d in tree(folder).items() if ".torn-" not in p}
        assert left == goal, f"after point {number}"
        if not died:
            break
    assert number > 2


LOGS = ("log", "timeline.md", "deep/s.ndjson", "coordination/state.ndjson")


def _is_torn_log(path: str, data: bytes, goal: Tree) -> bool:
    return path in LOGS and goal[path].startswith(data)


def test_every_operation_is_a_fault_point_with_a_half_way_for_bytes(tmp_path: Path):
    case = CASES["the changes of an action"]
    passed = set(points_of(lambda: case.work(case.prepare(tmp_path / "x"))))
    assert passed >= {
        "create",
        "open",
        "write",
        "write:half",
        "sync",
        "sync-folder",
        "rename",
        "link",
        "unlink",
        "mkdir",
    }


def test_a_kill_anywhere_while_a_folder_is_claimed_never_gives_it_to_two(tmp_path: Path):
    for number in itertools.count(1):
        parent = tmp_path / f"p{number}"
        died = killed_at(number, lambda: files.claim_folder(parent, ["x", "x-2"]))  # noqa: B023
        second = files.claim_folder(parent, ["x", "x-2"])
        assert sorted(os.listdir(parent)) == (["x"] if second.name == "x" else ["x", "x-2"])
        if not died:
            assert second.name == "x-2"
            break


def test_a_kill_anywhere_while_the_lease_is_taken_leaves_it_free_and_the_epoch_growing(tmp_path: Path):
    run = tmp_path / ".rondel" / "run"
    last = 0
    for number in itertools.count(1):
        died = killed_at(number, lambda: Lease.take(run, "review:x"))
        assert holder(run) is None
        with Lease.take(run, "review:x") as lease:
            assert lease.epoch > last
            last = lease.epoch
        assert [n for n in os.listdir(run) if n.startswith(files.TEMP)] == []
        if not died:
            break


def test_a_kill_anywhere_in_the_journal_loses_at_most_the_event_under_way(tmp_path: Path):
    for number in itertools.count(1):
        path = tmp_path / f"{number}" / "journal.jsonl"
        Journal(path).add("first")

        def add(path: Path = path) -> None:
            journal = Journal(path)
            journal.add("second")
            journal.add("third")

        died = killed_at(number, add)
        journal = Journal(path)
        journal.add("last")
        kinds = [event["kind"] for event in journal.news()]
        assert kinds in (["first", "last"], ["first", "second", "last"], ["first", "second", "third", "last"])
        assert [json.loads(line)["kind"] for line in path.open()] == kinds
        if not died:
            break


def test_a_temporary_file_is_never_seen_as_state(tmp_path: Path):
    for number in itertools.count(1):
        folder = tmp_path / f"{number}"
        folder.mkdir()
        died = killed_at(number, lambda: files.write(folder / "a", BIG))  # noqa: B023
        assert DiskSnapshot(folder).names() <= {"a"}
        if not died:
            break


PATHS = st.sampled_from(["a.md", "b/c.md", "b/d/e.json", ".rondel/parts/a.md", "log.txt"])
LINES = st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20)


def _set(key: str, value: int) -> Callable[[documents.Document], documents.Document]:
    return lambda document: {**document, key: value}


@st.composite
def lists_of_changes(draw: st.DrawFn) -> list[Change]:
    """What a workflow may ask for: whole files, some lines to a log, a file aside, a document last."""
    changes: list[Change] = [
        Write(path, data)
        for path, data in draw(st.dictionaries(PATHS, st.binary(max_size=300), max_size=3)).items()
    ]
    changes += [Append("changes.log", line) for line in draw(st.lists(LINES, max_size=3))]
    if draw(st.booleans()):
        changes.insert(0, Aside("draft.md", "draft.rejected-1.md"))
    changes.append(Edit("state.json", _set("phase", draw(st.integers(2, 9))), log="state.ndjson"))
    return changes


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=lists_of_changes(), points=st.lists(st.integers(1, 60), max_size=5), data=st.data())
def test_any_changes_killed_anywhere_any_number_of_times_end_where_no_kill_would(
    changes: list[Change], points: list[int], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
):
    root = tmp_path_factory.mktemp("kills")
    case = Case(
        {"draft.md": b"first", "state.json": json.dumps({"phase": 1, "ours": [1]}).encode()}, lambda _: None
    )
    goal, folder = case.prepare(root / "goal"), case.prepare(root / "killed")
    write_changes(goal, changes)
    for number in points:
        killed_at(number, lambda: write_changes(folder, changes))
    assert in_child(lambda: write_changes(folder, changes)) == 0
    assert {p: d for p, d in tree(folder).items() if ".torn-" not in p} == tree(goal)
