"""`catchment tasks`: what was requested through the API, and what became of it."""

from __future__ import annotations

from pathlib import Path

from catchment.app import App, open_app
from catchment.collect.tasks import request_task
from catchment.settings import Settings
from tests.cli.conftest import Catchment
from tests.feedsite import FeedSite


def opened(home: Path) -> App:
    url = f"sqlite:///{home / 'catchment.db'}"
    return open_app(Settings(home=home, database_url=url, is_private_allowed=True, retry_waits=()), "test")


def test_tasks_are_listed_shown_and_cancelled(catchment: Catchment, home: Path, site: FeedSite) -> None:
    feed, followed = site.feed("news", posts=3), site.feed("followed", posts=1)
    assert catchment("sources", "add", "rss", followed.url).code == 0
    assert "no tasks in the last 24 hours" in catchment("tasks", "list").err
    missing = site.feed("missing")
    missing.status = 404
    with opened(home) as app:
        done = request_task(app.store, app.platforms, "rss", [feed.url, missing.url], 10, app.clock.now()).task_id
        app.task_runner().run()
        waiting = request_task(app.store, app.platforms, "rss", [feed.url], 10, app.clock.now()).task_id
    listed = catchment("tasks", "list").out
    assert "completed" in next(line for line in listed.splitlines() if done in line)
    assert "pending" in next(line for line in listed.splitlines() if waiting in line)
    assert [task["task_id"] for task in catchment("tasks", "list", "--json").json] == [waiting, done]
    shown = catchment("tasks", "show", done)
    assert "2 of 2" in shown.out
    assert "succeeded" in next(line for line in shown.out.splitlines() if feed.url in line)
    assert "404" in next(line for line in shown.out.splitlines() if missing.url in line)
    facts = catchment("tasks", "show", done, "--json").json
    assert (facts["state"], [target["new"] for target in facts["targets"]]) == ("completed", [3, 0])
    assert catchment("tasks", "cancel", waiting).code == 0
    assert "cancelled" in catchment("tasks", "list").out
    assert catchment("tasks", "cancel", done, "--json").failure[1] == "CONFLICT"
    assert catchment("tasks", "show", "nobody", "--json").failure[1] == "NOT_FOUND"
