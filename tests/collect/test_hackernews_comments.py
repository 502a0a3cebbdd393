"""Comments of Hacker News: read by search if wanted, and again when there are more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.fetch.settings import Attempt
from catchment.model import Answer, Platform, Request, Source
from catchment.platforms import hackernews
from catchment.sources.add import follow
from tests.clocks import HandClock
from tests.playing import Answering
from tests.town import TownApp

STORY = 100


@dataclass
class HackerNews(Answering):
    """The site with one story, and the search over its comments. Stands where the fetch client would."""

    clock: HandClock
    comments: dict[int, int] = field(default_factory=dict)
    """Each comment's parent."""
    asked: list[str] = field(default_factory=list)
    most_hits: int = 1000

    def answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        now, name = self.clock.now(), request.url.rpartition("/")[2]
        attempts.append(Attempt(platform.NAME, now, "200", 0.0))
        self.asked.append(" ".join([name, request.params.get("tags", "")]).strip())
        body = self._search(request.params) if name == "search_by_date" else self._site(name)
        return Answer(200, {}, json.dumps(body).encode(), request.url, now)

    def _site(self, name: str) -> Any:
        if name == "newstories.json":
            return [STORY]
        if name == f"{STORY}.json":
            told = {"id": STORY, "type": "story", "title": "Tides", "time": self._at(STORY)}
            return told | {"descendants": len(self.comments)}
        return None

    def _search(self, params: dict[str, str]) -> Any:
        bound = int(params.get("numericFilters", f"created_at_i<={10**12}").partition("<=")[2])
        found = sorted(number for number in self.comments if self._at(number) <= bound)[::-1]
        assert params["tags"] == f"comment,story_{STORY}"
        size = min(self.most_hits, int(params["hitsPerPage"]))
        hits = [
            {
                "objectID": str(number),
                "_tags": ["comment", f"story_{STORY}"],
                "author": "ada",
                "comment_text": f"text of {number}",
                "created_at_i": self._at(number),
                "parent_id": self.comments[number],
                "story_id": STORY,
            }
            for number in found[:size]
        ]
        return {"hits": hits, "nbHits": len(found), "hitsPerPage": size, "page": 0}

    def _at(self, number: int) -> int:
        return 1_767_225_600 + number


class Scene:
    def __init__(self, home: Path, database_url: str) -> None:
        self.here = TownApp(home, database_url)
        self.site = HackerNews(self.here.clock)
        self.here.play(self.site, hackernews)  # type: ignore[arg-type]

    def follow(self, **settings: Any) -> Source:
        app = self.here.app
        return follow(
            app.store, app.secrets, app.platforms, "hackernews", "new", self.here.clock.now(), settings=settings
        )[0]

    def visit(self, source: Source) -> list[str]:
        """What a visit asks for."""
        self.site.asked.clear()
        self.here.collect(source, after=timedelta(hours=1))
        return list(self.site.asked)

    def recheck(self, after: timedelta) -> None:
        self.here.clock.advance(after.total_seconds())
        self.here.app.rechecks().run("test")

    def tree(self) -> dict[str, str | None]:
        """The stored comments, each with what it answers."""
        return {
            item["external_id"]: item["parent_id"]
            for item in self.here.items()
            if item["kind"] == "comment" and item["thread_id"] == str(STORY)
        }


@pytest.fixture
def scene(tmp_path: Path, database_url: str) -> Iterator[Scene]:
    found = Scene(tmp_path / "home", database_url)
    yield found
    found.here.close()


def test_comments_are_read_only_if_wanted(scene: Scene) -> None:
    scene.site.comments = {101: 100}
    assert scene.visit(scene.follow()) == ["newstories.json", "100.json"]
    assert scene.tree() == {}


def test_comments_become_a_thread_and_are_read_again_when_there_are_more(scene: Scene) -> None:
    source = scene.follow(comments=True)
    scene.site.comments = {101: 100, 102: 101, 103: 101, 104: 103}
    # More than one answer shows: the next one begins at the oldest second.
    scene.site.most_hits = 3
    search = f"search_by_date comment,story_{STORY}"
    assert scene.visit(source) == ["newstories.json", "100.json", search, search]
    assert scene.tree() == {"101": "100", "102": "101", "103": "101", "104": "103"}
    assert scene.here.item("100")["is_head"]
    # The list shows ids only: that there are more comments is noticed by the recheck, and the next visit reads them.
    assert scene.visit(source) == ["newstories.json"]
    scene.site.most_hits = 1000
    scene.site.comments[105] = 104
    scene.recheck(timedelta(hours=36))
    assert scene.visit(source) == ["newstories.json", search]
    assert scene.tree()["105"] == "104"
