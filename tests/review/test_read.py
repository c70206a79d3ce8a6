"""What the files show: every edge case of the document's tables, and whatever else a folder may hold."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from review_support import finding, review

from rondel.model.actions import Ask, Derive, Probe
from rondel.model.outcomes import Ended, Outcome
from rondel.model.snapshot import FrozenSnapshot
from rondel.model.summary import Status
from rondel.model.workflow import SessionRef
from rondel.workflows.review.read import phase_due
from rondel.workflows.review.report import progress_of
from rondel.workflows.review.steps import steps
from rondel.workflows.review.workflow import Review, problems_in

REF = SessionRef("review", "2026-11-15-main", ".ocr/sessions/2026-11-15-main")
STATE = {
    "session_id": "2026-11-15-main",
    "status": "active",
    "current_phase": "reviews",
    "phase_number": 4,
    "current_round": 1,
    "started_at": "2026-11-15T10:00:00Z",
    "updated_at": "2026-11-15T10:05:00.123456+08:00",
}


def read(files, **state):
    files = dict(files)
    if state.pop("with_state", True):
        files["state.json"] = json.dumps({**STATE, **state})
    return Review().read(FrozenSnapshot(files), REF)


def rules(state):
    return [p.rule for p in problems_in(state)]


def test_a_missing_state_json_is_reconstructed_from_the_files():
    state = read({"rounds/round-1/final.md": "x", "rounds/round-2/reviews/a-1.md": "x"}, with_state=False)
    shown = Review().document(state)
    assert (shown["current_round"], shown["status"]) == (2, "active")
    assert [r["complete"] for r in shown["rounds"]] == [True, False]
    assert rules(state) == ["state-missing"]


@pytest.mark.parametrize("damage", ["{", "", "[1]", "null", '{"a": 1', "\xff\xfe"])
def test_a_damaged_state_json_is_reported_and_reconstructed(damage):
    state = read({"rounds/round-1/final.md": "x", "state.json": damage}, with_state=False)
    assert rules(state) == ["state-damaged"]
    assert Review().document(state)["current_phase"] == "complete"


@pytest.mark.parametrize("damage", ["{", "[1]"])
def test_a_damaged_round_meta_json_is_named(damage):
    files = {"rounds/round-1/final.md": "x", "rounds/round-1/round-meta.json": damage}
    state = read(files, current_phase="complete", phase_number=8)
    assert [(p.rule, p.file) for p in problems_in(state)] == [
        ("meta-damaged", "rounds/round-1/round-meta.json")
    ]
    assert rules(read({**files, "rounds/round-1/round-meta.json": "{}"}, current_phase="complete")) == []


def test_a_damaged_state_json_is_put_aside_and_written_anew():
    state = read({"rounds/round-1/final.md": "x", "state.json": "{"}, with_state=False)
    (due,) = steps(state)
    assert due.action == Derive("state.json", title="note phase complete")
    aside, edit = due.write(state, Outcome(Ended.DONE))
    assert (aside.path, aside.to) == ("state.json", ".rondel/aside/state.json.damaged-1")
    assert edit.change({})["current_phase"] == "complete"


def test_a_round_that_state_json_names_but_is_gone_is_the_highest_there_is():
    state = read({"rounds/round-1/final.md": "x"}, current_round=2)
    assert state.at.number == 1
    assert rules(state) == ["round-missing"]
    assert state.resolution.current_round == 2


@pytest.mark.parametrize("said", [None, "2", [], {"a": 1}, 1.5])
def test_a_current_round_that_is_no_number_is_reported(said):
    assert rules(read({"rounds/round-1/final.md": "x"}, current_round=said)) == ["round-missing"]


def test_a_state_json_that_is_behind_the_files_is_behind():
    state = read({"rounds/round-1/final.md": "x", "rounds/round-2/final.md": "x"}, current_round=1)
    assert rules(state) == ["round-behind"]
    assert Review().document(state)["current_round"] == 2


def test_a_final_md_makes_a_round_complete_whatever_state_json_says():
    state = read({"rounds/round-1/final.md": "x"})
    assert phase_due(state).value == "complete"
    assert rules(state) == ["round-complete"]
    assert Review().summary(state).status is Status.COMPLETED


def test_a_state_json_that_says_complete_without_final_md_is_not_believed():
    state = read({"rounds/round-1/reviews/principal-1.md": "x"}, current_phase="complete", phase_number=8)
    assert phase_due(state).value != "complete"
    assert Review().summary(state).status is Status.ACTIVE


def test_reviews_under_way_without_a_review_are_an_error_only_while_nobody_works():
    state = read({"context.md": "x"})
    summary = Review().summary(state)
    assert summary.status is Status.FAILED
    (problem,) = [p for p in summary.problems if p.rule == "reviews-empty"]
    assert problem.when_idle
    assert "rondel resume" in problem.repair


def test_one_review_is_enough_not_to_be_an_error():
    state = read({"context.md": "x", "rounds/round-1/reviews/principal-1.md": "x"})
    assert Review().summary(state).status is Status.ACTIVE


def test_a_partial_round_after_a_crash_can_be_resumed():
    state = read({"rounds/round-1/reviews/principal-1.md": review()})
    assert (state.resolution.current_round, state.resolution.new_round) == (1, False)
    assert state.asked == ("principal-2", "quality-1", "quality-2")


def test_reviewers_and_discourse_come_from_the_folder():
    files = {"rounds/round-1/reviews/principal-1.md": "x", "rounds/round-1/discourse.md": "x"}
    (shown,) = Review().document(read(files))["rounds"]
    assert (shown["reviewers"], shown["discourse"]) == (["principal-1"], True)


def test_an_old_flat_session_is_named_as_such_and_left_alone():
    state = read({"reviews/principal-1.md": "x", "final.md": "x", "discourse.md": "x"})
    summary = Review().summary(state)
    assert (summary.phase, [p.rule for p in summary.problems]) == ("flat", ["flat-session"])
    assert list(steps(state)) == []
    assert Review().artifact(state, None) == "final.md"


def test_nothing_is_planned_in_a_closed_session():
    state = read({"rounds/round-1/reviews/principal-1.md": "x"}, status="closed")
    assert list(steps(state)) == []
    assert Review().summary(state).status is Status.CANCELLED


def test_a_review_does_without_the_agents_that_a_repository_asks_for():
    assert Review().goes_without


def test_a_folder_that_never_got_an_artifact_is_no_session():
    top = ".ocr/sessions"
    repo = FrozenSnapshot(
        {
            f"{top}/2026-11-15-bare/state.json": "{}",
            f"{top}/2026-11-15-ran/.rondel/run/lock": "",
            f"{top}/2026-11-15-asked/.rondel/request-1.json": "{}",
            f"{top}/2026-11-15-context/context.md": "x",
            f"{top}/2026-11-15-round/rounds/round-1/final.md": "x",
            f"{top}/2026-11-15-flat/reviews/a.md": "x",
            f"{top}/notes/context.md": "x",
            f"{top}/file.md": "x",
        }
    )
    assert [ref.id for ref in Review().sessions(repo)] == [
        f"2026-11-15-{name}" for name in ("asked", "context", "flat", "round")
    ]


def test_the_summary_has_the_documents_fields_and_unknown_ones():
    state = Review().document(read({"rounds/round-1/reviews/principal-1.md": "x"}, theirs={"a": 1}))
    assert {*STATE, "rounds", "next", "theirs"} <= set(state)


def test_complete_rounds_are_frozen():
    state = read({"rounds/round-1/final.md": "x", "rounds/round-02/reviews/a-1.md": "x"})
    assert list(Review().frozen(state)) == ["rounds/round-1", ".rondel/parts/round-1"]


def test_the_first_actions_look_at_the_standards_and_the_change_together():
    files = {".rondel/parts/round-1/target.json": json.dumps({"base": "a" * 40, "head": "b" * 40})}
    state = read(files, current_phase="context", phase_number=1)
    assert [(type(a), a.path.rpartition("/")[2]) for a in Review().plan(state)] == [
        (Probe, "standards.json"),
        (Probe, "change.json"),
    ]


def test_a_round_without_pins_pins_first():
    state = read({}, current_phase="context", phase_number=1)
    assert [a.path.rpartition("/")[2] for a in Review().plan(state)] == ["target.json"]


def test_final_md_of_another_tool_gives_the_findings_to_carry():
    verdict = "# Final Review\n\n## Verdict\n\n**REQUEST CHANGES**\n\n"
    final = verdict + "## Blockers\n\n### 1. It leaks\n\n**Location**: `a.py:3`\n"
    state = read({"rounds/round-1/final.md": final, "rounds/round-2/reviews/a-1.md": "x"})
    assert [(c.finding.title, c.finding.file) for c in state.carried] == [("It leaks", "a.py")]


def test_progress_of_a_round_of_another_tool_says_its_verdict():
    state = read({"rounds/round-1/final.md": "# Review\n\n## Verdict\n\n**APPROVE**\n"})
    assert progress_of(state, datetime.now(UTC)).verdict == "APPROVE"


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(
    [
        "state.json",
        "context.md",
        "discovered-standards.md",
        "requirements.md",
        "rounds/round-1/reviews/principal-1.md",
        "rounds/round-1/reviews/quality-1.md",
        "rounds/round-1/discourse.md",
        "rounds/round-1/round-meta.json",
        "rounds/round-1/final.md",
        "rounds/round-02/reviews/principal-1.md",
        "rounds/round-x/final.md",
        ".rondel/request-1.json",
        ".rondel/request-2.json",
        ".rondel/decisions/accept-abc.json",
        ".rondel/parts/round-1/target.json",
        ".rondel/parts/round-1/standards.json",
        ".rondel/parts/round-1/change.json",
        ".rondel/parts/round-1/change.diff",
        ".rondel/parts/round-1/since.json",
        ".rondel/parts/round-1/guidance.md",
        ".rondel/parts/round-1/context.json",
        ".rondel/parts/round-1/aggregation.json",
        ".rondel/parts/round-1/discourse/principal-1.json",
        ".rondel/parts/round-1/refute/F1.json",
        ".rondel/parts/round-1/missing/quality-1.json",
        ".rondel/parts/round-1/quotes.json",
        ".rondel/parts/round-1/moved.json",
        ".rondel/parts/round-1/synthesis.md",
    ]
)
GOOD = {
    "aggregation.json": {"findings": [{**finding("x"), "id": "F1", "supporters": ["principal-1"]}]},
    "target.json": {"base": "a", "head": "b", "branch": "main", "label": "x"},
    "request-1.json": {"round": 1, "team": [{"name": "quality-1"}], "carried": [finding("old")]},
}


def contents(name):
    good = GOOD.get(name.rpartition("/")[2])
    choices = [JSONS.map(json.dumps), st.text(max_size=20), st.just(review(finding("y")))]
    return st.one_of(*choices, *([st.just(json.dumps(good))] if good else []))


FOLDERS = st.lists(NAMES, unique=True, max_size=20).flatmap(
    lambda names: st.fixed_dictionaries({name: contents(name) for name in names})
)


@settings(suppress_health_check=list(HealthCheck), deadline=None)
@given(FOLDERS)
def test_reading_planning_asking_and_applying_never_raise_whatever_the_folder_holds(files):
    flow = Review()
    state = flow.read(FrozenSnapshot(files), REF)
    flow.summary(state)
    flow.document(state)
    for step in flow.steps(state):
        if isinstance(step.action, Ask):
            assert step.prompt(state)
            step.check(state, "{}")
        for ended in (Ended.DONE, Ended.FAILED, Ended.TIMED_OUT, Ended.REJECTED):
            step.write(state, Outcome(ended, text="```json\n{}\n```", error="x"))
