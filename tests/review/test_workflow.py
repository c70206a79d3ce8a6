"""A review from its request to its final.md, with scripted agents and a real repository."""

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta

import pytest
from review_support import (
    CHANGED,
    commit,
    content,
    finding,
    git,
    look,
    open_review,
    panel,
    project_of,
    review,
    run_review,
)

from rondel.agents.base import Reply
from rondel.engine.report import Stopped
from rondel.errors import NothingToDo, UsageError
from rondel.model.actions import Ask
from rondel.model.outcomes import Ended
from rondel.model.summary import Status
from rondel.testing.scripted import Scripted
from rondel.workflows.review import files
from rondel.workflows.review.dialects import parse_review
from rondel.workflows.review.report import conclusion
from rondel.workflows.review.target import Kind, Target
from rondel.workflows.review.workflow import Review
from support.in_the_way import KINDS, is_found, is_untouched, put

LATER = datetime.now(UTC) + timedelta(hours=1)
WRONG = finding("The sum is a difference", category="blocker", severity="high")
ZERO = finding("Every call divides by zero", category="should_fix", line=6, evidence="return n / 0")


def refuted(reason, file, evidence):
    return json.dumps({"verdict": "refuted", "reason": reason, "file": file, "evidence": evidence})


def by_type(**answers):
    """What each type of reviewer answers; those not named find nothing."""

    def answer(request):
        kind = request.action.rpartition("/")[2].rpartition("-")[0]
        return answers.get(kind, review())

    return answer


def test_a_review_leaves_the_folder_of_the_document(feature):
    (feature / "spec.md").write_text("It adds.\n")
    report, state = run_review(feature, panel(by_type(principal=review(WRONG))), requirements="It adds.\n")
    assert report.stopped is Stopped.COMPLETED
    names = {p for p in content(feature) if "/.rondel/" not in p}
    folder = state.ref.id
    assert names == {
        f"{folder}/{name}"
        for name in (
            "state.json",
            "discovered-standards.md",
            "requirements.md",
            "context.md",
            "rounds/round-1/reviews/principal-1.md",
            "rounds/round-1/reviews/principal-2.md",
            "rounds/round-1/reviews/quality-1.md",
            "rounds/round-1/reviews/quality-2.md",
            "rounds/round-1/discourse.md",
            "rounds/round-1/round-meta.json",
            "rounds/round-1/final.md",
        )
    }


def test_requirements_are_there_only_when_given(feature):
    _, state = run_review(feature, panel(by_type()))
    assert not state.files.exists("requirements.md")


def test_state_json_has_the_documents_fields_and_keeps_unknown_ones(feature):
    opened = open_review(feature)
    path = feature / opened.ref.folder / "state.json"
    document = json.loads(path.read_text())
    assert document["current_phase"] == "context"
    path.write_text(json.dumps({"theirs": [1], **document}))
    project_of(feature, panel(by_type())).run(opened.ref)
    after = json.loads(path.read_text())
    assert next(iter(after)) == "theirs"
    assert {
        k: after[k] for k in ("session_id", "status", "current_phase", "phase_number", "current_round")
    } == {
        "session_id": opened.ref.id,
        "status": "active",
        "current_phase": "complete",
        "phase_number": 8,
        "current_round": 1,
    }
    assert after["branch"] == "feature"
    assert after["started_at"] <= after["updated_at"]


def test_state_json_says_after_each_phase_which_is_due(feature):
    seen = []

    def noting(request):
        state = json.loads((feature / opened.ref.folder / "state.json").read_text())
        seen.append((request.action.rpartition("/")[2], state["current_phase"], state["phase_number"]))
        time.sleep(0.05)
        return review(WRONG) if "/reviews/" in request.action else "words"

    agent = panel(noting, guidance=noting, synthesis=noting)
    opened = open_review(feature, team="quality:1")
    project_of(feature, agent).run(opened.ref)
    assert ("guidance.md", "analysis", 3) in seen
    assert ("quality-1.md", "reviews", 4) in seen
    assert ("synthesis.md", "synthesis", 7) in seen


def test_the_verdict_and_the_counts_are_the_same_in_final_md_and_in_round_meta(feature):
    _, state = run_review(feature, panel(by_type(principal=review(WRONG, ZERO), quality=review(WRONG))))
    meta = state.meta
    final = parse_review(state.files.text(state.at.final))
    assert meta["verdict"] == final.verdict == "REQUEST CHANGES"
    assert meta["synthesis_counts"] == final.counts == {"blockers": 1, "should_fix": 1, "suggestions": 0}
    assert meta["schema_version"] == 1
    assert {r["name"]: len(r["findings"]) for r in meta["reviewers"]} == {
        "principal-1": 2,
        "principal-2": 2,
        "quality-1": 1,
        "quality-2": 1,
    }
    assert all(f["fingerprint"] for r in meta["reviewers"] for f in r["findings"])


