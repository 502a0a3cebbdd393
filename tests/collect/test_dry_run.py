"""The dry run: `sources add --check`, and `check` in the API, ask first and follow only what answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catchment.collect import following, previewing
from catchment.errors import InvalidInput, LoginNeeded, Missing, SlowDown, Unreadable
from catchment.settings import Settings
from catchment.shop import Shop, open_shop
from tests.hostile import Hostile, reply, status

POSTS = [
    {"id": 2**60 + 1, "title": "Second", "text": "Words " * 50, "author": "ada", "likes": 3, "created_at": 1770026400},
    {"id": 1, "title": "First", "body_html": "<p>Hi <script>x</script></p>"},
    None,
]


@pytest.fixture
def server() -> Iterator[Hostile]:
    with Hostile() as one:
        yield one


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    settings = Settings(
        home=tmp_path,
        database_url=f"sqlite:///{tmp_path / 'c.db'}",
        is_private_allowed=True,
        retry_waits=(),
        master_key="a master key for tests",
    )
    with open_shop(settings, "test") as one:
        yield one


def checked(shop: Shop, kind: str, target: str, **more: Any) -> dict[str, Any]:
    _, preview = following.follow_checked(shop.visitor, shop.safe, kind, target, shop.clock.now(), **more)
    assert preview is not None
    return previewing.told(preview)


def followed(shop: Shop) -> list[str]:
    return [source.target for source, _ in shop.store.sources.page()]


def test_the_first_items_are_shown_as_they_would_be_stored_and_nothing_is(shop: Shop, server: Hostile) -> None:
    url = server.on("/posts", reply(json.dumps(POSTS).encode(), content_type="application/json"))
    found = checked(shop, "custom_api", url)
    assert (found["shown"], found["notes"]) == (3, [])
    assert [(one["external_id"], one["title"], one["text"]) for one in found["items"]] == [
        ("1152921504606846977", "Second", ("Words " * 50).strip()),
        ("1", "First", "Hi"),
    ]
    assert found["items"][0]["created_at"] == "2026-02-02T10:00:00Z"
    assert (found["items"][0]["author"], found["items"][0]["score"]) == ("ada", 3)
    assert "script" not in found["items"][1]["html"]
    assert found["skipped"] == [{"reason": "not an object", "count": 1, "example": "None"}]
    assert shop.store.items.count() == 0
    assert followed(shop) == [url]


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
def test_what_does_not_answer_well_is_not_followed(shop: Shop, server: Hostile, answer: Any, error: type) -> None:
    url = server.on("/posts", answer)
    with pytest.raises(error):
        checked(shop, "custom_api", url)
    assert followed(shop) == []


def test_a_wrong_setting_is_refused_before_anybody_is_asked(shop: Shop, server: Hostile) -> None:
    url = server.on("/posts", reply(b"[]"))
    with pytest.raises(InvalidInput, match="JMESPath"):
        checked(shop, "custom_api", url, settings={"items": "a["})
    assert server.seen == []


def test_the_credential_is_sent_in_the_header_that_is_named_and_one_made_for_the_check_does_not_outlive_it(
    shop: Shop, server: Hostile
) -> None:
    from catchment.vault.secret import Secret

    url = server.on("/posts", reply(json.dumps(POSTS).encode()), status(403))
    shop.safe.add("custom_api", "mine", Secret.parse("abcdefgh"), shop.clock.now())
    checked(shop, "custom_api", url, credential="mine", settings={"header": "X-Api-Key"})
    assert server.seen[0].headers["x-api-key"] == "abcdefgh"
    assert "authorization" not in server.seen[0].headers
    elsewhere = server.on("/private", status(403))
    with pytest.raises(Exception, match="403"):
        checked(shop, "custom_api", elsewhere.replace("http://", "http://me:secretword@"))
    assert [one.credential.name for one in shop.store.credentials.page()] == ["mine"]


def test_what_is_followed_already_is_not_asked_again(shop: Shop, server: Hostile) -> None:
    url = server.on("/posts", reply(b"[]"))
    following.follow(shop.store, shop.safe, shop.platforms, "custom_api", url, shop.clock.now())
    source, preview = following.follow_checked(shop.visitor, shop.safe, "custom_api", url, shop.clock.now())
    assert (source.target, preview, server.seen) == (url, None, [])


def test_of_a_listing_of_ids_the_first_few_are_asked_for(tmp_path: Path, server: Hostile) -> None:
    for number in range(1, 40):
        story = {"id": number, "type": "story", "title": f"Story {number}", "by": "ada", "time": 1770026400 + number}
        server.on(f"/v0/item/{number}.json", reply(json.dumps(story).encode(), content_type="application/json"))
    server.on("/v0/newstories.json", reply(json.dumps([*range(39, 0, -1)]).encode(), content_type="application/json"))
    settings = Settings(
        home=tmp_path,
        database_url=f"sqlite:///{tmp_path / 'c.db'}",
        base_urls={"hackernews": server.url},
        retry_waits=(),
    )
    with open_shop(settings, "test") as shop:
        found = checked(shop, "hackernews", "new")
        assert [one["title"] for one in found["items"]] == [
            f"Story {number}" for number in range(39, 39 - previewing.FIRST_ITEMS, -1)
        ]
        assert found["shown"] == 39
        assert len(server.seen) == 1 + previewing.FIRST_ITEMS
