"""Forums that list all their posts: how long one visit reads that list, and where the next one continues."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.fetch.settings import Attempt
from catchment.model import Answer, Platform, Request, Source
from catchment.platforms import discourse
from catchment.sources.add import follow
from tests.clocks import HandClock
from tests.playing import Answering
from tests.town import TownApp

FORUM = "https://forum.example/"
PER_PAGE = 50


class Site(Answering):
    """A Discourse forum with one long topic."""

    def __init__(self, clock: HandClock) -> None:
        self.clock, self.began = clock, clock.now()
        self.post_count = 0
        self.seconds_a_page = 0.0
        self.asked: list[str] = []

    def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        name = request.url.removeprefix(FORUM)
        self.asked.append(" ".join([name.removesuffix(".json"), *(request.params.get(key, "") for key in ("before",))]))
        self.clock.advance(self.seconds_a_page)
        now = self.clock.now()
        attempts.append(Attempt(platform.NAME, now, "200", 0.0))
        if name == "posts.json":
            last = int(request.params.get("before", self.post_count + 1)) - 1
            body: Any = {"latest_posts": [self._post(id_) for id_ in range(last, max(0, last - PER_PAGE), -1)]}
        elif name == "latest.json":
            body = {"topic_list": {"topics": [{**self._topic(), "created_at": self._at(1)}]}}
        else:
            number = int(name.removesuffix(".json").partition("/")[2].partition("/")[2] or 1)
            first = max(1, number - discourse.SHOWN_BEFORE)
            posts = [self._post(id_) for id_ in range(first, min(first + 20, self.post_count + 1))]
            body = {**self._topic(), "post_stream": {"posts": posts, "stream": list(range(1, self.post_count + 1))}}
        return Answer(200, {}, json.dumps(body).encode(), request.url, now)

    def _at(self, id_: int) -> str:
        return (self.began + timedelta(seconds=id_)).isoformat()

    def _post(self, id_: int) -> Any:
        return {
            "id": id_,
            "topic_id": 1,
            "post_number": id_,
            "cooked": f"<p>post {id_}</p>",
            "created_at": self._at(id_),
        }

    def _topic(self) -> Any:
        count, last = self.post_count, self._at(self.post_count)
        return {"id": 1, "title": "Locks", "posts_count": count, "highest_post_number": count, "last_posted_at": last}


class Deployment(TownApp):
    def __init__(self, home: Path, database_url: str) -> None:
        super().__init__(home, database_url)
        self.site = Site(self.clock)
        self.play(self.site, discourse)
        app = self.app
        self.source: Source = follow(
            app.store, app.secrets, app.platforms, "discourse_forum", FORUM, self.clock.now(), settings={}
        )[0]

    def tick(self) -> tuple[list[str], float]:
        """Collects what is due a minute later; returns what was requested, and how long that took."""
        self.site.asked.clear()
        self.clock.advance(60)
        began = self.clock.now()
        self.app.scheduler().due("test", "test")
        return [asked.strip() for asked in self.site.asked], (self.clock.now() - began).total_seconds()

    def ids(self) -> set[str]:
        rows = self.app.store.database.read(lambda tx: tx.all("SELECT external_id FROM items"))
        return {external_id for (external_id,) in rows}


@pytest.fixture
def forum(tmp_path: Path, database_url: str) -> Iterator[Deployment]:
    deployment = Deployment(tmp_path, database_url)
    yield deployment
    deployment.close()


def test_a_long_stream_of_posts_holds_nobody_for_longer_than_four_minutes(forum: Deployment) -> None:
    forum.site.post_count = 10
    forum.tick()
    forum.clock.advance(2 * 3600)
    forum.site.post_count, forum.site.seconds_a_page = 410, 100
    assert forum.tick() == (["posts", "posts 361", "posts 311"], 300)
    assert forum.app.store.gaps.count_open() == 0
    # What is posted meanwhile is above the place where the next collection continues.
    forum.site.post_count = 440
    assert forum.tick() == (["posts 261", "posts 211", "posts 161"], 300)
    # Once the stream is read, the list gets a page at least, whatever the time is.
    assert forum.tick() == (["posts 111", "posts 61", "posts 11", "latest"], 400)
    forum.site.seconds_a_page = 0
    forum.clock.advance(2 * 3600)
    asked, _ = forum.tick()
    assert asked[0] == "posts"
    assert forum.ids() == {"t1", *(str(id_) for id_ in range(2, 441))}
    assert forum.app.store.gaps.count_open() == 0
