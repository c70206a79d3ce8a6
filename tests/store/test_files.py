from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.errors import RondelError, UnsafePath
from rondel.model.names import is_safe_name
from rondel.store import disk, files, locks, logs
from rondel.testing.faults import in_child, killed_at, points_of
from support.lines import read_lines

NO_FIXTURE_CHECK = [HealthCheck.function_scoped_fixture]


# whole files


@settings(deadline=None, max_examples=30, suppress_health_check=NO_FIXTURE_CHECK)
@given(old=st.none() | st.binary(max_size=5000), new=st.binary(max_size=5000))
def test_a_file_holds_exactly_what_was_written(old: bytes | None, new: bytes, tmp_path: Path):
    path = tmp_path / "a"
    path.unlink(missing_ok=True)
    if old is not None:
        path.write_bytes(old)
    files.write(path, new)
    assert path.read_bytes() == new
    assert os.listdir(tmp_path) == ["a"]


def test_a_reader_never_sees_a_part(tmp_path: Path):
    path = tmp_path / "a"
    versions = [bytes([n]) * 50_000 for n in range(20)]
    files.write(path, versions[0])
    done = threading.Event()
    seen = set()

    def watch() -> None:
        while not done.is_set():
            seen.add(path.read_bytes())

    watcher = threading.Thread(target=watch)
    watcher.start()
    for data in versions:
        files.write(path, data)
    done.set()
    watcher.join()
    assert seen <= set(versions)


def test_a_write_is_its_four_steps_and_no_more(tmp_path: Path):
    files.write(tmp_path / "a", b"x")
    steps = points_of(lambda: files.write(tmp_path / "a", b"yy"))
    assert steps == ["create", "write", "write:half", "sync", "rename", "sync-folder"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755])
def test_a_replaced_file_keeps_its_mode(mode: int, tmp_path: Path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(mode)
    files.write(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path: Path):
    (tmp_path / "theirs").write_bytes(b"")
    files.write(tmp_path / "ours", b"")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "theirs").stat().st_mode


def test_the_temporary_file_of_a_dead_writer_goes_with_the_next_write(tmp_path: Path):
    assert killed_at(3, lambda: files.write(tmp_path / "a", b"data" * 1000))
    assert [n for n in os.listdir(tmp_path) if n.startswith(files.TEMP)]
    assert in_child(lambda: files.write(tmp_path / "b", b"")) == 0
    assert os.listdir(tmp_path) == ["b"]


def test_the_temporary_file_of_a_living_writer_stays(tmp_path: Path):
    fd = files.replace(str(tmp_path / "a"), b"")  # open and locked, as a writer at work has it
    os.rename(tmp_path / "a", tmp_path / f"{files.TEMP}alive")
    files.sweep(str(tmp_path))
    assert os.listdir(tmp_path) == [f"{files.TEMP}alive"]
    locks.unlock(fd)
    files.sweep(str(tmp_path))
    assert os.listdir(tmp_path) == []


class Hasty(disk.Disk):
    """Another process sweeps in the instant between our making a temporary file and our locking it."""

    def __init__(self, times: int) -> None:
        self.times = times

    def create(self, path: str) -> int:
        fd = super().create(path)
        if self.times > 0:
            self.times -= 1
            files.sweep(os.path.dirname(path))
        return fd


def test_a_writer_taken_for_a_dead_one_writes_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(disk, "current", Hasty(2))
    files.write(tmp_path / "a", b"data")
    assert (tmp_path / "a").read_bytes() == b"data"
    monkeypatch.setattr(disk, "current", Hasty(1000))
    with pytest.raises(RondelError, match="something keeps removing"):
        files.write(tmp_path / "a", b"other")
    assert (tmp_path / "a").read_bytes() == b"data"


def test_a_file_that_only_looks_like_a_temporary_one_in_a_link_is_left_alone(tmp_path: Path):
    (tmp_path / "precious").write_bytes(b"x")
    (tmp_path / f"{files.TEMP}x").symlink_to(tmp_path / "precious")
    files.sweep(str(tmp_path))
    assert (tmp_path / "precious").exists()


# logs


