"""The state document: every field, enumeration and type; older shapes; what nobody here knows."""

from __future__ import annotations

import copy
import json

import pytest
from document import EXTENDED, FRAGMENTS, INITIAL, merged, whole
from pydantic import ValidationError

from rondel.workflows import cycle
from rondel.workflows.cycle import CycleState

REQUIRED = {
    "CycleState": "cycle_id title description task_history status created_at updated_at max_iterations "
    "current_iteration agents current_phase completed_phases phase_errors iterations coordination",
    "AgentState": "status output_files iterations_completed",
    "PhaseError": "phase error timestamp",
    "Requirements": "version specification edge_cases last_updated",
    "Exploration": "version architecture_summary integration_points identified_risks last_updated",
    "Plan": "version tasks total_estimated_effort critical_path last_updated",
    "PlanTask": "id description effort depends_on status files",
    "Changes": "total_files changes iteration_markers",
    "ChangeLog": "timestamp file action iteration agent description",
    "TestResults": "version pass_rate coverage failed_tests total_tests last_run",
    "IterationRecord": "number started_at agent_results issues_found resolved",
    "AgentResult": "status files_modified",
    "FeedbackEntry": "timestamp source target content type",
    "Decision": "id description options status",
    "Blocker": "id description reported_by status",
    "Coordination": "feedback_log pending_decisions blockers",
    "Agents": "ra ep cd vas",
}
OPTIONAL = {
    "CycleState": "completed_at failure_reason requirements exploration plan changes test_results",
    "AgentState": "started_at completed_at last_message error",
    "PlanTask": "assigned_to",
    "IterationRecord": "extension completed_at",
    "Decision": "made_by chosen_option",
    "Blocker": "resolution",
}
ENUMERATIONS = {
    "CycleStatus": "created running paused completed failed",
    "Phase": "init ra ep cd vas aggregation complete",
    "AgentStatus": "idle running waiting completed failed",
    "Effort": "small medium large",
    "TaskStatus": "pending in_progress completed blocked",
    "ChangeAction": "create modify delete",
    "FeedbackType": "requirement_update bug_report issue_fix clarification",
    "DecisionStatus": "pending made implemented",
    "BlockerStatus": "open resolved workaround",
}
PLACES = {  # where a field of a closed set, or of a type, stands in the whole document
    "status": "CycleStatus",
    "current_phase": "Phase",
    "agents.ra.status": "AgentStatus",
    "plan.tasks.0.effort": "Effort",
    "plan.tasks.0.status": "TaskStatus",
    "changes.changes.0.action": "ChangeAction",
    "coordination.feedback_log.0.type": "FeedbackType",
    "coordination.pending_decisions.0.status": "DecisionStatus",
    "coordination.blockers.0.status": "BlockerStatus",
}


def put(document: dict, path: str, value: object) -> dict:
    changed = copy.deepcopy(document)
    spot = changed
    *above, last = [int(p) if p.isdigit() else p for p in path.split(".")]
    for key in above:
        spot = spot[key]
    spot[last] = value
    return changed


@pytest.mark.parametrize("name", REQUIRED)
def test_a_type_has_exactly_the_documents_fields(name):
    fields = getattr(cycle, name).model_fields
    assert {f for f, info in fields.items() if info.is_required()} == set(REQUIRED[name].split())
    assert {f for f, info in fields.items() if not info.is_required()} == set(OPTIONAL.get(name, "").split())


@pytest.mark.parametrize("name", ENUMERATIONS)
def test_an_enumeration_has_exactly_the_documents_values(name):
    assert [m.value for m in getattr(cycle, name)] == ENUMERATIONS[name].split()


@pytest.mark.parametrize("path", PLACES)
def test_a_value_outside_its_enumeration_is_refused_and_every_one_in_it_taken(path):
    for value in ENUMERATIONS[PLACES[path]].split():
        CycleState.model_validate(put(whole(), path, value))
    with pytest.raises(ValidationError):
        CycleState.model_validate(put(whole(), path, "banana"))


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        ("cycle_id", 7),
        ("task_history", "one"),
        ("max_iterations", 0),
        ("max_iterations", "five"),
        ("current_iteration", -1),
        ("agents", []),
        ("agents.ra.output_files", "a.md"),
        ("agents.ra.iterations_completed", -1),
        ("completed_phases", "ra"),
        ("phase_errors", [{"phase": "ra"}]),
        ("requirements.edge_cases", {}),
        ("plan.tasks", {}),
        ("plan.tasks.0.depends_on", "TASK-000"),
        ("changes.total_files", -1),
        ("changes.iteration_markers", {"one": "x"}),
        ("test_results.pass_rate", 101),
        ("test_results.pass_rate", -1),
        ("test_results.coverage", 100.5),
        ("test_results.total_tests", "many"),
        ("iterations.0.number", 0),
        ("iterations.0.resolved", "perhaps"),
        ("iterations.0.agent_results", []),
        ("coordination.feedback_log.0.content", None),
        ("coordination", None),
    ],
)
def test_a_value_of_another_type_is_refused(path, wrong):
    with pytest.raises(ValidationError):
        CycleState.model_validate(put(whole(), path, wrong))


