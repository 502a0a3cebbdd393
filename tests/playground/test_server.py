"""The playground behind its socket: it answers, misbehaves as planned, and notes everything down in time."""

from __future__ import annotations

import gzip
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection, HTTPResponse, IncompleteRead
from pathlib import Path

import pycurl
import pytest

from catchment.playground.faults import FAULTS, Cue, FaultPlan
from catchment.playground.log import Asked, Counts, read_log
from catchment.playground.server import Playground
from catchment.playground.sites.reddit.keys import client
from catchment.playground.sites.reddit.names import community
from catchment.playground.world import Habits, World
from tests.clocks import HandClock

START = datetime(2026, 1, 5, tzinfo=UTC)
NOW = START + timedelta(days=3)
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def world() -> World:
    return World(7, START, places=20, days=7, habits=Habits(gone=0.0, moved=0.0))


@contextmanager
def served(world: World, log: Path | None, *script: Cue, slow_seconds: float = 0.0) -> Iterator[Playground]:
    with Playground(world, HandClock(NOW), FaultPlan(script=script), log=log, slow_seconds=slow_seconds) as playground:
        yield playground


@contextmanager
def connected(playground: Playground) -> Iterator[HTTPConnection]:
    with closing(HTTPConnection("127.0.0.1", playground.port, timeout=300)) as connection:
        yield connection


def get(connection: HTTPConnection, path: str, **headers: str) -> tuple[HTTPResponse, bytes]:
    connection.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})
    answer = connection.getresponse()
    return answer, answer.read()


def until(is_so: Callable[[], bool]) -> None:
    """Wait for it; a machine that is busy may take its time."""
    deadline = time.monotonic() + 300
    while not is_so():
        assert time.monotonic() < deadline, "it never came to that"
        time.sleep(0.005)


# ── good answers ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_connection_carries_many_answers(world: World) -> None:
    with served(world, None) as playground, connected(playground) as connection:
        for place in world.places:
            answer, body = get(connection, place.path)
            assert answer.status == 200
            assert len(body) == int(answer.headers["Content-Length"])
        assert playground.counts.requests == len(world.places)


def test_the_listing_is_that_of_the_clocks_moment(world: World) -> None:
    place = max(world.places, key=lambda place: place.pace.posts_a_day)
    clock = HandClock(NOW)
    with Playground(world, clock, FaultPlan()) as playground, connected(playground) as connection:
        _, today = get(connection, place.path)
        clock.advance(86_400)
        _, tomorrow = get(connection, place.path)
    for at, body in ((NOW, today), (NOW + timedelta(days=1), tomorrow)):
        newest, _ = world.shown(place, at)[0]
        assert f"/{place.number}/{newest.number}<".encode() in body
    assert today != tomorrow


def test_some_places_answer_in_gzip_to_those_who_can_read_it(world: World) -> None:
    with served(world, None) as playground, connected(playground) as connection:
        place = world.places[1]
        _, plain = get(connection, place.path)
        answer, packed = get(connection, place.path, Accept_Encoding="gzip, br")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed) == plain


def test_a_known_listing_is_answered_with_304_and_no_body(world: World) -> None:
    place = next(place for place in world.places if "etag" in place.validators)
    with served(world, None) as playground, connected(playground) as connection:
        answer, _ = get(connection, place.path)
        again, body = get(connection, place.path, If_None_Match=answer.headers["ETag"])
        assert (again.status, body, again.headers["ETag"]) == (304, b"", answer.headers["ETag"])
        assert playground.counts.unchanged == 1


def test_where_nothing_is_the_answer_is_404(world: World) -> None:
    with served(world, None) as playground, connected(playground) as connection:
        assert get(connection, "/nowhere")[0].status == 404
        assert get(connection, "/feeds/9999.xml")[0].status == 404


def test_each_site_has_a_host_name_of_its_own(world: World) -> None:
    with served(world, None) as playground:
        curl = pycurl.Curl()
        for place in world.places[:10]:
            curl.setopt(curl.URL, playground.address(place))
            curl.setopt(curl.WRITEFUNCTION, len)
            curl.perform()
            assert (curl.getinfo(curl.RESPONSE_CODE), curl.getinfo(curl.PRIMARY_IP)) == (200, "127.0.0.1")
        curl.close()
        assert dict(playground.counts.most_in_a_second) == {("site0.localhost", None): 5, ("site1.localhost", None): 5}


def test_what_a_client_asks_is_counted_together_whichever_of_its_tokens_it_bears(tmp_path: Path) -> None:
    world, (id, secret) = World(7, START, 0, 4, others={"reddit": 1}), client(3)
    basic = b64encode(f"{id}:{secret}".encode()).decode()
    path, clock = f"/r/{community(world.places[0])}/new", HandClock(NOW)
    with Playground(world, clock, FaultPlan(), log=tmp_path / "log") as playground, connected(playground) as connection:
        for _ in range(3):
            clock.advance(10)
            login = {"Authorization": f"Basic {basic}", "User-Agent": "test"}
            connection.request("POST", "/api/v1/access_token", b"grant_type=client_credentials", login)
            token = json.loads(connection.getresponse().read())["access_token"]
            for _ in range(2):
                assert get(connection, path, Authorization=f"Bearer {token}", User_Agent="test")[0].status == 200
        assert playground.counts.most_in_a_minute == {("127.0.0.1", id): 9}
    lines = read_log(tmp_path / "log")
    assert {line.credential for line in lines} == {id}
    assert [len(line.entries) > 0 for line in lines] == [False, True, True] * 3


