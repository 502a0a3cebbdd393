"""More about items: replies are asked for where a post is new or changed, within bounds, and owed until they came."""

from __future__ import annotations

from datetime import timedelta

import pytest

from catchment.collect import follow_ups
from catchment.collect.detail_fetch import Detail
from catchment.collect.follow_ups import MOST_A_VISIT, MOST_ABOUT_ONE, after_answer
from catchment.errors import (
    LoginNeeded,
    Missing,
    PlatformError,
    ServerTrouble,
    SlowDown,
    Stopped,
)
from catchment.model import (
    Counts,
    FollowUp,
    Outcome,
    Reading,
    Request,
    Target,
)
from catchment.policy import schedule
from catchment.store.items.deletion import Forget
from tests.collect.communities import START, Community
from tests.town import TownApp


def followed(here: TownApp, **more: object) -> Community:
    return Community(here, replies=True, **{"sort": "new", **more})


def owed(community: Community) -> int:
    return community.here.app.store.follow_ups.count(community.source.id)


def test_the_replies_of_new_posts_are_asked_for_and_stored_with_the_visit(here: TownApp) -> None:
    community = followed(here)
    community.square.post(3)
    community.square.replies = {1: 2, 2: 1}
    result = community.collect()
    assert sorted(community.square.replies_asked) == [" 1", " 2"]
    assert community.replies() == {"1-0", "1-1", "2-0"}
    assert (result.outcome, result.counts, result.requests) == (Outcome.SUCCEEDED, Counts(new=6), 3)
    assert (community.mark(), owed(community)) == (2, 0)


def only_the_score_moves(community: Community) -> None:
    community.square.scores[1] = 9


def a_reply_is_written(community: Community) -> None:
    community.square.replies[1] = 2


def the_post_is_edited(community: Community) -> None:
    community.square.texts[1] = "second thoughts"


@pytest.mark.parametrize(
    ("what_happens", "asked"), [(only_the_score_moves, []), (a_reply_is_written, [" 1"]), (the_post_is_edited, [" 1"])]
)
def test_replies_are_asked_for_again_only_where_something_was_replied_or_edited(
    here: TownApp,
    what_happens,
    asked: list[str],  # type: ignore[no-untyped-def]
) -> None:
    community = followed(here)
    community.square.post(3)
    community.square.replies = {1: 1, 2: 1}
    community.collect()
    what_happens(community)
    community.collect()
    assert community.square.replies_asked == asked


def test_a_source_with_replies_asks_for_those_of_posts_that_another_source_stored(here: TownApp) -> None:
    without = Community(here, sort="new")
    without.square.post(2)
    without.square.replies = {1: 2}
    without.collect()
    assert (without.square.replies_asked, without.replies()) == ([], set())
    target = Target("square", "the same square")
    source, _ = here.app.store.sources.follow(
        target, "square", here.clock.now(), settings={"sort": "new", "replies": True}, credential="ours"
    )
    here.collect(source)
    here.collect(source)
    assert (without.square.replies_asked, without.replies()) == ([" 1"], {"1-0", "1-1"})


def test_a_post_that_both_walks_show_is_asked_about_once(quick: TownApp) -> None:
    community = followed(quick, sort="top")
    community.square.post(3)
    community.square.replies = {2: 1}
    community.square.top = [2, 1]
    community.collect()
    assert (community.square.asked, community.square.replies_asked) == (["new 0", "top 0"], [" 2"])


def test_what_only_the_ranked_listing_shows_is_asked_about_as_well(quick: TownApp) -> None:
    community = followed(quick, sort="top")
    community.square.post(3)
    community.square.replies = {77: 1}
    community.square.top = [77]
    community.collect()
    assert community.replies() == {"77-0"}


def test_how_often_a_community_posts_is_told_from_its_posts_alone(here: TownApp) -> None:
    community = followed(here, limit=100)
    community.square.post(12)
    community.square.replies = dict.fromkeys(range(12), 3)
    community.collect()
    community.square.post(1)
    community.collect()
    times = [START + timedelta(minutes=number) for number in reversed(range(13))]
    assert len(community.replies()) == 36
    assert community.progress.posts_per_day == schedule.posts_per_day(times, here.clock.now())


def test_what_an_answer_leaves_out_is_followed(here: TownApp) -> None:
    community = followed(here)
    community.square.post(2)
    community.square.replies = {1: 8}
    community.collect()
    assert community.square.replies_asked == [" 1", " 1 from 3", " 1 from 6"]
    assert (len(community.replies()), owed(community)) == (8, 0)


def test_beyond_the_bound_of_a_visit_the_rest_is_owed_said_and_asked_for_by_the_next_whoever_waited_longest_first(
    here: TownApp,
) -> None:
    community = followed(here, limit=100)
    community.square.post(MOST_A_VISIT + 15)
    community.square.replies = dict.fromkeys(range(MOST_A_VISIT + 15), 1)
    result = community.collect()
    assert (len(community.replies()), owed(community)) == (MOST_A_VISIT, 15)
    assert "follow-up requests for 15 items are pending" in result.notes
    # The listing comes to the letter as it came last time: what is owed is asked for all the same.
    result = community.collect()
    assert (len(community.replies()), owed(community), result.outcome) == (MOST_A_VISIT + 15, 0, Outcome.SUCCEEDED)
    assert community.collect().outcome == Outcome.UNCHANGED


