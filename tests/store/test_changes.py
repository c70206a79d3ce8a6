from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.errors import DamagedFile, LostLease, RondelError, UnsafePath
from rondel.model.changes import Append, Aside, Change, Edit, Write
from rondel.store import files, ours
from rondel.store.changes import write_changes
from support.lines import read_lines


def test_changes_are_carried_out_in_order_with_the_folders_they_need(tmp_path: Path):
    write_changes(
        tmp_path,
        [
            Write("a/b/c.md", b"one"),
            Aside("a/b/c.md", "old/c.md"),
            Write("a/b/c.md", b"two"),
            Append("logs/x.log", "line"),
            Edit("state.json", lambda d: {**d, "done": True}),
        ],
    )
    assert (tmp_path / "old/c.md").read_text() == "one"
    assert (tmp_path / "a/b/c.md").read_text() == "two"
    assert read_lines(tmp_path / "logs/x.log") == ["line"]
    assert (tmp_path / "state.json").read_text() == '{\n  "done": true\n}\n'


def test_whoever_carries_them_out_hears_what_was_touched(tmp_path: Path):
    heard: list[tuple[str, bytes | None]] = []
    write_changes(
        tmp_path,
        [
            Write("a", b"one"),
            Append("log", "x"),
            Edit("s.json", lambda d: {**d, "x": 1}, log="s.log"),
            Aside("a", "b"),
        ],
        after=lambda path, data: heard.append((path, data)),
    )
    assert heard == [
        ("a", b"one"),
        ("log", None),
        ("s.json", b'{\n  "x": 1\n}\n'),
        ("s.log", None),
        ("a", None),
        ("b", None),
    ]


def test_a_lost_lease_stops_before_the_next_change(tmp_path: Path):
    allowed = iter([True, True, False])

    def guard() -> None:
        if not next(allowed):
            raise LostLease("gone")

    with pytest.raises(LostLease):
        write_changes(tmp_path, [Write(name, b"") for name in "abc"], guard=guard)
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


OUT = ["../x", "/etc/x", "a/../../x", "", ".", "..", "a//b", "~/x", "C:\\x", "a\nb"]


@pytest.mark.parametrize("path", OUT)
@pytest.mark.parametrize("kind", ["write", "append", "edit", "log", "aside", "to"])
def test_no_change_leaves_the_session_folder(path: str, kind: str, tmp_path: Path):
    session = tmp_path / "session"
    session.mkdir()
    (session / "here").write_bytes(b"x")
    change: Change = {
        "write": Write(path, b""),
        "append": Append(path, ""),
        "edit": Edit(path, lambda d: {**d, "x": 1}),
        "log": Edit("s.json", lambda d: {**d, "x": 1}, log=path),
        "aside": Aside(path, "there"),
        "to": Aside("here", path),
    }[kind]
    with pytest.raises(UnsafePath):
        write_changes(session, [change])
    assert os.listdir(tmp_path) == ["session"]
    assert os.listdir(session) == ["here"]


def test_no_change_goes_through_a_link_out(tmp_path: Path):
    session = tmp_path / "session"
    (tmp_path / "elsewhere").mkdir()
    session.mkdir()
    (session / "out").symlink_to(tmp_path / "elsewhere")
    (session / "out.json").symlink_to(tmp_path / "elsewhere" / "new.json")
    for change in (
        Write("out/a", b""),
        Append("out/a", ""),
        Edit("out.json", lambda d: {**d, "x": 1}),
        Write("out.json", b""),
    ):
        write_changes(session, [change])
    assert os.listdir(tmp_path / "elsewhere") == []
    kept = session / ".rondel/aside"
    assert os.readlink(kept / "out.damaged-1") == str(tmp_path / "elsewhere")
    assert os.readlink(kept / "out.json.damaged-1") == str(tmp_path / "elsewhere" / "new.json")
    assert (session / "out.json").read_bytes() == b""


def test_a_link_from_one_document_to_another_is_put_aside(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "notes").symlink_to("real")
    write_changes(tmp_path, [Write("notes/a.md", b"a")])
    assert os.listdir(tmp_path / "real") == []
    assert (tmp_path / "notes/a.md").read_bytes() == b"a"
    assert os.readlink(tmp_path / ".rondel/aside/notes.damaged-1") == "real"


def test_the_files_beside_a_session_belong_to_it(tmp_path: Path):
    session = tmp_path / "x.progress"
    session.mkdir()
    write_changes(session, [Edit("../x.json", lambda d: {**d, "x": 1})], beside=frozenset({"x.json"}))
    assert sorted(os.listdir(tmp_path)) == ["x.json", "x.progress"]


def test_runtime_state_is_kept_out_of_git_from_the_first_file_on(tmp_path: Path):
    write_changes(tmp_path, [Write("spec.md", b"")])
    assert not (tmp_path / ".rondel").exists()
    write_changes(tmp_path, [Write(".rondel/request-1.json", b"{}")])
    assert (tmp_path / ".rondel" / ".gitignore").read_bytes() == ours.IGNORED


def test_a_damaged_document_stops_the_changes_before_it_is_touched(tmp_path: Path):
    (tmp_path / "s.json").write_text("{")
    with pytest.raises(DamagedFile):
        write_changes(tmp_path, [Write("a", b""), Edit("s.json", lambda d: {**d, "x": 1}), Write("b", b"")])
    assert sorted(os.listdir(tmp_path)) == ["a", "s.json"]
    assert (tmp_path / "s.json").read_text() == "{"


def test_an_aside_that_would_hide_another_file_leaves_both(tmp_path: Path):
    files.write(tmp_path / "a", b"a")
    files.write(tmp_path / "b", b"b")
    write_changes(tmp_path, [Aside("a", "b")])
    assert (tmp_path / "a").read_bytes() == b"a"
    assert (tmp_path / "b").read_bytes() == b"b"


NAMES = st.sampled_from(["a", "b", "c/d"])
LINES = st.sampled_from(["one", "two", ""])
CHANGES = st.lists(
    st.builds(Write, NAMES, st.binary(max_size=20))
    | st.builds(Append, st.sampled_from(["log", "c/log"]), LINES)
    | st.builds(lambda n: Edit("s.json", lambda d: {**d, "n": n}), st.integers(0, 3)),
    max_size=6,
)


@settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=CHANGES)
def test_carried_out_twice_is_carried_out_once(
    changes: list[Change], tmp_path_factory: pytest.TempPathFactory
):
    folder = tmp_path_factory.mktemp("twice")
    found = []
    for _ in range(2):
        write_changes(folder, changes)
        found.append({str(p): p.read_bytes() for p in folder.rglob("*") if p.is_file()})
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "changes",
    [
        [Write("a", b"draft"), Aside("a", "b")],
        [Aside("old", "b"), Write("old", b"new")],
        [Aside("old", "b"), Write("old", b"old")],
        [Write("a", b"1"), Aside("a", "b"), Write("a", b"2")],
    ],
)
def test_moving_aside_and_writing_carried_out_twice_is_carried_out_once(
    changes: list[Change], tmp_path: Path
):
    files.write(tmp_path / "old", b"old")
    found = []
    for _ in range(2):
        write_changes(tmp_path, changes)
        found.append({p.name: p.read_bytes() for p in tmp_path.iterdir()})
    assert found[0] == found[1]


def test_a_line_with_a_break_is_refused_with_its_log_named(tmp_path: Path):
    with pytest.raises(RondelError, match=r"x\.log.*line break"):
        write_changes(tmp_path, [Append("x.log", "a\nb")])
