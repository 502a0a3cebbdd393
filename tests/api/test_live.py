"""What is running, told as it changes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from catchment.api import pulse
from catchment.errors import Missing, StoreError
from tests.api.browsing import opened
from tests.api.desk import Desk


def told(desk: Desk, language: str = "en") -> list[dict[str, Any]]:
    """What a browser hears until the server stops: what is so at first."""
    desk.here.shop.stop.set()
    answer = desk.browser(language).get("/live")
    desk.here.shop.stop.clear()
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
    here.shop.store.sources.claim([good.id], here.shop.presence.owner_id, here.clock.now())
    (heard,) = told(both)
    assert heard["said"] == "1 visit is under way"
    assert heard["visits"] == [{"name": "Gazette", "href": "/sources/1", "words": "began just now", "tone": "live"}]
    assert [(one["name"], one["tone"]) for one in heard["results"]] == [("An <old> blog", "bad"), ("Gazette", "good")]
    assert heard["results"][1]["words"].startswith("1 new item · ")
    (chinese,) = told(both, "zh")
    assert chinese["said"] == "1 个访问正在进行"


def test_the_page_itself_shows_the_same_without_a_script(desk: Desk) -> None:
    feed = desk.here.town.feed("one")
    feed.post("p1", at=desk.here.clock.now())
    desk.here.collect(desk.here.follow(feed, name="Gazette"))
    for path in ("/", "/runs"):
        page = opened(desk, path)
        assert 'data-live="/live"' in page
        assert "No visit is under way." in page
        assert '<li class="is-good"><a href="/sources/1">Gazette</a> <span>1 new item' in page


def test_only_so_many_may_listen(desk: Desk) -> None:
    desk.door.pulse.listeners = pulse.MOST_LISTENERS
    answer = desk.browser().get("/live")
    assert answer.status_code == 503
    desk.door.pulse.listeners = 0
    told(desk)
    assert desk.door.pulse.listeners == 0


def test_a_database_that_is_away_for_a_moment_ends_no_stream(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def away() -> Any:
        raise StoreError("gone for a moment")

    monkeypatch.setattr(desk.here.shop.store.runs, "under_way", away)
    assert told(desk) == []


def test_all_who_listen_share_one_look() -> None:
    looks = []
    shared = pulse.Pulse()
    for _ in range(3):
        shared.seen(lambda: looks.append(1) or {"visits": []})  # type: ignore[func-returns-value]
    assert len(looks) == 1
