from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rondel.model.snapshot import FrozenSnapshot, Snapshot
from rondel.store import files, snapshot
from rondel.store.snapshot import DiskSnapshot
from rondel.testing.faults import in_child


def put(root: Path, contents: dict[str, bytes]) -> None:
    for path, data in contents.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)


def assert_same(ours: Snapshot, theirs: Snapshot, folders: list[str], paths: list[str]) -> None:
    for folder in folders:
        assert ours.names(folder) == theirs.names(folder), folder
    for path in paths:
        assert ours.exists(path) == theirs.exists(path), path
        assert ours.data(path) == theirs.data(path), path
        assert ours.text(path) == theirs.text(path), path
        assert ours.json(path) == theirs.json(path), path
        assert ours.digest(path) == theirs.digest(path), path
        assert (ours.mtime(path) is None) == (theirs.mtime(path) is None), path


NAMES = st.sampled_from(["a", "b.json", "ü ñ", "x"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
CONTENTS = st.sampled_from([b"", b"{}", b'{"x": [1]}', b"\xff text", b"[" * 3000])


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=st.dictionaries(PATHS, CONTENTS, max_size=6), asked=st.lists(PATHS, max_size=6))
def test_a_folder_on_disk_looks_like_the_same_files_in_memory(
    wanted: dict[str, bytes], asked: list[str], tmp_path_factory: pytest.TempPathFactory
):
    root = tmp_path_factory.mktemp("s")
    contents: dict[str, bytes] = {}
    for path, data in wanted.items():
        if not any(path.startswith(f"{p}/") or p.startswith(f"{path}/") for p in contents):
            contents[path] = data
    put(root, contents)
    ours, theirs = DiskSnapshot(root), FrozenSnapshot(contents)
    assert_same(ours, theirs, ["", *asked], [*contents, *asked])
    assert_same(ours, theirs, ["", *asked], [*contents, *asked])  # and again, from what is known


class Changing(RuleBasedStateMachine):
    """Whatever is written, moved and asked in whatever order: after `forget` it shows what is there.

    The same for `refresh` and what others wrote.
    """

    @initialize()
    def begin(self) -> None:
        self.root = Path(os.environ["RONDEL_TEST_ROOT"]) / os.urandom(6).hex()
        self.root.mkdir()
        self.snapshot = DiskSnapshot(self.root)
        self.known = True

    @rule(path=PATHS, data=CONTENTS)
    def write_ours(self, path: str, data: bytes) -> None:
        if self._put(path, data):
            self.snapshot.forget(path)

    @rule(path=PATHS)
    def remove_ours(self, path: str) -> None:
        if self._remove(path):
            self.snapshot.forget(path)

    @rule(path=PATHS, data=CONTENTS)
    def write_theirs(self, path: str, data: bytes) -> None:
        if self._put(path, data):
            self.snapshot.refresh()

    @rule(path=PATHS)
    def remove_theirs(self, path: str) -> None:
        if self._remove(path):
            self.snapshot.refresh()

    @rule(path=PATHS)
    def ask(self, path: str) -> None:
        fresh = DiskSnapshot(self.root)
        assert_same(self.snapshot, fresh, ["", path], [path])

    @rule(path=PATHS)
    def list_folder(self, path: str) -> None:
        assert self.snapshot.names(path) == DiskSnapshot(self.root).names(path)

    @invariant()
    def shows_what_is_there(self) -> None:
        if hasattr(self, "root"):
            assert self.snapshot.names() == DiskSnapshot(self.root).names()

    def _put(self, path: str, data: bytes) -> bool:
        target = self.root / path
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        except OSError:
            return False
        return True

    def _remove(self, path: str) -> bool:
        target = self.root / path
        if target.is_dir():
            shutil.rmtree(target)
        elif target.exists():
            target.unlink()
        else:
            return False
        return True


def test_after_any_changes_it_shows_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("RONDEL_TEST_ROOT", str(tmp_path))
    case = Changing.TestCase
    case.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
    case().runTest()


def test_what_was_read_is_given_again_without_looking(tmp_path: Path):
    put(tmp_path, {"a/b.json": b'{"x": 1}', "a/c": b""})
    known = DiskSnapshot(tmp_path)
    first = known.json("a/b.json")
    assert known.names("a") == {"b.json", "c"}
    shutil.rmtree(tmp_path / "a")
    assert known.json("a/b.json") is first
    assert known.names("a") == {"b.json", "c"}
    known.refresh()
    assert known.json("a/b.json") is None
    assert known.names("a") == frozenset()


def test_a_refresh_keeps_what_has_not_changed(tmp_path: Path):
    put(tmp_path, {"a.json": b'{"x": 1}', "b.json": b'{"x": 1}'})
    long_ago = time.time() - 60
    for name in ("a.json", "b.json"):
        os.utime(tmp_path / name, (long_ago, long_ago))
    time.sleep(snapshot.RACY_NS / 1e9 + 0.02)  # the time of the last change is no longer the present
    known = DiskSnapshot(tmp_path)
    a, b = known.json("a.json"), known.json("b.json")
    (tmp_path / "b.json").write_text('{"x": 2}')
    known.refresh()
    assert known.json("a.json") is a
    assert known.json("b.json") is not b


def test_a_refresh_sees_a_change_of_the_same_size_in_the_same_instant(tmp_path: Path):
    path = tmp_path / "a"
    for number in range(50):
        path.write_text(f"{number:04}")
        known = DiskSnapshot(tmp_path)
        known.data("a")
        path.write_text(f"{number + 5000:04}")
        known.refresh()
        assert known.text("a") == f"{number + 5000:04}"


def test_a_file_read_in_the_instant_it_was_written_is_read_again_after_a_refresh(tmp_path: Path):
    """Its time may be that of two different states: clocks of file systems tick slowly."""
    (tmp_path / "a").write_bytes(b"x")
    found = (tmp_path / "a").stat()
    written_ns = max(found.st_mtime_ns, found.st_ctime_ns)
    assert snapshot._key(found, written_ns + snapshot.RACY_NS - 1) is None
    assert snapshot._key(found, written_ns + snapshot.RACY_NS) is not None


def test_a_folder_that_was_entered_before_it_was_listed_is_refreshed(tmp_path: Path):
    put(tmp_path, {"a/1": b"x"})
    time.sleep(snapshot.RACY_NS / 1e9 + 0.02)  # the time of the last change is no longer the present
    known = DiskSnapshot(tmp_path)
    assert known.exists("a/1")
    for name in ("2", "3"):
        (tmp_path / "a" / name).touch()
        known.refresh()
        assert name in known.names("a")


def test_what_is_let_go_of_is_read_again(tmp_path: Path):
    put(tmp_path, {"a/b/1": b"x"})
    known = DiskSnapshot(tmp_path, once=True)
    assert known.below("a/b").data("1") == b"x"
    put(tmp_path, {"a/b/1": b"y"})
    assert known.data("a/b/1") == b"x"
    known.let_go("a/b")
    known.let_go("not/there")
    assert known.below("a/b").data("1") == b"y"


def test_a_look_that_was_meant_to_be_the_only_one_can_be_refreshed(tmp_path: Path):
    put(tmp_path, {"a/1": b"x"})
    time.sleep(snapshot.RACY_NS / 1e9 + 0.02)
    known = DiskSnapshot(tmp_path, once=True)
    assert known.names("a") == {"1"}
    (tmp_path / "a/2").touch()
    assert "a/2" in known.refresh()
    assert known.names("a") == {"1", "2"}


def test_a_refresh_of_one_folder_leaves_the_others_alone(tmp_path: Path):
    put(tmp_path, {"a/x": b"1", "b/x": b"1"})
    known = DiskSnapshot(tmp_path)
    assert (known.data("a/x"), known.data("b/x")) == (b"1", b"1")
    put(tmp_path, {"a/x": b"2", "b/x": b"2"})
    known.refresh("a")
    assert (known.data("a/x"), known.data("b/x")) == (b"2", b"1")


def test_forgetting_a_file_does_not_list_its_folder_again(tmp_path: Path):
    put(tmp_path, {"a": b""})
    known = DiskSnapshot(tmp_path)
    known.names()
    put(tmp_path, {"ours": b"", "theirs": b""})
    known.forget("ours")
    assert known.names() == {"a", "ours"}  # a new listing would show theirs too


@pytest.mark.parametrize(
    "path",
    ["../secret", "/etc/passwd", "a/../../secret", "..", ".", "", "a//b", "a/./b", "a\x00b", "\ud800", "~"],
)
def test_no_name_leads_out_or_raises(path: str, tmp_path: Path):
    put(tmp_path, {"secret": b"x", "root/a/b": b"x"})
    known = DiskSnapshot(tmp_path / "root")
    assert known.data(path) is None
    assert known.text(path) is None
    assert known.json(path) is None
    assert known.digest(path) is None
    assert not known.exists(path)
    known.mtime(path)
    if path not in ("", "a//b", "a/./b"):
        assert known.names(path) == frozenset()
    known.forget(path)
    assert known.names() == {"a/"}


def test_links_are_not_there_wherever_they_lead(tmp_path: Path):
    put(tmp_path, {"secret/x": b"x", "root/in/x": b"in"})
    root = tmp_path / "root"
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "out.md").symlink_to(tmp_path / "secret" / "x")
    (root / "near").symlink_to("in")
    (root / "near.md").symlink_to("in/x")
    (root / "loop").symlink_to("loop")
    (root / "itself").symlink_to(".")
    (root / "dangling").symlink_to("nowhere")
    known = DiskSnapshot(root)
    for _ in range(2):
        assert known.data("out/x") is None
        assert known.data("out.md") is None
        assert not known.exists("out.md")
        assert not known.exists("dangling")
        assert known.names("out") == frozenset()
        assert known.data("near/x") is None
        assert known.data("near.md") is None
        assert not known.exists("near.md")
        assert known.names() == {"in/"}
    (root / "near.md").unlink()
    (root / "near.md").symlink_to(tmp_path / "secret" / "x")
    known.refresh()
    assert known.data("near.md") is None


