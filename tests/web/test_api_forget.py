"""Forgetting through the API."""

from __future__ import annotations

from typing import Any

import pytest

from tests.web.desk import Desk
from tests.web.test_api_resources import an_edited_feed


def test_an_item_is_forgotten_and_the_record_is_listed(both: Desk) -> None:
    an_edited_feed(both)
    item = both.get("/api/items")["items"][0]
    record = both.post("/api/forget", {"item_id": item["id"], "reason": "requested"})
    assert (record["what"], record["item_count"], record["forgotten_by"]) == ("item", 1, "API")
    assert both.client.get(f"/api/items/{item['id']}").status_code == 404
    assert both.pages("/api/forgotten", limit=1) == [[record]]
    assert both.client.post("/api/forget", json={"item_id": item["id"]}).status_code == 404


def test_an_author_is_forgotten_on_one_platform(both: Desk) -> None:
    record = both.post("/api/forget", {"platform": "feeds", "author": "Somebody"})
    assert (record["what"], record["platform"], record["item_count"]) == ("author", "feeds", 0)


def test_an_author_on_a_platform_that_is_none_is_refused_and_not_recorded(both: Desk) -> None:
    answer = both.client.post("/api/forget", json={"platform": "rss", "author": "Somebody"})
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "platform")
    assert both.get("/api/forgotten")["items"] == []


@pytest.mark.parametrize("body", [{}, {"author": "x"}, {"item_id": 1, "author": "x"}, {"item_id": 0}, {"name": "x"}])
def test_what_is_to_be_forgotten_must_be_said(both: Desk, body: dict[str, Any]) -> None:
    answer = both.client.post("/api/forget", json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "INVALID_INPUT")
