"""The keys of both services: each is sent to its own host alone, and stands in plain nowhere else."""

from __future__ import annotations

import io
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest

from catchment import logs
from catchment.app import App, open_app
from catchment.credentials.secret import Secret
from catchment.playground.faults import Cue, Moods
from catchment.playground.log import read_log
from catchment.playground.server import Playground
from catchment.playground.sites.x import fate, user_name
from catchment.settings import Settings
from catchment.sources.add import follow
from catchment.store.credentials import Terms
from tests.clocks import HandClock
from tests.databases import sqlite_ready
from tests.web.desk import Desk
from tests.x.scene import SERVICES, START, WORLD

pytestmark = pytest.mark.long

KEYS = {"x": "AAAAplantedKeyOfX4711", "twitterapi_io": "new1_plantedKeyOfTwitterApi0815"}
PAGES = ("/", "/sources", "/sources/1", "/sources/2", "/items", "/credentials", "/alerts", "/runs", "/settings")


class TwoHosts:
    """A host for each service."""

    def __init__(self, folder: Path) -> None:
        self.clock = HandClock(START)
        self.clock.advance(86_400)
        # The second request for a timeline is refused: errors are told of as well.
        script = [Cue("login_needed", path="*tweets", first=2, last=2)]
        self.logs = {service: folder / f"{service}.jsonl" for service in SERVICES}
        self.hosts = {
            service: Playground(WORLD, self.clock, Moods(5, 0.0, script), log=log) for service, log in self.logs.items()
        }
        for host in self.hosts.values():
            host.start()
        self.home = folder / "home"
        self.home.mkdir()
        settings = Settings(
            home=self.home,
            database_url=sqlite_ready(f"sqlite:///{self.home / 'catchment.db'}"),
            base_urls={service: host.url for service, host in self.hosts.items()},
            master_key="a key for tests",
            retry_waits=(0.5,),
        )
        self.app: App = open_app(settings, "test", clock=self.clock)

    def close(self) -> None:
        self.app.close()
        for host in self.hosts.values():
            host.close()


@pytest.fixture
def two(tmp_path: Path) -> Iterator[TwoHosts]:
    two = TwoHosts(tmp_path)
    yield two
    two.close()


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    lines = io.StringIO()
    logs.configure("json", "debug", lines)
    yield lines
    logs.configure()


def test_each_key_meets_its_own_host_and_stands_in_no_file_line_page_or_answer(
    two: TwoHosts, lines: io.StringIO
) -> None:
    app, now = two.app, two.clock.now()
    for service, key in KEYS.items():
        app.secrets.add(service, service, Secret.parse(key), now, terms=Terms(is_shared=True))
    users = [place for place in WORLD.places if fate(WORLD, place)[0] == "usual"]
    for place, service in zip(users, (*SERVICES, *SERVICES), strict=False):
        target, settings = f"@{user_name(WORLD, place, START)}", {"service": service}
        follow(app.store, app.secrets, app.platforms, "twitter_feed", target, now, settings=settings)
    ids = [source.id for source, _ in app.store.sources.page(0, 10)]
    outcomes = {result.outcome for _ in range(2) for result in app.scheduler().these(ids, "test", "test")}
    assert {"succeeded", "failed"} <= {str(outcome) for outcome in outcomes}
    for service, key in KEYS.items():
        sent = {line.credential for line in read_log(two.logs[service])}
        assert sent == {sha256(key.encode()).hexdigest()[:12]}
    desk = Desk(cast(Any, two))
    browser = desk.browser()
    shown = [browser.get(page).text for page in PAGES]
    shown += [desk.client.get(path).text for path in ("/api/sources", "/api/credentials", "/api/alerts", "/api/runs")]
    assert all(len(page) > 100 for page in shown)
    assert "https" in shown[1] or "@" in shown[1]
    app.close()
    told = [*shown, lines.getvalue()]
    files = [file.read_bytes() for file in two.home.rglob("*") if file.is_file()]
    assert lines.getvalue()
    for key in KEYS.values():
        assert not any(key in text for text in told)
        assert not any(key.encode() in content for content in files)
