"""The dry run: `sources add --check`, and `check` in the API, ask first and follow only what answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catchment.app import App, open_app
from catchment.errors import (
    InvalidInput,
    LoginNeeded,
    Missing,
    NoFeed,
    PlatformError,
    SlowDown,
    Unreadable,
)
from catchment.platforms.feeds import USUAL_PATHS
from catchment.settings import Settings
from catchment.sources import add
from catchment.sources.preview import FIRST_ITEMS, PreviewView, SkippedView, preview_view
from tests.databases import sqlite_ready
from tests.hostile import Hostile, reply, status

POSTS = [
    {"id": 2**60 + 1, "title": "Second", "text": "Words " * 50, "author": "ada", "likes": 3, "created_at": 1770026400},
    {"id": 1, "title": "First", "body_html": "<p>Hi <script>x</script></p>"},
    None,
]


@pytest.fixture
def server() -> Iterator[Hostile]:
    with Hostile() as site:
        yield site


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    settings = Settings(
        home=tmp_path,
        database_url=sqlite_ready(f"sqlite:///{tmp_path / 'c.db'}"),
        is_private_allowed=True,
        retry_waits=(),
        master_key="a master key for tests",
    )
    with open_app(settings, "test") as app:
        yield app


def checked(app: App, kind: str, target: str, **more: Any) -> PreviewView:
    _, preview = add.follow_checked(app.visitor(), app.secrets, kind, target, app.clock.now(), **more)
    assert preview is not None
    return preview_view(preview)


def followed(app: App) -> list[str]:
    return [source.target for source, _ in app.store.sources.page()]


def test_the_first_items_are_shown_as_they_would_be_stored_and_nothing_is(app: App, server: Hostile) -> None:
    url = server.on("/posts", reply(json.dumps(POSTS).encode(), content_type="application/json"))
    found = checked(app, "custom_api", url)
    assert (found.shown, found.notes) == (3, ())
    assert [(item["external_id"], item["title"], item["text"]) for item in found.items] == [
        ("1152921504606846977", "Second", ("Words " * 50).strip()),
        ("1", "First", "Hi"),
    ]
    assert found.items[0]["created_at"] == "2026-02-02T10:00:00Z"
    assert (found.items[0]["author"], found.items[0]["score"]) == ("ada", 3)
    assert "script" not in found.items[1]["html"]
    assert found.skipped == (SkippedView("not an object", 1, "None"),)
    assert app.store.items.count() == 0
    assert followed(app) == [url]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (status(404), Missing),
        (status(401), LoginNeeded),
        (status(429), SlowDown),
        (reply(b"<html></html>"), Unreadable),
        (reply(b"[3, 4]"), Unreadable),
    ],
)
def test_what_does_not_answer_well_is_not_followed(app: App, server: Hostile, answer: Any, error: type) -> None:
    url = server.on("/posts", answer)
    with pytest.raises(error):
        checked(app, "custom_api", url)
    assert followed(app) == []


PAGE = b"<!doctype html><html><head><title>A shop</title></head><body><p>We sell tea.</p></body></html>"
ANNOUNCING = PAGE.replace(b"<title>", b'<link rel="alternate" type="application/rss+xml" href="/news"><title>')


@pytest.mark.parametrize(
    ("page", "elsewhere", "says"),
    [
        (PAGE, status(404), ""),
        (PAGE, status(500), ""),
        (PAGE, reply(PAGE), ""),
        (ANNOUNCING, status(404), ": {url}/news, which it announces, cannot be read"),
    ],
    ids=["nothing at the usual paths", "errors there", "the same page everywhere", "a feed that is missing"],
)
def test_a_site_without_a_feed_is_told_as_that_and_may_be_followed_as_a_page(
    app: App, server: Hostile, page: bytes, elsewhere: Any, says: str
) -> None:
    site = server.on("/shop/", reply(page, content_type="text/html"))
    for path in (*USUAL_PATHS, "/news"):
        server.on(path, elsewhere)
    with pytest.raises(NoFeed) as failure:
        checked(app, "rss", site)
    assert failure.value.what == f"no feed was found at {site}" + says.format(url=server.url)
    assert failure.value.helps == f"to add the page itself: `catchment sources add website {site}`"
    assert followed(app) == []


def test_a_visit_to_a_site_without_a_feed_says_the_same(app: App, server: Hostile) -> None:
    site = server.on("/", reply(PAGE, content_type="text/html"))
    for path in USUAL_PATHS:
        server.on(path, status(404))
    source, _ = add.follow(app.store, app.secrets, app.platforms, "rss", site, app.clock.now(), name="Shop")
    (result,) = app.scheduler().these([source.id], "test", "test")
    assert (result.error_code, result.error) == (
        "NO_FEED",
        f"Shop (source 1): no feed was found at {site} — "
        f"to add the page itself: `catchment sources add website {site}`",
    )


@pytest.mark.parametrize("code", [404, 410, 429, 500, 503])
def test_what_helps_before_a_source_is_added_speaks_of_no_source(app: App, server: Hostile, code: int) -> None:
    with pytest.raises(PlatformError) as failure:
        checked(app, "rss", server.on("/feed", status(code)))
    assert failure.value.helps
    for words in ("requested again", "retried", "new address", "remove", "this one"):
        assert words not in failure.value.helps


def test_a_wrong_setting_is_refused_before_anybody_is_asked(app: App, server: Hostile) -> None:
    url = server.on("/posts", reply(b"[]"))
    with pytest.raises(InvalidInput, match="JMESPath"):
        checked(app, "custom_api", url, settings={"items": "a["})
    assert server.seen == []


def test_a_credential_that_was_tried_at_another_host_a_moment_ago_is_sent_to_the_host_of_the_new_source(
    app: App, server: Hostile
) -> None:
    from catchment.credentials.secret import Secret

    url = server.on("/posts", reply(json.dumps(POSTS).encode(), content_type="application/json"))
    app.secrets.add("custom_api", "mine", Secret.parse("a-token-of-ours-1234"), app.clock.now())
    elsewhere = url.replace("127.0.0.1", "localhost")
    # The first request reserves one use of the credential, the second one two: one is left.
    for _ in range(2):
        add.tried(app.visitor(), app.secrets, "custom_api", elsewhere, app.clock.now(), credential="mine")
    checked(app, "custom_api", url, credential="mine")
    hosts = [seen.headers["host"].split(":")[0] for seen in server.seen]
    assert hosts == ["localhost", "localhost", "127.0.0.1"]
    assert app.store.credentials.get("mine").hosts == (url.split("/")[2],)


def test_the_credential_is_sent_in_the_header_that_is_named_and_one_made_for_the_check_does_not_outlive_it(
    app: App, server: Hostile
) -> None:
    from catchment.credentials.secret import Secret

    url = server.on("/posts", reply(json.dumps(POSTS).encode()), status(403))
    app.secrets.add("custom_api", "mine", Secret.parse("abcdefgh"), app.clock.now())
    checked(app, "custom_api", url, credential="mine", settings={"header": "X-Api-Key"})
    assert server.seen[0].headers["x-api-key"] == "abcdefgh"
    assert "authorization" not in server.seen[0].headers
    elsewhere = server.on("/private", status(403))
    with pytest.raises(Exception, match="403"):
        checked(app, "custom_api", elsewhere.replace("http://", "http://me:secretword@"))
    assert [row.credential.name for row in app.store.credentials.page()] == ["mine"]


def test_what_is_followed_already_is_not_asked_again(app: App, server: Hostile) -> None:
    url = server.on("/posts", reply(b"[]"))
    add.follow(app.store, app.secrets, app.platforms, "custom_api", url, app.clock.now())
    source, preview = add.follow_checked(app.visitor(), app.secrets, "custom_api", url, app.clock.now())
    assert (source.target, preview, server.seen) == (url, None, [])


def test_of_a_listing_of_ids_the_first_few_are_asked_for(tmp_path: Path, server: Hostile) -> None:
    for number in range(1, 40):
        story = {"id": number, "type": "story", "title": f"Story {number}", "by": "ada", "time": 1770026400 + number}
        server.on(f"/v0/item/{number}.json", reply(json.dumps(story).encode(), content_type="application/json"))
    server.on("/v0/newstories.json", reply(json.dumps([*range(39, 0, -1)]).encode(), content_type="application/json"))
    settings = Settings(
        home=tmp_path,
        database_url=sqlite_ready(f"sqlite:///{tmp_path / 'c.db'}"),
        base_urls={"hackernews": server.url},
        retry_waits=(),
    )
    with open_app(settings, "test") as app:
        found = checked(app, "hackernews", "new")
        assert [item["title"] for item in found.items] == [
            f"Story {number}" for number in range(39, 39 - FIRST_ITEMS, -1)
        ]
        assert found.shown == 39
        assert len(server.seen) == 1 + FIRST_ITEMS
