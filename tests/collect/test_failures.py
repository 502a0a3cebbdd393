"""What a failure does: to its own source, and to no other."""

from __future__ import annotations

from datetime import timedelta

import pytest

from catchment.errors import (
    Gone,
    LoginNeeded,
    Missing,
    NetworkError,
    PlatformError,
    ServerTrouble,
    SlowDown,
    Stopped,
    TimedOut,
    Unreadable,
)
from catchment.model import Answer, Outcome, SourceState
from tests.collect.communities import Community
from tests.town import Feed, TownShop

HOUR = timedelta(hours=1)
INTERVAL = 4 * HOUR


def feed_with_posts(here: TownShop, name: str = "one") -> Feed:
    feed = here.town.feed(name)
    for number in range(3):
        feed.post(f"p{number}", at=here.clock.now() - (3 - number) * HOUR)
    return feed


def state(here: TownShop, source_id: int) -> SourceState:
    return here.shop.store.sources.get(source_id).state


def test_one_sources_failure_leaves_the_others_alone(here: TownShop) -> None:
    bad, good = feed_with_posts(here, "bad"), feed_with_posts(here, "good")
    sources = here.follow(bad), here.follow(good)
    bad.says.append(Missing("not there", status=404))
    results = {result.source_id: result.outcome for result in here.collect()}
    assert results == {sources[0].id: Outcome.FAILED, sources[1].id: Outcome.SUCCEEDED}


def test_a_bug_in_a_reader_is_one_sources_failure_and_shows_no_inside(here: TownShop) -> None:
    def broken(request, now):  # type: ignore[no-untyped-def]
        raise ZeroDivisionError("a detail that nobody should see")

    bad, good = feed_with_posts(here, "bad"), feed_with_posts(here, "good")
    source, _ = here.follow(bad), here.follow(good)
    bad.says.append(broken)
    (result,) = [one for one in here.collect() if one.source_id == source.id]
    assert (result.outcome, result.error_code) == (Outcome.FAILED, "INTERNAL")
    assert (result.error or "").startswith(
        f"{source.name} (source {source.id}): an error inside catchment (ZeroDivision"
    )
    assert "a detail" not in (result.error or "")


def test_five_failures_in_a_row_bring_probation_and_an_alert_and_a_success_ends_both(here: TownShop) -> None:
    feed = feed_with_posts(here)
    source = here.follow(feed)
    feed.says.extend(Missing("not there", status=404) for _ in range(6))
    waits = []
    for _ in range(6):
        here.collect(source)
        due = here.progress(source).next_due_at
        waits.append(due and due - here.clock.now())
    assert waits == [None] * 4 + [2 * INTERVAL, 4 * INTERVAL]
    assert here.progress(source).due_reason == "probation"
    assert len(here.shop.store.alerts.open()) == 1
    assert here.collect() == []
    (result,) = here.collect(after=4 * INTERVAL)
    assert result.outcome == Outcome.SUCCEEDED
    assert (here.progress(source).next_due_at, here.progress(source).failures_in_a_row) == (None, 0)
    assert here.shop.store.alerts.open() == []


def test_probation_never_waits_longer_than_a_day(quick: TownShop) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    feed.says.extend(Missing("not there", status=404) for _ in range(40))
    for _ in range(40):
        quick.collect(source)
    assert quick.progress(source).next_due_at - quick.clock.now() == timedelta(days=1)


def test_a_persons_pause_stays_whatever_happens(here: TownShop) -> None:
    from catchment.collect.following import pause

    source = here.follow(feed_with_posts(here))
    pause(here.shop.store, source.id, "on holiday", here.clock.now())
    here.collect(source)
    assert here.collect(after=timedelta(days=2)) == []
    assert state(here, source.id) == SourceState.PAUSED


def test_gone_for_good_retires_the_source_with_the_reason(here: TownShop) -> None:
    feed = feed_with_posts(here)
    source = here.follow(feed)
    feed.says.append(Gone("the feed is gone (410)", status=410))
    here.collect(source)
    retired = here.shop.store.sources.get(source.id)
    assert (retired.state, "410" in (retired.state_reason or "")) == (SourceState.RETIRED, True)
    assert here.collect(after=timedelta(days=2)) == []


def test_a_login_that_is_needed_alerts_at_once(quick: TownShop) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    feed.says.append(LoginNeeded("it wants a login", status=401))
    quick.collect(source)
    assert [alert["source_id"] for alert in quick.shop.store.alerts.open()] == [source.id]


def test_being_told_to_wait_counts_against_nobody_and_is_obeyed(here: TownShop) -> None:
    feed = feed_with_posts(here)
    source = here.follow(feed)
    retry_at = here.clock.now() + timedelta(minutes=20)
    feed.says.append(SlowDown("too many requests", status=429, retry_at=retry_at))
    here.collect(source)
    progress = here.progress(source)
    assert (progress.failures_in_a_row, progress.next_due_at, progress.due_reason) == (0, retry_at, "told to wait")
    assert here.collect(after=timedelta(minutes=10)) == []
    (result,) = here.collect(after=timedelta(minutes=10))
    assert result.outcome == Outcome.SUCCEEDED


@pytest.mark.parametrize("error", [TimedOut("too slow"), NetworkError("not known"), NetworkError("unreachable")])
def test_our_own_lack_of_network_counts_against_nobody(quick: TownShop, error: PlatformError) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    feed.says.extend([error] * 9)
    for _ in range(9):
        quick.collect(source)
    assert (quick.progress(source).failures_in_a_row, quick.progress(source).failure_count) == (0, 9)


