"""What the playground says as X, in either language, looks like the real thing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.playground.sites import Ask, Distortion, Page, x
from catchment.playground.world import Place, World
from tests.platforms.x_oracle import documents
from tests.playground.shapes import Field, fields
from tests.x.scene import WORLD

START = datetime(2026, 1, 5, tzinfo=UTC)
AT = START + timedelta(days=6)


def test_an_old_copy_is_possible_of_a_list_and_not_of_the_page_that_a_cursor_leads_to() -> None:
    # A cursor is used once, so that no cache can have the page. From an old one, posts between both pages would be
    # missing, and nobody could tell.
    world = World(3, START, 0, 7, others={"x": 1})
    simulator, place = x.XSimulator(world), world.places[0]

    def answer(query: str, ago: timedelta) -> Page:
        path, headers = f"/2/users/{x.user_id(place)}/tweets", {"authorization": "Bearer AAAAkey"}
        return simulator.answer(place, Ask(path, f"max_results=5{query}", headers, AT, "http://x", Distortion(ago=ago)))

    first = answer("", timedelta())
    assert answer("", timedelta(days=1)).entries != first.entries
    cursor = f"&pagination_token={json.loads(first.body)['meta']['next_token']}"
    assert answer(cursor, timedelta(days=1)).entries == answer(cursor, timedelta()).entries != ()


# ── keys and types of recorded answers ────────────────────────────────────────────────────────────────────────────

DAY_4 = WORLD.start + timedelta(days=3)
PLACES = WORLD.places[:16]
SEARCH = "query=from:{name}&start_time=2026-03-02T00:00:00Z&end_time=2026-03-05T00:00:00Z&max_results=100"
FLAT_SEARCH = "query=from:{name}+since_time:1772409600+until_time:1772668800&queryType=Latest"
V2 = {
    "lookup": ("/2/users/by/username/{name}", ""),
    "me": ("/2/users/me", ""),
    "timeline": ("/2/users/{number}/tweets", "max_results=100"),
    "bookmarks": ("/2/users/{number}/bookmarks", "max_results=100"),
    "list": (f"/2/lists/{x.LIST}/tweets", "max_results=100"),
    "recent": ("/2/tweets/search/recent", SEARCH),
    "archive": ("/2/tweets/search/all", SEARCH),
    "nobody": ("/2/users/by/username/nobody", ""),
    "nobody's timeline": ("/2/users/1/tweets", ""),
    "no list": ("/2/lists/1/tweets", ""),
}
FLAT = {
    "profile": ("/twitter/user/info", "userName={name}"),
    "timeline": ("/twitter/user/last_tweets", "userId={number}&includeReplies=true"),
    "list": ("/twitter/list/tweets_timeline", f"listId={x.LIST}"),
    "search": ("/twitter/tweet/advanced_search", FLAT_SEARCH),
    "balance": ("/oapi/my/info", ""),
}
UNRECORDED = {"note_tweet", "editHistoryTweetIds", "hashtags", "protected"}
"""Known from descriptions alone. Recorded hashtags of TwitterAPI.io are empty lists."""


SIMULATOR = x.XSimulator(WORLD)


def answered(path: str, query: str, place: Place, **headers: str) -> Page:
    named = {"name": x.user_name(WORLD, place, DAY_4), "number": x.user_id(place)}
    return SIMULATOR.answer(place, Ask(path.format(**named), query.format(**named), headers, DAY_4, "http://x"))


def shape(value: Any) -> set[Field]:
    """Its fields with their types; those of a post within a post are those of any post."""
    nested = {"quoted_tweet", "retweeted_tweet"}
    found = set()
    for field in fields(value):
        inner = max((at for at, name in enumerate(field) if name in nested), default=None)
        if inner is None or len(field) == inner + 2:
            found.add(field)
        else:
            found.add(("tweets", "[]", *field[inner + 1 :]))
    return found


def recorded_v2(captures: Path) -> set[Field]:
    found: set[Field] = set()
    for file in sorted((captures / "x-v2").glob("*.json*")):
        for document in documents(file.read_bytes()):
            found |= shape(document)
    return found


def recorded_flat(captures: Path) -> set[Field]:
    """Of all answers, in the envelope of a search; a post by itself is one of its posts."""
    found: set[Field] = set()
    for file in sorted((captures / "twitterapi-io").glob("*.json")):
        document = json.loads(file.read_bytes())
        found |= shape(document if file.name != "quote_2025-11.json" else {"tweets": [document]})
    # As others have seen it: the pair of paging around the posts, and a pinned one beside them.
    described = {"has_next_page": True, "next_cursor": "", "code": 0}
    return found | shape({**described, "data": {"pin_tweet": None}}) | shape({"data": {"pin_tweet": {}}})


def unknown(found: set[Field], recorded: set[Field]) -> set[Field]:
    # A post in `data`, or pinned, is the same as any other.
    def plain(field: Field) -> Field:
        if field[:2] == ("data", "pin_tweet") and len(field) > 3:
            field = ("tweets", "[]", *field[2:])
        return field[1:] if field[:2] == ("data", "tweets") else field

    known = {plain(field) for field in recorded}
    return {field for field in found if plain(field) not in known and not UNRECORDED & {*field}}


@pytest.mark.parametrize("name", V2)
def test_every_field_of_x_is_recorded_with_that_type(captures: Path, name: str) -> None:
    recorded = recorded_v2(captures)
    found: set[Field] = set()
    for place in PLACES:
        found |= shape(json.loads(answered(*V2[name], place, authorization="Bearer key").body))
    assert len(found) > 3
    assert unknown(found, recorded) == set()


@pytest.mark.parametrize("name", FLAT)
def test_every_field_of_twitterapi_io_is_recorded_with_that_type(captures: Path, name: str) -> None:
    recorded = recorded_flat(captures)
    found: set[Field] = set()
    for place in PLACES:
        if x.fate(WORLD, place)[0] == "usual":
            found |= shape(json.loads(answered(*FLAT[name], place, **{"x-api-key": "k"}).body))
    assert len(found) > 2
    assert unknown(found, recorded) == set()


@pytest.mark.parametrize("name", ["error_403", "error_429_free_tier"])
def test_recorded_refusals_are_the_playgrounds_own(captures: Path, name: str) -> None:
    simulator, place = x.XSimulator(WORLD), WORLD.places[0]
    headers = {"x-api-key": "free-key"} if "429" in name else {}
    for _ in range(2):
        page = simulator.answer(place, Ask("/twitter/user/last_tweets", "userId=70000", headers, DAY_4, "http://x"))
    recorded = json.loads((captures / f"twitterapi-io/{name}.json").read_bytes())
    assert str(page.status) in name
    assert json.loads(page.body).keys() == recorded.keys()


def test_it_has_every_trap_that_the_real_one_has() -> None:
    shown: list[Any] = []
    for place in PLACES:
        for path, query in (V2["timeline"], FLAT["timeline"]):
            shown.append(json.loads(answered(path, query, place, authorization="Bearer key").body))
    text = json.dumps(shown)
    flat = [body["data"] for body in shown if isinstance(body.get("data"), dict)]
    assert any(data["pin_tweet"] for data in flat)
    tweets = [tweet for data in flat for tweet in data["tweets"]]
    assert any(len(tweet.get("editHistoryTweetIds", ())) > 1 for tweet in tweets)
    assert any(tweet["viewCount"] == [0] for tweet in tweets)
    posts = [tweet for body in shown if isinstance(body.get("data"), list) for tweet in body["data"]]
    assert any("note_tweet" in tweet and tweet["text"].endswith("…") for tweet in posts)
    assert any(tweet["conversation_id"] not in tweet["edit_history_tweet_ids"] for tweet in posts)
    assert all(kind in text for kind in ('"photo"', '"video"', "m3u8"))
    # A page that is announced, and has nothing on it.
    place = next(place for place in PLACES if x.announces_nothing(place) and x.fate(WORLD, place)[0] == "usual")
    cursor, pages = "", []
    while True:
        query = f"{FLAT['timeline'][1]}&cursor={cursor}"
        pages.append(json.loads(answered(FLAT["timeline"][0], query, place, **{"x-api-key": "k"}).body))
        if not pages[-1]["has_next_page"]:
            break
        cursor = pages[-1]["next_cursor"]
    assert [bool(page["data"]["tweets"]) for page in pages[-2:]] == [True, False]
