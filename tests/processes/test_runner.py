"""The process runner against programs that misbehave."""

import asyncio
import contextlib
import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.errors import MachineTrouble, RondelError
from rondel.processes import leftovers, reaper
from rondel.processes.leftovers import end_leftovers
from rondel.processes.runner import (
    Child,
    Exit,
    LineSignal,
    Reason,
    answered,
    clean_env,
    finished,
    output,
    printable,
    run,
    tail,
)
from support.children import TAG, TESTS, alive, child, fake, wait_until


def go(tmp_path, tag, argv, *, on_line=None, on_err=None, **changes) -> Exit:
    return asyncio.run(run(child(tmp_path, tag, argv, **changes), on_line=on_line, on_err=on_err))


def until_result(line: bytes) -> LineSignal | None:
    return LineSignal.RESULT if line == b"RESULT" else None


def test_a_child_gets_its_input_and_leaves_its_output_and_status(tmp_path, tag):
    script = "import sys; print(sys.stdin.read().upper()); print('said', file=sys.stderr); sys.exit(7)"
    ended = go(tmp_path, tag, (sys.executable, "-c", script), stdin="hé".encode())
    assert (ended.code, ended.signal, ended.reason) == (7, None, Reason.EXITED)
    assert output(tmp_path / "spool") == "HÉ\n"
    assert tail(tmp_path / "spool") == "said"
    assert finished(tmp_path / "spool") == ended


@pytest.mark.parametrize("leads", ["precious", "nowhere"])
@pytest.mark.parametrize("name", ["in", "out", "err", "exit.json.tmp", "reaper.json.tmp"])
def test_a_link_in_a_spool_is_never_followed(tmp_path, tag, name, leads):
    outside, spool = tmp_path / "outside", tmp_path / "spool"
    for folder in (outside, spool):
        folder.mkdir()
    (outside / "precious").write_text("mine\n")
    (spool / name).symlink_to(outside / leads)
    script = "import sys; print(sys.stdin.read().upper()); print('said', file=sys.stderr)"
    assert go(tmp_path, tag, (sys.executable, "-c", script), stdin=b"x").code == 0
    assert (output(spool), tail(spool)) == ("X\n", "said")
    assert {p.name: p.read_text() for p in outside.iterdir()} == {"precious": "mine\n"}


def test_a_program_that_is_not_there_is_a_status_of_127_with_a_reason(tmp_path, tag):
    ended = go(tmp_path, tag, ("/nowhere/agent",))
    assert (ended.code, ended.reason) == (127, Reason.EXITED)
    assert "cannot start '/nowhere/agent'" in tail(tmp_path / "spool")


def test_one_that_never_exits_after_its_result_counts_as_exited(tmp_path, tag):
    began = time.monotonic()
    ended = go(tmp_path, tag, fake("never_exits_after_its_result"), on_line=until_result)
    assert ended.ok
    assert ended.lingered
    assert time.monotonic() - began < 60
    assert output(tmp_path / "spool").startswith("the answer\n")


def test_one_that_ignores_sigterm_is_killed_after_the_grace(tmp_path, tag):
    ended = go(tmp_path, tag, fake("ignores_sigterm"), wall_s=0.7)
    assert (ended.reason, ended.signal) == (Reason.WALL, signal.SIGKILL)
    assert ended.seconds < 60


def test_one_that_reads_stdin_for_ever_finds_its_end(tmp_path, tag):
    assert go(tmp_path, tag, fake("reads_stdin_for_ever"), stdin=b"x" * 300_000).ok
    assert output(tmp_path / "spool") == "stdin ended\n"


@pytest.mark.parametrize(
    "how",
    [
        "leaves_grandchildren",
        "leaves_children_that_close_their_pipes",
        "leaves_one_whose_first_thread_has_ended",
    ],
)
def test_grandchildren_in_sessions_of_their_own_are_ended(tmp_path, tag, how):
    began = time.monotonic()
    ended = go(tmp_path, tag, fake(how))
    assert ended.ok
    assert alive(tag) == []
    assert time.monotonic() - began < 60


def test_a_clock_ends_grandchildren_too(tmp_path, tag):
    ended = go(tmp_path, tag, fake("leaves_grandchildren_and_hangs"), idle_s=1)
    assert ended.reason is Reason.IDLE
    assert alive(tag) == []


def test_one_that_forks_away_again_and_again_is_caught(tmp_path, tag):
    began = time.monotonic()
    go(tmp_path, tag, fake("forks_for_ever"))
    assert alive(tag) == []
    assert time.monotonic() - began < 60


