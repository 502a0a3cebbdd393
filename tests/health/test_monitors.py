"""What the monitors find alarming, and what not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from catchment.health import monitors
from catchment.model import Budget
from catchment.store.sources.stats import DueSources, WarmUp

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
REDDIT = Budget("reddit", limit=60, window_seconds=60)
AN_HOUR = Budget("hackernews", limit=10_000, window_seconds=3600)


def minutes(*counts: int) -> dict[datetime, int]:
    """So many calls in each of the minutes before noon."""
    return {NOON - number * MINUTE: count for number, count in enumerate(reversed(counts), 1)}


# ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("calls", "budget", "is_alarming"),
    [
        (minutes(55, 20, 55), REDDIT, False),
        (minutes(3, 56, 3), REDDIT, True),
        (minutes(), REDDIT, False),
        (minutes(100, 109), REDDIT.replace(limit=120), False),
        (minutes(111), REDDIT.replace(limit=120), True),
        (minutes(30), REDDIT.replace(limit=30), False),
        (minutes(900, 900), AN_HOUR, False),
        (minutes(*[153] * 60), AN_HOUR, True),
        (minutes(*[152] * 60), AN_HOUR, False),
        (minutes(14, 14, 14), REDDIT.replace(window_seconds=10, limit=10), False),
        (minutes(56, 0, 0, 0, 0), REDDIT, False),
    ],
)
def test_more_calls_than_the_threshold_in_any_minute_are_alarming_and_the_threshold_grows_with_the_budget(
    calls: dict[datetime, int], budget: Budget, is_alarming: bool
) -> None:
    alarms = monitors.too_many_calls({"it": calls}, {"it": budget}, 55, NOON)
    assert [alert.subject for alert in alarms] == ["platform it calls"] * is_alarming


def test_platforms_without_a_budget_are_asked_as_often_as_they_like() -> None:
    assert monitors.too_many_calls({"feeds": minutes(5000)}, {"reddit": REDDIT}, 55, NOON) == []


def test_the_words_say_how_many_calls_of_how_many() -> None:
    (alarm,) = monitors.too_many_calls({"reddit": minutes(57)}, {"reddit": REDDIT}, 55, NOON)
    assert alarm.message.startswith("reddit: 57 requests in 1 min, of 60 allowed")


def test_calls_are_looked_at_as_far_back_as_the_longest_budget_counts() -> None:
    assert monitors.calls_looked_at([REDDIT, AN_HOUR]) == HOUR + 5 * MINUTE
    assert monitors.calls_looked_at([]) == 5 * MINUTE


# ── the hot store ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("hits", "misses", "is_alarming"), [(0, 0, False), (7, 3, False), (69, 31, True), (0, 1, True), (1, 0, False)]
)
def test_too_few_hits_are_alarming_and_no_reads_at_all_are_not(hits: int, misses: int, is_alarming: bool) -> None:
    assert len(monitors.too_few_hits(hits, misses, 0.7)) == is_alarming


# ── visits ────────────────────────────────────────────────────────────────────────────────────────────────────────


def came_to(well: int, failed: int, platform: str = "reddit") -> list[tuple[str, int, bool]]:
    return [(platform, number, number >= well) for number in range(well + failed)]


@pytest.mark.parametrize(
    ("well", "failed", "is_alarming"), [(9, 1, False), (8, 2, True), (89, 11, True), (0, 9, False), (0, 10, True)]
)
def test_less_success_than_nine_in_ten_is_alarming_if_sources_enough_were_visited(
    well: int, failed: int, is_alarming: bool
) -> None:
    found = monitors.success_of(["reddit"], came_to(well, failed))
    assert len(monitors.too_little_success(found, {})) == is_alarming


def test_each_platform_answers_for_itself_and_the_worst_error_is_named() -> None:
    found = monitors.success_of({"hackernews"}, [*came_to(100, 0, "feeds"), *came_to(8, 4)])
    assert [(platform.platform, platform.sources) for platform in found] == [
        ("feeds", 100),
        ("hackernews", 0),
        ("reddit", 12),
    ]
    (alarm,) = monitors.too_little_success(found, {"reddit": {"TIMEOUT": 1, "SERVER_TROUBLE": 3}})
    assert alarm.subject == "platform reddit visits"
    assert "4 of 12 sources failed in 10 minutes, most often with SERVER_TROUBLE" in alarm.message


# ── standing still ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("due_since", "has_visited", "is_alarming"),
    [(90 * MINUTE, False, True), (89 * MINUTE, False, False), (9 * HOUR, True, False), (None, False, False)],
)
def test_it_is_alarming_if_nothing_goes_well_for_as_long_as_something_is_due(
    due_since: timedelta | None, has_visited: bool, is_alarming: bool
) -> None:
    waiting = [DueSources("rss", 3, 2, NOON - due_since)] if due_since else []
    waiting += [DueSources("reddit", 1, 0, NOON - MINUTE)]
    alarms = monitors.standing_still(waiting, 90 * MINUTE, NOON, NOON - 9 * HOUR, has_visited=has_visited)
    assert [alert.severity for alert in alarms] == ["P0"] * is_alarming


@pytest.mark.parametrize(("awake_for", "is_alarming"), [(89 * MINUTE, False), (90 * MINUTE, True)])
def test_time_in_which_nobody_collected_is_no_standstill(awake_for: timedelta, is_alarming: bool) -> None:
    waiting = [DueSources("rss", 3, 2, NOON - 9 * HOUR)]
    alarms = monitors.standing_still(waiting, 90 * MINUTE, NOON, NOON - awake_for, has_visited=False)
    assert len(alarms) == is_alarming


# ── first visits ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("last_first", "waiting_since", "is_alarming"),
    [
        (31 * MINUTE, 2 * HOUR, True),
        (29 * MINUTE, 2 * HOUR, False),
        (9 * HOUR, 5 * MINUTE, False),
        (None, 2 * HOUR, False),
    ],
)
def test_first_visits_that_were_begun_must_go_on(
    last_first: timedelta | None, waiting_since: timedelta, is_alarming: bool
) -> None:
    warm_up = WarmUp("reddit", 200, 37, NOON - last_first if last_first else None, NOON - waiting_since)
    alarms = monitors.not_warming_up([warm_up], NOON)
    assert [alert.subject for alert in alarms] == ["reddit warm-up"] * is_alarming
    assert all("37 of 200" in alert.message for alert in alarms)
