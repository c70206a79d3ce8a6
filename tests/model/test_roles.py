"""Who does what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.model.roles import agent_for

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
    assert agent_for(role, TABLE) == agent


def test_without_a_default_nobody_is_named():
    assert agent_for("cycle.ra", {"review": "r"}) is None
    assert agent_for("cycle.ra", {}) is None


def test_a_number_fits_only_behind_the_last_word():
    assert agent_for("generate.api-2.planning", {"generate.api": "a"}) is None


words = st.lists(st.sampled_from(["a", "b", "a-1", "c"]), min_size=1, max_size=4).map(".".join)


@given(words, st.dictionaries(words, st.text(min_size=1, max_size=3)), st.text(min_size=1, max_size=3))
def test_a_key_that_is_the_role_itself_always_wins(role, table, name):
    assert agent_for(role, table | {role: name}) == name


@given(words, st.dictionaries(words, st.text(min_size=1, max_size=3)))
def test_the_order_of_the_table_never_matters(role, table):
    assert agent_for(role, table) == agent_for(role, dict(reversed(table.items())))


@given(words, words, st.dictionaries(words, st.text(min_size=1, max_size=3)))
def test_adding_a_key_that_does_not_fit_never_changes_the_choice(role, other, table):
    if not f"{role}.".startswith(f"{other}.") and other not in table:
        before = agent_for(role, table)
        assert agent_for(role, table | {f"zzz.{other}": "x"}) == before