def test_a_stopped_one_is_ended(tmp_path, tag):
    assert go(tmp_path, tag, fake("stops_itself"), idle_s=0.5).reason is Reason.IDLE


@pytest.mark.parametrize("how", ["prints_200_mb", "prints_one_endless_line", "prints_200_mb_on_stderr"])
def test_output_is_bounded_on_disk(tmp_path, tag, how):
    ended = go(tmp_path, tag, fake(how), output_max=3_000_000)
    assert ended.reason is Reason.OUTPUT
    size = sum((tmp_path / "spool" / name).stat().st_size for name in ("out", "err"))
    assert size == 3_000_000


def test_output_of_exactly_the_bound_is_fine(tmp_path, tag):
    ended = go(tmp_path, tag, (sys.executable, "-c", "print('x' * 999, end='')"), output_max=999)
    assert ended.ok


def test_the_driver_s_memory_is_bounded_while_200_mb_come(tmp_path, tag):
    script = f"""
import asyncio, resource, sys
sys.path.insert(0, {str(TESTS)!r})
from pathlib import Path
from support.children import child, fake
from rondel.processes.runner import answered, run
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
lines = []
made = child(Path({str(tmp_path)!r}), {tag!r}, fake("prints_200_mb"), output_max=300_000_000)
print(asyncio.run(run(made, on_line=lambda line: lines.append(len(line)))).reason)
print(len(lines), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    reason, figures = shown.stdout.splitlines()
    lines, grown_kb = (int(word) for word in figures.split())
    assert (reason, lines) == ("exited", 200)
    assert grown_kb < 60_000


def test_a_line_beyond_all_measure_is_cut(tmp_path, tag):
    lengths: list[int] = []
    script = "import sys; w = sys.stdout.write; w('x' * 12_000_000); w('\\nshort\\nlast')"
    ended = go(tmp_path, tag, (sys.executable, "-c", script), on_line=lambda line: lengths.append(len(line)))
    assert ended.ok
    assert lengths == [10_000_000, 5, 4]


def test_one_that_hangs_silently_is_ended_by_the_idle_clock(tmp_path, tag):
    ended = go(tmp_path, tag, fake("hangs_silently"), idle_s=0.5)
    assert ended.reason is Reason.IDLE
    assert ended.seconds < 60


def test_output_is_progress_for_the_idle_clock_and_comes_line_by_line(tmp_path, tag):
    times: list[float] = []
    slow = fake("talks_slowly")
    ended = go(tmp_path, tag, slow, idle_s=3, on_line=lambda _: times.append(time.monotonic()))
    assert ended.ok
    assert len(times) == 9
    assert times[-1] - times[0] > 3


def test_retrying_is_not_progress(tmp_path, tag):
    script = "import time\nwhile True: print('again', flush=True); time.sleep(0.1)"
    ended = go(tmp_path, tag, (sys.executable, "-c", script), idle_s=1, on_line=lambda _: LineSignal.RETRYING)
    assert ended.reason is Reason.IDLE


def test_the_turn_cap_ends_it(tmp_path, tag):
    turns = []

    def count(line: bytes) -> LineSignal | None:
        turns.append(line)
        return LineSignal.TURNS if len(turns) >= 3 else None

    script = "import time\nwhile True: print('turn', flush=True); time.sleep(0.05)"
    assert go(tmp_path, tag, (sys.executable, "-c", script), on_line=count).reason is Reason.TURNS


def test_death_by_a_signal_is_told(tmp_path, tag):
    ended = go(tmp_path, tag, fake("dies_by_a_signal"))
    assert (ended.code, ended.signal, ended.reason) == (None, signal.SIGSEGV, Reason.EXITED)


def test_cancelling_ends_everything_before_it_returns(tmp_path, tag):
    async def cancel_soon():
        task = asyncio.create_task(run(child(tmp_path, tag, fake("leaves_grandchildren_and_hangs"))))
        await asyncio.to_thread(wait_until, lambda: output(tmp_path / "spool").count("grandchild") == 3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return alive(tag)

    assert asyncio.run(cancel_soon()) == []
    ended = finished(tmp_path / "spool")
    assert ended is not None
    assert ended.reason is Reason.CANCELLED


def test_an_error_in_a_listener_ends_the_child_and_is_raised(tmp_path, tag):
    def trip(line: bytes) -> None:
        raise ZeroDivisionError(line)

    with pytest.raises(ZeroDivisionError):
        go(tmp_path, tag, fake("ignores_sigterm"), on_line=trip)
    assert alive(tag) == []


DRIVER = """
import asyncio, sys
sys.path.insert(0, {here!r})
from pathlib import Path
from support.children import child, fake
from rondel.processes.runner import answered, run
asyncio.run(run(child(Path({folder!r}), {tag!r}, fake({how!r}))))
"""


def start_driver(tmp_path: Path, tag: str, how: str) -> subprocess.Popen[bytes]:
    script = DRIVER.format(here=str(TESTS), folder=str(tmp_path), tag=tag, how=how)
    return subprocess.Popen([sys.executable, "-c", script])


@pytest.mark.parametrize("how", ["leaves_grandchildren_and_hangs", "ignores_sigterm"])
def test_a_driver_killed_outright_takes_its_children_along(tmp_path, tag, how):
    driver = start_driver(tmp_path, tag, how)
    assert wait_until(lambda: output(tmp_path / "spool") != "")
    driver.kill()
    driver.wait()
    assert end_leftovers(tmp_path) >= 1
    assert alive(tag) == []
    ended = finished(tmp_path / "spool")
    assert ended is not None
    assert ended.reason is Reason.LOST


def test_a_killed_driver_s_children_go_even_if_nobody_comes_back(tmp_path, tag):
    driver = start_driver(tmp_path, tag, "leaves_grandchildren_and_hangs")
    assert wait_until(lambda: output(tmp_path / "spool").count("grandchild") == 3)
    driver.kill()
    driver.wait()
    assert wait_until(lambda: not alive(tag))


def test_driver_and_reaper_killed_together_leave_nothing_after_a_sweep(tmp_path, tag):
    driver = start_driver(tmp_path, tag, "leaves_grandchildren_and_hangs")
    assert wait_until(lambda: output(tmp_path / "spool").count("grandchild") == 3)
    known = json.loads((tmp_path / "spool" / "reaper.json").read_text())
    os.kill(known["pid"], signal.SIGKILL)
    driver.kill()
    driver.wait()
    assert alive(tag) != []
    assert end_leftovers(tmp_path) >= 3
    assert alive(tag) == []
    assert finished(tmp_path / "spool") is None


def test_a_reaper_killed_under_a_living_driver_is_no_failure_of_the_child(tmp_path, tag):
    async def kill_the_reaper():
        task = asyncio.create_task(run(child(tmp_path, tag, fake("leaves_grandchildren_and_hangs"))))
        await asyncio.to_thread(wait_until, lambda: output(tmp_path / "spool").count("grandchild") == 3)
        os.kill(json.loads((tmp_path / "spool" / "reaper.json").read_text())["pid"], signal.SIGKILL)
        return await task

    with pytest.raises(MachineTrouble, match="was ended from outside"):
        asyncio.run(kill_the_reaper())
    assert alive(tag) == []


def test_an_answer_that_was_complete_when_the_driver_died_is_found(tmp_path, tag):
    driver = start_driver(tmp_path, tag, "talks")
    assert wait_until(lambda: output(tmp_path / "spool").count("line") == 5)
    os.kill(driver.pid, signal.SIGSTOP)
    assert wait_until(lambda: finished(tmp_path / "spool") is not None)
    driver.kill()
    driver.wait()
    ended = finished(tmp_path / "spool")
    assert ended is not None
    assert ended.ok


def test_what_cannot_be_ended_is_named_and_not_waited_for_for_ever(tmp_path, monkeypatch):
    monkeypatch.setattr(leftovers, "KILL_S", 0.05)
    monkeypatch.setattr(reaper, "send", lambda *_: False)  # as for a process of another user
    spool = tmp_path / "spool"
    spool.mkdir()
    other = subprocess.Popen(["sleep", "60"], env={reaper.MARK: "t"})
    try:
        known = {"pid": other.pid, "start": reaper.start_time(other.pid), "boot": reaper.boot(), "token": "t"}
        for start in (known["start"], "the reaper is gone, its child is not"):
            (spool / "reaper.json").write_text(json.dumps({**known, "start": start}))
            with pytest.raises(RondelError, match=f"process {other.pid}"):
                end_leftovers(tmp_path, wait_s=0)
    finally:
        other.kill()
        other.wait()


def test_a_process_number_that_was_given_to_another_is_left_alone(tmp_path, tag):
    other = subprocess.Popen(["sleep", "60"])
    try:
        spool = tmp_path / "spool"
        spool.mkdir()
        start = reaper.start_time(other.pid)
        for known in (
            {"pid": other.pid, "start": "1", "boot": reaper.boot(), "token": "t"},
            {"pid": other.pid, "start": start, "boot": "an earlier boot", "token": "t"},
        ):
            (spool / "reaper.json").write_text(json.dumps(known))
            assert end_leftovers(tmp_path, wait_s=0) == 0
        assert not reaper.send(other.pid, "1", signal.SIGKILL)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', "null", '{"pid":1,"start":null,"boot":3}'])
def test_a_damaged_record_is_no_record(tmp_path, text):
    (tmp_path / "reaper.json").write_text(text)
    assert end_leftovers(tmp_path, wait_s=0) == 0
    (tmp_path / "exit.json").write_text(text)
    assert finished(tmp_path) is None


def test_a_spool_used_again_holds_only_the_new_output(tmp_path, tag):
    go(tmp_path, tag, (sys.executable, "-c", "print('first')"))
    go(tmp_path, tag, (sys.executable, "-c", "print('second')"))
    assert output(tmp_path / "spool") == "second\n"


def test_many_children_at_once_do_not_disturb_each_other(tmp_path, tag):
    async def both():
        made = []
        for n in range(8):
            folder = tmp_path / str(n)
            folder.mkdir()
            made.append(run(child(folder, tag, (sys.executable, "-c", f"print({n})"))))
        return await asyncio.gather(*made)

    assert all(ended.ok for ended in asyncio.run(both()))
    assert [output(tmp_path / str(n) / "spool") for n in range(8)] == [f"{n}\n" for n in range(8)]


def test_no_file_of_ours_is_open_in_the_child(tmp_path, tag):
    with (tmp_path / "secret").open("w") as held:
        os.set_inheritable(held.fileno(), True)  # noqa: FBT003
        go(tmp_path, tag, (sys.executable, "-c", "import os; print(sorted(os.listdir('/proc/self/fd')))"))
    assert output(tmp_path / "spool") == "['0', '1', '2', '3']\n"  # 3 is the listing itself


def test_a_broken_pipe_ends_a_child_as_it_would_in_a_shell(tmp_path, tag):
    ended = go(tmp_path, tag, ("bash", "-c", "yes | head -1; echo ${PIPESTATUS[0]}"))
    assert ended.ok
    assert output(tmp_path / "spool") == "y\n141\n"


def test_the_environment_is_clean(monkeypatch):
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    monkeypatch.setenv("GITHUB_TOKEN", "gh")
    monkeypatch.setenv("AWS_REGION", "x")
    monkeypatch.setenv("LC_TIME", "C")
    env = clean_env(("GITHUB_TOKEN", "AWS_*", "NOT_THERE"), {"NAME": "value", "HOME": "/h"})
    assert env["GITHUB_TOKEN"] == "gh"
    assert (env["AWS_REGION"], env["NAME"], env["HOME"], env["LC_TIME"]) == ("x", "value", "/h", "C")
    assert not {"CLAUDECODE", "ANTHROPIC_API_KEY", "NOT_THERE", TAG} & set(env)


def test_a_huge_environment_reaches_the_child(tmp_path, tag):
    made = child(tmp_path, tag, (sys.executable, "-c", "import os; print(len(os.environ['BIG']))"))
    big = type(made)(**{**made.__dict__, "env": {**made.env, "BIG": "x" * 100_000}})
    assert asyncio.run(run(big)).ok
    assert output(tmp_path / "spool") == "100000\n"


def test_a_disk_that_takes_no_more_is_named_and_is_no_failure_of_the_child(tmp_path, tag):
    limit = (1_000_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    script = f"""