def test_a_folder_that_becomes_a_link_out_is_noticed_by_a_refresh(tmp_path: Path):
    put(tmp_path, {"secret/x": b"secret", "root/a/x": b"ours"})
    known = DiskSnapshot(tmp_path / "root")
    assert known.data("a/x") == b"ours"
    shutil.rmtree(tmp_path / "root" / "a")
    (tmp_path / "root" / "a").symlink_to(tmp_path / "secret")
    known.refresh()
    assert known.data("a/x") is None
    assert known.names() == frozenset()


def test_of_the_files_beside_only_the_named_ones_are_seen(tmp_path: Path):
    put(tmp_path, {"x.json": b"{}", "y.json": b"{}", "x.progress/a": b""})
    known = DiskSnapshot(tmp_path / "x.progress", frozenset({"x.json", "z.json"}))
    assert known.json("../x.json") == {}
    assert known.json("../y.json") is None
    assert known.names("..") == {"x.json"}
    assert known.exists("../x.json")
    assert not known.exists("../y.json")
    assert known.names() == {"a"}
    assert known.data("../x.progress/a") is None
    files.write(tmp_path / "x.json", b"[1]")
    known.forget("../x.json")
    assert known.json("../x.json") == [1]
    files.write(tmp_path / "z.json", b"1")
    known.refresh()
    assert known.names("..") == {"x.json", "z.json"}


