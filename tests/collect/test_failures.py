"""What a failure does: to its own source, and to no other."""

from __future__ import annotations

from datetime import timedelta
from threading import Thread

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
from catchment.model import Answer, Outcome, SourceState, VisitResult
from tests.collect.communities import Community
from tests.town import Feed, TownApp

HOUR = timedelta(hours=1)
INTERVAL = 4 * HOUR


def feed_with_posts(here: TownApp, name: str = "one") -> Feed:
    feed = here.town.feed(name)
    for number in range(3):
        feed.post(f"p{number}", at=here.clock.now() - (3 - number) * HOUR)
    return feed


def state(here: TownApp, source_id: int) -> SourceState:
    return here.app.store.sources.get(source_id).state


def test_one_sources_failure_leaves_the_others_alone(here: TownApp) -> None:
    bad, good = feed_with_posts(here, "bad"), feed_with_posts(here, "good")
    sources = here.follow(bad), here.follow(good)
    bad.says.append(Missing("not there", status=404))
    results = {result.source_id: result.outcome for result in here.collect()}
    assert results == {sources[0].id: Outcome.FAILED, sources[1].id: Outcome.SUCCEEDED}


def test_a_bug_in_a_reader_is_one_sources_failure_and_shows_no_inside(here: TownApp) -> None:
    def broken(request, now):  # type: ignore[no-untyped-def]
        raise ZeroDivisionError("a detail that nobody should see")

    bad, good = feed_with_posts(here, "bad"), feed_with_posts(here, "good")
    source, _ = here.follow(bad), here.follow(good)
    bad.says.append(broken)
    (result,) = [result for result in here.collect() if result.source_id == source.id]
    assert (result.outcome, result.error_code) == (Outcome.FAILED, "INTERNAL")
    assert (result.error or "").startswith(f"{source.name} (source {source.id}): internal error (ZeroDivision")
    assert "a detail" not in (result.error or "")


def test_a_visit_whose_thread_ends_itself_does_not_keep_the_run_waiting(quick: TownApp) -> None:
    def leaving(request, now):  # type: ignore[no-untyped-def]
        raise SystemExit

    bad, good = feed_with_posts(quick, "bad"), feed_with_posts(quick, "good")
    source, other = quick.follow(bad), quick.follow(good)
    bad.says.append(leaving)
    results: list[VisitResult] = []
    # A run that waits forever must not keep the tests waiting, too.
    run = Thread(target=lambda: results.extend(quick.collect()), daemon=True)
    run.start()
    run.join(600)
    assert {result.source_id: result.outcome for result in results} == {
        source.id: Outcome.FAILED,
        other.id: Outcome.SUCCEEDED,
    }


def test_five_failures_in_a_row_bring_probation_and_an_alert_and_a_success_ends_both(here: TownApp) -> None:
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
    assert len(here.app.store.alerts.open()) == 1
    assert here.collect() == []
    (result,) = here.collect(after=4 * INTERVAL)
    assert result.outcome == Outcome.SUCCEEDED
    assert (here.progress(source).next_due_at, here.progress(source).failures_in_a_row) == (None, 0)
    assert here.app.store.alerts.open() == []


def test_probation_never_waits_longer_than_a_day(quick: TownApp) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    feed.says.extend(Missing("not there", status=404) for _ in range(40))
    for _ in range(40):
        quick.collect(source)
    assert quick.progress(source).next_due_at - quick.clock.now() == timedelta(days=1)


def test_a_persons_pause_stays_whatever_happens(here: TownApp) -> None:
    from catchment.sources.add import pause

    source = here.follow(feed_with_posts(here))
    pause(here.app.store, source.id, "on holiday", here.clock.now())
    here.collect(source)
    assert here.collect(after=timedelta(days=2)) == []
    assert state(here, source.id) == SourceState.PAUSED


def test_gone_for_good_retires_the_source_with_the_reason(here: TownApp) -> None:
    feed = feed_with_posts(here)
    source = here.follow(feed)
    feed.says.append(Gone("the feed is gone (410)", status=410))
    here.collect(source)
    retired = here.app.store.sources.get(source.id)
    assert (retired.state, "410" in (retired.state_reason or "")) == (SourceState.RETIRED, True)
    assert here.collect(after=timedelta(days=2)) == []


def test_a_login_that_is_needed_alerts_at_once(quick: TownApp) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    feed.says.append(LoginNeeded("it wants a login", status=401))
    quick.collect(source)
    assert [alert.source_id for alert in quick.app.store.alerts.open()] == [source.id]


