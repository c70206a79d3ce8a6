from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rondel.errors import Held, LostLease
from rondel.model.changes import Write
from rondel.store import disk, ours
from rondel.store.changes import write_changes
from rondel.store.lease import Lease, holder
from rondel.testing.faults import in_child, points_of

DRIVER = """
import sys, time
from pathlib import Path
from rondel.store.lease import Lease
lease = Lease.take(Path(sys.argv[1]), "review:x", command="rondel review")
print("ready", flush=True)
time.sleep(60)
"""


@contextmanager
def another_driver(run: Path) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen([sys.executable, "-c", DRIVER, run], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / ".rondel" / "run"


def test_a_second_driver_is_told_who_holds_the_session_since_when_and_what_to_do(run: Path):
    with another_driver(run) as child:
        with pytest.raises(Held) as caught:
            Lease.take(run, "review:x")
        message = str(caught.value)
        assert f"process {child.pid} on " in message
        assert "since 20" in message
        assert "(rondel review)" in message
        assert "`rondel stop review:x`" in message
        who = holder(run)
        assert who is not None
        assert (who.pid, who.epoch, who.command) == (child.pid, 1, "rondel review")


def test_a_killed_driver_frees_the_session_at_once(run: Path):
    with another_driver(run) as child:
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert holder(run) is None
        with Lease.take(run, "review:x") as lease:
            assert lease.epoch == 2


def test_the_lock_decides_and_not_the_pid(run: Path):
    run.mkdir(parents=True)
    alive = {"pid": os.getpid(), "host": "here", "started_at": "2026-11-15T10:00:00Z", "epoch": 7}
    (run / "lease").write_text(json.dumps(alive))
    assert holder(run) is None
    with Lease.take(run, "review:x") as lease:
        assert lease.epoch == 8


def test_a_session_nobody_ever_drove_has_no_holder(run: Path):
    assert holder(run) is None
    assert holder(str(run)) is None


def test_runtime_state_is_kept_out_of_git_from_the_first_driver_on(run: Path):
    session = run.parent.parent / "session"
    (session / ".rondel").mkdir(parents=True)
    (session / ".rondel/.gitignore").write_bytes(ours.IGNORED_BEFORE[0])
    Lease.take(run, "review:x", folder=session).release()
    assert (session / ".rondel/.gitignore").read_bytes() == ours.IGNORED


def test_the_epoch_grows_with_each_driver(run: Path):
    epochs = []
    for _ in range(4):
        with Lease.take(run, "review:x") as lease:
            lease.check()
            epochs.append(lease.epoch)
    assert epochs == [1, 2, 3, 4]


def test_a_released_lease_is_free_and_no_longer_good(run: Path):
    lease = Lease.take(run, "review:x")
    lease.release()
    lease.release()
    assert holder(run) is None
    with pytest.raises(LostLease, match="review:x"):
        lease.check()


def test_a_driver_that_was_replaced_writes_nothing_more(run: Path, tmp_path: Path):
    old = Lease.take(run, "review:x")
    shutil.rmtree(run)  # a person, or git clean
    with Lease.take(run, "review:x", command="the new one") as new:
        new.check()
        with pytest.raises(LostLease, match="the new one"):
            write_changes(tmp_path, [Write("a", b"old driver")], guard=old.check)
        write_changes(tmp_path, [Write("a", b"new driver")], guard=new.check)
    assert (tmp_path / "a").read_bytes() == b"new driver"
    old.release()


def test_a_write_with_an_old_epoch_is_refused(run: Path):
    with Lease.take(run, "review:x") as lease:
        later = {"pid": 1, "host": "elsewhere", "epoch": lease.epoch + 1}
        (run / "lease").write_text(json.dumps(later))  # in place: the same file
        with pytest.raises(LostLease, match="its epoch is 2, ours 1"):
            lease.check()


def test_a_lease_whose_file_is_gone_is_put_back(run: Path):
    with Lease.take(run, "review:x") as lease:
        shutil.rmtree(run)
        lease.check()
        assert holder(run) == lease.holder
        with pytest.raises(Held):
            Lease.take(run, "review:x")


def test_a_lease_whose_session_is_gone_is_lost(tmp_path: Path):
    run = tmp_path / "session/.rondel/run"
    with Lease.take(run, "review:x") as lease:
        shutil.rmtree(tmp_path / "session")
        with pytest.raises(LostLease, match="gone"):
            lease.check()
        assert not (tmp_path / "session").exists()


@pytest.mark.parametrize("way", ["in place", "another file"])
@pytest.mark.parametrize("junk", [b"", b"{", b"\xff" * 100])
def test_what_somebody_wrote_over_a_lease_is_kept_and_the_lease_put_back(run: Path, junk: bytes, way: str):
    with Lease.take(run, "review:x") as lease:
        if way == "another file":
            (run / "lease").unlink()
        (run / "lease").write_bytes(junk)
        lease.check()
        assert holder(run) == lease.holder
        assert [p.read_bytes() for p in (run.parent / "aside").iterdir()] == [junk]


def test_the_same_words_in_another_form_are_the_same_lease(run: Path):
    with Lease.take(run, "review:x") as lease:
        text = (run / "lease").read_text()
        (run / "lease").write_text(json.dumps(json.loads(text), indent=4))
        lease.check()


@pytest.mark.parametrize("junk", [b"", b"{", b"[]", b'{"epoch": "x", "pid": []}', b"\xff" * 100])
def test_a_lease_file_that_says_nothing_usable_is_taken_over(junk: bytes, run: Path):
    run.mkdir(parents=True)
    (run / "lease").write_bytes(junk)
    with Lease.take(run, "review:x") as lease:
        assert lease.epoch == 1
        assert holder(run) == lease.holder


def test_a_forked_child_does_not_hold_the_session_when_its_parent_has_gone(run: Path):
    def parent() -> None:
        Lease.take(run, "review:x")
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(8)"])
        if os.fork() == 0:
            time.sleep(8)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(parent) == -signal.SIGKILL
    end = time.monotonic() + 6  # a child lets go as soon as it runs, long before it ends
    while holder(run) is not None and time.monotonic() < end:
        time.sleep(0.02)
    assert holder(run) is None
    Lease.take(run, "review:x").release()


def test_a_program_that_is_started_does_not_inherit_the_lock(run: Path):
    def driver() -> None:
        Lease.take(run, "review:x")
        subprocess.Popen(["sleep", "0.5"], close_fds=False)
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(driver) == -signal.SIGKILL
    assert holder(run) is None


def test_looking_who_holds_it_never_keeps_a_driver_out(run: Path):
    Lease.take(run, "review:x").release()

    def watch() -> None:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            holder(run)

    watchers = []
    for _ in range(3):
        pid = os.fork()
        if pid == 0:
            watch()
            os._exit(0)
        watchers.append(pid)
    for _ in range(20):
        Lease.take(run, "review:x").release()
    assert [os.waitpid(pid, 0)[1] for pid in watchers] == [0, 0, 0]


def test_of_many_drivers_at_once_exactly_one_gets_the_session(run: Path):
    read_end, write_end = os.pipe()

    def contend() -> int:
        os.close(write_end)
        try:
            lease = Lease.take(run, "review:x")
        except Held:
            return 1
        os.read(read_end, 1)  # holds it until the others have given up
        lease.release()
        return 0

    pids = {_forked(contend) for _ in range(6)}
    os.close(read_end)
    refused = dict(_ended(pids) for _ in range(5))
    os.close(write_end)
    assert set(refused.values()) == {1}
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids - {*refused}] == [0]


