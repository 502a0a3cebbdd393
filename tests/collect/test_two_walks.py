"""Two walks in one visit: the newest listing proves, the ranked one beside it adds what it shows."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from catchment.errors import (
    CatchmentError,
    Gone,
    Missing,
    PlatformError,
    ServerTrouble,
    SlowDown,
    Stopped,
)
from catchment.model import Counts, Outcome, WalkPlan
from catchment.store.credentials import Terms
from tests.collect.communities import PAGE, REACH, WINDOW, Community
from tests.collect.numbers import Numbers
from tests.town import TownApp


def test_the_newest_is_walked_down_to_the_watermark_and_then_the_ranked_listing_up_to_its_limit(here: TownApp) -> None:
    community = Community(here, time_filter="week", limit=20)
    community.square.post(40)
    community.collect()
    assert community.square.asked == ["new 0", "new 10", "top 0", "top 10"]
    assert community.square.time_filters == [None, None, "week", "week"]
    community.square.post(25)
    community.collect()
    assert community.square.asked == ["new 0", "new 10", "new 20", "top 0", "top 10"]
    assert (community.mark(), here.gaps()) == (64, [])


def test_a_source_that_is_sorted_by_the_newest_is_walked_once(quick: TownApp) -> None:
    community = Community(quick, sort="new")
    community.square.post(5)
    community.collect()
    assert community.square.asked == ["new 0"]


def test_a_ranked_listing_does_not_stop_at_what_is_old_or_held(quick: TownApp) -> None:
    community = Community(quick)
    community.square.post(60)
    community.collect()
    community.square.top = [0, 1, 2, 59, 58, *range(20, 40)]
    community.collect()
    assert community.square.asked == ["new 0", "top 0", "top 10"]
    assert {0, 1, 2, *range(20, 35)} <= community.stored()


def test_a_listing_beside_the_newest_ends_at_its_limit_and_proves_nothing_however_it_is_ordered(
    quick: TownApp,
) -> None:
    community = Community(quick, sort="rising")
    community.square.post(60)
    community.collect()
    community.square.post(1)
    community.collect()
    assert community.square.asked == ["new 0", "rising 0", "rising 10"]


def test_a_listing_that_looks_just_like_the_newest_is_read_all_the_same(quick: TownApp) -> None:
    community = Community(quick)
    community.square.post(1)
    result = community.collect()
    assert (result.outcome, result.counts) == (Outcome.SUCCEEDED, Counts(new=1, duplicate=1))


def test_what_stands_in_a_gap_is_stored_from_the_ranked_listing_and_the_gap_stays_open(here: TownApp) -> None:
    community = Community(here)
    community.square.post(10)
    community.collect()
    community.square.post(REACH + 50)
    community.square.top = [15, 20]
    result = community.collect()
    (gap,) = here.gaps()
    assert (gap.cause, {15, 20} <= community.stored(), community.mark()) == ("reach", True, REACH + 59)
    assert result.watermark_after == community.progress.watermark.at  # type: ignore[union-attr]
    community.collect()
    assert [gap.id for gap in here.gaps()] == [gap.id]


def test_a_post_that_only_the_ranked_listing_shows_does_not_lift_the_watermark(quick: TownApp) -> None:
    community = Community(quick)
    community.square.post(5)
    community.square.top = [99]
    community.collect()
    assert (99 in community.stored(), community.mark()) == (True, 4)
    assert community.progress.newest_shown_at == community.progress.watermark.at  # type: ignore[union-attr]


def test_all_that_either_walk_shows_is_counted_and_what_both_show_is_counted_twice(here: TownApp) -> None:
    community = Community(here)
    community.square.post(8)
    community.square.top = [7, 6, 55]
    result = community.collect()
    assert (result.counts, result.requests) == (Counts(new=9, duplicate=2), 2)
    community.square.scores[7] = 5
    assert community.collect().counts == Counts(updated=1, duplicate=10)
    (record,) = here.app.store.runs.of_source(community.source.id, 1)
    assert (record.updated_count, record.duplicate_count) == (1, 10)


def test_the_ranked_listing_is_read_though_the_newest_is_unchanged(here: TownApp) -> None:
    community = Community(here)
    community.square.post(8)
    community.square.top = [7, 6]
    community.collect()
    community.square.top = [55]
    result = community.collect()
    assert (result.outcome, result.counts) == (Outcome.SUCCEEDED, Counts(new=1, duplicate=8))
    assert (community.progress.poll_count, community.mark()) == (2, 7)


def test_an_old_copy_of_the_newest_ends_the_visit_before_the_ranked_listing_is_asked_for(quick: TownApp) -> None:
    community = Community(quick)
    community.square.post(5)
    (newest,) = community.square.first(community.source, community.progress, WalkPlan("new", 20, has_key=True))
    old = community.square.page(newest)
    community.collect()
    community.square.post(3)
    community.collect()
    community.square.old = old
    result = community.collect()
    assert (result.error_code, community.square.asked, community.mark()) == ("STALE_ANSWER", ["new 0"], 7)


def test_a_torn_page_of_the_newest_proves_nothing_and_the_ranked_listing_is_read_all_the_same(quick: TownApp) -> None:
    community = Community(quick)
    community.square.post(5)
    community.square.top = [99]
    community.square.torn.add("new 0")
    community.collect()
    assert (community.stored(), community.mark()) == ({4, 3, 2, 99}, None)
    community.square.torn.clear()
    community.collect()
    assert (community.stored(), community.mark()) == ({0, 1, 2, 3, 4, 99}, 4)


def test_a_torn_page_of_the_ranked_listing_takes_nothing_back(quick: TownApp) -> None:
    community = Community(quick)
    community.square.post(5)
    community.square.torn.add("top 0")
    result = community.collect()
    assert (result.outcome, community.mark()) == (Outcome.SUCCEEDED, 4)
    assert community.progress.body_hash is not None


def test_where_the_platform_has_no_request_for_the_ranked_listing_the_newest_is_the_visit(quick: TownApp) -> None:
    community = Community(quick)
    community.square.has_ranked = False
    community.square.post(5)
    result = community.collect()
    assert (result.outcome, community.square.asked, community.mark()) == (Outcome.SUCCEEDED, ["new 0"], 4)


def test_of_a_listing_of_ids_too_the_ranked_one_is_read_beside_the_newest(here: TownApp) -> None:
    numbers = Numbers(here, newest="new", sort="top")
    numbers.site.post(30)
    numbers.site.top = [3, 29, 4]
    result = numbers.collect()
    assert numbers.stored() == {3, 4, *range(20, 30)}
    assert (result.counts, numbers.mark()) == (Counts(new=12, duplicate=1), ("29",))


# ── what becomes of the visit when the second walk breaks off ─────────────────────────────────────────────────────


@pytest.mark.parametrize("error", [ServerTrouble("500", status=500), Missing("404", status=404)])
def test_a_failure_beside_the_newest_is_told_and_takes_back_nothing(here: TownApp, error: PlatformError) -> None:
    community = Community(here)
    community.square.post(15)
    community.square.fails["top 10"] = lambda: error
    result = community.collect()
    assert (result.outcome, result.error_code, result.counts.new) == (Outcome.FAILED, error.code, 15)
    progress = community.progress
    assert (community.mark(), progress.last_success_at, progress.last_error_code) == (14, here.clock.now(), error.code)
    community.square.fails.clear()
    assert community.collect().outcome == Outcome.SUCCEEDED
    assert community.progress.last_error is None


def test_failures_beside_the_newest_never_put_a_source_on_probation(quick: TownApp) -> None:
    community = Community(quick)
    community.square.post(5)
    community.square.fails["top 0"] = lambda: Missing("404", status=404)
    for _ in range(7):
        community.collect()
    assert (community.progress.failures_in_a_row, community.progress.next_due_at) == (0, None)


def test_told_to_wait_beside_the_newest_the_source_comes_back_when_it_was_told_to(quick: TownApp) -> None:
    community = Community(quick)
    community.square.post(5)
    until = quick.clock.now() + timedelta(minutes=7)
    community.square.fails["top 0"] = lambda: SlowDown("429", status=429, retry_at=until)
    community.collect()
    assert (community.progress.next_due_at, community.mark()) == (until, 4)


def test_gone_for_good_is_believed_of_either_walk(quick: TownApp) -> None:
    community = Community(quick)
    community.square.post(5)
    community.square.fails["top 0"] = lambda: Gone("410", status=410)
    community.collect()
    assert quick.app.store.sources.get(community.source.id).state == "retired"


def a_stop_is_asked_for() -> CatchmentError:
    return Stopped("a stop was asked for")


def the_process_is_killed() -> BaseException:
    return SystemExit("killed")


@pytest.mark.parametrize("what_happens", [a_stop_is_asked_for, the_process_is_killed])
def test_between_the_two_walks_the_first_is_kept_and_the_source_is_as_due_as_before(
    here: TownApp, what_happens: Callable[[], BaseException]
) -> None:
    community = Community(here)
    community.square.post(15)
    community.square.fails["top 0"] = what_happens
    visitor, presence = here.app.visitor(), here.app.presence
    run_id = here.app.store.runs.begin("test", "test", presence.owner_id, here.clock.now())
    (claimed,) = here.app.store.sources.claim([community.source.id], presence.owner_id, here.clock.now())
    try:
        visitor.visit(claimed, run_id)
    except SystemExit:
        presence.leave(here.clock.now())
        here.restart()
    assert (community.stored(), community.mark()) == (set(range(15)), 14)
    assert (community.progress.last_polled_at, community.progress.next_due_at) == (None, None)
    community.square.fails.clear()
    community.square.asked.clear()
    (again,) = here.collect()
    assert (again.outcome, again.counts.new) == (Outcome.SUCCEEDED, 0)
    assert community.square.asked == ["new 0", "top 0", "top 10"]


# ── with and without a key ────────────────────────────────────────────────────────────────────────────────────────


def test_without_a_key_the_feed_is_read_as_the_window_that_it_is(here: TownApp) -> None:
    community = Community(here, has_key=False)
    community.square.post(8)
    community.collect()
    assert (community.square.asked, community.mark(), here.gaps()) == (["feed 0"], 7, [])
    # A walk down pages would have gone on, and then told of a platform's reach; a window can only be overflown.
    community.square.post(WINDOW + 4)
    community.collect()
    (gap,) = here.gaps()
    assert (gap.certainty, gap.cause, community.square.asked) == ("possible", "window", ["feed 0"])


def test_a_key_that_comes_later_takes_over_from_the_same_watermark(here: TownApp) -> None:
    community = Community(here, has_key=False)
    community.square.post(8)
    community.collect()
    here.app.store.credentials.add("square", "ours", "k", b"sealed", here.clock.now(), terms=Terms(is_shared=True))
    community.square.post(2 * PAGE)
    community.collect()
    assert community.square.asked[:3] == ["new 0", "new 10", "new 20"]
    assert (set(range(3, 28)) <= community.stored(), community.mark(), here.gaps()) == (True, 27, [])
    here.app.store.credentials.remove("ours", here.clock.now())
    community.square.post(2)
    result = community.collect()
    assert (community.square.asked, result.counts.new, community.mark(), here.gaps()) == (["feed 0"], 2, 29, [])


def test_there_is_a_key_if_the_source_has_one_or_the_pool_of_its_platform(here: TownApp) -> None:
    community = Community(here, has_key=False)
    community.square.post(3)
    credentials, shared = here.app.store.credentials, Terms(is_shared=True)
    credentials.add("another", "theirs", "k", b"sealed", here.clock.now(), terms=shared)
    community.collect()
    credentials.add("square", "ours", "k", b"sealed", here.clock.now(), terms=shared)
    community.collect()
    credentials.remove("ours", here.clock.now())
    community.collect()
    here.app.store.sources.change(community.source.id, credential="its own")
    community.collect()
    assert community.square.keys == [False, False, True, True, False, False, True, True]