# ── faults on the wire ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.status])
def test_a_refusal_has_its_status(world: World, tmp_path: Path, name: str) -> None:
    with served(world, tmp_path / "log", Cue(name)) as playground, connected(playground) as connection:
        answer, _ = get(connection, world.places[0].path)
    (line,) = read_log(tmp_path / "log")
    assert (answer.status, line.status, line.fault) == (FAULTS[name].status, FAULTS[name].status, name)
    assert (line.is_whole, line.entries) == (False, ())


@pytest.mark.parametrize("name", ["slow_first_byte", "slow_drip"])
def test_slow_answers_come_whole_in_the_end(world: World, tmp_path: Path, name: str) -> None:
    place = world.places[0]
    with (
        served(world, tmp_path / "log", Cue(name, last=1), slow_seconds=0.05) as playground,
        connected(playground) as connection,
    ):
        _, slow = get(connection, place.path)
        _, quick = get(connection, place.path)
    assert slow == quick
    assert [(line.fault, line.is_whole) for line in read_log(tmp_path / "log")] == [(name, True), (None, True)]


def test_a_slow_answer_keeps_nobody_else_waiting_and_ends_with_the_playground(world: World, tmp_path: Path) -> None:
    slow, other = world.places[0].path, world.places[1].path
    with (
        served(world, tmp_path / "log", Cue("slow_drip", path=slow), slow_seconds=3600) as playground,
        connected(playground) as waiting,
        connected(playground) as connection,
    ):
        waiting.request("GET", slow)
        until(lambda: playground.counts.requests == 1)
        assert get(connection, other)[0].status == 200
        playground.close()
    assert [(line.path, line.is_whole) for line in read_log(tmp_path / "log")] == [(slow, False), (other, True)]


@pytest.mark.parametrize("name", ["reset", "outage"])
def test_a_reset_gives_no_answer_at_all(world: World, tmp_path: Path, name: str) -> None:
    with (
        served(world, tmp_path / "log", Cue(name)) as playground,
        connected(playground) as connection,
        pytest.raises(ConnectionResetError),
    ):
        get(connection, world.places[0].path)
    (line,) = read_log(tmp_path / "log")
    assert (line.status, line.fault, line.is_whole, line.entries) == (None, name, False, ())


def test_a_cut_body_is_shorter_than_promised(world: World, tmp_path: Path) -> None:
    with (
        served(world, tmp_path / "log", Cue("cut_body")) as playground,
        connected(playground) as connection,
        pytest.raises(IncompleteRead),
    ):
        get(connection, world.places[0].path)
    assert [line.is_whole for line in read_log(tmp_path / "log")] == [False]


