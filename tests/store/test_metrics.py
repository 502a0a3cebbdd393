"""Metrics follow from the records of runs: what is counted once is counted the same again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from catchment.health.metrics import MetricsRecorder
from catchment.model import (
    Counts,
    Outcome,
    Source,
    VisitResult,
)
from catchment.store.cache import CacheCounts
from catchment.store.sources.metrics import Measure, MetricSpan
from catchment.store.sources.runs import note_results
from tests.store.desk import Desk

NINE = datetime(2026, 1, 1, 9, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def visited(
    desk: Desk,
    source: Source,
    at: datetime,
    outcome: Outcome = Outcome.SUCCEEDED,
    *,
    seconds: float = 2,
    job: str = "collect-due",
    **more: object,
) -> None:
    """The record of one visit, in a run of its own."""
    result = VisitResult(
        source.id, source.name, source.kind, outcome, requests=1, started_at=at,
        finished_at=at + timedelta(seconds=seconds),
    ).replace(**more)  # fmt: skip
    run_id = desk.store.runs.begin(job, "test", desk.presence.owner_id, at)
    desk.store.database.write(lambda tx: note_results(tx, [(run_id, result)]))


def measuring(desk: Desk) -> MetricsRecorder:
    return MetricsRecorder(desk.store.metrics, desk.store.cached_sources.counted, desk.store.tier_stats.counts)


def an_hour(desk: Desk) -> tuple[Source, Source]:
    """Between nine and ten: five visits to one source, two to another, each with another fate."""
    feed, board = desk.follow("one"), desk.follow("r/two", "reddit")
    visited(desk, feed, NINE, counts=Counts(new=3, updated=1, duplicate=5, invalid=1), requests=4, valid=2)
    visited(desk, feed, NINE + MINUTE, Outcome.UNCHANGED, seconds=1)
    visited(desk, feed, NINE + 2 * MINUTE, Outcome.FAILED, error_code="SLOW_DOWN", http_status=429, seconds=6)
    visited(desk, feed, NINE + 3 * MINUTE, Outcome.DEFERRED, error_code="SLOW_DOWN", seconds=60)
    visited(desk, feed, NINE + 4 * MINUTE, Outcome.SKIPPED, seconds=60)
    visited(desk, board, NINE + 59 * MINUTE, counts=Counts(duplicate=2))
    visited(desk, board, NINE + 30 * MINUTE, job="recheck", counts=Counts(updated=7))
    return feed, board


RSS = Measure(
    "rss", "feeds", source_count=1, succeeded=2, empty=1, failed=1, deferred=1, skipped=1, visit_seconds=9.0,
    new_count=3, valid_count=2, updated_count=1, duplicate_count=5, invalid_count=1, request_count=8,
)  # fmt: skip
REDDIT = Measure(
    "reddit", "reddit", source_count=1, succeeded=1, empty=1, visit_seconds=2.0, duplicate_count=2, request_count=1
)


def test_every_visit_of_an_hour_is_counted_once_by_its_fate_and_second_looks_are_no_visits(desk: Desk) -> None:
    an_hour(desk)
    assert desk.store.metrics.visits(NINE, NINE + HOUR) == [REDDIT, RSS]


def test_a_visit_belongs_to_the_hour_in_which_it_began_and_counts_once_it_is_over(desk: Desk) -> None:
    source = desk.follow("one")
    visited(desk, source, NINE + HOUR - MINUTE / 60, seconds=120)
    visited(desk, source, NINE + HOUR)
    assert [visit.succeeded for visit in desk.store.metrics.visits(NINE, NINE + HOUR)] == [1]
    claimed = desk.claim(source)
    desk.write(claimed, [], at=NINE + 2 * HOUR, is_last=False)
    assert desk.store.metrics.visits(NINE + 2 * HOUR, NINE + 3 * HOUR) == []


def test_measuring_twice_changes_nothing_and_later_endings_are_taken_in(desk: Desk) -> None:
    feed, _ = an_hour(desk)
    metrics = desk.store.metrics
    for _ in range(2):
        assert measuring(desk).measure(MetricSpan.HOUR, NINE + HOUR) == 1
        assert [metric for _, metric in metrics.kept(MetricSpan.HOUR, NINE, NINE + HOUR)] == [REDDIT, RSS]
    visited(desk, feed, NINE + 58 * MINUTE, seconds=180)
    visited(desk, feed, NINE + 70 * MINUTE)
    assert measuring(desk).measure(MetricSpan.HOUR, NINE + 2 * HOUR) == 2
    found = {(at, metric.kind): metric.succeeded for at, metric in metrics.kept(MetricSpan.HOUR, NINE, NINE + 9 * HOUR)}
    assert found == {(NINE, "reddit"): 1, (NINE, "rss"): 3, (NINE + HOUR, "rss"): 1}


def test_after_a_downtime_every_hour_is_made_up_for_and_the_one_under_way_is_not_closed(desk: Desk) -> None:
    source = desk.follow("one")
    hours = [0, 1, 2, 30, 300]
    for hour in hours:
        visited(desk, source, NINE + hour * HOUR + MINUTE)
    assert measuring(desk).measure(MetricSpan.HOUR, NINE + HOUR) == 1
    assert measuring(desk).measure(MetricSpan.HOUR, NINE + 300 * HOUR + 59 * MINUTE) == 4
    kept = desk.store.metrics.kept(MetricSpan.HOUR, NINE, NINE + 999 * HOUR)
    assert [(at - NINE) / HOUR for at, _ in kept] == hours[:-1]
    assert desk.store.metrics.last(MetricSpan.HOUR) == NINE + 30 * HOUR


def test_a_day_is_midnight_to_midnight_in_utc_and_counts_its_sources_once(desk: Desk) -> None:
    feed, _ = an_hour(desk)
    visited(desk, feed, NINE + 14 * HOUR)
    visited(desk, feed, NINE + 15 * HOUR)
    midnight = datetime(2026, 1, 2, tzinfo=UTC)
    assert measuring(desk).measure(MetricSpan.DAY, midnight - MINUTE) == 0
    assert measuring(desk).measure(MetricSpan.DAY, midnight) == 1
    ((starts_at, _), (_, rss)) = desk.store.metrics.kept(MetricSpan.DAY, NINE - 9 * HOUR, midnight)
    assert (starts_at, rss.source_count, rss.succeeded) == (NINE - 9 * HOUR, 1, 3)


def test_what_is_told_has_every_hour_those_not_kept_yet_and_the_one_under_way(desk: Desk) -> None:
    feed, _ = an_hour(desk)
    measuring(desk).measure(MetricSpan.HOUR, NINE + HOUR)
    for hour in (2, 3):
        visited(desk, feed, NINE + hour * HOUR)
    now = NINE + 3 * HOUR + MINUTE
    shown = measuring(desk).latest(MetricSpan.HOUR, 5, now)
    assert [f"{metric.starts_at:%H}" for metric in shown] == ["08", "09", "10", "11", "12"]
    assert [metric.succeeded for metric in shown] == [0, 3, 0, 1, 1]
    assert [metric.is_over for metric in shown] == [True] * 4 + [False]
    nine = shown[1]
    assert (nine.success_rate, nine.mean_seconds, nine.source_count) == (0.75, 2.75, 2)
    assert [(kind.kind, kind.success_rate) for kind in nine.kinds] == [("reddit", 1.0), ("rss", 0.6667)]
    assert (shown[0].success_rate, shown[0].mean_seconds, shown[0].kinds) == (None, None, ())


def test_the_answer_is_the_same_whether_hours_were_kept_or_not(desk: Desk) -> None:
    an_hour(desk)
    now = NINE + 2 * HOUR
    before = measuring(desk).latest(MetricSpan.HOUR, 3, now, "rss")
    measuring(desk).measure(MetricSpan.HOUR, now)
    assert measuring(desk).latest(MetricSpan.HOUR, 3, now, "rss") == before


def test_each_hour_tells_the_valid_posts_of_the_24_hours_that_end_with_it(desk: Desk) -> None:
    source = desk.follow("one")
    for hour in (0, 1, 23, 24):
        visited(desk, source, NINE + hour * HOUR, counts=Counts(new=10), valid=10**hour if hour < 2 else hour)
    now = NINE + 25 * HOUR
    before = measuring(desk).latest(MetricSpan.HOUR, 4, now)
    measuring(desk).measure(MetricSpan.HOUR, now)
    after = measuring(desk).latest(MetricSpan.HOUR, 4, now)
    assert [metric.valid_24h for metric in before] == [metric.valid_24h for metric in after] == [11, 34, 57, 47]


# ── how things stood ──────────────────────────────────────────────────────────────────────────────────────────────


def stood(desk: Desk, now: datetime, count: int = 3) -> list[tuple[float | None, dict[str, int] | None]]:
    return [(metric.hit_rate, metric.tiers) for metric in measuring(desk).latest(MetricSpan.HOUR, count, now)]


def in_tier(desk: Desk, source: Source, tier: str | None) -> None:
    """That a visit has put it there."""
    claimed = desk.claim(source)
    desk.give_back(claimed, recent_valid=(9,), tier=tier)


def test_hits_and_tiers_are_noted_when_the_hour_is_over_and_stay_when_they_are_known_no_more(desk: Desk) -> None:
    source, home = desk.follow("r/one", "reddit"), desk.store.cached_sources
    in_tier(desk, source, "tier1")
    home.count(NINE + MINUTE, CacheCounts(hits=3, misses=1))
    now = NINE + HOUR
    measuring(desk).measure(MetricSpan.HOUR, now)
    in_tier(desk, source, "tier3")
    home.clear_counts(now)
    for _ in range(2):
        measuring(desk).measure(MetricSpan.HOUR, now + HOUR)
        assert stood(desk, now + HOUR) == [(0.75, {"tier1": 1}), (None, {"tier3": 1}), (None, {"tier3": 1})]


def test_reads_that_are_told_late_or_while_nothing_was_measured_are_made_up_for(desk: Desk) -> None:
    home = desk.store.cached_sources
    measuring(desk).measure(MetricSpan.HOUR, NINE + HOUR)
    for hour in (0, 1, 2):
        home.count(NINE + hour * HOUR, CacheCounts(hits=hour, misses=1))
    assert stood(desk, NINE + 3 * HOUR + MINUTE) == [(0.5, None), (0.6667, None), (None, {})], "counted here and now"
    measuring(desk).measure(MetricSpan.HOUR, NINE + 3 * HOUR)
    assert stood(desk, NINE + 3 * HOUR, 4) == [(0.0, {}), (0.5, None), (0.6667, {}), (None, {})]


def test_what_belongs_to_no_kind_is_not_told_of_one(desk: Desk) -> None:
    desk.store.cached_sources.count(NINE, CacheCounts(hits=1))
    (shown,) = measuring(desk).latest(MetricSpan.HOUR, 1, NINE + MINUTE, "reddit")
    assert (shown.hit_rate, shown.tiers) == (None, None)