@settings(deadline=None, max_examples=40, suppress_health_check=NO_FIXTURE_CHECK)
@given(
    lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n")), max_size=5),
    torn=st.binary(min_size=1, max_size=100_000).filter(lambda b: b"\n" not in b),
)
def test_a_torn_last_line_is_set_aside_and_the_rest_stays(lines: list[str], torn: bytes, tmp_path: Path):
    folder = tmp_path / "logs"
    folder.mkdir(exist_ok=True)
    for name in os.listdir(folder):
        (folder / name).unlink()
    log = folder / "log"
    log.write_bytes("".join(f"{line}\n" for line in lines).encode() + torn)
    assert read_lines(log) == lines
    logs.append_line(log, "next")
    assert read_lines(log) == [*lines, "next"]
    assert (folder / "log.torn-1").read_bytes() == torn


def test_each_torn_line_gets_a_number_of_its_own(tmp_path: Path):
    log = tmp_path / "log"
    for torn in ("one", "two"):
        with log.open("a") as file:
            file.write(torn)
        logs.append_line(log, "whole")
    assert (tmp_path / "log.torn-1").read_text() == "one"
    assert (tmp_path / "log.torn-2").read_text() == "two"
    assert read_lines(log) == ["whole", "whole"]


def test_a_torn_line_longer_than_any_block_is_set_aside_whole(tmp_path: Path):
    log = tmp_path / "log"
    log.write_bytes(b"first\n" + b"x" * 300_000)
    logs.append_line(log, "next")
    assert read_lines(log) == ["first", "next"]
    assert (tmp_path / "log.torn-1").stat().st_size == 300_000


