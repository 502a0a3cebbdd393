"""What is running, told as it changes."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from catchment import installation
from catchment.errors import LoginNeeded, Missing, StoreError
from catchment.web import dependencies
from tests.web.browser import opened
from tests.web.desk import Desk

PATIENCE = 600.0
"""A bound on hanging, never what decides."""


def told(desk: Desk, language: str = "en") -> list[dict[str, Any]]:
    """What a browser hears until the server stops: what is so at first."""
    desk.here.app.stop.set()
    answer = desk.browser(language).get("/live")
    desk.here.app.stop.clear()
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert answer.headers["cache-control"] == "no-store"
    lines = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines]


def test_visits_under_way_and_those_that_ended_last_are_told(both: Desk) -> None:
    here = both.here
    feed = here.town.feed("one")
    feed.post("p1", at=here.clock.now())
    good = here.follow(feed, name="Gazette")
    broken = here.town.feed("two")
    broken.says.append(Missing("the feed is not there", status=404))
    here.collect(good)
    here.collect(here.follow(broken, name="An <old> blog"))
    here.app.store.sources.claim([good.id], here.app.presence.owner_id, here.clock.now())
    (heard,) = told(both)
    assert heard["said"] == "1 collection in progress"
    assert heard["visits"] == [{"name": "Gazette", "href": "/sources/1", "words": "started just now", "tone": "live"}]
    assert [(result["name"], result["tone"]) for result in heard["results"]] == [
        ("An <old> blog", "bad"),
        ("Gazette", "good"),
    ]
    assert heard["results"][1]["words"].startswith("1 new item · ")
    (chinese,) = told(both, "zh")
    assert chinese["said"] == "1 个采集正在进行"


def test_the_page_itself_shows_the_same_without_a_script(desk: Desk) -> None:
    feed = desk.here.town.feed("one")
    feed.post("p1", at=desk.here.clock.now())
    desk.here.collect(desk.here.follow(feed, name="Gazette"))
    for path in ("/", "/runs"):
        page = opened(desk, path)
        assert 'data-live="/live"' in page
        assert "No collection in progress." in page
        assert '<li class="is-good"><a href="/sources/1">Gazette</a> <span>1 new item' in page


def test_a_command_in_an_error_can_be_typed_as_it_stands(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "command", lambda: ".venv/bin/catchment")
    feed = desk.here.town.feed("one")
    feed.says.append(LoginNeeded("members only", status=401))
    desk.here.collect(desk.here.follow(feed, name="Gazette"))
    (heard,) = told(desk)
    assert heard["results"][0]["words"].startswith(
        "The site requires a login. Add or replace the credential: "
        ".venv/bin/catchment credentials add PLATFORM NAME --replace."
    )


def test_only_so_many_may_listen(desk: Desk) -> None:
    desk.context.pulse.listeners = dependencies.MOST_LISTENERS
    answer = desk.browser().get("/live")
    assert answer.status_code == 503
    desk.context.pulse.listeners = 0
    told(desk)
    assert desk.context.pulse.listeners == 0


def test_a_database_that_is_away_for_a_moment_ends_no_stream(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> Any:
        raise StoreError("gone for a moment")

    monkeypatch.setattr(desk.here.app.store.runs, "under_way", away)
    assert told(desk) == []


def test_a_stream_ends_with_the_session_that_opened_it(desk: Desk) -> None:
    browser = desk.browser()
    with ThreadPoolExecutor(1) as aside:
        stream = aside.submit(browser.get, "/live")
        try:
            while not desk.context.pulse.listeners and not stream.done():
                time.sleep(0.01)
            desk.here.app.store.sessions.end_all()
            assert stream.result(PATIENCE).status_code == 200
        finally:
            desk.here.app.stop.set()


def test_all_who_listen_share_one_look() -> None:
    looks = []
    shared = dependencies.Pulse()
    for _ in range(3):
        shared.seen(lambda: looks.append(1) or {"visits": []})  # type: ignore[func-returns-value]
    assert len(looks) == 1
