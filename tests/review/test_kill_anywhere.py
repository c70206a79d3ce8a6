"""A whole review with six reviewers, ended at any point: it goes on, and asks nobody twice."""

from __future__ import annotations

import os
import re
import shutil
import signal
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from review_support import APP, commit, content, feature_branch, finding, hall_of, look, panel, review

from rondel.errors import NothingToDo
from rondel.store import disk
from rondel.workflows.review import files

POINTS_MAX = 3_000
TEAM = "principal:2,quality:2,security:2"
FIXED = APP + "\n\ndef half(n):\n    return n / 0\n"
WRONG = finding("The sum is a difference", category="blocker")
ZERO = finding("Every call divides by zero", line=6, evidence="return n / 0")


def answers(request):
    if "principal" in request.action:
        return review(ZERO)
    return review(WRONG) if "security-1" in request.action and "round-1" in request.action else review()


def in_child(work: Callable[[], int]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 99
        try:
            code = work()
        except BaseException:  # noqa: BLE001 - the child shows whatever it was and ends
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def dying_at(number: int | None) -> Callable[[str, str], None]:
    count = 0

    def point(_operation: str, _path: str) -> None:
        nonlocal count
        count += 1
        if count == number:
            os.kill(os.getpid(), signal.SIGKILL)

    return point


def one_run(root: Path, die: int | None = None) -> int:
    """What `rondel review` does, in a process of its own."""

    def work() -> int:
        agent = panel(answers)
        agent.calls = root.parent / "calls"
        disk.point = dying_at(die)
        try:
            opened = files.start(root, look(root), files.Wish(team=TEAM, kind_of=lambda _: "fake"))
        except NothingToDo:  # it was complete, and died while it noted that
            return 0
        report = hall_of(root, agent).drive(opened.ref, agents_max=6)
        state = files.state_of(root, opened.ref)
        return report.exit_code if state.is_complete and state.at.number == 2 else 50

    return in_child(work)


def comparable(root: Path) -> dict[str, bytes]:
    """Every file but what a person's asking left, without the times in it."""
    times = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[+\d:]*")
    return {
        path: times.sub(b"TIME", data)
        for path, data in content(root).items()
        if "/request-" not in path and ".set-aside-" not in path
    }


def calls(root: Path) -> Counter[str]:
    path = root.parent / "calls"
    return Counter(path.read_text().split()) if path.exists() else Counter()


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    """A repository after a first round and its fix, and what an undisturbed second round leaves."""
    home = tmp_path_factory.mktemp("home")
    os.environ["HOME"] = str(home)
    root = feature_branch(tmp_path_factory.mktemp("before") / "repo")
    agent = panel(answers)
    opened = files.start(root, look(root), files.Wish(team=TEAM, kind_of=lambda _: "fake"))
    assert hall_of(root, agent).drive(opened.ref, agents_max=6).exit_code == 0
    commit(root, {"app.py": FIXED})
    copy = tmp_path_factory.mktemp("undisturbed") / "repo"
    shutil.copytree(root, copy, symlinks=True)
    assert one_run(copy) == 0
    return root, comparable(copy), calls(copy)


def survives(folder: Path, before: tuple, points: list[int]) -> bool:
    """Die at each of these points in turn, then come to the end. False when no point was reached."""
    source, expected, asked = before
    root = folder / "repo"
    shutil.copytree(source, root, symlinks=True)
    first = {p: d for p, d in content(root).items() if "round-1/" in p}
    died = []
    for point in points:
        died.append(one_run(root, point))
        if died[-1] == 0:
            break
    assert set(died) <= {0, -9}
    reviewed = {p for p in content(root) if "round-2/reviews/" in p and p.endswith(".md")}
    paid = calls(root)
    if died[-1] != 0:
        assert one_run(root) == 0
    assert comparable(root) == expected
    after = calls(root)
    assert after == asked, "somebody was asked twice, or not at all"
    for path in reviewed:
        action = path.partition("/")[2]
        assert after[action] == paid[action] == 1, f"{action} was there and was asked for again"
    now = content(root)
    assert {p: now[p] for p in first} == first, "an earlier round changed"
    assert not list(root.rglob(".rondel-tmp-*"))
    return -9 in died


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(8))
def test_a_death_at_every_single_point_changes_nothing(part, tmp_path, before):
    for point in range(part + 1, POINTS_MAX, 8):
        if not survives(tmp_path / str(point), before, [point]):
            assert point > 100
            return
    pytest.fail("the review never came to its end")


@settings(
    max_examples=5,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
@given(points=st.lists(st.integers(min_value=1, max_value=250), min_size=1, max_size=3))
def test_deaths_at_random_points_one_after_the_other_change_nothing(points, tmp_path_factory, before):
    survives(tmp_path_factory.mktemp("random"), before, points)
