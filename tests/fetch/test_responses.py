"""What an answer means that is none, who is left alone for it, and what cures it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catchment.credentials.secret import Secret
from catchment.errors import (
    Gone,
    LoginNeeded,
    Missing,
    Refused,
    ServerTrouble,
    SlowDown,
    Unreadable,
)
from catchment.fetch.responses import (
    LONGEST_PAUSE,
    cache_seconds,
    clock_lag,
    http_refusal,
    keepable_headers,
    told_to_wait_until,
    validators,
)
from catchment.model import (
    Answer,
    Budget,
    FailureScope,
    Identity,
    Refusal,
    Request,
    RetryWith,
)
from tests.fetch.surroundings import SomePlatform
from tests.hostile import reply, status

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def answer(code: int, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(code, named, b"", "https://example.org/", NOW)


@pytest.mark.parametrize(
    ("came", "error"),
    [
        (answer(200), None),
        (answer(204), None),
        (answer(304), None),
        (answer(206), Unreadable),
        (answer(300), Unreadable),
        (answer(302), Unreadable),
        (answer(400), Refused),
        (answer(401), LoginNeeded),
        (answer(402), Refused),
        (answer(403), Refused),
        (answer(403, retry_after="9"), SlowDown),
        (answer(403, x_ratelimit_remaining="0.0", x_ratelimit_reset="9"), SlowDown),
        (answer(403, x_ratelimit_remaining="568.0"), Refused),
        (answer(404), Missing),
        (answer(408), ServerTrouble),
        (answer(410), Gone),
        (answer(414), Refused),
        (answer(420), SlowDown),
        (answer(425), ServerTrouble),
        (answer(429), SlowDown),
        (answer(451), Refused),
        (answer(461), Refused),
        (answer(500), ServerTrouble),
        (answer(503), ServerTrouble),
        (answer(503, retry_after="9"), SlowDown),
        (answer(522), ServerTrouble),
    ],
)
def test_every_status_has_one_meaning(came, error):
    refusal = http_refusal(came, NOW)
    assert (refusal and type(refusal), refusal and refusal.status) == (error, came.status if error else None)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "120"}, 120),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, 0),
        ({"retry-after": "Thu, 01 Jan 2026 00:02:00 GMT"}, 120),
        ({"retry-after": "Thu, 01 Jan 2026 00:02:00 -0000"}, 120),
        ({"retry-after": "Wed, 31 Dec 2025 00:00:00 GMT"}, 0),
        ({"retry-after": "Fri, 01 Jan 2027 00:00:00 GMT"}, 86400),
        ({"retry-after": "999999999999999999999"}, 86400),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "90"}, 90),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW.timestamp()) + 90)}, 90),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW.timestamp() + 90) * 1000)}, 90),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "90"}, 90),
        ({"x-rate-limit-remaining": "0", "x-rate-limit-reset": str(int(NOW.timestamp()) + 90)}, 90),
        ({"x-ratelimit-remaining": "12", "x-ratelimit-reset": "90"}, None),
        ({"x-ratelimit-remaining": "0"}, None),
    ],
)
def test_the_servers_word_is_understood_in_all_its_forms(headers, seconds):
    until = told_to_wait_until(headers, NOW)
    assert until == (None if seconds is None else NOW + timedelta(seconds=seconds))


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_header_however_absurd_asks_for_more_than_a_day(retry_after, reset):
    for headers in ({"retry-after": retry_after}, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset}):
        until = told_to_wait_until(headers, NOW)
        assert until is None or NOW <= until <= NOW + LONGEST_PAUSE


@pytest.mark.parametrize("error", [(401, LoginNeeded), (403, Refused), (404, Missing), (410, Gone)])
def test_what_never_helps_is_not_tried_again(door, server, error):
    code, kind = error
    with pytest.raises(kind, match=rf"a source \(source 1\): .*HTTP {code}.* — ") as caught:
        door.ask(server.on("/", status(code)))
    assert (caught.value.status, door.outcomes, door.clock.waits) == (code, [str(code)], [])


def test_a_host_that_says_429_is_left_alone_until_then(door, server):
    url = server.on("/", status(429, retry_after="60"), reply())
    other = server.on("/other", reply())
    with pytest.raises(SlowDown) as caught:
        door.ask(url)
    assert caught.value.retry_at == door.clock.now() + timedelta(seconds=60)
    with pytest.raises(SlowDown, match="asked us to wait") as again:
        door.ask(other)
    assert again.value.retry_at == caught.value.retry_at
    assert len(server.seen) == len(door.attempts) == 1
    door.clock.advance(60)
    assert door.ask(other).status == 200


def test_429_without_a_word_on_when_leaves_the_host_alone_for_a_while(door, server):
    with pytest.raises(SlowDown) as caught:
        door.ask(server.on("/", status(429), reply()))
    assert caught.value.retry_at is None
    door.clock.advance(59)
    with pytest.raises(SlowDown):
        door.ask(server.url + "/")
    door.clock.advance(1)
    assert door.ask(server.url + "/").status == 200


def test_another_host_is_asked_meanwhile(door, server):
    with pytest.raises(SlowDown):
        door.ask(server.on("/", status(429, retry_after="60"), reply()))
    assert door.ask(f"http://localhost:{server.port}/").status == 200


def test_where_the_platform_counts_by_credential_only_that_one_is_left_alone(door, server):
    door.platform = SomePlatform(budget=Budget("some", 1000, 60.0, is_per_credential=True))
    door.secrets = {"one": Secret(), "two": Secret()}
    url = server.on("/", status(429, retry_after="60"), reply())
    with pytest.raises(SlowDown):
        door.ask(url, credential="one")
    with pytest.raises(SlowDown, match="credential one"):
        door.ask(url, credential="one")
    assert door.ask(url, credential="two").status == 200


def test_an_answer_that_was_the_last_for_now_is_believed(door, server):
    url = server.on("/", reply(x_ratelimit_remaining="0.0", x_ratelimit_reset="30"))
    assert door.ask(url).status == 200
    with pytest.raises(SlowDown) as caught:
        door.ask(url)
    assert caught.value.retry_at == door.clock.now() + timedelta(seconds=30)


def test_the_platform_is_asked_about_every_answer_even_a_good_one(door, server):
    door.platform = SomePlatform(refuses=lambda came: Refusal(Gone("the user is suspended", "remove the source")))
    with pytest.raises(Gone, match=r"a source \(source 1\): the user is suspended — remove the source") as caught:
        door.ask(server.on("/", reply(b'{"error": "suspended"}')))
    assert (door.platform.judged, caught.value.status) == ([200], 200)


def test_the_platforms_word_counts_before_the_status(door, server):
    door.platform = SomePlatform(refuses=lambda came: Refusal(Missing("no such board")))
    with pytest.raises(Missing):
        door.ask(server.on("/", status(500)))
    assert (door.outcomes, door.platform.judged) == (["500"], [500])


def test_a_refusal_that_blames_the_host_pauses_it_by_the_headers_word(door, server):
    door.platform = SomePlatform(refuses=lambda came: Refusal(SlowDown("too fast"), FailureScope.HOST))
    with pytest.raises(SlowDown) as caught:
        door.ask(server.on("/", reply(retry_after="30")))
    assert caught.value.retry_at == door.clock.now() + timedelta(seconds=30)
    with pytest.raises(SlowDown, match=f"host 127.0.0.1:{server.port}"):
        door.ask(server.url + "/")
    assert len(server.seen) == 1


def test_a_refusal_that_blames_the_request_pauses_nobody(door, server):
    door.platform = SomePlatform(refuses=lambda came: Refusal(SlowDown("too fast")) if came.body == b"slow" else None)
    with pytest.raises(SlowDown):
        door.ask(server.on("/", reply(b"slow")))
    assert door.ask(server.on("/other", reply())).status == 200


def test_a_platforms_error_is_not_changed_by_what_came_of_it(door, server):
    always = SlowDown("too fast")
    door.platform = SomePlatform(refuses=lambda came: Refusal(always))
    with pytest.raises(SlowDown):
        door.ask(server.on("/", reply(retry_after="30")))
    assert (str(always), always.status, always.retry_at) == ("too fast", None, None)


def guest_page(came: Answer) -> Refusal | None:
    """A site that lets guests in only with a cookie that its first page hands out."""
    cure = RetryWith(cookies={"guestJs": "1_a"}, headers={"X-Cured": "yes"})
    return Refusal(Refused("guests are not let in"), cure=cure) if came.status == 403 else None


def test_a_cure_turns_a_refusal_into_an_answer(door, server):
    door.platform = SomePlatform(refuses=guest_page)
    assert door.ask(server.on("/", status(403), reply(b"welcome"))).body == b"welcome"
    first, second = server.seen
    assert "cookie" not in first.headers
    assert (second.headers["cookie"], second.headers["x-cured"]) == ("guestJs=1_a", "yes")
    assert (door.outcomes, door.platform.judged) == (["403", "200"], [403, 200])


def test_a_cures_cookies_are_kept_for_the_next_request_to_that_host(door, server):
    door.platform = SomePlatform(refuses=guest_page)
    door.ask(server.on("/", status(403), reply()))
    door.ask(server.on("/next", reply()))
    door.ask(f"http://localhost:{server.port}/next")
    assert [seen.headers.get("cookie") for seen in server.seen[2:]] == ["guestJs=1_a", None]


def test_a_cure_is_tried_once(door, server):
    door.platform = SomePlatform(refuses=guest_page)
    with pytest.raises(Refused, match="guests"):
        door.ask(server.on("/", status(403)))
    assert len(server.seen) == 2


def patient_guest_page(came: Answer) -> Refusal | None:
    """Hands out a new cookie each time, which is good a moment later; and may want to be asked once more."""
    cure = RetryWith(cookies={"guestJs": came.body.decode()}, wait_seconds=0.3, most_retries=2)
    return Refusal(Refused("guests are not let in"), cure=cure) if came.status == 403 else None


def test_a_cure_may_need_a_wait_and_a_second_try(door, server):
    door.platform = SomePlatform(refuses=patient_guest_page)
    url = server.on("/", reply(b"1_a", 403), reply(b"2_b", 403), reply(b"welcome"))
    assert door.ask(url).body == b"welcome"
    assert [seen.headers.get("cookie") for seen in server.seen] == [None, "guestJs=1_a", "guestJs=2_b"]
    assert door.clock.waits == [0.3, 0.3]


def test_a_cure_is_tried_no_more_often_than_it_says(door, server):
    door.platform = SomePlatform(refuses=patient_guest_page)
    with pytest.raises(Refused, match="guests"):
        door.ask(server.on("/", reply(b"1_a", 403)))
    assert len(server.seen) == 3


def test_a_cure_may_ask_for_something_else(door, server):
    there = Request(server.on("/there", reply(b"there")))
    door.platform = SomePlatform(
        refuses=lambda came: (
            Refusal(Refused("not here"), cure=RetryWith(repeat=there)) if came.body == b"here" else None
        )
    )
    assert door.ask(server.on("/", reply(b"here"))).body == b"there"


def test_what_needs_a_login_is_not_asked_without_one(door, server):
    with pytest.raises(LoginNeeded, match="add a credential"):
        door.ask(server.on("/", reply()), identity=Identity.NEEDED)
    assert server.seen == []


def test_a_platform_may_dress_requests_itself(door, server):
    door.secrets["login"] = Secret(headers={"X-API-Key": "k3y"})

    def dress(request: Request, secret: Secret | None, now: datetime, nonce: str) -> Request:
        who = secret.headers["X-API-Key"] if secret else "guest"
        return request.replace(headers={"X-Signature": f"{who}/{now:%Y}/{nonce}"}, params={"sign": "abc"})

    door.platform.dress = dress
    url = server.on("/", reply())
    answer = door.ask(url, credential="login")
    door.ask(url)
    assert [seen.headers["x-signature"] for seen in server.seen] == ["k3y/2026/nonce", "guest/2026/nonce"]
    assert (server.seen[0].path, answer.url) == ("/?sign=abc", url)


def test_no_secret_is_in_an_error(door, server):
    door.secrets["login"] = Secret("user:hunter2", {"X-Key": "hunter2"}, {"token": "hunter2"}, "session=hunter2")
    for code in (401, 403, 404, 500, 429):
        with pytest.raises(Exception, match="a source") as caught:
            door.ask(server.on(f"/{code}", status(code)), credential="login", timeout_seconds=5)
        error: BaseException | None = caught.value
        while error is not None:
            assert "hunter2" not in repr(error) + str(error)
            error = error.__cause__


@pytest.mark.parametrize(
    ("etag", "kept"),
    [('W/"a,b; é"', True), ("", False), ("a\rb", False), ("a\x00b", False), ("a\x0bb", False), ("a" * 1001, False)],
)
def test_only_validators_that_can_be_sent_back_are_kept(etag, kept):
    assert validators({"etag": etag, "last-modified": etag}) == ((etag, etag) if kept else (None, None))


def test_only_harmless_headers_are_kept():
    headers = {
        "etag": '"1"', "set-cookie": "session=1", "x-ratelimit-remaining": "3", "authorization": "x", "date": "now",
        "x-amz-security-token": "x", "content-type": "text/xml", "location": "https://example.org/?token=x",
    }  # fmt: skip
    assert set(keepable_headers(headers)) == {"etag", "x-ratelimit-remaining", "date", "content-type"}


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"cache-control": "public, max-age=600"}, 600),
        ({"cache-control": "max-age=0"}, 0),
        ({"cache-control": 'Max-Age="60"'}, 60),
        ({"cache-control": "s-max-age=60"}, None),
        ({"cache-control": "no-cache, max-age=600"}, None),
        ({"cache-control": "no-store"}, None),
        ({"cache-control": "max-age=99999999999"}, 30 * 86400),
        ({"expires": "Thu, 01 Jan 2026 01:00:00 GMT"}, 3600),
        ({"expires": "Thu, 01 Jan 2026 01:00:00 GMT", "date": "Thu, 01 Jan 2026 00:30:00 GMT"}, 1800),
        ({"expires": "0"}, None),
        ({"expires": "Wed, 31 Dec 2025 00:00:00 GMT"}, None),
        ({"expires": "Thu, 01 Jan 2026 01:00:00 GMT", "cache-control": "max-age=5"}, 5),
        ({"expires": "Thu, 01 Jan 2026 01:00:00 GMT", "cache-control": "no-cache"}, None),
    ],
)
def test_caching_headers_say_how_long_nothing_new_is_expected(headers, seconds):
    assert cache_seconds(headers, NOW) == seconds


@pytest.mark.parametrize(
    ("headers", "hours"),
    [
        ({}, 0),
        ({"date": "Wed, 31 Dec 2025 22:00:00 GMT"}, 2),
        ({"date": "Wed, 31 Dec 2025 22:00:00 GMT", "age": "3600"}, 1),
        ({"date": "Wed, 31 Dec 2025 22:00:00 GMT", "age": "7200"}, 0),
        ({"date": "Wed, 31 Dec 2025 22:00:00 GMT", "age": "-1"}, 2),
        ({"date": "Wed, 31 Dec 2025 22:00:00 GMT", "age": "9999999999"}, 0),
        pytest.param({"date": "Wed, 31 Dec 2025 23:59:10 GMT"}, 0, id="it was on its way"),
        pytest.param({"date": "Thu, 01 Jan 2026 05:00:00 GMT"}, 0, id="it is ahead"),
        pytest.param({"date": "Tue, 30 Dec 2025 23:59:00 GMT"}, 0, id="nobody looks at it"),
        ({"date": "yesterday"}, 0),
    ],
)
def test_the_date_of_an_answer_says_how_far_the_servers_clock_is_behind(headers, hours):
    assert clock_lag(headers, NOW) == timedelta(hours=hours)
