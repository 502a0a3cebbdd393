"""What comes by wire: whole, small enough, in time, or not at all."""

from __future__ import annotations

import gzip
import random
import zlib

import brotli
import pytest

from catchment.errors import (
    NetworkError,
    TimedOut,
    TooLarge,
    Unreadable,
)
from catchment.fetch.transport import decoded
from tests.hostile import (
    announced,
    chunked,
    cut,
    cut_chunked,
    drip,
    endless,
    gzip_bomb,
    gzipped,
    late,
    raw,
    redirect,
    reply,
    reset,
    silent,
)

PAGE = b"<rss>" + b"entry " * 5000 + bytes(range(256)) + b"</rss>"


def test_an_answer_carries_status_headers_body_address_and_time(door, server):
    url = server.on("/feed", reply(b"<rss/>", ETag='W/"1"', content_type="text/xml"))
    answer = door.ask(url, params={"page": "2"})
    assert (answer.status, answer.body, answer.url) == (200, b"<rss/>", f"{url}?page=2")
    assert answer.headers == {"content-length": "6", "etag": 'W/"1"', "content-type": "text/xml"}
    assert (answer.answered_at, answer.moved_to) == (door.clock.now(), None)


def test_repeated_headers_are_joined_and_interim_answers_are_forgotten(door, server):
    url = server.on(
        "/",
        raw(
            b"HTTP/1.1 103 Early Hints\r\nLink: </early>\r\n\r\n"
            b"HTTP/1.1 200 OK\r\nLink: </a>\r\nContent-Length: 2\r\nLINK: </b>\r\n\r\nok"
        ),
    )
    assert door.ask(url).headers == {"link": "</a>, </b>", "content-length": "2"}


def test_the_request_says_who_asks_and_what_compression_is_understood(door, server):
    url = server.on("/", reply())
    door.ask(url, headers={"If-None-Match": 'W/"ü"'})
    headers = server.seen[0].headers
    assert headers["user-agent"] == "catchment-test"
    assert headers["accept-encoding"] == "gzip, br"
    assert headers["if-none-match"] == 'W/"ü"'


def test_unchanged_is_an_answer_too(door, server):
    url = server.on("/", reply(b"", 304, ETag='"2"'))
    answer = door.ask(url)
    assert (answer.status, answer.body, answer.headers["etag"]) == (304, b"", '"2"')


@pytest.mark.parametrize("behaviour", [reply(PAGE), gzipped(PAGE), chunked(PAGE[:100], PAGE[100:])])
def test_however_it_is_sent_the_body_is_the_same(door, server, behaviour):
    assert door.ask(server.on("/", behaviour)).body == PAGE


@pytest.mark.parametrize(
    ("packed", "encoding"),
    [
        (gzip.compress(PAGE), "gzip"),
        (gzip.compress(PAGE), "x-gzip"),
        (gzip.compress(PAGE[:9]) + gzip.compress(PAGE[9:]), "gzip"),
        (gzip.compress(PAGE) + b"\0\0\0padding", "gzip"),
        (zlib.compress(PAGE), "deflate"),
        (zlib.compress(PAGE)[2:-4], "deflate"),
        (brotli.compress(PAGE), "br"),
        (brotli.compress(gzip.compress(PAGE)), "gzip, br"),
        (PAGE, ""),
        (PAGE, "identity"),
    ],
)
def test_every_usual_compression_is_undone(packed, encoding):
    assert decoded(packed, encoding, len(PAGE)) == PAGE


@pytest.mark.parametrize(
    ("packed", "encoding"),
    [(gzip.compress(PAGE), "gzip"), (zlib.compress(PAGE), "deflate"), (brotli.compress(PAGE), "br"), (PAGE, "")],
)
def test_one_byte_over_the_limit_is_too_large(packed, encoding):
    with pytest.raises(TooLarge):
        decoded(packed, encoding, len(PAGE) - 1)


@pytest.mark.parametrize(
    ("packed", "encoding"),
    [(gzip.compress(PAGE), "gzip"), (zlib.compress(PAGE), "deflate"), (brotli.compress(PAGE), "br")],
)
def test_a_truncated_compression_is_never_taken_for_the_whole(packed, encoding):
    for length in range(1, len(packed)):
        with pytest.raises((NetworkError, Unreadable)):
            decoded(packed[:length], encoding, 10**6)


@pytest.mark.parametrize("size", [0, 1, 100, 4095, 4096, 4097, 300_000])
def test_members_of_any_size_are_put_together(size):
    noise = random.Random(size).randbytes(size)
    members = [gzip.compress(noise), gzip.compress(b""), gzip.compress(PAGE), gzip.compress(noise)]
    assert decoded(b"".join(members) + b"padding", "gzip", 10**6) == noise + PAGE + noise


