"""Two drivers, killed drivers, and the children they leave."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from harness import REF, project, repository, start

from rondel.agents.base import Beat, Reply, Request
from rondel.errors import Held, LostLease, UsageError
from rondel.store.lease import Lease
from rondel.testing.faults import in_children
from rondel.testing.scripted import Scripted, run_of

DRIVE = Path(__file__).parent / "drive.py"
MARK = "RONDEL_TEST_MARK"

AGENT = """
import os, subprocess, sys, time
sys.stdin.read()
with open(sys.argv[1], "a") as f:
    f.write(os.environ["RONDEL_ACTION"] + "\\n")
if os.path.exists(sys.argv[2]):
    subprocess.Popen(["sleep", "600"], start_new_session=True)
    print("half of an answer", flush=True)
    time.sleep(600)
print("A whole answer.")
"""


@pytest.fixture
def scene(tmp_path, monkeypatch):
    root = repository(tmp_path / "repo")
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "slow").touch()
    command = [sys.executable, str(tmp_path / "agent.py"), str(tmp_path / "calls"), str(tmp_path / "slow")]
    (root / "rondel.toml").write_text(
        f'[agents.fake]\nkind = "command"\ncommand = {command!r}\nenv = {{ {MARK} = "{tmp_path}" }}\n'
        '[roles]\ndefault = "fake"\n[limits]\nagents_max = 2\n'.replace("'", '"')
    )
    start(root, auto=True, width=2)
    yield root
    for pid in marked(tmp_path):
        os.kill(pid, 9)


def marked(folder: Path) -> list[int]:
    """Every live process that was started with our mark in its environment."""
    found = []
    wanted = f"{MARK}={folder}".encode()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            environ = (entry / "environ").read_bytes().split(b"\0")
            state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if wanted in environ and state != "Z":
            found.append(int(entry.name))
    return found


def driver(root: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(DRIVE), str(root)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for(condition, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def test_the_second_driver_says_who_holds_the_session_and_leaves_with_1(scene):
    first = driver(scene)
    wait_for(lambda: len(marked(scene.parent)) >= 2)
    second = driver(scene)
    _, err = second.communicate(timeout=30)
    assert second.returncode == 1
    assert str(first.pid) in err
    assert REF.name in err
    first.terminate()
    assert first.wait(timeout=30) == 130
    assert marked(scene.parent) == []


@pytest.mark.slow
def test_after_kill_9_a_resume_goes_on_at_once_and_the_old_children_are_gone(scene):
    first = driver(scene)
    wait_for(lambda: len(marked(scene.parent)) >= 4)
    old = set(marked(scene.parent))
    first.kill()
    first.wait()
    (scene.parent / "slow").unlink()
    second = driver(scene)
    out, err = second.communicate(timeout=60)
    assert second.returncode == 0, out + err
    assert not old & set(marked(scene.parent))
    assert (scene / REF.folder / "final.md").read_text() == "A whole answer.\n"
    calls = (scene.parent / "calls").read_text().split()
    assert sorted(calls) == sorted(["round-1/notes/1.md", "round-1/notes/2.md"] * 2 + ["final.md"])


@pytest.mark.slow
def test_a_killed_driver_alone_leaves_no_process_behind(scene):
    first = driver(scene)
    wait_for(lambda: len(marked(scene.parent)) >= 4)
    first.kill()
    first.wait()
    wait_for(lambda: not marked(scene.parent))


def test_a_driver_that_is_interrupted_ends_its_agents_and_says_130(scene):
    first = driver(scene)
    wait_for(lambda: len(marked(scene.parent)) >= 2)
    first.send_signal(2)
    out, _ = first.communicate(timeout=30)
    assert first.returncode == 130
    assert "interrupted" in out
    assert marked(scene.parent) == []


def test_of_what_several_terminals_ask_for_at_once_what_was_not_refused_is_there(tmp_path):
    root = repository(tmp_path / "repo")
    start(root)
    said = tmp_path / "said"

    def ask(number: int) -> int:
        for k in range(5):
            try:
                project(root).ask_for(REF, {"who": number, "k": k})
            except Held:
                continue
            with said.open("a") as file:
                file.write(f"{number} {k}\n")
        return 0

    assert in_children(partial(ask, n) for n in range(8)) == [0] * 8
    left = (root / REF.folder / ".rondel").glob("request-*.json")
    asked = [json.loads(path.read_text()) for path in left]
    taken = [f"{r['who']} {r['k']}" for r in asked if "who" in r]
    assert sorted(taken) == sorted(said.read_text().splitlines())
    assert taken, "one at least was taken"


def test_of_several_who_answer_one_question_at_once_one_does(tmp_path):
    root = repository(tmp_path / "repo")
    start(root, width=1)
    assert project(root).run(REF).exit_code == 3

    def answer(number: int) -> int:
        try:
            project(root).decide(REF, ("approve", "reject")[number % 2], by=str(number))
        except UsageError:
            return 2
        return 0

    ended = in_children(partial(answer, n) for n in range(8))
    assert sorted(ended) == [0] + [2] * 7
    decision = json.loads((root / REF.folder / ".rondel/decisions/round-1.json").read_text())
    assert decision["by"] == str(ended.index(0))


class Patient(Scripted):
    """Answers the first note, or none at all."""

    slow = False

    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        if self.slow or not request.action.endswith("/1.md"):
            await asyncio.sleep(600)
        return await super().run(request, beat)


@pytest.mark.parametrize("answers", [True, False])
def test_a_driver_that_was_replaced_ends_what_it_began_and_writes_nothing_more(tmp_path, answers):
    root = repository(tmp_path / "repo")
    start(root, auto=True, width=3)
    before: dict[str, bytes] = {}

    def replaced() -> None:
        run = run_of(root / REF.folder)
        (run / "lease").unlink()
        Lease.take(run, REF.name)
        before.update({name: (run / name).read_bytes() for name in ("lease", "journal.jsonl")})

    def answer(_: Request) -> str:
        replaced()
        return "Too late.\n"

    def begun() -> None:
        while (run_of(root / REF.folder) / "journal.jsonl").read_text().count('"started"') < 4:
            time.sleep(0.01)
        replaced()

    if not answers:
        threading.Timer(0.5, begun).start()
    agent = Patient(answer)
    agent.slow = not answers
    with pytest.raises(LostLease):
        project(root, agent).run(REF)
    assert {name: (run_of(root / REF.folder) / name).read_bytes() for name in before} == before
    assert not (root / REF.folder / "round-1").exists()
