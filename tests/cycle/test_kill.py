"""Kill it anywhere; start it again: it ends as if nothing had happened, and no answer is paid for twice."""

from __future__ import annotations

import json
import random
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from cycle_loop import EP, RA, VAS, block, plan_reply
from cycle_repo import Repo
from test_running import QUICK

from rondel.agents.base import Beat, Reply, Request
from rondel.api import Hall
from rondel.model import doclog
from rondel.model.outcomes import Ended
from rondel.store import disk
from rondel.workflows.cycle import layout
from rondel.workflows.cycle.files import added, start
from support.faults import die_at, in_child

TASKS = plan_reply(
    {"id": "A", "description": "subtract"},
    {"id": "B", "description": "beside"},
    {"id": "C", "description": "after", "depends_on": ["A", "B"]},
)


class Scripted:
    """Answers by role. An answer is there, and paid for, the moment it has its name."""

    name = kind = "fake"
    model = ""

    async def run(self, request: Request, beat: Callable[[Beat], None]) -> Reply:
        disk.point("agent", request.action)
        text = self.answer(request)
        request.spool.mkdir(parents=True, exist_ok=True)
        (request.spool / "out.tmp").write_text(text)
        (request.spool / "out.tmp").rename(request.spool / "out")
        disk.point("answered", request.action)
        return Reply(Ended.DONE, text)

    def answer(self, request: Request) -> str:
        name = request.action.rpartition("/")[2]
        if request.role != "cycle.cd":
            return {"requirements.md": RA, "exploration.md": EP, "plan.json": TASKS, "validation.md": VAS}[
                name
            ]
        task = name.partition(".")[0]
        if task == "A":
            code = request.cwd / "calc.py"
            right = "test failed" in request.prompt or "a - b" in code.read_text()
            code.write_text(f"def sub(a, b):\n    return a {'-' if right else '+'} b\n# {request.action}\n")
        else:
            (request.cwd / f"{task}.py").write_text(f"# {request.action}\n")
        return f"Did {task}.\n\n" + block("cd", summary=f"did {task}")

    def recover(self, request: Request) -> Reply | None:
        out = request.spool / "out"
        return Reply(Ended.DONE, out.read_text()) if out.exists() else None

    def version(self) -> str | None:
        return "1"


def made(folder: Path) -> tuple[Repo, str]:
    repo = Repo(folder)
    repo.configure(QUICK)
    test = QUICK.partition("test = ")[2]
    ref = start(repo.root, "Add subtraction", title=None, settings={"test": json.loads(test), "auto": True})
    return repo, ref.id


def driven(repo: Repo, cycle_id: str, die: int | None = None) -> int:
    """Run to the end, extend, run to the end; or die on the way."""

    def work() -> None:
        if die is not None:
            die_at(die)
        hall = Hall(repo.root, build=lambda _: Scripted())
        ref = layout.ref(cycle_id)
        assert hall.drive(ref).exit_code == 0
        if not any((repo.progress / ".rondel/parts/extensions").glob("*")):
            hall.change(ref, [added("And more", hall.look.at)])
        assert hall.drive(ref).exit_code == 0

    return in_child(work)


def shown(repo: Repo) -> dict[str, object]:
    """What must be the same however often it was killed: everything but times, commits and the id."""
    state = repo.state
    log = (repo.progress / "cd/changes.log").read_text().splitlines()
    timeline = (repo.progress / "coordination/timeline.md").read_text().splitlines()
    return {
        "status": (
            state["status"],
            state["current_iteration"],
            state["current_phase"],
            state["task_history"],
        ),
        "agents": {
            n: (a["status"], a["iterations_completed"], a["output_files"]) for n, a in state["agents"].items()
        },
        "iterations": [(i["number"], i["issues_found"], i["resolved"]) for i in state["iterations"]],
        "feedback": [(e["source"], e["target"], e["content"]) for e in state["coordination"]["feedback_log"]],
        "blockers": state["coordination"]["blockers"],
        "plan": [(t["id"], t["status"]) for t in state["plan"]["tasks"]],
        "versions": [state[s]["version"] for s in ("requirements", "exploration", "plan", "test_results")],
        "tests": (state["test_results"]["pass_rate"], state["test_results"]["total_tests"]),
        "changes": Counter((e["file"], e["action"], e["iteration"]) for e in state["changes"]["changes"]),
        "log": Counter((e["file"], e["action"], e["iteration"]) for e in map(json.loads, log)),
        "timeline": [line.partition("**")[2].partition("**")[0] for line in timeline],
        "files": {
            str(p.relative_to(repo.progress))
            for p in repo.progress.rglob("*")
            if p.is_file() and not {"run", "extensions"} & set(p.parts) and ".torn-" not in p.name
        },
        "commits": sorted(repo.git("log", "--format=%s", f"main..{repo.branch}").splitlines()),
        "code": repo.built("calc.py"),
    }


def paid(repo: Repo) -> Counter[str]:
    """How many answers were paid for, by action."""
    spools = repo.progress / ".rondel/run/spool"
    return Counter(str(out.relative_to(spools).parent.parent) for out in spools.rglob("out") if out.is_file())


def check(repo: Repo) -> None:
    logged = doclog.read((repo.progress / "coordination/state.ndjson").read_bytes())
    assert logged.document == repo.state
    assert "/write/" not in repo.git("worktree", "list"), "no workspace is left"
    assert not list(repo.progress.rglob(".rondel-tmp-*"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    repo, cycle_id = made(tmp_path_factory.mktemp("calm"))
    assert driven(repo, cycle_id) == 0
    check(repo)
    assert len(paid(repo)) > 20
    return shown(repo), paid(repo)


def killed_and_resumed(folder: Path, points: list[int], undisturbed) -> list[int]:
    repo, cycle_id = made(folder)
    ends = [driven(repo, cycle_id, die=point) for point in points]
    assert set(ends) <= {0, -signal.SIGKILL}
    assert driven(repo, cycle_id) == 0
    check(repo)
    wanted, calls = undisturbed
    found = shown(repo)
    assert {k: (wanted[k], v) for k, v in found.items() if v != wanted[k] and k != "files"} == {}
    assert found["files"] ^ wanted["files"] == set()
    assert {k: v for k, v in paid(repo).items() if v != calls[k]} == {}, "an answer was paid for twice"
    return ends


@pytest.mark.parametrize("_", range(3))
def test_deaths_at_random_points_one_after_the_other_change_nothing(_, tmp_path, undisturbed):
    points = [random.randint(1, 700) for _ in range(4)]
    print("died at", points)
    killed_and_resumed(tmp_path, points, undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_a_death_at_points_all_through_a_cycle_changes_nothing(part, tmp_path, undisturbed):
    for point in range(part * 7 + 1, 3000, 70):
        if 0 in killed_and_resumed(tmp_path / str(point), [point], undisturbed):
            assert point > 500, "a whole cycle has more points than that"
            return
