"""What histories drawn at random brought to light (`tests/stateful`): each of these went wrong once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from catchment.errors import Missing, ServerTrouble, SlowDown
from catchment.model import (
    Answer,
    Change,
    Counts,
    Gap,
    Item,
    ItemChange,
    Listing,
    Order,
    Outcome,
    RefinedItem,
    Target,
    Watermark,
)
from catchment.policy.continuity import (
    End,
    Walk,
    closed_gaps,
    gap_after,
    moved,
    step,
)
from catchment.sources.add import pause, resume
from tests.town import Feed, TownApp

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def steady(here: TownApp, first: int, last: int, feed: Feed | None = None) -> Feed:
    """Entries numbered so, a minute apart, the last one now."""
    feed = feed or here.town.feed(window=5)
    for number in range(first, last + 1):
        feed.post(f"p{number}", at=here.clock.now() - (last - number) * MINUTE)
    return feed


# ── gaps ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_another_source_of_the_same_items_stored_does_not_hide_a_gap(quick: TownApp) -> None:
    feed = steady(quick, 1, 5)
    first = quick.follow(feed)
    quick.collect(first)
    quick.clock.advance(3600)
    steady(quick, 6, 20, feed)
    # Followed since just now, it has missed nothing; the first one has.
    second = quick.follow(feed, kind="digest_feed")
    quick.collect(second)
    assert quick.gaps() == []
    quick.collect(first)
    assert [gap.source_id for gap in quick.gaps()] == [first.id]


@pytest.mark.parametrize("ahead_by", [400 * DAY, HOUR])
def test_an_entry_from_the_future_that_comes_back_closes_no_gap(quick: TownApp, ahead_by: timedelta) -> None:
    """Whether its date has come meanwhile, or has not."""
    feed = steady(quick, 1, 5)
    feed.post("ahead", at=quick.clock.now() + ahead_by)
    source = quick.follow(feed)
    quick.collect(source)
    ahead = feed.entries.pop("ahead")
    quick.clock.advance(3600)
    steady(quick, 6, 20, feed)
    quick.collect(source)
    assert len(quick.gaps()) == 1
    feed.entries["ahead"] = ahead
    quick.collect(source)
    assert len(quick.gaps()) == 1


def test_a_gap_does_not_end_in_the_future(quick: TownApp) -> None:
    feed = steady(quick, 1, 5)
    source = quick.follow(feed)
    quick.collect(source)
    feed.entries = {}
    for number in range(3):
        feed.post(f"ahead{number}", at=quick.clock.now() + (number + 1) * DAY)
    quick.collect(source)
    assert [gap.to_at for gap in quick.gaps()] == [quick.clock.now()]


NOW = datetime(2026, 1, 1, tzinfo=UTC)
NEW = Listing("new", Order.NEWEST_FIRST, reach=100)


def ago(minutes: float) -> datetime:
    return NOW - timedelta(minutes=minutes)


def post(key: str, minutes: float, *, is_pinned: bool = False) -> ItemChange:
    item = Item(key, created_at=ago(minutes), text="text", is_pinned=is_pinned)
    return ItemChange(RefinedItem(item, key.encode()), None, Change.NEW)


MARK = Watermark(ago(60), ("m",))


def test_a_post_of_the_watermarks_own_minute_is_looked_for_on_the_next_page() -> None:
    walk = step(Walk(NEW, MARK), [post("a", 1), post("m", 60)], NOW)
    assert (walk.is_reached, walk.is_satisfied) == (True, False)
    assert step(walk, [post("of the same minute", 60), post("older", 61)], NOW).is_satisfied


def test_a_walk_cut_off_among_posts_of_the_watermarks_minute_leaves_a_gap() -> None:
    walk = step(Walk(NEW, MARK), [post("a", 1), post("m", 60)], NOW)
    assert gap_after(walk, End.REPEATS, NOW) == Gap(True, ago(60), ago(60), "repeats", ("m",), to_ids=("m",))


def test_pinning_the_newest_post_we_have_closes_no_gap() -> None:
    gap = Gap(True, ago(60), ago(20), "reach", ("m",), id=7)
    walk = step(Walk(NEW, Watermark(ago(10), ("b",))), [post("m", 60, is_pinned=True), post("a", 1)], NOW)
    assert closed_gaps(step(walk, [post("b", 10), post("c", 70)], NOW), [gap]) == ()


def test_a_page_of_pinned_posts_only_moves_no_watermark() -> None:
    for mark in (None, MARK):
        assert moved(step(Walk(NEW, mark), [post("rules", 1, is_pinned=True)], NOW), NOW) == mark


@pytest.mark.parametrize(
    ("posts", "unusable", "cause"), [(100, 0, "reach"), (80, 20, "reach"), (80, 0, "reach"), (30, 0, None)]
)
def test_what_cannot_be_used_or_is_held_back_takes_its_place_within_the_reach(
    posts: int, unusable: int, cause: str | None
) -> None:
    walk = step(Walk(NEW, MARK), [post(f"{number}", number / 2) for number in range(posts)], NOW, unusable)
    gap = gap_after(walk, End.LAST_PAGE, NOW)
    assert (gap and gap.cause) == cause


def test_pinned_posts_shown_on_every_page_do_not_use_up_the_reach() -> None:
    walk = Walk(NEW, MARK)
    for page in range(6):
        walk = step(walk, [post(f"rule{number}", 10**5, is_pinned=True) for number in range(9)], NOW)
        walk = step(walk, [post(f"{page}", page)], NOW)
    assert gap_after(walk, End.LAST_PAGE, NOW) is None


# ── identity and history ──────────────────────────────────────────────────────────────────────────────────────────


def test_an_entry_from_the_future_that_changes_its_id_is_not_stored_twice(here: TownApp) -> None:
    feed = steady(here, 1, 3)
    feed.post("ahead", at=here.clock.now() + 400 * DAY)
    source = here.follow(feed)
    here.collect(source)
    feed.entries = {f"urn:{key}": entry | {"link": key} for key, entry in feed.entries.items()}
    (result,) = here.collect(source)
    assert (result.counts.new, len(here.items())) == (0, 4)


def test_going_back_to_the_first_of_several_wordings_is_an_edit_like_any_other(quick: TownApp) -> None:
    feed = quick.town.feed()
    source = quick.follow(feed)
    for text in ("one", "two", "three", "four", "one"):
        feed.post("p", text, at=NOW - HOUR)
        quick.collect(source)
    assert (quick.item("p")["text"], len(quick.revisions("p"))) == ("one", 4)


def test_an_entry_that_stays_the_same_is_looked_at_if_another_source_showed_something_else_meanwhile(
    quick: TownApp,
) -> None:
    feed = steady(quick, 1, 5)
    first, second = quick.follow(feed), quick.follow(feed, kind="digest_feed")
    quick.collect(first)
    # The second one is served by another cache, which has an edit that the first one's takes back no more.
    feed.post("p3", "edited")
    quick.collect(second)
    feed.post("p3", "text")
    feed.post("p6", at=quick.clock.now())
    quick.collect(first)
    assert [revision["text"] for revision in quick.revisions("p3")] == ["text", "edited"]


def test_what_flipped_all_day_is_looked_at_again_the_next_day_though_the_feed_did_not_change(quick: TownApp) -> None:
    feed = quick.town.feed()
    source = quick.follow(feed)
    for text in ("even", "odd", "even", "odd", "even"):
        feed.post("p", text, at=NOW - HOUR)
        quick.collect(source)
    assert quick.item("p")["text"] == "odd"
    quick.collect(source, after=DAY)
    assert quick.item("p")["text"] == "even"


# ── counts ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_same_bytes_again_count_all_that_they_show(quick: TownApp) -> None:
    body = b"""<rss version="2.0"><channel><title>t</title>
        <item><guid>a</guid><title>A</title></item><item><guid>nothing</guid></item></channel></rss>"""
    feed = quick.town.feed()
    source = quick.follow(feed)
    results = []
    for _ in range(2):
        feed.says.append(lambda request, now: Answer(200, {}, body, request.url, now))
        results += quick.collect(source)
    assert [result.counts for result in results] == [Counts(new=1, invalid=1), Counts(duplicate=2)]


def test_the_first_page_again_counts_its_own_items_not_those_of_all_pages(quick: TownApp) -> None:
    def page(number: int, following: str) -> bytes:
        entry = f'{{"id": "{number}", "content_text": "text {number}"}}'
        return f'{{"version": "https://jsonfeed.org/version/1.1", {following} "items": [{entry}]}}'.encode()

    url = "https://one.example/feed"
    first, second = page(1, f'"next_url": "{url}?2",'), page(2, "")
    feed, older = quick.town.feed(), quick.town.feeds.setdefault(f"{url}?2", Feed(f"{url}?2"))
    source = quick.follow(feed)
    results = []
    for _ in range(2):
        feed.says.append(lambda request, now: Answer(200, {}, first, request.url, now))
        older.says.append(lambda request, now: Answer(200, {}, second, request.url, now))
        results += quick.collect(source)
    assert [result.counts for result in results] == [Counts(new=2), Counts(duplicate=1)]


# ── when ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_source_that_is_resumed_from_probation_keeps_its_own_interval(here: TownApp) -> None:
    feed = steady(here, 1, 3)
    source = here.follow(feed, interval_minutes=30)
    feed.says.extend(Missing("not there", status=404) for _ in range(6))
    for _ in range(6):
        here.collect(source)
    assert here.progress(source).due_reason == "probation"
    pause(here.app.store, source.id, None, here.clock.now())
    resume(here.app.store, source.id, here.clock.now())
    assert here.progress(source).next_due_at == here.clock.now() + 30 * MINUTE
    assert [result.outcome for result in here.collect(after=30 * MINUTE)] == [Outcome.SUCCEEDED]


def test_resuming_a_source_does_not_forget_what_a_server_asked_for(here: TownApp) -> None:
    feed = steady(here, 1, 3)
    source = here.follow(feed)
    until = here.clock.now() + 8 * HOUR
    feed.says.extend([Missing("not there", status=404), SlowDown("too many", status=429, retry_at=until)])
    here.collect(source)
    here.collect(source)
    resume(here.app.store, source.id, here.clock.now())
    assert here.progress(source).next_due_at == until


def test_a_server_in_trouble_that_says_when_to_come_back_is_not_asked_sooner(quick: TownApp) -> None:
    feed = steady(quick, 1, 3)
    source = quick.follow(feed)
    until = quick.clock.now() + 12 * HOUR
    feed.says.append(ServerTrouble("it is down", status=502, retry_at=until))
    quick.collect(source)
    assert quick.collect(after=5 * HOUR) == []
    assert quick.progress(source).next_due_at == until


def test_a_feeds_wish_for_longer_pauses_holds_while_it_does_not_change(quick: TownApp) -> None:
    body = b'<rss version="2.0"><channel><title>t</title><ttl>600</ttl><item><title>A</title></item></channel></rss>'
    feed = quick.town.feed()
    source = quick.follow(feed)
    for _ in range(3):
        feed.says.append(lambda request, now: Answer(200, {}, body, request.url, now))
        quick.collect(source)
        assert quick.progress(source).next_due_at == quick.clock.now() + 600 * MINUTE


def test_a_source_whose_platform_is_not_installed_is_skipped_once_a_round(quick: TownApp) -> None:
    sources, now = quick.app.store.sources, quick.clock.now()
    source, _ = sources.follow(Target("nobody", "x"), "nobody", now)
    sources.mark_due(source.id, now)
    results: list[Any] = []

    def seen(result: Any) -> None:
        results.append(result.outcome)
        assert len(results) < 5, "visited again and again"

    quick.app.scheduler().due("test", "test", seen)
    assert results == [Outcome.SKIPPED]


def test_new_posts_of_a_visits_first_pages_count_for_the_rhythm(quick: TownApp) -> None:
    def page(numbers: range, following: str) -> bytes:
        items = ",".join(
            f'{{"id": "{number}", "content_text": "t", "date_published": "2025-12-31T{number:02}:00:00Z"}}'
            for number in numbers
        )
        return f'{{"version": "https://jsonfeed.org/version/1.1", {following} "items": [{items}]}}'.encode()

    url = "https://one.example/feed"
    first, empty = page(range(10, 24), f'"next_url": "{url}?2",'), page(range(0), "")
    feed, older = quick.town.feed(), quick.town.feeds.setdefault(f"{url}?2", Feed(f"{url}?2"))
    source = quick.follow(feed)
    feed.says.append(lambda request, now: Answer(200, {}, first, request.url, now))
    older.says.append(lambda request, now: Answer(200, {}, empty, request.url, now))
    quick.collect(source)
    assert quick.progress(source).expected_by is not None
