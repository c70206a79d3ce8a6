"""A verdict is about the code that the reviewer was shown; about other code it says nothing."""

from __future__ import annotations

import pytest
from generate_scene import PASS, Scene, engineer, place
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.agents.base import Request
from rondel.engine import driver

REVIEW = "domain/iteration-1/responses/review-response.md"


def code_of(scene: Scene):
    return next(p for p in sorted((scene.folder / "domain/iteration-1/code").rglob("*")) if p.is_file())


@pytest.fixture(autouse=True)
def _unseen(monkeypatch):
    monkeypatch.setattr(driver, "TICK_S", 1000)  # nobody sees a change by chance


def rewriting(scenes: list[Scene], times: int):
    """A reviewer that rewrites the code and says PASS, so many times."""
    left = [times]

    def answer(request: Request):
        kind, _, phase = place(request)
        if phase == "review" and kind == "domain" and left[0]:
            left[0] -= 1
            code_of(scenes[0]).write_text(f"// rewritten, {left[0]} times to go\n")
        return engineer(request)

    return answer


def test_code_that_is_rewritten_while_it_is_reviewed_is_reviewed_again(tmp_path):
    scenes: list[Scene] = []
    scenes.append(scene := Scene(tmp_path, rewriting(scenes, 1)))
    assert scene.drive().exit_code == 0
    asked = [r.prompt for r in scene.agent.seen if r.action == REVIEW]
    assert len(asked) == 2
    assert "// rewritten, 0 times to go" not in asked[0]
    assert "// rewritten, 0 times to go" in asked[1]
    assert PASS in scene.text(REVIEW.replace(".md", ".rejected-1.md"))
    assert scene.cycle("domain")["status"] == "completed"


def test_code_that_is_rewritten_in_every_review_never_passes(tmp_path):
    scenes: list[Scene] = []
    scenes.append(scene := Scene(tmp_path, rewriting(scenes, 1000)))
    report = scene.drive()
    assert report.exit_code == 1
    assert REVIEW in report.message
    assert scene.cycle("domain")["status"] != "completed"


def test_code_that_is_rewritten_before_a_person_approves_the_review_is_reviewed_again(tmp_path):
    scene = Scene(tmp_path, request={"gate": "skip", "gates": {"review.response": "manual"}})
    assert scene.drive().exit_code == 3
    code_of(scene).write_text("// mine\n")
    assert scene.decide("approve") == 3
    assert scene.cycle("domain")["status"] != "completed"
    assert "// mine" in [r.prompt for r in scene.agent.seen if r.action == REVIEW][-1]
    scene.decide("approve")
    assert scene.cycle("domain")["status"] == "completed"


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(times=st.integers(0, 3))
def test_no_cycle_is_completed_with_code_that_nobody_was_shown(tmp_path_factory, times):
    scenes: list[Scene] = []
    scene = Scene(tmp_path_factory.mktemp("scene"), rewriting(scenes, times))
    scenes.append(scene)
    assert scene.drive().exit_code == 0
    shown = [r.prompt for r in scene.agent.seen if r.action == REVIEW][-1]
    assert code_of(scene).read_text().strip() in shown
