"""May a phase start? The document's rules, and the rulings on them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.workflows.feature import PHASES, Transition, validate_transition

NOTHING = {"spec": False, "design": False, "plan": False, "tasks": False}
ALL = dict.fromkeys(NOTHING, True)
phases = st.sampled_from(PHASES)
artifacts = st.fixed_dictionaries({name: st.booleans() for name in NOTHING})


def test_the_sequence_is_the_documents():
    assert PHASES == (
        "brainstorm",
        "specify",
        "design",
        "create-plan",
        "create-tasks",
        "implement",
        "verify",
        "finish",
    )


@pytest.mark.parametrize("at", range(-1, len(PHASES) - 1))
def test_the_right_order_proceeds_without_a_word(at):
    current = PHASES[at] if at >= 0 else None
    assert validate_transition(current, PHASES[at + 1], ALL) == Transition(
        allowed=True, type="proceed", message=None
    )


@given(current=st.none() | phases, found=artifacts)
def test_implement_without_a_specification_is_blocked_from_everywhere(current, found):
    may = validate_transition(current, "implement", {**found, "spec": False})
    assert (may.allowed, may.type) == (False, "blocked")
    assert "spec.md" in may.message


@given(current=st.none() | phases, found=artifacts)
def test_create_tasks_without_a_plan_is_blocked_from_everywhere(current, found):
    may = validate_transition(current, "create-tasks", {**found, "plan": False})
    assert (may.allowed, may.type) == (False, "blocked")
    assert "plan.md" in may.message


def test_an_artifact_that_is_not_mentioned_is_not_there():
    assert validate_transition("create-tasks", "implement", {}).type == "blocked"


def test_skipping_a_phase_is_a_warning_that_names_it():
    may = validate_transition("brainstorm", "design", NOTHING)
    assert (may.allowed, may.type) == (True, "warning")
    assert "specify" in may.message


def test_beginning_without_a_brainstorm_skips_it():
    assert validate_transition(None, "specify", NOTHING).type == "warning"


def test_going_back_is_a_warning_that_names_what_becomes_stale():
    may = validate_transition("create-tasks", "specify", ALL)
    assert (may.allowed, may.type) == (True, "warning")
    for name in ("design.md", "plan.md", "tasks.md"):
        assert name in may.message
    assert "spec.md" not in may.message


def test_repeating_a_phase_is_a_warning_that_names_what_becomes_stale():
    may = validate_transition("design", "design", {**ALL, "tasks": False})
    assert may.type == "warning"
    assert "plan.md" in may.message
    assert "tasks.md" not in may.message


@given(current=st.none() | phases | st.just("designing"), target=st.text(max_size=20), found=artifacts)
def test_an_unknown_phase_is_a_block(current, target, found):
    if target not in PHASES or current == "designing":
        may = validate_transition(current, target, found)
        assert (may.allowed, may.type) == (False, "blocked")


@given(current=st.none() | phases, target=phases, found=artifacts)
def test_a_block_beats_a_warning_and_only_a_block_forbids(current, target, found):
    may = validate_transition(current, target, found)
    needs = {"implement": "spec", "create-tasks": "plan"}.get(target)
    assert may.allowed == (may.type != "blocked")
    assert (may.type == "blocked") == bool(needs and not found[needs])
    assert (may.message is None) == (may.type == "proceed")
