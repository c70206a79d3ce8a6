"""The machine's own trouble: no attempt of anybody, a stop with its name, and everything goes on after."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from harness import REF, git, project, repository, start
from hypothesis import given, settings
from hypothesis import strategies as st
from small import SmallWorkflow
from test_bad_places import fill, mounted

from rondel.agents.base import Reply, Request
from rondel.engine.limits import Disk, short
from rondel.engine.report import Report, Stopped
from rondel.errors import MachineTrouble
from rondel.model.actions import Ask
from rondel.model.outcomes import Ended
from rondel.model.trouble import TROUBLES, trouble, trouble_said
from rondel.project import Project
from rondel.store import disk
from rondel.testing.faults import in_child, points_of
from rondel.testing.scripted import Scripted, asked, paid, run_of

pytestmark = pytest.mark.sweep

SWEEP = bool(os.environ.get("RONDEL_SWEEP"))
DRIVE = Path(__file__).parent / "drive.py"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return repository(tmp_path / "repo")


def journal(root: Path) -> list[dict[str, object]]:
    path = run_of(root / REF.folder) / "journal.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def blamed(root: Path) -> list[dict[str, object]]:
    """What counts against an action: failures, and what was cut off by a driver's death."""
    bad = {Ended.FAILED, Ended.TIMED_OUT, Ended.REJECTED, Ended.CONFLICT}
    return [e for e in journal(root) if e.get("ended") in bad or e["kind"] == "cutoff"]


def drive_with(root: Path, refuse: int, number: int, agent: Scripted) -> Report | None:
    """Drive while the disk refuses all from its N-th operation on; None where nothing could begin."""
    passed = 0

    def count(operation: str, path: str) -> None:
        nonlocal passed
        passed += 1
        if passed >= number and operation not in ("agent", "answered"):
            raise OSError(refuse, os.strerror(refuse), path)

    disk.point = count
    try:
        return project(root, agent).run(REF)
    except MachineTrouble:
        return None


def test_a_disk_that_refuses_from_any_moment_on_blames_nobody_and_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    whole = repository(tmp_path / "whole")
    start(whole, auto=True, width=2)
    points = len(points_of(lambda: project(whole).run(REF)))
    step = 1 if SWEEP else 7
    for number in range(1, points + 1, step):
        root = repository(tmp_path / str(number))
        start(root, auto=True, width=2)
        refuse = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EMFILE, errno.EIO)[number % 5]

        def work(root: Path = root, refuse: int = refuse, number: int = number) -> int:
            report = drive_with(root, refuse, number, Scripted())
            if report is None:
                return 6
            assert report.stopped in (Stopped.MACHINE, Stopped.COMPLETED), report
            assert report.stopped is Stopped.COMPLETED or trouble(OSError(refuse, "")) in report.message
            return report.exit_code

        assert in_child(work) in (0, 6), number
        assert in_child(lambda root=root: project(root, Scripted()).run(REF).exit_code) == 0, number
        assert blamed(root) == [], number
        assert set(paid(root / REF.folder).values()) == {1}, f"{number}: paid twice"
        assert {p: d for p, d in asked(root / REF.folder).items() if d > 1} == {}, f"{number}: asked twice"


AGENT = """
import os, sys
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(log, (os.environ["RONDEL_ACTION"] + "\\n").encode())
print("An answer to", os.environ["RONDEL_ACTION"])
"""


def with_command(root: Path, tmp_path: Path) -> Path:
    """A repository whose agent is a program that notes, elsewhere, each time it is asked."""
    (tmp_path / "agent.py").write_text(AGENT)
    words = [sys.executable, str(tmp_path / "agent.py"), str(tmp_path / "asked")]
    (root / "rondel.toml").write_text(
        f'[agents.mine]\nkind = "command"\ncommand = {json.dumps(words)}\n\n[roles]\ndefault = "mine"\n'
    )
    start(root, auto=True, width=2)
    return tmp_path / "asked"