def test_names_that_are_no_text_pipes_and_temporary_files_are_not_listed(tmp_path: Path):
    put(tmp_path, {"a": b"", f"{files.TEMP}x": b"", "line\nbreak": b""})
    os.mkfifo(tmp_path / "pipe")
    (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))).write_bytes(b"")
    assert DiskSnapshot(tmp_path).names() == {"a", "line\nbreak"}


def test_a_file_of_more_than_the_limit_counts_as_unreadable(tmp_path: Path):
    with (tmp_path / "big").open("wb") as file:
        file.truncate(files.SIZE_MAX + 1)
    known = DiskSnapshot(tmp_path)
    assert known.exists("big")
    assert known.data("big") is None
    assert known.digest("big") is None


def test_a_large_file_is_read_but_not_kept(tmp_path: Path):
    (tmp_path / "large").write_bytes(b"x" * (snapshot.KEEP_MAX + 1))
    known = DiskSnapshot(tmp_path)
    assert len(known.data("large") or b"") == snapshot.KEEP_MAX + 1
    assert known._file("large").data is None


def test_a_folder_that_is_not_there_is_empty(tmp_path: Path):
    known = DiskSnapshot(tmp_path / "gone")
    assert known.names() == frozenset()
    assert known.data("a") is None
    assert known.mtime("") is None
    put(tmp_path, {"gone/a": b"x"})
    known.refresh()
    assert known.names() == {"a"}


def test_a_relative_folder_stays_the_same_in_another_process(tmp_path: Path):
    def work() -> None:
        os.chdir(tmp_path)
        put(Path("s"), {"a": b"x"})
        assert DiskSnapshot(Path("s")).data("a") == b"x"
        assert DiskSnapshot("s", frozenset({"b"})).names("..") == frozenset()

    assert in_child(work) == 0


def test_refresh_gives_the_paths_that_others_changed_and_no_others(tmp_path):
    (tmp_path / "a").mkdir()
    for name in ("a/one", "a/two", "top"):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, (1, 1))
    known = DiskSnapshot(tmp_path)
    time.sleep(0.15)
    for name in ("a/one", "a/two", "top", "gone/x"):
        known.data(name)
    known.names("a")
    known.names("gone")
    assert known.refresh() == frozenset()
    (tmp_path / "a/one").write_text("yy")
    (tmp_path / "a/three").write_text("z")
    (tmp_path / "top").unlink()
    assert known.refresh() == {"a/one", "a/three", "top"}
    (tmp_path / "gone").mkdir()
    assert "gone/" in known.refresh()


NAMES = ["a", "b", "d/a", "d/b", "e/f/a"]


@settings(max_examples=60, deadline=None)
@given(
    before=st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=3)),
    after=st.dictionaries(st.sampled_from(NAMES), st.binary(max_size=3)),
    asked=st.sets(st.sampled_from(NAMES)),
)
def test_whatever_others_change_refresh_names_it(before, after, asked, tmp_path_factory):
    folder = tmp_path_factory.mktemp("refresh")

    def put(files_: dict[str, bytes]) -> None:
        for path in NAMES:
            if path in files_:
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(files_[path])
            elif (folder / path).exists():
                (folder / path).unlink()

    put(before)
    known = DiskSnapshot(folder)
    for path in asked:
        known.data(path)
    known.refresh()
    for path in asked:
        known.data(path)
    put(after)
    named = known.refresh()
    for path in asked:
        if before.get(path) != after.get(path):
            parents = {
                f"{path[: path.index('/', at)]}/" for at, c in enumerate(path) if c == "/" for at in (at,)
            }
            assert named & {path, *parents}, path
        assert known.data(path) == after.get(path)
