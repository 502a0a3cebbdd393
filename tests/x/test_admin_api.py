"""The admin API: a requested collection, from POST to its results."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from catchment.errors import Missing, SlowDown
from catchment.web.api import tasks
from tests.town import TownApp
from tests.web.browser import led_to, opened, plain
from tests.web.desk import Desk


@pytest.fixture
def admin(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    """The names of users are addresses of feeds here: the API is the same for every kind."""
    monkeypatch.setattr(tasks, "KIND", "rss")
    here = TownApp(tmp_path / "home", database_url)
    yield Desk(here)
    here.close()


def names(desk: Desk, count: int) -> list[str]:
    feeds = [desk.here.town.feed(f"u{number}") for number in range(count)]
    for feed in feeds:
        feed.post(f"{feed.url}-1")
    return [feed.url for feed in feeds]


def test_a_post_is_accepted_and_its_task_is_asked_for_until_it_is_completed(admin: Desk) -> None:
    first, second = names(admin, 2)
    admin.here.town.feeds[second].says.append(Missing("nobody of that name", status=404))
    answer = admin.post("/api/admin/scrape", {"usernames": f"{first}, {second}", "limit": 20}, status=202)
    path = f"/api/admin/scrape/{answer['task_id']}"
    assert answer["status"] == "pending"
    before = admin.get(path)
    assert (before["status"], before["result"]) == ("pending", None)
    assert before["progress"] == {"done": 0, "total": 2, "current": None}
    admin.here.app.task_runner().run()
    after = admin.get(path)
    assert (after["status"], after["progress"]["done"]) == ("completed", 2)
    sums = {name: after["result"][name] for name in ("total", "succeeded", "failed", "new", "error")}
    assert sums == {"total": 2, "succeeded": 1, "failed": 1, "new": 1, "error": None}
    assert [(user["username"], user["outcome"]) for user in after["result"]["users"]] == [
        (first, "succeeded"),
        (second, "failed"),
    ]
    assert after["result"]["users"][1]["error"]["code"] == "MISSING"
    assert len(admin.get("/api/items")["items"]) == 1
    (listed,) = admin.get("/api/tasks")["items"]
    assert (listed["task_id"], listed["done"], listed["state"]) == (answer["task_id"], 2, "completed")


def test_the_same_key_is_the_same_task_and_another_is_refused_with_its_id(admin: Desk) -> None:
    (name,) = names(admin, 1)
    body = {"usernames": name}
    task_id = admin.client.post("/api/admin/scrape", json=body, headers={"Idempotency-Key": "k"}).json()["task_id"]
    again = admin.client.post("/api/admin/scrape", json=body, headers={"Idempotency-Key": "k"})
    assert (again.status_code, again.json()["task_id"]) == (202, task_id)
    other = admin.client.post("/api/admin/scrape", json=body, headers={"X-Request-ID": "r"})
    assert (other.status_code, other.json()["error"]["task_id"]) == (409, task_id)
    admin.here.app.task_runner().run()
    first = admin.client.post("/api/admin/scrape", json=body, headers={"X-Request-ID": "r"}).json()
    assert first == admin.client.post("/api/admin/scrape", json=body, headers={"X-Request-ID": "r"}).json()
    assert first["task_id"] != task_id


def test_what_is_wrong_is_named(admin: Desk) -> None:
    (name,) = names(admin, 1)
    wrong = admin.post("/api/admin/scrape", {"usernames": f"{name},no feed,neither"}, status=400)["error"]
    assert wrong["field"] == "usernames"
    assert "no feed" in wrong["message"]
    assert "neither" in wrong["message"]
    for body, field in (
        ({"usernames": name, "limit": 0}, "limit"),
        ({"usernames": name, "limit": 1001}, "limit"),
        ({"usernames": " , "}, "usernames"),
        ({}, "usernames"),
    ):
        assert admin.post("/api/admin/scrape", body, status=400)["error"]["field"] == field
    assert admin.client.get("/api/admin/scrape/nobody").status_code == 404


def test_everything_that_is_wrong_is_named_at_once(admin: Desk) -> None:
    (name,) = names(admin, 1)
    body = {"usernames": f"{name},no feed,neither", "limit": 0, "user": "nasa"}
    wrong = admin.post("/api/admin/scrape", body, status=400)["error"]
    said = {problem["field"]: problem["message"] for problem in wrong["fields"]}
    assert said.keys() == {"limit", "user", "usernames"}
    assert all(words in said["usernames"] for words in ("'no feed'", "'neither'"))
    assert name not in said["usernames"]
    assert all(message in wrong["message"] for message in said.values())
    for body, fields in (
        ({"usernames": "no feed", "limit": "many"}, ["limit", "usernames"]),
        ({"usernames": " , ", "limit": True}, ["limit", "usernames"]),
        ({"usernames": 7, "limit": 1.5}, ["limit", "usernames"]),
        ({"limit": 1_001}, ["limit", "usernames"]),
    ):
        answer = admin.post("/api/admin/scrape", body, status=400)["error"]
        assert sorted(problem["field"] for problem in answer["fields"]) == fields
    # One wrong field needs no list.
    assert "fields" not in admin.post("/api/admin/scrape", {"usernames": name, "limit": 0}, status=400)["error"]
    assert admin.get("/api/tasks")["items"] == []


def test_every_bad_name_is_named_however_many_there_are(admin: Desk) -> None:
    bad = [f"no feed {number}" for number in range(300)]
    message = admin.post("/api/admin/scrape", {"usernames": ",".join(bad)}, status=400)["error"]["message"]
    assert [name for name in bad if f"'{name}'" not in message] == []


def test_a_cancelled_task_has_failed_and_one_that_ran_out_of_time_answers_504(admin: Desk) -> None:
    (name,) = names(admin, 1)
    path = f"/api/admin/scrape/{admin.post('/api/admin/scrape', {'usernames': name}, status=202)['task_id']}"
    admin.post(f"{path}/cancel")
    admin.here.app.task_runner().run()
    assert (admin.get(path)["status"], admin.get(path)["result"]["error"]["code"]) == ("failed", "CANCELLED")
    assert admin.client.post(f"{path}/cancel").status_code == 409
    wait = SlowDown("used up", retry_at=admin.here.clock.now() + timedelta(hours=2), is_own_limit=True)
    admin.here.town.feeds[name].says.extend([wait] * 3)
    late = admin.post("/api/admin/scrape", {"usernames": name}, status=202)["task_id"]
    admin.here.app.task_runner().run()
    # Its limits would let it go on after two hours; its own time is over after one.
    admin.here.clock.advance(3_599)
    admin.here.app.task_runner().run()
    assert admin.client.post("/api/admin/scrape", json={"usernames": name}).status_code == 409
    assert admin.get(f"/api/admin/scrape/{late}")["status"] == "running"
    admin.here.clock.advance(1)
    admin.here.app.task_runner().run()
    answer = admin.client.get(f"/api/admin/scrape/{late}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "TIMEOUT_ERROR")
    assert admin.get(f"/api/tasks/{late}")["state"] == "failed"
    assert admin.get("/health")["failed_tasks"] == 2
    assert 'catchment_tasks{state="failed"} 2.0' in admin.client.get("/metrics").text


def test_the_page_shows_the_progress_and_cancels(admin: Desk) -> None:
    assert "No tasks in the last 24 hours" in opened(admin, "/tasks")
    many = names(admin, 3)
    task_id = admin.post("/api/admin/scrape", {"usernames": ",".join(many)}, status=202)["task_id"]
    assert "pending 0 of 3" in plain(opened(admin, "/tasks"))
    assert led_to(admin, f"/tasks/{task_id}/cancel") == f"/tasks/{task_id}?done=task_cancelled"
    admin.here.app.task_runner().run()
    assert "cancelled by a user" in opened(admin, f"/tasks/{task_id}")
    assert "已由用户取消" in opened(admin, f"/tasks/{task_id}", language="zh")
    opened(admin, "/tasks/nobody", status=404)


def test_without_the_platform_of_users_nothing_is_accepted(admin: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "KIND", "an_unknown_kind")
    assert admin.client.post("/api/admin/scrape", json={"usernames": "nasa"}).status_code == 409
