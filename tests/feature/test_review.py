"""The verdict of a reviewer: fail-closed, repaired once, never approved by accident."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from turning import APPROVED, BLOCKED, verdict

from rondel.workflows.feature import EXPECTATIONS, Issue, Review, review_artifact
from rondel.workflows.feature.review import parse_review

NEEDS = EXPECTATIONS["design"]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
issues = st.lists(
    st.fixed_dictionaries(
        {
            "severity": st.sampled_from(["blocker", "warning", "note"]),
            "description": st.text(min_size=1, max_size=30).filter(str.strip),
            "location": st.none() | st.text(max_size=10),
        }
    ),
    max_size=5,
)


def never(_prompt: str) -> str:
    raise AssertionError("nobody should be asked")


def test_a_content_reviewer_approves():
    review = review_artifact("# Spec", "# Design", NEEDS, reply=APPROVED)
    assert review == Review(approved=True, summary="Read it.")


def test_the_result_has_the_documents_shape():
    review = review_artifact(None, "# Design", NEEDS, reply=BLOCKED)
    assert dict(review) == {"approved": False, "issues": review.issues, "summary": "Read it."}
    assert dict(review["issues"][0]) == {
        "severity": "blocker",
        "description": "the error case is missing",
        "location": None,
    }
    assert review.get("approved") is False
    assert "summary" in review
    assert "verdict" not in review
    json.dumps(review.to_json())


@pytest.mark.parametrize("empty", ["", " \n\t"])
def test_an_empty_artifact_is_not_approved_and_nobody_is_asked(empty):
    review = review_artifact("# Spec", empty, NEEDS, ask=never)
    assert not review.approved
    assert [i.severity for i in review.issues] == ["blocker"]


@pytest.mark.parametrize("missing", [None, "", "  "])
def test_a_missing_predecessor_is_not_approved_where_it_is_required(missing):
    review = review_artifact(missing, "# Design", NEEDS, previous_required=True, ask=never)
    assert not review.approved
    assert [i.severity for i in review.issues] == ["blocker"]
    assert review_artifact(missing, "# Design", NEEDS, reply=APPROVED).approved


def test_without_a_reviewer_nothing_is_approved():
    assert not review_artifact("# Spec", "# Design", NEEDS).approved


def test_the_reviewer_gets_the_documents_the_expectations_and_its_limits():
    seen = []
    review_artifact("PREVIOUS", "CURRENT", "EXPECTED", ask=lambda p: seen.append(p) or APPROVED)
    for words in ("PREVIOUS", "CURRENT", "EXPECTED", "never widen the scope", "never change a file"):
        assert words in seen[0]


def test_an_approval_with_a_blocker_in_it_is_not_one():
    assert not review_artifact("p", "c", NEEDS, reply=verdict(("blocker", "no"), approved=True)).approved


def test_an_objection_without_a_blocker_does_not_hold_it_back():
    review = review_artifact("p", "c", NEEDS, reply=verdict(("warning", "hm"), approved=False))
    assert review.approved
    assert review.issues == (Issue("warning", "hm"),)


def test_an_objection_without_any_issue_is_no_verdict():
    assert not review_artifact("p", "c", NEEDS, reply=verdict(approved=False)).approved


def test_nonsense_is_repaired_once_with_the_exact_error():
    prompts = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return APPROVED if len(prompts) == 2 else "```json\n{oops\n```"

    assert review_artifact("p", "c", NEEDS, ask=ask).approved
    assert len(prompts) == 2
    assert "does not parse" in prompts[1]


def test_nonsense_twice_is_no_approval():
    asked = []
    review = review_artifact("p", "c", NEEDS, ask=lambda p: asked.append(p) or "Looks good to me!")
    assert len(asked) == 2
    assert not review.approved
    assert "could not be read" in review.issues[0].description


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"approved": "true"}, "approved"),
        ({"approved": 1}, "approved"),
        ({"approved": None}, "approved"),
        ({"issues": None}, "issues"),
        ({"issues": {}}, "issues"),
        ({"issues": ["bad"]}, "issue 1"),
        ({"issues": [{"severity": "critical", "description": "x"}]}, "severity"),
        ({"issues": [{"severity": "blocker"}]}, "description"),
        ({"issues": [{"severity": "blocker", "description": "  "}]}, "description"),
        ({"issues": [{"severity": "note", "description": "x", "location": []}]}, "location"),
        ({"issues": [{"severity": "note", "description": "x"}] * 201}, "201"),
        ({"summary": 3}, "summary"),
    ],
)
def test_a_malformed_verdict_is_refused_in_words_its_author_can_act_on(change, words):
    body = {"approved": True, "issues": [], "summary": "ok", **change}
    parsed = parse_review(json.dumps(body))
    assert parsed.review is None
    assert words in parsed.error


@given(text=st.text(max_size=200) | json_values.map(json.dumps))
def test_only_a_whole_verdict_without_a_blocker_approves(text):
    parsed = parse_review(text)
    assert bool(parsed.error) == (parsed.review is None)
    if parsed.review is not None and parsed.review.approved:
        body = json.loads(text)
        assert isinstance(body["approved"], bool)
        assert not any(i["severity"] == "blocker" for i in body["issues"])


@given(claimed=st.booleans(), found=issues)
def test_approved_means_no_blocker_whatever_the_reviewer_claims(claimed, found):
    review = review_artifact("p", "c", NEEDS, reply=json.dumps({"approved": claimed, "issues": found}))
    blocked = any(i["severity"] == "blocker" for i in found)
    assert review.approved == (not blocked and (claimed or bool(found)))


def test_the_last_block_of_an_answer_counts():
    assert not parse_review(f"First I thought:\n{APPROVED}\nbut then:\n{BLOCKED}").review.approved
