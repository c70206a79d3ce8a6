"""What an agent writes as code or as a path stays as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.model.markdown import item, without_code_marks, without_emphasis
from rondel.workflows.cycle.results import items_under
from rondel.workflows.generate.responses import extract
from rondel.workflows.review.dialects import parse_review

NAMES = st.from_regex(r"_{0,2}[a-z][a-z0-9]{0,6}(_[a-z0-9]{1,4}){0,2}_{0,2}", fullmatch=True)
PATHS = st.builds("/".join, st.lists(st.one_of(NAMES, st.just("**"), st.just("*")), min_size=1, max_size=4))
FILES = st.builds("{}.{}".format, PATHS, st.sampled_from(["py", "ts", "md", "*"]))
CALLS = st.builds("{}(*{}, **{})".format, NAMES, NAMES, NAMES)
CODE = st.one_of(
    NAMES,
    FILES,
    CALLS,
    NAMES.map("**{}".format),
    NAMES.map("*{}".format),
    st.builds("{} ** {}".format, NAMES, NAMES),
    st.builds("{}**{}**{}".format, NAMES, NAMES, NAMES),
    st.sampled_from(
        ["src/**/*.py", "__init__.py", "**/tests/**", "/** doc **/", "{**a, **b}", "char *a, *b;"]
    ),
)
PROSE = st.sampled_from(["", "**Note**: ", "see ", "*by the way* ", "__two words__ ", "without "])


@given(PROSE, CODE, st.sampled_from(["", " is missing", ", **really**", " (*as a rule*)"]))
def test_code_and_paths_stay_as_they_are(before, code, after):
    assert code in without_emphasis(f"{before}{code}{after}")
    assert items_under(f"## Edge cases\n\n- {before}{code}{after}\n", "edge case")[0].count(code)


@given(PROSE, CODE, st.sampled_from(["", " is missing"]))
def test_code_between_backticks_stays_to_the_letter(before, code, after):
    assert f"`{code}`" in without_emphasis(f"{before}`{code}`{after}", words=True)
    assert code in without_code_marks(without_emphasis(f"{before}`{code}`{after}", words=True))
    assert items_under(f"## Risks\n\n- `{code}`\n", "risk") == [code.strip()]


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("**one**", "one"),
        ("**Zero**: no input", "Zero: no input"),
        ("a **very long** day", "a very long day"),
        ("**the `**kwargs` of it**", "the `**kwargs` of it"),
        ("(**see below**)", "(see below)"),
        ("*two words* here", "two words here"),
        ("__init__.py", "__init__.py"),
        ("**kwargs and **options", "**kwargs and **options"),
    ],
)
def test_emphasis_goes_where_it_is_emphasis(text, bare):
    assert item(text) == bare


@given(st.text(alphabet="*_` ab/.\n", max_size=40))
def test_nothing_but_marks_is_ever_taken_away(text):
    kept = without_emphasis(text, words=True)
    assert [c for c in kept if c not in "*_"] == [c for c in text if c not in "*_"]


@pytest.mark.timeout(20)
def test_a_long_line_takes_time_in_proportion_to_its_length():
    for text in (
        "*a " * 100_000,
        "**a " * 100_000,
        "_a " * 100_000,
        "*a" + " b" * 150_000,
        "**a** " * 50_000,
        "`a``b" * 50_000,
    ):
        without_emphasis(text, words=True)


def test_a_finding_keeps_the_names_in_its_title():
    text = "## Blockers\n\n### 1. `__init__.py` swallows **kwargs of _load\n\n**Severity**: high\n\nBad.\n"
    assert parse_review(text).findings[0].title == "__init__.py swallows **kwargs of _load"


@pytest.mark.parametrize(
    "head", ["__init__.py", "**__init__.py**", "`__init__.py`", "### pkg/__init__.py:", "__main__.py:"]
)
def test_generated_code_keeps_the_name_of_its_file(head):
    name = head.strip("#*`: ")
    assert [f.path for f in extract(f"{head}\n```python\nx = 1\n```\n").files] == [name]
