"""Reddit says no: what each answer that is none leads to, whom it blames, and what would help.

Keys, tokens and redirects go through the real door, with a server of this machine in the place of Reddit's hosts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.credentials.secret import Secret
from catchment.errors import (
    Gone,
    LoginNeeded,
    Missing,
    NetworkError,
    PlatformError,
    Refused,
    ServerTrouble,
    SlowDown,
)
from catchment.model import (
    Answer,
    FailureScope,
    Progress,
    Recheck,
    Refusal,
    Request,
    Source,
    WalkPlan,
)
from catchment.platforms import reddit
from catchment.platforms.reddit import requests
from tests.fetch.surroundings import Door
from tests.hostile import Behaviour, Hostile, redirect, reply

NOW = datetime(2026, 3, 2, tzinfo=UTC)
SAMPLES = Path(__file__).parent / "reddit"
SOURCE = Source(1, "key", "reddit", "reddit", "r/riverboats", "r/RiverBoats", NOW, credential="app")
NEW, TOKEN = "/r/riverboats/new", "/api/v1/access_token"


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


TOKEN_BODY = b'{"access_token": "a-token", "token_type": "bearer", "expires_in": 3600, "scope": "*"}'
GOOD = reply(sample("new.json"))


def first(*, has_key: bool) -> Request:
    (request,) = reddit.first(SOURCE, Progress(), WalkPlan("new", 100, has_key=has_key))
    return request


KEYED, KEYLESS = first(has_key=True), first(has_key=False)
LOOK = reddit.recheck([Recheck("t3_a1", "", None, SOURCE)])[0]
THREAD = requests.thread("t3_a1", KEYED)


def refused(
    status: int, body: bytes | dict[str, Any] = b"", asked: Request = KEYED, url: str = "", **headers: str
) -> Refusal | None:
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return reddit.refusal(Answer(status, named, body, url or asked.url, NOW), asked)


def told(refusal: Refusal | None) -> tuple[type[PlatformError], FailureScope]:
    assert refusal is not None
    assert refusal.error.helps
    return type(refusal.error), refusal.blames


@pytest.mark.parametrize(
    ("status", "body", "error", "says"),
    [
        (403, {"reason": "private", "message": "Forbidden", "error": 403}, Refused, "r/riverboats is private"),
        (403, {"reason": "quarantined", "error": 403}, Refused, "r/riverboats is quarantined"),
        (403, {"reason": "gated", "error": 403}, Refused, "r/riverboats is gated"),
        (404, {"reason": "banned", "message": "Not Found", "error": 404}, Gone, "r/riverboats is banned"),
        (404, {"message": "Not Found", "error": 404}, Missing, "there is no community r/riverboats"),
        (404, b"", Missing, "there is no community r/riverboats"),
        (404, b"<html><body>404</body></html>", Missing, "there is no community r/riverboats"),
        (400, {"explanation": "that is wrong", "reason": "BAD"}, Refused, "Reddit says: that is wrong"),
    ],
)
@pytest.mark.parametrize("asked", [KEYED, KEYLESS], ids=["with a key", "without one"])
def test_what_is_wrong_with_a_community_is_told_apart_and_blamed_on_nobody_else(
    asked: Request, status: int, body: Any, error: type[PlatformError], says: str
) -> None:
    refusal = refused(status, body, asked)
    assert told(refusal) == (error, FailureScope.REQUEST)
    assert refusal is not None
    assert says in refusal.error.what


@pytest.mark.parametrize("status", [301, 400, 403, 414, 451, 500, 502, 503, 504, 520])
def test_where_the_status_says_everything_nothing_is_added(status: int) -> None:
    assert refused(status) is None
    assert refused(status, {"message": "…", "error": status}) is None
    assert refused(status, b"<html><body><h1>Odd</h1></body></html>") is None


def test_a_thread_that_is_missing_says_nothing_about_a_community() -> None:
    assert refused(404, {"message": "Not Found", "error": 404}, THREAD) is None
    assert refused(404, asked=LOOK) is None


@pytest.mark.parametrize(
    ("led_to", "says"),
    [
        ("https://oauth.reddit.com/subreddits/search?q=riverboats", "there is no community r/riverboats"),
        ("https://www.reddit.com/subreddits/search.rss?q=riverboats", "there is no community r/riverboats"),
        ("https://oauth.reddit.com/r/Ships/new?raw_json=1", "r/riverboats now redirects to r/ships"),
        ("https://www.reddit.com/r/Ships.rss", "r/riverboats now redirects to r/ships"),
    ],
)
def test_a_redirect_away_from_the_community_is_no_answer(led_to: str, says: str) -> None:
    for asked in (KEYED, KEYLESS):
        refusal = refused(200, sample("new.json"), asked, url=led_to)
        assert told(refusal) == (Missing, FailureScope.REQUEST)
        assert refusal is not None
        assert refusal.error.what == says


def test_a_redirect_within_the_community_is_one() -> None:
    for url in ("https://oauth.reddit.com/r/RiverBoats/new/.json", "https://www.reddit.com/r/RiverBoats.rss"):
        assert refused(200, sample("new.json"), url=url) is None
    # A thread is found under its community's name, whichever that is.
    assert refused(200, sample("thread.json"), THREAD, url="https://oauth.reddit.com/r/ships/comments/a1/x/") is None


SLOW_PAGE = (
    b"<!doctype html>\n<title>Too Many Requests</title>\n<h1>whoa there, pardner!</h1>we've seen too many requests"
)


@pytest.mark.parametrize("status", [200, 403, 503])
@pytest.mark.parametrize(
    ("body", "error", "blames"),
    [
        (sample("blocked.html"), Refused, FailureScope.HOST),
        (sample("verification.html"), Refused, FailureScope.HOST),
        (b"<!doctype html><title>Just a moment...</title>", Refused, FailureScope.HOST),
        (sample("over18.html"), Refused, FailureScope.REQUEST),
        (SLOW_PAGE, SlowDown, FailureScope.CREDENTIAL),
    ],
    ids=["blocked", "verification", "a wall", "over 18", "too many requests"],
)
def test_a_page_is_known_by_its_content_whatever_its_status(
    status: int, body: bytes, error: type[PlatformError], blames: FailureScope
) -> None:
    for asked in (KEYED, KEYLESS):
        assert told(refused(status, body, asked)) == (error, blames)


def test_any_other_page_is_no_answer_either() -> None:
    assert told(refused(200, b"<html><body>Hello</body></html>")) == (Refused, FailureScope.REQUEST)


def test_who_is_blocked_is_quiet_for_long_and_learns_what_would_help() -> None:
    keyed, keyless = (refused(403, sample("blocked.html"), asked) for asked in (KEYED, KEYLESS))
    assert keyed is not None
    assert keyless is not None
    assert keyed.error.retry_at == keyless.error.retry_at == NOW + timedelta(hours=1)
    assert "REDDIT_USER_AGENT" in keyed.error.helps
    assert "credentials add reddit" in keyless.error.helps
    assert "credentials add" not in keyed.error.helps


def test_words_about_pages_inside_an_answer_do_not_make_it_one() -> None:
    assert refused(200, sample("new.json").replace(b"A map", b"<html>whoa there, pardner!")) is None


@pytest.mark.parametrize(
    ("body", "error", "blames"),
    [
        ({"message": "Unauthorized", "error": 401}, LoginNeeded, FailureScope.CREDENTIAL),
        ({"message": "Forbidden", "error": 403}, Refused, FailureScope.REQUEST),
        ({"reason": "private", "message": "Forbidden", "error": 403}, Refused, FailureScope.REQUEST),
        ({"reason": "banned", "error": 404}, Gone, FailureScope.REQUEST),
        ({"message": "Not Found", "error": 404}, Missing, FailureScope.REQUEST),
        ({"message": "Too Many Requests", "error": 429}, SlowDown, FailureScope.CREDENTIAL),
        ({"message": "Internal Server Error", "error": 500}, ServerTrouble, FailureScope.REQUEST),
        ({"error": "something"}, Refused, FailureScope.REQUEST),
        ({"reason": "something"}, Refused, FailureScope.REQUEST),
        ({"json": {"errors": [["BAD_ID", "that is none", "children"]]}}, Refused, FailureScope.REQUEST),
        (b"", ServerTrouble, FailureScope.REQUEST),
        (b" \n", ServerTrouble, FailureScope.REQUEST),
        (b'{"kind": "Listing", "data": {"children": [], "after": null}', NetworkError, FailureScope.REQUEST),
        (sample("new.json")[:5000], NetworkError, FailureScope.REQUEST),
        (sample("thread.json")[:5000], NetworkError, FailureScope.REQUEST),
    ],
)
def test_an_error_that_calls_itself_200_is_one(body: Any, error: type[PlatformError], blames: FailureScope) -> None:
    assert told(refused(200, body)) == (error, blames)


@pytest.mark.parametrize("name", ["new", "last", "empty", "recheck", "thread", "stub"])
def test_an_answer_is_no_error(name: str) -> None:
    assert refused(200, sample(f"{name}.json")) is None


def test_a_feed_that_came_whole_or_in_part_is_left_to_its_reader_and_an_empty_one_is_asked_for_again() -> None:
    assert refused(200, sample("feed.xml"), KEYLESS) is None
    assert refused(200, sample("feed.xml")[:900], KEYLESS) is None
    assert told(refused(200, b"", KEYLESS)) == (ServerTrouble, FailureScope.REQUEST)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"x_ratelimit_reset": "82"}, 82),
        ({"x_ratelimit_reset": "82.5", "x_ratelimit_remaining": "3.0"}, 82.5),
        ({"x_ratelimit_reset": "soon"}, None),
        ({"x_ratelimit_reset": "-1"}, None),
        ({}, None),
        # Told twice, the plainer word counts; whoever fetches knows it.
        ({"retry_after": "4", "x_ratelimit_reset": "82"}, None),
    ],
)
def test_too_many_requests_say_until_when(headers: dict[str, str], seconds: float | None) -> None:
    refusal = refused(429, b"", **headers)
    assert told(refusal) == (SlowDown, FailureScope.CREDENTIAL)
    assert refusal is not None
    assert refusal.error.retry_at == (None if seconds is None else NOW + timedelta(seconds=seconds))


def test_without_a_key_too_many_requests_are_soon_reached_and_the_error_says_so() -> None:
    refusal = refused(429, b"", KEYLESS)
    assert refusal is not None
    assert "without a key Reddit answers few requests" in refusal.error.helps


@pytest.fixture
def server() -> Iterator[Hostile]:
    with Hostile() as server:
        server.on(TOKEN, reply(TOKEN_BODY))
        server.on(NEW, reply(sample("new.json")))
        yield server


@pytest.fixture
def door(server: Hostile) -> Iterator[Door]:
    """A door through which Reddit is asked: all of its hosts are the server."""
    door = Door(base_urls={"reddit": server.url})
    door.platform, door.secrets = reddit, {"app": Secret(basic="my-id:my-secret")}
    yield door
    door.fetch.close()


def asked_for(server: Hostile) -> list[str]:
    return [seen.path.partition("?")[0] for seen in server.seen]


def test_a_key_becomes_a_token_which_is_used_for_all_that_follows(door: Door, server: Hostile) -> None:
    for _ in range(2):
        assert len(reddit.read(door.ask(KEYED), KEYED).items) == 9
    login, *listings = server.seen
    assert (login.method, login.path, login.body) == ("POST", TOKEN, b"grant_type=client_credentials")
    assert login.headers["authorization"] == "Basic bXktaWQ6bXktc2VjcmV0"
    assert login.headers["content-type"] == "application/x-www-form-urlencoded"
    assert [(seen.path, seen.headers["authorization"]) for seen in listings] == [
        ("/r/riverboats/new?limit=100&raw_json=1", "Bearer a-token")
    ] * 2


@pytest.mark.parametrize("basic", ["my-id:", "my-id"])
def test_an_installed_app_has_no_secret_and_comes_as_a_device(door: Door, server: Hostile, basic: str) -> None:
    door.secrets["app"] = Secret(basic=basic)
    door.ask(KEYED)
    assert server.seen[0].headers["authorization"] == "Basic bXktaWQ6"
    assert server.seen[0].body == (
        b"grant_type=https%3A%2F%2Foauth.reddit.com%2Fgrants%2Finstalled_client&device_id=DO_NOT_TRACK_THIS_DEVICE"
    )


def test_the_key_of_an_installed_app_is_understood_as_people_write_it() -> None:
    assert Secret.parse("my-id:\n") == Secret(basic="my-id:")


def test_a_token_that_somebody_has_already_is_sent_as_it_is(door: Door, server: Hostile) -> None:
    door.secrets["app"] = Secret(headers={"Authorization": "Bearer ready"})
    door.ask(KEYED)
    assert [seen.headers["authorization"] for seen in server.seen] == ["Bearer ready"]


def test_a_token_is_renewed_before_it_ends_by_what_it_says_itself(door: Door, server: Hostile) -> None:
    long = json.dumps({"access_token": "long", "expires_in": 86400}).encode()
    server.on(TOKEN, reply(TOKEN_BODY), reply(long))
    for hours, logins in ((0, 1), (0.9, 2), (20, 2)):
        door.clock.advance(hours * 3600)
        door.ask(KEYED)
        assert asked_for(server).count(TOKEN) == logins


def test_a_login_is_never_kept_and_knows_no_source() -> None:
    request = reddit.login(Secret(basic="a:b"))
    assert request is not None
    assert (request.is_keepable, request.credential, request.state) == (False, None, {})


@pytest.mark.parametrize(
    ("code", "body", "says"),
    [
        (200, {"error": "invalid_grant"}, "no token for this key: invalid_grant"),
        (200, {"error": "unauthorized_client", "error_description": "Only scripts"}, "this key: Only scripts"),
        (200, {}, "issued no token for this key"),
        (200, {"access_token": ""}, "issued no token for this key"),
        (401, {"message": "Unauthorized", "error": 401}, "does not recognise this key"),
        (400, {"error": "unsupported_grant_type"}, "does not recognise this key: unsupported_grant_type"),
    ],
)
def test_a_login_without_a_token_has_failed_whatever_its_status(
    door: Door, server: Hostile, code: int, body: dict[str, Any], says: str
) -> None:
    server.on(TOKEN, reply(json.dumps(body).encode(), code))
    with pytest.raises(LoginNeeded, match=says) as failure:
        door.ask(KEYED)
    assert failure.value.is_beyond_request
    assert asked_for(server) == [TOKEN]


def test_a_login_that_came_broken_or_not_at_all_is_tried_again(door: Door, server: Hostile) -> None:
    server.on(TOKEN, reply(b'{"access_token": "a'), reply(b""), reply(b"", 503), reply(TOKEN_BODY))
    door.ask(KEYED)
    assert asked_for(server) == [*[TOKEN] * 4, NEW]


def test_a_key_whose_share_is_used_up_rests_until_reddit_counts_anew_and_another_goes_on(
    door: Door, server: Hostile
) -> None:
    door.secrets["other"] = Secret(basic="other-id:other-secret")
    last = {"x_ratelimit_used": "600", "x_ratelimit_remaining": "0.0", "x_ratelimit_reset": "82"}
    server.on(NEW, reply(sample("new.json"), **last), GOOD)
    door.ask(KEYED)
    with pytest.raises(SlowDown, match="asked us to wait") as failure:
        door.ask(KEYED)
    assert failure.value.retry_at == door.clock.now() + timedelta(seconds=82)
    door.ask(KEYED.replace(credential="other"))
    door.clock.advance(83)
    door.ask(KEYED)
    assert asked_for(server).count(NEW) == 3


@pytest.mark.parametrize(
    "headers",
    [
        {"x_ratelimit_used": "32", "x_ratelimit_remaining": "568.0", "x_ratelimit_reset": "82"},
        {"x_ratelimit_remaining": "many", "x_ratelimit_reset": "82"},
        {"x_ratelimit_reset": "82"},
        {},
    ],
)
def test_a_share_that_is_not_used_up_or_not_told_keeps_nobody_waiting(
    door: Door, server: Hostile, headers: dict[str, str]
) -> None:
    server.on(NEW, reply(sample("new.json"), **headers))
    for _ in range(3):
        door.ask(KEYED)
    assert asked_for(server) == [TOKEN, NEW, NEW, NEW]


def test_who_is_blocked_asks_nobody_else_there_for_an_hour(door: Door, server: Hostile) -> None:
    server.on(NEW, reply(sample("blocked.html"), 403), GOOD)
    with pytest.raises(Refused, match="blocks us"):
        door.ask(KEYED)
    with pytest.raises(SlowDown, match="asked us to wait"):
        door.ask(LOOK)
    door.clock.advance(3601)
    door.ask(KEYED)
    assert asked_for(server).count(NEW) == 2


RENEWED = [NEW, NEW, TOKEN, NEW]


def record(captures: Path, name: str) -> Behaviour:
    told = json.loads((captures / "reddit" / "http" / f"{name}.json").read_bytes())
    left_out = ("content-length", "transfer-encoding", "connection")
    headers = {name.lower(): value for name, value in told["headers"].items() if name.lower() not in left_out}
    return reply(told["body"].encode(), told["status"]["code"], **headers)


def test_every_recorded_exchange_has_a_test(captures: Path) -> None:
    names = {path.stem for path in (captures / "reddit" / "http").iterdir()}
    assert names == {*PASSING, *FINAL, *REDIRECTED, *LOGINS, "401_invalid_token", "token_client_credentials"}


PASSING = {"200_truncated_json": 1, "500_json": 1, "503_empty": 1, "429_html_retry_after": 4}
"""What passes, and how many seconds are waited for it."""


@pytest.mark.parametrize("name", PASSING)
def test_a_recorded_trouble_that_passes_is_waited_for(captures: Path, door: Door, server: Hostile, name: str) -> None:
    server.on(NEW, record(captures, name), GOOD)
    began = door.clock.now()
    assert len(reddit.read(door.ask(KEYED), KEYED).items) == 9
    assert asked_for(server) == [TOKEN, NEW, NEW]
    assert (door.clock.now() - began).total_seconds() == PASSING[name]


FINAL: dict[str, tuple[type[PlatformError], bool, str]] = {
    "400_html": (Refused, False, "the request is not accepted"),
    "403_bare": (Refused, False, "access was refused"),
    "403_insufficient_scope": (LoginNeeded, True, "the key may not read this"),
    "403_quarantined": (Refused, False, "r/riverboats is quarantined"),
    "404_json": (Missing, False, "there is no community r/riverboats"),
    "414_text": (Refused, False, "the request is not accepted"),
}
"""The error, whether more than the request is to blame, and its words."""


@pytest.mark.parametrize("name", FINAL)
def test_a_recorded_refusal_is_final_and_says_what_it_is(
    captures: Path, door: Door, server: Hostile, name: str
) -> None:
    error, is_beyond, says = FINAL[name]
    server.on(NEW, record(captures, name))
    with pytest.raises(error, match=says) as failure:
        door.ask(KEYED)
    assert failure.value.is_beyond_request == is_beyond
    assert asked_for(server) == [TOKEN, NEW]


REDIRECTED = {"301_redirect": ("/r/t:bird/", "r/t:bird"), "302_redirect": ("/r/RelayForReddit/.json", "relayforreddit")}


@pytest.mark.parametrize("name", REDIRECTED)
def test_a_recorded_redirect_to_another_community_is_followed_and_not_believed(
    captures: Path, door: Door, server: Hostile, name: str
) -> None:
    path, says = REDIRECTED[name]
    server.on(NEW, record(captures, name))
    server.on(path, GOOD)
    with pytest.raises(Missing, match=f"r/riverboats now redirects to .*{says}"):
        door.ask(KEYED)
    assert asked_for(server) == [TOKEN, NEW, path]


def test_a_name_that_nobody_bears_leads_to_the_search_and_is_missing(door: Door, server: Hostile) -> None:
    server.on(NEW, redirect("https://oauth.reddit.com/subreddits/search?q=riverboats"))
    server.on("/subreddits/search", reply(b'{"kind": "Listing", "data": {"children": [{"kind": "t5", "data": {}}]}}'))
    with pytest.raises(Missing, match="there is no community r/riverboats"):
        door.ask(KEYED)


def test_a_recorded_refusal_of_a_token_renews_it_once(captures: Path, door: Door, server: Hostile) -> None:
    server.on(NEW, GOOD, record(captures, "401_invalid_token"), GOOD)
    for _ in range(2):
        door.ask(KEYED)
    assert asked_for(server) == [TOKEN, *RENEWED]
    server.on(NEW, record(captures, "401_invalid_token"))
    with pytest.raises(LoginNeeded, match="does not accept the token") as failure:
        door.ask(KEYED)
    assert failure.value.is_beyond_request
    assert asked_for(server)[5:] == [NEW, TOKEN, NEW]


def test_a_recorded_login_yields_a_token(captures: Path, door: Door, server: Hostile) -> None:
    server.on(TOKEN, record(captures, "token_client_credentials"))
    door.ask(KEYED)
    assert server.seen[-1].headers["authorization"] == "Bearer <redacted>"


LOGINS: dict[str, tuple[type[PlatformError], str]] = {
    "token_429": (SlowDown, "too many requests"),
    "token_invalid_grant_http200": (LoginNeeded, "no token for this key: invalid_grant"),
    "token_unauthorized_client_http200": (LoginNeeded, "Only script apps may use password auth"),
}


@pytest.mark.parametrize("name", LOGINS)
def test_a_recorded_login_that_failed_is_not_repeated(captures: Path, door: Door, server: Hostile, name: str) -> None:
    error, says = LOGINS[name]
    server.on(TOKEN, record(captures, name))
    with pytest.raises(error, match=says):
        door.ask(KEYED)
    assert asked_for(server) == [TOKEN]


PAGES = {
    "blocked_network_policy": (Refused, FailureScope.HOST, "blocks us"),
    "js_challenge_shell": (Refused, FailureScope.HOST, "a bot check"),
    "over18_interstitial": (Refused, FailureScope.REQUEST, "for adults"),
}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("status", [200, 403])
def test_a_recorded_page_is_no_answer(captures: Path, name: str, status: int) -> None:
    error, blames, says = PAGES[name]
    body = (captures / "reddit" / "public" / f"{name}.html").read_bytes()
    for asked in (KEYED, KEYLESS):
        refusal = refused(status, body, asked)
        assert told(refusal) == (error, blames)
        assert refusal is not None
        assert says in refusal.error.what


def test_every_recorded_page_has_a_test(captures: Path) -> None:
    assert {path.stem for path in (captures / "reddit" / "public").glob("*.html")} == PAGES.keys()
