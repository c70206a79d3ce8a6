"""What a profile may declare, and every branch of the shipped profiles' cycles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.errors import UsageError
from rondel.model.names import is_safe_name
from rondel.workflows.generate import CycleConfig, CycleState, WorkflowProfile, WorkflowState, load_profile
from rondel.workflows.generate.models import SCHEMA_VERSION, dependants, validate_cycles
from rondel.workflows.generate.profiles.base import PromptPlan


def shape(cycles):
    return [(c.type, c.scope, c.depends_on) for c in cycles]


class TestJpaMt:
    cycles = staticmethod(lambda **context: shape(load_profile("jpa-mt").get_cycles(context)))

    @pytest.mark.parametrize("scope", ["domain", "service", "api", "tests"])
    def test_a_single_scope_is_one_cycle(self, scope):
        assert self.cycles(scope=scope) == [(scope, scope, [])]

    def test_full_is_domain_service_and_api_in_order(self):
        assert self.cycles(scope="full") == [
            ("domain", "domain", []),
            ("service", "service", ["domain"]),
            ("api", "api", ["service"]),
        ]

    @pytest.mark.parametrize("scope", ["domain", "service", "api"])
    def test_with_tests_adds_a_cycle_after_the_last(self, scope):
        assert self.cycles(scope=scope, with_tests=True) == [(scope, scope, []), ("tests", "tests", [scope])]

    def test_with_tests_after_full_depends_on_api(self):
        assert self.cycles(scope="full", with_tests=True)[-1] == ("tests", "tests", ["api"])

    def test_with_tests_adds_nothing_to_tests(self):
        assert self.cycles(scope="tests", with_tests=True) == [("tests", "tests", [])]

    @pytest.mark.parametrize("scope", [None, "everything"])
    def test_another_scope_is_an_error(self, scope):
        with pytest.raises(ValueError, match=f"Unknown scope: {scope}"):
            self.cycles(scope=scope)


def test_python_service_has_the_same_idea_for_a_package():
    profile = load_profile("python-service")
    assert shape(profile.get_cycles({"scope": "full", "with_tests": True})) == [
        ("models", "models", []),
        ("service", "service", ["models"]),
        ("api", "api", ["models", "service"]),
        ("tests", "tests", ["models", "service", "api"]),
    ]
    with pytest.raises(ValueError, match="Unknown scope: x"):
        profile.get_cycles({"scope": "x"})


def test_a_profile_without_get_cycles_has_one_cycle_and_its_tests():
    class Bare(WorkflowProfile):
        def plan_prompt(self, cycle):
            return PromptPlan("x")

    assert shape(Bare().get_cycles({})) == [("main", "main", [])]
    assert shape(Bare().get_cycles({"scope": "api", "with_tests": True})) == [
        ("api", "api", []),
        ("tests", "tests", ["api"]),
    ]
    with pytest.raises(TypeError):
        WorkflowProfile()


class TestValidation:
    @pytest.mark.parametrize(
        ("cycles", "words"),
        [
            ([], "declares no cycles"),
            (None, "declares no cycles"),
            (["domain"], "must give CycleConfig"),
            ([CycleConfig("a/b", "x")], "cannot be a folder name"),
            ([CycleConfig("..", "x")], "cannot be a folder name"),
            ([CycleConfig("", "x")], "cannot be a folder name"),
            ([CycleConfig("con", "x")], "cannot be a folder name"),
            ([CycleConfig("code", "x")], "is reserved"),
            ([CycleConfig("Iteration-1", "x")], "is reserved"),
            ([CycleConfig("gate", "x")], "is reserved"),
            ([CycleConfig("a", "x"), CycleConfig("A", "x")], "declared twice"),
            ([CycleConfig("a", " ")], "has no scope"),
            ([CycleConfig("a", "x", ["b"]), CycleConfig("b", "x")], "no earlier cycle"),
            ([CycleConfig("a", "x", ["a"])], "no earlier cycle"),
        ],
    )
    def test_what_cannot_be_a_cycle_is_named(self, cycles, words):
        with pytest.raises(UsageError, match=words):
            validate_cycles(cycles)

    @given(st.text(max_size=40))
    def test_a_type_that_passes_is_a_safe_folder_name(self, name):
        try:
            validate_cycles([CycleConfig(name, "x")])
        except UsageError:
            return
        assert is_safe_name(name)
        assert not name.startswith(".")
        assert "/" not in name

    def test_dependants_are_found_through_others(self):
        cycles = [
            CycleState(type="a", scope="x"),
            CycleState(type="b", scope="x", depends_on=["a"]),
            CycleState(type="c", scope="x"),
            CycleState(type="d", scope="x", depends_on=["b"]),
        ]
        assert dependants(cycles, "a") == ["b", "d"]


class TestModel:
    def test_the_document_s_defaults(self):
        config = CycleConfig(type="domain", scope="domain")
        assert config.depends_on == []
        state = WorkflowState(
            session_id="abc123", profile_name="jpa-mt", context={}, cycles=[CycleState(type="a", scope="x")]
        )
        assert state.current_cycle_index == 0
        assert state.schema_version == SCHEMA_VERSION
        cycle = state.cycles[0]
        assert (cycle.phase, cycle.stage, cycle.status) == ("plan", "prompt", "in_progress")
        assert (cycle.iterations, cycle.current_iteration) == ([], 1)

    def test_fields_nobody_knows_stay(self):
        state = WorkflowState.model_validate(
            {
                "session_id": "a",
                "profile_name": "p",
                "cycles": [{"type": "a", "scope": "x", "colour": "red"}],
                "team": 7,
            }
        )
        kept = state.model_dump(mode="json")
        assert kept["team"] == 7
        assert kept["cycles"][0]["colour"] == "red"
