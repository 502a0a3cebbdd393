"""The keys of both services: each is sent to its own host alone, and stands in plain nowhere else."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from catchment import logs
from catchment.app import App, open_app
from catchment.collect.tasks import request_task
from catchment.credentials.secret import Secret
from catchment.events import notifications, webhooks
from catchment.playground.faults import Cue, FaultPlan
from catchment.playground.log import read_log
from catchment.playground.server import Playground
from catchment.playground.sites.x import fate, user_name
from catchment.settings import Settings
from catchment.sources.add import follow
from catchment.store.credentials import Terms
from tests.clocks import HandClock
from tests.databases import sqlite_ready
from tests.hostile import Behaviour, Connection, Hostile, Seen, reply
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
            service: Playground(WORLD, self.clock, FaultPlan(5, 0.0, script), log=log)
            for service, log in self.logs.items()
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


def repeating(code: int) -> Behaviour:
    """An error that says back which key was sent."""

    def behave(connection: Connection, seen: Seen) -> bool:
        key = seen.headers.get("x-api-key") or seen.headers.get("authorization")
        body = json.dumps({"status": "error", "msg": f"bad key {key}", "title": f"bad key {key}"}).encode()
        return reply(body, code, content_type="application/json")(connection, seen)

    return behave


@pytest.mark.parametrize("code", [200, 400, 403, 500])
def test_a_key_that_a_host_repeats_is_in_no_message_page_answer_line_or_file(
    tmp_path: Path, lines: io.StringIO, code: int
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    clock = HandClock(START)
    with Hostile() as host, Hostile() as receiver:
        host.on("/2/users/by/username/esa", repeating(code))
        host.on("/twitter/user/info", repeating(code))
        settings = Settings(
            home=home,
            database_url=sqlite_ready(f"sqlite:///{home / 'catchment.db'}"),
            base_urls=dict.fromkeys(SERVICES, host.url),
            master_key="a key for tests",
            is_private_allowed=True,
            retry_waits=(),
        )
        with open_app(settings, "test", clock=clock) as app:
            now = clock.now()
            webhooks.add(app.store.webhooks, app.cipher, "mine", receiver.on("/hook", reply()), now, secret="s" * 20)
            address = f"json://{receiver.on('/chat', reply()).removeprefix('http://')}"
            notifications.add(app.store.webhooks, app.cipher, "team", address, now)
            for service, name in (("x", "@esa"), ("twitterapi_io", "@nasa")):
                app.secrets.add(service, service, Secret.parse(KEYS[service]), now, terms=Terms(is_shared=True))
                given = {"service": service}
                follow(app.store, app.secrets, app.platforms, "twitter_feed", name, now, settings=given)
            app.scheduler().these([1, 2], "test", "test")
            request_task(app.store, app.platforms, "twitter_feed", ["nasa"], 10, now)
            app.task_runner().run()
            for _ in range(3):
                clock.advance(60)
                app.deliverer.deliver_pending()
            assert {seen.path for seen in receiver.seen} == {"/hook", "/chat"}
            desk = Desk(cast(Any, SimpleNamespace(app=app, clock=clock)))
            browser, (task,) = desk.browser(), app.store.tasks.page()
            pages = (*PAGES[:4], "/alerts", "/tasks", f"/tasks/{task.task_id}", "/spending", "/webhooks")
            told = [browser.get(page).text for page in pages]
            told += [desk.client.get(f"/api{path}").text for path in ("/sources/2", "/tasks", "/spending", "/alerts")]
            told += [desk.client.get(f"/api/admin/scrape/{task.task_id}").text]
        sent = {seen.headers.get("x-api-key") or seen.headers.get("authorization", "") for seen in host.seen}
        assert sent == {KEYS["twitterapi_io"], f"Bearer {KEYS['x']}"}
        told += [lines.getvalue(), *(seen.body.decode() for seen in receiver.seen)]
    files = [file.read_bytes() for file in home.rglob("*") if file.is_file()]
    # What the host said is told, without the key.
    assert code not in (200, 400) or any("bad key" in text for text in told)
    for key in KEYS.values():
        assert not any(key in text for text in told)
        assert not any(key.encode() in content for content in files)


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