def test_being_told_to_wait_counts_against_nobody_and_is_obeyed(here: TownApp) -> None:
    feed = feed_with_posts(here)
    source = here.follow(feed)
    retry_at = here.clock.now() + timedelta(minutes=20)
    feed.says.append(SlowDown("too many requests", status=429, retry_at=retry_at))
    here.collect(source)
    progress = here.progress(source)
    assert (progress.failures_in_a_row, progress.next_due_at, progress.due_reason) == (0, retry_at, "asked to wait")
    assert here.collect(after=timedelta(minutes=10)) == []
    (result,) = here.collect(after=timedelta(minutes=10))
    assert result.outcome == Outcome.SUCCEEDED


@pytest.mark.parametrize("error", [TimedOut("too slow"), NetworkError("not known"), NetworkError("unreachable")])
def test_our_own_lack_of_network_counts_against_nobody(quick: TownApp, error: PlatformError) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    feed.says.extend([error] * 9)
    for _ in range(9):
        quick.collect(source)
    assert (quick.progress(source).failures_in_a_row, quick.progress(source).failure_count) == (0, 9)


def unconnected(text: str = "one.example is not known") -> NetworkError:
    return NetworkError(text)


def test_without_a_network_every_source_is_tried_again_within_minutes_and_all_are_collected_at_recovery(
    here: TownApp,
) -> None:
    feeds = [feed_with_posts(here, f"site{number}") for number in range(13)]
    sources = [here.follow(feed) for feed in feeds]
    here.collect()
    for feed in feeds:
        feed.says.extend(unconnected() for _ in range(100))
    waits: list[list[float]] = [[] for _ in sources]
    here.clock.advance(INTERVAL.total_seconds())
    for _ in range(10):
        failed = here.collect(after=timedelta(seconds=1))
        assert [result.outcome for result in failed] == [Outcome.FAILED] * 13
        for source, seen in zip(sources, waits, strict=True):
            seen.append((here.progress(source).next_due_at - here.clock.now()).total_seconds() / 60)
        here.clock.advance(60 * max(minutes[-1] for minutes in waits))
    assert all(minutes == [2, 3, 4.5, 6.75, 10.125, 15, 15, 15, 15, 15] for minutes in waits)
    assert {here.progress(source).failures_in_a_row for source in sources} == {0}
    for feed in feeds:
        feed.says.clear()
        feed.post("after", at=here.clock.now())
    results = here.collect()
    assert [(result.outcome, result.counts.new) for result in results] == [(Outcome.SUCCEEDED, 1)] * 13
    assert {here.progress(source).next_due_at for source in sources} == {None}


def test_a_network_that_went_away_a_moment_after_an_answer_costs_no_source_its_interval(quick: TownApp) -> None:
    feeds = [feed_with_posts(quick, f"site{number}") for number in range(3)]
    sources = [quick.follow(feed) for feed in feeds]
    quick.collect()
    for feed in feeds:
        feed.says.extend(unconnected() for _ in range(9))
    quick.collect(*sources)
    for _ in range(3):
        waits = [quick.progress(source).next_due_at - quick.clock.now() for source in sources]
        assert max(waits) <= timedelta(minutes=5)
        quick.collect(after=max(waits))
    assert max(quick.progress(source).failures_in_a_row for source in sources) <= 1