import asyncio, resource, signal, sys
sys.path.insert(0, {str(TESTS)!r})
from pathlib import Path
from support.children import child, fake
from rondel.processes.runner import answered, run
from rondel.errors import MachineTrouble
resource.setrlimit(resource.RLIMIT_FSIZE, {limit!r})
try:
    asyncio.run(run(child(Path({str(tmp_path)!r}), {tag!r}, fake("prints_200_mb"))))
except MachineTrouble as e:
    print(e)
"""
    shown = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "larger than this disk, or `ulimit -f`, allows" in shown.stdout
    assert str(tmp_path / "spool") in shown.stdout
    assert answered(tmp_path / "spool") is None, "nothing is known of the answer"


@pytest.fixture
def _elsewhere(tmp_path, monkeypatch):
    """A reaper that does without Linux: no subreaper, no /proc, no pidfd."""
    text = Path(reaper.__file__).read_text().replace('LINUX = sys.platform == "linux"', "LINUX = False")
    assert "LINUX = False" in text
    (tmp_path / "elsewhere.py").write_text(text)
    monkeypatch.setattr(reaper, "__file__", str(tmp_path / "elsewhere.py"))


@pytest.mark.usefixtures("_elsewhere")
def test_where_there_is_no_subreaper_children_and_their_group_are_ended(tmp_path, tag):
    script = "import subprocess; subprocess.Popen(['sleep', '600']); print('done')"
    assert go(tmp_path, tag, (sys.executable, "-c", script)).ok
    assert alive(tag) == []
    assert go(tmp_path, tag, fake("ignores_sigterm"), wall_s=0.7).reason is Reason.WALL
    assert alive(tag) == []
    script = (
        "import subprocess, time; subprocess.Popen(['sleep', '600'], start_new_session=True); time.sleep(600)"
    )
    assert go(tmp_path, tag, (sys.executable, "-c", script), idle_s=0.7).reason is Reason.IDLE
    assert alive(tag) == []


@given(st.text(st.characters(max_codepoint=0x2030)) | st.text("\x1b[]0;m\x07\\P?1h\r\n\tx"))
def test_no_word_of_a_program_gives_orders_to_a_terminal(text):
    shown = printable(text)
    assert all(c.isprintable() or c in "\n\t" or ord(c) > 0x9F for c in shown)
    assert printable(shown) == shown
    if text.isprintable():
        assert shown == text


def test_a_title_and_colours_are_no_words():
    assert printable("\x1b]0;owned\x07a\x1b[31;1mred\x1b[0m\x1b[2J b\tc\nd\r") == "ared b\tc\nd"


def test_a_spool_that_becomes_a_link_at_any_moment_is_never_left(tmp_path, tag):
    """A child is started, heard and recorded while its spool's folder and a link swap their names."""
    outside, spools = tmp_path / "outside", tmp_path / "spools"
    (outside / "1").mkdir(parents=True)
    (spools / "1").mkdir(parents=True)
    (tmp_path / "other").symlink_to(outside)
    libc = ctypes.CDLL(None)
    names = os.fsencode(spools), os.fsencode(tmp_path / "other")
    if libc.renameat2(-100, names[0], -100, names[1], 2):
        pytest.skip("this disk cannot exchange two names")
    swapper = os.fork()
    if swapper == 0:
        while True:
            libc.renameat2(-100, names[0], -100, names[1], 2)
            time.sleep(0.0005)
    try:
        for _ in range(8):
            child = Child(
                (sys.executable, "-S", "-c", "print('said')"), tmp_path, dict(os.environ), spools / "1"
            )
            with contextlib.suppress(RondelError, MachineTrouble, OSError):
                asyncio.run(run(child))
    finally:
        os.kill(swapper, signal.SIGKILL)
        os.waitpid(swapper, 0)
    assert [p.name for p in outside.rglob("*")] == ["1"]


