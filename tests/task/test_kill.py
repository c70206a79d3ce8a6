"""Kill it anywhere in a parallel run: nothing completed runs again, nothing is left behind, git is sane."""

from __future__ import annotations

import os
import random
import subprocess
import time
from pathlib import Path

import pytest
from task_support import (
    REPORT,
    Scripted,
    allow_all,
    git,
    project,
    repository,
    session,
    settle_in,
    statuses,
    step,
    task,
    task_id,
    write_file,
)

from rondel.agents.base import Reply
from rondel.model.outcomes import Ended
from rondel.repo.checkout import NOTE
from rondel.testing.faults import die_after
from rondel.testing.kills import Trial, content, killed_and_resumed, undisturbed
from rondel.workflows.task import layout
from rondel.workflows.task.workflow import TaskWorkflow
from support.kills import swept

NEEDS = {
    "IMPL-1": [],
    "IMPL-2": [],
    "IMPL-3": [],
    "IMPL-4": ["IMPL-1", "IMPL-2"],
    "IMPL-5": ["IMPL-3"],
    "IMPL-6": ["IMPL-4"],
}
EDITING = sorted(NEEDS.keys() - {"IMPL-5"})
CHECKS = "sh check.sh"
UNDER_WAY = {"rebase-merge", "rebase-apply", "CHERRY_PICK_HEAD", "MERGE_HEAD", "sequencer"}


def is_whole(root: Path) -> bool:
    fsck = ["git", "fsck", "--connectivity-only", "--no-dangling"]
    whole = subprocess.run(fsck, cwd=root, check=False, capture_output=True).returncode == 0
    return whole and not (root / ".git/index.lock").exists()


def answer(request) -> str | Reply:
    """IMPL-5 changes nothing; IMPL-2 fails once, half done."""
    name = task_id(request)
    if name == "IMPL-5":
        return REPORT
    if name == "IMPL-2" and request.attempt == 1:
        write_file(request, "IMPL-2.txt", "half\n")
        return Reply(Ended.FAILED, error="out of words")
    for need in NEEDS[name]:
        assert (request.cwd / f"{need}.txt").read_text() == f"{need}\n"
    write_file(request, f"{name}.txt", f"{name}\n")
    return REPORT


class Six(Trial):
    """Six tasks, three at once; one has a step of its own."""

    def __init__(self, folder: Path) -> None:
        self.root = repository(folder / "repo")
        (self.root / "check.sh").write_text("test -f README.md\n")
        git(self.root, "add", "-A")
        git(self.root, "commit", "-qm", "check")
        noted = [step(f"bash(echo $id >> {folder / 'steps'})", "note", on_error="fail")]
        tasks = [task(t, depends_on=d, steps=noted if t == "IMPL-4" else []) for t, d in NEEDS.items()]
        self.ref = session(self.root, tasks)
        self.session = self.root / self.ref.folder
        project(self.root).begin(self.ref, new=True)
        allow_all(self.root, self.ref)

    git_dies = False  # together with its driver

    def drive(self) -> int:
        here = project(self.root, Scripted(answer, seconds=0.03))
        if not here.state(self.ref).request.kind:
            here.ask_for(self.ref, {"kind": "run", "target": "main", "checks": CHECKS})
        return here.run(self.ref, agents_max=3, retry=True).exit_code

    def shown(self) -> dict[str, object]:
        return {**statuses(self.root, self.ref), **dict.fromkeys(content(self.session), "there")}

    def check_killed(self) -> None:
        """The person's own tree is whole at every moment: no operation of git under way, nothing changed.

        Where git was killed too, it may wait for the next run to put it right.
        """
        began = time.monotonic()  # a git that the killed driver had started ends by itself
        while not is_whole(self.root):
            waited = time.monotonic() - began
            if (
                self.git_dies
                and waited > 1
                and ((self.root / ".git" / NOTE).exists() or self._is_half_made())
            ):
                return
            assert waited < 60
            time.sleep(0.05)
        assert {p.name for p in (self.root / ".git").iterdir()}.isdisjoint(UNDER_WAY)

    def _is_half_made(self) -> bool:
        """Whether git was killed while it made a worktree of ours: one that no commit is checked out in."""
        heads = [place / "HEAD" for place in (self.root / ".git/worktrees").glob("*")]
        return any(not h.is_file() or set(h.read_text().strip()) <= {"0"} for h in heads)

    def check_ended(self) -> None:
        root = self.root
        assert is_whole(root)
        assert set(statuses(root, self.ref).values()) == {"completed"}
        assert len(git(root, "worktree", "list").splitlines()) == 1
        assert git(root, "branch", "--format=%(refname:short)").split() == ["main"]
        assert git(root, "rev-list", "--merges", "--count", "HEAD") == "0"
        subjects = [s.split(":")[0] for s in git(root, "log", "--format=%s").splitlines() if s[:5] == "IMPL-"]
        assert sorted(subjects) == EDITING, "each task that edits has exactly one commit"
        assert git(root, "status", "--porcelain", "--untracked-files=no") == ""
        assert {(root / f"{t}.txt").read_text() for t in EDITING} == {f"{t}\n" for t in EDITING}
        assert all((self.session / layout.summary_file(t)).is_file() for t in NEEDS)
        workspaces = Path(os.environ["XDG_CACHE_HOME"]) / "rondel/workspaces"
        assert list(workspaces.glob("*/write/*")) == []


class Cut(Six):
    """The same, where a git is killed too."""

    git_dies = True


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        settle_in(tmp_path_factory.mktemp("home"), monkeypatch)
        found = undisturbed(Six(tmp_path_factory.mktemp("undisturbed")))
    assert found.paid == dict.fromkeys((layout.work_file(t, 1) for t in NEEDS), 1)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_is_killed_again_and_again_completes_each_task_once(seed, tmp_path, calm):
    dice = random.Random(seed)
    moments = [0.1, *(dice.uniform(0.1, 0.9) for _ in range(11))]  # the first is never too late
    assert killed_and_resumed(Six(tmp_path), moments, calm, die_after)


@pytest.mark.parametrize("point", [5, 23, 47, 71, 95, 120])
def test_a_death_at_a_point_of_the_store_loses_nothing(point, tmp_path, calm):
    assert killed_and_resumed(Cut(tmp_path), [point], calm)


@swept(parts=4, stride=20)
def test_a_death_at_points_all_through_a_run_loses_nothing(share, tmp_path, calm):
    share.sweep(Cut, tmp_path, calm, least=300, apart=8)


def test_the_workflow_itself_holds_no_state():
    assert vars(TaskWorkflow()) == {}
