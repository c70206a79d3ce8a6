"""Weights, the verdict, old findings: computed, and the same whoever asks."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from review_support import finding, review

from rondel.workflows.review.aggregate import Item, aggregate, aggregation_document, findings_in, items_of
from rondel.workflows.review.change import Change
from rondel.workflows.review.findings import Category, Finding, Severity
from rondel.workflows.review.judge import Known, link, result_of, settle, weigh
from rondel.workflows.review.responses import (
    Answer,
    CarriedAnswer,
    Refutation,
    Response,
    Ruling,
    Verb,
    parse_answers,
    parse_refutation,
    parse_responses,
    refutation_of,
    responses_document,
    responses_of,
)
from rondel.workflows.review.result import (
    Carried,
    Entry,
    FindingState,
    Question,
    Result,
    Since,
    Standing,
    Verdict,
    enough,
)

DIFF = (
    "diff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,6 @@\n def add(a, b):\n"
    "-    return a + b\n+    return a - b\n+\n+\n+def half(n):\n+    return n / 0\n"
)
CHANGE = Change(diff=DIFF, files=())


def item(name="F1", supporters=("a-1",), category=Category.BLOCKER, **fields):
    made = Finding("t", category, Severity.HIGH, file="app.py", line=2, fingerprint=name.lower(), **fields)
    return Item(name, made, tuple(supporters))


def weighed(one, *responses, refutation=None, quotes=()):
    given_ = {one.id: refutation} if refutation else {}
    return weigh([one], responses, given_, frozenset(quotes))[0]


def agree(who, on="F1"):
    return Response(on, Verb.AGREE, reviewer=who)


def challenge(who, on="F1"):
    return Response(on, Verb.CHALLENGE, reviewer=who)


def test_a_finding_weighs_one_for_each_who_made_it_and_each_who_agrees():
    assert weighed(item()).weight == 1
    assert weighed(item(supporters=("a-1", "b-1"))).weight == 2
    assert weighed(item(), agree("b-1"), agree("c-1")).weight == 3
    assert weighed(item(), agree("a-1")).weight == 1


def test_challenged_and_undefended_it_loses_one():
    found = weighed(item(), challenge("b-1"))
    assert (found.weight, found.standing, found.blocks) == (0, Standing.DISPUTED, False)


def test_challenged_and_defended_it_keeps_its_weight():
    assert weighed(item(), challenge("b-1"), agree("c-1")).weight == 2
    assert weighed(item(), challenge("b-1"), refutation=Refutation(Ruling.STANDS)).blocks


def test_one_cannot_challenge_away_what_one_made_oneself():
    assert weighed(item(), challenge("a-1")).blocks


def test_refuted_by_code_that_is_there_it_is_refuted():
    refutation = Refutation(Ruling.REFUTED, evidence="x = 1")
    assert weighed(item(), refutation=refutation, quotes=["x = 1"]).standing is Standing.REFUTED
    assert weighed(item(), refutation=refutation).blocks
    assert weighed(item(), agree("b-1"), refutation=refutation, quotes=["x = 1"]).blocks


RESPONSES = st.lists(
    st.builds(
        Response,
        st.sampled_from(["F1", "F2"]),
        st.sampled_from(list(Verb)),
        reviewer=st.sampled_from(["a-1", "b-1", "c-1", "d-1"]),
    ),
    max_size=8,
)


@given(RESPONSES, st.sets(st.sampled_from(["a-1", "b-1", "c-1"]), min_size=1))
def test_an_agreement_never_lowers_a_weight_and_a_challenge_never_raises_one(responses, supporters):
    one = item(supporters=sorted(supporters))
    before = weighed(one, *responses).weight
    assert weighed(one, *responses, agree("x-1")).weight > before
    assert weighed(one, *responses, challenge("x-1")).weight <= before


@given(RESPONSES)
def test_the_order_of_responses_does_not_matter(responses):
    assert weighed(item(), *responses) == weighed(item(), *reversed(responses))


def test_the_verdict_follows_from_blockers_then_questions():
    blocker, question = Entry(item(), FindingState.OPEN, 1), Question("a-1", "Which ticket is it?")
    blocked, unclear = Result((blocker,), questions=(question,)), Result((), questions=(question,))
    assert blocked.judgement == (Verdict.REQUEST_CHANGES, "1 open blocker.")
    assert unclear.judgement == (
        Verdict.NEEDS_DISCUSSION,
        "No blocker, but 1 open question about the requirements.",
    )
    assert Result(()).judgement == (Verdict.APPROVE, "No open blocker.")


def test_half_is_enough_and_nobody_is_not():
    assert [enough(n, 5) for n in range(6)] == [False, False, False, True, True, True]
    assert enough(2, 4)
    assert not enough(0, 0)


def test_a_question_about_requirements_is_known_by_its_words():
    assert Question("a-1", "Requirement: which currency?").about_requirements
    assert Question("a-1", "Does the spec allow zero?").about_requirements
    assert not Question("a-1", "Why is this so special?").about_requirements


def test_a_file_that_is_named_like_a_requirement_is_none():
    assert not Question("a-1", "Why does requirements.txt not pin `spec`?").about_requirements
    assert not Question("a-1", "Not checked: `spec/models`: it is not a regular file").about_requirements


@pytest.mark.parametrize(
    "said",
    ["- No questions about the requirements.", "- **None** - the spec is clear.", "N/A: no ticket given"],
)
def test_to_say_that_there_is_no_question_is_not_to_ask_one(said):
    assert result_of([], [], {}, [], {"a-1": review(questions=said)}).verdict is Verdict.APPROVE
    asked = f"{said}\n- None of the requirements covers zero; is it allowed?"
    assert result_of([], [], {}, [], {"a-1": review(questions=asked)}).verdict is Verdict.NEEDS_DISCUSSION


# -- aggregation -------------------------------------------------------------------------------

WRONG = finding("The sum is a difference", category="blocker")
ZERO = finding("Every call divides by zero", line=5, evidence="return n / 0")


def test_the_same_finding_of_two_reviewers_is_one_with_both():
    items = aggregate({"a-1": review(WRONG), "b-1": review({**WRONG, "category": "suggestion"})}, CHANGE)
    assert [(i.id, i.supporters, i.finding.category) for i in items] == [("F1", ("a-1", "b-1"), "blocker")]


def test_findings_about_different_code_are_two_however_alike_they_sound():
    items = aggregate({"a-1": review(WRONG), "b-1": review({**ZERO, "title": WRONG["title"]})}, CHANGE)
    assert len(items) == 2
    other = {**WRONG, "file": "other.py"}
    assert len(aggregate({"a-1": review(WRONG), "b-1": review(other)}, CHANGE)) == 2


def test_the_gravest_comes_first_and_each_has_its_own_name():
    items = aggregate({"a-1": review(ZERO, WRONG)}, CHANGE)
    assert [(i.id, i.finding.title) for i in items] == [("F1", WRONG["title"]), ("F2", ZERO["title"])]
    assert len({i.fingerprint for i in items}) == 2


def test_the_order_of_reviewers_does_not_matter():
    one = aggregate({"a-1": review(WRONG), "b-1": review(ZERO)}, CHANGE)
    assert aggregate({"b-1": review(ZERO), "a-1": review(WRONG)}, CHANGE) == one


def test_quotations_are_checked():
    invented = {**WRONG, "evidence": "never there"}
    assert [i.finding.verified for i in aggregate({"a-1": review(WRONG)}, CHANGE)] == [True]
    assert [i.finding.verified for i in aggregate({"a-1": review(invented)}, CHANGE)] == [False]


def test_another_tools_reviewer_file_yields_its_findings():
    fields = "**Severity**: High\n**Location**: `app.py:2`\n**Issue**: never closed\n"
    text = f"# Review\n\n### Finding 1: It leaks\n\n{fields}"
    assert [(f.title, f.severity, f.reviewer) for f in findings_in(text, "a-1")] == [
        ("It leaks", "high", "a-1")
    ]


def test_items_survive_their_part():
    items = aggregate({"a-1": review(WRONG, ZERO), "b-1": review(WRONG)}, CHANGE)
    assert items_of(json.loads(json.dumps(aggregation_document(items)))) == items
    assert items_of({"findings": [1, {}, None]}) == ()


# -- what agents say ---------------------------------------------------------------------------


def test_responses_are_read_and_unknown_findings_refused():
    said = {"responses": [{"finding": "f1", "verb": "agree"}, {"finding": "F9", "verb": "CHALLENGE"}]}
    found, wrong = parse_responses(f"```json\n{json.dumps(said)}\n```", "a-1", ["F1"])
    assert [(r.finding, r.verb, r.reviewer) for r in found] == [("F1", Verb.AGREE, "a-1")]
    assert wrong is None
    only_bad = {"responses": [{"finding": "F9", "verb": "CHALLENGE"}]}
    assert "no finding 'F9'" in parse_responses(json.dumps(only_bad), "a-1", ["F1"])[1]
    assert "not one of AGREE" in parse_responses('{"responses": [{"verb": "LIKE"}]}', "a-1", ["F1"])[1]


def test_surfacing_needs_no_finding():
    found, wrong = parse_responses('{"responses": [{"verb": "SURFACE", "reason": "x"}]}', "a-1", ["F1"])
    assert (found[0].verb, found[0].finding, wrong) == (Verb.SURFACE, "", None)


def test_to_refute_without_a_quotation_is_refused():
    assert parse_refutation('{"verdict": "refuted", "reason": "no"}')[0] is None
    assert parse_refutation('{"verdict": "refuted", "evidence": "x = 1"}')[0].ruling is Ruling.REFUTED
    assert parse_refutation('{"verdict": "upheld"}')[0].ruling is Ruling.STANDS
    assert "one of refuted" in parse_refutation('{"verdict": "maybe so"}')[1]


def test_parts_are_read_back():
    responses = (Response("F1", Verb.AGREE, "r", "e", "f.py", "a-1"),)
    assert responses_of(responses_document(responses), "a-1", ["F1"]) == responses
    refutation = Refutation(Ruling.STANDS, "r", "e", "f.py", "the code", "why")
    assert refutation_of(refutation.document()) == refutation


@given(st.text(max_size=200))
def test_reading_what_agents_say_never_raises(text):
    for body in (text, f"```json\n{text}\n```", f'{{"responses": [{text}]}}'):
        parse_responses(body, "a-1", ["F1"])
        parse_refutation(body)
        parse_answers(body, "a-1", ["C1"])


# -- old findings ------------------------------------------------------------------------------


def old(category=Category.BLOCKER, **fields):
    return Carried("C1", item("C1", category=category, evidence="return a - b", **fields), "s", 1)


def settled(carried, *answers, same=None, known=None, **since):
    seen = Since(**{"known": True, "present": {"c1": True}, **since})
    return settle([carried], same or {}, answers, seen, known or Known())[0].answer


ANSWERS = st.lists(st.sampled_from(list(Answer)), max_size=4)


@given(ANSWERS)
def test_no_claim_of_an_agent_closes_a_blocker_whose_code_is_untouched(answers):
    claims = [CarriedAnswer("C1", a, evidence="made up", reviewer=f"r-{n}") for n, a in enumerate(answers)]
    assert settled(old(), *claims) is Answer.STILL_OPEN


def test_reported_again_it_is_open():
    fixed = CarriedAnswer("C1", Answer.FIXED)
    assert settled(old(), fixed, same={"C1": "F1"}, touched=frozenset({"app.py"})) is Answer.STILL_OPEN


def test_checks_that_no_longer_find_it_have_seen_it_fixed():
    known = Known(checkers=frozenset({"a-1"}))
    assert settled(old(), known=known, touched=frozenset({"app.py"})) is Answer.FIXED
    assert settled(old(), known=known) is Answer.STILL_OPEN


def test_a_finding_keeps_its_name_over_rounds():
    before = Carried("C1", item("C1"), "s", 1)
    other = Item("F1", Finding("No test covers it", Category.STYLE, Severity.LOW, file="b.py"), ("a-1",))
    assert link([before], [other]) == ((other,), {})
    now = Item(
        "F1", Finding("t", Category.BLOCKER, Severity.HIGH, fingerprint="new"), ("a-1",), aliases=("c1",)
    )
    renamed, same = link([before], [now])
    assert same == {"C1": "F1"}
    assert (renamed[0].fingerprint, renamed[0].aliases) == ("c1", ("new",))


def test_what_an_analyser_failed_on_is_no_approval():
    said = review(questions="- Could not be checked: ruff ended with status 1: ; not checked by it: `a.py`")
    by_checks = result_of([], [], {}, [], {"a-1": said}, {"a-1"})
    assert by_checks.verdict is Verdict.NEEDS_DISCUSSION
    assert by_checks.why == "No blocker, but analysers failed on changed files."
    assert result_of([], [], {}, [], {"a-1": said}).verdict is Verdict.APPROVE
