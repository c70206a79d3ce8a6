"""Kill it anywhere through specify and design; start it again: nothing is lost or paid for twice."""

from __future__ import annotations

import json
import os
import re
import signal
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scratch import git
from turning import APPROVED, BLOCKED

from rondel.agents.base import Beat, Reply, Request
from rondel.agents.settings import AgentSettings
from rondel.api import Hall
from rondel.model.outcomes import Ended
from rondel.model.workflow import SessionRef
from rondel.store import disk, files
from rondel.workflows.feature import start_feature
from rondel.workflows.feature.lint import lint_meta
from rondel.workflows.feature.workflow import Feature

REF = SessionRef("feature", "001-add", "docs/features/001-add")
POINTS_MAX = 600
PARTS = 8
TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")


class Scripted:
    """Drafts, and a reviewer that wants one revision of each; every answer is counted on disk."""

    name, kind, model = "fake", "fake", ""

    def __init__(self, calls: Path) -> None:
        self._calls = calls

    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        disk.point("agent", request.action)
        with self._calls.open("a") as file:
            file.write(request.action + "\n")
        text = f"# {request.action}\n\n=== CHANGES ===\nWrote it.\n"
        if request.action.endswith("review.json"):
            text = BLOCKED if "iteration-1" in request.action else APPROVED
        request.spool.mkdir(parents=True, exist_ok=True)
        (request.spool / "out").write_text(text)
        disk.point("answered", request.action)
        return Reply(Ended.DONE, text)

    def recover(self, request: Request) -> Reply | None:
        out = request.spool / "out"
        return Reply(Ended.DONE, out.read_text()) if out.exists() else None

    def version(self) -> str:
        return "1"


def scratch(folder: Path) -> Path:
    root = folder / "repo"
    root.mkdir(parents=True)
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "start")
    (root / "rondel.toml").write_text(f'[workspaces]\nroot = "{folder / "trees"}"\n')
    start_feature(root, "Add", brainstorm="# Ideas\n")
    (root / REF.folder / ".rondel/request-2.json").write_text('{"command": "run", "until": "design"}')
    return root


def one_run(root: Path, calls: Path, die: int | None = None) -> int:
    """Run in a child process of its own, until the end or until it dies."""
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
    code = 99
    files._swept.clear()  # a new process has looked nowhere yet
    try:
        if die is not None:
            disk.point = dying(die)

        def build(_: AgentSettings) -> Scripted:
            return Scripted(calls)

        hall = Hall(root, workflows={"feature": Feature()}, build=build)
        code = hall.drive(REF).exit_code
    except BaseException:  # noqa: BLE001 - the child shows whatever it was and ends
        traceback.print_exc()
    finally:
        os._exit(code)


def dying(number: int) -> Callable[[str, str], None]:
    """A hook that ends this process, really, at the fault point of that number."""
    count = 0

    def point(_operation: str, _path: str) -> None:
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return point


def content(root: Path) -> dict[str, bytes]:
    """Every file that is state, with the moments taken out."""
    folder = root / REF.folder
    return {
        str(p.relative_to(folder)): TIME.sub(b"T", p.read_bytes())
        for p in sorted(folder.rglob("*"))
        if p.is_file() and ".rondel/run" not in str(p) and ".torn-" not in p.name
    }


def paid(calls: Path) -> Counter[str]:
    return Counter(calls.read_text().split()) if calls.exists() else Counter()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    root = scratch(folder)
    assert one_run(root, folder / "calls") == 0
    return content(root), paid(folder / "calls")


def dies_at(point: int, folder: Path, undisturbed) -> bool:
    """Die at a point, go on, compare. False when there is no such point any more."""
    expected, calls = undisturbed
    root = scratch(folder)
    died = one_run(root, folder / "calls", die=point)
    assert died in (0, -9)
    half = json.loads((root / REF.folder / ".meta.json").read_text())
    assert lint_meta(half) == (), "what a kill leaves is sound as it stands"
    assert one_run(root, folder / "calls") == 0
    assert content(root) == expected
    assert paid(folder / "calls") == calls, "an answer was paid for twice, or not at all"
    return died == -9


def test_undisturbed_it_takes_two_iterations_of_each_phase(undisturbed):
    left, calls = undisturbed
    assert sum(calls.values()) == 8
    meta = json.loads(left[".meta.json"])
    assert [meta["phases"][p]["iterations"] for p in ("specify", "design")] == [2, 2]
    assert left[".review-history.md"].count(b"### Iteration") == 4


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(point=st.integers(1, POINTS_MAX))
def test_a_kill_at_a_point_changes_nothing(tmp_path_factory, undisturbed, point):
    dies_at(point, tmp_path_factory.mktemp("killed"), undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_a_kill_at_every_point_changes_nothing(tmp_path_factory, undisturbed, part):
    point = part + 1
    while dies_at(point, tmp_path_factory.mktemp("killed"), undisturbed):
        point += PARTS
    assert point > 300, "there are points to die at"