CHAINS = """
import os, sys, time
end = time.monotonic() + 60  # whatever happens
for _ in range(40):
    if os.fork():
        continue
    os.setsid()
    while time.monotonic() < end:  # each forks the next and is gone
        time.sleep(0.002)
        if os.fork():
            os._exit(0)
    os._exit(0)
"""
GIVES_UP = """
import os, sys
sys.path.append({src!r})
from rondel.processes import reaper
reaper.GIVE_UP_S = 0.1
reaper.Reaper._kill = reaper.Reaper._all = lambda *_: None
os.fchdir(int(sys.argv[2]))
os.close(int(sys.argv[2]))
sys.exit(reaper.main("."))
"""


@pytest.mark.skipif(not reaper.LINUX, reason="elsewhere nobody takes in orphans")
def test_processes_that_are_gone_as_soon_as_they_are_seen_are_ended_all_the_same(tmp_path, tag):
    ended = go(tmp_path, tag, (sys.executable, "-S", "-c", CHAINS))
    assert (ended.code, ended.reason, ended.error) == (0, Reason.EXITED, "")
    assert alive(tag) == []


def test_of_a_child_some_of_which_cannot_be_ended_nothing_is_used(tmp_path, tag, monkeypatch):
    script = tmp_path / "gives_up.py"
    script.write_text(GIVES_UP.format(src=str(Path(reaper.__file__).parents[2])))
    monkeypatch.setattr(reaper, "__file__", str(script))
    leaves = "import subprocess; subprocess.Popen(['sleep', '60'], start_new_session=True); print('done')"
    with pytest.raises(MachineTrouble, match=r"could not be ended.*Nothing that it left is used"):
        go(tmp_path, tag, (sys.executable, "-S", "-c", leaves))
    assert finished(tmp_path / "spool") is None
    assert answered(tmp_path / "spool") is None
    assert alive(tag) == []