def test_a_silent_host_counts_once_others_answered_meanwhile(quick: TownShop) -> None:
    dead, alive = feed_with_posts(quick, "dead"), feed_with_posts(quick, "alive")
    source, other = quick.follow(dead), quick.follow(alive)
    dead.says.extend([TimedOut("too slow")] * 2)
    quick.collect(source)
    assert quick.progress(source).failures_in_a_row == 0
    quick.collect(other)
    quick.collect(source)
    assert quick.progress(source).failures_in_a_row == 1


def test_a_host_that_fails_all_its_sources_is_not_held_against_each(quick: TownShop) -> None:
    urls = [f"https://host.example/{name}" for name in ("a", "b")]
    sources = []
    for url in urls:
        feed = Feed(url)
        quick.town.feeds[url] = feed
        feed.says.extend([ServerTrouble("503", status=503)] * 2)
        sources.append(quick.follow(feed))
    quick.collect(sources[0])
    quick.collect(sources[1])
    assert quick.progress(sources[1]).failures_in_a_row == 0


def test_an_answer_that_cannot_be_read_is_kept_for_a_better_reader(here: TownShop) -> None:
    feed = feed_with_posts(here)
    source = here.follow(feed)
    here.collect(source)
    page = b"<!doctype html><html><body>We moved to a new site!</body></html>"
    feed.says.append(lambda request, now: Answer(200, {"content-type": "text/html"}, page, request.url, now))
    (result,) = here.collect(source)
    assert (result.outcome, result.error_code, result.is_retryable) == (Outcome.FAILED, Unreadable.code, False)
    kept = here.shop.store.database.read(lambda tx: tx.all("SELECT is_read FROM raw_answers ORDER BY id"))
    assert [bool(one[0]) for one in kept] == [True, False]


def test_a_stop_charges_nothing_and_leaves_the_source_as_due_as_before(here: TownShop) -> None:
    feed = feed_with_posts(here)
    source = here.follow(feed)
    feed.says.append(Stopped("a stop was asked for"))  # type: ignore[arg-type]
    before = here.progress(source)

    def stop(request, now):  # type: ignore[no-untyped-def]
        raise Stopped("a stop was asked for")

    feed.says.clear()
    feed.says.append(stop)
    (result,) = here.collect(source)
    assert (result.outcome, here.progress(source)) == (Outcome.SKIPPED, before)
    (again,) = here.collect()
    assert again.outcome == Outcome.SUCCEEDED


def moved_permanently(request, now):  # type: ignore[no-untyped-def]
    body = b'<rss version="2.0"><channel><title>t</title></channel></rss>'
    return Answer(200, {}, body + str(now).encode(), "https://new.example/feed", now, "https://new.example/feed")


def test_a_permanent_redirect_is_remembered_after_it_held_for_three_visits(here: TownShop) -> None:
    feed = feed_with_posts(here)
    source = here.follow(feed)
    here.collect(source)
    targets = []
    for _ in range(3):
        feed.says.append(moved_permanently)
        here.collect(source)
        targets.append(here.shop.store.sources.get(source.id).target)
    assert targets == [feed.url, feed.url, "https://new.example/feed"]
    assert here.shop.store.sources.get(source.id).key == source.key


def test_a_redirect_that_came_once_is_forgotten(quick: TownShop) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    for _ in range(3):
        feed.says.append(moved_permanently)
        quick.collect(source)
        feed.post("more", str(quick.clock.now()), at=quick.clock.now())
        quick.collect(source)
    assert quick.shop.store.sources.get(source.id).target == feed.url


def test_a_source_that_is_followed_by_name_keeps_it_wherever_it_is_found(quick: TownShop) -> None:
    community = Community(quick, has_key=False)
    community.square.post(3)
    community.square.moved_to = "https://square.example/elsewhere"
    for _ in range(4):
        community.square.post(1)
        assert community.collect().outcome == Outcome.SUCCEEDED
    assert quick.shop.store.sources.get(community.source.id).target == "square"


def test_every_attempt_is_counted_by_minute_and_outcome(here: TownShop) -> None:
    feed = feed_with_posts(here)
    source = here.follow(feed)
    feed.says.append(ServerTrouble("503", status=503))
    here.collect(source)
    here.collect(source)
    rows = here.shop.store.database.read(lambda tx: tx.all("SELECT platform, outcome, count FROM attempts ORDER BY 2"))
    assert rows == [("feeds", "200", 1), ("feeds", "SERVER_TROUBLE", 1)]


def test_unchanged_that_was_not_asked_for_says_nothing(quick: TownShop) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    feed.says.append(lambda request, now: Answer(304, {}, b"", request.url, now))
    (result,) = quick.collect(source)
    assert (result.outcome, result.error_code) == (Outcome.FAILED, Unreadable.code)
    (result,) = quick.collect(source)
    assert result.outcome == Outcome.SUCCEEDED


def test_a_host_that_was_reached_and_does_not_answer_counts_although_nobody_else_did(quick: TownShop) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    error = NetworkError("it takes no connection")
    error.is_contact = True
    feed.says.append(error)
    quick.collect(source)
    assert quick.progress(source).failures_in_a_row == 1
