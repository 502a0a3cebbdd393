"""How lively a community is: what counts, where it belongs, and how long one may wait for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.app import tiers_of
from catchment.model import (
    Change,
    Counts,
    Item,
    ItemChange,
    Progress,
    RefinedItem,
    Source,
)
from catchment.policy.schedule import (
    Interval,
    NextDue,
    after_success,
    interval,
    next_due,
    posts_per_day,
)
from catchment.policy.tiers import (
    Tier,
    Tiers,
    after_visit,
    most_minutes,
    tiered,
    valid_among,
)
from catchment.settings import Settings

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIVELY, MIDDLING, QUIET = (
    Tier("tier1", 20, 2, "new", "week", 50),
    Tier("tier2", 10, 6, "top", "week", 80),
    Tier("tier3", 0, 24, "top", "month", 100),
)
RULES = Tiers((LIVELY, MIDDLING, QUIET), crawls=10, least_crawls=3)


def test_without_settings_the_tiers_are_those_of_the_specification(tmp_path: object) -> None:
    assert tiers_of(Settings(home=tmp_path)) == RULES  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("recent", "tier"),
    [
        ((), None),
        ((100, 100), None),
        ((20, 20, 20), LIVELY),
        ((20, 20, 19), MIDDLING),
        ((10, 10, 10), MIDDLING),
        ((10, 10, 9), QUIET),
        ((0, 0, 0), QUIET),
        # Only the last ten count.
        ((1000, *(0,) * 10), QUIET),
        ((*(0,) * 5, *(40,) * 5), LIVELY),
    ],
)
def test_a_community_belongs_where_the_average_of_its_last_ten_visits_puts_it(
    recent: tuple[int, ...], tier: Tier | None
) -> None:
    assert RULES.assigned(recent) == tier


def test_with_fewer_than_three_visits_a_community_stays_where_it_is() -> None:
    was = Progress(recent_valid=(99,), tier="tier3", tier_minutes=1440, tier_reason="tier3: every 24 h")
    assert after_visit(was, 99, RULES) == was.replace(recent_valid=(99, 99))
    assert after_visit(was.replace(recent_valid=(99, 99)), 99, RULES).tier == "tier1"


@given(st.lists(st.integers(0, 1000), max_size=30))
def test_no_more_than_the_last_visits_are_remembered(visits: list[int]) -> None:
    progress = Progress()
    for valid in visits:
        progress = after_visit(progress, valid, RULES)
    assert progress.recent_valid == tuple(visits[-10:])
    assert progress.tier == (None if len(visits) < 3 else RULES.assigned(visits).name)  # type: ignore[union-attr]


def judged(change: Change = Change.NEW, **item: object) -> ItemChange:
    return ItemChange(RefinedItem(Item("1", **({"kind": "post"} | item)), b""), None, change)  # type: ignore[arg-type]


def test_valid_is_what_is_new_there_and_not_pinned() -> None:
    page = [
        judged(),
        judged(is_deleted=True),
        judged(is_pinned=True),
        judged(kind="comment"),
        judged(Change.EDITED),
        judged(Change.COUNTED),
        judged(Change.SAME),
        judged(is_folded=True),
    ]
    assert len(valid_among(page, "post")) == 2


# ── how often ─────────────────────────────────────────────────────────────────────────────────────────────────────


def source(own: int | None = None) -> Source:
    return Source(1, "k", "reddit", "reddit", "r/x", "x", NOW, interval_minutes=own)


def test_the_sources_own_interval_goes_before_its_tier_and_that_before_its_kind() -> None:
    lively = tiered(Progress(recent_valid=(20, 20, 20)), RULES)
    assert interval(source(15), lively, 60) == Interval(15, "own interval")
    assert interval(source(), lively, 60) == Interval(120, "tier1: every 2 h")
    assert interval(source(), Progress(), 60) == Interval(60)
    assert next_due(interval(source(), lively, 60), None, NOW) == NextDue(NOW + timedelta(hours=2), "tier1: every 2 h")


@pytest.mark.parametrize(
    ("posts_per_day", "reach", "most"),
    [
        (3_000.0, 1_000, 240),
        (1_000.0, 1_000, 720),
        (100.0, 25, 180),
        (10.0**9, 25, 1),
        (None, 1_000, None),
        (0.0, 1_000, None),
        (3_000.0, None, None),
    ],
)
def test_one_waits_no_longer_than_half_of_what_the_platform_shows_takes_to_be_posted(
    posts_per_day: float | None, reach: int | None, most: int | None
) -> None:
    assert most_minutes(posts_per_day, reach) == most


def test_a_tier_yields_to_completeness_and_says_so() -> None:
    quiet = Progress(recent_valid=(0, 0, 0), posts_per_day=3_000.0, reach=1_000)
    assert (tiered(quiet, RULES).tier, tiered(quiet, RULES).tier_minutes) == ("tier3", 240)
    assert tiered(quiet, RULES).tier_reason == (
        "tier3: every 4 h rather than 24 h, because the platform shows no more than the newest 1,000"
    )
    assert tiered(quiet.replace(posts_per_day=100.0), RULES).tier_reason == "tier3: every 24 h"


@given(st.lists(st.integers(0, 100), min_size=3, max_size=10), st.floats(0, 1e9), st.integers(1, 10**6))
def test_a_tier_is_only_ever_hastened(recent: list[int], rhythm: float, reach: int) -> None:
    known = tiered(Progress(recent_valid=tuple(recent), posts_per_day=rhythm, reach=reach), RULES)
    tier = RULES.named(known.tier)
    assert tier is not None
    assert known.tier_minutes is not None
    assert 1 <= known.tier_minutes <= tier.hours * 60
    # What may be posted until the next visit is never more than is shown; a minute is the shortest wait there is.
    assert known.tier_minutes == 1 or known.tier_minutes / 1440 * rhythm <= reach


def test_the_rhythm_comes_from_the_newest_and_the_silence_since() -> None:
    hourly = [NOW - timedelta(hours=hour) for hour in range(1, 49)]
    assert posts_per_day(hourly, NOW) == 24
    assert posts_per_day(hourly, NOW + timedelta(days=2)) == 12
    assert posts_per_day(hourly[:9], NOW) is None
    assert posts_per_day([NOW] * 50, NOW) == 50 * 24 * 60


def test_a_visit_that_brings_nothing_halves_what_is_reckoned_with_and_is_counted() -> None:
    known = Progress(posts_per_day=100.0, success_count=1)
    empty = after_success(known, Counts())
    assert (empty.posts_per_day, empty.success_count, empty.empty_count, empty.empty_in_a_row) == (50, 2, 1, 1)
    full = after_success(empty, Counts(new=3))
    assert (full.posts_per_day, full.success_count, full.empty_count, full.empty_in_a_row) == (50, 3, 1, 0)