def test_of_a_long_thread_the_rest_waits_behind_the_others(quick: TownApp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow_ups, "MOST_A_VISIT", 1)
    community = followed(quick)
    community.square.post(3)
    community.square.replies = {2: 1, 1: 7, 0: 1}
    asked = []
    for _ in range(5):
        community.collect()
        asked += community.square.replies_asked
    assert asked == [" 2", " 1", " 0", " 1 from 3", " 1 from 6"]


FIRST = Request("first", about_item="a")


def answered(*follow: Request, **said: bool) -> Detail:
    return Detail(FIRST, reading=Reading(follow=follow, **said))


@pytest.mark.parametrize(
    ("asked_count", "detail", "left", "given_up"),
    [
        (0, answered(), [], 0),
        (0, answered(Request("next")), ["next"], 0),
        (0, answered(Request("first")), [], 0),
        (0, answered(is_unfinished=True), ["first"], 0),
        (0, answered(Request("next"), is_torn=True), ["first"], 0),
        (MOST_ABOUT_ONE - 2, answered(Request("next"), Request("other")), ["next"], 1),
        (MOST_ABOUT_ONE - 1, answered(is_unfinished=True), [], 1),
    ],
)
def test_a_thread_that_leads_on_and_on_is_given_up(
    asked_count: int, detail: Detail, left: list[str], given_up: int
) -> None:
    before = FollowUp(1, "a", (FIRST,), asked_count)
    after, cut = after_answer(before, detail)
    assert ([request.url for request in after.requests], after.asked_count, cut) == (left, asked_count + 1, given_up)


# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_cannot_be_had_is_said_and_let_go(here: TownApp) -> None:
    community = followed(here)
    community.square.post(3)
    community.square.replies = {1: 1, 2: 1}
    community.square.fails[" 1"] = lambda: Missing("404", status=404)
    result = community.collect()
    assert (result.outcome, community.replies(), owed(community)) == (Outcome.SUCCEEDED, {"2-0"}, 0)
    assert "follow-up requests failed: MISSING (1)" in result.notes


def test_what_fails_for_a_moment_stays_owed(here: TownApp) -> None:
    community = followed(here)
    community.square.post(3)
    community.square.replies = {1: 1, 2: 1}
    community.square.fails[" 1"] = lambda: ServerTrouble("500", status=500)
    community.collect()
    assert (community.replies(), owed(community)) == ({"2-0"}, 1)
    community.square.fails.clear()
    community.collect()
    assert (community.replies(), owed(community)) == ({"1-0", "2-0"}, 0)


def test_told_to_wait_the_visit_is_no_failure_and_the_rest_is_owed(here: TownApp) -> None:
    community = followed(here)
    community.square.post(3)
    community.square.replies = {1: 1}
    community.square.fails[" 1"] = lambda: SlowDown("429", status=429, retry_at=here.clock.now() + timedelta(minutes=9))
    result = community.collect()
    assert (result.outcome, community.mark(), owed(community)) == (Outcome.SUCCEEDED, 2, 1)
    assert "follow-up requests for 1 item are pending" in result.notes
    assert community.progress.next_due_at is None


@pytest.mark.parametrize("error", [LoginNeeded("401", status=401), Stopped("a stop was asked for")])
def test_what_ends_the_asking_takes_back_nothing(here: TownApp, error: PlatformError) -> None:
    community = followed(here)
    community.square.post(3)
    community.square.replies = {1: 1, 2: 1}
    community.square.fails[" 1"] = lambda: error
    result = community.collect()
    assert (result.error_code, community.mark(), community.replies()) == (error.code, 2, {"2-0"})
    community.square.fails.clear()
    community.collect()
    assert (community.replies(), owed(community)) == ({"1-0", "2-0"}, 0)


def test_a_kill_before_the_replies_came_loses_none(here: TownApp) -> None:
    community = followed(here)
    community.square.post(3)
    community.square.replies = {2: 1}
    community.square.fails[" 2"] = lambda: SystemExit("killed")
    presence = here.app.presence
    run_id = here.app.store.runs.begin("test", "test", presence.owner_id, here.clock.now())
    (claimed,) = here.app.store.sources.claim([community.source.id], presence.owner_id, here.clock.now())
    with pytest.raises(SystemExit):
        here.app.visitor().visit(claimed, run_id)
    presence.leave(here.clock.now())
    here.restart()
    community.square.fails.clear()
    # Nothing is new to the next visit, and what the one before it owes is asked for.
    (result,) = here.collect()
    assert (result.counts.new, community.replies(), owed(community)) == (1, {"2-0"}, 0)


def test_of_a_post_that_was_forgotten_nothing_is_owed(here: TownApp) -> None:
    community = followed(here)
    community.square.post(2)
    community.square.replies = {1: 1}
    community.square.fails[" 1"] = lambda: ServerTrouble("500", status=500)
    community.collect()
    here.app.store.deletion.forget(Forget("item", "square", "test", item_id=here.item("1")["id"]), here.clock.now())
    assert owed(community) == 0


def test_a_reply_that_two_answers_tell_differently_is_one_reply_with_its_history(here: TownApp) -> None:
    community = followed(here)
    community.square.post(3)
    community.square.replies = {1: 1, 2: 1}
    community.square.shown_as = {"1-0": "wander", "2-0": "wander"}
    result = community.collect()
    assert (community.replies(), result.counts) == ({"wander"}, Counts(new=4, updated=1))
    (reply,) = (item for item in here.items() if item["kind"] == "reply")
    said = [revision["text"] for revision in here.revisions("wander")]
    assert sorted((*said, reply["text"])) == ["1-0", "2-0"]