def test_lines_of_many_writers_do_not_mix(tmp_path: Path):
    log = tmp_path / "log"

    def write(word: str) -> None:
        for _ in range(20):
            logs.append_line(log, word * 2000)

    threads = [threading.Thread(target=write, args=(word,)) for word in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = read_lines(log)
    assert len(lines) == 80
    assert set(lines) == {word * 2000 for word in "abcd"}


def test_a_line_is_added_a_second_time_only_when_asked_for(tmp_path: Path):
    for again in (True, True, False):
        logs.append_line(tmp_path / "log", "x", again=again)
    assert read_lines(tmp_path / "log") == ["x", "x"]


def test_a_line_break_in_a_line_is_refused(tmp_path: Path):
    with pytest.raises(RondelError, match="line break"):
        logs.append_line(tmp_path / "log", "a\nb")
    assert read_lines(tmp_path / "log") == []


@pytest.mark.parametrize(
    ("log", "count"),
    [
        ("", 0),
        ("a\n", 1),
        ("x\na\n", 1),
        ("a\nb\n", 2),
        ("xa\n", 0),
        ("b\n", 0),
        ("a\nb", 1),
        ("a\nb\nb\n", 3),
        ("a\nb\nb\nb\n", 0),
    ],
)
def test_a_log_knows_how_many_of_some_lines_it_ends_with(log: str, count: int, tmp_path: Path):
    (tmp_path / "log").write_text(log)
    assert logs.ends_with(tmp_path / "log", ["a", "b", "b"]) == count


# folders


def test_folders_are_claimed_once_each_by_many_at_a_time(tmp_path: Path):
    names = [f"s-{n}" for n in range(1, 40)]
    claimed: list[Path] = []

    def claim() -> None:
        claimed.extend(files.claim_folder(tmp_path / "sessions", names) for _ in range(8))

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(p.name for p in claimed) == sorted(names[:32])


def test_a_name_taken_by_a_file_is_taken(tmp_path: Path):
    (tmp_path / "x").write_bytes(b"")
    assert files.claim_folder(tmp_path, ["x", "y"]).name == "y"
    with pytest.raises(RondelError, match="taken: x, y"):
        files.claim_folder(tmp_path, ["x", "y"])


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", ".hidden", "-x", "a\nb", "nul"])
def test_a_folder_with_an_unsafe_name_is_never_made(name: str, tmp_path: Path):
    with pytest.raises(UnsafePath):
        files.claim_folder(tmp_path, [name])
    assert os.listdir(tmp_path) == []


def test_a_file_in_the_way_of_a_folder_is_named(tmp_path: Path):
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(RondelError, match=r"/x'?: .*file"):
        files.make_folder(tmp_path / "x" / "y")


# moving aside


def test_what_is_moved_aside_replaces_nothing(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"a")
    (tmp_path / "b").write_bytes(b"b")
    with pytest.raises(RondelError, match="there already"):
        files.aside(tmp_path / "a", tmp_path / "b")
    assert not files.aside(tmp_path / "a", tmp_path / "b", again=False)
    assert (tmp_path / "a").read_bytes() + (tmp_path / "b").read_bytes() == b"ab"


def test_a_folder_moved_aside_replaces_nothing_either(tmp_path: Path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with pytest.raises(RondelError, match="there already"):
        files.aside(tmp_path / "a", tmp_path / "b")


def test_a_file_moved_aside_to_itself_stays(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"a")
    os.link(tmp_path / "a", tmp_path / "second name")
    with pytest.raises(RondelError, match="there already"):
        files.aside(tmp_path / "a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == b"a"
    files.aside(tmp_path / "a", tmp_path / "a", again=False)
    assert (tmp_path / "a").read_bytes() == b"a"


def test_nothing_to_move_aside_is_no_error(tmp_path: Path):
    assert not files.aside(tmp_path / "a", tmp_path / "b")


# paths


SEGMENTS = st.sampled_from(
    ["..", ".", "", "a", "b c", "ü", "x" * 200, "\\", "C:", "~", "a\x00", "a\nb", "link"]
)


@settings(max_examples=200, suppress_health_check=NO_FIXTURE_CHECK)
@given(relative=st.lists(SEGMENTS, max_size=5).map("/".join) | st.text(max_size=20))
def test_a_joined_path_never_leaves_its_root(relative: str, tmp_path: Path):
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    if not (root / "link").is_symlink():
        (root / "link").symlink_to(tmp_path)
    try:
        path = files.safe_join(root, relative)
    except RondelError:
        return
    assert os.path.realpath(path).startswith(f"{os.path.realpath(root)}/")


def test_a_session_folder_that_is_a_link_out_of_the_repository_is_refused(tmp_path: Path):
    (tmp_path / "repo" / ".ocr").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "repo" / ".ocr" / "sessions").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnsafePath, match="symbolic link"):
        files.safe_join(tmp_path / "repo", ".ocr/sessions/x")


def test_a_link_that_stays_inside_is_followed_for_a_file_of_the_repository_only(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert files.real_path(tmp_path, "link/a") == Path(os.path.realpath(tmp_path), "real", "a")
    with pytest.raises(UnsafePath, match="link"):
        files.safe_join(tmp_path, "link/a")


def test_a_link_to_nowhere_that_points_out_is_refused(tmp_path: Path):
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").symlink_to(tmp_path / "not there yet")
    with pytest.raises(UnsafePath):
        files.safe_join(root, "a")


def test_a_loop_of_links_is_an_error_and_not_a_hang(tmp_path: Path):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(RondelError):
        files.write(files.safe_join(tmp_path, "a/c"), b"")


def test_only_the_named_files_beside_a_session_can_be_reached(tmp_path: Path):
    root = tmp_path / "x.progress"
    root.mkdir()
    beside = frozenset({"x.json"})
    assert files.safe_join(root, "../x.json", beside) == tmp_path / "x.json"
    for relative in ("../y.json", "../x.json/..", "../../x.json", "../x.progress/../x.json"):
        with pytest.raises(UnsafePath):
            files.safe_join(root, relative, beside)
    (tmp_path / "x.json").symlink_to("/etc/passwd")
    with pytest.raises(UnsafePath):
        files.safe_join(root, "../x.json", beside)


@settings(deadline=None, suppress_health_check=NO_FIXTURE_CHECK)
@given(name=st.text(max_size=30).filter(is_safe_name))
def test_every_safe_name_can_be_written_and_is_the_name_on_the_disk(name: str, tmp_path: Path):
    folder = tmp_path / "names"
    folder.mkdir(exist_ok=True)
    path = files.safe_join(folder, name)
    files.write(path, b"x")
    assert os.listdir(folder) == [name]
    path.unlink()
