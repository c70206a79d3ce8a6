"""How a child ended is what really happened: its own end before our signal, or our signal before its end."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rondel import paths
from rondel.errors import MachineTrouble, RondelError
from rondel.processes import reaper
from rondel.processes.leftovers import end_leftovers
from rondel.processes.runner import Reason, answered, finished, output, run
from support.children import TESTS, child, wait_until

pytestmark = pytest.mark.sweep

KILLS = 200 if os.environ.get("RONDEL_SWEEP") else 12

DRIVER = """
import asyncio, sys
sys.path.insert(0, {here!r})
from pathlib import Path
from support.children import child
from rondel.processes.runner import run
asyncio.run(run(child(Path({folder!r}), {tag!r}, ("bash", "-c", {script!r}), grace_s=5.0)))
"""


def start_driver(folder: Path, tag: str, script: str) -> subprocess.Popen[bytes]:
    code = DRIVER.format(here=str(TESTS), folder=str(folder), tag=tag, script=script)
    return subprocess.Popen([sys.executable, "-c", code])


def reaper_pid(spool: Path) -> int:
    return int(json.loads((spool / "reaper.json").read_text())["pid"])


def is_zombie_below(pid: int) -> bool:
    """Whether a child of this process has ended and was not yet waited for."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    states = [Path(f"/proc/{c}/stat").read_text().rpartition(")")[2].split()[0] for c in children]
    return states == ["Z"]


@pytest.mark.parametrize("how", ["its driver is killed", "its reaper is told to end"])
def test_a_child_that_ended_before_our_signal_ended_by_itself(tmp_path, tag, how):
    driver = start_driver(tmp_path, tag, f"echo the whole answer; test -e {tmp_path}/go || sleep 0.3")
    spool = tmp_path / "spool"
    assert wait_until(lambda: output(spool) == "the whole answer\n")
    pid = reaper_pid(spool)
    os.kill(pid, signal.SIGSTOP)
    assert wait_until(lambda: is_zombie_below(pid))
    driver.kill()
    driver.wait()
    if how == "its reaper is told to end":
        os.kill(pid, signal.SIGTERM)
    os.kill(pid, signal.SIGCONT)
    end_leftovers(tmp_path)
    ended = answered(spool)
    assert ended is not None
    assert (ended.reason, ended.code) == (Reason.EXITED, 0)


def test_a_child_that_was_ended_by_us_and_says_0_did_not_end_by_itself(tmp_path, tag):
    driver = start_driver(tmp_path, tag, "trap 'echo a part; exit 0' TERM; echo on; sleep 600 & wait")
    spool = tmp_path / "spool"
    assert wait_until(lambda: output(spool) == "on\n")
    driver.kill()
    driver.wait()
    end_leftovers(tmp_path)
    ended = finished(spool)
    assert ended is not None
    assert (ended.reason, ended.code) == (Reason.LOST, 0)
    assert answered(spool) is None


@pytest.fixture
def _slow_to_its_session(tmp_path, monkeypatch):
    """A reaper whose child takes its time before it has a session of its own."""
    text = Path(reaper.__file__).read_text()
    assert text.count("os.setsid()") == 1
    (tmp_path / "slow.py").write_text(text.replace("os.setsid()", "time.sleep(0.7); os.setsid()"))
    monkeypatch.setattr(reaper, "__file__", str(tmp_path / "slow.py"))