def _forked(work: Callable[[], int]) -> int:
    """The process that does this and ends with what it returns; 2 for anything unexpected."""
    pid = os.fork()
    if pid == 0:
        status = 2
        try:
            status = work()
        except BaseException:  # noqa: BLE001 - a child must not go on as the test run
            traceback.print_exc()
        finally:
            os._exit(status)
    return pid


def _ended(pids: Iterable[int]) -> tuple[int, int]:
    """The next of these processes to end, and how; no other child of ours is waited for."""
    while True:
        for pid in pids:
            try:
                found, status = os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:  # it was the one before
                continue
            if found:
                return pid, os.waitstatus_to_exitcode(status)
        time.sleep(0.01)


class Meanwhile(disk.Disk):
    """Another driver takes the lease between our opening its file and our locking it."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.other: Lease | None = None

    def open_log(self, path: str) -> int:
        fd = super().open_log(path)
        if self.other is None:
            disk.current = disk.Disk()
            self.other = Lease.take(self.run, "review:x", command="the quicker one")
        return fd


def test_a_driver_that_was_overtaken_while_taking_the_lease_does_not_get_it(
    run: Path, monkeypatch: pytest.MonkeyPatch
):
    Lease.take(run, "review:x").release()
    mine = Meanwhile(run)
    monkeypatch.setattr(disk, "current", mine)
    with pytest.raises(Held, match="the quicker one"):
        Lease.take(run, "review:x")
    assert mine.other is not None
    mine.other.check()
    mine.other.release()


def test_only_after_a_driver_that_died_is_everything_made_durable(run: Path):
    assert "sync-all" not in points_of(lambda: Lease.take(run, "review:x").release())
    assert "sync-all" not in points_of(lambda: Lease.take(run, "review:x").release())
    assert in_child(lambda: Lease.take(run, "review:x")) == 0  # ends without a word
    assert "sync-all" in points_of(lambda: Lease.take(run, "review:x").release())
    assert "sync-all" not in points_of(lambda: Lease.take(run, "review:x").release())


def test_a_death_is_known_until_a_driver_takes_up_what_it_cut_off(tmp_path):
    run = tmp_path / "run"
    with Lease.take(run, "review:x") as first:
        assert not first.after_death

    def die() -> None:
        Lease.take(run, "review:x")
        os.kill(os.getpid(), signal.SIGKILL)

    assert in_child(die) == -signal.SIGKILL
    with Lease.take(run, "review:x") as only_writes:
        assert only_writes.after_death
    with Lease.take(run, "review:x") as drives:
        assert drives.after_death
        drives.take_up()
    with Lease.take(run, "review:x") as after:
        assert not after.after_death
