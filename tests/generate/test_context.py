"""What a profile's hooks get: other cycles' code when it is asked for, up to a limit."""

from __future__ import annotations

from typing import ClassVar

import pytest

from rondel.errors import RondelError
from rondel.model.snapshot import FrozenSnapshot
from rondel.workflows.generate import WorkflowPhase, load_profile
from rondel.workflows.generate.profiles.base import CycleContext, LazyFiles


class Counting(FrozenSnapshot):
    def __init__(self, files) -> None:
        super().__init__(files)
        self.read: list[str] = []

    def text(self, path):
        self.read.append(path)
        return super().text(path)


def test_a_file_is_read_only_when_it_is_asked_for():
    files = Counting({"domain/a": "A", "domain/b": "B"})
    lazy = LazyFiles(files.text, {"a": "domain/a", "b": "domain/b"}, 100)
    assert list(lazy) == ["a", "b"]
    assert files.read == []
    assert (lazy["b"], lazy["b"]) == ("B", "B")
    assert files.read == ["domain/b"]


def test_together_they_stay_below_the_limit_and_say_what_is_left_out():
    files = FrozenSnapshot({"a": "x" * 60, "b": "y" * 60, "c": "z" * 10})
    lazy = LazyFiles(files.text, {n: n for n in "abc"}, 100)
    assert lazy["a"] == "x" * 60
    assert "left out" in lazy["b"]
    assert "100 characters" in lazy["b"]


@pytest.mark.parametrize("name", ["jpa-mt", "python-service"])
def test_every_prompt_of_a_shipped_profile_is_filled(name):
    profile = load_profile(name)
    context = {"entity": "Tea", "table": "t", "bounded_context": "b", "package": "tea"}
    for cycle in profile.get_cycles({**context, "scope": "full", "with_tests": True}):
        for phase in WorkflowPhase:
            given = CycleContext(
                cycle.type,
                cycle.scope,
                phase,
                1,
                context,
                standards=profile.standards(cycle.scope, context),
                plan="THE PLAN",
                review="THE REVIEW",
                code={"a.java": "THE CODE"},
                feedback=("be short",),
            )
            text = profile.plan_prompt(given).text
            assert "{{" not in text
            assert "be short" in text
            assert ("@@@REVIEW_META" in text) == (phase is WorkflowPhase.REVIEW)
            assert ("THE CODE" in text) == (phase in (WorkflowPhase.REVIEW, WorkflowPhase.REVISE))


def test_a_value_is_not_a_template_and_a_missing_one_is_named():
    profile = load_profile("jpa-mt")
    given = CycleContext("domain", "domain", WorkflowPhase.PLAN, 1, {"entity": "{{standards}}"})
    assert "{{standards}}" in profile.plan_prompt(given).text

    class Strict(type(profile)):
        optional: ClassVar = {}

    with pytest.raises(RondelError, match="needs 'entity'"):
        Strict().plan_prompt(CycleContext("domain", "domain", WorkflowPhase.PLAN, 1, {}))