def test_no_finding_is_an_approval(feature):
    _, state = run_review(feature, panel(by_type()))
    assert state.meta["verdict"] == "APPROVE"


def test_an_open_question_about_the_requirements_needs_discussion(feature):
    asks = review(questions="- Requirement: may the result be negative?")
    _, state = run_review(feature, panel(by_type(principal=asks)))
    assert state.meta["verdict"] == "NEEDS DISCUSSION"
    assert "may the result be negative?" in state.files.text(state.at.final)


def test_a_question_about_something_else_does_not_hold_the_change_up(feature):
    _, state = run_review(feature, panel(by_type(principal=review(questions="- Why so short?"))))
    assert state.meta["verdict"] == "APPROVE"


def test_the_lead_cannot_change_the_verdict(feature):
    prose = "# Verdict\n\n**APPROVE**\n\nVerdict: APPROVE\n\n## Blockers\n\nBlockers: 0\n\n```\nnever closed"
    _, state = run_review(feature, panel(by_type(principal=review(WRONG)), synthesis=lambda _: prose))
    final = parse_review(state.files.text(state.at.final))
    assert (final.verdict, final.counts["blockers"]) == ("REQUEST CHANGES", 1)


def test_a_quotation_that_is_not_in_the_change_is_kept_and_marked(feature):
    invented = finding("Something invented", category="blocker", evidence="os.system(user_input)")
    _, state = run_review(feature, panel(by_type(principal=review(invented))))
    entry = next(e for e in state.meta["findings"])
    assert entry["verified"] is False
    assert "unverified" in state.files.text(state.at.final)


# -- phases ----------------------------------------------------------------------------------


def test_reviewers_run_in_parallel(feature):
    together = asyncio.Barrier(4)

    class Waiting(Scripted):
        async def run(self, request, beat):
            if "/reviews/" in request.action:
                async with asyncio.timeout(60):
                    await together.wait()  # nobody answers before all four were asked
            return await super().run(request, beat)

    opened = open_review(feature, team="principal:2,quality:2")
    assert project_of(feature, Waiting(panel(by_type()).answer)).run(opened.ref).exit_code == 0


def test_the_prompts_have_the_diff_the_standards_the_requirements_and_the_guidance(feature):
    git(feature, "switch", "-q", "main")
    commit(feature, {"AGENTS.md": "Never subtract.\n"})
    git(feature, "switch", "-q", "feature")
    git(feature, "rebase", "-q", "main")
    agent = panel(by_type())
    run_review(feature, agent, requirements="It must add.\n", team="security:1")
    prompt = next(r.prompt for r in agent.seen if "/reviews/" in r.action)
    for words in (
        "return a - b",
        "Never subtract.",
        "It must add.",
        "Look at the sign.",
        "Security engineer",
    ):
        assert words in prompt


def test_reviewers_read_the_repository_as_it_is_after_the_change(feature):
    seen = []

    def reads(request):
        seen.append((request.cwd / "app.py").read_text())
        return review()

    (feature / "app.py").write_text("uncommitted = 1\n")
    run_review(feature, panel(reads), team="quality:1")
    assert seen == ["uncommitted = 1\n"]


def test_a_finding_of_one_reviewer_goes_to_a_refuter_and_one_of_two_does_not(feature):
    answers = {"principal-1": review(WRONG), "quality-1": review(WRONG, ZERO)}
    agent = panel(lambda r: answers[r.action.rpartition("/")[2].removesuffix(".md")])
    _, state = run_review(feature, agent, team="principal:1,quality:1")
    refuted = [r for r in agent.seen if "/refute/" in r.action]
    assert [r.role for r in refuted] == ["review.refuter"]
    assert "divides by zero" in refuted[0].prompt
    assert state.has_part("refute/F2.json")
    assert "could not" in refuted[0].prompt


def test_a_blocker_that_code_refutes_does_not_block(feature):
    said = refuted("nobody calls it", "README.md", "scratch")
    agent = panel(lambda r: review(WRONG) if "principal" in r.action else review(), refute=lambda _: said)
    _, state = run_review(feature, agent, team="principal:1,quality:1")
    assert state.meta["verdict"] == "APPROVE"
    assert "refuted" in state.files.text(state.at.discourse)
    assert "nobody calls it" in state.files.text(state.at.final)


