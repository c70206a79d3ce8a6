"""The reviewer loop: drafts, reviews, revisions, limits, history; decisions without a process."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from turning import APPROVED, BLOCKED, FLOW, Turning, asked, good, verdict

from rondel.model.actions import Access, Ask
from rondel.model.outcomes import Ended, Outcome
from rondel.model.summary import Status
from rondel.model.workflow import Given
from rondel.store.snapshot import DiskSnapshot
from rondel.workflows.feature import EXPECTATIONS, LIMITS, Review
from rondel.workflows.feature.closing import added, entry
from rondel.workflows.feature.lint import lint_meta
from rondel.workflows.feature.phases import ARTIFACTS, PHASES, REVIEWED

DOCUMENTS = [p for p in REVIEWED if p != "implement"]


def stubborn(ask: Ask) -> str:
    """A reviewer that never approves."""
    return BLOCKED if ask.path.endswith("review.json") else good(ask)


def drafts_of(t: Turning, phase: str) -> int:
    return len([p for p in t.asked if f"/{phase}/" in p and p.endswith("draft.md")])


def record(t: Turning, phase: str) -> dict:
    return t.meta["phases"][phase]


# -- one phase ----------------------------------------------------------------------------------


def test_an_approved_draft_completes_the_phase(tmp_path):
    t = Turning(tmp_path)
    assert t.phase("brainstorm") == []
    assert t.text("brainstorm.md").startswith("# brainstorm: draft 1")
    assert "=== CHANGES ===" not in t.text("brainstorm.md")
    assert record(t, "brainstorm")["iterations"] == 1
    assert record(t, "brainstorm")["verified"] is True
    assert "reviewerNotes" not in record(t, "brainstorm")
    assert t.meta["currentPhase"] == "brainstorm"
    assert t.text(".rondel/parts/brainstorm/complete.md") == "Phase complete (1 iterations)\n"
    assert lint_meta(t.meta) == ()


def test_a_revision_gets_the_feedback_and_the_document_as_it_stands(tmp_path):
    t = Turning(tmp_path)
    prompts = {}

    def answer(ask: Ask) -> str:
        prompts[ask.path] = asked(t, ask)
        first_review = ask.path.endswith("iteration-1/review.json")
        return BLOCKED if first_review else good(ask)

    t.phase("brainstorm", answer)
    second = prompts[".rondel/parts/brainstorm/iteration-2/draft.md"]
    assert "the error case is missing" in second
    assert "# brainstorm: draft 1" in second
    assert "iteration 2 of at most 3" in second
    assert "What the reviewer said" not in prompts[".rondel/parts/brainstorm/iteration-1/draft.md"]
    assert record(t, "brainstorm")["iterations"] == 2


def test_the_reviewer_gets_previous_current_and_what_the_next_phase_needs(tmp_path):
    t = Turning(tmp_path)
    t.phase("brainstorm")
    seen = []

    def answer(ask: Ask) -> str:
        if ask.path.endswith("review.json"):
            seen.append((ask, asked(t, ask)))
        return good(ask)

    t.phase("specify", answer)
    [(ask, prompt)] = seen
    assert "# brainstorm: draft 1" in prompt
    assert "# specify: draft 1" in prompt
    assert EXPECTATIONS["specify"] in prompt
    assert ask.role == "feature.chain-reviewer"
    assert ask.workspace.access is Access.READ


@pytest.mark.parametrize(("mode", "most"), LIMITS.items())
@pytest.mark.parametrize("phase", ["brainstorm", "implement", "verify"])
def test_a_reviewer_that_never_approves_ends_at_the_limit_with_notes(tmp_path, mode, most, phase):
    t = Turning(tmp_path, mode)
    t.write("spec.md", "# Spec\n")
    t.phase(phase, stubborn)
    assert record(t, phase)["iterations"] == most
    assert record(t, phase)["verified"] is False
    assert record(t, phase)["reviewerNotes"] == ["[blocker] the error case is missing"]
    assert len([p for p in t.asked if p.endswith("review.json")]) == most
    message = t.text(f".rondel/parts/{phase}/complete.md")
    assert message == "Phase complete. Reviewer concerns: [blocker] the error case is missing\n"
    assert t.meta["currentPhase"] == phase


def test_an_approval_with_a_blocker_in_it_is_not_one(tmp_path):
    t = Turning(tmp_path, "quick")
    lie = verdict(("blocker", "no"), approved=True)
    t.phase("brainstorm", lambda ask: lie if ask.path.endswith("review.json") else good(ask))
    assert record(t, "brainstorm")["iterations"] == 2
    assert record(t, "brainstorm")["verified"] is False


def test_nonsense_of_the_reviewer_is_repaired_once_and_then_is_no_approval(tmp_path):
    t = Turning(tmp_path, "hotfix")
    t.phase("brainstorm", lambda ask: "LGTM!" if ask.path.endswith("review.json") else good(ask))
    assert t.asked.count(".rondel/parts/brainstorm/iteration-1/review.json") == 2
    assert record(t, "brainstorm")["verified"] is False
    assert "could not be read" in record(t, "brainstorm")["reviewerNotes"][0]


def test_a_draft_that_is_no_document_is_sent_back(tmp_path):
    t = Turning(tmp_path)
    said = iter(["I have written the document to the file.", "# Document\n", APPROVED])
    t.phase("brainstorm", lambda _: next(said))
    assert t.text("brainstorm.md") == "# Document\n"


def test_a_reviewer_that_fails_leaves_the_phase_under_way(tmp_path):
    t = Turning(tmp_path)

    def answer(ask: Ask) -> str | Outcome:
        if ask.path.endswith("review.json"):
            return Outcome(Ended.FAILED, error="no connection", finished_at=t.now)
        return good(ask)

    with pytest.raises(AssertionError, match="stuck"):
        t.phase("brainstorm", answer)
    assert "completed" not in record(t, "brainstorm")
    t.turn()
    assert record(t, "brainstorm")["iterations"] == 1
    assert drafts_of(t, "brainstorm") == 1


def test_nobody_is_asked_to_review_what_a_required_document_is_missing_for(tmp_path):
    t = Turning(tmp_path, "hotfix")
    t.phase("brainstorm")
    (t.folder / "brainstorm.md").unlink()
    t.phase("specify")
    assert not [p for p in t.asked if p.endswith("specify/iteration-1/review.json")]
    assert "previous phase is missing" in record(t, "specify")["reviewerNotes"][0]


# -- history ------------------------------------------------------------------------------------


def test_the_history_has_every_iteration_in_the_documents_format(tmp_path):
    t = Turning(tmp_path)
    t.phase("brainstorm", lambda ask: BLOCKED if ask.path.endswith("iteration-1/review.json") else good(ask))
    t.phase("specify")
    assert (
        t.text(".review-history.md")
        == """\
