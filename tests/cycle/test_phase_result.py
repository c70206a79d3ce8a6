from __future__ import annotations

import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rondel.workflows.cycle.results import parse_phase_result, without_phase_result

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=150)
HEAD = "PHASE_RESULT:\n- phase: cd\n- status: success\n"


def field(line: str) -> object:
    found = parse_phase_result(f"Some prose.\n\n{HEAD}{line}\n")
    assert found is not None
    return found[line.removeprefix("- ").partition(":")[0]]


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("- summary: one line", "one line"),
        ("- summary: a: b, c", "a: b, c"),
        ("- coverage: 85%", 85),
        ("- coverage: 85.5%", 85.5),
        ("- coverage: 0%", 0),
        ("- coverage: 100 %", 100),
        ("- coverage: 150%", "150%"),
        ("- coverage: -5%", "-5%"),
        ("- coverage: 85", "85"),
        ("- tests_passing: 17/20", (17, 20)),
        ("- tests_passing: 0 / 0", (0, 0)),
        ("- module: src/a.py", "src/a.py"),
        ("- issues: []", []),
        ("- issues: none", []),
        ("- issues: N/A", []),
        ("- issues:", []),
        ("- issues: [a, b]", ["a", "b"]),
        ('- issues: ["a, b", "c"]', ["a, b", "c"]),
        ("- issues: Login fails, then crashes", ["Login fails, then crashes"]),
        (
            "- issues: [Login fails (twice, at night), it's slow]",
            ["Login fails (twice, at night)", "it's slow"],
        ),
        ("- issues: [none]", []),
        ("- files_written: [a.py, b.py]", ["a.py", "b.py"]),
        ("- files_written: a.py, b.py", ["a.py", "b.py"]),
        ("- files_written: a.py", ["a.py"]),
        ("- files_written: [`a.py`, 'b.py']", ["a.py", "b.py"]),
        ("- failed_tests: [t.py::test[1,2], t.py::test_b]", ["t.py::test[1,2]", "t.py::test_b"]),
        ("- blockers: []", []),
        ("- blockers: no access to staging", ["no access to staging"]),
        ("- critical_issues: [x]", ["x"]),
        ("- critical_issues:\n  - x: y\n  - z", ["x: y", "z"]),
        ("- issues:\n  - one\n    and more\n  - two", ["one and more", "two"]),
        ("- summary: wrapped\n  to the next line", "wrapped to the next line"),
        ("- anything: [a, b]", ["a", "b"]),
        ("- status: `partial`", "partial"),
    ],
)
def test_a_value_is_read_by_its_type(line, value):
    found = field(line)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no block here",
        "PHASE_RESULT:",
        "PHASE_RESULT:\n- phase: cd\n",
        "PHASE_RESULT:\n- status: success\n",
        "PHASE_RESULT:\n- phase:\n- status: success\n",
        "- phase: cd\n- status: success\n",
        "the PHASE_RESULT: is below\n- phase: cd\n- status: success\n",
        "PHASE_RESULT: later\n\nprose\n- phase: cd\n- status: success\n",
    ],
)
def test_without_a_phase_and_a_status_there_is_no_result(text):
    assert parse_phase_result(text) is None


def test_the_last_of_two_blocks_counts():
    found = parse_phase_result("PHASE_RESULT:\n- phase: ra\n- status: failed\n\nAgain:\n\n" + HEAD)
    assert found == {"phase": "cd", "status": "success"}


def test_a_last_block_that_is_not_one_leaves_the_one_before():
    assert parse_phase_result(HEAD + "\nPHASE_RESULT:\n- phase: vas\n") == {
        "phase": "cd",
        "status": "success",
    }


@pytest.mark.parametrize(
    "text",
    [
        HEAD.replace("\n", "\r\n"),
        HEAD.replace("\n", "\r"),
        f"```\n{HEAD}```\n",
        f"## {HEAD}",
        HEAD.replace("PHASE_RESULT:", "**PHASE_RESULT:**"),
        HEAD.replace("- ", "* "),
        HEAD.replace("- phase:", "- **phase:**"),
        HEAD.replace("- ", "  - "),
        HEAD.replace("PHASE_RESULT:\n", "PHASE_RESULT:\n\n"),
        HEAD.replace(": ", ":"),
    ],
)
def test_the_forms_models_write_are_read(text):
    assert parse_phase_result(text) == {"phase": "cd", "status": "success"}


@CALM
@given(
    st.text()
    | st.lists(
        st.sampled_from(["PHASE_RESULT:", "- ", "a:", "[", "]", "'", '"', ",", "\n", "  ", "5%", "1/2", "`"])
    ).map("".join)
)
def test_no_text_makes_it_raise(text):
    for given_text in (text, HEAD + text, f"{HEAD}- issues: {text}"):
        found = parse_phase_result(given_text)
        assert found is None or (found["phase"] and found["status"])
        assert found is None or isinstance(found.get("issues", []), list)
        without_phase_result(given_text)


@CALM
@given(st.lists(st.text(st.characters(categories=["L", "N"]), min_size=3, max_size=12), max_size=6))
def test_a_list_of_plain_words_comes_back(words):
    from_block = parse_phase_result(f"{HEAD}- files_written: [{', '.join(words)}]\n")
    assert from_block is not None
    assert from_block["files_written"] == [
        w for w in words if w.casefold() not in {"none", "nil", "null", "nothing"}
    ]


@CALM
@given(st.integers(-50, 500))
def test_a_percentage_is_a_number_from_0_to_100_or_none(number):
    found = field(f"- coverage: {number}%")
    assert found == number if 0 <= number <= 100 else isinstance(found, str)


@pytest.mark.parametrize(
    "text",
    [
        "PHASE_RESULT:\n" * 100_000,
        HEAD + "- issues: [" + "'" * 500_000,
        HEAD + "- issues: " + "[" * 500_000,
        "- a: b\n" * 200_000,
    ],
)
def test_a_hostile_text_takes_no_longer_than_a_long_one(text):
    begin = time.process_time()
    parse_phase_result(text)
    assert time.process_time() - begin < 10


def test_what_becomes_a_file_is_the_reply_without_its_block():
    assert without_phase_result(f"# Title\n\nText.\n\n{HEAD}") == "# Title\n\nText.\n"
    assert without_phase_result(f"# Title\n\n```\n{HEAD}```\n") == "# Title\n"
    assert without_phase_result("# Title\n") == "# Title\n"
