"""Kill it anywhere; start it again: it ends as if nothing had happened, and no answer is paid for twice."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from cycle_answers import answer
from cycle_loop import plan_reply
from cycle_repo import Repo
from test_running import QUICK

from rondel.agents.base import Request
from rondel.model import doclog
from rondel.project import Project
from rondel.testing.kills import Trial, content, killed_and_resumed, undisturbed
from rondel.testing.scripted import Scripted, run_of
from rondel.workflows.cycle.files import added, create
from support.kills import swept

TWO = plan_reply({"id": "A", "description": "subtract"}, {"id": "B", "description": "beside"})


class Once(Trial):
    """A cycle to its end: two tasks, tests that fail at first, an edit that changes nothing."""

    def __init__(self, folder: Path) -> None:
        self.repo = Repo(folder)
        self.repo.configure(QUICK)
        test = json.loads(QUICK.partition("test = ")[2])
        self.root = self.repo.root
        settings = {"test": test, "auto": True}
        self.ref = create(self.root, "Add subtraction", title=None, settings=settings)
        self.session = self.repo.progress

    def answer(self, request: Request) -> str:
        """Two tasks, where `answer` has three."""
        return TWO if request.action.endswith("/plan.json") else answer(request)

    def drive(self) -> int:
        return Project(self.root, build=lambda _: Scripted(self.answer)).run(self.ref).exit_code

    def shown(self) -> dict[str, object]:
        """Everything but times, commits and the id."""
        repo = self.repo
        state = repo.state
        log = (self.session / "cd/changes.log").read_text().splitlines()
        timeline = (self.session / "coordination/timeline.md").read_text().splitlines()
        return {
            "status": (
                state["status"],
                state["current_iteration"],
                state["current_phase"],
                state["task_history"],
            ),
            "agents": {
                n: (a["status"], a["iterations_completed"], a["output_files"])
                for n, a in state["agents"].items()
            },
            "iterations": [(i["number"], i["issues_found"], i["resolved"]) for i in state["iterations"]],
            "feedback": [
                (e["source"], e["target"], e["content"]) for e in state["coordination"]["feedback_log"]
            ],
            "blockers": state["coordination"]["blockers"],
            "plan": [(t["id"], t["status"]) for t in state["plan"]["tasks"]],
            "versions": [
                state[s]["version"] for s in ("requirements", "exploration", "plan", "test_results")
            ],
            "tests": (state["test_results"]["pass_rate"], state["test_results"]["total_tests"]),
            "changes": Counter((e["file"], e["action"], e["iteration"]) for e in state["changes"]["changes"]),
            "log": Counter((e["file"], e["action"], e["iteration"]) for e in map(json.loads, log)),
            "timeline": [line.partition("**")[2].partition("**")[0] for line in timeline],
            "commands": Counter(
                p.parent.parent.name  # those that came to their end; one that was cut off runs again
                for p in run_of(self.session).glob("spool/*/*/exit.json")
                if json.loads(p.read_bytes())["reason"] == "exited"
            ),
            **{f"the file {path}": True for path in content(self.session) if "/extensions/" not in path},
            "commits": sorted(repo.git("log", "--format=%s", f"main..{repo.branch}").splitlines()),
            "code": repo.built("calc.py"),
        }

    def check_ended(self) -> None:
        logged = doclog.read((self.session / "coordination/state.ndjson").read_bytes())
        assert logged.document == self.repo.state
        assert "/write/" not in self.repo.git("worktree", "list"), "no workspace is left"


class Extended(Once):
    """A cycle of three tasks to its end, extended, and to its end again."""

    def answer(self, request: Request) -> str:
        return answer(request)

    def drive(self) -> int:
        assert super().drive() == 0
        project = Project(self.root)
        if not any((self.session / ".rondel/parts/extensions").glob("[!.]*")):
            project.change(self.ref, [added("And more", project.look.at)])
        return super().drive()


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    found = undisturbed(Extended(tmp_path_factory.mktemp("calm")))
    assert len(found.paid) > 20
    return found


@pytest.mark.parametrize("_", range(3))
def test_deaths_at_random_points_one_after_the_other_change_nothing(_, tmp_path, calm):
    killed_and_resumed(Extended(tmp_path), [random.randint(1, 2600) for _ in range(4)], calm)


@pytest.fixture(scope="module")
def calm_once(tmp_path_factory):
    return undisturbed(Once(tmp_path_factory.mktemp("calm-once")))


@swept(parts=4, stride=24)
def test_a_death_at_points_all_through_a_cycle_changes_nothing(share, tmp_path, calm_once):
    share.sweep(Once, tmp_path, calm_once, least=500, apart=8)