@pytest.mark.usefixtures("_slow_to_its_session")
def test_an_end_that_comes_before_the_child_has_its_session_is_not_lost(tmp_path, tag):
    script = f"touch {tmp_path}/began; sleep 3; touch {tmp_path}/done"

    async def cancelled() -> None:
        task = asyncio.create_task(run(child(tmp_path, tag, ("bash", "-c", script), grace_s=60.0)))
        await asyncio.to_thread(wait_until, (tmp_path / "spool" / "reaper.json").exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    began = time.monotonic()
    asyncio.run(cancelled())
    assert time.monotonic() - began < 3
    assert not (tmp_path / "done").exists()
    ended = finished(tmp_path / "spool")
    assert ended is not None
    assert ended.reason is Reason.CANCELLED


def test_a_word_that_comes_with_the_first_line_is_heard(tmp_path, tag):
    made = child(tmp_path, tag, ("sleep", "600"))
    made.spool.mkdir()
    (made.spool / "in").touch()
    setup = {
        "argv": made.argv,
        "env": dict(made.env),
        "cwd": str(tmp_path),
        "output_max": 1000,
        "grace_s": 5,
        "token": "t",
        "troubles": [],
        "rules": -1,
        "tmp": "",
        "spaces": None,
        "channel": -1,
        "passed": [],
    }
    with paths.folder(made.spool) as spool:
        done = subprocess.run(
            [sys.executable, "-I", "-S", reaper.__file__, str(made.spool), str(spool)],
            input=json.dumps(setup).encode() + b"\nwall\n",
            timeout=60,
            check=False,
            capture_output=True,
            pass_fds=(spool,),
        )
    assert done.returncode == 0
    ended = finished(made.spool)
    assert ended is not None
    assert ended.reason is Reason.WALL


def test_output_that_was_cut_is_told_also_of_a_child_that_is_gone_by_then(tmp_path, tag):
    for _ in range(5):
        ended = asyncio.run(run(child(tmp_path, tag, ("printf", "x" * 20_001), output_max=20_000)))
        assert ended.reason is Reason.OUTPUT
        assert answered(tmp_path / "spool") == ended


def test_a_signal_that_whoever_started_us_ignores_still_ends_a_child(tmp_path, tag):
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        began = time.monotonic()
        ended = asyncio.run(run(child(tmp_path, tag, ("sleep", "600"), wall_s=0.3, grace_s=60.0)))
    finally:
        signal.signal(signal.SIGTERM, before)
    assert ended.reason is Reason.WALL
    assert ended.signal == signal.SIGTERM
    assert time.monotonic() - began < 10


def test_a_driver_killed_at_any_moment_around_a_child_s_end_leaves_the_truth(tmp_path, tag):
    """The child's last act is to note that it is through: noted before the driver died, it is taken."""
    rng = random.Random(7)
    taken = 0
    for number in range(KILLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        driver = start_driver(folder, tag, f"sleep 0.05; echo answer; touch {folder}/through")
        assert wait_until((folder / "spool" / "reaper.json").exists)
        time.sleep(rng.uniform(0.0, 0.12))
        driver.kill()
        through = (folder / "through").exists()
        driver.wait()
        end_leftovers(folder)
        ended = answered(folder / "spool")
        taken += ended is not None
        assert not through or (ended is not None and ended.code == 0), f"kill {number}"
        assert ended is None or (folder / "through").exists(), f"kill {number}: half an answer is none"
    assert taken > 0


@pytest.mark.parametrize("limit", ["RLIMIT_NOFILE", "RLIMIT_FSIZE"])
def test_what_the_machine_refuses_is_its_trouble_and_not_the_child_s(tmp_path, tag, limit):
    """Whatever a limit strikes first: our own files, the reaper, its child."""
    script = f"""
import asyncio, os, resource, sys
sys.path.insert(0, {str(TESTS)!r})
from pathlib import Path
from support.children import child
from rondel.processes.runner import run
from rondel.errors import MachineTrouble, RondelError
number = int(sys.argv[1])

async def go():
    at = Path({str(tmp_path)!r}) / str(number)
    at.mkdir()
    made = child(at, {tag!r}, ("bash", "-c", "echo hello; true | cat"))
    _, hard = resource.getrlimit(resource.{limit})
    resource.setrlimit(resource.{limit}, (number, hard))
    return await run(made)

try:
    ended = asyncio.run(go())
    print("ended", ended.reason, ended.code)
except MachineTrouble as e:
    print("trouble", e)
"""
    steps = {"RLIMIT_NOFILE": range(7, 21, 2), "RLIMIT_FSIZE": (0, 1, 4096, 9000)}
    said = []
    for number in steps[limit]:
        shown = subprocess.run(
            [sys.executable, "-c", script, str(number)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert shown.returncode == 0, shown.stderr
        said.append(shown.stdout)
    assert any(words.startswith("trouble") for words in said)
    for words in said:
        good = words.startswith(("trouble", "ended exited 0"))
        # a child that met the limit itself, after it was its own program, says so itself
        assert good or (limit != "RLIMIT_FSIZE" and words.startswith("ended exited")), said


def test_the_machine_s_trouble_is_no_error_that_anybody_handles():
    assert not issubclass(MachineTrouble, RondelError)
    assert not issubclass(MachineTrouble, OSError)