@pytest.mark.parametrize(
    ("packed", "encoding"), [(gzip.compress(b"") * 500_000, "gzip"), (PAGE, ",".join(["identity"] * 20))]
)
def test_a_body_packed_a_thousand_times_over_is_nobodys_honest_answer(packed, encoding):
    with pytest.raises(Unreadable, match="the problem is on the server"):
        decoded(packed, encoding, 20_000_000)


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate", "zstd", "made-up"])
def test_garbage_is_unreadable(encoding):
    with pytest.raises(Unreadable):
        decoded(b"\xff\xfe no compression at all", encoding, 10**6)


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (cut(), NetworkError),
        (cut_chunked(), NetworkError),
        (reset(), NetworkError),
        (reply(gzip.compress(PAGE)[:-9], content_encoding="gzip"), NetworkError),
        (reply(brotli.compress(PAGE)[:-9], content_encoding="br"), NetworkError),
        (reply(b"plain", content_encoding="gzip"), Unreadable),
        (raw(b"no http at all, sorry"), Unreadable),
        (reply(PAGE, 206), Unreadable),
    ],
)
def test_a_part_or_garbage_is_an_error_and_not_an_answer(new_door, server, behaviour, error):
    door = new_door(retry_waits=())
    with pytest.raises(error, match=r"a source \(source 1\)"):
        door.ask(server.on("/", behaviour))
    assert len(door.attempts) == 1


@pytest.mark.parametrize(
    "behaviour",
    [gzip_bomb(1_000_000_000), endless(), announced(10**12), reply(bytes(3000)), gzipped(bytes(3_000_000))],
)
def test_what_is_too_large_is_cut_off_and_not_tried_again(new_door, server, behaviour):
    door = new_door(max_wire_bytes=2500, max_bytes=2_000_000)
    with pytest.raises(TooLarge):
        door.ask(server.on("/", behaviour))
    assert door.outcomes == ["TOO_LARGE"]


def test_a_bomb_within_the_wire_limit_is_not_unpacked_beyond_the_other(door, server):
    # A gigabyte of zeros is a megabyte by wire: less than the default limit, so unpacking has to stop by itself.
    with pytest.raises(TooLarge, match="20,000,000"):
        door.ask(server.on("/", gzip_bomb(1_000_000_000)))


def test_a_request_brings_its_own_size_limit(new_door, server):
    door = new_door(max_wire_bytes=100, max_bytes=100)
    url = server.on("/", reply(bytes(3000)))
    assert len(door.ask(url, max_bytes=3000).body) == 3000
    with pytest.raises(TooLarge):
        door.ask(url, max_bytes=2999)


@pytest.mark.parametrize("behaviour", [drip(), silent()])
def test_too_slow_ends_at_the_time_limit(new_door, server, behaviour):
    door = new_door(timeout_seconds=0.2, retry_waits=())
    with pytest.raises(TimedOut, match="in time"):
        door.ask(server.on("/", behaviour))
    assert door.outcomes == ["TIMEOUT_ERROR"]


def test_a_request_brings_its_own_time_limit(new_door, server):
    door = new_door(timeout_seconds=600, retry_waits=())
    with pytest.raises(TimedOut, match="did not answer in time —"):
        door.ask(server.on("/", drip()), timeout_seconds=0.2)


def test_a_trickle_ends_before_the_time_limit(new_door, server):
    door = new_door(timeout_seconds=600, low_speed_seconds=1, low_speed_bytes_per_second=1000, retry_waits=())
    with pytest.raises(TimedOut, match=r"too slowly \(less than 1000 bytes a second for 1 s"):
        door.ask(server.on("/", drip()))


def test_the_first_byte_of_an_answer_may_take_the_whole_time_out(new_door, server):
    # Longer than libcurl waits between two looks at its progress, which is a second at most.
    door = new_door(timeout_seconds=600, low_speed_seconds=1, retry_waits=())
    assert door.ask(server.on("/", late(reply(), 2.5))).body == b"hello"


def test_the_time_limit_holds_for_all_redirects_together(new_door, server):
    # Each of them is in time; all together are not.
    door = new_door(timeout_seconds=0.5, retry_waits=())
    for number in range(3):
        server.on(f"/{number}", late(redirect(f"/{number + 1}"), 0.2))
    server.on("/3", reply())
    with pytest.raises(TimedOut):
        door.ask(f"{server.url}/0")
    assert door.outcomes[-1] == "TIMEOUT_ERROR"
