from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rondel.model.times import has_offset, offset, parse_time, stamp

ZONES = st.integers(-12, 14).map(offset)
TIMES = st.datetimes(min_value=datetime(1971, 1, 1), timezones=ZONES)  # noqa: DTZ001 - the zone comes with it


@given(TIMES)
def test_a_stamp_is_read_back_to_the_second_and_keeps_its_offset(at: datetime):
    text = stamp(at)
    back = parse_time(text)
    assert back == at.replace(microsecond=0)
    assert back.utcoffset() == at.utcoffset()
    assert has_offset(text)


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-15T10:00:00Z",
        "2026-11-15T10:00:00+00:00",
        "2026-11-15T18:00:00+08:00",
        "2026-11-15T10:00:00.000000Z",
        "2026-11-15T10:00:00.000Z",
        "2026-11-15T10:00:00",
        "2026-11-15 10:00:00",
        "2026-11-15T10:00",
        " 2026-11-15T10:00:00Z\n",
    ],
)
def test_every_format_from_the_wild_is_read(text: str):
    assert parse_time(text) == datetime(2026, 11, 15, 10, tzinfo=UTC)


def test_a_date_alone_is_its_midnight():
    assert parse_time("2026-11-15") == datetime(2026, 11, 15, tzinfo=UTC)


@given(
    st.text()
    | st.none()
    | st.integers()
    | st.floats()
    | st.lists(st.text())
    | st.dictionaries(st.text(), st.text())
)
def test_anything_else_is_no_time_and_no_error(value: object):
    found = parse_time(value)
    assert found is None or found.tzinfo is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-11-15T10:00:00Z", True),
        ("2026-11-15T10:00:00+08:00", True),
        ("2026-11-15T10:00:00", False),
        ("2026-11-15", False),
        ("x", False),
    ],
)
def test_a_time_that_does_not_say_its_offset_is_known_as_such(text: str, *, said: bool):
    assert has_offset(text) is said


def test_an_offset_is_in_hours_ahead_of_utc():
    assert datetime(2026, 1, 1, tzinfo=offset(5.5)).utcoffset() == timedelta(hours=5, minutes=30)