def test_a_refutation_that_quotes_nothing_real_does_not_count(feature):
    said = refuted("no", "app.py", "if safe: return")
    agent = panel(lambda r: review(WRONG) if "principal" in r.action else review(), refute=lambda _: said)
    _, state = run_review(feature, agent, team="principal:1,quality:1")
    assert state.meta["verdict"] == "REQUEST CHANGES"


def test_agreement_adds_weight_and_an_undefended_challenge_takes_one(feature):
    def discuss(request):
        verb = "AGREE" if "quality" in request.action else "CHALLENGE"
        target = "F1" if verb == "AGREE" else "F2"
        return json.dumps({"responses": [{"finding": target, "verb": verb, "reason": "read it"}]})

    answers = {"principal-1": review(WRONG), "quality-1": review(ZERO)}
    agent = panel(
        lambda r: answers[r.action.rpartition("/")[2].removesuffix(".md")],
        discourse=discuss,
        refute=lambda _: '{"verdict": "uncertain"}',
    )
    _, state = run_review(feature, agent, team="principal:1,quality:1")
    weights = {e["title"]: (e["weight"], e["state"]) for e in state.meta["findings"]}
    assert weights == {WRONG["title"]: (2, "open"), ZERO["title"]: (0, "refuted")}
    discourse = state.files.text(state.at.discourse)
    assert "AGREE quality-1" in discourse
    assert "CHALLENGE principal-1" in discourse


def test_a_quick_review_skips_discourse_and_refuters_and_says_so(feature):
    agent = panel(by_type(principal=review(WRONG)))
    _, state = run_review(feature, agent, quick=True)
    assert not [a for a in agent.actions if "/discourse/" in a or "/refute/" in a]
    assert state.reviewed == ("principal-1", "quality-1")
    for path in (state.at.final, state.at.discourse):
        assert "quick review" in state.files.text(path)


def test_without_any_model_the_words_come_from_code(feature):
    agent = panel(by_type(security=review(WRONG)))
    report, state = run_review(feature, agent, kind_of=lambda _: "checks")
    assert report.exit_code == 0
    assert {r.role.partition("-")[0] for r in agent.seen} == {
        f"review.reviewer.{kind}" for kind in ("quality", "security", "performance", "reliability")
    }
    final = state.files.text(state.at.final)
    assert "REQUEST CHANGES" in final
    assert "(checks)" in final


def test_checks_get_the_whole_diff_however_small_a_prompt_may_be(feature):
    commit(feature, {"long.py": "".join(f"line_{n} = {n}\n" for n in range(2_000))})
    agent = panel(by_type())
    run_review(feature, agent, kind_of=lambda _: "checks", team="quality:1", settings={"prompt_max": 4_000})
    assert "line_1999 = 1999" in agent.seen[0].prompt


def test_another_reviewers_file_is_adopted(feature):
    opened = open_review(feature, team="quality:1")
    theirs = feature / opened.ref.folder / "rounds/round-1/reviews/architect-1.md"
    theirs.write_text(review(WRONG))
    agent = panel(by_type())
    project_of(feature, agent).run(opened.ref)
    state = files.state_of(feature, opened.ref)
    assert state.meta["verdict"] == "REQUEST CHANGES"
    assert theirs.read_text() == review(WRONG)
    assert not any("architect" in a for a in agent.actions)


# -- missing reviewers -------------------------------------------------------------------------


def failing(*names, how=None):
    def answer(request):
        name = request.action.rpartition("/")[2].removesuffix(".md")
        return (how or Reply(Ended.FAILED, error="no such model")) if name in names else review(WRONG)

    return answer


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (Reply(Ended.FAILED, error="no such model"), "no such model"),
        (Reply(Ended.TIMED_OUT, error="not done after 60 s"), "timed out"),
        (Reply(Ended.DONE, "I think it is fine!"), "no fenced json block"),
        (Reply(Ended.DONE, '```json\n{"findings": "many"}\n```'), "must be a list"),
    ],
)
def test_a_reviewer_that_gives_no_usable_answer_is_named_as_missing(feature, how, words):
    report, state = run_review(feature, panel(failing("quality-2", how=how)))
    assert report.exit_code == 0
    final = state.files.text(state.at.final)
    assert "**quality-2** is missing" in final
    assert words in final
    assert state.meta["reviewers"][3]["status"] == "missing"
    assert not state.files.exists(state.at.review("quality-2"))


