"""When a source is due next, and how much is asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.model import (
    Counts,
    Field,
    Forum,
    Kind,
    Listing,
    Order,
    PlanPart,
    Progress,
    Source,
    WalkPlan,
)
from catchment.policy import schedule
from catchment.policy.schedule import (
    Interval,
    NextDue,
    Wish,
    after_success,
    expected_by,
    interval,
    kind_intervals,
    next_due,
    next_due_after_failure,
    next_due_when_told_to_wait,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FIELDS = (
    Field("sort", "which", decides=PlanPart.LISTING),
    Field("time_filter", "how far back", decides=PlanPart.TIME_FILTER),
    Field("limit", "how much", decides=PlanPart.LIMIT),
    Field("listing", "means nothing here"),
)
KIND = Kind(
    "reddit", "a community", 60, "r/webdev", (Listing("new", Order.NEWEST_FIRST),), fields=FIELDS, base_limit=80
)


def source(interval_minutes: int | None = None, **settings: object) -> Source:
    return Source(1, "k", "reddit", "reddit", "r/x", "x", NOW, interval_minutes=interval_minutes, settings=settings)


def holding(own: int | None) -> Interval:
    return interval(source(own), Progress(), 60)


def minutes(number: float) -> datetime:
    return NOW + timedelta(minutes=number)


def test_the_database_goes_before_the_environment_and_that_before_the_default() -> None:
    kinds = [KIND.replace(interval_minutes=61)]
    assert kind_intervals(kinds)["reddit"] == 61
    assert kind_intervals(kinds, configured={"reddit": 7})["reddit"] == 7
    assert kind_intervals(kinds, stored={"reddit": 8}, configured={"reddit": 7})["reddit"] == 8
    # Kinds of the specifications have their interval even where no platform is installed for them.
    assert kind_intervals([])["nga_forum"] == 720


@pytest.mark.parametrize(
    ("own", "hint", "due"),
    [
        (None, None, NextDue()),
        (None, 60 * 60, NextDue()),
        (15, None, NextDue(minutes(15), "own interval")),
        (15, 60, NextDue(minutes(15), "own interval")),
        (15, 20 * 60, NextDue(minutes(20), "the source asks to be collected less often")),
        (None, 61 * 60, NextDue(minutes(61), "the source asks to be collected less often")),
        (None, 10**9, NextDue(NOW + timedelta(days=1), "the source asks to be collected less often")),
        (2880, 10**9, NextDue(NOW + timedelta(days=2), "the source asks to be collected less often")),
    ],
)
def test_after_a_success_the_interval_counts_and_the_source_may_only_ask_for_more(
    own: int | None, hint: int | None, due: NextDue
) -> None:
    assert next_due(holding(own), hint, NOW) == due


@pytest.mark.parametrize(
    ("own", "failures", "due"),
    [
        (None, 1, NextDue()),
        (15, 4, NextDue(minutes(15), "own interval")),
        (None, 5, NextDue(minutes(120), "probation")),
        (None, 6, NextDue(minutes(240), "probation")),
        (15, 5, NextDue(minutes(30), "probation")),
        (None, 9, NextDue(NOW + timedelta(days=1), "probation")),
        (None, 10**6, NextDue(NOW + timedelta(days=1), "probation")),
        (2880, 50, NextDue(minutes(2880), "probation")),
    ],
)
def test_after_many_failures_a_source_waits_longer_and_longer_but_never_for_ever(
    own: int | None, failures: int, due: NextDue
) -> None:
    assert next_due_after_failure(holding(own), failures, 5, NOW) == due


@pytest.mark.parametrize(
    ("own", "retry_at", "at"),
    [
        (None, None, minutes(15)),
        (5, None, minutes(5)),
        (None, minutes(3), minutes(3)),
        (None, minutes(-3), NOW + timedelta(seconds=1)),
        (None, minutes(10_000), NOW + timedelta(days=1)),
    ],
)
def test_who_is_told_to_wait_waits_as_told_within_reason(
    own: int | None, retry_at: datetime | None, at: datetime
) -> None:
    assert next_due_when_told_to_wait(holding(own), retry_at, NOW) == NextDue(at, "asked to wait")


@given(
    st.none() | st.integers(1, 10_000),
    st.none() | st.integers(0, 10**8),
    st.integers(0, 100),
    st.none() | st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1)).map(lambda at: at.replace(tzinfo=UTC)),
)
def test_whatever_happens_the_next_visit_lies_ahead_and_not_beyond_reach(
    own: int | None, hint: int | None, failures: int, retry_at: datetime | None
) -> None:
    furthest = NOW + max(timedelta(days=1), timedelta(minutes=own or 0))
    dues = (
        next_due(holding(own), hint, NOW),
        next_due_after_failure(holding(own), failures, 5, NOW),
        next_due_when_told_to_wait(holding(own), retry_at, NOW),
    )
    assert all(due.at is None or NOW < due.at <= furthest for due in dues)
    assert all((due.at is None) == (due.reason is None) for due in dues)


def test_how_much_is_asked_for_comes_from_the_source_by_the_settings_that_decide_it() -> None:
    read = Progress(last_success_at=NOW)
    assert schedule.walk_plans(KIND, source(), Progress()) == (WalkPlan("new", 80, is_first=True),)
    assert schedule.walk_plans(KIND, source(limit=5, sort="top"), read) == (WalkPlan("top", 5),)
    assert schedule.walk_plans(KIND, source(listing="hot"), read) == (WalkPlan("new", 80),)
    board = KIND.replace(fields=(Field("order", "which", decides=PlanPart.LISTING),))
    assert schedule.walk_plans(board, source(order="hot", sort="top", limit=5), read) == (WalkPlan("hot", 80),)


PAGED = KIND.replace(
    listings=(Listing("new", Order.NEWEST_FIRST, page_size=50), Listing("top", Order.RANKED, page_size=50))
)
SEEN = Progress(success_count=4, new_share=0.5, last_success_at=NOW)


@pytest.mark.parametrize(
    ("progress", "counts", "limit"),
    [
        # A first fetch is all new, and says nothing yet.
        (Progress(), Counts(new=100), 120),
        (SEEN, Counts(new=100), 200),
        (SEEN, Counts(new=200), 300),
        # (0.5 + 0.3 × (0.2 − 0.5)) × 100 × 1.2
        (SEEN, Counts(new=20, duplicate=80), 50),
        (SEEN, Counts(new=1, updated=2, duplicate=3, invalid=4), 10),
        (SEEN, Counts(duplicate=100), 42),
        (SEEN, Counts(), 10),
        (SEEN.replace(empty_in_a_row=1), Counts(duplicate=100), 42),
        (SEEN.replace(empty_in_a_row=2), Counts(duplicate=100), 10),
        (SEEN.replace(new_share=1.0), Counts(new=299, duplicate=1), 300),
    ],
)
def test_how_much_is_asked_for_next_follows_from_how_much_was_new(
    progress: Progress, counts: Counts, limit: int
) -> None:
    assert after_success(progress, counts).next_limit == limit


@given(st.lists(st.builds(Counts, *[st.integers(0, 500)] * 4), min_size=1))
def test_what_is_asked_for_next_is_never_too_little_nor_too_much(visits: list[Counts]) -> None:
    progress = Progress()
    for counts in visits:
        progress = after_success(progress, counts)
        assert 10 <= (progress.next_limit or 0) <= 300
        assert 0 <= (progress.new_share or 0) <= 1


@pytest.mark.parametrize(
    ("kind", "settings", "limit"),
    [(PAGED, {}, 33), (PAGED, {"limit": 5}, 5), (PAGED, {"sort": "top"}, 80), (KIND, {}, 80)],
)
def test_what_was_learnt_counts_for_pages_of_the_newest_where_the_source_says_nothing(
    kind: Kind, settings: dict[str, object], limit: int
) -> None:
    (ask,) = schedule.walk_plans(kind, source(**settings), SEEN.replace(next_limit=33))
    assert ask.limit == limit


PAID = PAGED.replace(fields=(Field("first", "how much at first", decides=PlanPart.FIRST_LIMIT),))
STACKED = PAID.replace(listings=(Listing("saved", Order.RANKED, page_size=100, is_stacked=True),))


@pytest.mark.parametrize("kind", [PAID, STACKED])
def test_a_limit_for_the_first_visit_does_not_outlive_it(kind: Kind) -> None:
    def asked(progress: Progress) -> int:
        (ask,) = schedule.walk_plans(kind, source(first=500), progress)
        return ask.limit

    assert asked(Progress()) == 500
    assert asked(Progress(last_success_at=NOW, next_limit=33)) == 33
    # It was read before limits were learnt.
    assert asked(Progress(last_success_at=NOW)) == 80


COMMUNITY = KIND.replace(
    newest="new", listings=(*KIND.listings, Listing("top", Order.RANKED), Listing("hot", Order.RANKED))
)


@pytest.mark.parametrize(
    ("settings", "given", "asks"),
    [
        ({}, Wish(), [WalkPlan("new", 80)]),
        ({"sort": "top"}, Wish(), [WalkPlan("new", 80), WalkPlan("top", 80)]),
        ({"sort": "new"}, Wish("top", "week", 50), [WalkPlan("new", 50)]),
        ({}, Wish("top", "week", 50), [WalkPlan("new", 50), WalkPlan("top", 50, time_filter="week")]),
        (
            {"sort": "hot", "limit": 7},
            Wish("top", "week", 50),
            [WalkPlan("new", 7), WalkPlan("hot", 7, time_filter="week")],
        ),
        ({"time_filter": "all"}, Wish("top", "week"), [WalkPlan("new", 80), WalkPlan("top", 80, time_filter="all")]),
        ({}, Wish("rising"), [WalkPlan("new", 80)]),
        ({"listing": "hot"}, Wish(), [WalkPlan("new", 80)]),
    ],
)
def test_the_newest_comes_first_and_beside_it_what_the_source_or_else_the_operator_wishes_for(
    settings: dict[str, object], given: Wish, asks: list[WalkPlan]
) -> None:
    read = Progress(last_success_at=NOW)
    assert schedule.walk_plans(COMMUNITY, source(**settings), read, given) == tuple(asks)


def test_an_operators_wish_is_for_kinds_that_have_a_newest_listing() -> None:
    read = Progress(last_success_at=NOW)
    assert schedule.walk_plans(KIND, source(), read, Wish("top", "week", 50), has_key=True) == (
        WalkPlan("new", 80, has_key=True),
    )


def test_a_forums_stream_of_all_posts_comes_before_its_list_of_threads() -> None:
    listings = (Listing("threads", Order.NEWEST_FIRST), Listing("posts", Order.NEWEST_FIRST))
    forum = KIND.replace(listings=listings, forum=Forum(stream="posts"))
    read = Progress(last_success_at=NOW)
    assert [plan.listing for plan in schedule.walk_plans(forum, source(), read)] == ["posts", "threads"]
    assert [plan.listing for plan in schedule.walk_plans(forum.replace(forum=Forum()), source(), read)] == ["threads"]


def test_silence_is_told_from_the_rhythm_of_a_source_not_from_the_clock() -> None:
    daily = [NOW - timedelta(days=day) for day in range(20)]
    assert expected_by(daily, 60) == NOW + timedelta(days=5)
    busy = [NOW - timedelta(seconds=second) for second in range(60)]
    assert expected_by(busy, 60) == NOW + timedelta(minutes=120)
    # One long pause among many short ones is a holiday, not the rhythm.
    holiday = [NOW - timedelta(days=day + 100 * (day > 15)) for day in range(50)]
    assert expected_by(holiday, 60) == NOW + timedelta(days=5)
    assert expected_by(daily[:9], 60) is None


def test_a_backlog_that_was_late_at_the_first_visit_is_no_rhythm() -> None:
    daily = [NOW - timedelta(days=day) for day in range(20)]
    days = timedelta(days=1)
    # In rhythm when we came: the silence counts from then on.
    assert expected_by(daily, 60, NOW + 4 * days) == NOW + 9 * days
    assert expected_by(daily, 60, NOW + 6 * days) is None
    woken = [NOW + (30 + 2 * number) * days for number in range(10)][::-1]
    assert expected_by([*woken[1:], *daily], 60, NOW + 6 * days) is None
    assert expected_by([*woken, *daily], 60, NOW + 6 * days) == woken[0] + 10 * days


def test_ten_posts_that_were_observed_take_the_place_of_the_backlog() -> None:
    backlog = [NOW - timedelta(days=day) for day in range(20)]
    since = [NOW + timedelta(hours=hour) for hour in range(1, 11)][::-1]
    assert expected_by([*since, *backlog], 60, NOW) == since[0] + timedelta(hours=5)
    assert expected_by([*since[1:], *backlog], 60, NOW) == since[1] + timedelta(days=5)
