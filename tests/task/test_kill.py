"""Kill it anywhere in a parallel run: nothing completed runs again, nothing is left behind, git is sane."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest
from task_support import (
    REPORT,
    Scripted,
    allow_all,
    git,
    hall,
    repository,
    run,
    session,
    statuses,
    step,
    task,
    task_id,
    write_file,
)

from rondel.workflows.task import layout
from rondel.workflows.task.workflow import TaskWorkflow
from support.faults import die_at, in_child

NEEDS = {
    "IMPL-1": [],
    "IMPL-2": [],
    "IMPL-3": [],
    "IMPL-4": ["IMPL-1", "IMPL-2"],
    "IMPL-5": ["IMPL-3"],
    "IMPL-6": ["IMPL-4"],
}
CHECKS = "sh check.sh"
POINTS_MAX = 4000


def six(log: Path) -> list[dict]:
    noted = [step(f"bash(echo $id >> {log})", "note", on_error="fail")]
    return [task(t, depends_on=d, steps=noted if t == "IMPL-4" else []) for t, d in NEEDS.items()]


def prepare(folder: Path):
    root = repository(folder / "repo")
    (root / "check.sh").write_text("test -f README.md\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "check")
    ref = session(root, six(folder / "steps"))
    allow_all(root, ref)
    return root, ref


def answer(request) -> str:
    name = task_id(request)
    for need in NEEDS[name]:
        assert (request.cwd / f"{need}.txt").read_text() == f"{need}\n"
    write_file(request, f"{name}.txt", f"{name}\n")
    return REPORT


def drive(root: Path, ref, calls: Path, *, first: bool) -> int:
    here = hall(root, Scripted(answer, calls=calls, seconds=0.03))
    if first:
        return run(here, ref, checks=CHECKS, jobs=3).exit_code
    return here.drive(ref, agents_max=3).exit_code


def paid(calls: Path) -> Counter[str]:
    return Counter(calls.read_text().split()) if calls.exists() else Counter()


def completed(root: Path, ref) -> set[str]:
    return {t for t, s in statuses(root, ref).items() if s == "completed"}


def assert_sane(root: Path) -> None:
    """The person's own tree is whole at every moment: no operation of git under way, nothing changed."""
    names = {p.name for p in (root / ".git").iterdir()}
    assert names.isdisjoint({"rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "MERGE_HEAD", "sequencer"})
    git(root, "fsck", "--connectivity-only", "--no-dangling")


def assert_finished(root: Path, ref, folder: Path) -> None:
    assert completed(root, ref) == set(NEEDS)
    assert len(git(root, "worktree", "list").splitlines()) == 1
    assert git(root, "branch", "--format=%(refname:short)").split() == ["main"]
    assert git(root, "rev-list", "--merges", "--count", "HEAD") == "0"
    subjects = [
        s.split(":")[0] for s in git(root, "log", "--format=%s").splitlines() if s.startswith("IMPL-")
    ]
    assert sorted(subjects) == sorted(NEEDS), "each task has exactly one commit"
    assert git(root, "status", "--porcelain", "--untracked-files=no") == ""
    assert {(root / f"{t}.txt").read_text() for t in NEEDS} == {f"{t}\n" for t in NEEDS}
    assert all((root / ref.folder / layout.summary_file(t)).is_file() for t in NEEDS)
    workspaces = Path(os.environ["XDG_CACHE_HOME"]) / "rondel/workspaces"
    assert list(workspaces.glob("*/write/*")) == []


def settle(root: Path, ref) -> None:
    """Wait until the children of a killed driver are gone, and git's locks with them."""
    deadline = time.monotonic() + 10
    while (root / ".git/index.lock").exists() and time.monotonic() < deadline:
        time.sleep(0.05)


def kill_after(seconds: float, root: Path, ref, calls: Path, *, first: bool) -> bool:
    """Drive in a child and end it by SIGKILL after a while; whether it was killed."""
    pid = os.fork()
    if pid == 0:
        status = 97
        try:
            status = drive(root, ref, calls, first=first)
        finally:
            os._exit(status)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert os.waitstatus_to_exitcode(status) == 0
            return False
        time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return True


@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_is_killed_again_and_again_completes_each_task_once(seed, tmp_path):
    root, ref = prepare(tmp_path)
    calls = tmp_path / "calls"
    dice = random.Random(seed)
    hall(root).ask_for(ref, {"kind": "run", "target": "main", "checks": CHECKS})
    kills = 0
    for _ in range(12):
        done, before = completed(root, ref), paid(calls)
        killed = kill_after(dice.uniform(0.1, 0.9), root, ref, calls, first=False)
        settle(root, ref)
        assert_sane(root)
        again = {a for a, n in paid(calls).items() if n > before[a]}
        assert again.isdisjoint({layout.work_file(t, 1) for t in done}), "a completed task ran again"
        if not killed:
            break
        kills += 1
    else:
        assert drive(root, ref, calls, first=False) == 0
    assert kills >= 1
    assert_finished(root, ref, tmp_path)


def check_death_at(point: int, folder: Path) -> bool:
    """Die at a fault point of the store, go on; False when there is no such point any more."""
    root, ref = prepare(folder)
    calls = folder / "calls"

    def doomed() -> None:
        die_at(point)
        drive(root, ref, calls, first=True)

    status = in_child(doomed)
    assert status in (0, -signal.SIGKILL)
    settle(root, ref)
    assert_sane(root)
    done, before = completed(root, ref), paid(calls)
    here = hall(root)
    if not here.state(ref).request.kind:
        here.ask_for(ref, {"kind": "run", "target": "main", "checks": CHECKS})
    assert drive(root, ref, calls, first=False) == 0
    after = paid(calls)
    for name in done:
        path = layout.work_file(name, 1)
        assert after[path] == before[path], f"{name} was completed, and ran again"
    assert_finished(root, ref, folder)
    return status != 0


@pytest.mark.parametrize("point", [5, 23, 47, 71, 95, 120])
def test_a_death_at_a_point_of_the_store_loses_nothing(point, tmp_path):
    assert check_death_at(point, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_a_death_at_every_point_of_the_store_loses_nothing(part, tmp_path):
    for point in range(1 + part, POINTS_MAX, 8):
        if not check_death_at(point, tmp_path / str(point)):
            assert point > 100
            return
    pytest.fail("the run never came to its end")


def test_the_workflow_itself_holds_no_state():
    assert vars(TaskWorkflow()) == {}
