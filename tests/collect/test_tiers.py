"""Communities get their tier from what visits find, and are visited by it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from catchment.model import Listing, Order
from tests.collect.plazas import Plazas
from tests.town import TownApp


@pytest.fixture
def plazas(here: TownApp) -> Plazas:
    return Plazas(here)


@pytest.fixture
def plaza(quick: TownApp) -> Plazas:
    """On SQLite only."""
    return Plazas(quick)


def test_from_the_third_visit_on_a_community_has_a_tier_and_is_due_by_it(plazas: Plazas) -> None:
    source = plazas.follow("webdev")
    for count in (30, 20):
        plazas.visit(source, count)
        assert (plazas.progress(source).tier, plazas.progress(source).next_due_at) == (None, None)
    plazas.visit(source, 10)
    known = plazas.progress(source)
    assert (known.recent_valid, known.average_valid, known.tier) == ((30, 20, 10), 20, "tier1")
    assert (known.next_due_at, known.due_reason) == (plazas.clock.now() + timedelta(hours=2), "tier1: every 2 h")
    assert plazas.here.collect(after=timedelta(minutes=119)) == []
    (due,) = plazas.here.collect(after=timedelta(minutes=1))
    assert due.source_id == source.id


def test_a_community_that_falls_silent_falls_from_tier_to_tier(plaza: Plazas) -> None:
    source = plaza.follow("webdev")
    tiers = []
    for count in (20, 20, 20, 0, 0, 0, 0, 0, 0, 0):
        plaza.visit(source, count)
        tiers.append(plaza.progress(source).tier)
    # 20, 15, 12, 10, 8.6 …
    assert tiers == [None, None, "tier1", "tier2", "tier2", "tier2", "tier3", "tier3", "tier3", "tier3"]


def test_only_posts_that_are_there_and_not_pinned_count(plazas: Plazas) -> None:
    source = plazas.follow("webdev")
    plazas.post("webdev", 3, is_pinned=True)
    plazas.post("webdev", 4, is_deleted=True)
    plazas.post("webdev", 5, kind="comment")
    result = plazas.visit(source, 6)
    assert (result.counts.new, result.valid, plazas.progress(source).recent_valid) == (18, 6, (6,))
    (visit,) = plazas.here.app.store.runs.of_source(source.id)
    assert (visit.new_count, visit.valid_count) == (18, 6)


def test_a_visit_that_brings_nothing_counts_with_nothing_and_one_that_fails_not_at_all(plaza: Plazas) -> None:
    source = plaza.follow("webdev")
    plaza.visit(source, 6)
    plaza.visit(source)
    plaza.fails.add("webdev")
    plaza.visit(source, 8)
    known = plaza.progress(source)
    assert known.recent_valid == (6, 0)
    assert (known.success_count, known.empty_count, known.failure_count) == (2, 1, 1)


def test_kinds_that_are_not_tiered_keep_their_interval(quick: TownApp) -> None:
    plazas = Plazas(quick, is_tiered=False)
    source = plazas.follow("webdev")
    for _ in range(4):
        plazas.visit(source, 30)
    known = plazas.progress(source)
    assert (known.recent_valid, known.tier, known.next_due_at) == ((), None, None)


def test_a_persons_own_interval_holds_whatever_the_tier_and_without_it_the_tier_holds(plazas: Plazas) -> None:
    source, sources = plazas.follow("webdev", interval_minutes=15), plazas.here.app.store.sources
    for _ in range(3):
        plazas.visit(source, 30)
    known = plazas.progress(source)
    assert (known.tier, known.due_reason) == ("tier1", "own interval")
    sources.change(source.id, interval_minutes=None)
    known = plazas.progress(source)
    assert (known.next_due_at, known.due_reason) == (plazas.clock.now() + timedelta(hours=2), "tier1: every 2 h")
    sources.change(source.id, interval_minutes=45)
    known = plazas.progress(source)
    assert (known.next_due_at, known.due_reason) == (plazas.clock.now() + timedelta(minutes=45), "own interval")


def test_after_a_failure_the_tier_still_decides(plaza: Plazas) -> None:
    source = plaza.follow("webdev")
    for _ in range(3):
        plaza.visit(source, 1)
    plaza.fails.add("webdev")
    plaza.visit(source)
    assert plaza.progress(source).next_due_at == plaza.clock.now() + timedelta(minutes=5), "tried again once, soon"
    plaza.visit(source)
    known = plaza.progress(source)
    assert (known.next_due_at, known.due_reason) == (plaza.clock.now() + timedelta(hours=24), "tier3: every 24 h")


def test_a_community_that_posts_more_than_the_platform_shows_is_visited_before_that_is_too_late(
    quick: TownApp,
) -> None:
    """Its average is low, because it is visited often; its rhythm is not."""
    plazas = Plazas(quick)
    source = plazas.follow("webdev", interval_minutes=5)
    for _ in range(13):
        plazas.visit(source, 5, after=timedelta(minutes=5))
    assert plazas.progress(source).tier == "tier3"
    plazas.here.app.store.sources.change(source.id, interval_minutes=None)
    known = plazas.progress(source)
    # One a minute: a thousand in 1,000 minutes.
    assert known.tier_minutes == pytest.approx(500, abs=15)
    assert known.due_reason is not None
    assert known.due_reason.endswith("because the platform shows no more than the newest 1,000")


def test_where_only_a_window_is_shown_the_window_is_the_reach(quick: TownApp) -> None:
    """As without a key: then it is a feed of the newest few."""
    plazas = Plazas(quick, listings=(Listing("new", Order.NEWEST_FIRST, is_window=True),))
    source = plazas.follow("webdev")
    for _ in range(4):
        plazas.visit(source, 60)
    known = plazas.progress(source)
    assert (known.reach, known.tier) == (100, "tier1")
    # One a minute, of which a hundred are shown.
    assert known.tier_minutes == pytest.approx(50, abs=5)


# ── what is read ──────────────────────────────────────────────────────────────────────────────────────────────────


def asked(plazas: Plazas, count: int, **settings: object) -> list[str]:
    """What is asked of a community that posts so many a visit, once it has its tier."""
    source = plazas.follow(f"with {count}", settings=settings)
    for _ in range(4):
        plazas.visit(source, count)
    return plazas.asked


def test_each_tier_is_read_by_its_own_listing_beside_the_newest(plaza: Plazas) -> None:
    assert asked(plaza, 20) == ["new 50"]
    assert asked(plaza, 10) == ["new 80", "top week 80"]
    assert asked(plaza, 1) == ["new 100", "top month 100"]


def test_what_the_source_itself_says_goes_before_its_tier(plaza: Plazas) -> None:
    assert asked(plaza, 10, sort="new") == ["new 80"]
    assert asked(plaza, 20, sort="top", time_filter="all", limit=7) == ["new 7", "top all 7"]


def test_the_tiers_of_the_settings_are_those_that_hold(tmp_path: Path) -> None:
    row = (5.0, 1.5, "top", "day", 9)
    here = TownApp(tmp_path, f"sqlite:///{tmp_path / 'catchment.db'}", tier1=row, tier2=(4.0, *row[1:]))
    plazas = Plazas(here)
    assert asked(plazas, 6) == ["new 9", "top day 9"]
    assert here.app.store.sources.with_progress(1)[1].due_reason == "tier1: every 1.5 h"
    here.close()


def test_a_visit_that_fails_beside_the_newest_counts_all_the_same(plaza: Plazas) -> None:
    source = plaza.follow("webdev", settings={"sort": "top"})
    plaza.fails_beside = True
    for count in (3, 2, 1):
        plaza.visit(source, count)
    known = plaza.progress(source)
    assert (known.recent_valid, known.tier, known.failure_count) == ((3, 2, 1), "tier3", 3)


def test_the_backlog_of_a_first_visit_says_nothing_about_how_lively_a_community_is(plazas: Plazas) -> None:
    source = plazas.follow("quietone")
    plazas.post("quietone", 90)
    plazas.clock.advance(timedelta(days=30).total_seconds())
    result = plazas.visit(source, 2)
    assert (result.valid, plazas.progress(source).recent_valid) == (92, (2,))
    for _ in range(5):
        plazas.visit(source)
    known = plazas.progress(source)
    assert (known.recent_valid, known.tier) == ((2, 0, 0, 0, 0, 0), "tier3")


def test_a_first_visit_that_broke_off_leaves_the_rest_of_the_backlog_to_the_next(plaza: Plazas) -> None:
    source = plaza.follow("quietone")
    plaza.post("quietone", 40)
    plaza.clock.advance(timedelta(days=30).total_seconds())
    plaza.fails.add("quietone")
    plaza.visit(source)
    plaza.fails.clear()
    plaza.visit(source)
    assert plaza.progress(source).recent_valid == (0,)