@pytest.mark.parametrize("limit", ["RLIMIT_NOFILE", "RLIMIT_FSIZE"])
def test_a_limit_of_the_system_blames_no_agent(root, tmp_path, limit):
    """Real limits, from so tight that nothing works to so wide that all does, on the real way to an agent."""
    with_command(root, tmp_path)
    number = getattr(resource, limit)
    steps = {"RLIMIT_NOFILE": (8, 10, 12, 14, 16, 20, 24), "RLIMIT_FSIZE": (0, 300, 1000, 3000, 7000, 9000)}
    codes = []
    for value in range(5, 30) if SWEEP and limit == "RLIMIT_NOFILE" else steps[limit]:
        done = subprocess.run(
            [sys.executable, str(DRIVE), str(root)],
            preexec_fn=lambda v=value: resource.setrlimit(number, (v, resource.getrlimit(number)[1])),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        codes.append(done.returncode)
        starved = done.returncode == 1 and "MachineTrouble" not in done.stderr and value < 10  # Python itself
        assert done.returncode in (0, 6) or starved, (value, done.stdout, done.stderr)
        assert blamed(root) == [], value
    assert 6 in codes
    assert subprocess.run([sys.executable, str(DRIVE), str(root)], check=False).returncode == 0
    assert blamed(root) == []


def test_git_without_room_for_a_worktree_is_no_attempt_and_goes_on_when_there_is_room(root, tmp_path):
    (root / "large.bin").write_bytes(os.urandom(3_000_000))
    git(root, "add", "-A")
    git(root, "commit", "-qm", "large")
    git(root, "branch", "work")
    start(root, auto=True, width=1, edits=True, branch="work")
    with mounted(tmp_path / "disk", "size=2m") as small:
        (root / "rondel.toml").write_text(f'[workspaces]\nroot = "{small}"\n')
        agent = Scripted()
        report = project(root, agent).run(REF)
        assert report.stopped is Stopped.MACHINE, report
        assert "free some space" in report.message
        assert agent.seen == []
        assert blamed(root) == []
        subprocess.run(["mount", "-o", "remount,size=50m", str(small)], check=True)
        assert project(root, agent).run(REF).exit_code == 0
    assert blamed(root) == []


def test_with_too_little_room_left_nobody_is_asked(root):
    (root / "rondel.toml").write_text("[limits]\nfree_mb_min = 1e12\n")
    start(root, auto=True, width=2)
    agent = Scripted()
    report = project(root, agent).run(REF)
    assert report.stopped is Stopped.MACHINE
    assert report.exit_code == 6
    assert "limits.free_mb_min" in report.message
    assert "free some space" in report.message
    assert agent.seen == []
    assert project(root).summary(REF).waiting_for == report.message, "and status says why"
    (root / "rondel.toml").write_text("[limits]\nfree_mb_min = 0\n")
    assert project(root, agent).run(REF).exit_code == 0
    assert set(Counter(agent.actions).values()) == {1}


@pytest.mark.parametrize("setting", ["", "[limits]\nfree_mb_min = 0\n"])
def test_what_fails_on_a_full_disk_is_no_failure_of_the_agent(tmp_path, setting):
    with mounted(tmp_path / "disk", "size=4m") as small:
        root = repository(small / "repo")
        (root / "rondel.toml").write_text(setting)
        start(root, auto=True, width=1)
        full = small / "full"

        def fails(_: Request) -> Reply:
            fill(full)
            return Reply(Ended.FAILED, error="I could not write my file")

        report = project(root, Scripted(fails)).run(REF)
        assert report.stopped is Stopped.MACHINE
        full.unlink()
        assert blamed(root) == []
        assert project(root, Scripted()).run(REF).exit_code == 0


def test_checks_that_fail_on_a_full_disk_cost_no_second_answer(tmp_path):
    with mounted(tmp_path / "disk", "size=8m") as small:
        root = repository(small / "repo")
        git(root, "branch", "work")
        start(root, auto=True, width=1, edits=True, branch="work")
        trees, full = tmp_path / "trees", small / "full"
        (root / "rondel.toml").write_text(f'[workspaces]\nroot = "{trees}"\n')

        def edit(request: Request) -> str:
            (request.cwd / "made.txt").write_text("made\n")
            return "I wrote a file.\n"

        class Checked(SmallWorkflow):
            def plan(self, state):
                for action in super().plan(state):
                    if isinstance(action, Ask) and action.workspace.target:
                        checks = f"test -e {tmp_path}/go || {{ head -c 9000000 /dev/zero >{full}; exit 1; }}"
                        yield replace(action, workspace=replace(action.workspace, checks=checks))
                    else:
                        yield action

        def drive() -> Report:
            return Project(root, workflows={"small": Checked()}, build=lambda _: Scripted(edit)).run(REF)

        assert drive().stopped is Stopped.MACHINE
        full.unlink()
        assert blamed(root) == []
        (tmp_path / "go").touch()
        assert drive().exit_code == 0
        assert paid(root / REF.folder)["round-1/notes/1.md"] == 1
        assert git(root, "show", "work:made.txt") == "made\n"


@settings(deadline=None)
@given(st.integers(0, 10**13), st.integers(0, 10**13), st.none() | st.floats(0, 10**7))
def test_a_disk_that_is_empty_is_never_short_and_a_full_one_always_is(free, size, least):
    size = max(size, free)
    if least is None or least * 1_000_000 <= size:
        assert short(Disk(size, size, None), least) is None
    if size > 20 and (least is None or least > 0):
        assert short(Disk(0, size, None), least) is not None
    if least == 0:
        assert short(Disk(free, size, 0), least) is None


@pytest.mark.parametrize("number", sorted(TROUBLES))
def test_what_a_program_says_of_the_machine_is_understood(number):
    words = f"error: unable to write file big.bin: {os.strerror(number)}\nfatal: cannot create worktree\n"
    assert trouble_said(words) == trouble(OSError(number, ""))
    assert trouble_said(f"error: pathspec '{os.strerror(number)}.txt' did not match any file") is None


def test_a_thread_or_memory_that_is_not_there_is_the_machine_s_trouble():
    assert trouble(MemoryError()) is not None
    assert trouble(RuntimeError("can't start new thread")) is not None
    assert trouble(RuntimeError("dictionary changed size")) is None
    assert trouble(OSError(errno.EACCES, "")) is None


def test_a_file_that_cannot_be_opened_now_is_not_missing(root):
    start(root)
    there = project(root).files(REF)

    def work() -> int:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, 100))
        for look in (there.json, there.names, there.digest):
            try:
                look(".rondel/request-1.json" if look != there.names else ".rondel")
            except MachineTrouble:
                continue
            return 1
        return 0

    assert in_child(work) == 0
