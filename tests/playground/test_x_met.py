"""X of the playground, collected over real HTTP through either service: what is stored is what was shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from catchment.app import App, open_app
from catchment.credentials.secret import Secret
from catchment.model import Outcome, Source, VisitResult, as_json
from catchment.platforms.x import parser
from catchment.playground.faults import Moods
from catchment.playground.log import read_log
from catchment.playground.server import Playground
from catchment.playground.sites import Ask
from catchment.playground.sites.x import LIST, Voice, fate, tweet_id, user_id, user_name
from catchment.playground.world import Habits, Place, World
from catchment.settings import Settings
from catchment.sources.add import follow
from catchment.store.credentials import Terms
from tests.clocks import HandClock
from tests.databases import sqlite_ready

pytestmark = pytest.mark.long

START = datetime(2026, 3, 2, tzinfo=UTC)
SERVICES = ("x", "twitterapi_io")
HABITS = Habits(edited=0.2, reverted=0.0, removed=0.05, restored=0.0, late=0.0, future=0.0, hostile=0.0)
WORLD = World(5, START, 0, 6.0, HABITS, busy=6.0, others={"x": 150})


def somebody(what: str, least: int = 30) -> Place:
    """A user of that fate, with some posts on the first day."""
    return next(
        place
        for place in WORLD.places
        if fate(WORLD, place)[0] == what
        and sum(post.shown_from < START + timedelta(days=1) for post in WORLD.posts(place)) >= least
    )


class Scene:
    def __init__(self, folder: Path, key: str) -> None:
        self.clock = HandClock(START + timedelta(days=1))
        self.log = folder / "asked.jsonl"
        self.playground = Playground(WORLD, self.clock, Moods(5, 0.0), log=self.log)
        self.playground.start()
        settings = Settings(
            home=folder,
            database_url=sqlite_ready(f"sqlite:///{folder / 'catchment.db'}"),
            base_urls=dict.fromkeys(SERVICES, self.playground.url),
            master_key="a key for tests",
            retry_waits=(0.5,),
            rate_limits=dict.fromkeys(SERVICES, 10_000),
        )
        self.app: App = open_app(settings, "test", clock=self.clock)
        for service in SERVICES:
            secret = Secret.parse(f"{key}{service}")
            self.app.secrets.add(service, f"key-{service}", secret, self.clock.now(), terms=Terms(is_shared=True))

    def follow(self, target: str, service: str, kind: str = "twitter_feed", **settings: Any) -> Source:
        app = self.app
        given = {"service": service, **settings}
        return follow(app.store, app.secrets, app.platforms, kind, target, self.clock.now(), settings=given)[0]

    def visit(self, source: Source) -> VisitResult:
        (result,) = self.app.scheduler().these([source.id], "test", "test")
        return result

    def items(self, source: Source) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = as_json(self.app.store.items.newest(1000, source_id=source.id))
        return items

    def progress(self, source: Source) -> Any:
        return self.app.store.sources.with_progress(source.id)[1]

    def asked(self) -> list[str]:
        return [line.path for line in read_log(self.log)]

    def close(self) -> None:
        self.app.close()
        self.playground.close()


@pytest.fixture
def scene_of(tmp_path: Path) -> Iterator[Callable[..., Scene]]:
    scenes: list[Scene] = []

    def open_scene(key: str = "a-key-for-") -> Scene:
        scenes.append(Scene(tmp_path, key))
        return scenes[-1]

    yield open_scene
    for scene in scenes:
        scene.close()


@pytest.fixture
def scene(scene_of: Callable[..., Scene]) -> Scene:
    return scene_of()


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
    names = {user_name(WORLD, place, scene.clock.now()) for place in WORLD.places}
    assert {reference["author"] for _, reference in whole} <= names
    # A retweet says what the original says, in full.
    retweets = [(item, to) for item, to in whole if to["relation"] == "retweeted"]
    assert all(" ".join(item["text"].split()) == " ".join(to["text"].split()) for item, to in retweets)
    assert any(to["media"] for _, to in whole) == any(to["media"] for _, to in whole if to["author"])


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
    profiles = [path for path in scene.asked() if "username" in path or path.endswith("/user/info")]
    assert len(profiles) == 1
    assert scene.app.store.sources.get(source.id).target == f"@renamed_{place.number}"
    assert scene.app.store.sources.get(source.id).name == f"@renamed_{place.number}"


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
def test_somebody_who_never_posted_is_no_failure_and_says_so(scene: Scene, service: str) -> None:
    place = WORLD.places[0]
    first = min(post.shown_from for post in WORLD.posts(place))
    scene.clock.advance((first - timedelta(days=1) - scene.clock.now()).total_seconds())
    source = scene.follow(f"@{user_name(WORLD, place, START)}", service)
    assert scene.visit(source).outcome == Outcome.SUCCEEDED
    assert scene.progress(source).note == parser.NOTHING_YET


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


# ── the wire ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _keys(value: Any, path: str = "") -> set[str]:
    if isinstance(value, dict):
        return {f"{path}.{name}" for name in value} | {
            key for name, inner in value.items() for key in _keys(inner, f"{path}.{name}")
        }
    return {key for inner in value for key in _keys(inner, path)} if isinstance(value, list) else set()


def _said(path: str, query: str, **headers: str) -> Any:
    voice = Voice(WORLD)
    place = voice.find(path)
    assert place is not None
    return json.loads(voice.answer(place, Ask(path, query, headers, START + timedelta(days=3), "http://x")).body)


def test_every_key_of_x_occurs_in_recorded_answers(captures: Path) -> None:
    said = _said(f"/2/lists/{LIST}/tweets", "max_results=100", authorization="Bearer key")
    recorded: set[str] = set()
    for file in sorted((captures / "x-v2").glob("*.jsonl")):
        for line in file.read_text().splitlines():
            try:
                recorded |= _keys(json.loads(line))
            except ValueError:
                continue
    assert _keys(said) - recorded == set()


def test_every_key_of_twitterapi_io_occurs_in_recorded_answers(captures: Path) -> None:
    said = _said(
        "/twitter/user/last_tweets", f"userId={user_id(somebody('usual'))}&includeReplies=true", **{"x-api-key": "k"}
    )
    recorded = _keys(json.loads((captures / "twitterapi-io/last_tweets_2026-09.json").read_text()))
    recorded |= {".has_next_page", ".next_cursor"}
    for name in ("quote_2025-11", "retweet_with_video_2025-04"):
        body = json.loads((captures / f"twitterapi-io/{name}.json").read_text())
        recorded |= _keys({"data": {"tweets": body.get("tweets", [body])}})
    # Hashtags and pictures are as in the same form of version 1.1; those recorded have none.
    unknown = {key for key in _keys(said) - recorded if "hashtags" not in key and "extendedEntities" not in key}
    assert {key for key in unknown if ".quoted_tweet." not in key and ".retweeted_tweet." not in key} == set()


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
