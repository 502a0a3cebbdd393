"""Dates of the field, to UTC; what names no moment is None."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.text.dates import (
    Dated,
    asked_moment,
    asked_time,
    from_epoch,
    read_date,
)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("Thu, 01 Jan 2026 10:00:00 +0000", "2026-01-01T10:00:00"),
        ("Thu, 01 Jan 2026 10:00:00 GMT", "2026-01-01T10:00:00"),
        ("  Thu, 1 Jan 2026 10:00:00 +0800\n", "2026-01-01T02:00:00"),
        ("Tue, 27 Dec 2005 13:08:54+0900", "2005-12-27T04:08:54"),
        ("01 Jan 26 10:00 EST", "2026-01-01T15:00:00"),
        ("Thu, 01 Jan 98 10:00:00 PDT", "1998-01-01T17:00:00"),
        ("Thu, 01 Jan 126 10:00:00 UT", "2026-01-01T10:00:00"),
        ("Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37"),
        ("Thu,01 Jan 2026 00:00:00 -0700 (PDT)", "2026-01-01T07:00:00"),
        ("Fri, 2 Feb 2024 10:00:00 GMT+0800", "2024-02-02T02:00:00"),
        ("Wed, 19 jan 2026 00:00:00 GMT", "2026-01-19T00:00:00"),
        ("Τρι, 29 Ιούν 2004 12:53:00 GMT", "2004-06-29T12:53:00"),
        ("Di, 29 Mär 2022 10:00:00 +0100", "2022-03-29T09:00:00"),
        ("Tue, 3 févr. 2015 10:00:00 +0100", "2015-02-03T09:00:00"),
        ("Ср, 29 июня 2022 10:00:00 +0300", "2022-06-29T07:00:00"),
        ("Sat, 31 Dec 2016 23:59:60 GMT", "2017-01-01T00:00:00"),
        ("2026-02-17T17:36:36-0500", "2026-02-17T22:36:36"),
        ("2026-02-17T17:36:36Z", "2026-02-17T17:36:36"),
        ("2026-02-17t17:36:36z", "2026-02-17T17:36:36"),
        ("2003-12-13T18:30:02.25+01:00", "2003-12-13T17:30:02.250000"),
        ("2026-01-01T24:00:00Z", "2026-01-02T00:00:00"),
        ("2026-01-01 10:00:00 UTC", "2026-01-01T10:00:00"),
        ("2026-01-01 10:00:00 +0800", "2026-01-01T02:00:00"),
        ("Mon Jan 02 15:04:05 MST 2006", "2006-01-02T22:04:05"),
        ("Tue Mar 03 10:00:00 +0000 2026", "2026-03-03T10:00:00"),
        ("Sat Dec 31 23:30:00 -0130 2016", "2017-01-01T01:00:00"),
        ("Sat Dec  3 23:30:00 -0130 2016", "2016-12-04T01:00:00"),
        ("1136073600", "2006-01-01T00:00:00"),
        ("1136073600000", "2006-01-01T00:00:00"),
    ],
)
def test_a_date_with_a_zone_is_turned_to_utc(text, moment):
    assert read_date(text) == Dated(datetime.fromisoformat(moment).replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2022-09-10", "2022-09-10T00:00:00"),
        ("2022-09", "2022-09-01T00:00:00"),
        ("2018-01-06T08:00", "2018-01-06T08:00:00"),
        ("Thu, 01 Jan 2026 10:00:00", "2026-01-01T10:00:00"),
        ("Thu, 01 Jan 2026 10:00:00 XYZT", "2026-01-01T10:00:00"),
        ("5 January 2024", "2024-01-05T00:00:00"),
        ("Jan 5, 2024 3:04 PM", "2024-01-05T15:04:00"),
        ("2020/1/10 14:33:00", "2020-01-10T14:33:00"),
        ("2005年11月9日 12:30", "2005-11-09T12:30:00"),
        ("2005年11月9日 下午 3:05", "2005-11-09T15:05:00"),
        ("2004-05-25 오후 11:23:17", "2004-05-25T23:23:17"),
        ("2004-05-25 오전 12:10:00", "2004-05-25T00:10:00"),
        ("2026-01-01 10:00:00 PM", "2026-01-01T22:00:00"),
    ],
)
def test_a_date_without_a_zone_is_taken_for_utc_and_marked(text, moment):
    assert read_date(text) == Dated(datetime.fromisoformat(moment).replace(tzinfo=UTC), is_zone_guessed=True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "12:30",  # of which day?
        "Monday",
        "04/05/2024",  # April or May?
        "31 Feb 2020 00:00:00 GMT",
        "Thu, 01 Foo 2026 00:00:00 GMT",
        "2026-13-01",
        "0001-01-01T00:00:00Z",  # a program's zero
        "99999-01-01",
        "0000-00-00 00:00:00",
        "1 Jan 2026 99:00 GMT",
        "2026" * 100,
        "9" * 400,
    ],
)
def test_what_names_no_moment_is_none(text):
    assert read_date(text) is None


ZONES = st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(min_value=datetime(1971, 1, 1), max_value=datetime(2100, 1, 1), timezones=ZONES)


@given(MOMENTS)
def test_every_moment_survives_both_standards(moment):
    assert read_date(moment.isoformat()) == Dated(moment.astimezone(UTC))
    assert read_date(format_datetime(moment)) == Dated(moment.astimezone(UTC).replace(microsecond=0))


@given(st.text(max_size=60))
def test_no_text_breaks_the_reader(text):
    found = read_date(text)
    assert found is None or found.at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("number", [float("inf"), float("nan"), 1e300, -1e300])
def test_a_number_that_is_no_time_is_none(number):
    assert from_epoch(number) is None


@pytest.mark.parametrize("text", ["Mon, 1", "Thu, ,", "Thu, 01 Jan", "Thu, 01 Jan 2026 10:0"])
def test_a_date_that_breaks_off_is_no_accident(text):
    read_date(text)


def test_zones_that_nobody_knows_leave_no_trace(recwarn):
    assert [read_date(f"3:00 QQ{letter} on 5 March of 2021") for letter in "ABC"]
    assert not recwarn.list


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-03-01T10:00:00Z", "2026-03-01T10:00:00"),
        ("2026-03-01T10:00:00.5+08:00", "2026-03-01T02:00:00.500000"),
        # As an unescaped plus sign arrives from an address.
        ("2026-03-01T10:00:00 08:00", "2026-03-01T02:00:00"),
        ("2026-03-01 10:00", "2026-03-01T10:00:00"),
        ("2026-03-01", "2026-03-01T00:00:00"),
    ],
)
def test_a_moment_that_is_asked_for_is_taken_as_utc_unless_it_says_otherwise(text: str, moment: str) -> None:
    assert asked_moment(text) == datetime.fromisoformat(moment).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["", "0", "now", "1e9", "Thu, 01 Jan 2026", "2026-02-30", "0001-01-01T00:00+14:00", "\0"]
)
def test_who_asks_for_no_moment_is_told_how_one_looks(text: str) -> None:
    with pytest.raises(ValueError, match="2026-03-01T00:00:00Z"):
        asked_moment(text)


NOON = datetime(2026, 3, 5, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("today", "2026-03-05T00:00:00"),
        ("yesterday", "2026-03-04T00:00:00"),
        ("Yesterday ", "2026-03-04T00:00:00"),
        ("昨天", "2026-03-04T00:00:00"),
        ("2d", "2026-03-03T12:00:00"),
        ("2 days ago", "2026-03-03T12:00:00"),
        ("3天前", "2026-03-02T12:00:00"),
        ("12h", "2026-03-05T00:00:00"),
        ("30min", "2026-03-05T11:30:00"),
        ("1w", "2026-02-26T12:00:00"),
        ("2026-03-01", "2026-03-01T00:00:00"),
        ("2026-03-01T08:00+08:00", "2026-03-01T00:00:00"),
    ],
)
def test_a_time_that_is_asked_for_may_be_counted_back_from_now(text: str, moment: str) -> None:
    assert asked_time(text).at(NOON) == datetime.fromisoformat(moment).replace(tzinfo=UTC)


def test_a_day_that_is_asked_for_begins_and_ends_in_the_zone_of_who_asks() -> None:
    shanghai = timezone(timedelta(hours=8))
    evening = datetime(2026, 3, 5, 20, tzinfo=UTC)
    assert asked_time("today").at(evening, shanghai) == datetime(2026, 3, 6, tzinfo=shanghai)
    assert asked_time("2026-03-06").at(evening, shanghai, is_end=True) == datetime(2026, 3, 7, tzinfo=shanghai)
    assert asked_time("2026-03-06T01:00").at(evening, shanghai) == datetime(2026, 3, 6, 1, tzinfo=shanghai)


@pytest.mark.parametrize(
    "text", ["", "now", "0d", "2", "2y", "-2d", "2d2h", "99999999d", "2026-02-30", "0001-01-01T00:00+14:00", "\0", "²d"]
)
def test_who_asks_for_no_time_is_told_which_ones_there_are(text: str) -> None:
    with pytest.raises(ValueError, match="yesterday or 2d"):
        asked_time(text).at(NOON)
