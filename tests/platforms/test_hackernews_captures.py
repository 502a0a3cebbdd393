"""Real answers of Hacker News and of its search: every recorded file, and what must come out of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from catchment.errors import Unreadable
from catchment.model import (
    Answer,
    Item,
    Reading,
    Request,
)
from catchment.platforms import hackernews
from catchment.platforms.hackernews import algolia, firebase

NOW = datetime(2026, 11, 1, tzinfo=UTC)
EXPECTED: dict[str, Any] = json.loads((Path(__file__).parent / "hackernews_captures.expected.json").read_text())
FIELDS = ["external_id", "kind", "title", "target_url", "author", "score", "reply_count", "tags", "is_deleted"]


def request(name: str, step: str) -> Request:
    if name.startswith("algolia/"):
        return algolia.request("javascript")
    if name.startswith("firebase/item_"):
        return firebase.item_request(name.rpartition("_")[2].removesuffix(".json"), step)
    return firebase.list_request("top" if "top" in name else "new")


def outcome(captures: Path, name: str, step: str) -> Any:
    asked = request(name, step)
    answer = Answer(200, {}, (captures / "hn" / name).read_bytes(), asked.url, NOW)
    assert hackernews.refusal(answer, asked) is None
    try:
        return shown(hackernews.read(answer, asked))
    except Unreadable as error:
        return error.what


def shown(reading: Reading) -> dict[str, Any]:
    """A reading as data, without what it says of nothing."""
    ids = [item.external_id for item in reading.items] or reading.listed
    told = {
        "count": len(ids),
        "first_id": ids[0] if ids else None,
        "last_id": ids[-1] if ids else None,
        "first": said(reading.items[0]) if reading.items else None,
        "skipped": [skipped.reason for skipped in reading.skipped],
        "item_id": len(reading.follow),
    }
    return {name: value for name, value in told.items() if value}


def said(item: Item) -> dict[str, Any]:
    told = {name: value for name in FIELDS if (value := getattr(item, name)) not in (None, ()) and value is not False}
    html = {"html_begins": item.html[:40], "html_characters": len(item.html)} if item.html else {}
    return json.loads(json.dumps({**told, **html, "created_at": item.created_at and item.created_at.isoformat()}))


def test_every_recorded_file_has_its_expectation(captures: Path) -> None:
    found = {str(path.relative_to(captures / "hn")) for path in (captures / "hn").rglob("*.json")}
    assert found == EXPECTED.keys()


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_recorded_answer_gives_what_the_file_says(captures: Path, name: str) -> None:
    assert {step: outcome(captures, name, step) for step in EXPECTED[name]} == EXPECTED[name]


def test_a_recorded_list_of_new_stories_goes_down_by_id(captures: Path) -> None:
    body = (captures / "hn" / "firebase" / "newstories_2026.json").read_bytes()
    asked = firebase.list_request("new")
    listed = [int(story_id) for story_id in hackernews.read(Answer(200, {}, body, asked.url, NOW), asked).listed]
    assert listed == sorted(listed, reverse=True)
