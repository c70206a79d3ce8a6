"""One driver per session, also among people who share a checkout and have each their own state folder."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from rondel.errors import Held, LostLease
from rondel.store import ours
from rondel.store.lease import Lease, holder

HOLDS = """
import os, sys, time
from pathlib import Path
from rondel.store.lease import Lease
from rondel.errors import Held
if len(sys.argv) > 3:  # whoever else it is cannot read this Python
    os.setgroups([])
    os.setgid(int(sys.argv[3]))
    os.setuid(int(sys.argv[3]))
try:
    lease = Lease.take(Path(sys.argv[1]), "small:one", folder=Path(sys.argv[2]), command="rondel run")
except Held as e:
    print(e, flush=True)
else:
    print("held", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def session(tmp_path: Path) -> Path:
    folder = tmp_path / "repo/session"
    folder.mkdir(parents=True)
    return folder


def test_the_second_of_two_people_is_refused_and_told_who_has_it(tmp_path: Path, session: Path):
    ada, bea = tmp_path / "ada/.rondel", tmp_path / "bea/.rondel"
    with Lease.take(ada, "small:one", folder=session, command="rondel run") as lease:
        with pytest.raises(Held, match=rf"process {os.getpid()} .*\(rondel run\)"):
            Lease.take(bea, "small:one", folder=session)
        lease.check()
        assert holder(bea) is None
        assert holder(bea, session) == lease.holder
    with Lease.take(bea, "small:one", folder=session):
        assert holder(ada, session) is not None
    assert holder(ada, session) is None


def test_who_was_refused_has_not_counted_as_a_driver(tmp_path: Path, session: Path):
    with Lease.take(tmp_path / "ada/.rondel", "small:one", folder=session), pytest.raises(Held):
        Lease.take(tmp_path / "bea/.rondel", "small:one", folder=session)
    with Lease.take(tmp_path / "bea/.rondel", "small:one", folder=session) as lease:
        assert not lease.after_death


def test_a_driver_that_is_killed_lets_go_at_once(tmp_path: Path, session: Path):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path / "ada/.rondel"), str(session)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    with pytest.raises(Held, match=f"process {child.pid} "):
        Lease.take(tmp_path / "bea/.rondel", "small:one", folder=session)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    with Lease.take(tmp_path / "bea/.rondel", "small:one", folder=session) as lease:
        lease.check()


def test_a_lock_that_somebody_removes_is_put_back(tmp_path: Path, session: Path):
    with Lease.take(tmp_path / "ada/.rondel", "small:one", folder=session) as lease:
        (session / ours.LOCK).unlink()
        lease.check()
        with pytest.raises(Held):
            Lease.take(tmp_path / "bea/.rondel", "small:one", folder=session)
        said = ours.restored_in((session / ours.RECORD).read_bytes())
        assert [one.path for one in said] == [ours.LOCK]


@pytest.mark.parametrize("is_over", [True, False])
def test_where_somebody_else_took_it_meanwhile_nothing_more_is_written(
    tmp_path: Path, session: Path, is_over: bool
):
    with Lease.take(tmp_path / "ada/.rondel", "small:one", folder=session) as lease:
        (session / ours.LOCK).unlink()
        other = Lease.take(tmp_path / "bea/.rondel", "small:one", folder=session, command="another")
        if is_over:
            other.release()
        with pytest.raises(LostLease, match="another"):
            lease.check()
        other.release()


def test_a_folder_that_was_made_anew_is_locked_anew(tmp_path: Path, session: Path):
    with Lease.take(tmp_path / "ada/.rondel", "small:one", folder=session) as lease:
        shutil.rmtree(session)
        with pytest.raises(LostLease, match="gone"):
            lease.check()
        session.mkdir()
        lease.check()
        with pytest.raises(Held):
            Lease.take(tmp_path / "bea/.rondel", "small:one", folder=session)


def test_what_a_lock_says_is_believed_by_nobody(tmp_path: Path, session: Path):
    (session / ".rondel").mkdir()
    for forged in (b'{"pid": 1, "epoch": 999999999, "host": "x"}\n', b"\0" * 100_000, b""):
        (session / ours.LOCK).write_bytes(forged)
        assert holder(tmp_path / "ada/.rondel", session) is None
        with Lease.take(tmp_path / "ada/.rondel", "small:one", folder=session) as lease:
            lease.check()
    outside = tmp_path / "outside"
    outside.write_text("mine\n")
    (session / ours.LOCK).unlink()
    (session / ours.LOCK).symlink_to(outside)
    with Lease.take(tmp_path / "ada/.rondel", "small:one", folder=session) as lease:
        lease.check()
    assert outside.read_text() == "mine\n"
    assert not (session / ours.LOCK).is_symlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="another user is needed")
def test_it_holds_between_two_users_of_the_machine():
    other = 65534
    with tempfile.TemporaryDirectory() as top:
        shared, own = Path(top, "session"), Path(top, "other")
        for folder, mode in ((Path(top), 0o755), (shared, 0o777), (shared / ".rondel", 0o777), (own, 0o777)):
            folder.mkdir(exist_ok=True)
            folder.chmod(mode)
        words = [sys.executable, "-c", HOLDS, str(own / ".rondel"), str(shared), str(other)]
        with Lease.take(Path(top, "mine/.rondel"), "small:one", folder=shared) as lease:
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
            assert f"process {os.getpid()} of root" in done.stdout, done.stderr
            lease.check()
        child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stdout is not None
        said = child.stdout.readline()
        try:
            assert said == "held\n", said
            with pytest.raises(Held, match=f"process {child.pid} of "):
                Lease.take(Path(top, "mine/.rondel"), "small:one", folder=shared)
        finally:
            child.kill()
            child.communicate()