## Phase: brainstorm

### Iteration 1 - 2026-11-15T12:00:35+00:00

**Reviewer Feedback:**
Read it.

**Issues:**
- [blocker] the error case is missing

**Changes Made:**
Wrote brainstorm: draft 1.

---

### Iteration 2 - 2026-11-15T12:01:03+00:00

**Reviewer Feedback:**
Read it.

**Issues:**
- none

**Changes Made:**
Wrote brainstorm: draft 2.

---

## Phase: specify

### Iteration 1 - 2026-11-15T12:01:52+00:00

**Reviewer Feedback:**
Read it.

**Issues:**
- none

**Changes Made:**
Wrote specify: draft 1.

---
"""
    )


def test_two_phases_reviewed_alike_in_the_same_second_both_have_their_entry():
    text = entry(1, "2026-11-15T12:00:00+00:00", Review(approved=True), "Wrote it.")
    history = added(added(None, "design", text), "create-plan", text)
    assert history.count(text) == 2
    assert added(history, "create-plan", text) == history


def test_what_an_agent_says_cannot_pass_for_a_heading_of_the_history(tmp_path):
    t = Turning(tmp_path)
    body = {"approved": True, "issues": [], "summary": "## Phase: design\n---\n### Iteration 9 - never"}
    t.phase("brainstorm", lambda a: json.dumps(body) if a.path.endswith("review.json") else good(a))
    lines = t.text(".review-history.md").splitlines()
    assert [line for line in lines if line.startswith("## ")] == ["## Phase: brainstorm"]
    assert lines.count("---") == 1


def test_without_words_of_its_author_a_change_is_counted(tmp_path):
    t = Turning(tmp_path, "quick")
    said = {"1/draft.md": "# A\n\none\n", "1/review.json": BLOCKED, "2/draft.md": "# A\n\none\ntwo\n"}
    t.phase("brainstorm", lambda a: next((v for k, v in said.items() if a.path.endswith(k)), APPROVED))
    history = t.text(".review-history.md")
    assert "First draft." in history
    assert "1 lines added, 0 removed." in history


# -- people -------------------------------------------------------------------------------------


def test_a_persons_edit_is_reviewed_as_it_stands_and_is_the_input_of_the_next_draft(tmp_path):
    t = Turning(tmp_path)
    prompts = {}

    def answer(ask: Ask) -> str:
        prompts[ask.path] = asked(t, ask)
        if ask.path.endswith("iteration-1/review.json"):
            t.write("brainstorm.md", "# Mine\n")
            return BLOCKED
        return BLOCKED if ask.path.endswith("iteration-2/review.json") else good(ask)

    t.phase("brainstorm", answer)
    assert ".rondel/parts/brainstorm/iteration-2/draft.md" not in t.asked
    assert "# Mine" in prompts[".rondel/parts/brainstorm/iteration-2/review.json"]
    assert "# Mine" in prompts[".rondel/parts/brainstorm/iteration-3/draft.md"]
    assert "By a person." in t.text(".review-history.md")


def test_an_approval_counts_only_for_the_text_it_was_given_for(tmp_path):
    t = Turning(tmp_path)

    def answer(ask: Ask) -> str:
        if ask.path.endswith("iteration-1/review.json"):
            t.write("brainstorm.md", "# Mine\n")
        return good(ask)

    t.phase("brainstorm", answer)
    assert t.text("brainstorm.md") == "# Mine\n"
    assert record(t, "brainstorm")["iterations"] == 2
    assert record(t, "brainstorm")["verified"] is True


def test_an_edit_after_the_last_review_is_kept_and_named(tmp_path):
    t = Turning(tmp_path, "hotfix")

    def answer(ask: Ask) -> str:
        if ask.path.endswith("review.json"):
            t.write("brainstorm.md", "# Mine\n")
        return good(ask)

    t.phase("brainstorm", answer)
    assert t.text("brainstorm.md") == "# Mine\n"
    assert record(t, "brainstorm")["verified"] is False
    assert "edited after the last review" in record(t, "brainstorm")["reviewerNotes"][0]


def test_what_a_person_writes_while_the_agent_drafts_is_theirs_and_the_draft_is_kept(tmp_path):
    t = Turning(tmp_path)

    def answer(ask: Ask) -> str:
        if ask.path.endswith("draft.md"):
            t.write("brainstorm.md", "# Mine\n")
        return good(ask)

    t.phase("brainstorm", answer)
    assert t.text("brainstorm.md") == "# Mine\n"
    assert t.text(".rondel/parts/brainstorm/iteration-1/draft.md") == "# Mine\n"
    assert "draft 1" in t.text(".rondel/parts/brainstorm/iteration-1/draft-superseded.md")


def test_an_edit_in_the_very_moment_of_publishing_is_not_written_over(tmp_path):
    t = Turning(tmp_path)
    t.request(command="phase", phase="brainstorm")
    state = t.step(until="brainstorm.md")
    [publish] = FLOW.steps(state)
    t.write("brainstorm.md", "# Mine\n")
    fresh = replace(state, files=DiskSnapshot(t.folder))
    object.__setattr__(fresh, "work", replace(state.work, files=fresh.files))
    object.__setattr__(fresh.work, "published", state.work.published)
    changes = publish.write(fresh, Outcome(Ended.DONE, finished_at=t.now))
    assert "brainstorm.md" not in {change.path for change in changes}
    t.turn()
    assert t.text("brainstorm.md") == "# Mine\n"


BY_HAND = "# By hand\n\n" + "".join(f"Line {n} of another tool.\n" for n in range(884))


def up_to(t: Turning, phase: str) -> None:
    """Every phase before this one, done."""
    for earlier in PHASES[: PHASES.index(phase)]:
        assert t.phase(earlier) == []


@pytest.mark.parametrize("phase", ARTIFACTS)
def test_a_document_written_by_hand_is_the_draft_and_is_reviewed_first(tmp_path, phase):
    t = Turning(tmp_path)
    up_to(t, phase)
    t.write(ARTIFACTS[phase], BY_HAND)
    prompts = {}
    t.phase(phase, lambda ask: prompts.update({ask.path: asked(t, ask)}) or good(ask))
    assert list(prompts) == [f".rondel/parts/{phase}/iteration-1/review.json"], "nobody drafts over it"
    assert "Line 883 of another tool." in prompts[f".rondel/parts/{phase}/iteration-1/review.json"]
    assert t.text(ARTIFACTS[phase]) == BY_HAND


def test_what_replaces_a_document_written_by_hand_keeps_it_as_a_draft(tmp_path):
    t = Turning(tmp_path)
    t.write("brainstorm.md", BY_HAND)
    t.phase("brainstorm", lambda a: BLOCKED if a.path.endswith("iteration-1/review.json") else good(a))
    assert "draft 2" in t.text("brainstorm.md")
    assert t.text(".rondel/parts/brainstorm/iteration-1/draft.md") == BY_HAND


@pytest.mark.parametrize("how", ["", "continue"])
def test_a_phase_of_another_tool_is_taken_up_with_the_document_it_left(tmp_path, how):
    t = Turning(tmp_path)
    stamps = {"started": "2026-11-01T10:00:00Z"} | ({} if how else {"completed": "2026-11-01T11:00:00Z"})
    body = t.meta | {"phases": {"brainstorm": stamps}, "currentPhase": None if how else "brainstorm"}
    t.write(".meta.json", json.dumps(body))
    t.write("brainstorm.md", BY_HAND)
    t.phase("brainstorm", proceed=True, how=how)
    assert t.asked == [".rondel/parts/brainstorm/iteration-1/review.json"]
    assert t.text("brainstorm.md") == BY_HAND


def test_a_phase_again_drafts_over_what_was_reviewed_and_adopts_what_was_edited_since(tmp_path):
    t = Turning(tmp_path)
    t.phase("brainstorm")
    t.phase("brainstorm", proceed=True)
    assert drafts_of(t, "brainstorm") == 2, "ours is drafted anew"
    t.write("brainstorm.md", BY_HAND)
    t.phase("brainstorm", proceed=True)
    assert drafts_of(t, "brainstorm") == 2, "theirs is not"
    assert t.text("brainstorm.md") == BY_HAND
    t.phase("brainstorm", proceed=True)
    assert drafts_of(t, "brainstorm") == 3, "once it was reviewed, going on means changing it"
    assert t.text(".rondel/parts/brainstorm/pass-3/iteration-1/draft.md") == BY_HAND


def test_the_short_specification_of_a_hotfix_is_ours(tmp_path):
    t = Turning(tmp_path, "hotfix")
    t.phase("specify")
    assert drafts_of(t, "specify") == 1


# -- a phase that is under way ------------------------------------------------------------------


def interrupted(t: Turning, phase: str = "brainstorm") -> None:
    """A phase that was drafted, and then its driver died."""
    with pytest.raises(KeyboardInterrupt):
        t.phase(phase, lambda ask: _stop() if ask.path.endswith("review.json") else good(ask))


def _stop() -> str:
    raise KeyboardInterrupt


def test_a_partial_phase_asks_continue_fresh_or_review(tmp_path):
    t = Turning(tmp_path)
    interrupted(t)
    [question] = t.phase("brainstorm")
    assert question.options == ("continue", "fresh", "review")
    assert FLOW.summary(t.state).status is Status.WAITING
    t.answer(question, "continue")
    assert t.turn() == []
    assert drafts_of(t, "brainstorm") == 1
    assert record(t, "brainstorm")["iterations"] == 1


def test_resuming_without_a_new_request_asks_nothing(tmp_path):
    t = Turning(tmp_path)
    interrupted(t)
    assert t.turn() == []
    assert record(t, "brainstorm")["completed"]


def test_continue_goes_on_where_it_was(tmp_path):
    t = Turning(tmp_path)
    interrupted(t)
    started = record(t, "brainstorm")["started"]
    assert t.phase("brainstorm", how="continue") == []
    assert drafts_of(t, "brainstorm") == 1
    assert record(t, "brainstorm")["started"] == started
    assert not (t.folder / ".rondel/parts/brainstorm/pass-2").exists()


def test_fresh_begins_again_and_keeps_what_was_there(tmp_path):
    t = Turning(tmp_path)
    interrupted(t)
    assert t.phase("brainstorm", how="fresh") == []
    assert drafts_of(t, "brainstorm") == 2
    assert "draft 1" in t.text(".rondel/parts/brainstorm/take-2-before.md")
    assert t.text(".rondel/parts/brainstorm/iteration-1/draft.md")
    assert t.text(".rondel/parts/brainstorm/pass-2/iteration-1/draft.md")
    assert record(t, "brainstorm")["iterations"] == 1


def test_review_reviews_the_document_as_it_stands_without_a_draft(tmp_path):
    t = Turning(tmp_path)
    t.write("spec.md", "# By hand\n")
    assert t.phase("specify", how="review") == []
    assert drafts_of(t, "specify") == 0
    assert t.text("spec.md") == "# By hand\n"
    assert record(t, "specify")["iterations"] == 1


def test_review_of_a_partial_phase_reviews_what_is_there(tmp_path):
    t = Turning(tmp_path)
    interrupted(t)
    t.write("brainstorm.md", "# Better\n")
    assert t.phase("brainstorm", how="review") == []
    assert t.text("brainstorm.md") == "# Better\n"
    assert drafts_of(t, "brainstorm") == 1


def test_a_phase_that_another_tool_left_open_is_partial_too(tmp_path):
    t = Turning(tmp_path)
    meta = {**t.meta, "phases": {"specify": {"startedAt": "2026-11-15T09:00:00Z"}}}
    t.write(".meta.json", json.dumps(meta))
    [question] = t.phase("specify")
    assert "continue" in question.options
    t.answer(question, "continue")
    t.turn()
    assert record(t, "specify")["startedAt"] == "2026-11-15T09:00:00Z"
    assert record(t, "specify")["completed"]


# -- order --------------------------------------------------------------------------------------


def test_repeating_a_phase_waits_for_a_person_and_names_what_becomes_stale(tmp_path):
    t = Turning(tmp_path)
    for phase in ("brainstorm", "specify", "design"):
        t.phase(phase)
    [question] = t.phase("specify")
    assert "design.md" in question.question
    assert record(t, "specify")["completed"]
    t.answer(question, "approve")
    assert t.turn() == []
    assert drafts_of(t, "specify") == 2
    assert t.meta["currentPhase"] == "specify"
    assert FLOW.summary(t.state).phase == "design"
    assert lint_meta(t.meta) == ()


def test_a_refused_repetition_changes_nothing(tmp_path):
    t = Turning(tmp_path)
    t.phase("brainstorm")
    before = t.meta
    [question] = t.phase("brainstorm")
    t.answer(question, "reject")
    assert t.turn() == []
    assert t.meta == before


def test_a_block_waits_for_what_is_missing(tmp_path):
    t = Turning(tmp_path)
    [question] = t.phase("implement")
    assert "spec.md" in question.question
    assert "phases" not in t.meta or t.meta["phases"] == {}
    t.write("spec.md", "# Spec\n")
    assert t.turn() == []
    assert record(t, "implement")["completed"]


@pytest.mark.parametrize("status", ["completed", "abandoned"])
def test_a_feature_that_ended_has_no_phase_that_may_start(tmp_path, status):
    t = Turning(tmp_path)
    t.write(".meta.json", json.dumps({**t.meta, "status": status, "completed": "2026-11-15T12:00:00Z"}))
    assert t.state.transition("brainstorm").type == "blocked"
    assert t.phase("brainstorm") == []
    assert t.asked == []


def test_a_damaged_document_stops_everything_and_is_shown(tmp_path):
    t = Turning(tmp_path)
    t.write(".meta.json", '{"id": "001"')
    assert t.phase("brainstorm") == []
    summary = FLOW.summary(t.state)
    assert summary.status is Status.DAMAGED
    assert summary.problems[0].rule == "invalid-json"


# -- all phases ---------------------------------------------------------------------------------


def test_a_run_does_every_phase_in_order(tmp_path):
    t = Turning(tmp_path)
    t.request(command="run")
    assert t.turn() == []
    assert list(t.meta["phases"]) == list(REVIEWED)
    assert lint_meta(t.meta) == ()
    assert FLOW.summary(t.state).next == "rondel feature finish 001-oauth-login"


def test_a_run_stops_after_the_phase_it_was_asked_for(tmp_path):
    t = Turning(tmp_path)
    t.request(command="run", until="design")
    assert t.turn() == []
    assert list(t.meta["phases"]) == ["brainstorm", "specify", "design"]


def test_a_run_stops_where_a_reviewer_has_concerns_until_a_person_saw_them(tmp_path):
    t = Turning(tmp_path, "hotfix")
    t.request(command="run")
    [question] = t.turn(stubborn)
    assert "the error case is missing" in question.question
    assert list(t.meta["phases"]) == ["brainstorm"]
    t.answer(question, "approve")
    [question] = t.turn(stubborn)
    assert "specify" in question.path


def test_concerns_that_a_person_has_been_told_do_not_stop_a_later_run(tmp_path):
    t = Turning(tmp_path, "hotfix")
    t.phase("brainstorm", stubborn)
    t.request(command="run", until="specify")
    assert t.turn() == []
    assert list(t.meta["phases"]) == ["brainstorm", "specify"]


def test_a_run_on_its_own_does_not_stop_for_concerns(tmp_path):
    t = Turning(tmp_path, "hotfix")
    t.request(command="run", auto=True)
    assert t.turn(stubborn) == []
    assert list(t.meta["phases"]) == list(REVIEWED)


# -- code ---------------------------------------------------------------------------------------

TASKS = "# Tasks\n\n### Task 1: First\n\nDo it.\n\n### Task 2: Second\n\nDo that.\n"


def test_tasks_are_carried_out_one_by_one_on_the_features_branch(tmp_path):
    t = Turning(tmp_path)
    t.write("spec.md", "# Spec\n\nR1.\n")
    t.write("tasks.md", TASKS)
    t.given = Given(checks="make t")
    asks = []
    t.phase("implement", lambda ask: asks.append((ask, asked(t, ask))) or good(ask))
    first, second, review = asks
    assert [a.path.rpartition("/")[2] for a, _ in asks] == ["task-1.json", "task-2.json", "review.json"]
    for ask, prompt in (first, second):
        assert ask.workspace.access is Access.WRITE
        assert ask.workspace.target == "feature/001-oauth-login"
        assert ask.workspace.checks == "make t"
        assert "R1." in prompt
    assert "Do it." in first[1]
    assert "Do that." not in first[1]
    assert second[0].workspace.base == f"{1:040d}"
    assert review[0].role == "feature.final-reviewer"
    assert review[0].workspace.access is Access.READ
    assert review[0].workspace.base == f"{2:040d}"
    for words in ("missing:", "extra:", "misunderstood:", "evidence", "R1.", "src/file2.py"):
        assert words in review[1]


def test_findings_of_the_final_reviewer_are_worked_on_and_reviewed_again(tmp_path):
    t = Turning(tmp_path)
    t.write("spec.md", "# Spec\n")
    prompts = {}

    def answer(ask: Ask) -> str:
        prompts[ask.path] = asked(t, ask)
        return BLOCKED if ask.path.endswith("iteration-1/review.json") else good(ask)

    t.phase("implement", answer)
    fix = prompts[".rondel/parts/implement/iteration-2/fix.json"]
    assert "the error case is missing" in fix
    assert record(t, "implement")["iterations"] == 2
    assert "resolve the findings" in t.text(".review-history.md")


def test_review_of_an_implementation_reviews_the_code_as_it_stands(tmp_path):
    t = Turning(tmp_path)
    t.write("spec.md", "# Spec\n")
    t.write("tasks.md", TASKS)
    with pytest.raises(KeyboardInterrupt):
        t.phase("implement", lambda ask: _stop() if ask.path.endswith("task-2.json") else good(ask))
    t.phase("implement", how="review")
    assert t.asked[-1] == ".rondel/parts/implement/iteration-1/review.json"
    assert len([p for p in t.asked if "task-2" in p]) == 1
    assert record(t, "implement")["completed"]
    t.phase("implement", how="review", proceed=True)
    assert t.asked[-1] == ".rondel/parts/implement/pass-3/iteration-1/review.json"


def test_beginning_an_implementation_again_goes_to_a_branch_of_its_own(tmp_path):
    t = Turning(tmp_path)
    t.write("spec.md", "# Spec\n")
    t.phase("implement")
    t.phase("implement", how="fresh", proceed=True)
    assert t.meta["branch"] == "feature/001-oauth-login-2"
    assert ".rondel/parts/implement/pass-2/iteration-1/task-1.json" in t.asked


def test_failing_tests_of_the_project_are_no_approval_of_a_verification(tmp_path):
    t = Turning(tmp_path, "hotfix")
    folder = ".rondel/parts/verify"
    t.write(f"{folder}/base.json", json.dumps({"commit": "0" * 40, "branch": "b", "checks": "false"}))
    t.write(f"{folder}/checks.json", json.dumps({"command": "false", "passed": False, "exit_code": 1}))
    prompts = []
    t.phase("verify", lambda ask: prompts.append(asked(t, ask)) or good(ask))
    assert record(t, "verify")["verified"] is False
    assert "the project's tests fail" in record(t, "verify")["reviewerNotes"][0]
    assert all("failed (status 1)" in prompt for prompt in prompts)


# -- always -------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    mode=st.sampled_from(sorted(LIMITS)),
    said=st.lists(st.sampled_from([APPROVED, BLOCKED, "nonsense", verdict(("warning", "w"))]), max_size=12),
)
def test_whatever_the_reviewer_says_order_and_limits_hold(tmp_path_factory, mode, said):
    t = Turning(tmp_path_factory.mktemp("f"), mode)
    left = iter(said)
    t.request(command="run", auto=True)
    t.turn(lambda ask: next(left, APPROVED) if ask.path.endswith("review.json") else good(ask))
    assert lint_meta(t.meta) == ()
    for phase in REVIEWED:
        assert 1 <= record(t, phase)["iterations"] <= LIMITS[mode]
        assert record(t, phase)["verified"] is ("reviewerNotes" not in record(t, phase))
    entries = t.text(".review-history.md").count("### Iteration")
    assert entries == sum(record(t, phase)["iterations"] for phase in REVIEWED)