def test_the_whole_document_comes_back_as_it_was():
    assert CycleState.model_validate(whole()).document() == whole()


def test_what_nobody_set_is_absent_however_it_is_dumped():
    state = CycleState.model_validate(INITIAL)
    assert state.model_dump(mode="json") == INITIAL
    assert json.loads(state.model_dump_json()) == INITIAL
    assert "plan" not in state.model_dump()


def test_the_initial_example_validates_and_comes_back_as_it_was():
    assert CycleState.model_validate(INITIAL).document() == INITIAL


@pytest.mark.parametrize("name", FRAGMENTS)
@pytest.mark.parametrize("how", ["deep", "shallow"])
def test_the_later_examples_validate_when_merged_over_the_initial_one(name, how):
    fragment = FRAGMENTS[name]
    document = merged(INITIAL, fragment) if how == "deep" else {**INITIAL, **fragment}
    state = CycleState.model_validate(document)
    assert state.document()["cycle_id"] == INITIAL["cycle_id"]


def test_all_examples_one_after_the_other_validate():
    document = INITIAL
    for fragment in FRAGMENTS.values():
        document = merged(document, fragment)
        CycleState.model_validate(document)


def test_the_completion_time_of_a_running_iteration_is_absent():
    state = CycleState.model_validate(merged(INITIAL, EXTENDED))
    assert state.iterations[1].completed_at is None
    assert "completed_at" not in state.document()["iterations"][1]


def test_fields_nobody_here_knows_are_kept_at_every_level():
    document = whole() | {"theirs": {"a": [1]}, "nothing": None}
    document["agents"]["ra"]["mood"] = "fine"
    document["plan"]["tasks"][0]["ticket"] = 12
    document["coordination"]["channel"] = "x"
    assert CycleState.model_validate(document).document() == document


OLDER = {
    "agents without iterations_completed": lambda d: [
        a.pop("iterations_completed") for a in d["agents"].values()
    ],
    "agents without output_files": lambda d: [a.pop("output_files") for a in d["agents"].values()],
    "an agent less": lambda d: d["agents"].pop("vas"),
    "no agents": lambda d: d.pop("agents"),
    "changes as a list": lambda d: d.update(changes=d["changes"]["changes"]),
    "changes as an empty list": lambda d: d.update(changes=[]),
    "no task_history": lambda d: d.pop("task_history"),
    "no title": lambda d: d.pop("title"),
    "no description": lambda d: d.pop("description"),
    "no updated_at": lambda d: d.pop("updated_at"),
    "no phase_errors": lambda d: d.pop("phase_errors"),
    "no completed_phases": lambda d: d.pop("completed_phases"),
    "no iterations": lambda d: d.pop("iterations"),
    "no coordination": lambda d: d.pop("coordination"),
    "no blockers": lambda d: d["coordination"].pop("blockers"),
    "no limit": lambda d: d.pop("max_iterations"),
}


@pytest.mark.parametrize("shape", OLDER)
def test_an_older_shape_opens(shape):
    document = whole()
    OLDER[shape](document)
    state = CycleState.model_validate(document)
    assert CycleState.model_validate(state.document()) == state


def test_a_list_of_changes_becomes_the_object_it_is_now():
    document = whole()
    entry = document["changes"]["changes"][0]
    document["changes"] = [entry, entry | {"file": "b.ts"}]
    changes = CycleState.model_validate(document).changes
    assert changes is not None
    assert changes.total_files == 2
    assert [c.file for c in changes.changes] == ["src/config/oauth.ts", "b.ts"]


def test_without_a_history_the_first_task_is_the_title():
    document = copy.deepcopy(INITIAL)
    del document["task_history"]
    assert CycleState.model_validate(document).task_history == ["Implement OAuth authentication"]


@pytest.mark.parametrize("missing", ["cycle_id", "status"])
def test_what_has_no_obvious_value_must_be_there(missing):
    document = whole()
    del document[missing]
    with pytest.raises(ValidationError):
        CycleState.model_validate(document)


def test_the_schema_names_every_required_field_and_is_json():
    schema = json.loads(json.dumps(cycle.schema()))
    assert set(schema["required"]) == set(REQUIRED["CycleState"].split())
    for name, fields in REQUIRED.items():
        if name != "CycleState":
            assert set(schema["$defs"][name]["required"]) == set(fields.split())
    assert schema["$defs"]["Phase"]["enum"] == ENUMERATIONS["Phase"].split()
