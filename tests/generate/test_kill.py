"""Kill it anywhere, between two files of a cycle's completion too: it goes on, and pays nothing twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from generate_scene import FAIL, FULL, PASS, Scene, begin, blocks, engineer, place, project, repo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_session import WIDE

from rondel.agents.base import Request
from rondel.testing.faults import die_at
from rondel.testing.kills import Trial, killed_and_resumed, sweep, undisturbed
from rondel.testing.scripted import Scripted
from rondel.workflows.generate.models import WorkflowState
from support.kills import swept, swept_alone

SMALL = {**FULL, "scope": "domain"}


def answer(request: Request) -> str:
    """Two cycles: the domain needs one revision; then the tests."""
    kind, iteration, phase = place(request)
    if phase == "review":
        return FAIL if (kind, iteration) == ("domain", 1) else PASS
    return engineer(request)


def short_answer(request: Request) -> str:
    kind, _, phase = place(request)
    return {"planning": "A plan.", "review": PASS}.get(phase) or blocks({f"{kind}.java": "class A {}\n"})


class Cycles(Trial):
    """Two cycles with a gate in the first, which a person opens at the second asking."""

    answer = staticmethod(answer)

    def __init__(self, folder: Path) -> None:
        self.root = repo(folder / "repo")
        request = {"gate": "skip", "gates": {"domain.review": "manual"}}
        self.ref = begin(self.root, context=SMALL, request=request)
        self.session = self.root / self.ref.folder

    def drive(self) -> int:
        here = project(self.root, Scripted(self.answer))
        while (code := here.run(self.ref).exit_code) == 3:
            for question in here.waiting(self.ref):
                first = "prompt-1" in question.path and "iteration-1" in question.path
                here.decide(self.ref, "reject" if first else "approve", path=question.path, comment="shorter")
        return code

    def shown(self) -> dict[str, object]:
        return {path: data.replace(self.ref.id.encode(), b"ID") for path, data in super().shown().items()}

    def check_killed(self) -> None:
        """A complete cycle has all of its files; one that is not complete gives nothing to others."""
        state = WorkflowState.model_validate(json.loads((self.session / "session.json").read_text()))
        for cycle in state.cycles:
            if cycle.status == "completed":
                assert cycle.artifacts
                assert cycle.iterations[-1].verdict == "PASS"
                assert not cycle.pending
            for artifact in cycle.artifacts:
                assert (self.session / artifact.path).is_file()


class AtOnce(Cycles):
    """Two cycles at once, and one that needs both."""

    answer = staticmethod(short_answer)

    def __init__(self, folder: Path) -> None:
        profile = folder / "repo/.aiwf/profiles/wide/profile.py"
        profile.parent.mkdir(parents=True)
        profile.write_text(WIDE)
        self.root = repo(folder / "repo")
        request = {"auto": True, "parallel": True}
        self.ref = begin(self.root, profile="wide", context={}, request=request)
        self.session = self.root / self.ref.folder


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    return undisturbed(Cycles(tmp_path_factory.mktemp("undisturbed")))


def die_between_files(number: int) -> None:
    """Before the change of that number in what the session's folder shows."""

    def counts(operation: str, path: str) -> bool:
        return operation in {"rename", "link", "unlink"} and "/rondel/repos/" not in path

    die_at(number, counts=counts)


@swept_alone(parts=4, stride=6)
def test_a_death_between_any_two_files_changes_nothing(points, tmp_path, calm):
    sweep(Cycles, tmp_path, points, calm, least=40, die=die_between_files)


@swept(parts=2, stride=50)
def test_a_death_at_points_all_through_a_session_changes_nothing(share, tmp_path, calm):
    share.sweep(Cycles, tmp_path, calm, least=300, apart=8)


@swept(parts=2, stride=40)
def test_a_death_while_cycles_run_at_once_changes_nothing(share, tmp_path):
    share.sweep(AtOnce, tmp_path, undisturbed(AtOnce(tmp_path / "undisturbed")), least=150, apart=8)


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(points=st.lists(st.integers(min_value=1, max_value=600), min_size=2, max_size=4))
def test_deaths_at_random_points_one_after_the_other_change_nothing(points, tmp_path_factory, calm):
    killed_and_resumed(Cycles(tmp_path_factory.mktemp("random")), points, calm)


def test_a_cycle_is_complete_in_one_step(tmp_path):
    """Whoever looks while it runs sees a cycle complete with its verdict, or not complete."""
    seen = []

    def looking(request):
        body = json.loads((scene.folder / "session.json").read_text())
        seen.append([c["status"] for c in body["cycles"]])
        kind = place(request)[0]
        assert all(c["completed_at"] for c in body["cycles"] if c["status"] == "completed")
        assert body["cycles"][body["current_cycle_index"]]["type"] == kind
        return answer(request)

    scene = Scene(tmp_path / "repo", looking, context=SMALL)
    assert scene.drive().exit_code == 0
    assert ["completed", "in_progress"] in seen
