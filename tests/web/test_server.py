"""Serving for real: sockets, signals, what is announced, and how it ends. Each server is a process of its own."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from catchment.errors import Conflict, InvalidInput
from catchment.web.server import listening
from tests.forked import Forked, script

PATIENCE = 600.0
"""How long a test waits before it gives up: a bound on hanging, never what decides."""

BEGIN = """
import sys
from pathlib import Path
from catchment import logs
from catchment.web.server import serve
from catchment.errors import NetworkError
from tests.town import TownApp

logs.configure("json", "warning")
home, database, said = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
here = TownApp(home, database, stop_seconds=float(sys.argv[4]))
app = here.app
collects = False
"""
END = """
def announce(line):
    print(line, flush=True)

try:
    code = serve(app, "127.0.0.1", 0, collects=collects, announce=announce)
finally:
    here.close()
sys.exit(code)
"""
A_VISIT_UNTIL = """
collects = True
feed = here.town.feed("one")
feed.post("p1", at=here.clock.now())

def slow(request, now):
    said.touch()
    {wait}
    raise NetworkError("ended")

feed.says.append(slow)
here.follow(feed)
"""


class Served:
    """A server in a process of its own."""

    def __init__(self, folder: Path, database_url: str, situation: str = "", stop_seconds: float = 60.0) -> None:
        self.said = folder / "under-way"
        more = (str(folder / "home"), database_url, str(self.said), str(stop_seconds))
        self.process = Forked(script, BEGIN + situation + END, *more)
        self.address = self._line("catchment listens on ")
        self.link = self._line("open in a browser: ")

    def _line(self, beginning: str) -> str:
        line = self.process.stdout.readline()
        assert line.startswith(beginning), line or self.process.stderr.read()
        return line.removeprefix(beginning).strip()

    def key(self) -> str:
        return self._line("key for the API, shown only this once: ")

    def signal(self, number: int = signal.SIGTERM) -> None:
        self.process.signal(number)

    def code(self) -> int | None:
        return self.process.code(PATIENCE)

    def rest(self) -> str:
        return self.process.stdout.read()

    def close(self) -> None:
        self.process.close()


def until(holds: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < give_up_at
        time.sleep(0.01)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    running: list[Served] = []

    def start(situation: str = "", *, database_url: str = "", stop_seconds: float = 60.0) -> Served:
        url = database_url or f"sqlite:///{tmp_path / 'catchment.db'}"
        running.append(Served(tmp_path, url, situation, stop_seconds))
        return running[-1]

    yield start
    for server in running:
        server.close()


def test_it_says_where_it_listens_lets_in_by_link_and_key_and_ends_cleanly(
    started: Callable[..., Served], database_url: str
) -> None:
    server = started("collects = True", database_url=database_url)
    key = server.key()
    with httpx.Client(base_url=server.address, follow_redirects=True) as client:
        assert client.get("/health").json() == {"ok": True}
        assert client.get("/api/sources").status_code == 401
        answer = client.get("/api/sources", headers={"Authorization": f"Bearer {key}"})
        assert answer.json() == {"items": [], "next": None}
        assert "server" not in answer.headers
        assert client.get("/").status_code == 401
        page = client.get(server.link)
        assert (page.status_code, str(page.url)) == (200, f"{server.address}/")
    server.signal()
    assert server.code() == 0
    assert server.rest().startswith("there are no sources yet")


def test_how_to_begin_is_said_only_while_nothing_is_followed(started: Callable[..., Served]) -> None:
    server = started('here.follow(here.town.feed("one"))')
    server.key()
    server.signal()
    assert server.code() == 0
    assert server.rest() == ""


def test_the_key_is_shown_at_the_first_start_only(started: Callable[..., Served]) -> None:
    first = started()
    key = first.key()
    first.signal(signal.SIGINT)
    assert first.code() == 0
    second = started()
    assert httpx.get(f"{second.address}/api/runs", headers={"X-API-Key": key}).status_code == 200
    second.signal()
    assert second.code() == 0
    assert "key" not in second.rest()
    assert second.link != first.link


def test_a_visit_under_way_may_finish_after_a_signal(started: Callable[..., Served]) -> None:
    server = started(A_VISIT_UNTIL.format(wait="app.stop.wait()"))
    until(server.said.exists)
    server.signal()
    assert server.code() == 0


def test_a_visit_that_does_not_end_in_time_is_cut_off_and_that_is_told(started: Callable[..., Served]) -> None:
    server = started(A_VISIT_UNTIL.format(wait="app.cut.wait()"), stop_seconds=0.2)
    until(server.said.exists)
    server.signal()
    assert server.code() == 1


def test_a_second_signal_does_not_wait(started: Callable[..., Served]) -> None:
    server = started(A_VISIT_UNTIL.format(wait="app.stop.wait(); said.unlink(); app.cut.wait()"), stop_seconds=3600)
    until(server.said.exists)
    server.signal()
    until(lambda: not server.said.exists())
    server.signal()
    assert server.code() == 1


def test_what_was_cut_off_is_free_for_the_next_process(started: Callable[..., Served], database_url: str) -> None:
    slow = A_VISIT_UNTIL.format(wait="app.cut.wait()")
    first = started(slow, database_url=database_url, stop_seconds=0.1)
    until(first.said.exists)
    first.signal()
    assert first.code() == 1
    first.said.unlink()
    second = started(f"here.clock.advance(86_400)\n{slow}", database_url=database_url, stop_seconds=0.1)
    until(second.said.exists)


def test_a_request_under_way_is_answered_after_a_signal(started: Callable[..., Served]) -> None:
    server = started("app.intervals = lambda: (said.touch(), app.stop.wait(), {})[-1]")
    headers = {"X-API-Key": server.key()}
    with ThreadPoolExecutor(1) as aside:
        answer = aside.submit(httpx.get, f"{server.address}/api/sources", headers=headers, timeout=PATIENCE)
        until(server.said.exists)
        server.signal()
        assert answer.result().status_code == 200
    assert server.code() == 0


def test_a_browser_that_watches_does_not_keep_the_server_from_ending(started: Callable[..., Served]) -> None:
    server = started()
    server.key()
    with httpx.Client(base_url=server.address, timeout=PATIENCE) as client:
        client.get(server.link)
        with client.stream("GET", "/live") as stream:
            lines = stream.iter_lines()
            assert next(lines).startswith("data: ")
            server.signal()
            # The stream ends as one that is whole.
            list(lines)
    assert server.code() == 0


def test_more_requests_than_threads_are_all_answered(started: Callable[..., Served]) -> None:
    server = started()
    headers = {"X-API-Key": server.key()}
    with ThreadPoolExecutor(24) as many, httpx.Client(base_url=server.address, headers=headers) as client:
        answers = list(many.map(lambda _: client.get("/api/sources", timeout=PATIENCE).status_code, range(48)))
    assert answers == [200] * 48


# ── the socket ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_port_that_is_taken_is_a_clear_conflict() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(Conflict, match=f"127.0.0.1:{port} — .*--port"), listening("127.0.0.1", port):
            pass


@pytest.mark.parametrize("host", ["no.such.host.invalid", "300.1.1.1", "192.0.2.1"])
def test_an_address_that_is_not_ours_is_refused_in_words(host: str) -> None:
    with pytest.raises(InvalidInput, match=r"listen.*127\.0\.0\.1"), listening(host, 0):
        pass