def test_half_of_the_reviewers_is_enough(feature):
    report, state = run_review(feature, panel(failing("quality-1", "quality-2")))
    assert report.exit_code == 0
    assert state.is_complete


def test_fewer_than_half_is_no_verdict_and_an_error(feature):
    report, state = run_review(feature, panel(failing("principal-2", "quality-1", "quality-2")))
    assert report.exit_code == 1
    assert "only 1 of 4 reviewers answered" in report.message
    assert "(principal-2, quality-1, quality-2: failed:" in report.message
    assert not state.is_complete
    assert not state.files.exists(state.at.meta)
    summary = project_of(feature, panel(by_type())).summary(state.ref)
    assert (summary.status, summary.next) == (Status.FAILED, f"rondel resume {state.ref.name}")


def test_after_too_few_answers_a_new_run_asks_only_those_who_are_missing(feature):
    first = panel(failing("principal-2", "quality-1", "quality-2"))
    run_review(feature, first)
    second = panel(by_type())
    report, state = run_review(feature, second)
    assert report.exit_code == 0
    asked = {a.rpartition("/")[2] for a in second.actions if "/reviews/" in a}
    assert asked == {"principal-2.md", "quality-1.md", "quality-2.md"}
    assert state.attendance.missing == {}


def test_a_lead_that_fails_is_replaced_by_code_and_that_is_said(feature):
    def dead(_):
        return Reply(Ended.FAILED, error="no such model")

    report, state = run_review(feature, panel(by_type(), guidance=dead, synthesis=dead))
    assert report.exit_code == 0
    final = state.files.text(state.at.final)
    assert "the lead's guidance is missing" in final
    assert "the lead's synthesis is missing" in final


def test_a_lead_that_failed_is_asked_again_with_the_reviewers_that_did(feature):
    def dead(_):
        return Reply(Ended.FAILED, error="no such model")

    run_review(feature, panel(failing("principal-2", "quality-1", "quality-2"), guidance=dead))
    second = panel(by_type())
    report, state = run_review(feature, second)
    assert report.exit_code == 0
    assert sum("guidance" in action for action in second.actions) == 1
    assert "Look at the sign." in state.files.text("context.md")
    assert all("Look at the sign." in r.prompt for r in second.seen if "/reviews/" in r.action)
    assert "the lead's guidance is missing" not in state.files.text(state.at.final)


def test_a_debater_or_a_refuter_that_fails_stops_nothing(feature):
    def dead(_):
        return Reply(Ended.FAILED, error="no such model")

    agent = panel(
        lambda r: review(WRONG) if "principal" in r.action else review(ZERO), discourse=dead, refute=dead
    )
    report, state = run_review(feature, agent, team="principal:1,quality:1")
    assert report.exit_code == 0
    assert "took no part" in state.files.text(state.at.discourse)
    assert state.meta["verdict"] == "REQUEST CHANGES"


def test_half_an_answer_that_can_be_read_counts_and_the_rest_is_said(feature):
    half = review(WRONG, {"category": "blocker"})
    _, state = run_review(feature, panel(by_type(principal=half)))
    assert state.meta["synthesis_counts"]["blockers"] == 1
    assert "part of the answer could not be read" in state.files.text(state.at.final)


# -- what to review ---------------------------------------------------------------------------


def test_an_empty_change_is_nothing_to_do_and_writes_nothing(repo):
    with pytest.raises(NothingToDo, match="nothing to review"):
        open_review(repo)
    assert not (repo / ".ocr").exists()


def test_a_round_keeps_to_its_pins_when_head_moves(feature):
    first = git(feature, "rev-parse", "HEAD")

    def moving(request):
        if request.action.endswith("quality-1.md"):
            commit(feature, {"app.py": "moved = 1\n"}, "moved on")
        return review()

    _, state = run_review(feature, panel(moving))
    assert state.meta["target"]["head"] == first
    assert "moved on since the round opened" in state.files.text(state.at.final)


def test_resuming_says_that_head_has_moved_and_goes_on_with_the_pins(feature):
    opened = open_review(feature)
    pinned = files.state_of(feature, opened.ref).pins
    commit(feature, {"app.py": "moved = 1\n"}, "moved on")
    again = open_review(feature)
    assert (again.ref, again.round, again.resumed) == (opened.ref, 1, True)
    assert "keeps to what it pinned" in again.notes[0]
    assert files.state_of(feature, opened.ref).pins == pinned


def test_a_diff_file_is_reviewed(feature):
    diff = git(feature, "diff", "main", "HEAD") + "\n"
    git(feature, "checkout", "-q", "main")
    agent = panel(by_type(principal=review(WRONG)))
    _, state = run_review(feature, agent, target=Target(Kind.DIFF, file="x.diff"), given=diff)
    assert "return a - b" in agent.seen[0].prompt
    assert state.meta["findings"][0]["verified"] is True


