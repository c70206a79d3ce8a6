"""Nothing passes a review by accident."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.workflows.generate.responses import FORM, parse_verdict


def block(**fields):
    return "@@@REVIEW_META\n" + "".join(f"{k}: {v}\n" for k, v in fields.items()) + "@@@\n"


def test_the_document_s_form_is_read():
    passed = parse_verdict(f"# Review\n\n{block(verdict='PASS', issues_total=2, issues_critical=0)}")
    assert (passed.passed, passed.error) == (True, "")
    failed = parse_verdict(block(verdict="FAIL", issues_total=1, issues_critical=1, missing_inputs=0))
    assert (failed.passed, failed.error) == (False, "")
    assert dict(failed.counts)["issues_critical"] == 1
    assert parse_verdict(FORM).passed


@pytest.mark.parametrize(
    "text",
    [
        block(verdict="PASS").replace("\n", "\r\n"),
        f"```\n{block(verdict='PASS')}```\n",
        block(verdict="pass"),
        block(verdict="**PASS**"),
        block(Verdict="PASS"),
    ],
)
def test_small_differences_of_form_are_read(text):
    assert parse_verdict(text).passed


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PASS",
        "verdict: PASS",
        "@@@REVIEW_META\nverdict: PASS\n",
        "@@@REVIEW_META\nverdict PASS\n@@@",
        block(verdict="PASSED"),
        block(verdict="PASS or FAIL"),
        block(verdict=""),
        block(issues_total=0),
        block(verdict="PASS", issues_critical=1),
        block(verdict="PASS", missing_inputs=2),
        block(verdict="PASS", issues_total="none"),
        block(verdict="PASS") + block(verdict="FAIL"),
        block(verdict="PASS") + "@@@REVIEW_META\nverdict: PASS\n",
        "@@@REVIEW_META\nverdict: PASS\nverdict: FAIL\n@@@",
        "not @@@REVIEW_META\nverdict: PASS\n@@@",
    ],
)
def test_what_is_not_clearly_a_verdict_is_an_error(text):
    found = parse_verdict(text)
    assert found.error
    assert not found.passed


@given(st.text(alphabet="@REVIEW_META verdict:PASFIL\n", max_size=200))
def test_only_a_whole_block_with_the_word_passes(text):
    if parse_verdict(text).passed:
        assert "@@@REVIEW_META" in text
        assert "pass" in text.lower()


@pytest.mark.parametrize(
    "text",
    ["@@@REVIEW_META\n" * 100_000, f"@@@REVIEW_META\nverdict: a{' ' * 500_000}x\n@@@\n"],
    ids=["a block opened again and again", "blanks"],
)
@pytest.mark.timeout(20)
def test_a_degenerate_review_is_refused_at_once(text):
    assert parse_verdict(text).error
