"""The service: X of the playground, collected through either API over real HTTP; stored is what was shown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, cast

import pytest

from catchment.collect.tasks import request_task
from catchment.credentials.secret import Secret
from catchment.errors import InvalidInput
from catchment.model import Gap, Outcome, Source, SourceState, WalkPlan
from catchment.platforms import x
from catchment.platforms.x import parser
from catchment.playground.faults import Cue
from catchment.playground.log import read_log
from catchment.playground.sites.x import (
    LIST,
    XSimulator,
    fate,
    has_video,
    reference_of,
    tweet_id,
    user_id,
    user_name,
    video_of,
)
from catchment.playground.world import Habits, Place, Post, World
from catchment.policy.coverage import outlook_of, repair_message
from catchment.store.credentials import Terms
from catchment.store.sources.gaps import GapView
from tests.web.browser import plain
from tests.web.desk import Desk
from tests.x.scene import SERVICES, START, WORLD, Scene, somebody

pytestmark = pytest.mark.long

QUIET = Habits(edited=0.0, reverted=0.0, removed=0.0, restored=0.0, late=0.0, future=0.0, hostile=0.0)


@pytest.mark.parametrize("service", SERVICES)
def test_visits_store_every_post_once_and_edits_as_versions_of_it(scene: Scene, service: str) -> None:
    place = somebody("usual")
    source = scene.follow(f"@{user_name(WORLD, place, START)}", service, limit=1000)
    for _ in range(6):
        assert scene.visit(source).outcome in (Outcome.SUCCEEDED, Outcome.UNCHANGED)
        scene.clock.advance(6 * 3600)
    assert scene.visit(source).error is None
    stored = {item["external_id"]: item for item in scene.items(source)}
    now = scene.clock.now()
    shown = [post for post in WORLD.posts(place) if post.shown_from <= now and not post.is_removed(now)]
    assert all(_is_stored(post, stored) for post in shown)
    assert len(stored) == sum(_is_stored(post, stored) for post in WORLD.posts(place))
    assert {item["author"] for item in stored.values()} == {user_name(WORLD, place, START)}
    # A retweet has the words of another user.
    own = {
        external_id: " ".join(item["text"].split())
        for external_id, item in stored.items()
        if not any(reference["relation"] == "retweeted" for reference in item["references"])
    }
    first = {str(tweet_id(post)): post for post in shown}
    unedited = {key: " ".join(post.versions[0].text.split()) for key, post in first.items() if len(post.versions) == 1}
    assert own.items() >= {(key, text) for key, text in unedited.items() if key in own}
    assert max(item["version"] for item in stored.values()) > 1


def _is_stored(post: Any, stored: dict[str, Any]) -> bool:
    return any(str(tweet_id(post, version.number)) in stored for version in post.versions)


@pytest.mark.parametrize("service", SERVICES)
def test_references_carry_what_was_shown_of_the_other_post(scene: Scene, service: str) -> None:
    source = scene.follow(str(LIST), service, kind="twitter_list", limit=300)
    assert scene.visit(source).outcome == Outcome.SUCCEEDED
    found = [(item, reference) for item in scene.items(source) for reference in item["references"]]
    whole = [(item, reference) for item, reference in found if reference["text"]]
    assert {reference["relation"] for _, reference in found} == {"retweeted", "quoted", "replied_to"}
    assert set(found[0][1]) >= {
        "relation", "external_id", "text", "author", "author_display_name", "created_at", "media",
    }  # fmt: skip
    assert whole
    # A retweet says what the original says, in full, and shows its pictures.
    retweets = [(item, to) for item, to in whole if to["relation"] == "retweeted"]
    assert all(item["text"] == to["text"] for item, to in retweets)
    assert [item["media"] for item, _ in retweets] == [to["media"] for _, to in retweets]
    # Everything about the other post is as the world has it.
    now = scene.clock.now()
    posts = {
        str(tweet_id(post, version.number)): post
        for place in WORLD.places
        for post in WORLD.posts(place)
        for version in post.versions
    }
    for _, to in whole:
        post = posts[to["external_id"]]
        place = WORLD.places[post.place]
        assert " ".join(to["text"].split()) == " ".join((post.version(now).text or post.version(now).title).split())
        assert (to["author"], to["author_display_name"]) == (user_name(WORLD, place, now), place.name)
        assert datetime.fromisoformat(to["created_at"]) == post.shown_from.replace(microsecond=0)
        media = [video_of(post) if has_video(post) else post.picture] if post.picture else []
        assert [medium["url"] for medium in to["media"]] == media
    assert any(to["media"] for _, to in whole)


@pytest.mark.parametrize("service", SERVICES)
def test_a_profile_is_asked_for_once_and_the_number_outlives_a_new_name(scene: Scene, service: str) -> None:
    place = next(
        place
        for place in WORLD.places
        if fate(WORLD, place)[0] == "renamed" and WORLD.posts(place)[-1].shown_from > fate(WORLD, place)[1]
    )
    source = scene.follow(f"@{user_name(WORLD, place, START)}", service)
    scene.visit(source)
    assert scene.progress(source).cursor["user_id"] == str(user_id(place))
    scene.clock.advance((WORLD.end - scene.clock.now()).total_seconds())
    scene.visit(source)
    assert profiles(scene) == 1
    assert scene.app.store.sources.get(source.id).target == f"@renamed_{place.number}"
    assert scene.app.store.sources.get(source.id).name == f"@renamed_{place.number}"


def profiles(scene: Scene) -> int:
    return sum("/username/" in path or "/user/info" in path for path in scene.asked())


@pytest.mark.parametrize("service", SERVICES)
def test_a_profile_is_not_paid_for_again_because_the_posts_did_not_come(
    scene_of: Callable[..., Scene], service: str
) -> None:
    scene = scene_of(script=[Cue("bad_gateway", path="*tweets", last=4)])
    source = scene.follow(f"@{user_name(WORLD, somebody('usual'), START)}", service)
    assert scene.visit(source).outcome == Outcome.FAILED
    scene.clock.advance(3600)
    assert scene.visit(source).outcome == Outcome.SUCCEEDED
    assert profiles(scene) == 1


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("vanished", "there is no user @{name} on X"),
        ("suspended", "X has suspended the account @{name}"),
        ("protected", "@{name} protects its posts"),
    ],
)
def test_each_reason_why_a_user_cannot_be_read_has_a_sentence_of_its_own(
    scene: Scene, service: str, what: str, words: str
) -> None:
    place = somebody(what, 0)
    scene.clock.advance((fate(WORLD, place)[1] - scene.clock.now()).total_seconds() + 1)
    source = scene.follow(f"@{user_name(WORLD, place, scene.clock.now())}", service)
    assert scene.visit(source).outcome == Outcome.FAILED
    assert words.format(name=user_name(WORLD, place, scene.clock.now())) in str(scene.progress(source).last_error)


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    ("what", "words"),
    [("vanished", "there is no user"), ("suspended", "X has suspended"), ("protected", "protects its posts")],
)
def test_a_user_who_is_lost_after_some_visits_is_noticed(scene: Scene, service: str, what: str, words: str) -> None:
    place = next(
        place
        for place in WORLD.places
        if fate(WORLD, place)[0] == what
        and WORLD.posts(place)[0].shown_from < scene.clock.now() < fate(WORLD, place)[1]
    )
    source = scene.follow(f"@{user_name(WORLD, place, START)}", service)
    assert scene.visit(source).outcome == Outcome.SUCCEEDED
    stored = len(scene.items(source))
    scene.clock.advance((fate(WORLD, place)[1] - scene.clock.now()).total_seconds() + 1)
    assert scene.visit(source).outcome == Outcome.FAILED
    assert words in str(scene.progress(source).last_error)
    assert len(scene.items(source)) == stored > 0


@pytest.mark.parametrize("service", SERVICES)
def test_unknown_suspended_and_silent_users_have_three_sentences_on_their_pages(scene: Scene, service: str) -> None:
    silent = WORLD.places[0]
    first = min(post.shown_from for post in WORLD.posts(silent))
    scene.clock.advance((first - timedelta(days=1) - scene.clock.now()).total_seconds())
    names = [f"@{user_name(WORLD, silent, START)}", "@nobody_of_this"]
    sources = [scene.follow(name, service) for name in names]
    for source in sources:
        scene.visit(source)
    place = somebody("suspended", 0)
    scene.clock.advance((fate(WORLD, place)[1] - scene.clock.now()).total_seconds() + 1)
    sources.append(scene.follow(f"@{user_name(WORLD, place, START)}", service))
    scene.visit(sources[-1])
    for language, sentences in {
        "en": (parser.NOTHING_YET, "there is no user @nobody_of_this on X", "X has suspended the account"),
        "zh": ("该账号还没有发过帖子", "X 上没有用户 @nobody_of_this", "X 已冻结账号"),
    }.items():
        browser = Desk(cast(Any, scene)).browser(language)
        pages = [browser.get(f"/sources/{source.id}").text for source in sources]
        assert [[sentence in page for sentence in sentences] for page in pages] == [
            [True, False, False],
            [False, True, False],
            [False, False, True],
        ]


@pytest.mark.parametrize("service", SERVICES)
def test_somebody_who_never_posted_is_no_failure_and_says_so(scene: Scene, service: str) -> None:
    place = WORLD.places[0]
    first = min(post.shown_from for post in WORLD.posts(place))
    scene.clock.advance((first - timedelta(days=1) - scene.clock.now()).total_seconds())
    source = scene.follow(f"@{user_name(WORLD, place, START)}", service)
    assert scene.visit(source).outcome == Outcome.SUCCEEDED
    assert scene.progress(source).note == parser.NOTHING_YET


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(
    ("what", "words"),
    [("vanished", "there is no user"), ("suspended", "X has suspended"), ("protected", "protects its posts")],
)
def test_somebody_who_never_posted_and_is_lost_is_noticed_within_two_days(
    scene: Scene, service: str, what: str, words: str
) -> None:
    place = somebody(what, 0)
    first, lost = min(post.shown_from for post in WORLD.posts(place)), fate(WORLD, place)[1]
    scene.clock.advance((min(first, lost) - timedelta(hours=1) - scene.clock.now()).total_seconds())
    source = scene.follow(f"@{user_name(WORLD, place, START)}", service)
    assert scene.visit(source).outcome == Outcome.SUCCEEDED
    assert scene.progress(source).note == parser.NOTHING_YET
    scene.clock.advance((lost - scene.clock.now()).total_seconds() + 1)
    outcomes = []
    for _ in range(4):
        scene.clock.advance(13 * 3600)
        outcomes.append(scene.visit(source).outcome)
    assert outcomes[-1] == Outcome.FAILED
    assert words in str(scene.progress(source).last_error)


def test_the_profile_of_somebody_who_never_posted_is_looked_at_once_a_day(scene: Scene) -> None:
    place = WORLD.places[0]
    first = min(post.shown_from for post in WORLD.posts(place))
    scene.clock.advance((first - timedelta(days=6) - scene.clock.now()).total_seconds())
    source = scene.follow(f"@{user_name(WORLD, place, START)}", "twitterapi_io")
    for _ in range(5 * 8):
        assert scene.visit(source).error is None
        assert scene.progress(source).note == parser.NOTHING_YET
        scene.clock.advance(3 * 3600)
    assert 4 <= profiles(scene) <= 6


def test_an_account_without_credits_stops_all_requests_and_is_an_alert(scene_of: Callable[..., Scene]) -> None:
    scene = scene_of("credits-60-")
    places = [place for place in WORLD.places if fate(WORLD, place)[0] == "usual"][:4]
    sources = [scene.follow(f"@{user_name(WORLD, place, START)}", "twitterapi_io") for place in places]
    outcomes = [scene.visit(source).error_code for source in sources]
    assert "OUT_OF_CREDITS" in outcomes
    asked = len(scene.asked())
    assert scene.visit(sources[-1]).error_code == "COOKIE_EXHAUSTED"
    assert len(scene.asked()) == asked
    assert "P0" in {str(alert.severity) for alert in scene.app.store.alerts.page()}


@pytest.mark.parametrize("key", ["credits-60-", "cap-5-"])
def test_an_account_that_is_used_up_is_an_alert_until_somebody_pays_in_although_another_key_works(
    scene_of: Callable[..., Scene], key: str
) -> None:
    service = "twitterapi_io" if key.startswith("credits") else "x"
    scene = scene_of(key)
    keys, clock = scene.app.secrets, scene.clock
    places = [place for place in WORLD.places if fate(WORLD, place)[0] == "usual"][:4]
    sources = [scene.follow(f"@{user_name(WORLD, place, START)}", service) for place in places]
    for source in sources:
        scene.visit(source)
    keys.add(service, "spare", Secret.parse("spare-key"), clock.now(), terms=Terms(is_shared=True))
    spent = f"credential key-{service} used up"
    for _ in range(6):
        for source in sources:
            scene.visit(source)
        assert spent in {alert.subject for alert in scene.app.store.alerts.page()}
        clock.advance(7 * 3600)
    # Each time, one request looks whether that has changed; all others use the key that works.
    refused = [line for line in read_log(scene.log) if line.status in (402, 429)]
    assert 1 < len(refused) <= 7
    assert scene.app.store.alerts.page()[0].severity == "P0"
    scene.playground._site._simulators["x"]._spent[f"{key}{service}"] = -1_000_000
    clock.advance(25 * 3600)
    for source in (*sources, *sources):
        assert scene.visit(source).error is None
    assert spent not in {alert.subject for alert in scene.app.store.alerts.page()}


@pytest.mark.parametrize(("key", "service"), [("credits-0-", "twitterapi_io"), ("cap-0-", "x")])
def test_no_visit_fails_because_an_account_is_used_up_while_that_of_another_key_is_not(
    scene_of: Callable[..., Scene], key: str, service: str
) -> None:
    scene = scene_of(key)
    spare = Secret.parse("spare-key")
    scene.app.secrets.add(service, "spare", spare, scene.clock.now(), terms=Terms(is_shared=True))
    source = scene.follow(f"@{user_name(WORLD, somebody('usual'), START)}", service, limit=60)
    for _ in range(3):
        assert scene.visit(source).error is None
        # Whoever comes first after the cooldown finds the account still empty, each time anew.
        scene.clock.advance(25 * 3600)
    assert sum(line.status in (402, 429) for line in read_log(scene.log)) > 1


@pytest.mark.parametrize("codes", [["OUT_OF_CREDITS"], ["OUT_OF_CREDITS", "COOKIE_EXHAUSTED"]], ids=["soon", "later"])
def test_a_source_does_not_wait_for_the_next_month_of_one_key_when_another_is_added(
    scene_of: Callable[..., Scene], codes: list[str]
) -> None:
    scene = scene_of("cap-0-")
    source = scene.follow(f"@{user_name(WORLD, somebody('usual'), START)}", "x")
    assert [scene.visit(source).error_code for _ in codes] == codes
    spare = Secret.parse("spare-key")
    scene.app.secrets.add("x", "spare", spare, scene.clock.now(), terms=Terms(is_shared=True))
    scene.clock.advance(1801)
    (result,) = scene.app.scheduler().due("test", "test")
    assert (result.source_id, result.error) == (source.id, None)


@pytest.mark.parametrize(("key", "service"), [("credits-60-", "twitterapi_io"), ("cap-5-", "x")])
def test_an_account_that_is_used_up_is_left_alone_by_sources_that_name_it(
    scene_of: Callable[..., Scene], key: str, service: str
) -> None:
    scene = scene_of(key)
    places = [place for place in WORLD.places if fate(WORLD, place)[0] == "usual"][:3]
    names = [f"@{user_name(WORLD, place, START)}" for place in places]
    sources = [scene.follow(name, service, credential=f"key-{service}") for name in names]
    codes = [scene.visit(source).error_code for source in sources for _ in range(2)]
    assert codes.count("OUT_OF_CREDITS") == 1
    asked = len(scene.asked())
    scene.clock.advance(600)
    results = [scene.visit(source) for source in sources]
    assert {result.error_code for result in results} == {"COOKIE_EXHAUSTED"}
    assert "used up until" in str(results[0].error)
    assert len(scene.asked()) == asked
    # Later, one request looks whether somebody has paid in.
    scene.clock.advance(25 * 3600)
    assert [scene.visit(source).error_code for source in sources].count("OUT_OF_CREDITS") == 1
    assert len(scene.asked()) == asked + 1
    scene.playground._site._simulators["x"]._spent[f"{key}{service}"] = -1_000_000
    scene.clock.advance(25 * 3600)
    assert [scene.visit(source).error for source in sources] == [None] * 3


def test_the_monthly_cap_of_x_is_not_retried(scene_of: Callable[..., Scene]) -> None:
    scene = scene_of("cap-5-")
    source = scene.follow(f"@{user_name(WORLD, somebody('usual'), START)}", "x", limit=300)
    assert scene.visit(source).error_code in (None, "OUT_OF_CREDITS")
    scene.clock.advance(3600)
    assert scene.visit(source).error_code in ("OUT_OF_CREDITS", "COOKIE_EXHAUSTED")
    refused = [line for line in read_log(scene.log) if line.status == 429]
    assert len(refused) == 1


def test_a_free_account_waits_five_seconds_between_requests(scene_of: Callable[..., Scene]) -> None:
    scene = scene_of("free-")
    source = scene.follow(f"@{user_name(WORLD, somebody('usual'), START)}", "twitterapi_io", limit=60)
    assert scene.visit(source).outcome == Outcome.SUCCEEDED
    answered = [line.at for line in read_log(scene.log) if line.status == 200]
    assert len(answered) > 2
    assert all(later - earlier >= timedelta(seconds=5) for earlier, later in pairwise(answered))


def test_x_is_asked_only_for_what_is_newer(scene: Scene) -> None:
    source = scene.follow(f"@{user_name(WORLD, somebody('usual'), START)}", "x")
    scene.visit(source)
    before = scene.visit(source)
    assert before.counts.duplicate == 0
    assert before.error is None


# ── bookmarks ─────────────────────────────────────────────────────────────────────────────────────────────────────


def saved(scene: Scene) -> list[Post]:
    """What the owner of the key has saved by now, the newest first."""
    now = scene.clock.now()
    posts = [post for post in WORLD.posts(WORLD.places[0]) if post.shown_from <= now and not post.is_removed(now)]
    return sorted(posts, key=tweet_id, reverse=True)


def until_saved(scene: Scene, count: int) -> None:
    """Waits until so many have been saved since."""
    before = {post.id for post in saved(scene)}
    while len({post.id for post in saved(scene)} - before) < count:
        scene.clock.advance(3600)


def sizes(scene: Scene) -> list[int]:
    """How many posts the answers to requests for bookmarks had."""
    return [len(line.entries) for line in read_log(scene.log) if "/bookmarks" in line.path]


def test_bookmarks_are_read_down_to_the_limit_at_first_and_then_as_far_as_there_is_something_new(scene: Scene) -> None:
    until_saved(scene, 60)
    source = scene.follow("bookmarks", "x", kind="twitter_bookmarks", credential="key-x", limit=40)
    first = scene.visit(source)
    assert (first.outcome, first.counts.new) == (Outcome.SUCCEEDED, 40)
    assert scene.asked() == ["/2/users/me", f"/2/users/{user_id(WORLD.places[0])}/bookmarks"]
    for _ in range(3):
        assert scene.visit(source).error is None
    # Nothing was saved meanwhile: fewer are asked for.
    size = scene.progress(source).next_limit
    assert 10 <= size < 20
    until_saved(scene, 25)
    asked = len(sizes(scene))
    result = scene.visit(source)
    assert result.counts.new >= 25
    # Pages of that size, as long as everything on them is new.
    assert sizes(scene)[asked:] == [size] * (result.counts.new // size + 1)
    held = {item["external_id"]: item for item in scene.items(source)}
    assert [post for post in saved(scene)[:25] if not _is_stored(post, held)] == []
    assert scene.asked().count("/2/users/me") == 1


def test_bookmarks_are_of_the_user_whose_key_the_source_names(scene: Scene) -> None:
    keys, now = scene.app.secrets, scene.clock.now()
    # The only key is taken; of several, one must be named.
    assert scene.follow("bookmarks", "x", kind="twitter_bookmarks").credential == "key-x"
    keys.add("x", "another", Secret.parse("another-key"), now, terms=Terms(is_shared=True))
    scene.app.store.sources.set_state(1, SourceState.REMOVED, "removed by a person", now)
    with pytest.raises(InvalidInput, match=r"another.*key-x") as refused:
        scene.follow("bookmarks", "x", kind="twitter_bookmarks")
    assert refused.value.field == "credential"
    assert scene.follow("bookmarks", "x", kind="twitter_bookmarks", credential="another").credential == "another"


def test_a_key_without_a_user_is_told_so_when_bookmarks_are_asked_for(scene_of: Callable[..., Scene]) -> None:
    scene = scene_of("app-")
    source = scene.follow("bookmarks", "x", kind="twitter_bookmarks")
    result = scene.visit(source)
    assert result.error_code == "REFUSED"
    assert "the key of a user" in str(result.error)
    # The key is good for everything else.
    user = scene.follow(f"@{user_name(WORLD, somebody('usual'), START)}", "x")
    assert scene.visit(user).outcome == Outcome.SUCCEEDED


# ── gaps ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# From the second visit on, the pages of a timeline lead back to the first one.
LOOP = tuple(
    Cue(fault="looping_cursor", path=path, from_at=START + timedelta(days=2))
    for path in ("/2/users/*/tweets", "/twitter/user/last_tweets")
)


def gap_of(scene: Scene, service: str, days: float, **settings: Any) -> tuple[Place, Source, GapView]:
    """A user who posted more in these days than the pages led to."""
    place = next(
        place
        for place in WORLD.places
        if fate(WORLD, place)[0] == "usual"
        and 200 < sum(post.shown_from > START + timedelta(days=1) for post in WORLD.posts(place)) < 400
    )
    source = scene.follow(f"@{user_name(WORLD, place, START)}", service, limit=20, **settings)
    scene.visit(source)
    scene.clock.advance(days * 86_400)
    scene.visit(source)
    (gap,) = scene.app.store.gaps.page()
    return place, source, gap


@pytest.mark.parametrize("service", SERVICES)
def test_a_gap_is_repaired_by_search_and_all_posts_but_native_retweets_are_stored_once(
    scene_of: Callable[..., Scene], service: str
) -> None:
    scene = scene_of(script=LOOP)
    place, source, gap = gap_of(scene, service, 4)
    now = scene.clock.now()
    inside = [
        post for post in WORLD.posts(place) if gap.from_at <= post.shown_from <= gap.to_at and not post.is_removed(now)
    ]
    findable = [post for post in inside if reference_of(WORLD, WORLD.places, post)[0] != "retweeted"]
    stored = {item["external_id"] for item in scene.items(source)}
    assert sum(not _is_stored(post, dict.fromkeys(stored)) for post in findable) > 40
    audit = scene.app.floor_audit().run("test", is_repairing=True)
    assert (audit.repaired_gap_count, audit.gap_count) == (1, 1)
    items = scene.items(source)
    held = {item["external_id"]: item for item in items}
    assert len(held) == len(items)
    assert [post for post in findable if not _is_stored(post, held)] == []
    assert [post for post in inside if not _is_stored(post, held)]
    (closed,) = scene.app.store.gaps.page(include_closed=True)
    kind = scene.app.platforms.kind(source.kind)
    outlook = outlook_of(kind, closed.attempt_count, closed.closed_because)
    assert repair_message(outlook, kind, None, None) == "Repaired by search, which does not find native retweets."
    # The user's own timeline is not asked.
    searches = [path for path in scene.asked() if "search" in path]
    (repair,) = scene.app.store.gaps.repairs(gap.id)
    assert len(searches) == repair.request_count == repair.page_count


def test_posts_of_more_than_a_week_ago_are_searched_in_the_archive_which_not_every_account_may(
    scene_of: Callable[..., Scene],
) -> None:
    scene = scene_of("basic-", LOOP)
    _, source, gap = gap_of(scene, "x", 4)
    scene.clock.advance(8 * 86_400)
    audit = scene.app.floor_audit().run("test", is_repairing=True)
    assert (audit.failed_gap_count, scene.asked()[-1]) == (1, "/2/tweets/search/all")
    (left,) = scene.app.store.gaps.page()
    assert (left.closed_at, left.attempt_count) == (None, 1)
    assert "is not allowed to search posts of X older than a week" in str(left.last_error)
    # The key is as good as before.
    assert scene.visit(source).outcome in (Outcome.SUCCEEDED, Outcome.UNCHANGED)
    assert left.id == gap.id


@pytest.mark.parametrize(
    ("settings", "reach"), [({}, 3_200), ({"replies": False}, 800)], ids=["all", "without replies"]
)
def test_what_lies_beyond_the_reach_of_a_timeline_is_a_gap(
    scene_of: Callable[..., Scene], settings: dict[str, Any], reach: int
) -> None:
    world = World(7, START, 0, 6.0, QUIET, others={"x": 1})
    (place,) = world.places
    begin = START + timedelta(days=1)
    # A post every 6 seconds for six hours, of which X shows the newest ones.
    burst = range(int(begin.timestamp()) + 60, int(begin.timestamp()) + 6 * 3600, 6)
    world.rhythms = {place.number: [int(begin.timestamp()) - 60, *burst]}
    scene = scene_of(world=world)
    source = scene.follow(f"@{user_name(world, place, START)}", "x", limit=100, **settings)
    scene.visit(source)
    scene.clock.advance(6 * 3600)
    assert scene.visit(source).counts.new == reach
    simulator = XSimulator(world)
    posts = [post for post in world.posts(place) if not settings or simulator.relation(post) != "replied_to"]
    (gap,) = scene.app.store.gaps.newest()
    assert (gap.cause, gap.is_certain) == ("reach", True)
    shown = sorted(post.shown_from for post in posts)
    assert (gap.from_at, gap.to_at) == (begin - timedelta(seconds=60), shown[-reach])
    # Neither is the limit of the first visit a gap, nor is the rest asked for again.
    assert scene.visit(source).counts.new == 0
    (same,) = scene.app.store.gaps.newest()
    page = Desk(cast(Any, scene)).browser("en").get("/gaps").text
    assert (same.id, "The platform shows no older posts." in page) == (gap.id, True)


def test_a_list_cannot_be_searched(scene: Scene) -> None:
    source = scene.follow(str(LIST), "x", "twitter_list")
    gap = Gap(True, START, START + timedelta(days=1), "reach", ("1",))
    assert x.reach(source, gap, WalkPlan("list_tweets", 20), START) == []


# ── the wire ──────────────────────────────────────────────────────────────────────────────────────────────────────


# ── settings ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_settings_of_a_scraper_decide_who_is_read_how_often_and_how_much(scene: Scene) -> None:
    app, place = scene.app, somebody("usual", 60)
    name = user_name(WORLD, place, START)
    app.settings = replace(app.settings, scraper_usernames=(name,), scraper_limit=25, scraper_interval=45)
    app.follow_configured()
    app.follow_configured()
    [source] = app.store.sources.page(0, 10)
    assert (source[0].kind, source[0].target) == ("twitter_feed", f"@{name}")
    assert app.intervals()["twitter_feed"] == 45
    [result] = app.scheduler().due("test", "test")
    # Pages of twenty, until there are twenty-five.
    assert (result.outcome, result.counts.new) == (Outcome.SUCCEEDED, 40)


def test_switched_off_users_are_collected_on_request_only(scene: Scene) -> None:
    source = scene.follow(f"@{user_name(WORLD, somebody('usual'), START)}", "x")
    scene.app.settings = replace(scene.app.settings, is_scraper_enabled=False)
    assert scene.app.scheduler().due("test", "test") == []
    assert scene.visit(source).outcome == Outcome.SUCCEEDED
    app, name = scene.app, user_name(WORLD, somebody("renamed", 0), START)
    requested = request_task(app.store, app.platforms, "twitter_feed", [name], 10, scene.clock.now())
    app.task_runner().run()
    assert app.store.tasks.get(requested.task_id).state == "completed"


def test_configured_users_are_added_and_not_collected_while_they_are_switched_off(scene: Scene) -> None:
    app, name = scene.app, user_name(WORLD, somebody("usual"), START)
    app.settings = replace(app.settings, scraper_usernames=(name,), is_scraper_enabled=False)
    app.follow_configured()
    assert app.scheduler().requested("test", "test") == app.scheduler().due("test", "test") == []
    assert scene.asked() == []
    # They are collected as soon as they are switched on.
    app.settings = replace(app.settings, is_scraper_enabled=True)
    [result] = app.scheduler().due("test", "test")
    assert result.outcome == Outcome.SUCCEEDED


def test_switched_off_users_are_not_late_and_their_page_says_why(scene: Scene) -> None:
    source = scene.follow(f"@{user_name(WORLD, somebody('usual'), START)}", "x")
    scene.visit(source)
    scene.app.settings = replace(scene.app.settings, is_scraper_enabled=False)
    scene.clock.advance(10 * 3_600)
    for language, label, why in (
        ("en", "on request only", "SCRAPER_ENABLED=false: it is collected on request only"),
        ("zh", "仅按请求采集", "SCRAPER_ENABLED=false"),
    ):
        browser = Desk(cast(Any, scene)).browser(language)
        page = plain(browser.get(f"/sources/{source.id}").text)
        assert label in page
        assert why in page
        assert "late" not in plain(browser.get("/").text)


def test_the_figures_behind_the_adaptive_limit_are_on_the_page(scene: Scene) -> None:
    source = scene.follow(f"@{user_name(WORLD, somebody('usual'), START)}", "twitterapi_io", limit=20)
    for _ in range(2):
        scene.visit(source)
    progress = scene.progress(source)
    assert (progress.last_fetched_count, progress.last_new_count, progress.empty_in_a_row) == (20, 0, 1)
    share = f"{round(100 * progress.new_share)} %"
    for language, words in {
        "en": (
            "2 in total",
            "20 items, 0 of them new",
            share,
            f"1 empty collections in a row; next time {progress.next_limit} items",
        ),
        "zh": ("共 2 次", "20 条，其中 0 条是新的", share, f"下次先请求 {progress.next_limit} 条"),
    }.items():
        page = plain(Desk(cast(Any, scene)).browser(language).get(f"/sources/{source.id}").text)
        assert [sentence for sentence in words if sentence not in page] == []