def test_an_empty_diff_file_is_nothing_to_do(feature):
    with pytest.raises(NothingToDo):
        open_review(feature, target=Target(Kind.DIFF, file="x.diff"), given="\n")


def test_two_branches_that_would_share_a_folder_get_two(feature):
    git(feature, "checkout", "-qb", "fix/a")
    first = open_review(feature)
    git(feature, "checkout", "-qb", "fix-a")
    second = open_review(feature)
    assert first.ref.id.endswith("-fix-a")
    assert second.ref.id.endswith("-fix-a-2")
    git(feature, "checkout", "-q", "fix/a")
    assert open_review(feature).ref == first.ref


def test_a_folder_without_a_recorded_branch_is_ours(feature):
    ref = files.place(feature, "feature", look(feature).at.date())
    (feature / ref.folder / "rounds/round-1/reviews").mkdir(parents=True)
    (feature / ref.folder / "state.json").write_text('{"current_round": 1}')
    opened = open_review(feature)
    assert (opened.ref, opened.round, opened.resumed) == (ref, 1, True)


def test_restart_puts_an_unfinished_round_aside(feature):
    opened = open_review(feature, team="quality:1")
    (feature / opened.ref.folder / "rounds/round-1/reviews/quality-1.md").write_text(review(WRONG))
    commit(feature, {"app.py": CHANGED + "# fixed\n"})
    again = open_review(feature, restart=True)
    assert (again.round, again.resumed) == (1, False)
    aside = feature / opened.ref.folder / ".rondel/aside/rounds__round-1.set-aside-1"
    assert (aside / "reviews/quality-1.md").exists()
    assert not (feature / opened.ref.folder / "rounds/round-1/reviews/quality-1.md").exists()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "file"])
@pytest.mark.parametrize("path", ["state.json", "requirements.md", ".rondel/request-2.json"])
def test_what_stands_where_a_round_is_opened_is_put_aside(feature, tmp_path, path, kind):
    opened = open_review(feature, team="quality:1")
    folder, outside = feature / opened.ref.folder, tmp_path / "outside"
    put(folder / path, kind, outside)
    open_review(feature, restart=True, requirements="It adds.\n")
    assert (folder / path).is_file()
    assert not (folder / path).is_symlink()
    assert is_found(folder, path, kind, outside)
    assert is_untouched(outside)


def test_a_resumed_round_may_get_a_larger_team(feature):
    opened = open_review(feature, team="quality:1")
    open_review(feature, team="quality:1,security:1")
    state = files.state_of(feature, opened.ref)
    assert [r.name for r in state.request.team] == ["quality-1", "security-1"]


def test_more_rounds_than_configured_are_refused(feature):
    run_review(feature, panel(by_type()), settings={"rounds_max": 1})
    commit(feature, {"app.py": "x = 1\n"})
    with pytest.raises(UsageError, match="rounds_max"):
        open_review(feature, settings={"rounds_max": 1})


def test_the_plan_asks_the_whole_team_at_once(feature):
    opened = open_review(feature, team="principal:3,quality:3")
    agent = panel(by_type())
    agent.answer = lambda r: Reply(Ended.PARKED, until=LATER) if "/reviews/" in r.action else "words"
    project_of(feature, agent).run(opened.ref)
    due = [a for a in Review().plan(files.state_of(feature, opened.ref)) if isinstance(a, Ask)]
    assert len(due) == 6


def test_every_file_that_no_reviewer_was_shown_is_named_with_the_reason(feature):
    commit(feature, {"pic.png": b"\x89PNG\0\0", "big.txt": "a line of text\n" * 100_000}, "more")
    _, state = run_review(feature, panel(lambda _: review()))
    final = state.files.text(state.at.final)
    assert "2 changed files were shown to no reviewer" in final
    assert "## Not looked at\n" in final
    assert "- pic.png: binary, added\n" in final
    assert "- big.txt: large, added\n" in final
    assert state.meta["not_looked_at"] == [
        {"path": "big.txt", "status": "added", "reason": "large"},
        {"path": "pic.png", "status": "added", "reason": "binary"},
    ]
    found = conclusion(state)
    assert found.fields["not_looked_at"] == state.meta["not_looked_at"]
    assert found.notes == ("2 changed files were shown to no reviewer: big.txt (large), pic.png (binary)",)
    assert parse_review(final).findings == ()