def test_a_host_in_trouble_is_asked_again_soon_and_less_and_less_often(quick: TownApp) -> None:
    sources = []
    for name in ("a", "b"):
        feed = Feed(f"https://host.example/{name}")
        quick.town.feeds[feed.url] = feed
        feed.says.extend(ServerTrouble("502", status=502) for _ in range(99))
        sources.append(quick.follow(feed))
    waits = []
    for _ in range(7):
        quick.collect(*sources)
        waits.append((quick.progress(sources[1]).next_due_at - quick.clock.now()) // timedelta(minutes=1))
    assert waits == [5, 10, 20, 40, 60, 60, 60]


def test_a_short_outage_of_a_sources_own_host_costs_minutes_and_not_its_interval(quick: TownApp) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    feed.says.extend([ServerTrouble("502", status=502)] * 2)
    quick.collect(source)
    assert quick.progress(source).next_due_at - quick.clock.now() == timedelta(minutes=5)
    quick.collect(source)
    assert (quick.progress(source).next_due_at, quick.progress(source).failures_in_a_row) == (None, 2)


def test_a_host_that_says_when_to_come_back_is_not_asked_before(quick: TownApp) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    retry_at = quick.clock.now() + 2 * HOUR
    feed.says.append(ServerTrouble("503", status=503, retry_at=retry_at))
    quick.collect(source)
    assert quick.progress(source).next_due_at == retry_at


def test_a_source_on_probation_is_not_tried_more_often_because_the_network_is_away(quick: TownApp) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    feed.says.extend(Missing("not there", status=404) for _ in range(5))
    feed.says.append(unconnected())
    for _ in range(5):
        quick.collect(source)
    quick.collect(source, after=9 * INTERVAL)
    progress = quick.progress(source)
    assert (progress.due_reason, progress.next_due_at - quick.clock.now()) == ("probation", 2 * INTERVAL)


def test_a_silent_host_counts_once_others_answered_meanwhile(quick: TownApp) -> None:
    dead, alive = feed_with_posts(quick, "dead"), feed_with_posts(quick, "alive")
    source, other = quick.follow(dead), quick.follow(alive)
    dead.says.extend([TimedOut("too slow")] * 2)
    quick.collect(source)
    assert quick.progress(source).failures_in_a_row == 0
    quick.collect(other)
    quick.collect(source)
    assert quick.progress(source).failures_in_a_row == 1


def test_a_host_that_fails_all_its_sources_is_not_held_against_each(quick: TownApp) -> None:
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


def test_an_answer_that_cannot_be_read_is_kept_for_a_better_reader(here: TownApp) -> None:
    feed = feed_with_posts(here)
    source = here.follow(feed)
    here.collect(source)
    page = b"<!doctype html><html><body>We moved to a new site!</body></html>"
    feed.says.append(lambda request, now: Answer(200, {"content-type": "text/html"}, page, request.url, now))
    (result,) = here.collect(source)
    assert (result.outcome, result.error_code, result.is_retryable) == (Outcome.FAILED, Unreadable.code, False)
    kept = here.app.store.database.read(lambda tx: tx.all("SELECT is_read FROM raw_answers ORDER BY id"))
    assert [bool(row[0]) for row in kept] == [True, False]


def test_a_stop_charges_nothing_and_leaves_the_source_as_due_as_before(here: TownApp) -> None:
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


def test_a_permanent_redirect_is_remembered_after_it_held_for_three_visits(here: TownApp) -> None:
    feed = feed_with_posts(here)
    source = here.follow(feed)
    here.collect(source)
    targets = []
    for _ in range(3):
        feed.says.append(moved_permanently)
        here.collect(source)
        targets.append(here.app.store.sources.get(source.id).target)
    assert targets == [feed.url, feed.url, "https://new.example/feed"]
    assert here.app.store.sources.get(source.id).key == source.key


def test_a_redirect_that_came_once_is_forgotten(quick: TownApp) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    for _ in range(3):
        feed.says.append(moved_permanently)
        quick.collect(source)
        feed.post("more", str(quick.clock.now()), at=quick.clock.now())
        quick.collect(source)
    assert quick.app.store.sources.get(source.id).target == feed.url


def test_a_source_that_is_followed_by_name_keeps_it_wherever_it_is_found(quick: TownApp) -> None:
    community = Community(quick, has_key=False)
    community.square.post(3)
    community.square.moved_to = "https://square.example/elsewhere"
    for _ in range(4):
        community.square.post(1)
        assert community.collect().outcome == Outcome.SUCCEEDED
    assert quick.app.store.sources.get(community.source.id).target == "square"


def test_every_attempt_is_counted_by_minute_and_outcome(here: TownApp) -> None:
    feed = feed_with_posts(here)
    source = here.follow(feed)
    feed.says.append(ServerTrouble("503", status=503))
    here.collect(source)
    here.collect(source)
    rows = here.app.store.database.read(lambda tx: tx.all("SELECT platform, outcome, count FROM attempts ORDER BY 2"))
    assert rows == [("feeds", "200", 1), ("feeds", "SERVER_TROUBLE", 1)]


def test_unchanged_that_was_not_asked_for_says_nothing(quick: TownApp) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    feed.says.append(lambda request, now: Answer(304, {}, b"", request.url, now))
    (result,) = quick.collect(source)
    assert (result.outcome, result.error_code) == (Outcome.FAILED, Unreadable.code)
    (result,) = quick.collect(source)
    assert result.outcome == Outcome.SUCCEEDED


def test_a_host_that_was_reached_and_does_not_answer_counts_although_nobody_else_did(quick: TownApp) -> None:
    feed = feed_with_posts(quick)
    source = quick.follow(feed)
    error = NetworkError("it takes no connection")
    error.is_contact = True
    feed.says.append(error)
    quick.collect(source)
    assert quick.progress(source).failures_in_a_row == 1
