"""Usage limits are read from what vendors say; nothing else is taken for one."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.agents.vendors.stream import DEFAULT, from_epoch, parked_until

NOW = datetime(2026, 11, 15, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("error", "after"),
    [
        ("Claude AI usage limit reached|1794744000", timedelta(hours=2)),
        ("You've hit your session limit · resets 3pm (UTC)", timedelta(hours=5)),
        ("You've hit your session limit · resets 3:30pm (Europe/Berlin)", timedelta(hours=4, minutes=30)),
        ("You've hit your weekly limit · resets Nov 20, 9am (UTC)", timedelta(days=4, hours=23)),
        ("You\u2019ve hit your usage limit. Visit the settings or try again in 3 days 4 hours 5 minutes.",
         timedelta(days=3, hours=4, minutes=5)),
        ("You've hit your usage limit. Try again in 1 hour and 10 seconds.", timedelta(hours=1, seconds=10)),
        ("Rate limit reached, please retry after 90 seconds", timedelta(seconds=90)),
        ("429 Too Many Requests; retry-after: 3600", timedelta(hours=1)),
        ("Quota exceeded for this model. Please retry in 34.5s.", timedelta(seconds=34.5)),
        ("Your quota will reset after 4h3m2s.", timedelta(hours=4, minutes=3, seconds=2)),
        ("usage limit reached, resets at 2026-11-15T12:30:00Z", timedelta(hours=2, minutes=30)),
        ("weekly limit reached, resets Jan 2, 8am (UTC)", timedelta(days=47, hours=22)),
    ],
)  # fmt: skip
def test_the_time_a_limit_names_is_when_to_try_again(error, after):
    assert parked_until(error, None, NOW) == NOW + min(after, timedelta(days=31))


def test_an_hour_without_a_zone_is_our_own(monkeypatch):
    ours = NOW.astimezone()
    hour = (ours + timedelta(hours=2)).strftime("%-I:%M %p")
    assert parked_until(
        f"You\u2019ve hit your usage limit or try again at {hour}.", None, NOW
    ) == NOW + timedelta(hours=2)


def test_an_hour_that_has_passed_is_tomorrow_s():
    assert parked_until("session limit, resets 9am (UTC)", None, NOW) == NOW + timedelta(hours=23)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("API Error: Request rejected (429) · scripted", 429),
        ("exceeded retry limit, last status: 429 Too Many Requests", None),
        ("You've hit your limit", None),
        ("RESOURCE_EXHAUSTED", None),
    ],
)
def test_a_limit_that_names_no_time_is_tried_again_after_a_quarter_of_an_hour(error, status):
    assert parked_until(error, status, NOW) == NOW + DEFAULT


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ("API Error: 500 scripted. Try again in a moment.", 500),
        ("We\u2019re currently experiencing high demand, which may cause temporary errors.", None),
        ("Overloaded", 529),
        ("error_max_turns", None),
        ("prompt is too long: the context limit is 200000 tokens", 400),
        ("Quota exceeded. Check your plan and billing details.", None),
        ("Invalid API key", 401),
        ("", None),
    ],
)
def test_another_error_is_no_limit(error, status):
    assert parked_until(error, status, NOW) is None


@given(
    st.text(max_size=200),
    st.sampled_from([None, 200, 429, 500]),
    st.sampled_from(["", "usage limit, resets at "]),
)
def test_no_text_breaks_it_and_no_wait_is_endless(text, status, before):
    until = parked_until(before + text, status, NOW)
    assert until is None or NOW < until <= NOW + timedelta(days=31)


@given(st.floats(allow_nan=False))
def test_no_number_breaks_it(value):
    at = from_epoch(value)
    assert at is None or at.tzinfo is UTC
