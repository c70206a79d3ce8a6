"""The same finding of several reviewers is one finding; different ones stay apart."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rondel.workflows.review import merge_findings
from rondel.workflows.review.merge import grams, material, stem, words

TIMEOUT = (
    "`fetch_page` opens a socket without a timeout, so a silent server blocks the worker for ever.",
    "No timeout is set on the socket in fetch_page(); an unresponsive server will hang the worker.",
    "fetch_page never sets a socket timeout, causing workers to hang when the server does not answer.",
)
INDEX = (
    "The loop in paginate() runs to `total + 1`, which reads one row past the end of the last page.",
    "Off by one in paginate: range(total + 1) goes past the last row.",
)
TASTE = "Consider renaming `tmp` to something clearer."


def said(*pairs: tuple[str, str], **place: object) -> list[dict[str, object]]:
    return [{"reviewer": who, "text": text, "file": None, "line": None, **place} for who, text in pairs]


def groups(findings: list[dict[str, object]]) -> set[frozenset[int]]:
    return {frozenset(group["members"]) for group in merge_findings(findings)}


FIVE = said(
    ("a", TIMEOUT[0]), ("b", INDEX[0]), ("b", TIMEOUT[1]), ("c", INDEX[1]), ("c", TIMEOUT[2]), ("a", TASTE)
)


def test_the_same_defect_in_other_words_is_one_group():
    assert groups(FIVE) == {frozenset({0, 2, 4}), frozenset({1, 3}), frozenset({5})}


def test_the_best_supported_comes_first_and_taste_of_one_is_not_kept():
    merged = merge_findings(FIVE)
    assert [group["members"] for group in merged] == [[0, 2, 4], [1, 3], [5]]
    assert [group["kept"] for group in merged] == [True, True, False]
    scores = [group["score"] for group in merged]
    assert scores == sorted(scores, reverse=True)


def test_one_reviewer_is_enough_when_it_says_concretely_what_goes_wrong():
    concrete = (
        "`save_order` writes the row before the payment is confirmed, and never removes it when it is "
        "refused, causing orders that nobody paid to be shipped from the warehouse the next morning."
    )
    vague = "It might be good to look at error handling."
    findings = said(("a", concrete), ("b", vague), ("c", TASTE), ("d", INDEX[0]))
    kept = {group["members"][0] for group in merge_findings(findings) if group["kept"]}
    assert 0 in kept
    assert not {1, 2} & kept


def test_a_review_by_one_alone_is_not_empty():
    (group,) = merge_findings(said(("a", TIMEOUT[0])))
    assert group["kept"]


def test_nothing_gives_no_groups():
    assert merge_findings([]) == []


def test_words_said_twice_to_the_letter_are_shared_out_among_the_defects_they_fit():
    both = "fetch_page has no socket timeout and paginate() reads a row past the end."
    findings = said(
        ("a", TIMEOUT[0]),
        ("b", TIMEOUT[1]),
        ("a", INDEX[0]),
        ("b", INDEX[1]),
        ("c", both),
        ("c", both),
        ("d", TASTE),
    )
    assert groups(findings) == {frozenset({0, 1, 4}), frozenset({2, 3, 5}), frozenset({6})}


def test_words_said_twice_that_fit_nothing_else_are_one_finding():
    assert groups(said(("a", TASTE), ("a", TASTE), ("b", TIMEOUT[0]))) == {frozenset({0, 1}), frozenset({2})}


def test_one_reviewers_same_words_at_two_places_are_two_findings():
    findings = [
        {"reviewer": "checks-1", "text": "S602: shell=True", "file": "a.py", "line": 3},
        {"reviewer": "checks-1", "text": "S602: shell=True", "file": "a.py", "line": 30},
        {"reviewer": "checks-1", "text": "S602: shell=True", "file": "b.py", "line": 3},
    ]
    assert groups(findings) == {frozenset({0}), frozenset({1}), frozenset({2})}


def test_two_rules_are_two_findings_even_on_one_line():
    here = {"file": "a.py", "line": 3}
    findings = [
        {"reviewer": "quality-1", "text": "subprocess.run without check", "rule": "PLW1510", **here},
        {"reviewer": "security-1", "text": "subprocess.run with shell=True", "rule": "S602", **here},
        {"reviewer": "principal-1", "text": "subprocess.run with shell=True runs a shell", **here},
    ]
    assert groups(findings) == {frozenset({0}), frozenset({1, 2})}


def test_two_reviewers_at_one_place_are_merged_more_easily_than_in_two_files():
    here = [
        {"reviewer": "a", "text": "The handle leaks", "file": "a.py", "line": 10},
        {"reviewer": "b", "text": "Handle is not closed on error", "file": "a.py", "line": 12},
        {"reviewer": "c", "text": "Totals are wrong in March", "file": "a.py", "line": 80},
        {"reviewer": "c", "text": "A spinner is shown for ever", "file": "z.py", "line": 1},
    ]
    assert frozenset({0, 1}) in groups(here)
    elsewhere = [here[0], {**here[1], "file": "other.py"}, *here[2:]]
    assert frozenset({0, 1}) not in groups(elsewhere)


TEXTS = [*TIMEOUT, *INDEX, TASTE, "", "不正な値", "Typo: recieve should be receive", "x" * 5_000]
finding = st.fixed_dictionaries(
    {
        "reviewer": st.sampled_from("abcd"),
        "text": st.sampled_from(TEXTS) | st.text(max_size=40),
        "file": st.none() | st.sampled_from(["a.py", "b.py"]),
        "line": st.none() | st.integers(0, 50),
    }
)


@given(st.lists(finding, max_size=25))
@settings(deadline=None, max_examples=50)
def test_every_finding_is_in_exactly_one_group(findings: list[dict[str, object]]):
    merged = merge_findings(findings)
    members = sorted(index for group in merged for index in group["members"])
    assert members == list(range(len(findings)))
    assert merge_findings(findings) == merged


@given(
    st.lists(finding, max_size=15, unique_by=lambda f: (f["reviewer"], f["text"], f["file"], f["line"])),
    st.randoms(),
)
@settings(deadline=None, max_examples=50)
def test_the_order_of_the_findings_does_not_matter(findings: list[dict[str, object]], chance: random.Random):
    order = list(range(len(findings)))
    chance.shuffle(order)
    shuffled = {
        frozenset(order[index] for index in group["members"]): (group["score"], group["kept"])
        for group in merge_findings([findings[index] for index in order])
    }
    plain = {frozenset(g["members"]): (g["score"], g["kept"]) for g in merge_findings(findings)}
    assert shuffled == plain


@given(st.lists(finding, max_size=15))
@settings(deadline=None, max_examples=50)
def test_two_places_of_one_reviewer_are_never_one_group(findings: list[dict[str, object]]):
    for group in merge_findings(findings):
        places: dict[object, set[object]] = {}
        for index in group["members"]:
            item = findings[index]
            if item["file"] is not None and item["line"] is not None:
                places.setdefault(item["reviewer"], set()).add((item["file"], item["line"]))
        assert all(len(seen) == 1 for seen in places.values())


@given(
    st.dictionaries(
        st.sampled_from(["reviewer", "text", "file", "line", "x"]), st.none() | st.text() | st.floats()
    )
)
def test_a_finding_of_any_shape_is_taken(odd: dict[str, object]):
    assert merge_findings([odd])[0]["members"] == [0]


def test_words_see_through_case_names_and_endings():
    assert words("validateUserInput") == words("validated user_inputs")
    assert words("the and of it") == {}
    assert stem("processes") == stem("processing")


def test_grams_see_through_misspelling():
    right, wrong = grams("notifications"), grams("notificiations")
    assert sum((right & wrong).values()) > sum(right.values()) / 2


def test_concrete_texts_weigh_more_than_hedged_ones():
    assert material(TIMEOUT[2]) > material("This could perhaps be cleaner and more consistent.")


@pytest.mark.skipif("RONDEL_PANEL" not in os.environ, reason="RONDEL_PANEL names no panel data")
def test_real_panels_are_merged_as_well_as_the_documentation_says():
    same = same_linked = other = other_linked = 0
    for change in json.loads(Path(os.environ["RONDEL_PANEL"]).read_text()):
        found = change["findings"]
        group = {i: n for n, g in enumerate(merge_findings(found)) for i in g["members"]}
        for i, a in enumerate(found):
            for j, b in enumerate(found[:i]):
                if a["reviewer"] == b["reviewer"] or not a["matches"] or not b["matches"]:
                    continue
                if a["matches"] == b["matches"]:
                    same, same_linked = same + 1, same_linked + (group[i] == group[j])
                else:
                    other, other_linked = other + 1, other_linked + (group[i] == group[j])
    assert same_linked / same >= 0.9
    assert other_linked / other <= 0.05
