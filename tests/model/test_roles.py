"""Who does what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.model.actions import match_role

TABLE = {
    "default": "d",
    "review": "r",
    "review.reviewer": "rr",
    "review.reviewer.security": "checks",
    "review.reviewer.security-2": "second",
    "review.reviewer.security-lead": "lead",
}


@pytest.mark.parametrize(
    ("role", "agent"),
    [
        ("review.reviewer.security-1", "checks"),
        ("review.reviewer.security", "checks"),
        ("review.reviewer.security-2", "second"),
        ("review.reviewer.security-20", "checks"),
        ("review.reviewer.security-lead-1", "lead"),
        ("review.reviewer.security-other-1", "rr"),
        ("review.reviewer.principal-1", "rr"),
        ("review.lead", "r"),
        ("reviewer.x", "d"),
        ("cycle.ra", "d"),
        ("default", "d"),
        ("", "d"),
    ],
)
def test_the_longest_dotted_match_wins(role, agent):
    assert match_role(TABLE, role) == agent


def test_without_a_default_nobody_is_named():
    assert match_role({"review": "r"}, "cycle.ra") is None
    assert match_role({}, "cycle.ra") is None


def test_a_number_fits_only_behind_the_last_word():
    assert match_role({"generate.api": "a"}, "generate.api-2.planning") is None


words = st.lists(st.sampled_from(["a", "b", "a-1", "c"]), min_size=1, max_size=4).map(".".join)


@given(words, st.dictionaries(words, st.text(min_size=1, max_size=3)), st.text(min_size=1, max_size=3))
def test_a_key_that_is_the_role_itself_always_wins(role, table, name):
    assert match_role(table | {role: name}, role) == name


@given(words, st.dictionaries(words, st.text(min_size=1, max_size=3)))
def test_the_order_of_the_table_never_matters(role, table):
    assert match_role(table, role) == match_role(dict(reversed(table.items())), role)


@given(words, words, st.dictionaries(words, st.text(min_size=1, max_size=3)))
def test_adding_a_key_that_does_not_fit_never_changes_the_choice(role, other, table):
    if not f"{role}.".startswith(f"{other}.") and other not in table:
        before = match_role(table, role)
        assert match_role(table | {f"zzz.{other}": "x"}, role) == before
