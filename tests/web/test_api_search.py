"""/api/search: the same verb through HTTP, on both databases."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from catchment.store.search import index
from tests.web.desk import Desk


@pytest.fixture
def asked(both: Desk) -> Desk:
    here = both.here
    feed = here.town.feed("one", title="One")
    for number in range(5):
        feed.post(
            f"p{number}", text=f"今天天气很好 fox number{number}", at=here.clock.now() - timedelta(hours=number + 1)
        )
    here.collect(here.follow(feed))
    return both


def found(desk: Desk, **asked: Any) -> list[str]:
    return [item["external_id"] for page in desk.pages("/api/search", **asked) for item in page]


def test_items_are_found_by_their_words_page_by_page(asked: Desk) -> None:
    for _ in range(2):
        everything = [f"p{number}" for number in range(5)]
        assert found(asked, q="天气 FOX", limit=2) == everything
        assert sorted(found(asked, q="fox", limit=2, order="best")) == everything
        assert found(asked, q="number3") == ["p3"]
        assert found(asked, q="number") == []
        asked.here.app.store.index.advance()


def test_an_answer_tells_how_many_there_are_and_where_the_hits_are(asked: Desk) -> None:
    page = asked.get("/api/search", q="很好 number1")
    (item,) = page["items"]
    assert (page["count"], page["behind"], page["next"]) == (1, 0, None)
    piece = item["snippet"]
    assert [piece["text"][start:end] for start, end in piece["marks"]] == ["很好", "number1"]
    assert {"id", "title", "url", "title_marks", "key"} <= item.keys()


@pytest.mark.parametrize(
    ("filters", "count"),
    [
        ({"kind": "rss"}, 5),
        ({"kind": "reddit"}, 0),
        ({"platform": "feeds"}, 5),
        ({"source_id": 1}, 5),
        ({"source_id": 2}, 0),
        ({"author": "nobody"}, 0),
        ({"tag": "none"}, 0),
        ({"since": "2100-01-01"}, 0),
        ({"until": "2100-01-01"}, 5),
        ({"is_deleted": True}, 0),
        ({"is_deleted": False}, 5),
    ],
)
def test_filters_of_every_sort_are_taken(asked: Desk, filters: dict[str, Any], count: int) -> None:
    assert len(found(asked, q="fox", **filters)) == count


def test_an_index_too_far_behind_is_said(asked: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "MOST_SCANNED", 3)
    assert asked.get("/api/search", q="fox")["behind"] == 2


@pytest.mark.parametrize(
    ("asking", "field"),
    [
        ({"q": "?!"}, "q"),
        ({"q": ""}, "q"),
        ({}, "q"),
        ({"q": "x" * 501}, "q"),
        ({"q": "a\0b"}, "q"),
        ({"q": "fox", "after": "nowhere"}, "after"),
        ({"q": "fox", "order": "worst"}, "order"),
        ({"q": "fox", "limit": 0}, "limit"),
        ({"q": "fox", "since": "one day"}, "since"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_field(asked: Desk, asking: dict[str, Any], field: str) -> None:
    answer = asked.client.get("/api/search", params=asking)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["field"] == field
