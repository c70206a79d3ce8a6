"""The public functions: a new cycle, an extension, control signals."""

from __future__ import annotations

import json
import re

import pytest
from cycle_loop import Loop
from document import AFTER_THE_PHASES, EXTENDED, FIRST_ITERATION, INITIAL, merged
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.errors import RondelError, UnsafePath, UsageError
from rondel.model.times import parse_time
from rondel.workflows.cycle import CycleState, check_control_signals, extend, new_cycle, rebuild_state

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
CHANGING = ("cycle_id", "created_at", "updated_at")
DESCRIPTION = "Add OAuth2 login support with Google and GitHub providers"


def test_a_new_cycle_is_the_documents_initial_state():
    state = new_cycle(DESCRIPTION, title="Implement OAuth authentication")
    document = state.document()
    assert list(document) == list(INITIAL)
    assert {k: v for k, v in document.items() if k not in CHANGING} == {
        k: v for k, v in INITIAL.items() if k not in CHANGING
    }


def test_a_new_cycle_has_an_id_of_the_documents_form_and_times_of_utc_plus_8():
    state = new_cycle("x")
    assert re.fullmatch(r"cycle-v1-\d{8}T\d{6}-[0-9a-f]{6}", state.cycle_id)
    assert state.created_at.endswith("+08:00")
    assert parse_time(state.created_at) == parse_time(state.updated_at)
    assert new_cycle("x").cycle_id != state.cycle_id


def test_without_a_title_it_is_the_first_100_characters_and_the_history_has_it_all():
    state = new_cycle("y" * 250, max_iterations=3)
    assert (state.title, state.description, state.task_history) == ("y" * 100, "y" * 250, ["y" * 250])
    assert state.max_iterations == 3


@pytest.mark.parametrize("wrong", [{"description": "  "}, {"description": "x", "max_iterations": 0}])
def test_a_cycle_about_nothing_or_without_iterations_is_refused(wrong):
    with pytest.raises(UsageError):
        new_cycle(**wrong)


def after_one_iteration(**fields: object) -> CycleState:
    document = merged(merged(INITIAL, FIRST_ITERATION), AFTER_THE_PHASES)
    for agent in document["agents"].values():
        agent |= {"status": "completed", "iterations_completed": 1}
    return CycleState.model_validate(document | fields)


def test_an_extension_is_the_documents_transition():
    before = after_one_iteration()
    state = extend(before, "Also add multi-factor authentication")
    assert state.status == "running"
    assert state.current_iteration == EXTENDED["current_iteration"]
    assert state.task_history == EXTENDED["task_history"]
    assert state.description == EXTENDED["description"]
    assert {
        n: (getattr(state.agents, n).status, getattr(state.agents, n).iterations_completed)
        for n in EXTENDED["agents"]
    } == {n: (a["status"], a["iterations_completed"]) for n, a in EXTENDED["agents"].items()}
    assert state.requirements is not None
    assert state.requirements.version == "1.1.0"
    assert state.current_phase == "ra"
    assert state.completed_phases == []
    first, second = state.iterations
    assert first.completed_at
    assert (second.number, second.extension, second.completed_at) == (
        2,
        "Also add multi-factor authentication",
        None,
    )
    entry = state.coordination.feedback_log[-1]
    assert (entry.source, entry.target, entry.type) == ("user", "ra", "requirement_update")
    assert entry.content == "Also add multi-factor authentication"
    assert before.current_iteration == 1, "the state given is not changed"
    assert before.task_history == ["Implement OAuth authentication"]


@pytest.mark.parametrize("status", ["created", "running", "paused", "completed", "failed"])
def test_a_cycle_can_be_extended_in_every_state(status):
    state = extend(after_one_iteration(status=status, failure_reason="x", completed_at="y"), "More")
    assert (state.status, state.current_iteration) == ("running", 2)
    assert "failure_reason" not in state.document()
    assert "completed_at" not in state.document()


@CALM
@given(
    st.integers(0, 9),
    st.integers(1, 9),
    st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=4),
)
def test_the_marker_names_the_iteration_the_text_belongs_to(current, limit, said):
    state = CycleState.model_validate(INITIAL | {"current_iteration": current, "max_iterations": limit})
    for text in said:
        state = extend(state, text)
        marker = f"\n\n--- ITERATION {state.current_iteration} ---\n{text.strip()}"
        assert state.description.endswith(marker)
        assert state.iterations[-1].number == state.current_iteration
        assert state.iterations[-1].extension == text.strip()
        assert state.task_history[-1] == text.strip()
        assert state.max_iterations >= state.current_iteration, "an extension raises the limit where it must"
    assert state.current_iteration == current + len(said)
    assert len(state.coordination.feedback_log) == len(said)


def test_fields_nobody_knows_survive_an_extension():
    state = CycleState.model_validate(INITIAL | {"theirs": {"a": 1}})
    assert extend(state, "More").document()["theirs"] == {"a": 1}


def test_an_extension_about_nothing_is_refused():
    with pytest.raises(UsageError):
        extend(new_cycle("x"), " \n")


@pytest.mark.parametrize(
    ("status", "result"),
    [
        ("paused", {"continue": False, "action": "pause"}),
        ("failed", {"continue": False, "action": "stop"}),
        ("running", {"continue": True, "action": "continue"}),
        ("created", {"continue": False, "action": "unknown"}),
        ("completed", {"continue": False, "action": "unknown"}),
    ],
)
def test_the_control_signals_are_the_documents(tmp_path, status, result):
    folder = tmp_path / ".workflow/.cycle"
    folder.mkdir(parents=True)
    (folder / "c1.json").write_text(json.dumps(INITIAL | {"cycle_id": "c1", "status": status}))
    assert check_control_signals("c1", root=tmp_path) == result
    assert check_control_signals("c1", root=str(tmp_path)) == result


def test_control_signals_are_read_fresh_and_survive_damage(tmp_path):
    loop = Loop(tmp_path)
    loop.step()
    assert check_control_signals(loop.ref.id, tmp_path)["action"] == "continue"
    loop.state_path.write_text(json.dumps(loop.document | {"status": "paused"}))
    assert check_control_signals(loop.ref.id, tmp_path)["action"] == "pause"
    loop.state_path.write_text("{")
    assert check_control_signals(loop.ref.id, tmp_path)["action"] == "continue", "the last state committed"


def test_without_a_cycle_nobody_may_go_on(tmp_path):
    assert check_control_signals("none", root=tmp_path) == {"continue": False, "action": "unknown"}


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".", "..", "a\x00b", "~"])
def test_a_cycle_id_never_leaves_its_folder(tmp_path, name):
    for function in (check_control_signals, rebuild_state):
        with pytest.raises(RondelError):
            function(name, root=tmp_path)
    with pytest.raises(UnsafePath):
        check_control_signals("../x", root=tmp_path)


def test_what_never_was_cannot_be_rebuilt(tmp_path):
    with pytest.raises(RondelError, match=r"cannot be rebuilt.*there are: none"):
        rebuild_state("none", root=tmp_path)