def test_a_torn_body_looks_whole_to_whoever_reads_it(world: World, tmp_path: Path) -> None:
    place = world.places[0]
    with served(world, tmp_path / "log", Cue("torn_body", last=1)) as playground:
        with connected(playground) as connection:
            answer, half = get(connection, place.path)
        with connected(playground) as connection:
            _, whole = get(connection, place.path)
    assert half == whole[: len(whole) // 2]
    assert "Content-Length" not in answer.headers
    assert [line.is_whole for line in read_log(tmp_path / "log")] == [False, True]


@pytest.mark.parametrize("name", ["empty", "malformed", "html_page", "captcha", "gzip_garbage"])
def test_what_spoils_a_body_spoils_it_for_those_who_knew_the_listing_too(world: World, name: str) -> None:
    place = next(place for place in world.places if "etag" in place.validators)
    with served(world, None, Cue(name, first=2)) as playground, connected(playground) as connection:
        good, whole = get(connection, place.path)
        spoiled, body = get(connection, place.path, If_None_Match=good.headers["ETag"])
    assert (spoiled.status, spoiled.headers["ETag"]) == (200, good.headers["ETag"])
    assert body != whole


def test_gzip_garbage_calls_itself_gzip_and_is_none(world: World) -> None:
    with served(world, None, Cue("gzip_garbage")) as playground, connected(playground) as connection:
        answer, body = get(connection, world.places[0].path)
    assert answer.headers["Content-Encoding"] == "gzip"
    with pytest.raises((OSError, EOFError, zlib.error)):
        gzip.decompress(body)


def test_every_fault_leaves_the_playground_able_to_answer_the_next_request(world: World) -> None:
    place = next(place for place in world.places if place.form == "jsonfeed")
    for name in FAULTS:
        with served(world, None, Cue(name, last=1)) as playground:
            with connected(playground) as connection, suppress(OSError, IncompleteRead):
                get(connection, place.path)
            with connected(playground) as connection:
                assert get(connection, place.path)[0].status == 200


# ── the log ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_whoever_has_read_an_answer_finds_it_in_the_log_at_once(world: World, tmp_path: Path) -> None:
    with served(world, tmp_path / "log") as playground, connected(playground) as connection:
        for place in world.places:
            get(connection, place.path)
            line = read_log(tmp_path / "log")[-1]
            shown = [(post.id, version.number) for post, version in world.shown(place, line.at)]
            assert (line.place, line.path, line.is_whole) == (place.number, place.path, True)
            assert [(entry.post, entry.version) for entry in line.entries] == shown


def test_an_answer_that_was_not_taken_to_its_end_is_noted_as_such(world: World, tmp_path: Path) -> None:
    path = max(world.places, key=lambda place: place.window).path
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    with served(world, tmp_path / "log") as playground:
        with socket.create_connection(("127.0.0.1", playground.port)) as client:
            # Far more than the system holds for one who does not read; the last one is stuck halfway.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(request * 2_000)
            until(lambda: playground.counts.requests > 3 and is_stuck(playground))
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        until(lambda: not read_log(tmp_path / "log")[-1].is_whole)
        asked = playground.counts.requests
    lines = read_log(tmp_path / "log")
    assert [line.number for line in lines] == list(range(1, asked + 1))
    assert [line.is_whole for line in lines] == [True] * (asked - 1) + [False]


def is_stuck(playground: Playground) -> bool:
    before = playground.counts.requests
    time.sleep(0.1)
    return playground.counts.requests == before


def test_a_line_that_is_being_written_is_not_yet_read(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(b'{"number": 1, "at": "2026-01-05T')
    assert read_log(file) == []


def test_a_log_is_continued_even_after_a_playground_that_was_killed_while_writing(world: World, tmp_path: Path) -> None:
    file, path = tmp_path / "log", world.places[0].path
    for _ in range(2):
        with served(world, file) as playground, connected(playground) as connection:
            get(connection, path)
        with file.open("ab") as log:
            log.write(b'{"number": 2, "at": "2026-01-05T')
    with served(world, file) as playground, connected(playground) as connection:
        get(connection, path)
    assert [line.number for line in read_log(file)] == [1, 2, 3]


def test_the_log_tells_credentials_apart_without_telling_them(world: World, tmp_path: Path) -> None:
    with served(world, tmp_path / "log") as playground, connected(playground) as connection:
        for secret in ("hush", "quiet", "hush"):
            get(connection, world.places[0].path, Authorization=f"Bearer {secret}")
    first, second, third = (line.credential for line in read_log(tmp_path / "log"))
    assert first == third != second
    assert "hush" not in (tmp_path / "log").read_text()


def test_the_most_requests_in_any_second_and_minute_are_counted_by_host_and_credential() -> None:
    def asked(second: float, host: str, credential: str | None = None) -> Asked:
        return Asked(1, START + timedelta(seconds=second), host, "/", credential, None, 200, None, True)

    counts = Counts([asked(second, "a") for second in (0, 0.4, 0.9, 1.2, 1.3, 1.39, 58, 61)])
    counts.add(asked(61, "b"))
    counts.add(asked(61, "a", "mine"))
    assert counts.most_in_a_second == {("a", None): 5, ("b", None): 1, ("a", "mine"): 1}
    assert counts.most_in_a_minute == {("a", None): 7, ("b", None): 1, ("a", "mine"): 1}


# ── as a process ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.process
def test_as_a_process_it_prints_its_address_serves_and_ends_cleanly(tmp_path: Path) -> None:
    command = "--seed 7 --places 20 --days 7 --start 2026-01-05T00:00:00Z --clock 2026-01-08T00:00:00Z,1 --fault-rate 0"
    with subprocess.Popen(
        [sys.executable, "-m", "catchment.playground", *command.split(), "--home", tmp_path, "--log", tmp_path / "log"],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        host, _, port = process.stdout.readline().strip().removeprefix("http://").partition(":")
        world = World(7, START, places=20, days=7)
        with closing(HTTPConnection(host, int(port), timeout=300)) as connection:
            assert get(connection, world.places[3].path)[0].status == 200
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=300)
    assert (process.returncode, complaints) == (0, "")
    (line,) = read_log(tmp_path / "log")
    shown = [post.id for post, _ in world.shown(world.places[3], line.at)]
    assert [entry.post for entry in line.entries] == shown


def test_a_playground_that_is_closed_at_once_ends(world: World) -> None:
    failed: list[BaseException | None] = []

    def start_and_close() -> None:
        for _ in range(50):
            playground = Playground(world, HandClock(NOW), FaultPlan())
            playground.start()
            playground.close()

    hook = threading.excepthook
    threading.excepthook = lambda args: failed.append(args.exc_value)
    try:
        worker = threading.Thread(target=start_and_close, daemon=True)
        worker.start()
        worker.join(60)
    finally:
        threading.excepthook = hook
    assert (worker.is_alive(), failed) == (False, [])
