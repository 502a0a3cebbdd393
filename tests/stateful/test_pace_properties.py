"""When a source is due, whatever is set, asked for or wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from catchment.model import (
    Kind,
    Listing,
    Order,
    Progress,
    Source,
    SourceState,
)
from catchment.policy.schedule import (
    DEFAULT_INTERVALS,
    LONGEST,
    UNKNOWN_KIND_MINUTES,
    expected_by,
    interval,
    kind_intervals,
    next_due,
    next_due_after_failure,
    next_due_when_told_to_wait,
)
from catchment.sources.describe import interval_of, next_fetch_at
from tests.stateful.effort import effort

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("rss", "reddit", "a kind of a package", "a kind of nobody")
minutes = st.integers(1, 20_000)
by_kind = st.dictionaries(st.sampled_from(NAMES), minutes)
often = effort(usual=100)


def source(kind: str = "rss", own: int | None = None, state: SourceState = SourceState.ACTIVE) -> Source:
    return Source(1, "k", "feeds", kind, "x", "x", NOW, interval_minutes=own, state=state)


def kind(name: str, interval: int) -> Kind:
    return Kind(name, "some", interval, "x", (Listing("new", Order.NEWEST_FIRST),))


@often
@given(
    st.sampled_from(NAMES),
    st.sampled_from(SourceState),
    st.none() | minutes,
    st.none() | minutes,
    by_kind,
    by_kind,
    by_kind,
)
def test_the_first_that_says_something_decides(
    name: str,
    state: SourceState,
    own: int | None,
    tier: int | None,
    stored: dict[str, int],
    given: dict[str, int],
    declared: dict[str, int],
) -> None:
    """Pause · own interval · tier · database · environment · what the platform declares · the default."""
    intervals = kind_intervals([kind(*item) for item in declared.items()], stored, given)
    levels = [own, tier, stored.get(name), given.get(name), declared.get(name), DEFAULT_INTERVALS.get(name)]
    wanted = next((level for level in levels if level is not None), UNKNOWN_KIND_MINUTES)
    followed = source(name, own, state)
    progress = Progress(last_polled_at=NOW, tier_minutes=tier, tier_reason=tier and f"tier1: every {tier} min")
    assert interval_of(followed, progress, intervals) == wanted
    due = next_fetch_at(followed, progress, wanted)
    assert due == (NOW + timedelta(minutes=wanted) if state == SourceState.ACTIVE else None)


@often
@given(st.none() | minutes, minutes, st.integers(1, 20))
def test_probation_grows_with_every_failure_up_to_a_day(own: int | None, usual: int, limit: int) -> None:
    holds = interval(source(own=own), Progress(), usual)
    dues = [next_due_after_failure(holds, count, limit, NOW) for count in range(limit + 40)]
    waits = [holds.span if due.at is None else due.at - NOW for due in dues]
    assert waits[:limit] == [holds.span] * limit
    assert all(earlier <= later for earlier, later in pairwise(waits))
    assert waits[-1] == max(holds.span, LONGEST)
    assert [due.reason == "probation" for due in dues] == [count >= limit for count in range(limit + 40)]


@often
@given(st.none() | minutes, minutes, st.integers(0, 10), st.integers(-10_000, 10_000))
def test_what_a_server_asks_for_only_delays(own: int | None, usual: int, failures: int, asked: int) -> None:
    holds, told = interval(source(own=own), Progress(), usual), timedelta(minutes=asked)
    usually = NOW + holds.span
    hinted = next_due(holds, int(told.total_seconds()), NOW)
    assert (hinted.at or usually) >= usually
    plain = next_due_after_failure(holds, failures, 3, NOW)
    troubled = next_due_after_failure(holds, failures, 3, NOW, NOW + told)
    assert (troubled.at or usually) == max(plain.at or usually, NOW + min(told, LONGEST))
    throttled = next_due_when_told_to_wait(holds, NOW + told, NOW)
    assert throttled.at == NOW + min(max(told, timedelta(seconds=1)), LONGEST)


times = st.lists(st.integers(0, 10**6), max_size=80).map(
    lambda seconds: sorted((NOW - timedelta(seconds=age) for age in seconds), reverse=True)
)


@often
@given(times, minutes)
def test_silence_is_measured_by_the_sources_own_rhythm(newest_first: list[datetime], every: int) -> None:
    due = expected_by(newest_first, every)
    if len(newest_first) < 10:
        assert due is None
        return
    assert due is not None
    patience = due - newest_first[0]
    assert patience >= 2 * timedelta(minutes=every)
    # Nine of ten pauses of the last fifty posts fit into it five times over.
    pauses = [later - earlier for later, earlier in pairwise(newest_first[:50])]
    assert sum(1 for pause in pauses if 5 * pause <= patience) >= 0.9 * len(pauses)
    assert patience <= max(2 * timedelta(minutes=every), 5 * max(pauses))


@often
@given(times, minutes, st.integers(1, 10**6))
def test_a_longer_interval_and_a_later_post_never_bring_the_alarm_forward(
    newest_first: list[datetime], every: int, more: int
) -> None:
    due = expected_by(newest_first, every)
    if due is not None:
        longer = expected_by(newest_first, every + more)
        shifted = expected_by([moment + timedelta(seconds=more) for moment in newest_first], every)
        assert longer is not None
        assert longer >= due
        assert shifted == due + timedelta(seconds=more)
