"""A plan is checked before a task runs; what code takes from an agent's Markdown."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.workflows.cycle.layout import archived, bump
from rondel.workflows.cycle.plans import check, parse
from rondel.workflows.cycle.questions import split_options
from rondel.workflows.cycle.results import first_paragraph, items_under, number_requirements
from rondel.workflows.cycle.routing import addressed

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=80)


def task(name: str, *needs: str, **fields: object) -> dict[str, object]:
    return {"id": name, "description": "do it", "depends_on": list(needs), **fields}


def test_a_plan_is_the_fenced_json_of_the_reply():
    plan = parse(f"Words.\n\n```json\n{json.dumps({'tasks': [task('A', effort='Large')]})}\n```\n")
    assert (plan.error, plan.tasks[0].id, plan.tasks[0].effort.value) == ("", "A", "large")
    assert (plan.effort, plan.critical_path) == ("1 large", ("A",))


def test_the_status_is_never_the_agents_to_claim():
    plan = check([task("A", status="completed", assigned_to="me")])
    assert plan.tasks[0].status == "pending"
    assert plan.tasks[0].assigned_to is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "at least one task"),
        ({"tasks": []}, "at least one task"),
        ("text", "at least one task"),
        ([7], "tasks[0] is not an object"),
        ([{"id": "A"}], "description"),
        ([task("A", description=" ")], "no description"),
        ([task("A", effort="huge")], "effort"),
        ([task("../x")], "is not usable"),
        ([task("a b")], "is not usable"),
        ([task("")], "is not usable"),
        ([task("A"), task("a")], "comes twice"),
        ([task("T-1"), task("T_1")], "T_1 comes twice, as T-1"),
        ([task("A", "B")], "depends on 'B', which is not in the plan"),
        ([task("A", "B"), task("B", "C"), task("C", "A")], "wait for each other"),
        ([task("A", "A")], "wait for each other"),
        ([task("A", files=["/etc/passwd"])], "does not stay in its folder"),
        ([task("A", files=["../x"])], "does not stay in its folder"),
        ([task(f"T{i}") for i in range(501)], "at most 500"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_sent_back_with_the_reason(value, words):
    assert words in check(value).error


def test_the_critical_path_is_the_chain_with_the_most_effort():
    plan = check([task("A"), task("B", "A"), task("C", effort="large"), task("D", "C", "B")])
    assert plan.critical_path == ("C", "D")
    assert check({"tasks": [task("A"), task("B", "A")], "critical_path": ["A", "nobody"]}).critical_path == (
        "A",
        "B",
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["tasks", "id", "description", "effort", "depends_on", "files"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=15,
)


@CALM
@given(VALUES)
def test_no_json_makes_the_check_raise(value):
    found = check(value)
    assert bool(found.error) != bool(found.tasks)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "1.0.0"),
        ("1.0.0", "1.1.0"),
        ("1.9.0", "1.10.0"),
        ("v2.3", "2.4.0"),
        ("2.3.7", "2.4.0"),
        ("x", "1.0.0"),
    ],
)
def test_a_version_goes_up_by_one_minor_step(before, after):
    assert bump(before) == after


@CALM
@given(st.text(max_size=60))
def test_an_archived_file_stays_in_its_history(version):
    assert archived("ra/requirements.md", version).startswith("ra/history/requirements-v")
    assert archived("ra/requirements.md", version).count("/") == 2


def test_items_and_paragraphs_are_taken_from_their_sections():
    text = (
        "# T\n\nIntro.\n\n## Edge cases\n\n- **one**\n* two\n1. three\n```\n- code\n```\n## Other\n\n- four\n"
    )
    assert items_under(text, "edge case") == ["one", "two", "three"]
    assert first_paragraph(text, "architecture") == "Intro."


def test_requirements_without_an_id_get_the_next_free_one():
    head = "# Requirements\n\n- REQ-002: there\n- FR-9 too\n"
    text = head + "- new\n  - detail\n- **R3** old\n\n## Edge cases\n\n- none\n"
    assert number_requirements(text) == text.replace("- new", "- REQ-003: new")


@pytest.mark.timeout(20)
def test_a_heading_of_blanks_takes_time_in_proportion_to_its_length():
    text = f"# Edge{' ' * 300_000}cases ##\n- one\n# Edge cases ##\n- two\n"
    assert items_under(text, "edge cases") == ["two"]
    assert number_requirements(text) == text


def test_a_name_with_a_number_is_not_an_id():
    head = "# Requirements\n\n- **AC-1** is one\n- [US-3] too\n- F2: and this\n"
    text = head + "- UTF-8 names are kept\n- HTTP2 works\n"
    assert number_requirements(text) == head + "- REQ-001: UTF-8 names are kept\n- REQ-002: HTTP2 works\n"


@CALM
@given(st.text(max_size=300))
def test_numbering_requirements_twice_changes_nothing_more(text):
    once = number_requirements("# Requirements\n" + text)
    assert number_requirements(once) == once


@pytest.mark.parametrize(
    ("words", "question", "options"),
    [
        ("Which first? (google | github)", "Which first?", ("google", "github")),
        ("Keep it? (yes/no)", "Keep it?", ("yes", "no")),
        ("Keep it?", "Keep it?", ("yes", "no")),
        ("Use (a) or b?", "Use (a) or b?", ("yes", "no")),
    ],
)
def test_a_question_brings_its_options(words, question, options):
    assert split_options(words) == (question, options)


@CALM
@given(st.text(max_size=3000))
def test_every_issue_finds_an_addressee(text):
    assert addressed(text, "vas").target in ("ra", "ep", "cd", "vas")
