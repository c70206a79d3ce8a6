"""From round to round: what is carried, what became of it, and that finished rounds never change."""

import json

import pytest
from review_support import (
    APP,
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

from rondel.errors import NothingToDo, UsageError
from rondel.model.changes import text
from rondel.workflows.review import files
from rondel.workflows.review.judge import compare_rounds
from rondel.workflows.review.layout import DECISIONS

FIXED = APP + "\n\n# checked\n"
WRONG = finding("The sum is a difference", category="blocker", severity="high")
ZERO = finding("Every call divides by zero", category="should_fix", line=6, evidence="return n / 0")
NEW = finding("Nobody names the units", category="suggestion", line=1, evidence="def add(a, b):")


def says(*findings, **more):
    return panel(lambda _: review(*findings, **more))


def answers(**by_finding):
    return [{"finding": name, "answer": word, "reason": "read it"} for name, word in by_finding.items()]


def one_round(root, *findings, **more):
    """A round of two reviewers who say the same."""
    return run_review(root, says(*findings, **more), team="quality:2")[1]


def states(state):
    return {e["title"]: e["state"] for e in state.meta["findings"]}


def groups(state):
    found = compare_rounds(state, None, None).document()
    return {k: [row["title"] for row in v] for k, v in found.items() if k != "rounds" and v}


def test_a_round_gets_the_open_findings_of_the_one_before(feature):
    one_round(feature, WRONG, ZERO)
    commit(feature, {"app.py": FIXED})
    agent = says(carried=answers(C1="fixed", C2="fixed"))
    _, state = run_review(feature, agent, team="quality:2")
    prompt = next(r.prompt for r in agent.seen if "/reviews/" in r.action)
    assert "C1 [blocker] The sum is a difference" in prompt
    assert "C2 [should_fix]" in prompt
    assert states(state) == {WRONG["title"]: "fixed", ZERO["title"]: "fixed"}
    assert state.meta["verdict"] == "APPROVE"


def test_what_is_said_to_be_fixed_but_has_not_changed_stays_open(feature):
    one_round(feature, WRONG)
    commit(feature, {"other.py": "x = 1\n"})
    state = one_round(feature, carried=answers(C1="fixed"))
    assert states(state) == {WRONG["title"]: "open"}
    assert state.meta["verdict"] == "REQUEST CHANGES"
    assert "its code has not changed" in state.files.text(state.at.final)


def test_a_blocker_nobody_answers_stays_open_while_its_code_is_there(feature):
    one_round(feature, WRONG)
    commit(feature, {"other.py": "x = 1\n"})
    state = one_round(feature)
    assert state.meta["verdict"] == "REQUEST CHANGES"
    assert "carried from" in state.files.text(state.at.final)


def test_a_finding_nobody_answers_is_fixed_when_its_code_is_gone(feature):
    one_round(feature, WRONG)
    commit(feature, {"app.py": FIXED})
    state = one_round(feature)
    assert states(state) == {WRONG["title"]: "fixed"}


def test_one_reviewer_who_says_still_open_outweighs_one_who_says_fixed(feature):
    one_round(feature, WRONG)
    commit(feature, {"app.py": CHANGED + "# more\n"})
    agent = panel(lambda r: review(carried=answers(C1="fixed" if "quality-1" in r.action else "still_open")))
    _, state = run_review(feature, agent, team="quality:2")
    assert states(state) == {WRONG["title"]: "open"}


def test_an_agent_may_accept_a_suggestion_but_never_a_blocker(feature):
    one_round(feature, WRONG, NEW)
    commit(feature, {"other.py": "x = 1\n"})
    state = one_round(feature, carried=answers(C1="accepted", C2="accepted"))
    assert states(state) == {WRONG["title"]: "open", NEW["title"]: "accepted"}


def accept_first(root, state):
    """A person accepts the first finding of a round."""
    name = state.meta["findings"][0]["fingerprint"]
    decision = {"answer": "accept", "by": "person", "comment": "known and wanted"}
    project_of(root, says()).change(
        state.ref, [text(f"{DECISIONS}/accept-{name}.json", json.dumps(decision))]
    )


def as_of_another_day(root, state):
    (root / state.ref.folder).rename(root / state.ref.folder.replace(state.ref.id[:10], "2020-01-01"))


def test_what_a_person_accepted_stays_accepted_on_another_day(feature):
    state = one_round(feature, WRONG)
    accept_first(feature, state)
    as_of_another_day(feature, state)
    state = one_round(feature, WRONG)
    assert state.ref.id != "2020-01-01-feature"
    assert states(state) == {WRONG["title"]: "accepted"}
    assert state.meta["verdict"] == "APPROVE"


def test_a_person_may_accept_a_blocker(feature):
    state = one_round(feature, WRONG)
    accept_first(feature, state)
    commit(feature, {"other.py": "x = 1\n"})
    state = one_round(feature, WRONG)
    assert states(state) == {WRONG["title"]: "accepted"}
    assert state.meta["verdict"] == "APPROVE"


def test_a_refuted_old_finding_needs_a_true_quotation(feature):
    one_round(feature, WRONG)
    commit(feature, {"other.py": "x = 1\n"})
    claim = {"finding": "C1", "answer": "refuted", "reason": "it must", "evidence": "def half(n):"}
    assert states(one_round(feature, carried=[{**claim, "evidence": "never_there()"}])) == {
        WRONG["title"]: "open"
    }
    commit(feature, {"other.py": "x = 2\n"})
    assert states(one_round(feature, carried=[claim])) == {WRONG["title"]: "refuted"}


def test_moved_lines_do_not_make_a_new_finding(feature):
    one_round(feature, WRONG)
    commit(feature, {"app.py": "# one\n# two\n# three\n" + CHANGED})
    state = one_round(feature, {**WRONG, "line": 5, "title": "It subtracts where it should add"})
    assert groups(state) == {"persisting": ["It subtracts where it should add"]}


def test_compare_tells_new_fixed_persisting_and_reopened(feature):
    one_round(feature, WRONG, ZERO)
    commit(feature, {"app.py": CHANGED.replace("a - b", "a + b")})
    state = one_round(feature, ZERO, NEW)
    assert groups(state) == {"new": [NEW["title"]], "persisting": [ZERO["title"]], "fixed": [WRONG["title"]]}
    commit(feature, {"app.py": CHANGED})
    state = one_round(feature, WRONG, ZERO)
    assert groups(state)["reopened"] == [WRONG["title"]]
    assert states(state)[WRONG["title"]] == "reopened"


def test_compare_names_the_rounds_there_are(feature):
    state = one_round(feature, WRONG)
    with pytest.raises(UsageError, match="complete rounds: 1"):
        compare_rounds(state, None, None)
    with pytest.raises(UsageError, match="no complete round 7"):
        compare_rounds(state, 1, 7)


def test_earlier_rounds_stay_byte_for_byte(feature):
    one_round(feature, WRONG)
    before = {p: d for p, d in content(feature).items() if "round-1/" in p}
    commit(feature, {"app.py": FIXED, "AGENTS.md": "Be kind.\n"})
    one_round(feature, ZERO)
    after = content(feature)
    assert {p: after[p] for p in before} == before


def test_nothing_changed_since_a_complete_round_is_nothing_to_do(feature):
    one_round(feature, WRONG)
    before = content(feature)
    with pytest.raises(NothingToDo, match="nothing changed since round 1"):
        open_review(feature)
    assert content(feature) == before
    assert open_review(feature, again=True).round == 2


def test_blockers_are_carried_into_a_session_of_another_day(feature):
    state = one_round(feature, WRONG, NEW)
    as_of_another_day(feature, state)
    agent = says()
    _, later = run_review(feature, agent, team="quality:2")
    assert later.ref.id != "2020-01-01-feature"
    assert [c.finding.title for c in later.carried] == [WRONG["title"]]
    assert later.meta["verdict"] == "REQUEST CHANGES"


def test_blockers_of_another_branch_are_not_carried(feature):
    one_round(feature, WRONG)
    git(feature, "checkout", "-qb", "other")
    state = one_round(feature)
    assert state.carried == ()


def test_an_unfinished_round_of_an_earlier_day_about_the_same_change_goes_on(feature):
    opened = open_review(feature)
    (feature / opened.ref.folder).rename(feature / ".ocr/sessions/2020-01-01-feature")
    assert open_review(feature).ref.id == "2020-01-01-feature"
    commit(feature, {"app.py": "x = 1\n"})
    later = open_review(feature)
    assert later.ref.id == opened.ref.id
    assert not later.resumed


def commit_below(repo, files):
    """Standards are those of the base: somebody else's commit there, and the branch is moved onto it."""
    git(repo, "switch", "-q", "main")
    commit(repo, files)
    git(repo, "switch", "-q", "feature")
    git(repo, "rebase", "-q", "main")


def test_root_files_are_made_anew_when_their_inputs_changed_and_the_old_ones_kept(feature):
    state = one_round(feature)
    old = {name: state.files.data(name) for name in ("context.md", "discovered-standards.md")}
    commit_below(feature, {"AGENTS.md": "Be kind.\n"})
    state = one_round(feature)
    for name, data in old.items():
        assert state.files.data(name) != data
        assert state.files.data(f".rondel/parts/round-1/{name}") == data
    assert "Be kind." in state.files.text("discovered-standards.md")


def test_root_files_whose_inputs_are_the_same_stay(feature):
    state = one_round(feature)
    before = (feature / state.ref.folder / "discovered-standards.md").stat().st_mtime_ns
    commit(feature, {"app.py": FIXED})
    state = one_round(feature)
    assert state.files.text("discovered-standards.md").startswith("# Discovered standards")
    assert not state.files.exists(".rondel/parts/round-1/discovered-standards.md")
    assert before <= (feature / state.ref.folder / "discovered-standards.md").stat().st_mtime_ns


def test_a_root_file_that_a_person_edited_is_theirs(feature):
    state = one_round(feature)
    path = feature / state.ref.folder / "discovered-standards.md"
    path.write_text("Ours, by hand.\n")
    commit_below(feature, {"AGENTS.md": "Be kind.\n"})
    state = one_round(feature)
    assert path.read_text() == "Ours, by hand.\n"
    assert "Be kind." in state.files.text(".rondel/parts/round-2/discovered-standards.md")


def test_a_deleted_round_is_made_anew_and_its_leftovers_are_kept_aside(feature):
    one_round(feature, WRONG)
    commit(feature, {"app.py": FIXED})
    state = one_round(feature, ZERO)
    folder = feature / state.ref.folder
    for path in sorted((folder / "rounds/round-2").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    (folder / "rounds/round-2").rmdir()
    state = files.state_of(feature, state.ref)
    assert (state.at.number, state.resolution.current_round, state.resolution.new_round) == (1, 2, True)
    agent = says()
    _, state = run_review(feature, agent, team="quality:2")
    assert (state.at.number, len([a for a in agent.actions if "/reviews/" in a])) == (2, 2)
    assert (folder / ".rondel/aside/.rondel__parts__round-2.set-aside-1/target.json").exists()


def test_an_empty_round_made_by_hand_is_an_unfinished_round(feature):
    state = one_round(feature, WRONG)
    commit(feature, {"app.py": FIXED})
    (feature / state.ref.folder / "rounds/round-3").mkdir()
    report = project_of(feature, says()).run(state.ref)
    state = files.state_of(feature, state.ref)
    assert report.exit_code == 0
    assert (state.at.number, state.is_complete) == (3, True)
    assert states(state) == {WRONG["title"]: "fixed"}


def test_a_padded_round_is_resumed_in_its_own_folder(feature):
    ref = files.place(feature, "feature", look(feature).at.date())
    (feature / ref.folder / "rounds/round-08/reviews").mkdir(parents=True)
    _, state = run_review(feature, says())
    assert state.at.final == "rounds/round-08/final.md"
    assert state.is_complete
    commit(feature, {"app.py": FIXED})
    assert open_review(feature).round == 9


def test_a_session_is_closed_and_opens_again_when_it_is_reviewed(feature):
    state = one_round(feature)
    files.close(feature, state.ref, "2026-11-15T10:00:00+00:00")
    closed = files.state_of(feature, state.ref)
    assert closed.is_closed
    assert json.loads(closed.files.text("state.json"))["current_phase"] == "complete"
    commit(feature, {"app.py": FIXED})
    opened = open_review(feature)
    assert (opened.ref, opened.round) == (state.ref, 2)
    assert not files.state_of(feature, state.ref).is_closed


def test_a_finding_of_the_checks_is_fixed_when_they_no_longer_make_it(feature):
    run_review(feature, says(WRONG), kind_of=lambda _: "checks", team="quality:1")
    commit(feature, {"app.py": CHANGED + "# the line is still there, but now it is right\n"})
    _, state = run_review(feature, says(), kind_of=lambda _: "checks", team="quality:1")
    assert states(state) == {WRONG["title"]: "fixed"}


def test_an_unfinished_round_is_resumed_even_if_there_is_nothing_to_review_any_more(feature):
    opened = open_review(feature)
    commit(feature, {"app.py": APP})
    assert open_review(feature).ref == opened.ref


def test_reviews_that_are_tracked_in_git_are_no_change_to_review(feature):
    state = one_round(feature, WRONG)
    commit(feature, {}, "the reviews, too") if git(feature, "status", "--porcelain") else None
    assert ".ocr/" in git(feature, "ls-files")
    with pytest.raises(NothingToDo):
        open_review(feature)
    commit(feature, {"app.py": FIXED})
    (feature / state.ref.folder / "context.md").write_text("edited\n")
    state = one_round(feature)
    assert state.change.paths == ("app.py",)
    assert "moved on" not in state.files.text(state.at.final)
