"""Webhooks and watches over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from catchment.jobs import deliver_events, run_watches
from tests.hostile import Hostile, reply, status
from tests.town import TownApp
from tests.web.browser import led_to, opened, plain, sent
from tests.web.desk import Desk


@pytest.fixture
def receiver() -> Iterator[Hostile]:
    with Hostile() as server:
        yield server


@pytest.fixture
def telling(tmp_path: Path, database_url: str) -> Iterator[Desk]:
    """On either database; it may send to this machine, and can seal."""
    settings = {"master_key": "a master key for tests", "is_private_allowed": True}
    here = TownApp(tmp_path / "home", database_url, **settings)
    yield Desk(here)
    here.close()


def test_what_a_watch_finds_reaches_a_webhook(telling: Desk, receiver: Hostile) -> None:
    here = telling.here
    hook = {"name": "n8n", "url": receiver.on("/hook", reply()), "events": ["watch.matched"]}
    added = telling.post("/api/webhooks", hook, status=201)
    assert added["secret"]
    watch = telling.post("/api/watches", {"name": "chips", "words": ["芯片", "-股票"]}, status=201)
    feed = here.town.feed()
    feed.post("1", title="国产芯片")
    feed.post("2", title="芯片股票")
    here.collect(here.follow(feed))
    run_watches(here.app)
    deliver_events(here.app)
    (seen,) = receiver.seen
    assert '"title":"国产芯片"'.encode() in seen.body
    (hit,) = telling.get(f"/api/watches/{watch['id']}/hits")["items"]
    assert (hit["title"], hit["words"]) == ("国产芯片", ["芯片"])
    assert telling.get(f"/api/watches/{watch['id']}")["hit_count"] == 1
    (listed,) = telling.get("/api/webhooks")["items"]
    assert (listed["delivered_count"], listed["waiting_count"], "secret" in listed) == (1, 0, False)


def test_webhooks_are_paused_resumed_tested_and_removed(telling: Desk, receiver: Hostile) -> None:
    body = {"name": "n8n", "url": receiver.on("/hook", reply(), status(503)), "secret": "sixteen or more characters"}
    added = telling.post("/api/webhooks", body, status=201)
    assert added["secret"] is None
    path = f"/api/webhooks/{added['webhook_id']}"
    assert telling.post(f"{path}/pause")["off_because"] == "paused by a user"
    assert telling.post(f"{path}/resume")["is_active"]
    assert telling.post(f"{path}/test") == {"is_delivered": True}
    assert telling.post(f"{path}/test", status=502)["error"]["code"] == "SERVER_TROUBLE"
    telling.post("/api/webhooks", body, status=409)
    assert telling.client.delete(path).status_code == 204
    assert telling.client.get(path).status_code == 404


def test_notifications_are_added_tested_paused_and_removed_over_http_and_their_address_is_never_shown(
    telling: Desk, receiver: Hostile
) -> None:
    address = receiver.on("/in", reply(), status(503)).replace("http://", "json://user:a-secret-password@")
    body = {"name": "team", "url": address, "least_severity": "P1", "language": "zh"}
    added = telling.post("/api/notifications", body, status=201)
    events = ["alert.opened", "alert.closed", "watch.matched", "task.finished"]
    assert (added["url"], added["events"]) == ("json://…", events)
    path = f"/api/notifications/{added['notification_id']}"
    assert telling.post(f"{path}/test") == {"is_delivered": True}
    refused = telling.post(f"{path}/test", status=502)["error"]
    assert (refused["code"], "503" in refused["message"]) == ("REFUSED", True)
    assert telling.post(f"{path}/pause")["off_because"] == "paused by a user"
    assert telling.post(f"{path}/resume")["is_active"]
    (listed,) = telling.get("/api/notifications")["items"]
    assert telling.get("/api/webhooks")["items"] == []
    assert telling.client.get(path.replace("notifications", "webhooks")).status_code == 404
    assert "a-secret-password" not in f"{added}{refused}{listed}"
    assert telling.client.delete(path).status_code == 204
    assert telling.client.get(path).status_code == 404


def test_the_page_adds_tests_pauses_and_removes_a_notification(telling: Desk, receiver: Hostile) -> None:
    address = receiver.on("/in", reply(), status(503)).replace("http://", "json://user:a-secret-password@")
    assert "No notifications yet" in opened(telling, "/notifications")
    wrong = sent(telling, "/notifications", name="team", url=f"{address} json://b", alerts="1")
    assert (wrong.status_code, "a-secret-password" in wrong.text) == (400, False)
    assert sent(telling, "/notifications", name="team", url=address).status_code == 400
    assert led_to(telling, "/notifications", name="team", url=address, alerts="1", severity="P1", language="zh") == (
        "/notifications?done=notification_added"
    )
    page = opened(telling, "/notifications")
    assert "team json alert.opened, alert.closed; alerts from P1 active" in plain(page)
    assert "a-secret-password" not in page
    assert led_to(telling, "/notifications/1/test") == "/notifications?done=notification_tested"
    assert "did not accept the message" in sent(telling, "/notifications/1/test").text
    assert led_to(telling, "/notifications/1/pause") == "/notifications?done=notification_paused"
    assert "已暂停" in opened(telling, "/notifications", language="zh")
    assert led_to(telling, "/notifications/1/resume") == "/notifications?done=notification_resumed"
    assert led_to(telling, "/notifications/1/remove") == "/notifications?done=notification_removed"
    assert "No notifications yet" in opened(telling, "/notifications")


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("webhooks", {"name": "x", "url": "nowhere"}, "url"),
        ("webhooks", {"name": "x", "url": "https://a.example/", "events": ["everything"]}, "events"),
        ("webhooks", {"name": "x", "url": "https://a.example/", "secret": "short"}, "secret"),
        ("notifications", {"name": "x", "url": "nonsense"}, "url"),
        ("notifications", {"name": "x", "url": "json://a.example", "events": ["everything"]}, "events"),
        ("notifications", {"name": "x", "url": "json://a.example", "least_severity": "P9"}, "least_severity"),
        ("watches", {"name": "x"}, "words"),
        ("watches", {"name": "x", "words": ["!"]}, "words"),
        ("watches", {"name": "x", "words": ["a"], "source_ids": [7]}, "source_ids"),
        ("watches", {"name": "x", "words": ["a"], "nonsense": 1}, "nonsense"),
    ],
)
def test_what_could_never_work_is_refused_by_its_name(desk: Desk, path: str, body: dict[str, Any], field: str) -> None:
    assert desk.post(f"/api/{path}", body, status=400)["error"]["field"] == field


def test_watches_are_paused_resumed_and_removed(telling: Desk) -> None:
    added = telling.post("/api/watches", {"name": "w", "authors": ["ann"]}, status=201)
    path = f"/api/watches/{added['id']}"
    assert [telling.post(f"{path}/{verb}")["is_active"] for verb in ("pause", "resume")] == [False, True]
    telling.post("/api/watches", {"name": "w", "authors": ["ann"]}, status=409)
    assert telling.client.delete(path).status_code == 204
    assert [telling.client.get(url).status_code for url in (path, f"{path}/hits")] == [404, 404]
