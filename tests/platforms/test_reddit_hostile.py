"""A Reddit that means harm: what it sends is read as far as it goes, or refused; nothing hangs, nothing leaks.

Tokens and redirects go through the real client, whole visits through the real app; a server of this machine stands in
the place of Reddit's hosts.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from typing import Any

import pytest

from catchment.app import App, open_app
from catchment.collect.follow_ups import MOST_ABOUT_ONE
from catchment.credentials.secret import Secret
from catchment.errors import (
    AddressRefused,
    CatchmentError,
    LoginNeeded,
    PlatformError,
)
from catchment.model import (
    Answer,
    Outcome,
    Progress,
    Reading,
    Request,
    Source,
    WalkPlan,
)
from catchment.platforms import reddit
from catchment.platforms.reddit import requests, shapes
from catchment.settings import Settings
from catchment.sources.add import follow
from catchment.store.credentials import Terms
from catchment.text.clean import refine
from tests.clocks import HandClock
from tests.fetch.surroundings import Door
from tests.hostile import Connection, Hostile, Seen, endless, redirect, reply

NOW = datetime(2026, 3, 2, tzinfo=UTC)
NEW, TOKEN = "/r/riverboats/new", "/api/v1/access_token"
SOURCE = Source(1, "key", "reddit", "reddit", "r/riverboats", "r/RiverBoats", NOW, {"comments": True}, "app")
(LISTED,) = reddit.first(SOURCE, Progress(), WalkPlan("new", 100, has_key=True))
THREAD = requests.thread("t3_a1", LISTED)
Thing = dict[str, Any]


def listing(*things: Thing, after: str | None = None) -> Thing:
    return {"kind": "Listing", "data": {"children": list(things), "after": after}}


def post(id: str = "t3_x1", **told: Any) -> Thing:
    return {"kind": "t3", "data": {"name": id, "title": "A boat", "created_utc": NOW.timestamp(), **told}}


def comment(id: str, **told: Any) -> Thing:
    return {"kind": "t1", "data": {"id": id, "body": "Ahoy", "link_id": "t3_a1", "replies": "", **told}}


def stub(*ids: str, parent: str = "t3_a1") -> Thing:
    return {"kind": "more", "data": {"id": "m", "count": len(ids), "parent_id": parent, "children": list(ids)}}


def encoded(found: Any) -> bytes:
    return json.dumps(found).encode()


def nested(depth: int, words: str) -> bytes:
    """A thread of one comment below the other."""
    opened = '{"kind":"t1","data":{"id":"c%x","body":"x","replies":{"kind":"Listing","data":{"children":['
    inner = encoded(comment("last", body=words)).decode()
    tree = "".join(opened % level for level in range(depth - 1)) + inner + "]}}}}" * (depth - 1)
    return f'[{encoded(listing()).decode()},{{"kind":"Listing","data":{{"children":[{tree}]}}}}]'.encode()


def read(body: bytes, asked: Request = LISTED) -> Reading:
    answer = Answer(200, {}, body, asked.url, NOW)
    assert reddit.refusal(answer, asked) is None
    return reddit.read(answer, asked)


def test_replies_to_replies_are_read_to_a_depth_and_the_rest_is_counted() -> None:
    whole = read(nested(shapes.DEEPEST, "the end"), THREAD)
    assert (len(whole.items), whole.skipped) == (shapes.DEEPEST, ())
    deeper = read(nested(shapes.DEEPEST + 3, "the end"), THREAD)
    assert len(deeper.items) == shapes.DEEPEST
    assert [skipped_entry.reason for skipped_entry in deeper.skipped] == ["nested too deep"]


@pytest.mark.parametrize("depth", [250, 100_000])
def test_what_is_nested_beyond_all_reason_is_refused(depth: int) -> None:
    refusal = reddit.refusal(Answer(200, {}, nested(depth, "x"), THREAD.url, NOW), THREAD)
    assert refusal is not None
    assert isinstance(refusal.error, PlatformError)


@pytest.mark.parametrize(
    "id",
    ["t3_../../api/v1/me", "t3_a/b", "t3_", "t3_A1", "t3_" + "a" * 100_000, "t3_中文", "t3_a?x=1", "t1_a", "a1", " "],
)
def test_an_id_that_is_none_leads_nowhere_and_the_rest_goes_on(id: str) -> None:
    reading = read(encoded(listing(post(id), post("t3_x2"))))
    assert [item.external_id for item in reading.items] == ["t3_x2"]
    assert [skipped_entry.reason for skipped_entry in reading.skipped] == ["bad id"]
    stubbed = read(encoded([listing(), listing(stub(id, "c1"))]), THREAD)
    assert [request.params["children"] for request in stubbed.follow if request.step == requests.STUB] == [
        "c1"
    ] or id == "a1"


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 400, "1" + "0" * 5_000, "-9e307", "18446744073709551616"])
@pytest.mark.parametrize("name", ["score", "num_comments", "created_utc", "edited", "view_count"])
def test_a_number_out_of_all_range_is_unknown_or_costs_its_own_post_alone(name: str, number: str) -> None:
    body = encoded(listing(post("t3_x1", **{name: 7_777}), post("t3_x2"))).replace(b"7777", number.encode())
    reading = read(body)
    told = {item.external_id: item for item in reading.items}
    assert len(told) + len(reading.skipped) == 2
    assert "t3_x2" in told
    if "t3_x1" in told:
        mine = told["t3_x1"]
        assert (mine.score, mine.reply_count, mine.edited_at, mine.view_count) == (None,) * 4


def test_names_and_words_of_any_length_and_script_are_stored_within_bounds() -> None:
    told = {
        "author": "名" * 100_000,
        "author_fullname": "t2_" + "q" * 100_000,
        "title": "\u202e\x00\ud7ff" + "عنوان " * 50_000,
        "selftext": "слово " * 400_000,
        "link_flair_text": "f" * 100_000,
        "permalink": "/r/" + "x" * 100_000,
        "url": "https://boats.example/" + "y" * 100_000,
        "subreddit": "名" * 100_000,
    }
    (refined,) = refine(read(encoded(listing(post(**told)))), scope="", answer_url=LISTED.url).items
    item = refined.item
    lengths = [len(value or "") for value in (item.author, item.author_id, item.title, item.url, item.target_url)]
    assert max(lengths) <= 4_000
    assert (refined.is_text_cut, len(item.text or "") <= 1_000_000, max(map(len, item.tags)) <= 100) == (
        True,
        True,
        True,
    )
    assert "\x00" not in (item.title or "")


def test_an_address_that_acts_is_nobodys_link() -> None:
    acting = post(url="javascript:alert(1)", permalink="javascript:alert(1)")
    (item,) = refine(read(encoded(listing(acting))), scope="", answer_url=LISTED.url).items
    assert "javascript" not in f"{item.item.url} {item.item.target_url}"


def test_a_stub_of_a_million_ids_is_asked_for_in_bounds() -> None:
    many = [f"{number:x}" for number in range(200_000)]
    reading = read(encoded([listing(), listing(stub(*many))]), THREAD)
    assert {len(request.params["children"].split(",")) for request in reading.follow} == {requests.MOST_IDS}


@pytest.mark.parametrize(
    "content",
    ["<!-- SC_OFF -->" * 70_000, '<a href="' * 100_000, "<!-- SC_OFF -->" + "<" * 200_000 + "<!-- SC_ON -->"],
    ids=["beginnings without an end", "links without an end", "tags without an end"],
)
def test_a_feed_that_begins_and_never_ends_something_is_read_all_the_same(content: str) -> None:
    (asked,) = reddit.first(SOURCE, Progress(), WalkPlan("new", 100))
    entry = f'<entry><id>t3_a1</id><title>Boat</title><content type="html">{escape(content)}</content></entry>'
    body = f'<feed xmlns="http://www.w3.org/2005/Atom">{entry}</feed>'.encode()
    assert [item.external_id for item in read(body, asked).items] == ["t3_a1"]


@pytest.fixture
def server() -> Iterator[Hostile]:
    with Hostile() as server:
        server.on(TOKEN, reply(encoded({"access_token": "a-token-of-ours-5c1d", "expires_in": 3600})))
        server.on(NEW, reply(encoded(listing(post()))))
        yield server


@pytest.fixture
def door(server: Hostile) -> Iterator[Door]:
    door = Door(base_urls={"reddit": server.url}, retry_waits=())
    door.platform, door.secrets = reddit, {"app": Secret(basic="my-id:my-secret")}
    yield door
    door.fetch.close()


def times(server: Hostile, path: str) -> int:
    return sum(seen.path.partition("?")[0] == path for seen in server.seen)


@pytest.mark.parametrize("token", ["a\r\nX-Evil: 1", "名前", "a b", "x" * 9_000, "\x00", ["a"], {"a": 1}, 7, True])
def test_what_cannot_stand_in_a_header_is_no_token(door: Door, server: Hostile, token: Any) -> None:
    server.on(TOKEN, reply(encoded({"access_token": token, "expires_in": 3600})))
    with pytest.raises(LoginNeeded, match="no token for this key"):
        door.ask(LISTED)
    assert times(server, NEW) == 0


@pytest.mark.parametrize("life", [9_000_000_000_000_000, 10**30, -5, 0, "long", None, 1e300])
def test_a_life_that_makes_no_sense_is_a_usual_one(door: Door, server: Hostile, life: Any) -> None:
    server.on(TOKEN, reply(encoded({"access_token": "a", "expires_in": life})))
    for _ in range(2):
        door.ask(LISTED)
    assert (times(server, TOKEN), times(server, NEW)) == (1, 2)
    door.clock.advance(timedelta(days=2).total_seconds())
    door.ask(LISTED)
    assert times(server, TOKEN) == 2


@pytest.mark.parametrize("body", [reply(b" " * 10_000_000 + b"{}"), endless(b" " * 65_536)], ids=["10 MB", "endless"])
def test_a_login_that_answers_without_end_is_left_early_and_charged_to_nobody(
    door: Door, server: Hostile, body: Any
) -> None:
    received = []

    def counting(connection: Connection, seen: Seen) -> bool:
        received.append(seen.path)
        return bool(body(connection, seen))

    server.on(TOKEN, counting)
    with pytest.raises(CatchmentError) as failure:
        door.ask(LISTED)
    assert "large" in str(failure.value) or "bytes" in str(failure.value)
    assert (received, times(server, NEW), door.told) == ([TOKEN], 0, [])


def test_a_window_that_lasts_for_days_silences_nobody_for_days() -> None:
    refusal = reddit.refusal(Answer(429, {"x-ratelimit-reset": "999999"}, b"", LISTED.url, NOW), LISTED)
    assert refusal is not None
    assert refusal.error.retry_at == NOW + timedelta(hours=1)


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_another_host_sees_neither_token_nor_key(door: Door, server: Hostile, code: int) -> None:
    with Hostile() as elsewhere:
        elsewhere.on("/r/riverboats/new", reply(encoded(listing(post()))))
        server.on(NEW, redirect(f"{elsewhere.url}/r/riverboats/new", code))
        door.ask(LISTED)
        seen = json.dumps([[request.path, request.headers, request.body.decode()] for request in elsewhere.seen])
    assert len(elsewhere.seen) == 1
    for secret in ("a-token-of-ours-5c1d", "my-secret", "bXktaWQ6bXktc2VjcmV0", "authorization"):
        assert secret not in seen.lower()


@pytest.mark.parametrize("code", [301, 302, 307, 308])
def test_a_login_that_is_sent_elsewhere_takes_the_key_nowhere(door: Door, server: Hostile, code: int) -> None:
    with Hostile() as elsewhere:
        elsewhere.on("/token", reply(encoded({"access_token": "theirs", "expires_in": 3600})))
        server.on(TOKEN, redirect(f"{elsewhere.url}/token", code))
        if code in (307, 308):
            with pytest.raises(AddressRefused, match="redirects a POST request"):
                door.ask(LISTED)
        else:
            door.ask(LISTED)
        assert all("authorization" not in request.headers and not request.body for request in elsewhere.seen)


@pytest.fixture
def app(server: Hostile, tmp_path: Path, database_url: str) -> Iterator[App]:
    settings = Settings(
        home=tmp_path,
        database_url=database_url,
        base_urls={"reddit": server.url},
        master_key="a key for tests",
        retry_waits=(),
    )
    with closing(open_app(settings, "test")) as app:
        app.clock = HandClock(NOW)
        secret = Secret.parse("my-id:my-secret")
        app.secrets.add("reddit", "app", secret, app.clock.now(), terms=Terms(is_shared=True))
        yield app


def followed(app: App, name: str, **settings: Any) -> int:
    now = app.clock.now()
    source, _ = follow(app.store, app.secrets, app.platforms, "reddit", f"r/{name}", now, settings=settings)
    return source.id


def test_stubs_that_lead_in_a_circle_come_to_an_end_and_it_is_said(server: Hostile, app: App) -> None:
    server.on("/r/riverboats/new", reply(encoded(listing(post("t3_a1", num_comments=5)))))
    server.on("/comments/a1", reply(encoded([listing(post("t3_a1", num_comments=5)), listing(stub("c1"))])))
    circle = [
        {"json": {"errors": [], "data": {"things": [comment(shown), stub(hidden)]}}} for shown, hidden in ("12", "21")
    ]
    server.on("/api/morechildren", *[reply(encoded(circle[turn % 2])) for turn in range(2 * MOST_ABOUT_ONE)])
    source = followed(app, "riverboats", comments=True, sort="new")
    notes: Counter[str] = Counter()
    for _ in range(2 * MOST_ABOUT_ONE // 30):
        (result,) = app.scheduler().these([source], "test", "test")
        assert result.outcome in (Outcome.SUCCEEDED, Outcome.UNCHANGED)
        notes.update(result.notes)
        app.clock.advance(3600)  # type: ignore[attr-defined]
    assert times(server, "/comments/a1") + times(server, "/api/morechildren") == MOST_ABOUT_ONE
    assert app.store.follow_ups.count(source) == 0
    assert any("too many follow-up pages" in note for note in notes)
    assert {item.external_id for item in app.store.items.newest(10)} == {"t3_a1", "t1_1", "t1_2"}


def test_a_community_that_means_harm_costs_the_others_nothing(server: Hostile, app: App) -> None:
    server.on("/r/riverboats/new", reply(b"[" * 500_000))
    evil = encoded(listing(post("t3_e1", score=7_777, title="名\x00" * 50_000), post("t3_e2"), after="../" * 40_000))
    server.on("/r/barges/new", reply(evil.replace(b"7777", b"1e999")))
    server.on("/r/ships/new", reply(encoded(listing(post("t3_s1", title="cut \ud83d"), post("t3_s2")))))
    sources = [followed(app, name, sort="new") for name in ("riverboats", "barges", "ships")]
    results = {result.source_id: result for result in app.scheduler().these(sources, "test", "test")}
    assert [results[source].outcome for source in sources] == [Outcome.FAILED, Outcome.FAILED, Outcome.SUCCEEDED]
    assert [results[source].error_code for source in sources] == ["NETWORK_ERROR", "ADDRESS_REFUSED", None]
    assert {item.external_id for item in app.store.items.newest(10)} == {"t3_e2", "t3_s1", "t3_s2"}
