"""The client: targets, requests, keys; what it does about errors."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from catchment.credentials.secret import Secret
from catchment.errors import InvalidInput
from catchment.model import Answer, Gap, Outcome, Progress, Target, WalkPlan, Watermark
from catchment.platforms import x
from catchment.platforms.x import parser
from catchment.playground.faults import Cue
from catchment.playground.log import read_log
from catchment.playground.sites.x import user_name
from tests.x.asking import BOOKMARKS, FEED, LIST, NOW, first, source_of
from tests.x.scene import SERVICES, START, WORLD, Scene, somebody


@pytest.mark.parametrize(
    ("typed", "kind", "address"),
    [
        ("@NASA", FEED, "@nasa"),
        ("nasa", FEED, "@nasa"),
        ("84839422", FEED, "@84839422"),
        ("84839422", LIST, "84839422"),
        ("https://x.com/NASA", FEED, "@nasa"),
        ("https://x.com/NASA/with_replies?lang=en", FEED, "@nasa"),
        ("mobile.twitter.com/NASA", FEED, "@nasa"),
        ("https://www.twitter.com/@NASA", FEED, "@nasa"),
        ("https://m.twitter.com/i/lists/84839422", LIST, "84839422"),
        ("bookmarks", BOOKMARKS, "bookmarks"),
        ("https://x.com/i/bookmarks", BOOKMARKS, "bookmarks"),
    ],
)
def test_a_target_is_understood_as_the_kind_that_was_named(typed: str, kind: str, address: str) -> None:
    target = x.understand(typed, kind)
    assert (target.kind, target.address) == (kind, address)
    assert x.understand(address, kind).address == address


@pytest.mark.parametrize(("typed", "kind"), [("@nasa", FEED), ("https://x.com/nasa", FEED), ("x.com/i/lists/5", LIST)])
def test_what_is_clearly_on_x_needs_no_kind(typed: str, kind: str) -> None:
    assert x.understand(typed, None).kind == kind


@pytest.mark.parametrize(
    ("typed", "kind"),
    [
        ("nasa", None),
        ("84839422", None),
        ("bookmarks", None),
        ("@nasa", LIST),
        ("https://x.com/nasa", LIST),
        ("https://x.com/i/lists/5", FEED),
        ("https://x.com/nasa/status/1", FEED),
        ("https://x.com/home", FEED),
        ("https://x.com/nasa/lists/moon", None),
        ("https://x.com/nasa/lists/moon", FEED),
        ("https://x.com/nasa/lists", LIST),
        ("https://example.org/nasa", FEED),
        ("@a_name_that_is_too_long", FEED),
        ("0", LIST),
        ("mine", BOOKMARKS),
    ],
)
def test_anything_else_is_refused_with_what_would_be_right(typed: str, kind: str | None) -> None:
    with pytest.raises(InvalidInput) as failure:
        x.understand(typed, kind)
    assert failure.value.field == "target"
    assert failure.value.helps


def test_a_source_is_read_through_the_service_that_has_a_key() -> None:
    user = source_of(FEED, "@nasa")
    assert first(user, None, "x").url == "https://api.x.com/2/users/by/username/nasa"
    assert first(user, None, "twitterapi_io").url == "https://api.twitterapi.io/twitter/user/info"
    assert first(user, None, "x", "twitterapi_io").service == "twitterapi_io"
    assert first(source_of(FEED, "@nasa", service="x"), None, "twitterapi_io").service == "x"
    assert first(source_of(BOOKMARKS, "bookmarks"), None, "twitterapi_io").service == "x"


def test_a_known_user_is_asked_for_by_number_and_x_only_for_newer_posts() -> None:
    progress = Progress(cursor={"user_id": "11348282"}, watermark=Watermark(NOW, ("1900000000000000007", "12")))
    asked = first(source_of(FEED, "@nasa", service="x", replies=False), progress)
    assert asked.url == "https://api.x.com/2/users/11348282/tweets"
    assert asked.listing == "tweets_without_replies"
    assert {name: asked.params.get(name) for name in ("since_id", "exclude", "max_results")} == {
        "since_id": "1900000000000000007",
        "exclude": "replies",
        "max_results": "100",
    }
    flat = first(source_of(FEED, "@nasa", service="twitterapi_io"), progress)
    assert flat.params == {"userId": "11348282", "includeReplies": "true", "cursor": ""}


@pytest.mark.parametrize(
    ("affordable", "page", "found"), [(None, "100", "100"), (500, "100", "100"), (12, "12", "12"), (3, "5", "10")]
)
def test_x_is_asked_for_no_more_posts_at_once_than_the_caps_allow(
    affordable: int | None, page: str, found: str
) -> None:
    user = source_of(FEED, "@nasa", service="x")
    known = Progress(cursor={"user_id": "11348282"}, watermark=Watermark(NOW, ("12",)))
    plan = WalkPlan("tweets", 100, affordable={} if affordable is None else {"x": affordable})
    assert [request.params["max_results"] for request in x.first(user, known, plan)] == [page]
    gap = Gap(True, NOW - timedelta(days=2), NOW - timedelta(days=1), "money")
    assert [request.params["max_results"] for request in x.reach(user, gap, plan, NOW)] == [found]


@pytest.mark.parametrize(
    ("checked_at", "note", "is_checked"),
    [
        (NOW - timedelta(hours=23), parser.NOTHING_LEFT, False),
        (NOW - timedelta(hours=25), parser.NOTHING_LEFT, True),
        (NOW - timedelta(hours=25), parser.NOTHING_YET, True),
        (None, None, False),
    ],
)
def test_the_profile_of_an_empty_account_is_checked_once_a_day(
    checked_at: datetime | None, note: str | None, is_checked: bool
) -> None:
    cursor = {"user_id": "783214"} | ({"note": note} if note else {})
    cursor |= {"checked_at": int(checked_at.timestamp())} if checked_at else {}
    progress = Progress(cursor=cursor, last_polled_at=NOW, watermark=Watermark(NOW, ("12",)))
    asked = first(source_of(FEED, "@ada", service="twitterapi_io"), progress)
    assert asked.url.endswith("/twitter/user/info") == is_checked
    # X's own API says by itself what is wrong with a user.
    assert first(source_of(FEED, "@ada", service="x"), progress).url.endswith("/783214/tweets")
    if checked_at and not is_checked:
        empty = Answer(200, {}, b'{"data": {"tweets": []}}', asked.url, NOW)
        reading = x.read(empty, asked)
        assert (reading.follow, reading.cursor) == ((), cursor)


@pytest.mark.parametrize("stored", ["sesame-4711", "Bearer sesame-4711", "X-API-Key: sesame-4711"])
def test_a_key_is_sent_where_its_service_expects_it(stored: str) -> None:
    secret = Secret.parse(stored)
    for service, header in (
        ("x", {"Authorization": "Bearer sesame-4711"}),
        ("twitterapi_io", {"X-API-Key": "sesame-4711"}),
    ):
        request = first(source_of(FEED, "@nasa", service=service))
        assert x.dress(request, secret, NOW, "").headers == header


def test_the_target_of_a_list_names_it() -> None:
    assert x.understand("5", LIST) == Target(LIST, "5", "X list 5")


def followed(scene: Scene, service: str) -> int:
    return scene.follow(f"@{user_name(WORLD, somebody('usual'), START)}", service, limit=10).id


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("fault", ["server_error", "unavailable", "slow_down_somehow", "reset", "torn_body"])
def test_a_passing_failure_is_retried_and_costs_nothing(
    scene_of: Callable[..., Scene], service: str, fault: str
) -> None:
    scene = scene_of(script=[Cue(fault, first=1, last=2)])
    source_id = followed(scene, service)
    (result,) = scene.app.scheduler().these([source_id], "test", "test")
    assert (result.outcome, result.counts.new) == (Outcome.SUCCEEDED, 20 if service == "twitterapi_io" else 10)


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(("fault", "code"), [("bad_gateway", "SERVER_TROUBLE"), ("slow_down_somehow", "SLOW_DOWN")])
def test_a_lasting_failure_is_asked_for_three_times_more_at_growing_intervals(
    scene_of: Callable[..., Scene], service: str, fault: str, code: str
) -> None:
    scene = scene_of(script=[Cue(fault)])
    source_id = followed(scene, service)
    (result,) = scene.app.scheduler().these([source_id], "test", "test")
    assert (result.outcome, result.error_code) == (Outcome.FAILED, code)
    times = [line.at for line in read_log(scene.log)]
    waits = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    # As long as planned, and a little more by chance.
    assert [planned <= wait < 1.5 * planned for planned, wait in zip((1, 2, 4), waits, strict=True)] == [True] * 3


@pytest.mark.parametrize("service", SERVICES)
def test_a_refused_key_is_asked_with_once_and_is_an_alert(scene_of: Callable[..., Scene], service: str) -> None:
    scene = scene_of(script=[Cue("login_needed")])
    source_id = followed(scene, service)
    (result,) = scene.app.scheduler().these([source_id], "test", "test")
    assert (result.outcome, result.error_code) == (Outcome.FAILED, "LOGIN_NEEDED")
    assert len(scene.asked()) == 1
    assert [alert.severity for alert in scene.app.store.alerts.page()]
